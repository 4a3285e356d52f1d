//! A caller that chooses the call which an answer has to end with.

use serde_json::{Value, json};

use super::{complete, data, error, respond, text, user, weather, weather_of_chat};
use crate::kit::{Plan, World};

const SLOW: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - say: I would rather talk.
      - expect: {last_user_contains: 'a call of the tool `get_weather`'}
        calls: [{name: get_weather, arguments: {place: Brest}}]
      - say: Nothing.
      - expect: {last_user_contains: 'one of the tools of your caller'}
        calls: [{name: get_weather, arguments: {place: Brest}}]
";

/// INV-348.
#[tokio::test]
async fn an_answer_ends_with_the_call_that_was_chosen_whatever_the_model_says_first() {
    let world = World::with(Plan { transcript: SLOW, ..Plan::default() }).await;
    let choice = json!({"type": "function", "name": "get_weather"});
    let body = json!({
        "model": "teller", "input": "x", "tools": [weather()], "tool_choice": choice, "stream": true,
    });
    let events = data(&respond(&world, "blue-member", body).await.is(200));
    let response = &events.last().unwrap()["response"];
    assert_eq!((&response["status"], &response["tool_choice"]), (&json!("completed"), &choice));
    let output = response["output"].as_array().unwrap();
    assert_eq!(output.len(), 1, "what it said first is no part of the answer: {output:#?}");
    assert_eq!(output[0]["name"], "get_weather");
    let told = events.iter().any(|event| event["type"] == "response.output_text.delta");
    assert!(!told, "{events:#?}");
    let body = json!({
        "model": "teller", "messages": [user("x")], "tools": [weather_of_chat()],
        "tool_choice": "required",
    });
    let answer = complete(&world, "blue-member", body).await.is(200).json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["name"], "get_weather");
}

const NEVER: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - say: No.
      - say: No.
      - say: No.
";

#[tokio::test]
async fn a_model_that_never_makes_the_call_fails_by_name() {
    let world = World::with(Plan { transcript: NEVER, ..Plan::default() }).await;
    let body = json!({
        "model": "teller", "input": "x", "tools": [weather()], "tool_choice": "required",
    });
    let response = respond(&world, "blue-member", body).await.is(200).json();
    assert_eq!(response["status"], "failed");
    assert_eq!(response["error"]["code"], "format_not_met", "{response:#}");
    assert!(text(&response["error"]["message"]).contains("had to call"));
    assert_eq!(response["output"], json!([]));
}

#[tokio::test]
async fn a_choice_is_among_the_callers_own_tools() {
    let world = World::new().await;
    let before = world.state("blue").await;
    let of = |tools: Value, choice: Value| json!({"model": "teller", "input": "x", "tools": tools, "tool_choice": choice});
    for (tools, choice, code) in [
        (json!([]), json!("required"), "invalid_value"),
        (json!([weather()]), json!({"type": "function", "name": "file_read"}), "invalid_value"),
        (json!([weather()]), json!("always"), "unsupported_parameter"),
        (json!([weather()]), json!(1), "unsupported_parameter"),
    ] {
        let answer = respond(&world, "blue-member", of(tools, choice)).await.is(400);
        assert_eq!(error(&answer, code)["param"], "tool_choice");
    }
    assert_eq!(world.state("blue").await, before);
    respond(&world, "red-member", json!({"model": "teller", "input": "tell"})).await.is(200);
}
