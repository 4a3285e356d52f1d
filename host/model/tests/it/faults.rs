//! Tests with servers that refuse, break off, stop sending, or send without end.

use std::time::Duration;

use belljar_kit_peers::{HttpPeer, Reply};
use belljar_model::limits::{MAX_EVENT_BYTES, MAX_TOOL_CALLS};
use belljar_model::{CallContext, ModelError, ModelProvider, StreamEvent, TimeoutPhase};
use serde_json::json;

use crate::support::{build, chat, config, error, first_turn, openai, reply, status, stream};

const HELLO: &str = r#"{"choices": [{"delta": {"content": "hi"}}]}"#;
const FINISH: &str = r#"{"choices": [{"delta": {}, "finish_reason": "stop"}]}"#;

fn good() -> Reply {
    stream(&[HELLO, FINISH, "[DONE]"])
}

fn is_retry(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::Retrying { .. })
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again() {
    let server = HttpPeer::with_replies(vec![
        status(401, "", r#"{"error": {"message": "bad key"}}"#),
        good(),
    ]);
    let model = openai(&server);
    let expected = ModelError::Auth { status: 401, message: "bad key".into() };
    assert_eq!(error(&model, &first_turn()).await, expected);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(reply(&model, &first_turn()).await.text, "hi", "the next call is not affected");
}

#[tokio::test]
async fn a_rate_limit_is_waited_out() {
    let server =
        HttpPeer::with_replies(vec![status(429, "retry-after: 0\r\n", "slow down"), good()]);
    let (result, events) = chat(&openai(&server), &first_turn(), &CallContext::new("a")).await;
    assert_eq!(result.unwrap().text, "hi");
    let StreamEvent::Retrying { attempt: 2, reason, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(reason, "the provider limits the rate of requests: slow down");
    let seen = server.requests();
    assert_eq!(seen[0].text, seen[1].text, "the same request is sent again");
}

#[tokio::test]
async fn the_time_a_provider_asks_for_is_honoured_and_cancelling_ends_the_wait() {
    let server = HttpPeer::with_replies(vec![status(503, "retry-after: 90\r\n", "")]);
    let cx = CallContext::new("a");
    let mut asked = None;
    let result = openai(&server)
        .chat_and_cancel(&cx, |event| {
            if let StreamEvent::Retrying { after, .. } = event {
                asked = Some(*after);
                return true;
            }
            false
        })
        .await;
    assert_eq!(result, Err(ModelError::Cancelled));
    assert_eq!(asked, Some(Duration::from_secs(90)));
}

#[tokio::test]
async fn a_provider_that_asks_for_too_long_a_wait_ends_the_call() {
    let server = HttpPeer::with_replies(vec![status(429, "retry-after: 3600\r\n", "quota")]);
    let error = error(&openai(&server), &first_turn()).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn server_errors_are_tried_again_up_to_the_bound() {
    let down = || status(500, "", "down");
    let server =
        HttpPeer::with_replies(vec![down(), down(), good(), down(), down(), down(), good()]);
    let model = openai(&server);
    assert_eq!(reply(&model, &first_turn()).await.text, "hi");
    let (result, events) = chat(&model, &first_turn(), &CallContext::new("a")).await;
    assert!(matches!(result, Err(ModelError::Http { status: 500, .. })), "{result:?}");
    assert_eq!(events.iter().filter(|event| is_retry(event)).count(), 2);
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_network_error_without_the_url() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1/secret-path", listener.local_addr().unwrap());
    drop(listener);
    let error = error(&build(&config(ModelProvider::OpenAi, &base)), &first_turn()).await;
    assert!(matches!(error, ModelError::Network { .. }), "{error:?}");
    assert!(!error.to_string().contains("secret-path"), "{error}");
}

#[tokio::test]
async fn a_stream_cut_before_its_text_is_tried_again_and_one_cut_later_is_not() {
    let role = r#"{"choices": [{"delta": {"role": "assistant", "content": ""}}]}"#;
    let server =
        HttpPeer::with_replies(vec![stream(&[role]), good(), stream(&[role, HELLO]), good()]);
    let model = openai(&server);
    assert_eq!(reply(&model, &first_turn()).await.text, "hi");
    let (result, events) = chat(&model, &first_turn(), &CallContext::new("a")).await;
    assert_eq!(result, Err(ModelError::Cut));
    assert_eq!(events, [StreamEvent::Started, StreamEvent::TextDelta("hi".into())]);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_connection_that_breaks_inside_a_chunk_is_a_cut() {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let body = format!("data: {HELLO}\n\n");
    let text = format!("{head}{:x}\r\n{body}\r\nff\r\ndata:", body.len());
    let server = HttpPeer::with_replies(vec![Reply::bytes(text)]);
    assert_eq!(error(&openai(&server), &first_turn()).await, ModelError::Cut);
}

#[tokio::test]
async fn a_line_without_an_end_is_refused_at_the_bound_and_the_connection_closed() {
    let flood = stream(&[]).then_repeat([b'x'; 1 << 16]);
    let server = HttpPeer::with_reply(flood);
    let error = error(&openai(&server), &first_turn()).await;
    assert!(matches!(error, ModelError::TooLarge { limit: MAX_EVENT_BYTES, .. }), "{error:?}");
    server.client_left().await;
}

#[tokio::test]
async fn tool_calls_without_end_are_refused_at_the_bound() {
    let event = json!({"choices": [{"delta": {"tool_calls": [{"id": "", "function": {"name": "a", "arguments": "{}"}}]}}]});
    let flood = stream(&[]).then_repeat(format!("data: {event}\n\n"));
    let server = HttpPeer::with_reply(flood);
    let error = error(&openai(&server), &first_turn()).await;
    assert!(matches!(error, ModelError::TooLarge { limit: MAX_TOOL_CALLS, .. }), "{error:?}");
    server.client_left().await;
}

#[tokio::test]
async fn an_error_body_without_end_is_not_read_to_its_end() {
    let flood = Reply::bytes("HTTP/1.1 400 Bad\r\n\r\n").then_repeat([b'x'; 1 << 16]);
    let server = HttpPeer::with_reply(flood);
    let error = error(&openai(&server), &first_turn()).await;
    assert!(matches!(error, ModelError::Http { status: 400, .. }), "{error:?}");
    assert!(error.to_string().len() < 1000);
    server.client_left().await;
}

#[tokio::test]
async fn a_silent_server_is_given_up_after_the_time_to_the_first_token() {
    let head = stream(&[r#"{"choices": [{"delta": {"role": "assistant"}}]}"#]);
    for reply in [Reply::silence(), head.then_stall()] {
        let server = HttpPeer::with_replies(vec![reply, good()]);
        let mut cx = CallContext::new("a");
        cx.timeouts.first_token = Duration::from_millis(50);
        let (result, events) = chat(&openai(&server), &first_turn(), &cx).await;
        let after = cx.timeouts.first_token;
        assert_eq!(result, Err(ModelError::Timeout { phase: TimeoutPhase::FirstToken, after }));
        assert_eq!((events.len(), server.requests().len()), (0, 1));
        server.client_left().await;
    }
}

#[tokio::test]
async fn a_server_that_stalls_is_given_up_after_the_time_between_tokens() {
    let server = HttpPeer::with_reply(stream(&[HELLO]).then_stall());
    let mut cx = CallContext::new("a");
    cx.timeouts.between_tokens = Duration::from_millis(50);
    let (result, _) = chat(&openai(&server), &first_turn(), &cx).await;
    let after = cx.timeouts.between_tokens;
    assert_eq!(result, Err(ModelError::Timeout { phase: TimeoutPhase::BetweenTokens, after }));
    server.client_left().await;
}

#[tokio::test]
async fn the_total_time_bounds_all_attempts_together() {
    let server = HttpPeer::with_replies(vec![status(500, "retry-after: 100\r\n", "")]);
    let mut cx = CallContext::new("a");
    cx.timeouts.total = Some(Duration::from_millis(200));
    let (result, _) = chat(&openai(&server), &first_turn(), &cx).await;
    assert!(
        matches!(result, Err(ModelError::Timeout { phase: TimeoutPhase::Total, .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn cancelling_in_the_middle_of_an_answer_closes_the_connection() {
    let server = HttpPeer::with_reply(stream(&[HELLO]).then_stall());
    let cx = CallContext::new("a");
    let result = openai(&server)
        .chat_and_cancel(&cx, |event| matches!(event, StreamEvent::TextDelta(_)))
        .await;
    assert_eq!(result, Err(ModelError::Cancelled));
    server.client_left().await;
}

#[tokio::test]
async fn a_call_that_is_already_cancelled_sends_nothing() {
    let server = HttpPeer::with_replies(vec![good()]);
    let cx = CallContext::new("a");
    cx.cancel.cancel();
    let (result, _) = chat(&openai(&server), &first_turn(), &cx).await;
    assert_eq!(result, Err(ModelError::Cancelled));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_taken_as_json_and_refused_otherwise() {
    let json = "content-type: application/json\r\n";
    let server = HttpPeer::with_replies(vec![
        status(200, json, r#"{"choices": [{"message": {"content": "hi"}}]}"#),
        status(200, "content-type: text/html\r\n", "<html>"),
        status(200, json, r#"{"error": {"message": "no such model"}}"#),
        stream(&["<html>"]),
    ]);
    let model = openai(&server);
    let whole = reply(&model, &first_turn()).await;
    assert_eq!(whole.text, "hi");
    let page = error(&model, &first_turn()).await;
    assert!(matches!(page, ModelError::Protocol { .. }), "{page:?}");
    let named = error(&model, &first_turn()).await.to_string();
    assert!(named.contains("no such model"), "{named}");
    let markup = error(&model, &first_turn()).await;
    assert!(matches!(markup, ModelError::Protocol { .. }), "{markup:?}");
}

trait ChatAndCancel {
    /// Calls the model, and cancels the call when `when` returns true for an event.
    async fn chat_and_cancel(
        &self,
        cx: &CallContext<'_>,
        when: impl FnMut(&StreamEvent) -> bool + Send,
    ) -> Result<belljar_model::ModelReply, ModelError>;
}

impl<M: belljar_model::ChatModel> ChatAndCancel for M {
    async fn chat_and_cancel(
        &self,
        cx: &CallContext<'_>,
        mut when: impl FnMut(&StreamEvent) -> bool + Send,
    ) -> Result<belljar_model::ModelReply, ModelError> {
        let cancel = cx.cancel.clone();
        let mut events = |event: StreamEvent| {
            if when(&event) {
                cancel.cancel();
            }
        };
        self.chat(&first_turn(), cx, &mut events).await
    }
}
