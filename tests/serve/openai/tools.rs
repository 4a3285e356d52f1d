//! Tools of a caller.

use serde_json::{Value, json};

use super::{complete, data, respond, text, user, weather, weather_of_chat};
use crate::kit::{Plan, World};

/// An agent that calls the caller's tool, and one of its own beside it.
const CALLING: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - expect: {tools: [get_weather]}
        say: I will look.
        calls: [{name: get_weather, arguments: {place: Brest}}]
      - expect: {results: [{name: get_weather, contains: rain}]}
        say: It rains.
      - say: And on.
";

#[tokio::test]
async fn a_call_of_the_callers_tool_ends_the_response_and_the_next_one_has_its_result() {
    let world = World::with(Plan { transcript: CALLING, ..Plan::default() }).await;
    let body =
        json!({"model": "teller", "input": "weather?", "tools": [weather()], "stream": true});
    let events = data(&respond(&world, "blue-member", body).await.is(200));
    let response = events.last().unwrap()["response"].clone();
    assert_eq!(response["status"], "completed");
    let call = response["output"][1].clone();
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("get_weather")));
    assert_eq!(call["arguments"], "{\"place\":\"Brest\"}");
    let delta: String = events
        .iter()
        .filter(|event| event["type"] == "response.function_call_arguments.delta")
        .map(|event| text(&event["delta"]))
        .collect();
    assert_eq!(delta, text(&call["arguments"]));
    let go_on = |outputs: Value| {
        let id = &response["id"];
        json!({"model": "teller", "previous_response_id": id, "input": outputs, "tools": [weather()]})
    };
    // Without the result, with one for another call, and with two for this one.
    let before = world.state("blue").await;
    let output =
        |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "rain"});
    let id = text(&call["call_id"]);
    for wrong in [
        json!("and?"),
        json!([output("call_1_1")]),
        json!([output(&id), output(&id)]),
        json!([output(&id.replace("_0", "_1"))]),
    ] {
        respond(&world, "blue-member", go_on(wrong)).await.is(400);
    }
    assert_eq!(world.state("blue").await, before);
    let ended = respond(&world, "blue-member", go_on(json!([output(&id)]))).await.is(200).json();
    assert_eq!(ended["output"][0]["content"][0]["text"], "It rains.");
    // The turn after it is sent the result too.
    let more = json!({"model": "teller", "previous_response_id": ended["id"], "input": "on"});
    let more = respond(&world, "blue-member", more).await.is(200).json();
    assert_eq!(more["output"][0]["content"][0]["text"], "And on.");
}

/// An agent that has found something out with its own tools before it calls the caller's.
const MIXED: &str = "
transcript: 1
agents:
  - agent: busy
    turns:
      - calls:
          - {name: todo_write, arguments: {todos: [{content: look, status: in_progress}]}}
          - {name: get_weather, arguments: {place: Brest}}
          - {name: get_weather, arguments: {place: 7}}
      - expect:
          results:
            - {name: todo_write, is_error: false}
            - {name: get_weather, contains: rain}
            - {name: get_weather, contains: invalid arguments, is_error: true}
        say: It rains.
      - expect: {results: [{name: get_weather, contains: other}]}
        say: Other.
";

const BUSY: &str = "---\nname: busy\ndescription: Looks.\ntools: [todo_write]\n---\nLook.\n";

#[tokio::test]
async fn a_chat_that_brings_results_goes_on_where_the_agent_was() {
    let world = World::with(Plan { transcript: MIXED, ..Plan::default() }).await;
    let home = world.dir.path().join("blue/home/agents");
    std::fs::write(home.join("busy.md"), BUSY).unwrap();
    let of = |messages: Value| json!({"model": "busy", "messages": messages, "tools": [weather_of_chat()]});
    let first = complete(&world, "blue-member", of(json!([user("weather?")]))).await.is(200).json();
    let choice = first["choices"][0].clone();
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &Value::Null)
    );
    let calls = choice["message"]["tool_calls"].as_array().unwrap().clone();
    assert_eq!(calls.len(), 1, "not the agent's own, nor one whose arguments do not fit");
    let result =
        |content: &str| json!({"role": "tool", "tool_call_id": calls[0]["id"], "content": content});
    let sessions = world.state("blue").await.0.len();
    let messages = json!([user("weather?"), choice["message"], result("rain")]);
    let next = complete(&world, "blue-member", of(messages)).await.is(200).json();
    assert_eq!(next["choices"][0]["message"]["content"], "It rains.");
    assert_eq!(world.state("blue").await.0.len(), sessions, "the same session");
    // Sent once more it is a conversation as any other: the session has gone on.
    let messages = json!([user("weather?"), choice["message"], result("other")]);
    let again = complete(&world, "blue-member", of(messages)).await.is(200).json();
    assert_eq!(again["choices"][0]["message"]["content"], "Other.");
    assert_eq!(world.state("blue").await.0.len(), sessions + 1);
}

const SEVERAL: &str = "
transcript: 1
agents:
  - agent: teller
    turns:
      - calls:
          - {name: get_weather, arguments: {place: Brest}}
          - {name: get_weather, arguments: {place: Nantes}}
      - calls:
          - {name: get_weather, arguments: {place: Brest}}
          - {name: get_weather, arguments: {place: Nantes}}
";

#[tokio::test]
async fn a_caller_that_takes_one_call_at_a_time_gets_one() {
    let world = World::with(Plan { transcript: SEVERAL, ..Plan::default() }).await;
    let of = |parallel: bool| {
        json!({
            "model": "teller", "messages": [user("weather?")], "tools": [weather_of_chat()],
            "parallel_tool_calls": parallel,
        })
    };
    let count = async |parallel: bool| {
        let answer = complete(&world, "blue-member", of(parallel)).await.is(200).json();
        answer["choices"][0]["message"]["tool_calls"].as_array().unwrap().len()
    };
    assert_eq!((count(true).await, count(false).await), (2, 1));
}

#[tokio::test]
async fn tools_that_may_not_be_called_are_not_shown() {
    let transcript = "
transcript: 1
agents:
  - agent: teller
    turns:
      - expect: {no_tools: true}
        say: Once.
";
    let world = World::with(Plan { transcript, ..Plan::default() }).await;
    let body = json!({
        "model": "teller", "input": "x", "tools": [weather()], "tool_choice": "none",
    });
    let response = respond(&world, "blue-member", body).await.is(200).json();
    assert_eq!(
        (&response["status"], &response["tool_choice"]),
        (&json!("completed"), &json!("none"))
    );
}
