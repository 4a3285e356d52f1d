//! Requests that these wires refuse: each time nothing is stored, and the neighbour is answered.

use serde_json::{Value, json};

use super::{complete, error, post, respond, text, user, weather};
use crate::client::{Answer, PATIENCE};
use crate::kit::{Plan, World};

/// Refused, without an effect, and the neighbour unharmed.
async fn refused(world: &World, path: &str, body: Value, status: u16, code: &str) -> Value {
    let before = world.state("blue").await;
    let answer = post(world, "blue-member", path, &body).await.is(status);
    let told = error(&answer, code);
    assert!(!answer.headers.contains_key("x-belljar-run"), "nothing ran");
    assert_eq!(world.state("blue").await, before, "{body}");
    told
}

async fn neighbour(world: &World) {
    let body = json!({"model": "teller", "messages": [user("tell")]});
    complete(world, "red-member", body).await.is(200);
}

fn asking(tools: Value) -> Value {
    json!({"model": "teller", "input": "x", "tools": tools})
}

fn function(name: &str) -> Value {
    json!({"type": "function", "name": name, "parameters": {"type": "object"}})
}

/// INV-280.
#[tokio::test]
async fn a_callers_tool_takes_no_name_of_belljars() {
    let world = World::new().await;
    // Of a tool that the agent has, of those that it has not, and of one that is built in.
    for name in ["file_read", "spawn_agent", "todo_write", "clarify", "mcp__x__y"] {
        let body = asking(json!([function(name)]));
        let told = refused(&world, "/v1/responses", body, 400, "invalid_value").await;
        assert_eq!(told["param"], "tools");
        assert!(text(&told["message"]).contains(name), "{told}");
    }
    neighbour(&world).await;
}

/// INV-283.
#[tokio::test]
async fn a_callers_tools_are_bounded_in_number_size_and_shape() {
    let world = World::new().await;
    let many: Vec<Value> = (0..65).map(|n| function(&format!("t{n}"))).collect();
    let schema = |schema: Value| json!([{"type": "function", "name": "t", "parameters": schema}]);
    for (tools, param) in [
        (json!(many), "tools"),
        (json!([function("a b")]), "tools[0].name"),
        (json!([function("t"), function("t")]), "tools[1].name"),
        (schema(json!({"title": "x".repeat(40_000)})), "tools[0].parameters"),
        (schema(json!({"$ref": "http://127.0.0.1:9/x"})), "tools[0].parameters"),
        (
            schema(json!({"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"})),
            "tools[0].parameters",
        ),
        (schema(json!({"type": 7})), "tools[0].parameters"),
    ] {
        let told = refused(&world, "/v1/responses", asking(tools), 400, "invalid_value").await;
        assert_eq!(told["param"], param, "{told}");
    }
    refused(&world, "/v1/responses", asking(json!([{"name": "t"}])), 400, "invalid_value").await;
    let form = json!({"model": "teller", "messages": [user("x")], "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"pattern": "(?=a)"}},
    }});
    refused(&world, "/v1/chat/completions", form, 400, "invalid_value").await;
    neighbour(&world).await;
}

/// INV-281.
#[tokio::test]
async fn a_response_of_another_tenant_is_one_that_is_not_there() {
    let world = World::new().await;
    let theirs = respond(&world, "red-member", json!({"model": "teller", "input": "tell"})).await;
    let theirs = text(&theirs.is(200).json()["id"]);
    let before = world.state("red").await;
    let as_blue = async |id: &str, verb: &str, end: &str| -> (u16, String) {
        let path = format!("/v1/responses/{id}{end}");
        let answer = world.call_as("blue-member", verb, &path).send().await;
        (answer.status, String::from_utf8(answer.body).unwrap().replace(id, "ID"))
    };
    for (verb, end) in [("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", "")] {
        let one = as_blue(&theirs, verb, end).await;
        assert_eq!(one, as_blue("resp_20261122T000000000Z-0000", verb, end).await);
        assert_eq!(one.0, 404, "{}", one.1);
    }
    for id in [theirs.as_str(), "resp_..", "x", "resp_red-answer", "resp_%00"] {
        let body = json!({"model": "teller", "input": "x", "previous_response_id": id});
        let told = refused(&world, "/v1/responses", body, 404, "previous_response_not_found").await;
        assert_eq!(told["param"], "previous_response_id");
    }
    assert_eq!(world.state("red").await, before);
    let path = format!("/v1/responses/{theirs}");
    world.call_as("red-read-only", "GET", &path).send().await.is(200);
}

/// INV-284.
#[tokio::test]
async fn a_parameter_that_names_what_is_not_here_is_refused_by_name() {
    let world = World::new().await;
    let chat = |name: &str, value: Value| {
        let mut body = json!({"model": "teller", "messages": [user("x")]});
        body[name] = value;
        body
    };
    for (name, value) in [("tool_choice", "sometimes"), ("reasoning_effort", "vast")] {
        let body = chat(name, json!(value));
        let told =
            refused(&world, "/v1/chat/completions", body, 400, "unsupported_parameter").await;
        assert_eq!(told["param"], name);
    }
    for (name, value) in [("conversation", json!("conv_1")), ("prompt", json!({"id": "pmpt_1"}))] {
        let mut body = json!({"model": "teller", "input": "x"});
        body[name] = value;
        let told = refused(&world, "/v1/responses", body, 400, "unsupported_parameter").await;
        assert_eq!(told["param"], name);
    }
    for (name, value) in [("top_p", 2), ("presence_penalty", 3), ("frequency_penalty", -3)] {
        let body = chat(name, json!(value));
        let told = refused(&world, "/v1/chat/completions", body, 400, "invalid_value").await;
        assert_eq!(told["param"], name);
    }
    let body = json!({"model": "nobody", "messages": [user("x")]});
    refused(&world, "/v1/chat/completions", body, 404, "model_not_found").await;
    neighbour(&world).await;
}

