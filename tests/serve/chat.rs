//! Turns as their callers see them: blocking, streamed, and on a WebSocket.

use serde_json::{Value, json};

use crate::client::{Answer, PATIENCE};
use crate::kit::{Plan, World};
use crate::socket::Socket;

/// A model that never answers.
const HANGING: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - say: Thinking.
        hang: true
      - say: The end.
";

async fn chat(world: &World, caller: &str, body: Value) -> Answer {
    world.call_as(caller, "POST", "/v1/chat").json(&body).send().await
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}")).to_owned()
}

#[tokio::test]
async fn a_turn_is_answered_and_the_next_one_goes_on_from_it() {
    let world = World::new().await;
    let first = chat(&world, "blue-member", json!({ "agent": "teller", "text": "tell" })).await;
    let first = first.is(200).json();
    assert_eq!(text(&first, "text"), "Once upon a time.");
    assert_eq!((text(&first, "status"), &first["usage"]["steps"]), ("completed".into(), &json!(1)));
    let session = text(&first, "session");
    let next = chat(&world, "blue-member", json!({ "session": session, "text": "and then" })).await;
    let next = next.is(200).json();
    assert_eq!((text(&next, "session"), text(&next, "text")), (session.clone(), "The end.".into()));
    let path = format!("/v1/sessions/{session}/messages");
    let messages = world.call_as("blue-read-only", "GET", &path).send().await.is(200).json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 4);
    assert_eq!(messages["messages"][3]["id"], next["message"]);
    let other = chat(&world, "red-member", json!({ "session": session, "text": "x" })).await;
    other.is(404).problem("not-found");
}

#[tokio::test]
async fn a_streamed_turn_ends_with_what_a_blocking_one_answers() {
    let world = World::new().await;
    let body = json!({ "agent": "teller", "text": "tell", "stream": true });
    let stream = world.call_as("blue-member", "POST", "/v1/chat").json(&body).open().await;
    assert_eq!(stream.status, 200);
    let events = stream.all().await;
    let (done, events) = events.split_last().unwrap();
    assert_eq!((done.kind.as_str(), &done.data["text"]), ("done", &json!("Once upon a time.")));
    let ids: Vec<i64> = events.iter().map(|event| event.id.unwrap()).collect();
    let expected: Vec<i64> = (1..=i64::try_from(ids.len()).unwrap()).collect();
    assert_eq!(ids, expected, "from 1, without gap or repeat");
    assert_eq!(events[0].kind, "run_started");
    assert_eq!(events.last().unwrap().kind, "run_finished");
    for event in events {
        assert_eq!(event.data["message"], done.data["message"]);
        assert_eq!(event.data["type"], event.kind.as_str());
        assert_eq!(event.data["event_id"], event.id.unwrap());
    }
}

#[tokio::test]
async fn a_watcher_that_comes_back_misses_and_repeats_nothing() {
    let world = World::new().await;
    let body = json!({ "agent": "teller", "text": "tell", "stream": true });
    let call = world.call_as("blue-member", "POST", "/v1/chat").json(&body);
    let seen = call.open().await.all().await;
    let session = text(&seen.last().unwrap().data, "session");
    let events = &seen[..seen.len() - 1];
    for cut in 0..events.len() {
        let path = format!("/v1/sessions/{session}/events");
        let last = i64::try_from(cut).unwrap().to_string();
        let call = world.call_as("blue-read-only", "GET", &path).header("last-event-id", &last);
        let mut rest = call.open().await;
        for expected in &events[cut..] {
            assert_eq!(rest.next().await.as_ref(), Some(expected));
        }
    }
}

#[tokio::test]
async fn a_turn_outlives_its_caller_and_is_cancelled_by_another() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let body = json!({ "agent": "teller", "text": "tell", "stream": true });
    let mut stream = world.call_as("blue-member", "POST", "/v1/chat").json(&body).open().await;
    let session = text(&stream.next().await.unwrap().data, "session");
    drop(stream);
    let running = world.call_as("blue-read-only", "GET", "/v1/running").send().await.is(200);
    assert_eq!(running.json()["turns"][0]["session"], session.as_str());
    let busy = chat(&world, "blue-member", json!({ "session": session, "text": "more" })).await;
    busy.is(409).problem("busy");
    let path = format!("/v1/sessions/{session}");
    world.call_as("blue-member", "DELETE", &path).send().await.is(409).problem("busy");
    let mut watch = world.call_as("blue-read-only", "GET", &format!("{path}/events")).open().await;
    let cancel = format!("{path}/cancel");
    // As `curl -X POST` sends it: without a body.
    let cancel = world.call_as("blue-member", "POST", &cancel).send().await;
    assert_eq!(cancel.is(200).json()["cancelled"], true);
    loop {
        let event = watch.next().await.expect("the stream ended before the turn");
        if event.kind == "run_finished" {
            assert_eq!(event.data["status"], "cancelled");
            break;
        }
    }
}

