//! `/mcp`: the same door for every client that speaks MCP over HTTP, behind the keys of a server.

use serde_json::{Value, json};

use crate::client::{Answer, Call};
use crate::kit::{Plan, World};

/// One request of the revision 2026-07-28, as a client sends it.
pub(crate) fn newer(call: Call, method: &str, mut params: Value) -> Call {
    let capabilities = params.as_object_mut().unwrap().remove("capabilities");
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "t", "version": "1"});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        capabilities.unwrap_or_else(|| json!({}));
    let named = ["name", "uri", "taskId"].into_iter().find_map(|key| params[key].as_str());
    let call = match named {
        Some(name) => call.header("mcp-name", name),
        None => call,
    };
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    call.header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .header("accept", "application/json, text/event-stream")
        .json(&message)
}

/// The answer to the request with the id 1.
#[track_caller]
pub(crate) fn answer_of(answer: &Answer) -> Value {
    let text = String::from_utf8(answer.body.clone()).unwrap();
    let messages = answer.data().into_iter().chain([text.clone()]);
    let messages = messages.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
    let mut found =
        messages.filter(|message| message["id"] == 1 && message.get("method").is_none());
    found.next_back().unwrap_or_else(|| panic!("{}: {text}", answer.status))
}

async fn ask(world: &World, caller: &str, method: &str, params: Value) -> Value {
    let call = newer(world.call_as(caller, "POST", "/mcp"), method, params);
    answer_of(&call.send().await)
}

/// One message of the revision 2025-11-25, in a session.
pub(crate) fn older(call: Call, session: Option<&str>, message: &Value) -> Call {
    let call = call.header("accept", "application/json, text/event-stream").json(message);
    match session {
        Some(session) => {
            call.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
        }
        None => call,
    }
}

