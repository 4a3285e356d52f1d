//! Tests of OpenAI's chat completions.

use belljar_kit_peers::HttpPeer;
use belljar_model::{
    CallContext, ChatModel, ChatRequest, Effort, MaxTokensField, ModelError, ModelProvider,
    Sampling, StopReason, StreamEvent, TokenUsage, ToolChoice,
};
use serde_json::{Value, json};

use crate::support::{
    GIF, build, call, chat, config, error, first_turn, openai, reply, second_turn, seeing, status,
    stream, third_turn, user,
};

const DONE: &str = "[DONE]";

fn delta(delta: Value) -> String {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": null})
        .to_string()
}

/// The answer that a stream of the given events results in.
async fn answer(events: &[&str]) -> belljar_model::ModelReply {
    let server = HttpPeer::with_replies(vec![stream(events)]);
    reply(&openai(&server), &first_turn()).await
}

#[tokio::test]
async fn text_thinking_and_usage_are_streamed_and_collected() {
    let usage = json!({"choices": [], "usage": {
        "prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 80},
    }});
    let server = HttpPeer::with_replies(vec![stream(&[
        &delta(json!({"role": "assistant", "content": ""})),
        &delta(json!({"reasoning_content": "hm"})),
        &delta(json!({"content": "Hel"})),
        &delta(json!({"content": "lo"})),
        &finish("stop"),
        &usage.to_string(),
        DONE,
    ])]);
    let (result, events) = chat(&openai(&server), &first_turn(), &CallContext::new("a")).await;
    let reply = result.unwrap();
    assert_eq!((reply.text.as_str(), &reply.stop), ("Hello", &StopReason::EndTurn));
    assert_eq!(reply.usage, TokenUsage { input_tokens: 100, cached_tokens: 80, output_tokens: 7 });
    assert_eq!(
        events,
        [
            StreamEvent::Started,
            StreamEvent::ThinkingDelta("hm".into()),
            StreamEvent::TextDelta("Hel".into()),
            StreamEvent::TextDelta("lo".into()),
        ]
    );
}

