//! Agents as tools, and their turns as tasks.

use serde_json::{Value, json};

use super::client::{Client, Revision};
use super::{text, world};
use crate::kit::World;

const READS: &str = "
transcript: 1
agents:
  - agent: summarizer
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: It is about tides.
";

const HANGS: &str = "
transcript: 1
agents:
  - agent: summarizer
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: Thinking
        hang: true
";

const LEFT: &str = "
transcript: 1
agents:
  - agent: summarizer
    turns:
      - expect: {last_message_contains: the tide turns at six}
        say: It is about tides.
";

const ASKS: &str = "
transcript: 1
agents:
  - agent: asker
    turns:
      - calls: [{name: clarify, arguments: {question: which tide?}}]
      - expect: {last_message_contains: the low one}
        say: Low water it is.
";

fn script(world: &World, name: &str, text: &str) -> String {
    world.other(name, text.as_bytes()).to_str().unwrap().to_owned()
}

fn tasks() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn asker(world: &World) {
    let text = "---\nname: asker\ndescription: Asks.\ntools: [clarify]\n---\nAsk.\n";
    world.home_file("agents/asker.md", text);
    world.home_file("belljar.toml", "[grants.asker]\ntools = ['clarify']\n");
}

fn task(client: &mut Client, id: &str) -> Value {
    client.ask("tasks/get", json!({"taskId": id}))["result"].clone()
}

fn waits_for(client: &mut Client, id: &str, status: &str) -> Value {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let task = task(client, id);
        if task["status"] == status {
            return task;
        }
        assert!(std::time::Instant::now() < end, "it is never {status}: {task}");
    }
}

#[test]
fn an_agent_is_a_tool_with_progress_and_a_session() {
    let world = world();
    let script = script(&world, "a.yaml", READS);
    let mut client = Client::start(&world, &["--transcript", &script], Revision::Older);
    assert!(client.tools().contains(&"agent_summarizer".to_owned()));
    let id = client.request(
        "tools/call",
        json!({
            "name": "agent_summarizer",
            "arguments": {"task": "sum up", "context": "there is a note"},
            "_meta": {"progressToken": "p"},
        }),
    );
    let answer = client.answer(id);
    assert_eq!(text(&answer), "It is about tides.", "{answer}");
    let progress = client.seen.iter().filter(|it| it["method"] == "notifications/progress");
    let said: Vec<f64> = progress.map(|it| it["params"]["progress"].as_f64().unwrap()).collect();
    assert!(said.len() >= 2 && said.is_sorted_by(|a, b| a < b), "{said:?}");
    let session = answer["result"]["_meta"]["belljar/session"].as_str().unwrap().to_owned();
    let bad = client.call("agent_summarizer", json!({"tusk": "x"}));
    assert_eq!(bad["error"]["code"], -32602, "{bad}");
    let bad = client.call("agent_nobody", json!({"task": "x"}));
    assert_eq!(bad["error"]["code"], -32602, "{bad}");
    client.leave().exits(0);
    let export = world.run(&["sessions", "export", &session]).exits(0).json();
    let said = &export["messages"][1]["content"]["messages"][0]["text"];
    assert_eq!(*said, "Context:\nthere is a note\n\nTask:\nsum up");
}

#[test]
fn a_grant_without_subagents_has_no_agents() {
    let world = world();
    let script = script(&world, "a.yaml", READS);
    world.home_file("belljar.toml", "[grants.mcp]\ntools = ['file_read']\n");
    let mut client = Client::start(&world, &["--transcript", &script], Revision::Older);
    assert_eq!(client.tools(), ["file_read"]);
    let answer = client.call("agent_summarizer", json!({"task": "sum up"}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn a_task_outlives_its_client_and_its_host() {
    let world = world();
    let (hangs, left) = (script(&world, "a.yaml", HANGS), script(&world, "b.yaml", LEFT));
    let transcript = ["--transcript", &hangs];
    let mut client = Client::with(&world, &transcript, Revision::Newer, tasks());
    let begun = client.call("agent_summarizer", json!({"task": "sum up"}));
    assert_eq!(begun["result"]["resultType"], "task", "{begun}");
    let id = begun["result"]["taskId"].as_str().unwrap().to_owned();
    // Until the file is read, and that is stored.
    let receipt = || {
        let shown = world.run(&["receipts", &id]);
        shown.code == 0 && shown.stdout.contains("file_read")
    };
    crate::kit::until("the call is stored", receipt);
    assert_eq!(task(&mut client, &id)["status"], "working");
    client.kill();
    let mut client = Client::with(&world, &["--transcript", &left], Revision::Newer, tasks());
    let done = waits_for(&mut client, &id, "completed");
    assert_eq!(done["result"]["content"][0]["text"], "It is about tides.", "{done}");
    client.leave().exits(0);
    let mut client = Client::with(&world, &["--transcript", &left], Revision::Newer, tasks());
    assert_eq!(task(&mut client, &id)["status"], "completed", "it is there later");
    let none = client.ask("tasks/get", json!({"taskId": "20260101T000000000Z-0000000000000"}));
    assert_eq!(none["error"]["code"], -32602, "{none}");
}

#[test]
fn a_task_is_cancelled() {
    let world = world();
    let hangs = script(&world, "a.yaml", HANGS);
    let mut client = Client::with(&world, &["--transcript", &hangs], Revision::Newer, tasks());
    let begun = client.call("agent_summarizer", json!({"task": "sum up"}));
    let id = begun["result"]["taskId"].as_str().unwrap().to_owned();
    let cancelled = client.ask("tasks/cancel", json!({"taskId": id}));
    assert!(cancelled["error"].is_null(), "{cancelled}");
    waits_for(&mut client, &id, "cancelled");
}

#[test]
fn an_agents_question_goes_to_the_person() {
    let world = world();
    asker(&world);
    let asks = script(&world, "a.yaml", ASKS);
    let can = json!({"elicitation": {"form": {}}});
    let word = json!({"action": "accept", "content": {"answer": "the low one"}});
    let transcript = ["--transcript", asks.as_str()];

    let mut client = Client::with(&world, &transcript, Revision::Older, can.clone());
    let arguments = json!({"name": "agent_asker", "arguments": {"task": "find out"}});
    let id = client.request("tools/call", arguments.clone());
    let asked = loop {
        let message = client.next();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert!(asked["params"]["message"].as_str().unwrap().contains("which tide?"), "{asked}");
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": word}));
    assert_eq!(text(&client.answer(id)), "Low water it is.");
    client.leave().exits(0);

    let mut client = Client::with(&world, &transcript, Revision::Newer, can);
    let asked = client.ask("tools/call", arguments.clone());
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let mut retry = arguments.clone();
    retry["requestState"] = asked["result"]["requestState"].clone();
    retry["inputResponses"] = json!({ key.as_str(): word });
    let answer = client.ask("tools/call", retry);
    assert_eq!(text(&answer), "Low water it is.", "{answer}");
    client.leave().exits(0);

    let mut can = tasks();
    can["elicitation"] = json!({"form": {}});
    let mut client = Client::with(&world, &transcript, Revision::Newer, can);
    let begun = client.ask("tools/call", arguments);
    let id = begun["result"]["taskId"].as_str().unwrap().to_owned();
    let asked = waits_for(&mut client, &id, "input_required");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answers = json!({ key.as_str(): word });
    let updated = client.ask("tasks/update", json!({"taskId": id, "inputResponses": answers}));
    assert!(updated["error"].is_null(), "{updated}");
    let done = waits_for(&mut client, &id, "completed");
    assert_eq!(done["result"]["content"][0]["text"], "Low water it is.", "{done}");
}