pub(crate) fn initialize() -> Value {
    let client = json!({"name": "t", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// Begins a session, and gives its id.
async fn begin(world: &World, caller: &str) -> String {
    let call = older(world.call_as(caller, "POST", "/mcp"), None, &initialize());
    let begun = call.send().await.is(200);
    assert_eq!(answer_of(&begun)["result"]["serverInfo"]["name"], "belljar");
    let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = older(world.call_as(caller, "POST", "/mcp"), Some(&session), &ready);
    call.send().await.is(202);
    session
}

/// The lines of an answer to a call, for a client that says it speaks this revision.
async fn lines_of(world: &World, session: &str, version: &str) -> Vec<String> {
    let call = world.call_as("blue-member", "POST", "/mcp");
    let call = call.header("accept", "application/json, text/event-stream");
    let call = call.json(&call_of(read("note.txt"))).header("mcp-session-id", session);
    let answer = call.header("mcp-protocol-version", version).send().await.is(200);
    let text = String::from_utf8(answer.body).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn an_event_with_empty_data_is_sent_to_clients_whose_revision_has_it() {
    let world = world().await;
    let is_empty = |line: &String| line.trim_end() == "data:";
    let call = older(world.call_as("blue-member", "POST", "/mcp"), None, &initialize());
    let begun = String::from_utf8(call.send().await.is(200).body).unwrap();
    assert!(!begun.lines().map(str::to_owned).any(|line| is_empty(&line)), "{begun}");
    let session = begin(&world, "blue-member").await;
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let lines = lines_of(&world, &session, version).await;
        assert!(lines.iter().any(|line| line.contains("a note of blue's")), "{lines:?}");
        assert_eq!(lines.iter().any(is_empty), version == "2025-11-25", "{version}: {lines:?}");
    }
}

#[tokio::test]
async fn parameters_of_any_form_are_refused_under_their_id_and_a_batch_is_told_what_to_send() {
    let world = world().await;
    let session = begin(&world, "blue-member").await;
    let send = async |message: &Value| {
        older(world.call_as("blue-member", "POST", "/mcp"), Some(&session), message).send().await
    };
    for wrong in [json!([1]), json!("x"), json!(7), json!(null), json!({"name": 7})] {
        let answer = answer_of(&send(&call_of(wrong.clone())).await.is(200));
        assert_eq!(answer["error"]["code"], -32602, "{wrong}: {answer}");
    }
    let batch = send(&json!([call_of(read("note.txt"))])).await.is(400);
    assert!(String::from_utf8(batch.body).unwrap().contains("a request of its own"));
    let neighbour = answer_of(&send(&call_of(read("note.txt"))).await.is(200));
    assert!(neighbour.to_string().contains("a note of blue's"), "{neighbour}");
}

fn read(path: &str) -> Value {
    json!({"name": "file_read", "arguments": {"path": path}})
}

pub(crate) fn call_of(params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

async fn world() -> World {
    let world = World::new().await;
    for tenant in ["blue", "red"] {
        let path = world.dir.path().join(tenant).join("workspace/note.txt");
        std::fs::write(path, format!("a note of {tenant}'s\n")).unwrap();
    }
    world
}

#[tokio::test]
async fn each_key_reaches_the_workspace_of_its_own_tenant() {
    let world = world().await;
    for tenant in ["blue", "red"] {
        let caller = format!("{tenant}-member");
        let listed = ask(&world, &caller, "tools/list", json!({})).await;
        let names = listed["result"]["tools"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"file_read") && names.contains(&"agent_teller"), "{names:?}");
        let answer = ask(&world, &caller, "tools/call", read("note.txt")).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("a note of {tenant}'s")), "{answer}");
        let session = begin(&world, &caller).await;
        let call = older(
            world.call_as(&caller, "POST", "/mcp"),
            Some(&session),
            &call_of(read("note.txt")),
        );
        let answer = answer_of(&call.send().await.is(200));
        assert!(answer.to_string().contains(&format!("a note of {tenant}'s")), "{answer}");
    }
}

#[tokio::test]
async fn whoever_has_no_key_is_told_where_to_read_about_them() {
    let world = world().await;
    for (call, error) in [
        (world.call("POST", "/mcp"), ""),
        (world.call("POST", "/mcp").key("bj_nobody_nothing"), ", error=\"invalid_token\""),
    ] {
        let refused = newer(call, "tools/list", json!({})).send().await.is(401);
        let challenge = refused.headers["www-authenticate"].to_str().unwrap().to_owned();
        let at = challenge.strip_prefix("Bearer resource_metadata=\"").unwrap();
        let at = at.strip_suffix(error).unwrap();
        let path = at.strip_suffix('"').unwrap().strip_prefix(&world.origin()).unwrap();
        let metadata = world.call("GET", path).send().await.is(200).json();
        assert_eq!(metadata["resource"], format!("{}/mcp", world.origin()));
        assert!(metadata.get("authorization_servers").is_none(), "{metadata}");
    }
    let call = world.call_as("blue-read-only", "POST", "/mcp");
    newer(call, "tools/list", json!({})).send().await.is(403);
    let elsewhere = world.call("GET", "/v1/sessions").send().await.is(401);
    let challenge = elsewhere.headers["www-authenticate"].to_str().unwrap();
    assert!(!challenge.contains("resource_metadata"), "{challenge}");
}

#[tokio::test]
async fn a_foreign_origin_or_host_is_refused_before_the_protocol() {
    let world = world().await;
    for (header, value) in [("origin", "https://evil.test"), ("host", "evil.test")] {
        let call = world.call_as("blue-member", "POST", "/mcp").header(header, value);
        let refused = newer(call, "tools/call", read("note.txt")).send().await;
        assert!(matches!(refused.status, 403 | 421), "{header}: {}", refused.status);
        assert!(!String::from_utf8_lossy(&refused.body).contains("a note"));
    }
    let call = world.call_as("blue-member", "POST", "/mcp").header("origin", &world.origin());
    newer(call, "tools/call", read("note.txt")).send().await.is(200);
}

#[tokio::test]
async fn a_session_opens_nothing_for_another_key() {
    let world = world().await;
    let session = begin(&world, "blue-member").await;
    let message = call_of(read("note.txt"));
    for other in ["red-member", "blue-admin"] {
        for method in ["POST", "GET", "DELETE"] {
            let call = older(world.call_as(other, method, "/mcp"), Some(&session), &message);
            let refused = call.send().await.is(404);
            let made_up = older(world.call_as(other, method, "/mcp"), Some("made-up"), &message);
            let none = made_up.send().await.is(404);
            assert_eq!(refused.body, none.body, "{method} by {other}");
        }
    }
    let call = older(world.call_as("blue-member", "POST", "/mcp"), Some(&session), &message);
    let answer = answer_of(&call.send().await.is(200));
    assert!(answer.to_string().contains("a note of blue's"), "{answer}");
    let call = older(world.call_as("blue-member", "DELETE", "/mcp"), Some(&session), &message);
    call.send().await.is(204);
    let call = older(world.call_as("blue-member", "POST", "/mcp"), Some(&session), &message);
    call.send().await.is(404);
}

#[tokio::test]
async fn a_key_has_so_many_sessions_and_others_have_theirs() {
    let world = world().await;
    for _ in 0..64 {
        begin(&world, "blue-member").await;
    }
    let call = older(world.call_as("blue-member", "POST", "/mcp"), None, &initialize());
    call.send().await.is(429).problem("too-many");
    // What needs no session has its place all the same.
    let answer = ask(&world, "blue-member", "tools/call", read("note.txt")).await;
    assert!(answer.to_string().contains("a note of blue's"), "{answer}");
    begin(&world, "blue-admin").await;
    begin(&world, "red-member").await;
}

/// INV-298: however close they come.
#[tokio::test]
async fn sessions_that_begin_at_once_are_no_more_than_a_key_may_have() {
    let world = world().await;
    let calls = (0..80)
        .map(|_| older(world.call_as("blue-member", "POST", "/mcp"), None, &initialize()).send());
    let (mut begun, mut refused) = (Vec::new(), 0);
    for answer in futures::future::join_all(calls).await {
        match answer.headers.get("mcp-session-id") {
            Some(session) => begun.push(session.to_str().unwrap().to_owned()),
            None => {
                answer.is(429).problem("too-many");
                refused += 1;
            }
        }
    }
    assert_eq!((begun.len(), refused), (64, 16));
    // Each of them is there, for its own key alone.
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for session in &begun {
        let call = older(world.call_as("blue-member", "POST", "/mcp"), Some(session), &ping);
        assert_eq!(answer_of(&call.send().await.is(200))["result"], json!({}));
    }
    let theirs = older(world.call_as("red-member", "POST", "/mcp"), Some(&begun[0]), &ping);
    theirs.send().await.is(404);
    begin(&world, "red-member").await;
}

pub(crate) fn tasks() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

pub(crate) fn of_task(id: &str) -> Value {
    json!({"taskId": id, "capabilities": tasks()})
}

/// An agent that never ends by itself.
const HANGS: &str = "
transcript: 1
agents:
  - agent: teller
    turns: [{say: Once, hang: true}]
";

#[tokio::test]
async fn a_task_is_its_own_keys_to_see_and_to_stop() {
    let world = World::with(Plan { transcript: HANGS, ..Plan::default() }).await;
    let run = json!({
        "name": "agent_teller",
        "arguments": {"task": "tell"},
        "capabilities": tasks(),
    });
    let begun = ask(&world, "blue-member", "tools/call", run).await;
    let id = begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    for other in ["red-member", "red-admin", "blue-admin"] {
        let none = ask(&world, other, "tasks/get", of_task("made-up")).await;
        for method in ["tasks/get", "tasks/cancel"] {
            let refused = ask(&world, other, method, of_task(&id)).await;
            assert_eq!(refused["error"], none["error"], "{method} by {other}");
        }
        let update = json!({"taskId": id, "inputResponses": {}, "capabilities": tasks()});
        let refused = ask(&world, other, "tasks/update", update).await;
        assert_eq!(refused["error"], none["error"], "by {other}");
    }
    let own = ask(&world, "blue-member", "tasks/get", of_task(&id)).await;
    assert_eq!(own["result"]["status"], "working", "{own}");
    ask(&world, "blue-member", "tasks/cancel", of_task(&id)).await;
    let end = tokio::time::Instant::now() + crate::client::PATIENCE;
    loop {
        let own = ask(&world, "blue-member", "tasks/get", of_task(&id)).await;
        if own["result"]["status"] == "cancelled" {
            break;
        }
        assert!(tokio::time::Instant::now() < end, "{own}");
    }
}

#[tokio::test]
async fn a_file_of_another_tenant_is_one_that_is_not_there() {
    let world = world().await;
    let uri = |tenant: &str| {
        let (session, file) = (crate::kit::session(tenant), crate::kit::attachment(tenant));
        format!("belljar://sessions/{session}/attachments/{file}")
    };
    let own = ask(&world, "blue-member", "resources/read", json!({"uri": uri("blue")})).await;
    assert!(own["result"]["contents"][0].is_object(), "{own}");
    let theirs = ask(&world, "blue-member", "resources/read", json!({"uri": uri("red")})).await;
    let none = ask(&world, "blue-member", "resources/read", json!({"uri": uri("none")})).await;
    // It repeats the name that was asked for, and no more.
    let same = |theirs: &Value, uri: &str| {
        let mut expected = none["error"].clone();
        expected["data"]["uri"] = json!(uri);
        assert_eq!(theirs["error"], expected);
    };
    assert!(theirs["error"].is_object(), "{theirs}");
    same(&theirs, &uri("red"));
    let receipts = format!("belljar://sessions/{}/receipts", crate::kit::session("red"));
    let theirs = ask(&world, "blue-member", "resources/read", json!({"uri": receipts})).await;
    same(&theirs, &receipts);
}

/// INV-349.
#[tokio::test]
async fn a_large_output_is_read_by_the_key_whose_call_gave_it_and_by_no_other() {
    let world = world().await;
    let large = "one line of many, until it is too much for an answer\n".repeat(1_900);
    std::fs::write(world.dir.path().join("blue/workspace/large.txt"), &large).unwrap();
    let answer = ask(&world, "blue-member", "tools/call", read("large.txt")).await;
    let link = answer["result"]["content"][1].clone();
    assert_eq!((&link["type"], &link["mimeType"]), (&json!("resource_link"), &json!("text/plain")));
    let of = || json!({"uri": link["uri"]});
    let own = ask(&world, "blue-member", "resources/read", of()).await;
    let whole = own["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{own}"));
    assert_eq!(link["size"], whole.len());
    assert!(whole.starts_with(large.trim_end()));
    let before = world.state("blue").await;
    for other in ["blue-admin", "red-member"] {
        let theirs = ask(&world, other, "resources/read", of()).await;
        assert!(theirs["error"].is_object(), "{other}: {theirs}");
        assert!(!theirs.to_string().contains("one line of many"), "{other}: {theirs}");
    }
    let (session, _) = link["uri"].as_str().unwrap().split_once("/attachments/").unwrap();
    for name in ["receipts", "changes"] {
        let of = || json!({"uri": format!("{session}/{name}")});
        for other in ["blue-admin", "red-member"] {
            let theirs = ask(&world, other, "resources/read", of()).await;
            let why = theirs["error"]["message"].as_str().unwrap_or_else(|| panic!("{theirs}"));
            assert!(why.contains("no such resource"), "{name} by {other}: {theirs}");
        }
    }
    let after = world.state("blue").await;
    assert_eq!((before.0, before.1), (after.0, after.1));
    let still = ask(&world, "blue-member", "resources/read", of()).await;
    assert!(still["result"].is_object(), "{still}");
    let receipts = json!({"uri": format!("{session}/receipts")});
    let receipts = ask(&world, "blue-member", "resources/read", receipts).await;
    let text = receipts["result"]["contents"][0]["text"].as_str();
    assert!(text.is_some_and(|text| text.contains("file_read")), "{receipts}");
}

