//! Parts of a request that no agent serves: left out, and named.

use serde_json::{Value, json};

use super::{complete, data, post, respond, user, weather};
use crate::client::Answer;
use crate::kit::{Plan, World};

fn ignored(answer: &Answer) -> Option<&str> {
    Some(answer.headers.get("x-belljar-ignored")?.to_str().unwrap())
}

/// A request as Codex CLI makes it. INV-491.
#[tokio::test]
async fn what_no_agent_serves_is_left_out_and_named_in_the_answer() {
    let world = World::new().await;
    let spawn =
        json!({"type": "function", "name": "spawn_agent", "parameters": {"type": "object"}});
    let codex = json!({
        "model": "teller", "stream": true, "store": false, "tool_choice": "auto",
        "input": [
            {"type": "message", "id": "msg_1", "role": "developer",
             "content": [{"type": "input_text", "text": "You are a coding agent."}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "message", "id": "msg_2", "role": "user",
             "content": [{"type": "input_text", "text": "tell"}]},
        ],
        "tools": [
            weather(),
            {"type": "namespace", "name": "multi_agent_v1", "description": "x", "tools": [spawn]},
            {"type": "web_search", "external_web_access": false},
            {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}},
        ],
        "reasoning": {"summary": "auto", "effort": "none"},
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k",
        "client_metadata": {"session_id": "x"},
    });
    let answer = respond(&world, "blue-member", codex.clone()).await.is(200);
    let named = "client_metadata, reasoning.summary, input[1] (web_search_call), \
                 tools[1] (namespace), tools[2] (web_search), tools[3] (custom)";
    assert_eq!(ignored(&answer), Some(named));
    let events = data(&answer);
    let response = &events.last().unwrap()["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], "Once upon a time.");
    let tools = response["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "only what is served is listed: {tools:#?}");
    // A fault is named by its place in the request.
    let mut bad = codex;
    bad["tools"][0] = json!({"type": "web_search"});
    bad["tools"][1] = weather();
    bad["tools"][1]["parameters"] = json!({"type": 7});
    let refused = respond(&world, "blue-member", bad).await.is(400).json();
    assert_eq!(refused["error"]["param"], "tools[1].parameters", "{refused}");
    // What asks for nothing else is told nothing.
    let plain = json!({"model": "teller", "input": "tell", "user": "me", "top_p": 1.0});
    let answer = respond(&world, "red-member", plain).await.is(200);
    assert_eq!(ignored(&answer), None);
}

const EACH: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - say: Once upon a time.
";

/// INV-491.
#[tokio::test]
async fn values_that_would_change_the_answer_are_left_out_by_name() {
    let world = World::with(Plan { transcript: EACH, ..Plan::default() }).await;
    for (name, value) in [
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("audio", json!({"voice": "x"})),
        ("mesages", json!([])),
        ("x\r\nset-cookie: a=b", json!(1)),
        ("functions", json!([{"name": "f"}])),
        ("logit_bias", json!({"50256": -100})),
    ] {
        let mut body = json!({"model": "teller", "messages": [user("tell")]});
        body[name] = value;
        let answer = complete(&world, "blue-member", body).await.is(200);
        let first = name.split('\r').next().unwrap();
        assert!(ignored(&answer).unwrap().starts_with(first), "{name}");
        assert!(!answer.headers.contains_key("set-cookie"));
        assert_eq!(answer.json()["choices"].as_array().unwrap().len(), 1);
    }
}

/// INV-491: a choice among tools that are left out is left out with them.
#[tokio::test]
async fn a_choice_of_a_tool_that_is_left_out_is_left_out_too() {
    let world = World::new().await;
    let search = json!([{"type": "web_search"}]);
    for (choice, named) in [
        (json!({"type": "web_search"}), "tools[0] (web_search), tool_choice (web_search)"),
        (json!("required"), "tools[0] (web_search), tool_choice"),
    ] {
        let body =
            json!({"model": "teller", "input": "tell", "tools": search, "tool_choice": choice});
        let answer = respond(&world, "blue-member", body).await.is(200);
        assert_eq!(ignored(&answer), Some(named));
        assert_eq!(answer.json()["tool_choice"], "auto");
    }
}

#[tokio::test]
async fn a_path_that_is_not_there_is_told_in_the_shape_of_openai() {
    let world = World::new().await;
    for (verb, path) in [
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/completions"),
        ("GET", "/v1/files/x"),
        ("POST", "/v1/audio/speech"),
        ("GET", "/v1"),
        ("GET", "/v1/"),
    ] {
        let answer = match verb {
            "POST" => post(&world, "blue-member", path, &json!({"model": "teller"})).await,
            _ => world.call_as("blue-member", verb, path).send().await,
        };
        let told = super::error(&answer.is(404), "not_found");
        assert_eq!(told["type"], "invalid_request_error", "{path}");
        assert!(told["message"].as_str().unwrap().contains(path), "{told}");
    }
    // Belljar's own routes keep their shape.
    let sessions = world.call_as("blue-member", "GET", "/v1/sessions/nobody").send().await;
    let told: Value = sessions.is(404).problem("not-found");
    assert!(told.get("error").is_none());
}
