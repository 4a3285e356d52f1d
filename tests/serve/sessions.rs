//! Stored sessions, as they are read over HTTP.

use serde_json::{Value, json};

use crate::kit::{World, attachment, session};

fn ids(events: &[crate::client::Event]) -> Vec<i64> {
    events.iter().map(|event| event.id.unwrap()).collect()
}

#[tokio::test]
async fn a_session_is_listed_and_read_without_paths_of_the_host() {
    let world = World::new().await;
    let list = world.call_as("blue-read-only", "GET", "/v1/sessions").send().await.is(200).json();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(list["sessions"][0]["title"], "a tale");
    assert!(list.get("next").is_none());
    let path = format!("/v1/sessions/{}", session("blue"));
    let one = world.call_as("blue-read-only", "GET", &path).send().await.is(200);
    assert!(!String::from_utf8_lossy(&one.body).contains("somewhere"));
    assert_eq!(one.json(), list["sessions"][0]);
}

#[tokio::test]
async fn messages_come_in_pages_and_whole_only_when_asked_for() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}/messages", session("blue"));
    let get = async |query: &str| -> Value {
        let path = format!("{path}{query}");
        world.call_as("blue-read-only", "GET", &path).send().await.is(200).json()
    };
    let page = get("?limit=1").await;
    assert_eq!(page["messages"][0]["text"], "Once.");
    assert!(page["messages"][0].get("messages").is_none());
    let next = page["next"].as_i64().unwrap();
    let page = get(&format!("?limit=1&before={next}")).await;
    assert_eq!(page["messages"][0]["text"], "tell");
    assert!(page.get("next").is_none());
    assert!(get("?full=true").await["messages"][1]["messages"].is_array());
}

#[tokio::test]
async fn stored_events_go_on_after_the_one_that_was_seen_last() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}/events?follow=false", session("blue"));
    let call = || world.call_as("blue-read-only", "GET", &path);
    let stream = call().open().await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let all = stream.all().await;
    assert_eq!(ids(&all), [1, 2, 3, 4, 5]);
    assert_eq!((all[0].kind.as_str(), &all[0].data["text"]), ("text_delta", &"word 1".into()));
    let rest = call().header("last-event-id", "3").open().await.all().await;
    assert_eq!(ids(&rest), [4, 5]);
    let after = format!("{path}&after=4");
    let rest = world.call_as("blue-read-only", "GET", &after).open().await.all().await;
    assert_eq!(ids(&rest), [5]);
    call().header("last-event-id", "x").send().await.is(400).problem("invalid-request");
}

#[tokio::test]
async fn a_file_is_saved_and_never_shown_as_a_page() {
    let world = World::new().await;
    let path = format!("/v1/sessions/{}/attachments", session("blue"));
    let list = world.call_as("blue-read-only", "GET", &path).send().await.is(200).json();
    assert_eq!(list["attachments"][0]["media_type"], "text/html");
    let path = format!("{path}/{}", attachment("blue"));
    let file = world.call_as("blue-read-only", "GET", &path).send().await.is(200);
    assert_eq!(file.body, b"<script>alert(1)</script>");
    assert_eq!(file.headers["content-type"], "application/octet-stream");
    let saved = file.headers["content-disposition"].to_str().unwrap();
    assert_eq!(saved, "attachment; filename*=UTF-8''page.html");
    assert_eq!(file.headers["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn deleting_all_sessions_leaves_those_of_the_neighbours() {
    let world = World::new().await;
    let neighbour = world.state("red").await;
    let deleted = world.call_as("blue-admin", "DELETE", "/v1/sessions").send().await.is(200);
    assert_eq!(deleted.json()["deleted"], 1);
    assert_eq!(world.state("blue").await.0, []);
    assert_eq!(world.state("red").await, neighbour);
}

#[tokio::test]
async fn the_document_names_every_route_and_the_metrics_count_them() {
    let world = World::new().await;
    let document = world.call_as("blue-read-only", "GET", "/v1/openapi.json").send().await.is(200);
    assert_eq!(document.json()["openapi"], "3.1.0");
    let metrics = world.call_as("local-admin", "GET", "/metrics").send().await.is(200);
    let text = String::from_utf8(metrics.body).unwrap();
    let line = "belljar_http_requests_total{route=\"openapi\",status=\"200\"} 1";
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn what_turns_came_to_is_counted_by_tenant_for_the_operator_alone() {
    let world = World::new().await;
    let body = json!({ "agent": "teller", "text": "tell" });
    for caller in ["blue-member", "blue-member", "red-member"] {
        world.call_as(caller, "POST", "/v1/chat").json(&body).send().await.is(200);
    }
    let metrics = world.call_as("local-admin", "GET", "/metrics").send().await.is(200);
    let text = String::from_utf8(metrics.body).unwrap();
    let count = |line: &str| {
        let of = text.lines().find_map(|one| one.strip_prefix(line)?.strip_prefix(' '));
        of.unwrap_or_else(|| panic!("no `{line}` in {text}")).parse::<u64>().unwrap()
    };
    let turns = |tenant: &str, status: &str| {
        count(&format!("belljar_turns_total{{tenant=\"{tenant}\",status=\"{status}\"}}"))
    };
    assert_eq!((turns("blue", "completed"), turns("red", "completed")), (2, 1));
    assert_eq!((turns("blue", "failed"), turns("red", "cancelled")), (0, 0));
    let tokens = |tenant: &str| {
        count(&format!("belljar_tokens_total{{tenant=\"{tenant}\",kind=\"output\"}}"))
    };
    assert!(tokens("blue") > tokens("red") && tokens("red") > 0, "{text}");
    for name in ["tool_calls", "denials", "questions"] {
        assert_eq!(count(&format!("belljar_{name}_total{{tenant=\"blue\"}}")), 0);
    }
    // Everybody's, so it is nobody else's to read.
    for caller in ["blue-admin", "local-read-only"] {
        world.call_as(caller, "GET", "/metrics").send().await.is(403);
    }
}