#[tokio::test]
async fn what_a_client_did_is_in_the_audit_log_under_its_key() {
    let world = world().await;
    ask(&world, "blue-member", "tools/call", read("../../red/workspace/note.txt")).await;
    ask(&world, "blue-member", "tools/call", json!({"name": "shell", "arguments": {}})).await;
    let key = world.keys["blue-member"][3..19].to_owned();
    let end = tokio::time::Instant::now() + crate::client::PATIENCE;
    loop {
        let store = world.store.for_tenant_name("blue");
        let lines = store.read_audit(None, 200, i64::MAX).await.unwrap().rows;
        let denied = lines.iter().find(|line| line.action == "call_denied");
        if let Some(denied) = denied {
            assert_eq!(denied.actor, format!("key:{key}"));
            break;
        }
        assert!(tokio::time::Instant::now() < end, "{lines:?}");
        tokio::task::yield_now().await;
    }
    let lines =
        world.store.for_tenant_name("red").read_audit(None, 200, i64::MAX).await.unwrap().rows;
    assert!(lines.iter().all(|line| line.action != "call_denied"), "{lines:?}");
}

#[tokio::test]
async fn a_listening_client_is_gone_when_its_key_is_revoked() {
    let world = world().await;
    let key = world.new_key("blue", belljar_store::KeyScope::Member).await;
    let call = || world.call("POST", "/mcp").key(&key);
    let begun = older(call(), None, &initialize()).send().await.is(200);
    let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let listening = world.call("GET", "/mcp").key(&key).header("accept", "text/event-stream");
    let listening = listening.header("mcp-session-id", &session);
    let stream = listening.header("mcp-protocol-version", "2025-11-25").open().await;
    assert_eq!(stream.status, 200);
    assert!(world.store.tenant_registry().revoke_key(&key[3..19], 9).await.unwrap());
    let ended = tokio::time::timeout(crate::client::PATIENCE, stream.rest()).await;
    ended.expect("it goes on");
    older(call(), Some(&session), &call_of(read("note.txt"))).send().await.is(401);
}
