//! Words before which an answer ends, and callers that go away before it does.

use serde_json::{Value, json};

use super::{complete, data, error, respond, text, user};
use crate::client::PATIENCE;
use crate::kit::{Plan, World};

/// A model that goes on as if it were its own tool, as small ones do.
const TALKING: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - say: 'Thought: I look. Observation: it rains. Final: rain.'
        calls: [{name: clarify, arguments: {question: 'why?'}}]
";

fn stopping(stop: Value, stream: bool) -> Value {
    json!({"model": "teller", "messages": [user("tell")], "stop": stop, "stream": stream})
}

/// INV-490.
#[tokio::test]
async fn an_answer_ends_before_its_stop_word_and_what_comes_behind_is_nowhere() {
    let world = World::with(Plan { transcript: TALKING, ..Plan::default() }).await;
    for stop in [json!("Observation:"), json!(["Final", "Observation:", "zz", "I look. Obs"])] {
        let expected = if stop.is_string() { "Thought: I look. " } else { "Thought: " };
        let answer = complete(&world, "blue-member", stopping(stop.clone(), false)).await.is(200);
        let session = text(&json!(answer.headers["x-belljar-session"].to_str().unwrap()));
        let choice = answer.json()["choices"][0].clone();
        assert_eq!(choice["message"]["content"], expected);
        assert_eq!(choice["finish_reason"], "stop");
        assert!(choice["message"].get("tool_calls").is_none(), "{choice}");
        let path = format!("/v1/sessions/{session}/messages?full=true");
        let stored = world.call_as("blue-read-only", "GET", &path).send().await.is(200);
        let stored = String::from_utf8(stored.body).unwrap();
        assert!(stored.contains("Thought") && !stored.contains("rains"), "{stored}");
        let chunks = data(&complete(&world, "blue-member", stopping(stop, true)).await.is(200));
        let said: String = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
            .collect();
        assert_eq!(said, expected);
        assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "stop");
    }
    // All of it may be behind the word.
    let answer = complete(&world, "blue-member", stopping(json!("Thought"), false)).await;
    let choice = answer.is(200).json()["choices"][0].clone();
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&json!(""), &json!("stop"))
    );
    // A response has it as well.
    let body = json!({"model": "teller", "input": "tell", "stop": "Observation:"});
    let response = respond(&world, "blue-member", body).await.is(200).json();
    assert_eq!(response["output"][0]["content"][0]["text"], "Thought: I look. ");
    for bad in [json!(["a", "b", "c", "d", "e"]), json!(""), json!(7)] {
        let answer = complete(&world, "blue-member", stopping(bad, false)).await.is(400);
        assert_eq!(error(&answer, "invalid_value")["param"], "stop");
    }
}

const HANGING: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - say: Thinking.
        hang: true
";

async fn running(world: &World) -> usize {
    let running = world.call_as("blue-admin", "GET", "/v1/running").send().await.is(200).json();
    running["turns"].as_array().unwrap().len()
}

/// Waits until so many turns run.
async fn until_running(world: &World, turns: usize) {
    let reached = async {
        while running(world).await != turns {
            tokio::task::yield_now().await;
        }
    };
    if tokio::time::timeout(PATIENCE, reached).await.is_err() {
        panic!("{turns} turns never ran, but {}", running(world).await);
    }
}

/// Calls that nobody stores, in a stream and whole, whose callers go away once their turns run beside the
/// one that runs already.
async fn left(world: &World) {
    let chat = json!({"model": "teller", "messages": [user("tell")]});
    let response = json!({"model": "teller", "input": "tell", "store": false});
    for (path, body) in [("/v1/chat/completions", chat), ("/v1/responses", response)] {
        let mut streamed = body.clone();
        streamed["stream"] = json!(true);
        let call = world.call_as("blue-member", "POST", path).json(&streamed);
        let stream = call.open().await;
        until_running(world, 2).await;
        drop(stream);
        until_running(world, 1).await;
        let call = world.call_as("blue-member", "POST", path).json(&body);
        let whole = tokio::spawn(call.send());
        until_running(world, 2).await;
        whole.abort();
        until_running(world, 1).await;
    }
}

/// INV-492.
#[tokio::test]
async fn a_caller_that_goes_away_cancels_a_turn_that_is_neither_stored_nor_in_the_background() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let body = json!({"model": "teller", "input": "tell", "background": true});
    respond(&world, "blue-member", body).await.is(200);
    until_running(&world, 1).await;
    left(&world).await;
    // The one in the background has run on all the while, and so does one that is stored.
    let chat =
        json!({"model": "teller", "messages": [user("tell")], "store": true, "stream": true});
    drop(world.call_as("blue-member", "POST", "/v1/chat/completions").json(&chat).open().await);
    until_running(&world, 2).await;
    let log = world.call_as("blue-admin", "GET", "/v1/audit").send().await.is(200).json();
    let lines = log["entries"].as_array().unwrap();
    let cancelled = lines.iter().filter(|line| line["action"] == "turn_cancelled").count();
    assert_eq!(cancelled, 4, "{log:#}");
}

/// INV-492: the operator may have it otherwise.
#[tokio::test]
async fn a_setting_lets_turns_go_on_whose_callers_are_gone() {
    let plan = Plan { transcript: HANGING, finish_left_turns: true, ..Plan::default() };
    let world = World::with(plan).await;
    let body = json!({"model": "teller", "input": "tell", "store": false, "stream": true});
    let stream = world.call_as("blue-member", "POST", "/v1/responses").json(&body).open().await;
    until_running(&world, 1).await;
    drop(stream);
    // Long enough for another to come and go.
    let other = world.call_as("blue-member", "POST", "/v1/responses").json(&body).open().await;
    until_running(&world, 2).await;
    drop(other);
    let log = world.call_as("blue-admin", "GET", "/v1/audit").send().await.is(200).json();
    assert!(!log.to_string().contains("turn_cancelled"), "{log:#}");
    assert_eq!(running(&world).await, 2);
}
