//! Numbers from outside, at their extremes, wherever one is taken: no answer is a failure of the
//! server, no stream breaks, and whoever is beside it is answered.

use serde_json::{Value, json};

use crate::kit::{World, session};
use crate::socket::Socket;

/// Values that a number may be said to be.
const EXTREMES: [&str; 16] = [
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "4294967296",
    "2147483648",
    "-1",
    "0",
    "-0",
    "1e400",
    "0.5",
    "NaN",
    "",
    "99999999999999999999999999999999999999999999999999999999999999999999999999",
];

/// A number of eight thousand digits.
fn huge() -> String {
    "9".repeat(8_000)
}

fn extremes() -> Vec<String> {
    EXTREMES.iter().map(|text| (*text).to_owned()).chain([huge()]).collect()
}

/// A path with `N` in the place of a number.
fn places() -> Vec<(&'static str, String)> {
    let of = format!("/v1/sessions/{}", session("blue"));
    vec![
        ("GET", "/v1/sessions?limit=N".to_owned()),
        ("GET", "/v1/sessions?before=N".to_owned()),
        ("GET", format!("{of}/messages?limit=N")),
        ("GET", format!("{of}/messages?before=N")),
        ("GET", format!("{of}/messages?full=true&limit=N")),
        ("GET", format!("{of}/messages?full=true&before=N")),
        ("GET", format!("{of}/events?follow=false&after=N")),
        ("GET", format!("{of}/subagents?message=N")),
        ("GET", format!("{of}/subagents?limit=N")),
        ("GET", format!("{of}/subagents?after=N")),
        ("GET", format!("{of}/receipts?limit=N")),
        ("GET", format!("{of}/receipts?message=N")),
        ("GET", format!("{of}/receipts?before=N")),
        ("GET", format!("{of}/attachments/N")),
        ("GET", "/v1/sessions/N".to_owned()),
        ("GET", "/v1/sessions/N/messages".to_owned()),
        ("GET", "/v1/agents/N".to_owned()),
        ("GET", "/v1/agents?limit=N".to_owned()),
        ("GET", "/v1/agents?after=N".to_owned()),
        ("GET", "/v1/usage?since=N".to_owned()),
        ("GET", "/v1/audit?limit=N".to_owned()),
        ("GET", "/v1/audit?before=N".to_owned()),
        ("POST", format!("{of}/questions/N")),
    ]
}

#[tokio::test]
async fn no_number_in_a_path_or_a_query_is_more_than_a_wrong_request() {
    let world = World::new().await;
    let before = world.state("blue").await;
    for (method, place) in places() {
        for number in extremes() {
            let path = place.replace('N', &number);
            let call = world.call_as("blue-admin", method, &path);
            let call = if method == "POST" { call.json(&json!({"text": "x"})) } else { call };
            let status = call.send().await.status;
            let shown = &path[..path.len().min(120)];
            assert!(matches!(status, 200 | 400 | 404 | 414 | 431), "{shown}: {status}");
        }
    }
    assert_eq!(world.state("blue").await, before);
    world.call_as("red-admin", "GET", "/v1/sessions").send().await.is(200);
}

#[tokio::test]
async fn no_number_in_a_header_is_more_than_a_wrong_request() {
    let world = World::new().await;
    let events = format!("/v1/sessions/{}/events?follow=false", session("blue"));
    for number in extremes() {
        let call = world.call_as("blue-admin", "GET", &events).header("last-event-id", &number);
        let status = call.send().await.status;
        assert!(matches!(status, 200 | 400 | 431), "{number}: {status}");
        let text = json!({"text": crate::kit::agent("kept")});
        for version in [number.clone(), format!("\"{number}\"")] {
            let call = world.call_as("blue-admin", "PUT", "/v1/agents/kept").json(&text);
            let status = call.header("if-match", &version).send().await.status;
            assert!(matches!(status, 412 | 431), "{version}: {status}");
        }
    }
    world.call_as("red-admin", "GET", "/v1/sessions").send().await.is(200);
}

#[tokio::test]
async fn no_number_in_a_body_is_more_than_a_wrong_request() {
    let world = World::new().await;
    let limits: Vec<&str> = belljar_policy::LIMITS.iter().map(|row| row.key).collect();
    for number in extremes().into_iter().filter(|number| !number.is_empty()) {
        for limit in &limits {
            let body = format!(
                "{{\"agent\": \"teller\", \"text\": \"x\", \"limits\": {{\"{limit}\": {number}}}}}"
            );
            let call = world.call_as("blue-member", "POST", "/v1/chat");
            let answer = call.bytes("application/json", body.as_bytes()).send().await;
            let shown = &number[..number.len().min(40)];
            assert!(matches!(answer.status, 200 | 400), "{limit} {shown}: {}", answer.status);
        }
    }
    world.call_as("red-admin", "GET", "/v1/sessions").send().await.is(200);
}

#[tokio::test]
async fn no_number_in_a_message_ends_a_socket() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-member").await;
    let id = session("blue");
    for number in extremes().into_iter().filter(|number| !number.is_empty()) {
        for message in [
            format!("{{\"type\": \"subscribe\", \"session\": \"{id}\", \"after\": {number}}}"),
            format!(
                "{{\"type\": \"answer\", \"session\": \"{id}\", \"question\": {number}, \"text\": \"x\"}}"
            ),
        ] {
            socket.say_text(&message).await;
            // Events of a watch that began are there, too.
            loop {
                let said = socket.hear().await.expect("the socket was closed");
                match said["type"].as_str() {
                    Some("event") => {}
                    Some("subscribed") => {
                        socket.say(json!({"type": "unsubscribe", "session": id})).await;
                    }
                    Some("error" | "unsubscribed") => break,
                    _ => panic!("{said}"),
                }
            }
        }
    }
    assert_eq!(socket.ask(json!({"type": "ping"})).await["type"], "pong");
}

#[tokio::test]
async fn whoever_watches_from_behind_the_last_number_sees_what_comes() {
    let world = World::new().await;
    let chat = async |body: Value| {
        let call = world.call_as("blue-member", "POST", "/v1/chat").json(&body);
        call.send().await.is(200).json()
    };
    let first = chat(json!({"agent": "teller", "text": "tell"})).await;
    let session = first["session"].as_str().unwrap();
    let path = format!("/v1/sessions/{session}/events");
    for last in [i64::MAX, i64::MAX - 1] {
        let call = world.call_as("blue-read-only", "GET", &path);
        let mut watching = call.header("last-event-id", &last.to_string()).open().await;
        let next = chat(json!({"session": session, "text": "and then"})).await;
        let event = watching.next().await.expect("the stream has ended");
        assert_eq!(event.data["message"], next["message"], "{last}");
    }
}
