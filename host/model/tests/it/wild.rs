//! Tests with streams as real servers send them: one row for each peculiarity.

use belljar_kit_peers::{HttpPeer, Reply};
use belljar_model::{CallContext, ModelError, ModelProvider, StopReason, StreamEvent};
use serde_json::{Value, json};

use crate::support::{build, call, chat, config, error, first_turn, openai, reply, status, stream};

pub(crate) const DONE: &str = "[DONE]";

pub(crate) fn delta(delta: Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
}

pub(crate) fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

/// A stream of these bytes.
pub(crate) fn raw(text: &str) -> Reply {
    raw_as("text/event-stream", text)
}

pub(crate) fn raw_as(kind: &str, text: &str) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    Reply::bytes(format!("{head}{text}"))
}

pub(crate) fn data(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

pub(crate) fn good() -> Reply {
    stream(&[&delta(json!({"content": "again"})), &finish("stop"), DONE])
}

#[tokio::test]
async fn keep_alives_of_every_form_are_passed_over() {
    for row in [
        "data: \n\n",
        "data:\n\n",
        "data: null\n\n",
        ": ping\n\n",
        ": OPENROUTER PROCESSING\n\n",
        "event: ping\ndata: keep-alive\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "id: 3\ndata: \n\n",
        "retry: 500\n\n",
        "\n\n\n",
        "data: keep-alive\n\n",
        "data: {}\n\n",
        "data: [] \n\n",
        "event: heartbeat\n\n",
        "data: {\"choices\": []}\n\n",
        "data: {\"choices\": null, \"usage\": null}\n\n",
        "data: {\"type\": \"ping\"}\n\n",
        "data: {\"choices\": [{\"delta\": null, \"finish_reason\": \"\"}]}\n\n",
        "data: {\"choices\": [], \"prompt_filter_results\": []}\n\n",
    ] {
        let (one, two) = (delta(json!({"content": "one "})), delta(json!({"content": "two"})));
        let (first, last) = (data(&[&one]), data(&[&two, &finish("stop"), DONE]));
        let server = HttpPeer::with_replies(vec![raw(&format!("{row}{first}{row}{last}"))]);
        assert_eq!(reply(&openai(&server), &first_turn()).await.text, "one two", "{row:?}");
    }
}

#[tokio::test]
async fn a_usage_that_makes_no_sense_costs_nobody_an_answer() {
    for (usage, input, output) in [
        (json!({"prompt_tokens": 10.0, "completion_tokens": 5.0}), 10, 5),
        (json!({"prompt_tokens": 10, "completion_tokens": 37.25}), 10, 38),
        (json!({"prompt_tokens": 1151, "completion_tokens": -35}), 1151, 0),
        (json!({"prompt_tokens": "10", "completion_tokens": null}), 10, 0),
        (json!({"prompt_tokens": {}, "completion_tokens": [1]}), 0, 0),
        (json!({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 3.0}}), 10, 0),
        (json!({"prompt_tokens": 10, "prompt_tokens_details": "none"}), 10, 0),
        (json!("free"), 0, 0),
        (json!(null), 0, 0),
        (json!([]), 0, 0),
        (json!(-1), 0, 0),
    ] {
        let last = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage});
        let events = [delta(json!({"content": "hi"})), last.to_string(), DONE.to_owned()];
        let server =
            HttpPeer::with_replies(vec![raw(&data(&events.each_ref().map(String::as_str)))]);
        let reply = reply(&openai(&server), &first_turn()).await;
        let counted = (reply.usage.input_tokens, reply.usage.output_tokens);
        assert_eq!((reply.text.as_str(), counted), ("hi", (input, output)), "{usage}");
    }
}

