//! Tests of Anthropic's messages API.

use belljar_kit_peers::HttpPeer;
use belljar_model::{
    CallContext, ChatMessage, ChatModel, Effort, KeySource, ModelError, ModelProvider, StopReason,
    StreamEvent, TokenUsage, ToolChoice,
};
use serde_json::{Value, json};

use crate::support::{
    GIF, anthropic, build, call, chat, config, error, first_turn, reply, second_turn, seeing,
    status, stream, third_turn, user,
};

fn start() -> String {
    json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": {
        "input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70, "output_tokens": 1,
    }}}).to_string()
}

fn begin(index: u64, block: Value) -> String {
    json!({"type": "content_block_start", "index": index, "content_block": block}).to_string()
}

fn delta(index: u64, delta: Value) -> String {
    json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
}

fn text(index: u64, text: &str) -> String {
    delta(index, json!({"type": "text_delta", "text": text}))
}

fn json_part(index: u64, part: &str) -> String {
    delta(index, json!({"type": "input_json_delta", "partial_json": part}))
}

fn stop(reason: &str) -> String {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}).to_string()
}

const PING: &str = r#"{"type": "ping"}"#;
const END: &str = r#"{"type": "message_stop"}"#;

#[tokio::test]
async fn text_thinking_and_usage_are_streamed_and_collected() {
    let server = HttpPeer::with_replies(vec![stream(&[
        &start(),
        PING,
        &begin(0, json!({"type": "thinking", "thinking": ""})),
        &delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        &delta(0, json!({"type": "signature_delta", "signature": "xyz"})),
        &begin(1, json!({"type": "text", "text": ""})),
        &text(1, "Hel"),
        &text(1, "lo"),
        r#"{"type": "content_block_stop", "index": 1}"#,
        r#"{"type": "something_new", "index": "odd"}"#,
        &stop("end_turn"),
        END,
    ])]);
    let (result, events) = chat(&anthropic(&server), &first_turn(), &CallContext::new("a")).await;
    let reply = result.unwrap();
    assert_eq!((reply.text.as_str(), &reply.stop), ("Hello", &StopReason::EndTurn));
    assert_eq!(reply.usage, TokenUsage { input_tokens: 100, cached_tokens: 70, output_tokens: 9 });
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
    let body = stream(&[
        &start(),
        &begin(0, json!({"type": "text", "text": "Look."})),
        &begin(1, json!({"type": "tool_use", "id": "t1", "name": "file_read", "input": {}})),
        &json_part(1, ""),
        &json_part(1, "{\"path\": \"gr"),
        &begin(2, json!({"type": "tool_use", "id": "t2", "name": "file_list", "input": {}})),
        &json_part(1, "ün\"}"),
        &begin(
            3,
            json!({"type": "tool_use", "id": "t3", "name": "file_list", "input": {"path": "x"}}),
        ),
        &stop("tool_use"),
        END,
    ]);
    let server = HttpPeer::with_replies(vec![body.trickled()]);
    let reply = reply(&anthropic(&server), &first_turn()).await;
    assert_eq!(reply.text, "Look.");
    assert_eq!(reply.stop, StopReason::ToolUse);
    assert_eq!(
        reply.calls,
        [
            call("t1", "file_read", r#"{"path": "grün"}"#),
            call("t2", "file_list", "{}"),
            call("t3", "file_list", r#"{"path":"x"}"#),
        ]
    );
}

#[tokio::test]
async fn a_request_has_the_shape_that_the_api_expects() {
    let server = HttpPeer::with_replies(vec![stream(&[&stop("end_turn"), END])]);
    let mut settings = config(ModelProvider::Anthropic, &server.url("/v1"));
    settings.key = KeySource::Env("KEY".into());
    let mut request = second_turn();
    request.effort = Some(Effort::Medium);
    request.messages.push(user("and now?"));
    reply(&build(&settings), &request).await;
    let seen = server.requests().remove(0);
    assert!(seen.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(seen.header("x-api-key"), Some("sk-hunter2"));
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let mark = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "m-1", "max_tokens": 8192, "stream": true, "output_config": {"effort": "medium"},
        "tools": [
            {"name": "file_read", "description": "does file_read", "input_schema": schema},
            {"name": "file_list", "description": "does file_list", "input_schema": schema, "cache_control": mark},
        ],
        "system": [
            {"type": "text", "text": "You read."},
            {"type": "text", "text": "Be brief.", "cache_control": mark},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "what is in a and b?", "cache_control": mark}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "call-1", "name": "file_read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "call_2", "name": "file_read", "input": {"invalid_json": "{\"path\": "}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call-1", "content": "A"},
                {"type": "tool_result", "tool_use_id": "call_2", "content": "no such tool", "is_error": true},
                {"type": "text", "text": "and now?", "cache_control": mark},
            ]},
        ],
    });
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn a_base_url_without_a_version_gets_one() {
    let server = HttpPeer::with_replies(vec![stream(&[&stop("end_turn"), END])]);
    let base = &server.url("");
    reply(&build(&config(ModelProvider::Anthropic, base)), &first_turn()).await;
    assert!(server.requests()[0].head.starts_with("POST /v1/messages "));
}

