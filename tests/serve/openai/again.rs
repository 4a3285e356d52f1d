//! A response that is streamed again.

use serde_json::{Value, json};

use super::{data, error, respond, text, weather};
use crate::kit::{Plan, World};

const SAYS: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - say: I will look.
        calls: [{name: get_weather, arguments: {place: Brest}}]
      - say: Once upon a time.
";

async fn again(world: &World, caller: &str, id: &str, query: &str) -> Vec<Value> {
    let path = format!("/v1/responses/{id}?stream=true{query}");
    data(&world.call_as(caller, "GET", &path).send().await.is(200))
}

#[tokio::test]
async fn a_stored_response_is_streamed_as_it_was_first_and_from_any_event_on() {
    let world = World::with(Plan { transcript: SAYS, ..Plan::default() }).await;
    let body = json!({"model": "teller", "input": "x", "tools": [weather()], "stream": true});
    let first = data(&respond(&world, "blue-member", body).await.is(200));
    let id = text(&first[0]["response"]["id"]);
    // A later turn of the session is none of it.
    let calls = &first.last().unwrap()["response"]["output"][1]["call_id"];
    let output = json!([{"type": "function_call_output", "call_id": calls, "output": "rain"}]);
    let body = json!({"model": "teller", "previous_response_id": id, "input": output});
    respond(&world, "blue-member", body).await.is(200);
    assert_eq!(again(&world, "blue-read-only", &id, "").await, first);
    let last = first.len() - 1;
    for after in [0, 3, last - 1] {
        let rest = again(&world, "blue-member", &id, &format!("&starting_after={after}")).await;
        assert_eq!(rest, first[after + 1..], "behind {after}");
    }
    let none = again(&world, "blue-member", &id, &format!("&starting_after={last}")).await;
    assert_eq!(none, Vec::<Value>::new());
}

/// INV-281.
#[tokio::test]
async fn a_response_of_another_tenant_is_not_streamed() {
    let world = World::new().await;
    let body = json!({"model": "teller", "input": "tell"});
    let theirs = respond(&world, "red-member", body).await.is(200).json();
    let id = text(&theirs["id"]);
    let before = world.state("red").await;
    let path = |id: &str, query: &str| format!("/v1/responses/{id}?{query}");
    for query in ["stream=true", "stream=true&starting_after=1"] {
        world.call_as("blue-member", "GET", &path(&id, query)).send().await.is(404);
    }
    let alone = world.call_as("red-member", "GET", &path(&id, "starting_after=1")).send().await;
    assert_eq!(error(&alone.is(400), "invalid_value")["param"], "starting_after");
    assert_eq!(world.state("red").await, before);
    assert!(again(&world, "red-read-only", &id, "").await.len() > 2);
}