#[tokio::test]
async fn an_error_of_any_form_inside_a_stream_is_told_in_its_own_words() {
    for row in [
        r#"data: {"error": {"message": "zyx", "code": 400}}"#,
        r#"data: {"error": "zyx"}"#,
        r#"data: {"error": {"message": "zyx", "code": "400", "metadata": {}}, "choices": [{"delta": {"content": ""}}]}"#,
        r#"data: [{"error": {"code": 400, "message": "zyx", "status": "INVALID_ARGUMENT"}}]"#,
        r#"data: {"object": "error", "message": "zyx", "code": 400}"#,
        r#"data: {"type": "error", "error": {"type": "invalid_request_error", "message": "zyx"}}"#,
        r#"data: {"code": 400, "message": "zyx"}"#,
        r#"data: {"detail": "zyx"}"#,
        r#"data: {"choices": [{"delta": {}, "error": {"code": 400, "message": "zyx"}}]}"#,
        r#"data: {"base_resp": {"status_code": 1004, "status_msg": "zyx"}}"#,
        r#"error: {"code": 400, "message": "zyx", "type": "invalid_request_error"}"#,
        "event: error\ndata: zyx",
        "event: error\ndata: {\"message\": \"zyx\"}",
        "data: error: zyx",
        r#"{"error": {"message": "zyx", "code": 400}}"#,
    ] {
        for end in ["\n\n", ""] {
            let server = HttpPeer::with_replies(vec![raw(&format!("{row}{end}"))]);
            let error = error(&openai(&server), &first_turn()).await;
            assert!(error.to_string().contains("zyx"), "{row}: {error}");
            assert_eq!(server.requests().len(), 1, "{row}");
        }
    }
}