#[tokio::test]
async fn a_last_turn_without_tools_still_declares_those_in_the_history_and_forbids_them() {
    let server = HttpPeer::with_replies(vec![stream(&[&stop("end_turn"), END])]);
    let mut request = second_turn();
    request.tools.clear();
    reply(&anthropic(&server), &request).await;
    let body = server.requests()[0].body.clone();
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(
        body["tools"],
        json!([
            {"name": "file_read", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
        ])
    );
}

#[tokio::test]
async fn blank_texts_are_left_out_because_the_api_refuses_them() {
    let server = HttpPeer::with_replies(vec![stream(&[&stop("end_turn"), END])]);
    let mut request = first_turn();
    request.system.push(" \n".into());
    request.messages.push(ChatMessage::from_assistant(""));
    request.messages.push(user("go"));
    reply(&anthropic(&server), &request).await;
    let body = server.requests()[0].body.clone();
    assert_eq!(body["system"].as_array().unwrap().len(), 2);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body}");
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 2);
}

/// Removes the cache markers from a body, and serializes it again.
fn without_markers(body: &str) -> String {
    body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[tokio::test]
async fn the_body_of_a_turn_begins_with_the_bytes_of_the_turn_before_and_carries_at_most_four_markers()
 {
    let end = || stream(&[&stop("end_turn"), END]);
    let server = HttpPeer::with_replies(vec![end(), end(), end()]);
    let model = anthropic(&server);
    for request in [first_turn(), second_turn(), third_turn()] {
        reply(&model, &request).await;
    }
    let seen = server.requests();
    for turns in seen.windows(2) {
        let before = without_markers(&turns[0].text);
        let before = before.strip_suffix("]}").unwrap();
        assert!(
            without_markers(&turns[1].text).starts_with(before),
            "{}\n{}",
            turns[0].text,
            turns[1].text
        );
    }
    for turn in &seen {
        let markers = turn.text.matches("cache_control").count();
        assert!((3..=4).contains(&markers), "{markers}");
    }
}

#[tokio::test]
async fn an_overloaded_provider_is_asked_again() {
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
            .to_string();
    let server = HttpPeer::with_replies(vec![
        status(529, "", &overloaded),
        stream(&[&start(), &overloaded]),
        stream(&[
            &start(),
            &begin(0, json!({"type": "text", "text": "hi"})),
            &stop("end_turn"),
            END,
        ]),
    ]);
    let (result, events) = chat(&anthropic(&server), &first_turn(), &CallContext::new("a")).await;
    assert_eq!(result.unwrap().text, "hi");
    let retries = events.iter().filter(|event| matches!(event, StreamEvent::Retrying { .. }));
    assert_eq!(retries.count(), 2);
}

#[tokio::test]
async fn an_error_after_text_ends_the_call() {
    let server = HttpPeer::with_replies(vec![stream(&[
        &start(),
        &begin(0, json!({"type": "text", "text": "hi"})),
        r#"{"type": "error", "error": {"type": "api_error", "message": "oops\u001b[2J"}}"#,
    ])]);
    let error = error(&anthropic(&server), &first_turn()).await;
    assert!(matches!(&error, ModelError::Provider { transient: true, .. }), "{error:?}");
    assert_eq!(error.to_string(), r"the provider reported `api_error`: oops\u{1b}[2J");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn images_are_blocks_of_a_message_and_a_choice_is_in_its_own_words() {
    let end = || {
        stream(&[&start(), &begin(0, json!({"type": "text", "text": "a"})), &stop("end_turn"), END])
    };
    let server = HttpPeer::with_replies(vec![end(), end()]);
    let model = anthropic(&server);
    assert!(model.takes_images());
    reply(&model, &seeing(ToolChoice::Named("file_read".to_owned()))).await;
    reply(&model, &seeing(ToolChoice::Required)).await;
    let seen: Vec<Value> = server.requests().iter().map(|seen| seen.body.clone()).collect();
    assert_eq!(
        seen[0]["messages"][0]["content"],
        json!([
            {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": GIF}},
            {"type": "text", "text": "what is it?", "cache_control": {"type": "ephemeral"}},
        ])
    );
    assert_eq!(seen[0]["tool_choice"], json!({"type": "tool", "name": "file_read"}));
    assert_eq!(seen[1]["tool_choice"], json!({"type": "any"}));
}