#[tokio::test]
async fn a_turn_on_a_socket_is_accepted_told_and_done() {
    let world = World::new().await;
    let mut socket = Socket::open(&world, "blue-member").await;
    let said = json!({ "type": "chat", "id": "a", "agent": "teller", "text": "tell" });
    let accepted = socket.ask(said).await;
    assert_eq!((&accepted["type"], &accepted["id"]), (&json!("accepted"), &json!("a")));
    let mut ids = Vec::new();
    let done = loop {
        let message = socket.hear().await.unwrap();
        match message["type"].as_str().unwrap() {
            "event" => ids.push(message["event"]["event_id"].as_i64().unwrap()),
            "done" => break message,
            other => panic!("{other}: {message}"),
        }
    };
    assert_eq!((&done["id"], &done["text"]), (&json!("a"), &json!("Once upon a time.")));
    assert_eq!(done["message"], accepted["message"]);
    let expected: Vec<i64> = (1..=i64::try_from(ids.len()).unwrap()).collect();
    assert!(!ids.is_empty() && ids == expected, "all events before the end: {ids:?}");
}

#[tokio::test]
async fn a_preview_shows_what_would_be_sent_and_sends_nothing() {
    let world = World::new().await;
    let body = json!({ "agent": "teller", "text": "tell me" });
    let call = world.call_as("blue-member", "POST", "/v1/preview").json(&body);
    let preview = call.send().await.is(200).json();
    assert_eq!(preview["request"]["system"][0], "Tell.\n");
    assert_eq!(preview["request"]["messages"][0]["text"], "tell me");
    assert_eq!(world.state("blue").await.0.len(), 1, "no session was begun");
}

#[tokio::test]
async fn a_server_that_stops_ends_or_journals_what_runs() {
    let world = World::new().await;
    let body = json!({ "agent": "teller", "text": "tell", "stream": true });
    let mut stream = world.call_as("blue-member", "POST", "/v1/chat").json(&body).open().await;
    let first = stream.next().await.unwrap();
    assert_eq!(first.kind, "run_started");
    world.stop.cancel();
    let rest = stream.all().await;
    assert_eq!(rest.last().unwrap().data["status"], "completed", "the turn came to its end");
    let served = world.served.lock().unwrap().take().unwrap();
    tokio::time::timeout(PATIENCE, served).await.expect("it never stopped").unwrap();
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_no_turn() {
    let world = World::new().await;
    let before = world.state("blue").await;
    let answer = chat(&world, "blue-member", json!({ "agent": "nobody", "text": "x" })).await;
    answer.is(422).problem("agent");
    assert_eq!(world.state("blue").await, before);
}

#[tokio::test]
async fn a_problem_names_routes_and_words_of_the_api_and_nothing_of_the_operators_machine() {
    let world = World::new().await;
    let home = world.dir.path().join("blue/home/agents");
    let needy =
        crate::kit::agent("needy").replace("tools: []", "tools: []\nhosts: [https://api.example]");
    std::fs::write(home.join("needy.md"), needy).unwrap();
    std::fs::write(home.join("broken.md"), "---\nname: [broken\n---\n").unwrap();
    let refused = async |agent: &str| {
        let answer = chat(&world, "blue-member", json!({ "agent": agent, "text": "x" })).await;
        let problem = answer.is(422).problem("agent");
        let all = problem.to_string();
        for word in ["belljar.toml", "`belljar", "--", "agents check", "agents list"] {
            assert!(!all.contains(word), "`{word}` in {all}");
        }
        problem["hint"].as_str().unwrap().to_owned()
    };
    assert!(refused("nobody").await.contains("`GET /v1/agents`"));
    assert!(refused("tellr").await.contains("did you mean `teller`"));
    let hint = refused("needy").await;
    assert!(hint.contains("`GET /v1/grants?agent="), "{hint}");
    let hint = refused("broken").await;
    assert!(hint.contains("could not be understood"), "{hint}");
    // Of a key that is not enough it is said whose it is.
    let short = world.call_as("blue-admin", "GET", "/metrics").send().await.is(403);
    let detail = short.problem("scope")["detail"].as_str().unwrap().to_owned();
    assert!(detail.ends_with("yours has the scope `admin`, of tenant `blue`"), "{detail}");
    // The neighbour, and the description, which needs no key.
    chat(&world, "red-member", json!({ "agent": "teller", "text": "tell" })).await.is(200);
    let document = world.call("GET", "/v1/openapi.json").send().await.is(200);
    assert_eq!(document.json()["openapi"], "3.1.0");
}