/// A row: its name, the `tool_calls` of each piece, and the calls that must result.
type Row = (&'static str, Vec<Value>, Vec<(&'static str, &'static str)>);

fn rows() -> Vec<Row> {
    let f = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let (a, b) = (r#"{"p":1}"#, r#"{"p":2}"#);
    let two = vec![("r", a), ("r", b)];
    let with = |more: Value, function: Value| {
        let mut call = more;
        call["function"] = function;
        json!([call])
    };
    vec![
        (
            "no index",
            vec![with(json!({"id": "x"}), f("r", a)), with(json!({"id": "y"}), f("r", b))],
            two.clone(),
        ),
        (
            "no index, no ids",
            vec![with(json!({}), f("r", a)), with(json!({}), f("r", b))],
            two.clone(),
        ),
        (
            "index 0 again, new ids",
            vec![
                with(json!({"index": 0, "id": "x"}), f("r", "")),
                with(json!({"index": 0}), f("", a)),
                with(json!({"index": 0, "id": "y"}), f("r", "")),
                with(json!({"index": 0}), f("", b)),
            ],
            two.clone(),
        ),
        (
            "from 1",
            vec![
                with(json!({"index": 1, "id": "x"}), f("r", "")),
                with(json!({"index": 1}), f("", a)),
                with(json!({"index": 2, "id": "y"}), f("r", "")),
                with(json!({"index": 2}), f("", b)),
            ],
            two.clone(),
        ),
        (
            "interleaved",
            vec![
                with(json!({"index": 0, "id": "x"}), f("r", "")),
                with(json!({"index": 1, "id": "y"}), f("r", "")),
                with(json!({"index": 0}), f("", "{\"p\"")),
                with(json!({"index": 1}), f("", "{\"p\"")),
                with(json!({"index": 0}), f("", ":1}")),
                with(json!({"index": 1}), f("", ":2}")),
            ],
            two.clone(),
        ),
        (
            "interleaved by id alone",
            vec![
                with(json!({"id": "x"}), f("r", "")),
                with(json!({"id": "y"}), f("r", "")),
                with(json!({"id": "x"}), f("", "{\"p\"")),
                with(json!({"id": "y"}), f("", "{\"p\"")),
                with(json!({"id": "x"}), f("", ":1}")),
                with(json!({"id": "y"}), f("", ":2}")),
            ],
            two.clone(),
        ),
        (
            "id and name on every piece",
            vec![
                with(json!({"index": 0, "id": "x"}), f("r", "{\"p\"")),
                with(json!({"index": 0, "id": "x"}), f("r", ":1}")),
                with(json!({"index": 1, "id": "y"}), f("r", "{\"p\"")),
                with(json!({"index": 1, "id": "y"}), f("r", ":2}")),
            ],
            two.clone(),
        ),
        (
            "a new id on every piece",
            vec![
                with(json!({"index": 0, "id": "x1"}), f("r", "")),
                with(json!({"index": 0, "id": "x2"}), json!({"arguments": "{\"p\""})),
                with(json!({"index": 0, "id": "x3"}), json!({"arguments": ":1}"})),
            ],
            vec![("r", a)],
        ),
        (
            "the same id for all",
            vec![
                with(json!({"index": 0, "id": "call_0"}), f("r", "")),
                with(json!({"index": 0}), f("", a)),
                with(json!({"index": 1, "id": "call_0"}), f("r", "")),
                with(json!({"index": 1}), f("", b)),
            ],
            two.clone(),
        ),
        (
            "the same id and number for all",
            vec![
                with(json!({"index": 0, "id": "call_0"}), f("r", a)),
                with(json!({"index": 0, "id": "call_0"}), f("r", b)),
            ],
            two.clone(),
        ),
        (
            "neither id nor name, and no index",
            vec![
                with(json!({"index": 0, "id": "x"}), f("r", "")),
                with(json!({}), json!({"arguments": "{\"p\""})),
                with(json!({}), json!({"arguments": ":1}"})),
            ],
            vec![("r", a)],
        ),
        (
            "neither id nor name, and an index of its own",
            vec![
                with(json!({"index": 0, "id": "x"}), f("r", "{\"p\"")),
                with(json!({"index": 1}), json!({"arguments": ":1}"})),
            ],
            vec![("r", a)],
        ),
        (
            "empty id and name",
            vec![
                with(json!({"index": 0, "id": "x"}), f("r", "")),
                with(json!({"index": 0, "id": ""}), f("", a)),
            ],
            vec![("r", a)],
        ),
        (
            "id and name late",
            vec![
                with(json!({"index": 0}), f("", "{\"p\"")),
                with(json!({"index": 0, "id": "x"}), f("r", ":1}")),
            ],
            vec![("r", a)],
        ),
        (
            "arguments as an object",
            vec![with(json!({"index": 0, "id": "x"}), json!({"name": "r", "arguments": {"p": 1}}))],
            vec![("r", a)],
        ),
        (
            "an empty object first",
            vec![
                with(json!({"index": 0, "id": "x"}), json!({"name": "r", "arguments": {}})),
                with(json!({"index": 0}), f("", a)),
            ],
            vec![("r", a)],
        ),
        (
            "all of it again at the end",
            vec![
                with(json!({"index": 0, "id": "x"}), f("r", "{\"p\"")),
                with(json!({"index": 0}), f("", ":1}")),
                with(json!({"index": 0, "id": "x"}), f("r", a)),
            ],
            vec![("r", a)],
        ),
        (
            "all in one",
            vec![json!([
                {"index": 0, "id": "x", "function": f("r", a)}, {"index": 1, "id": "y", "function": f("r", b)},
            ])],
            two.clone(),
        ),
        (
            "names that differ, no ids",
            vec![
                with(json!({"index": 0}), f("r", "")),
                with(json!({"index": 0}), f("", a)),
                with(json!({"index": 0}), f("s", "")),
                with(json!({"index": 0}), f("", b)),
            ],
            vec![("r", a), ("s", b)],
        ),
        (
            "the same name announced again, no ids",
            vec![
                with(json!({}), f("r", "")),
                with(json!({}), json!({"arguments": a})),
                with(json!({}), f("r", "")),
                with(json!({}), json!({"arguments": b})),
            ],
            two,
        ),
        ("one that is no list", vec![json!({"id": "x", "function": f("r", a)})], vec![("r", a)]),
    ]
}

#[tokio::test]
async fn pieces_of_calls_are_put_together_however_a_server_numbers_them() {
    for (what, pieces, calls) in rows() {
        for reason in ["tool_calls", "stop", "function_call"] {
            let mut events: Vec<String> =
                pieces.iter().map(|piece| delta(json!({"tool_calls": piece}))).collect();
            events.extend([finish(reason), DONE.to_owned()]);
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            let server = HttpPeer::with_replies(vec![stream(&events)]);
            let reply = reply(&openai(&server), &first_turn()).await;
            let got: Vec<_> =
                reply.calls.iter().map(|it| (it.name.as_str(), it.arguments.as_str())).collect();
            assert_eq!((got, reply.stop), (calls.clone(), StopReason::ToolUse), "{what}");
            let mut ids: Vec<_> = reply.calls.iter().map(|call| call.id.as_str()).collect();
            ids.dedup();
            assert!(ids.len() == calls.len() && !ids.contains(&""), "{what}: {ids:?}");
        }
    }
}

#[tokio::test]
async fn the_older_form_of_a_call_is_a_call() {
    let piece = |call: Value| delta(json!({"function_call": call}));
    let events = [
        piece(json!({"name": "r", "arguments": ""})),
        piece(json!({"arguments": "{\"p\""})),
        piece(json!({"arguments": ":1}"})),
        finish("function_call"),
        DONE.to_owned(),
    ];
    let server = HttpPeer::with_replies(vec![stream(&events.each_ref().map(String::as_str))]);
    let reply = reply(&openai(&server), &first_turn()).await;
    assert_eq!(reply.calls, [call("call_1_1", "r", r#"{"p":1}"#)]);
}

#[tokio::test]
async fn a_broken_end_is_asked_again_and_one_that_nobody_knows_is_no_good_end() {
    let hi = delta(
        json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "r", "arguments": "{\"p"}}]}),
    );
    for word in [
        "error",
        "abort",
        "insufficient_system_resource",
        "network_error",
        "MALFORMED_FUNCTION_CALL",
    ] {
        let server = HttpPeer::with_replies(vec![stream(&[&hi, &finish(word), DONE]), good()]);
        assert_eq!(reply(&openai(&server), &first_turn()).await.text, "again", "{word}");
    }
    let text = delta(json!({"content": "half"}));
    for (word, stop) in [
        ("SAFETY", StopReason::Refusal),
        ("RECITATION", StopReason::Refusal),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("odd", StopReason::Other("odd".into())),
    ] {
        let server = HttpPeer::with_replies(vec![stream(&[&text, &finish(word), DONE])]);
        assert_eq!(reply(&openai(&server), &first_turn()).await.stop, stop, "{word}");
    }
    let server = HttpPeer::with_replies(vec![stream(&[&text, DONE])]);
    let silent = reply(&openai(&server), &first_turn()).await.stop;
    assert_eq!(silent, StopReason::Other("no reason given".into()));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again_unless_its_text_stays() {
    let piece = delta(
        json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "r", "arguments": "{\"p"}}]}),
    );
    let thought = delta(json!({"reasoning_content": "hm"}));
    let text = delta(json!({"content": "hal"}));
    let overloaded = json!({"error": {"code": 502, "message": "bad gateway"}}).to_string();
    let taking = CallContext { takes_back: true, ..CallContext::new("a") };
    for broken in [vec![piece.as_str()], vec![thought.as_str()], vec![&piece, &overloaded]] {
        let server = HttpPeer::with_replies(vec![stream(&broken), good()]);
        let reply = reply(&openai(&server), &first_turn()).await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("again", 0));
    }
    for broken in [vec![text.as_str()], vec![&text, &piece], vec![&text, &overloaded]] {
        let server = HttpPeer::with_replies(vec![stream(&broken), stream(&broken), good()]);
        let model = openai(&server);
        let (stays, events) = chat(&model, &first_turn(), &CallContext::new("a")).await;
        assert!(stays.is_err());
        assert!(!events.iter().any(|event| matches!(event, StreamEvent::Retrying { .. })));
        let (taken, events) = chat(&model, &first_turn(), &taking).await;
        assert_eq!(taken.unwrap().text, "again");
        assert!(events.iter().any(|event| matches!(event, StreamEvent::Retrying { .. })));
    }
}

