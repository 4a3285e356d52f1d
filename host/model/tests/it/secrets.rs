//! Tests that the key is sent to the configured server and appears nowhere else.

use std::io::Write;
use std::sync::{Arc, Mutex};

use belljar_kit_peers::HttpPeer;
use belljar_model::{CallContext, KeySource, ModelError, ModelProvider, ModelReply, StreamEvent};

use crate::support::{build, build_with, chat, config, first_turn, status, stream};

const KEY: &str = "sk-hunter2";

/// Collects everything that is logged, at any level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_key_that_the_server_repeats_stands_in_no_error_event_answer_or_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let long = format!("{}{KEY}", "x".repeat(395));
    for provider in [ModelProvider::OpenAi, ModelProvider::Anthropic] {
        let responses = vec![
            status(500, "", &format!("cannot use {KEY}")),
            status(401, "", &format!(r#"{{"error": {{"message": "wrong key {KEY}"}}}}"#)),
            stream(&[&format!(
                r#"{{"type": "error", "error": {{"type": "{KEY}", "message": "{long}"}}}}"#
            )]),
            status(400, "", &long),
        ];
        let server = HttpPeer::with_replies(responses);
        let mut settings = config(provider, &server.url("/v1"));
        settings.key = KeySource::Env("KEY".into());
        let model = build(&settings);
        for _ in 0..3 {
            let (result, events) = chat(&model, &first_turn(), &CallContext::new("a")).await;
            let error = result.unwrap_err();
            let shown = format!("{error} {error:?} {events:?} {model:?} {settings:?}");
            assert!(!shown.contains("hunter2") && !shown.contains("sk-h"), "{shown}");
        }
        let seen = server.requests();
        assert_eq!(seen.len(), 4);
        assert!(seen.iter().all(|request| request.head.contains(KEY)), "the server got the key");
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("retrying a model call"), "the log was captured: {log}");
    assert!(!log.contains("hunter2"), "{log}");
}

/// Calls a server that uses `word` as text, as an argument and as a field's name, with the given key.
async fn answered(key: &str, word: &str) -> (ModelReply, Vec<StreamEvent>) {
    let arguments = format!(r#"{{\"path\":\"a.css\",\"{word}\":\"display: {word}; none\"}}"#);
    let (begin, end) = word.split_at(word.len() / 2);
    let text = |text: &str| format!(r#"{{"choices": [{{"delta": {{"content": "{text}"}}}}]}}"#);
    let call = format!(
        r#"{{"choices": [{{"delta": {{"tool_calls": [{{"index": 0, "id": "c1", "function": {{"name": "file_write", "arguments": "{arguments}"}}}}]}}, "finish_reason": "tool_calls"}}]}}"#
    );
    let events = [text(&format!("it is {begin}")), text(&format!("{end}!")), call, "[DONE]".into()];
    let server = HttpPeer::with_replies(vec![stream(&events.each_ref().map(String::as_str))]);
    let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
    settings.key = KeySource::Env("KEY".into());
    let model = build_with(&settings, key);
    let (result, told) = chat(&model, &first_turn(), &CallContext::new("a")).await;
    (result.unwrap(), told)
}

#[tokio::test]
async fn a_placeholder_for_a_key_changes_no_answer() {
    for key in [
        "none",
        "ollama",
        "dummy",
        "content",
        "delta",
        "choices",
        "function",
        "arguments",
        "c",
        "file_write",
        "tool_calls",
        "finish_reason",
        "assistant",
        "not-needed",
        "lm-studio",
    ] {
        let (reply, _) = answered(key, key).await;
        assert_eq!(reply.text, format!("it is {key}!"));
        let call = &reply.calls[0];
        assert_eq!((call.id.as_str(), call.name.as_str()), ("c1", "file_write"));
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
        assert_eq!(arguments[key], format!("display: {key}; none"));
    }
}

#[tokio::test]
async fn a_key_that_an_answer_repeats_over_two_pieces_is_masked_and_arguments_stay_json() {
    let (reply, told) = answered(KEY, KEY).await;
    assert_eq!(reply.text, "it is [key]!");
    let arguments: serde_json::Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(arguments["[key]"], "display: [key]; none");
    assert_eq!(arguments["path"], "a.css");
    let shown = format!("{told:?}");
    assert!(!shown.contains("hunter") && !shown.contains("ter2"), "{shown}");
    let (neighbour, _) = answered(KEY, "skeleton").await;
    assert_eq!(neighbour.text, "it is skeleton!");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_its_target_gets_nothing() {
    let target = HttpPeer::with_replies(vec![stream(&["[DONE]"])]);
    let location = format!("location: {}\r\n", target.url("/v1/chat/completions"));
    for code in [301, 302, 307, 308] {
        let server = HttpPeer::with_replies(vec![status(code, &location, "")]);
        let mut settings = config(ModelProvider::OpenAi, &server.url("/v1"));
        settings.key = KeySource::Env("KEY".into());
        let (result, _) = chat(&build(&settings), &first_turn(), &CallContext::new("a")).await;
        let error = result.unwrap_err();
        assert!(matches!(error, ModelError::Http { status, .. } if status == code), "{error:?}");
        assert!(error.to_string().contains("redirects are not followed"), "{error}");
    }
    assert!(target.requests().is_empty());
}