#[tokio::test]
async fn parallel_calls_in_pieces_are_put_together_however_the_bytes_arrive() {
    let text = stream(&[
        &delta(
            json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "file_read", "arguments": ""}}]}),
        ),
        &delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\": \"gr"}}]})),
        &delta(
            json!({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "file_list", "arguments": "{"}}]}),
        ),
        &delta(
            json!({"tool_calls": [{"index": 1, "function": {"arguments": "}"}}, {"index": 0, "function": {"arguments": "ün\"}"}}]}),
        ),
        &finish("tool_calls"),
        DONE,
    ]);
    let server = HttpPeer::with_replies(vec![text.trickled()]);
    let (result, events) = chat(&openai(&server), &first_turn(), &CallContext::new("a")).await;
    let reply = result.unwrap();
    assert_eq!(
        reply.calls,
        [call("c1", "file_read", r#"{"path": "grün"}"#), call("c2", "file_list", "{}"),]
    );
    assert_eq!(reply.stop, StopReason::ToolUse);
    let started = |name: &str| StreamEvent::CallStarted { name: name.into() };
    assert_eq!(events, [StreamEvent::Started, started("file_read"), started("file_list")]);
}

#[tokio::test]
async fn whole_calls_without_index_or_id_get_ids_that_depend_only_on_the_conversation() {
    let calls = json!({"tool_calls": [
        {"function": {"name": "file_read", "arguments": "{\"path\":\"a\"}"}},
        {"function": {"name": "file_read", "arguments": {"path": "b"}}},
    ]});
    let events = [&*delta(calls), &finish("stop"), DONE];
    let server = HttpPeer::with_replies(vec![stream(&events), stream(&events)]);
    let model = openai(&server);
    let reply_1 = reply(&model, &first_turn()).await;
    assert_eq!(
        reply_1.calls,
        [
            call("call_1_1", "file_read", r#"{"path":"a"}"#),
            call("call_1_2", "file_read", r#"{"path":"b"}"#),
        ]
    );
    assert_eq!(reply_1.stop, StopReason::ToolUse, "calls outweigh a `stop`");
    assert_eq!(reply(&model, &second_turn()).await.calls[0].id, "call_2_1");
}

#[tokio::test]
async fn whole_calls_that_share_index_zero_or_an_id_stay_apart() {
    let one = |id: &str, name: &str| {
        delta(
            json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": "{}"}}]}),
        )
    };
    let apart = answer(&[&one("x", "a"), &one("y", "b"), &finish("tool_calls"), DONE]).await;
    assert_eq!(apart.calls, [call("x", "a", "{}"), call("y", "b", "{}")]);
    let unnamed = answer(&[&one("", "a"), &one("", "b"), &finish("tool_calls"), DONE]).await;
    assert_eq!(unnamed.calls, [call("call_1_1", "a", "{}"), call("call_1_2", "b", "{}")]);
    let twins = json!({"tool_calls": [
        {"index": 0, "id": "x", "function": {"name": "a", "arguments": "{}"}},
        {"index": 1, "id": "x", "function": {"name": "b", "arguments": "{}"}},
    ]});
    let twins = answer(&[&delta(twins), &finish("tool_calls"), DONE]).await;
    assert_eq!(twins.calls, [call("x", "a", "{}"), call("call_1_2", "b", "{}")]);
}

#[tokio::test]
async fn a_name_repeated_in_every_piece_is_one_call() {
    let piece = |arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "a", "arguments": arguments}}]}),
        )
    };
    let reply = answer(&[&piece("{\"p\""), &piece(": 1}"), &finish("tool_calls")]).await;
    assert_eq!(reply.calls, [call("x", "a", r#"{"p": 1}"#)]);
}

#[tokio::test]
async fn an_id_or_name_that_comes_late_belongs_to_the_open_call() {
    let piece = |id: Option<&str>, name: Option<&str>, arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let reply = answer(&[
        &piece(None, None, ""),
        &piece(Some("x"), Some("a"), "{"),
        &piece(None, None, "}"),
        &finish("tool_calls"),
    ])
    .await;
    assert_eq!(reply.calls, [call("x", "a", "{}")]);
}

#[tokio::test]
async fn malformed_arguments_come_through_verbatim() {
    let reply = answer(&[
        &delta(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "file_read", "arguments": "{\"path\": "}}]})),
        &finish("length"),
        DONE,
    ])
    .await;
    assert_eq!(reply.calls, [call("c", "file_read", r#"{"path": "#)]);
    assert_eq!(reply.stop, StopReason::MaxTokens);
}

#[tokio::test]
async fn llama_cpp_timings_count_what_the_usage_leaves_out() {
    let hello = delta(json!({"content": "hi"}));
    let timings = json!({"cache_n": 236, "prompt_n": 1, "predicted_n": 35});
    let usage = json!({"prompt_tokens": 237, "completion_tokens": 35});
    let both = json!({"choices": [], "usage": usage, "timings": timings}).to_string();
    let alone = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "timings": timings})
        .to_string();
    let expected = TokenUsage { input_tokens: 237, cached_tokens: 236, output_tokens: 35 };
    assert_eq!(answer(&[&hello, &finish("stop"), &both, DONE]).await.usage, expected);
    assert_eq!(answer(&[&hello, &alone, DONE]).await.usage, expected);
}

#[tokio::test]
async fn an_answer_without_usage_or_done_is_complete_when_it_has_a_finish() {
    let reply = answer(&[&delta(json!({"content": "hi"})), &finish("stop")]).await;
    assert_eq!((reply.text.as_str(), reply.usage), ("hi", TokenUsage::default()));
}

#[tokio::test]
async fn stop_reasons_are_told_apart() {
    let hello = delta(json!({"content": "hi"}));
    for (word, stop) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("odd\u{1b}", StopReason::Other("odd\\u{1b}".into())),
    ] {
        assert_eq!(answer(&[&hello, &finish(word), DONE]).await.stop, stop);
    }
    let refusal = delta(json!({"refusal": "I will not."}));
    let reply = answer(&[&refusal, &finish("stop"), DONE]).await;
    assert_eq!((reply.text.as_str(), reply.stop), ("I will not.", StopReason::Refusal));
}

