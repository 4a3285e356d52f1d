//! Responses of OpenAI's wire that outlive the process which began them.

use serde_json::{Value, json};

use crate::kit::server::Server;
use crate::kit::{World, until};

const SETTINGS: &str =
    "[models.local]\nkind = \"scripted\"\nmodel = \"script.yaml\"\n[roles]\nmain = \"local\"\n";

const CLERK: &str = "---\nname: clerk\ndescription: Answers.\ntools: []\n---\nAnswer.\n";

/// A world whose model says this from the next start on.
fn says(world: &World, turns: &str) {
    let script = format!("transcript: 1\nagents:\n  - agent: clerk\n    turns:\n{turns}");
    world.home_file("script.yaml", &script);
}

fn world() -> World {
    let world = World::new();
    world.home_file("belljar.toml", SETTINGS);
    world.home_file("agents/clerk.md", CLERK);
    world
}

fn respond(server: &Server, body: &Value) -> Value {
    let (status, text) = server.post("/v1/responses", "", &body.to_string());
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn read(server: &Server, id: &str) -> (u16, Value) {
    let (status, text) = server.get(&format!("/v1/responses/{id}"), None);
    (status, serde_json::from_str(&text).unwrap())
}

/// INV-288.
#[test]
fn a_response_in_the_background_survives_a_killed_server() {
    let world = world();
    says(&world, "      - say: Thinking.\n        hang: true\n");
    let server = Server::start(&world, &[]);
    let body = json!({"model": "clerk", "input": "look", "background": true});
    let response = respond(&server, &body);
    let id = response["id"].as_str().unwrap();
    assert_eq!(response["status"], "in_progress");
    // Dropped, it is killed.
    drop(server);
    says(&world, "      - say: Here it is.\n");
    let server = Server::start(&world, &[]);
    until("it is completed", || read(&server, id).1["status"] == "completed");
    let (_, response) = read(&server, id);
    assert_eq!(response["output"][0]["content"][0]["text"], "Here it is.");
    assert_eq!(response["background"], true);
}

/// INV-288.
#[test]
fn a_call_of_the_caller_waits_for_its_result_across_a_killed_server() {
    let world = world();
    says(&world, "      - calls: [{name: get_tide, arguments: {port: Brest}}]\n");
    let server = Server::start(&world, &[]);
    let tool = json!({"type": "function", "name": "get_tide", "parameters": {"type": "object"}});
    let body = json!({"model": "clerk", "input": "when?", "tools": [tool]});
    let called = respond(&server, &body);
    let call = &called["output"][0];
    assert_eq!(call["name"], "get_tide", "{called}");
    drop(server);
    says(
        &world,
        "      - expect: {results: [{name: get_tide, contains: '06:12'}]}\n        say: At six.\n",
    );
    let server = Server::start(&world, &[]);
    let again = read(&server, called["id"].as_str().unwrap());
    assert_eq!(again, (200, called.clone()), "the call is there as it was");
    let output =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "06:12"});
    let body = json!({
        "model": "clerk", "previous_response_id": called["id"], "input": [output], "tools": [tool],
    });
    let told = respond(&server, &body);
    assert_eq!(told["output"][0]["content"][0]["text"], "At six.", "{told}");
}

/// INV-289.
#[test]
fn a_response_that_is_not_to_be_stored_is_gone_after_a_killed_server_has_resumed_it() {
    let world = world();
    // Without this line the turn would end with its caller's connection.
    let goes_on = format!("{SETTINGS}\n[server]\nfinish_left_turns = true\n");
    world.home_file("belljar.toml", &goes_on);
    says(&world, "      - say: Thinking.\n        hang: true\n");
    let server = Server::start(&world, &[]);
    let body = json!({"model": "clerk", "input": "a secret", "store": false, "stream": true});
    server.until("POST", "/v1/responses", &body.to_string(), "response.output_text.delta");
    let sessions = |server: &Server| server.get("/v1/sessions", None).1;
    assert!(sessions(&server).contains("a secret"));
    drop(server);
    says(&world, "      - say: Here it is.\n");
    let server = Server::start(&world, &[]);
    until("it is deleted", || !sessions(&server).contains("a secret"));
    let (_, body) =
        server.post("/v1/responses", "", &json!({"model": "clerk", "input": "x"}).to_string());
    assert!(body.contains("error"), "the script was used by the one that was resumed: {body}");
}
