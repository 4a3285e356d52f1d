//! Calls that a person has to allow, asked of the person behind the client.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::client::{Client, Revision};
use super::{text, world};
use crate::kit::World;

fn asking() -> World {
    let world = world();
    let grants = "[grants.mcp.tools]\nfile_read = 'ask'\nfile_list = 'allow'\n";
    world.home_file("belljar.toml", grants);
    world
}

fn may_elicit() -> Value {
    json!({"elicitation": {"form": {}}})
}

#[test]
fn a_client_that_cannot_ask_is_refused() {
    let world = asking();
    for revision in super::REVISIONS {
        let mut client = Client::start(&world, &[], revision);
        let answer = client.call("file_read", json!({"path": "note.txt"}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(!answer.to_string().contains("tide"));
        let answer = client.call("file_list", json!({}));
        assert!(text(&answer).contains("note.txt"), "{answer}");
    }
}

#[test]
fn a_client_of_the_older_revision_is_asked_while_the_call_waits() {
    let world = asking();
    let mut client = Client::with(&world, &[], Revision::Older, may_elicit());
    for (word, allowed) in [("no", false), ("yes", true), ("for_run", true)] {
        let arguments = json!({"path": "note.txt"});
        let id = client.request("tools/call", json!({"name": "file_read", "arguments": arguments}));
        let asked = client.next();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert!(asked["params"]["message"].as_str().unwrap().contains("file_read"), "{asked}");
        let content = json!({"action": "accept", "content": {"answer": word}});
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": content}));
        let answer = client.answer(id);
        assert_eq!(answer.to_string().contains("tide"), allowed, "{word}: {answer}");
    }
    // It said yes for good.
    let answer = client.call("file_read", json!({"path": "note.txt"}));
    assert!(text(&answer).contains("tide"), "{answer}");
}

#[test]
fn a_client_of_the_newer_revision_brings_the_answer_with_the_call() {
    let world = asking();
    let mut client = Client::with(&world, &[], Revision::Newer, may_elicit());
    let asked = client.call("file_read", json!({"path": "note.txt"}));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let form = &asked["result"]["inputRequests"]["permission"];
    assert_eq!(form["method"], "elicitation/create", "{asked}");
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let retry = |path: &str, state: &str, word: &str| {
        let word = json!({"action": "accept", "content": {"answer": word}});
        json!({
            "name": "file_read",
            "arguments": {"path": path},
            "requestState": state,
            "inputResponses": {"permission": word},
        })
    };
    // INV-292: for another call, changed, or made up it is none.
    world.file("other.txt", "the tide turns\n");
    let forged: String = state.chars().rev().collect();
    for bad in [retry("other.txt", &state, "yes"), retry("note.txt", &forged, "yes")] {
        let answer = client.ask("tools/call", bad);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let answer = client.ask("tools/call", retry("note.txt", &state, "yes"));
    assert!(text(&answer).contains("tide"), "{answer}");
    let again = client.ask("tools/call", retry("note.txt", &state, "yes"));
    assert_eq!(again["error"]["code"], -32602, "a second time: {again}");
    let mut other = Client::with(&world, &[], Revision::Newer, may_elicit());
    let asked = other.call("file_read", json!({"path": "note.txt"}));
    let own = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let answer = other.ask("tools/call", retry("note.txt", &state, "yes"));
    assert_eq!(answer["error"]["code"], -32602, "of another process: {answer}");
    let answer = other.ask("tools/call", retry("note.txt", &own, "no"));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(!answer.to_string().contains("tide"));
}

#[test]
fn a_client_whose_calls_all_wait_for_a_person_is_heard() {
    const OPEN: usize = 256;
    let world = asking();
    let mut client = Client::with(&world, &[], Revision::Older, may_elicit());
    let read = || json!({"name": "file_read", "arguments": {"path": "note.txt"}});
    let mut calls: BTreeSet<u64> =
        (0..OPEN).map(|_| client.request("tools/call", read())).collect();
    let mut asked = VecDeque::from([client.next()]);
    let pong = client.ask("ping", json!({}));
    assert_eq!(pong["result"], json!({}), "{pong}");
    let refused = client.call("file_list", json!({}));
    let why = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
    assert!(why.contains("answer, or cancel one"), "{why}");
    // One is given up, and its place is another's.
    let given_up = calls.pop_first();
    client.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": given_up},
    }));
    assert!(client.tools().iter().any(|tool| tool == "file_read"));
    // The answers of the person arrive, and those who are left wait as before.
    asked.append(&mut client.seen);
    while !calls.is_empty() {
        let message = asked.pop_front().unwrap_or_else(|| client.next());
        if message["method"] == "elicitation/create" {
            let yes = json!({"action": "accept", "content": {"answer": "yes"}});
            client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": yes}));
        } else if message["method"].is_null() {
            assert!(text(&message).contains("tide"), "{message}");
            calls.remove(&message["id"].as_u64().unwrap());
        }
    }
    client.leave().exits(0);
}

/// INV-390.
#[test]
fn a_form_that_a_client_closes_is_a_refusal_and_the_next_one_is_asked_anew() {
    let world = asking();
    for revision in super::REVISIONS {
        let mut client = Client::with(&world, &[], revision, may_elicit());
        let mut read = |action: &Value| {
            let mut params = json!({"name": "file_read", "arguments": {"path": "note.txt"}});
            if revision == Revision::Older {
                let id = client.request("tools/call", params);
                let asked = client.next();
                client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": action}));
                return client.answer(id);
            }
            let asked = client.ask("tools/call", params.clone());
            params["requestState"] = asked["result"]["requestState"].clone();
            params["inputResponses"] = json!({"permission": action});
            client.ask("tools/call", params)
        };
        let answer = read(&json!({"action": "cancel"}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(!answer.to_string().contains("tide"), "{answer}");
        let yes = json!({"action": "accept", "content": {"answer": "yes"}});
        let answer = read(&yes);
        assert!(text(&answer).contains("tide"), "{answer}");
        client.leave().exits(0);
        let sessions = world.run(&["sessions", "list", "--json"]).exits(0).json();
        let id = sessions[0]["id"].as_str().unwrap();
        let receipts =
            world.run(&["sessions", "export", id]).exits(0).json()["receipts"].to_string();
        assert!(receipts.contains("the question was cancelled"), "{receipts}");
        assert!(!receipts.contains("said no"), "{receipts}");
    }
}