#[tokio::test]
async fn a_server_that_refuses_a_field_by_name_is_asked_without_it_from_then_on() {
    let refuse = |words: &str| status(400, "", &json!({"error": {"message": words}}).to_string());
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "whole", "tool_calls": [
        {"id": "x", "function": {"name": "r", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}}).to_string();
    let json = || raw_as("application/json", &whole);
    let server = HttpPeer::with_replies(vec![
        refuse("Unrecognized request argument supplied: stream_options"),
        good(),
        good(),
    ]);
    let model = openai(&server);
    reply(&model, &first_turn()).await;
    reply(&model, &first_turn()).await;
    let has = |field: &str| {
        server.requests().iter().map(|seen| !seen.body[field].is_null()).collect::<Vec<_>>()
    };
    assert_eq!(has("stream_options"), [true, false, false]);

    let server = HttpPeer::with_replies(vec![refuse("streaming is not supported"), json(), json()]);
    let model = openai(&server);
    let answer = reply(&model, &first_turn()).await;
    assert_eq!(
        (answer.text.as_str(), answer.calls.len(), answer.usage.output_tokens),
        ("whole", 1, 2)
    );
    reply(&model, &first_turn()).await;
    let streamed: Vec<Value> =
        server.requests().iter().map(|seen| seen.body["stream"].clone()).collect();
    assert_eq!(streamed, [json!(true), json!(false), json!(false)]);

    let server = HttpPeer::with_replies(vec![good()]);
    let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
    settings.stream_options = Some(false);
    reply(&build(&settings), &first_turn()).await;
    assert!(server.requests()[0].body["stream_options"].is_null());
}