#[tokio::test]
async fn an_error_inside_the_stream_is_retried_only_before_the_first_token() {
    let overloaded = json!({"error": {"code": 502, "message": "bad gateway"}}).to_string();
    let hello = delta(json!({"content": "hi"}));
    let server = HttpPeer::with_replies(vec![
        stream(&[&overloaded]),
        stream(&[&hello, &finish("stop"), DONE]),
        stream(&[&hello, &overloaded]),
    ]);
    let model = openai(&server);
    let (result, events) = chat(&model, &first_turn(), &CallContext::new("a")).await;
    assert_eq!(result.unwrap().text, "hi");
    assert!(matches!(&events[0], StreamEvent::Retrying { attempt: 2, .. }), "{events:?}");
    assert!(matches!(error(&model, &first_turn()).await, ModelError::Http { status: 502, .. }));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_request_has_the_shape_that_servers_expect() {
    let server = HttpPeer::with_replies(vec![stream(&[&finish("stop")])]);
    let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
    settings.max_output_tokens = Some(500);
    settings.temperature = Some(0.5);
    settings.key = belljar_model::KeySource::Env("KEY".into());
    let mut request = second_turn();
    request.effort = Some(Effort::Max);
    reply(&build(&settings), &request).await;
    let seen = server.requests().remove(0);
    assert!(seen.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(seen.header("authorization"), Some("Bearer sk-hunter2"));
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tool = |name: &str| {
        json!({"type": "function", "function": {
            "name": name, "description": format!("does {name}"), "parameters": schema,
        }})
    };
    let expected = json!({
        "model": "m-1", "stream": true, "stream_options": {"include_usage": true},
        "max_tokens": 500, "temperature": 0.5, "reasoning_effort": "high",
        "tools": [tool("file_read"), tool("file_list")],
        "messages": [
            {"role": "system", "content": "You read.\n\nBe brief."},
            {"role": "user", "content": "what is in a and b?"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call-1", "type": "function", "function": {"name": "file_read", "arguments": "{\"path\": \"a\"}"}},
                {"id": "call.2", "type": "function", "function": {"name": "file_read", "arguments": "{\"invalid_json\":\"{\\\"path\\\": \"}"}},
            ]},
            {"role": "tool", "content": "A", "tool_call_id": "call-1"},
            {"role": "tool", "content": "no such tool", "tool_call_id": "call.2"},
        ],
    });
    assert_eq!(seen.body, expected);
}

/// All sampling parameters, as a caller may set them.
fn sampled() -> Sampling {
    Sampling {
        top_p: Some(0.5),
        presence_penalty: Some(-1.0),
        frequency_penalty: Some(1.5),
        seed: Some(-7),
        stop: vec!["Observation:".to_owned(), "\n\n".to_owned()],
    }
}

