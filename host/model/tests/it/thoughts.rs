//! Tests of reasoning that is sent back to the model that sent it.

use belljar_kit_peers::HttpPeer;
use belljar_model::{ChatMessage, ChatModel, ChatRequest, ModelProvider};
use serde_json::{Value, json};

use crate::support::{
    anthropic, build, config, first_turn, openai, reply, result, status, stream, user,
};
use crate::wild::{DONE, delta, finish, good};

/// The conversation after an answer whose call has a result.
async fn answered(model: &dyn ChatModel) -> ChatRequest {
    let mut request = first_turn();
    let reply = reply(model, &request).await;
    let results = reply.calls.iter().map(|call| result(&call.id, &call.name, "A", false)).collect();
    let (text, calls, reasoning) = (reply.text, reply.calls, reply.reasoning);
    request.messages.push(ChatMessage::Assistant { text, calls, reasoning });
    request.messages.push(ChatMessage::Tool { results });
    // Stored and read back, as between two turns.
    serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap()
}

#[tokio::test]
async fn reasoning_goes_back_unchanged_to_the_model_that_gave_it_and_to_no_other() {
    let named = json!({"index": 0, "id": "x", "function": {"name": "r", "arguments": "{}"}});
    let signature = json!({"google": {"thought_signature": "U0lH"}});
    let mut signed = named.clone();
    signed["extra_content"] = signature.clone();
    let details = json!([{"type": "reasoning.encrypted", "data": "abc", "id": "x", "index": 0}]);
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]);
    for (pieces, field, expected) in [
        (
            vec![json!({"reasoning_content": "I need "}), json!({"reasoning_content": "it."})],
            "/reasoning_content",
            json!("I need it."),
        ),
        (
            vec![json!({"reasoning": "hm", "reasoning_details": details})],
            "/reasoning_details",
            details.clone(),
        ),
        (vec![json!({"reasoning": "hm"})], "/reasoning", json!("hm")),
        (vec![json!({"tool_calls": [signed]})], "/tool_calls/0/extra_content", signature.clone()),
        (vec![json!({"content": parts})], "/content", parts.clone()),
        (
            vec![json!({"content": null, "reasoning_content": null})],
            "/reasoning_content",
            json!(null),
        ),
    ] {
        let mut events: Vec<String> = pieces.iter().map(|piece| delta(piece.clone())).collect();
        events.push(delta(json!({"tool_calls": [named]})));
        events.extend([finish("tool_calls"), DONE.to_owned()]);
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let server = HttpPeer::with_replies(vec![stream(&events), good(), good(), good()]);
        let request = answered(&openai(&server)).await;
        reply(&openai(&server), &request).await;
        let mut next = request.clone();
        next.messages.extend([ChatMessage::from_assistant("again"), user("more")]);
        reply(&openai(&server), &next).await;
        let mut other = config(ModelProvider::OpenAi, &server.url("/v1"));
        other.model = "m-2".into();
        reply(&build(&other), &request).await;
        let seen = server.requests();
        let sent =
            |at: usize| seen[at].body["messages"][2].pointer(field).cloned().unwrap_or_default();
        assert_eq!(sent(1), expected, "{field}");
        if !expected.is_null() {
            assert_ne!(sent(3), expected, "{field} went to another model");
            let before = seen[1].text.strip_suffix("]}").unwrap();
            assert!(seen[2].text.starts_with(before), "the prefix stays: {field}");
        } else {
            assert!(!seen[1].text.contains("reasoning"), "never given, never sent");
        }
    }
}

#[tokio::test]
async fn thinking_blocks_go_back_with_their_signatures_where_they_stood() {
    let event = |kind: &str, mut value: Value| {
        value["type"] = json!(kind);
        value.to_string()
    };
    let begin = |index: u32, block: Value| {
        event("content_block_start", json!({"index": index, "content_block": block}))
    };
    let grow = |index: u32, delta: Value| {
        event("content_block_delta", json!({"index": index, "delta": delta}))
    };
    let events = [
        event("message_start", json!({"message": {"usage": {"input_tokens": 10.0}}})),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        grow(0, json!({"type": "thinking_delta", "thinking": "h"})),
        grow(0, json!({"type": "thinking_delta", "thinking": "m"})),
        grow(0, json!({"type": "signature_delta", "signature": "SIG1"})),
        begin(1, json!({"type": "redacted_thinking", "data": "cmVk"})),
        begin(2, json!({"type": "text", "text": ""})),
        grow(2, json!({"type": "text_delta", "text": "Working."})),
        begin(3, json!({"type": "thinking", "thinking": "b", "signature": "SIG2"})),
        begin(4, json!({"type": "tool_use", "id": "t1", "name": "r", "input": {}})),
        event(
            "message_delta",
            json!({"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": -3}}),
        ),
        event("message_stop", json!({})),
    ];
    let end = [
        event("message_delta", json!({"delta": {"stop_reason": "end_turn"}})),
        event("message_stop", json!({})),
    ];
    let end = || stream(&end.each_ref().map(String::as_str));
    let server =
        HttpPeer::with_replies(vec![stream(&events.each_ref().map(String::as_str)), end(), end()]);
    let request = answered(&anthropic(&server)).await;
    reply(&anthropic(&server), &request).await;
    let mut other = config(ModelProvider::Anthropic, &server.url("/v1"));
    other.model = "m-2".into();
    reply(&build(&other), &request).await;
    let sent = |at: usize| server.requests()[at].body["messages"][1]["content"].clone();
    let said = json!({"type": "text", "text": "Working."});
    let called = json!({"type": "tool_use", "id": "t1", "name": "r", "input": {}});
    assert_eq!(
        sent(1),
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "SIG1"},
            {"type": "redacted_thinking", "data": "cmVk"},
            said,
            {"type": "thinking", "thinking": "b", "signature": "SIG2"},
            called,
        ])
    );
    assert_eq!(sent(2), json!([said, called]), "another model");
}

#[tokio::test]
async fn a_server_that_takes_no_reasoning_is_asked_without_it() {
    let refuse = |_: ()| {
        status(
            400,
            "",
            &json!({"error": {"message": "property 'reasoning' is unsupported"}}).to_string(),
        )
    };
    let first = delta(json!({"reasoning": "hm", "content": "hi"}));
    let server = HttpPeer::with_replies(vec![
        stream(&[&first, &finish("stop"), DONE]),
        refuse(()),
        good(),
        good(),
    ]);
    let model = openai(&server);
    let mut request = first_turn();
    let said = reply(&model, &request).await;
    request.messages.push(ChatMessage::Assistant {
        text: said.text,
        calls: said.calls,
        reasoning: said.reasoning,
    });
    request.messages.push(user("more"));
    assert_eq!(reply(&model, &request).await.text, "again");
    reply(&model, &request).await;
    let has: Vec<bool> =
        server.requests().iter().map(|seen| seen.text.contains("\"reasoning\"")).collect();
    assert_eq!(has, [false, true, false, false]);
}
