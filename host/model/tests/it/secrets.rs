//! The key goes to the configured server and nowhere else.

use std::io::Write;
use std::sync::{Arc, Mutex};

use belljar_model::{CallContext, KeySource, ModelError, Provider};

use crate::support::{Server, Step, build, chat, config, first_turn, status, stream};

const KEY: &str = "sk-hunter2";

/// Everything that is logged, whatever the level.
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
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let responses: Vec<Vec<Step>> = vec![
            status(500, "", &format!("cannot use {KEY}")),
            status(401, "", &format!(r#"{{"error": {{"message": "wrong key {KEY}"}}}}"#)),
            stream(&[&format!(
                r#"{{"type": "error", "error": {{"type": "{KEY}", "message": "{long}"}}}}"#
            )]),
            status(400, "", &long),
        ];
        let server = Server::new(responses).await;
        let mut settings = config(provider, &server.base);
        settings.key = KeySource::Env("KEY".into());
        let model = build(&settings);
        for _ in 0..3 {
            let (result, events) = chat(&model, &first_turn(), &CallContext::new("a")).await;
            let error = result.unwrap_err();
            let shown = format!("{error} {error:?} {events:?} {model:?} {settings:?}");
            assert!(!shown.contains("hunter2") && !shown.contains("sk-h"), "{shown}");
        }
        let seen = server.seen();
        assert_eq!(seen.len(), 4);
        assert!(seen.iter().all(|request| request.head.contains(KEY)), "the server got the key");
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("retrying a model call"), "the log was captured: {log}");
    assert!(!log.contains("hunter2"), "{log}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_its_target_gets_nothing() {
    let target = Server::new(vec![stream(&["[DONE]"])]).await;
    let location = format!("location: {}/chat/completions\r\n", target.base);
    for code in [301, 302, 307, 308] {
        let server = Server::new(vec![status(code, &location, "")]).await;
        let mut settings = config(Provider::OpenAi, &server.base);
        settings.key = KeySource::Env("KEY".into());
        let (result, _) = chat(&build(&settings), &first_turn(), &CallContext::new("a")).await;
        let error = result.unwrap_err();
        assert!(matches!(error, ModelError::Http { status, .. } if status == code), "{error:?}");
        assert!(error.to_string().contains("redirects are not followed"), "{error}");
    }
    assert!(target.seen().is_empty());
}