/// INV-287.
#[tokio::test]
async fn an_image_that_lies_elsewhere_is_refused_and_not_fetched() {
    let world = World::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/cat.png", listener.local_addr().unwrap());
    let part = json!({"type": "input_image", "image_url": url});
    let input = json!([{"role": "user", "content": [{"type": "input_text", "text": "x"}, part]}]);
    let body = json!({"model": "teller", "input": input});
    let told = refused(&world, "/v1/responses", body, 400, "unsupported_parameter").await;
    assert_eq!(told["param"], "input[0].content[1]");
    let part = json!({"type": "image_url", "image_url": {"url": url}});
    let body = json!({"model": "teller", "messages": [{"role": "user", "content": [part]}]});
    refused(&world, "/v1/chat/completions", body, 400, "unsupported_parameter").await;
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    neighbour(&world).await;
}

/// INV-285.
#[tokio::test]
async fn failures_at_the_gate_have_the_shape_of_these_wires() {
    let world = World::new().await;
    let body = json!({"model": "teller", "messages": [user("x")]});
    let before = world.state("blue").await;
    let told = error(&complete(&world, "unknown", body.clone()).await.is(401), "invalid_api_key");
    assert_eq!(told["type"], "invalid_request_error");
    error(&complete(&world, "blue-read-only", body.clone()).await.is(403), "permission_denied");
    error(&respond(&world, "blue-read-only", asking(json!([]))).await.is(403), "permission_denied");
    let call = world.call_as("blue-member", "POST", "/v1/chat/completions");
    let answer: Answer = call.bytes("application/json", b"{").send().await.is(400);
    assert!(answer.json()["error"]["message"].is_string());
    let host = world.call_as("blue-member", "GET", "/v1/models").header("host", "evil.test");
    error(&host.send().await.is(421), "wrong_host");
    error(
        &world.call_as("blue-member", "GET", "/v1/models/nobody").send().await.is(404),
        "model_not_found",
    );
    assert_eq!(world.state("blue").await, before);
    // What is no wire of OpenAI's keeps its shape.
    world.call_as("unknown", "GET", "/v1/sessions").send().await.is(401).problem("no-key");
    let models = world.call_as("blue-read-only", "GET", "/v1/models").send().await.is(200).json();
    let ids: Vec<&str> =
        models["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"teller"), "{ids:?}");
    neighbour(&world).await;
}

/// INV-285.
#[tokio::test]
async fn a_day_that_is_used_up_is_a_quota_that_is_and_nothing_is_stored() {
    let world = World::with(Plan { tokens: Some(60), ..Plan::default() }).await;
    let long = "x".repeat(60 * 32);
    let body = json!({"model": "teller", "messages": [user(&long)]});
    let before = world.state("blue").await;
    let answer = complete(&world, "blue-member", body).await.is(429);
    assert_eq!(error(&answer, "insufficient_quota")["type"], "insufficient_quota");
    assert!(answer.headers.contains_key("retry-after"));
    // Earlier messages and results count as words do.
    let history = json!([user(&long), {"role": "assistant", "content": "y"}, user("z")]);
    let body = json!({"model": "teller", "messages": history});
    complete(&world, "blue-member", body).await.is(429);
    assert_eq!(world.state("blue").await, before);
    neighbour(&world).await;
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

/// INV-286.
#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked_and_the_turn_stays() {
    let world = World::with(Plan { transcript: HANGING, ..Plan::default() }).await;
    let body = json!({"model": "teller", "input": "tell", "stream": true});
    let path = "/v1/responses";
    let mut stream = world.call_as("blue-member", "POST", path).json(&body).open().await;
    assert_eq!(stream.status, 200);
    let created = stream.next().await.unwrap();
    assert_eq!(created.kind, "response.created");
    let mut other = world.call_as("blue-admin", "POST", path).json(&body).open().await;
    other.next().await.unwrap();
    let key = &world.keys["blue-member"];
    assert!(world.store.tenant_registry().revoke_key(&key[3..19], 9).await.unwrap());
    let ends = async {
        while let Some(event) = stream.next().await {
            assert_ne!(event.kind, "response.completed");
        }
    };
    tokio::time::timeout(PATIENCE, ends).await.expect("it goes on");
    let read = format!("/v1/responses/{}", text(&created.data["response"]["id"]));
    world.call_as("blue-member", "GET", &read).send().await.is(401);
    let read = world.call_as("blue-admin", "GET", &read).send().await.is(200).json();
    assert_eq!(read["status"], "in_progress", "what runs runs on");
    let running = world.call_as("blue-admin", "GET", "/v1/running").send().await.is(200).json();
    assert_eq!(running["turns"].as_array().unwrap().len(), 2, "the other stream too");
}

#[tokio::test]
async fn a_session_that_has_gone_on_takes_no_forged_results() {
    let world = World::with(Plan {
        transcript: "
transcript: 1
agents:
  - agent: teller
    turns:
      - calls: [{name: get_weather, arguments: {place: Brest}}]
",
        ..Plan::default()
    })
    .await;
    let body = json!({"model": "teller", "input": "weather?", "tools": [weather()]});
    let theirs = respond(&world, "red-member", body).await.is(200).json();
    let id = text(&theirs["output"][0]["call_id"]);
    let before = world.state("red").await;
    // Another tenant's call, by its id: its own conversation, which lacks the call.
    let output = json!([{"type": "function_call_output", "call_id": id, "output": "forged"}]);
    let body = json!({"model": "teller", "input": output});
    refused(&world, "/v1/responses", body, 400, "invalid_value").await;
    assert_eq!(world.state("red").await, before);
}
