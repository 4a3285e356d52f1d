//! Tests of answers that strict parsers refuse: half a surrogate pair, a compressed body.

use std::io::Write as _;

use belljar_kit_peers::{HttpPeer, Reply};
use belljar_model::limits::MAX_RESPONSE_BYTES;
use belljar_model::{CallContext, ModelError, StreamEvent};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::support::{anthropic, chat, error, first_turn, openai, reply, status, stream};

fn delta(text: &str) -> String {
    format!(r#"{{"choices": [{{"delta": {{"content": "{text}"}}}}]}}"#)
}

const FINISH: &str = r#"{"choices": [{"delta": {}, "finish_reason": "stop"}]}"#;

#[tokio::test]
async fn half_a_surrogate_pair_in_a_stream_is_replaced_and_a_pair_over_two_deltas_joined() {
    for (texts, expected) in [
        (&["one \\ud83d two"][..], "one \u{fffd} two"),
        (&["one ", "\\ud83d", "\\ude00 two"], "one 😀 two"),
        (&["one \\ud83d", "two"], "one \u{fffd}two"),
        (&["\\ude00", "\\ud83d"], "\u{fffd}\u{fffd}"),
        (&["\\\\ud83d"], "\\ud83d"),
    ] {
        let mut events: Vec<String> = texts.iter().map(|text| delta(text)).collect();
        events.extend([FINISH.to_owned(), "[DONE]".to_owned()]);
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let server = HttpPeer::with_replies(vec![stream(&events)]);
        let (result, told) = chat(&openai(&server), &first_turn(), &CallContext::new("a")).await;
        assert_eq!(result.unwrap().text, expected);
        let told: String = told
            .iter()
            .filter_map(|event| match event {
                StreamEvent::TextDelta(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn half_a_pair_at_the_end_of_a_stream_is_not_lost() {
    // Some servers send `[DONE]` in place of a reason, which completes the answer.
    let both = format!("{}\n\ndata: [DONE]", delta("cut \\ud83d"));
    let server = HttpPeer::with_replies(vec![stream(&[&both])]);
    assert_eq!(reply(&openai(&server), &first_turn()).await.text, "cut \u{fffd}");
    let server = HttpPeer::with_replies(vec![stream(&[&delta("cut \\ud83d")])]);
    let (result, told) = chat(&openai(&server), &first_turn(), &CallContext::new("a")).await;
    assert!(result.is_err(), "no sign that it is complete");
    assert!(told.contains(&StreamEvent::TextDelta("cut \u{fffd}".to_owned())), "{told:?}");
}

#[tokio::test]
async fn half_a_pair_in_arguments_is_replaced_on_both_levels_of_json() {
    let call = |arguments: &str| {
        format!(
            r#"{{"choices": [{{"delta": {{"tool_calls": [{{"index": 0, "id": "c", "function": {{"name": "search", "arguments": "{arguments}"}}}}]}}}}]}}"#
        )
    };
    for arguments in [r#"{\"pattern\":\"cut \ud83d\"}"#, r#"{\"pattern\":\"cut \\ud83d\"}"#] {
        let events = [&*call(arguments), FINISH, "[DONE]"];
        let server = HttpPeer::with_replies(vec![stream(&events)]);
        let reply = reply(&openai(&server), &first_turn()).await;
        let read: serde_json::Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        assert_eq!(read["pattern"], "cut \u{fffd}", "{arguments}");
    }
    let events = [
        r#"{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "s", "input": {}}}"#,
        r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"a\":\"\\ud83d"}}"#,
        r#"{"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "\\ude00 \\ud83d\"}"}}"#,
        r#"{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}"#,
        r#"{"type": "message_stop"}"#,
    ];
    let server = HttpPeer::with_replies(vec![stream(&events)]);
    let reply = reply(&anthropic(&server), &first_turn()).await;
    let read: serde_json::Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(read["a"], "😀 \u{fffd}");
}

#[tokio::test]
async fn half_a_pair_in_an_error_hides_no_error() {
    let body = r#"{"error": {"message": "no \ud83d", "type": "invalid_request_error"}}"#;
    let server = HttpPeer::with_replies(vec![status(400, "", body), stream(&[body])]);
    let model = openai(&server);
    for _ in 0..2 {
        let error = error(&model, &first_turn()).await.to_string();
        assert!(error.contains("no \u{fffd}"), "{error}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A response with a body in this coding.
fn coded(status: &str, kind: &str, coding: &str, body: &[u8]) -> Reply {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-encoding: {coding}\r\nconnection: close\r\n\r\n"
    );
    Reply::bytes([head.as_bytes(), body].concat())
}

const EVENTS: &str = "text/event-stream";

fn answer() -> String {
    format!("data: {}\n\ndata: {FINISH}\n\ndata: [DONE]\n\n", delta("hi"))
}

#[tokio::test]
async fn an_answer_that_is_compressed_unasked_is_decoded_as_it_streams() {
    for (coding, body) in [
        ("gzip", gzip(answer().as_bytes())),
        ("deflate", zlib(answer().as_bytes())),
        ("gzip, gzip", gzip(&gzip(answer().as_bytes()))),
        ("identity", answer().into_bytes()),
    ] {
        let server = HttpPeer::with_replies(vec![coded("200 OK", EVENTS, coding, &body)]);
        assert_eq!(reply(&openai(&server), &first_turn()).await.text, "hi", "{coding}");
        assert_eq!(server.requests()[0].header("accept-encoding"), None);
    }
    // Text that was flushed is passed on while the connection stays open.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(answer().as_bytes()).unwrap();
    encoder.flush().unwrap();
    let open = coded("200 OK", EVENTS, "gzip", encoder.get_ref()).then_stall();
    let server = HttpPeer::with_reply(open);
    assert_eq!(reply(&openai(&server), &first_turn()).await.text, "hi");
}

#[tokio::test]
async fn a_compressed_error_is_read_and_a_coding_that_is_not_decoded_is_named() {
    let body = br#"{"error": {"message": "wrong model"}}"#;
    let json = "application/json";
    let server = HttpPeer::with_replies(vec![coded("404 Not Found", json, "gzip", &gzip(body))]);
    let told = error(&openai(&server), &first_turn()).await.to_string();
    assert!(told.contains("wrong model"), "{told}");
    for status in ["200 OK", "404 Not Found"] {
        let server = HttpPeer::with_replies(vec![coded(status, EVENTS, "br", b"\x0b\x02\x80")]);
        let told = error(&openai(&server), &first_turn()).await.to_string();
        assert!(told.contains("encoded as `br`"), "{told}");
    }
    let server = HttpPeer::with_replies(vec![coded("200 OK", EVENTS, "gzip", answer().as_bytes())]);
    let told = error(&openai(&server), &first_turn()).await.to_string();
    assert!(told.contains("not the `gzip`"), "{told}");
}

#[tokio::test]
async fn a_compressed_answer_is_bounded_by_what_comes_out_of_it() {
    let bomb = gzip(&vec![b'\n'; MAX_RESPONSE_BYTES + 1]);
    assert!(bomb.len() < 1 << 20);
    let server = HttpPeer::with_replies(vec![
        coded("200 OK", EVENTS, "gzip", &bomb),
        coded("200 OK", EVENTS, "gzip", &gzip(answer().as_bytes())),
    ]);
    let model = openai(&server);
    let told = error(&model, &first_turn()).await;
    assert!(matches!(told, ModelError::TooLarge { limit: MAX_RESPONSE_BYTES, .. }), "{told:?}");
    assert_eq!(reply(&model, &first_turn()).await.text, "hi", "the next call is not affected");
}