#[tokio::test]
async fn a_stream_is_taken_as_one_whatever_its_content_type_says() {
    let events = data(&[&delta(json!({"content": "hi"})), &finish("stop"), DONE]);
    for kind in ["text/plain", "application/octet-stream", "application/x-ndjson", ""] {
        let server = HttpPeer::with_replies(vec![raw_as(kind, &events)]);
        assert_eq!(reply(&openai(&server), &first_turn()).await.text, "hi", "{kind}");
    }
    let server = HttpPeer::with_replies(vec![raw_as("text/html", "<html>")]);
    assert!(matches!(error(&openai(&server), &first_turn()).await, ModelError::Protocol { .. }));
}

#[tokio::test]
async fn a_request_that_does_not_fit_is_told_as_that() {
    for body in [
        json!({"error": {"message": "no", "code": "context_length_exceeded"}}),
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 2 > 1"}}),
        json!({"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}}),
        json!([{"error": {"code": 400, "message": "The input token count (3) exceeds the maximum number of tokens allowed (2).", "status": "INVALID_ARGUMENT"}}]),
    ] {
        let server = HttpPeer::with_replies(vec![
            status(400, "", &body.to_string()),
            raw(&data(&[&body.to_string()])),
        ]);
        let model = openai(&server);
        for _ in 0..2 {
            let error = error(&model, &first_turn()).await;
            assert!(matches!(error, ModelError::ContextLength { .. }), "{body}: {error:?}");
        }
    }
}

#[tokio::test]
async fn another_choice_is_no_part_of_the_answer_wherever_it_stands() {
    let choice =
        |index: Option<u64>, text: &str| json!({"index": index, "delta": {"content": text}});
    let chunk = |choices: Vec<Value>| json!({"choices": choices}).to_string();
    let end = |index: u64| {
        json!({"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]}).to_string()
    };
    for (name, events) in [
        (
            "a piece of another one between",
            vec![
                chunk(vec![choice(Some(0), "a")]),
                chunk(vec![choice(Some(1), "X")]),
                end(1),
                end(0),
            ],
        ),
        (
            "the other one first",
            vec![chunk(vec![choice(Some(1), "X"), choice(Some(0), "a")]), end(0)],
        ),
        ("counted from 1", vec![chunk(vec![choice(Some(1), "a")]), end(1)]),
        ("without a number", vec![chunk(vec![choice(None, "a")]), finish("stop")]),
    ] {
        let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
        events.push(DONE);
        let server = HttpPeer::with_replies(vec![stream(&events)]);
        let reply = reply(&openai(&server), &first_turn()).await;
        assert_eq!((reply.text.as_str(), &reply.stop), ("a", &StopReason::EndTurn), "{name}");
    }
}

#[tokio::test]
async fn arguments_that_are_null_or_written_twice_are_an_object() {
    for (arguments, expected) in [
        (json!("null"), "{}"),
        (json!(null), "{}"),
        (json!("\"{\\\"path\\\": 1}\""), "{\"path\": 1}"),
        (json!("\"a text\""), "\"a text\""),
    ] {
        let piece =
            json!({"index": 0, "id": "c", "function": {"name": "n", "arguments": arguments}});
        let server = HttpPeer::with_replies(vec![stream(&[
            &delta(json!({"tool_calls": [piece]})),
            &finish("tool_calls"),
            DONE,
        ])]);
        let reply = reply(&openai(&server), &first_turn()).await;
        assert_eq!(reply.calls, [call("c", "n", expected)], "{arguments}");
    }
}

#[tokio::test]
async fn a_call_that_breaks_off_before_done_is_asked_for_again() {
    let half = json!({"index": 0, "id": "c", "function": {"name": "n", "arguments": "{\"a"}});
    let half = delta(json!({"tool_calls": [half]}));
    let server = HttpPeer::with_replies(vec![stream(&[&half, DONE]), good()]);
    assert_eq!(reply(&openai(&server), &first_turn()).await.text, "again");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_error_in_plain_words_that_passes_is_asked_again_and_another_is_not() {
    for busy in ["data: {\"error\": \"overloaded\"}", "event: error\ndata: upstream went away"] {
        let server = HttpPeer::with_replies(vec![raw(&format!("{busy}\n\n")), good()]);
        assert_eq!(reply(&openai(&server), &first_turn()).await.text, "again", "{busy}");
    }
}
