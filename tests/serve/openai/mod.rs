//! The wires of OpenAI: chat completions, responses and models, as their clients see them.

mod again;
mod chat;
mod choices;
mod images;
mod left_out;
mod references;
mod refused;
mod responses;
mod schemas;
mod stops;
mod tools;

use serde_json::{Value, json};

use crate::client::Answer;
use crate::kit::World;

/// One request to a wire.
async fn post(world: &World, caller: &str, path: &str, body: &Value) -> Answer {
    world.call_as(caller, "POST", path).json(body).send().await
}

/// A chat completion.
async fn complete(world: &World, caller: &str, body: Value) -> Answer {
    post(world, caller, "/v1/chat/completions", &body).await
}

/// A response.
async fn respond(world: &World, caller: &str, body: Value) -> Answer {
    post(world, caller, "/v1/responses", &body).await
}

/// The data of a stream, which ends with `[DONE]`.
#[track_caller]
fn data(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let data = answer.data();
    let (last, rest) = data.split_last().expect("a stream without an event");
    assert_eq!(*last, "[DONE]", "{data:?}");
    rest.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

/// Fails the test unless an answer is an error of this shape with this code.
#[track_caller]
fn error(answer: &Answer, code: &str) -> Value {
    assert_eq!(answer.headers["content-type"], "application/json");
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], code, "{error}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    assert!(error["type"].is_string() && error.get("param").is_some(), "{error}");
    error
}

/// A message of the user.
fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A tool of a caller's, as responses have it.
fn weather() -> Value {
    json!({
        "type": "function",
        "name": "get_weather",
        "description": "The weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
            "additionalProperties": false,
        },
        "strict": true,
    })
}

/// The same as chat completions have it.
fn weather_of_chat() -> Value {
    let tool = weather();
    json!({"type": "function", "function": {
        "name": tool["name"], "parameters": tool["parameters"],
    }})
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
