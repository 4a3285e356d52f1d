//! Responses.

use serde_json::{Value, json};

use super::{data, error, respond, text};
use crate::client::PATIENCE;
use crate::kit::{Plan, World};

/// Every field of a response has to be there, with its null.
const FIELDS: [&str; 29] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
];

#[tokio::test]
async fn a_response_is_whole_and_read_again_as_it_was() {
    let world = World::new().await;
    let body = json!({"model": "teller", "input": "tell", "metadata": {"a": "b"}});
    let answer = respond(&world, "blue-member", body).await.is(200);
    let run = answer.headers["x-belljar-run"].to_str().unwrap().to_owned();
    let response = answer.json();
    for field in FIELDS {
        assert!(response.get(field).is_some(), "`{field}` in {response:#}");
    }
    assert_eq!(response["id"], format!("resp_{run}"));
    assert_eq!(response["status"], "completed");
    let part = &response["output"][0]["content"][0];
    assert_eq!(
        (&part["type"], &part["text"]),
        (&json!("output_text"), &json!("Once upon a time."))
    );
    assert_eq!(response["metadata"], json!({"a": "b"}));
    let path = format!("/v1/responses/{}", text(&response["id"]));
    let read = world.call_as("blue-read-only", "GET", &path).send().await.is(200).json();
    assert_eq!(read, response);
    let items = format!("{path}/input_items");
    let items = world.call_as("blue-read-only", "GET", &items).send().await.is(200).json();
    assert_eq!(items["data"][0]["content"][0]["text"], "tell");
    let deleted = world.call_as("blue-member", "DELETE", &path).send().await.is(200).json();
    assert_eq!(deleted["deleted"], true);
    error(&world.call_as("blue-read-only", "GET", &path).send().await.is(404), "not_found");
}

#[tokio::test]
async fn a_stream_counts_its_events_and_ends_with_what_is_stored() {
    let world = World::new().await;
    let body = json!({"model": "teller", "input": "tell", "stream": true});
    let events = data(&respond(&world, "blue-member", body).await.is(200));
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    let last = &events.last().unwrap()["response"];
    let path = format!("/v1/responses/{}", text(&last["id"]));
    let read = world.call_as("blue-read-only", "GET", &path).send().await.is(200).json();
    assert_eq!(*last, read);
    assert_eq!(events[7]["item"], read["output"][0]);
}

const TURNS: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - say: One.
      - say: Two.
      - say: Other two.
";

#[tokio::test]
async fn a_response_goes_on_from_the_last_one_and_from_an_earlier_one_in_a_session_of_its_own() {
    let world = World::with(Plan { transcript: TURNS, ..Plan::default() }).await;
    let go_on =
        |id: &Value| json!({"model": "teller", "input": "more", "previous_response_id": id});
    let one = respond(&world, "blue-member", json!({"model": "teller", "input": "tell"})).await;
    let one = one.is(200).json();
    let before = world.state("blue").await.0.len();
    let two = respond(&world, "blue-member", go_on(&one["id"])).await.is(200).json();
    assert_eq!(two["previous_response_id"], one["id"]);
    assert_eq!(world.state("blue").await.0.len(), before, "the same session");
    let other = respond(&world, "blue-member", go_on(&one["id"])).await.is(200).json();
    assert_eq!(other["output"][0]["content"][0]["text"], "Other two.");
    assert_eq!(world.state("blue").await.0.len(), before + 1, "a session of its own");
    let messages = world.state("blue").await.1;
    let branch = messages.iter().find(|row| other["id"] == format!("resp_{}", row.id)).unwrap();
    let sent = branch.content["messages"].to_string();
    assert!(sent.contains("One.") && !sent.contains("\"Two.\""), "{sent}");
    // One in the middle stays as long as others go on from it.
    let path = |response: &Value| format!("/v1/responses/{}", text(&response["id"]));
    let refused = world.call_as("blue-member", "DELETE", &path(&one)).send().await.is(412);
    error(&refused, "conflict");
    world.call_as("blue-member", "GET", &path(&one)).send().await.is(200);
    world.call_as("blue-member", "DELETE", &path(&two)).send().await.is(200);
    world.call_as("blue-member", "GET", &path(&one)).send().await.is(404);
    world.call_as("blue-member", "GET", &path(&other)).send().await.is(200);
    let model = json!({"model": "nobody", "input": "x", "previous_response_id": other["id"]});
    error(&respond(&world, "blue-member", model).await.is(404), "model_not_found");
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

#[tokio::test]
async fn a_response_in_the_background_is_read_and_cancelled() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let body = json!({"model": "teller", "input": "tell", "background": true});
    let response = respond(&world, "blue-member", body).await.is(200).json();
    assert_eq!((&response["status"], &response["usage"]), (&json!("in_progress"), &Value::Null));
    let path = format!("/v1/responses/{}", text(&response["id"]));
    let read = world.call_as("blue-read-only", "GET", &path).send().await.is(200).json();
    assert_eq!(read["status"], "in_progress");
    let go_on = json!({"model": "teller", "input": "x", "previous_response_id": response["id"]});
    error(&respond(&world, "blue-member", go_on).await.is(409), "conflict");
    let cancel = format!("{path}/cancel");
    world.call_as("red-member", "POST", &cancel).send().await.is(404);
    let cancelled = world.call_as("blue-member", "POST", &cancel).send().await.is(200).json();
    assert_eq!(cancelled["status"], "cancelled");
    let again = world.call_as("blue-member", "POST", &cancel).send().await.is(200).json();
    assert_eq!(again["status"], "cancelled");
}

#[tokio::test]
async fn a_response_that_is_not_to_be_stored_is_answered_and_gone() {
    let world = World::new().await;
    let before = world.state("blue").await;
    let body = json!({"model": "teller", "input": "tell", "store": false});
    let answer = respond(&world, "blue-member", body).await.is(200);
    assert!(!answer.headers.contains_key("x-belljar-session"), "there is none to go back to");
    let response = answer.json();
    assert_eq!((&response["status"], &response["store"]), (&json!("completed"), &json!(false)));
    let stream = json!({"model": "teller", "input": "tell", "store": false, "stream": true});
    let events = data(&respond(&world, "blue-member", stream).await.is(200));
    assert_eq!(events.last().unwrap()["response"]["status"], "completed");
    let gone = async {
        while world.state("blue").await != before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("something is left");
    let path = format!("/v1/responses/{}", text(&response["id"]));
    world.call_as("blue-read-only", "GET", &path).send().await.is(404);
    let both = json!({"model": "teller", "input": "x", "store": false, "background": true});
    error(&respond(&world, "blue-member", both).await.is(400), "invalid_value");
}