#[tokio::test]
async fn how_an_answer_is_sampled_goes_to_the_model_before_the_settings_own_word() {
    let server = HttpPeer::with_replies(vec![stream(&[&finish("stop")])]);
    let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
    for (field, value) in [("top_p", json!(0.9)), ("stop", json!("x")), ("top_k", json!(1))] {
        settings.extra_body.insert(field.into(), value);
    }
    let request = ChatRequest { sampling: sampled(), ..first_turn() };
    reply(&build(&settings), &request).await;
    let seen = server.requests().remove(0);
    assert_eq!(seen.text.matches("top_p").count(), 1, "a field stands there once: {}", seen.text);
    let sent = seen.body.clone();
    let expected = json!({
        "top_p": 0.5, "presence_penalty": -1.0, "frequency_penalty": 1.5, "seed": -7,
        "stop": ["Observation:", "\n\n"], "top_k": 1,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(sent[field], *value, "{field}");
    }
}

#[tokio::test]
async fn a_server_that_refuses_stop_is_asked_without_it() {
    let refusal = r#"{"error":{"message":"Unsupported parameter: 'stop' is not supported with this model."}}"#;
    let server = HttpPeer::with_replies(vec![status(400, "", refusal), stream(&[&finish("stop")])]);
    let request = ChatRequest { sampling: sampled(), ..first_turn() };
    reply(&openai(&server), &request).await;
    let seen = server.requests();
    assert!(seen[0].body.get("stop").is_some() && seen[1].body.get("stop").is_none());
    assert_eq!(seen[1].body["top_p"], 0.5, "the rest stays");
}

#[tokio::test]
async fn without_tools_or_system_nothing_is_said_about_them() {
    let server = HttpPeer::with_replies(vec![stream(&[&finish("stop")])]);
    let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
    settings.max_output_tokens = Some(5);
    settings.max_tokens_field = Some(MaxTokensField::MaxCompletionTokens);
    let request = ChatRequest { messages: vec![user("hi")], ..ChatRequest::default() };
    reply(&build(&settings), &request).await;
    let expected = json!({
        "model": "m-1", "stream": true, "stream_options": {"include_usage": true},
        "max_completion_tokens": 5, "messages": [{"role": "user", "content": "hi"}],
    });
    assert_eq!(server.requests()[0].body, expected);
}

#[tokio::test]
async fn the_body_of_a_turn_begins_with_the_bytes_of_the_turn_before() {
    let end = || stream(&[&finish("stop")]);
    let server = HttpPeer::with_replies(vec![end(), end(), end()]);
    let model = openai(&server);
    for request in [first_turn(), second_turn(), third_turn()] {
        reply(&model, &request).await;
    }
    let seen = server.requests();
    for turns in seen.windows(2) {
        let before = turns[0].text.strip_suffix("]}").unwrap();
        assert!(turns[1].text.starts_with(before), "{}\n{}", turns[0].text, turns[1].text);
    }
}

#[tokio::test]
async fn extra_fields_are_sent_before_the_messages_and_cannot_replace_them() {
    let end = || stream(&[&finish("stop")]);
    let server = HttpPeer::with_replies(vec![end(), end()]);
    let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
    settings.extra_body.insert("tool_choice".into(), json!("required"));
    settings.extra_body.insert("top_k".into(), json!(1));
    let model = build(&settings);
    reply(&model, &first_turn()).await;
    let mut last = first_turn();
    last.tools.clear();
    reply(&model, &last).await;
    let seen = server.requests();
    assert_eq!(seen[0].body["tool_choice"], "required");
    assert!(seen[0].text.find("top_k") < seen[0].text.find("messages"));
    assert_eq!(seen[1].body.get("tool_choice"), None, "nothing to choose from");

    for field in ["messages", "model", "max_tokens"] {
        let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
        settings.extra_body.insert(field.into(), json!([]));
        let error = settings.build_wire(&|_| None, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(&format!("`{field}`")), "{error}");
    }
}

#[tokio::test]
async fn extra_fields_are_not_sent_with_the_words_of_a_stranger() {
    let server = HttpPeer::with_replies(vec![stream(&[&finish("stop")])]);
    let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
    settings.extra_body.insert("top_k".into(), json!(1));
    settings.extra_body.insert("web_search_options".into(), json!({}));
    let mut request = first_turn();
    request.foreign = true;
    reply(&build(&settings), &request).await;
    let sent = server.requests()[0].body.clone();
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(2), "{sent}");
    assert!(!sent.as_object().unwrap().keys().any(|it| settings.extra_body.contains_key(it)));
}

#[tokio::test]
async fn images_are_parts_of_a_message_and_a_choice_stands_before_that_of_the_settings() {
    let end = || stream(&[&finish("stop")]);
    let server = HttpPeer::with_replies(vec![end(), end(), end()]);
    let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
    settings.extra_body.insert("tool_choice".into(), json!("auto"));
    assert!(!build(&settings).takes_images(), "a server that nobody knows");
    settings.images = Some(true);
    let model = build(&settings);
    assert!(model.takes_images());
    reply(&model, &seeing(ToolChoice::Named("file_read".to_owned()))).await;
    reply(&model, &seeing(ToolChoice::Required)).await;
    let mut without = seeing(ToolChoice::Required);
    without.tools.clear();
    reply(&model, &without).await;
    let seen: Vec<Value> = server.requests().iter().map(|seen| seen.body.clone()).collect();
    assert_eq!(
        seen[0]["messages"][1],
        json!({"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": format!("data:image/gif;base64,{GIF}")}},
            {"type": "text", "text": "what is it?"},
        ]})
    );
    let named = json!({"type": "function", "function": {"name": "file_read"}});
    assert_eq!(seen[0]["tool_choice"], named);
    assert_eq!(seen[1]["tool_choice"], "required");
    assert_eq!(seen[2].get("tool_choice"), None);
}
