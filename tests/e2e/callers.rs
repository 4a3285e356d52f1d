//! Answers to callers of a server when a turn cannot begin or fails: what it is, and what they can
//! do; no command, option, setting, variable or file of the operator's machine.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};

use crate::kit::World;
use crate::kit::server::{Server, key};

const PROBE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../prove/prebuilt/probe.wasm");

/// Words that belong to the operator.
const OPERATORS: &[&str] = &[
    "`belljar ",
    "belljar.toml",
    "[models",
    "[roles",
    "[grants",
    "[hooks",
    "NOT_SET_HERE",
    "environment variable",
    "BELLJAR_",
];

/// Why a tenant's turn does not come to a good end.
struct Case {
    name: &'static str,
    /// Its `belljar.toml`.
    settings: &'static str,
    /// Lines of its agent's file.
    agent: &'static str,
    /// More of what is asked.
    asked: &'static str,
    /// A part of what the caller is told.
    told: &'static str,
    /// A part of what the operator finds in the log; empty where it is nothing of theirs.
    logged: &'static str,
}

const SCRIPTED: &str = "[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n";
const BASE: Case = Case {
    name: "",
    settings: SCRIPTED,
    agent: "tools: [file_read]",
    asked: "{}",
    told: "",
    logged: "",
};

const CASES: &[Case] = &[
    Case {
        name: "unset-key",
        settings: "[models.main]\nkind = 'openai'\nmodel = 'm'\nkey_env = 'NOT_SET_HERE'\n",
        told: "model `main` cannot be used",
        logged: "`NOT_SET_HERE` is not set",
        ..BASE
    },
    Case {
        name: "key-file",
        settings: "[models.main]\nkind = 'openai'\nmodel = 'm'\nkey_file = 'absent.key'\n",
        told: "model `main` cannot be used",
        logged: "absent.key",
        ..BASE
    },
    Case {
        name: "no-main",
        settings: "[models.one]\nkind = 'openai'\nmodel = 'm'\nkey_env = 'NOT_SET_HERE'\n\
                   [models.two]\nkind = 'openai'\nmodel = 'n'\nkey_env = 'NOT_SET_HERE'\n",
        told: "no model plays the role `main`",
        logged: "`[models]` or `[roles]`",
        ..BASE
    },
    Case {
        name: "no-script",
        settings: "[models.main]\nkind = 'scripted'\nmodel = 'absent.yaml'\n[roles]\nmain = 'main'\n",
        told: "model `main` cannot be used",
        logged: "absent.yaml",
        ..BASE
    },
    Case {
        name: "own-model",
        agent: "tools: [file_read]\nmodel: nowhere-1",
        told: "model `nowhere-1` is not configured",
        logged: "`belljar.toml`",
        ..BASE
    },
    Case {
        name: "asked-model",
        asked: r#"{"model": "nowhere-2"}"#,
        told: "model `nowhere-2` is not configured",
        logged: "`belljar doctor`",
        ..BASE
    },
    Case {
        name: "unpinned",
        settings: "[models.main]\nkind = 'scripted'\nmodel = 'transcript.yaml'\n\
                   [grants.teller.tools]\nprobe = 'allow'\n",
        agent: "tools: [probe]",
        told: "tool `probe` is not pinned",
        ..BASE
    },
    Case {
        name: "blocked",
        agent: "tools: [file_read, shell]\nmounts: [{path: /data, access: read}]",
        told: "is blocked",
        ..BASE
    },
    Case { name: "nobodys-script", agent: "name: other\ntools: [file_read]", told: "", ..BASE },
    Case { name: "out-of-steps", asked: r#"{"limits": {"steps": 1}}"#, told: "steps", ..BASE },
    Case { name: "no-model", settings: "", told: "this tenant has no model", ..BASE },
];

const TRANSCRIPT: &str = "
transcript: 1
each_run: true
agents:
  - agent: teller
    turns:
      - calls: [{name: file_read, arguments: {path: note.txt}}]
      - say: that was all
";

fn tenant(world: &World, case: &Case) -> String {
    world.run(&["tenants", "add", case.name]).exits(0);
    let home = format!("{}/home", world.tenant(case.name));
    let name = if case.agent.contains("name:") { "" } else { "name: teller\n" };
    let agent = format!("---\n{name}description: d\nmaxTurns: 4\n{}\n---\nx\n", case.agent);
    world.home_file(&format!("{home}/agents/teller.md"), &agent);
    world.home_file(&format!("{home}/transcript.yaml"), TRANSCRIPT);
    world.home_file(&format!("{home}/belljar.toml"), case.settings);
    let manifest = "manifest = 1\ndescription = \"A probe.\"\n";
    let tool = world.home_file(&format!("{home}/tools/probe/tool.toml"), manifest);
    std::fs::copy(PROBE, tool.with_file_name("tool.wasm")).unwrap();
    key(world, case.name, "admin")
}

/// All that a caller can read of what went wrong.
fn told(server: &Server, key: &str, case: &Case) -> String {
    let auth = format!("authorization: Bearer {key}\r\n");
    let agent = if case.agent.contains("name: other") { "other" } else { "teller" };
    let mut body = json!({"agent": agent, "text": "go"});
    let asked: Value = serde_json::from_str(case.asked).unwrap();
    body.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
    let mut told = vec![server.post("/v1/chat", &auth, &body.to_string()).1];
    assert!(told[0].contains(case.told), "{}: no `{}` in {}", case.name, case.told, told[0]);
    body.as_object_mut().unwrap().remove("limits");
    told.push(server.post("/v1/preview", &auth, &body.to_string()).1);
    let get = |path: &str| server.get(path, Some(key)).1;
    told.extend(["/v1/agents", "/v1/tools", "/v1/audit"].map(get));
    told.push(get(&format!("/v1/grants?agent={agent}")));
    let sessions: Value = serde_json::from_str(&get("/v1/sessions")).unwrap();
    for session in sessions["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        for below in ["messages?full=true", "events?follow=false", "subagents", "receipts"] {
            told.push(get(&format!("/v1/sessions/{id}/{below}")));
        }
    }
    told.join("\n")
}

#[test]
fn whatever_stops_a_turn_its_caller_is_told_nothing_that_only_the_operator_could_type() {
    let world = World::new();
    let keys: Vec<String> = CASES.iter().map(|case| tenant(&world, case)).collect();
    let server = Server::start(&world, &[]);
    let home = world.home().to_str().unwrap().to_owned();
    for (case, key) in CASES.iter().zip(&keys) {
        let told = told(&server, key, case);
        let option = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_lowercase());
        assert!(!told.split("`--").skip(1).any(option), "{}: an option in {told}", case.name);
        for operators in OPERATORS.iter().chain([&home.as_str()]) {
            let at = told.find(operators).unwrap_or(told.len());
            let around = &told[at.saturating_sub(200)..(at + 200).min(told.len())];
            assert!(!told.contains(operators), "{}: `{operators}` in …{around}…", case.name);
        }
    }
    let log = server.terminate().exits(0).stderr;
    for case in CASES {
        let logged = log.contains(case.logged);
        assert!(logged, "{}: no `{}` in the log:\n{log}", case.name, case.logged);
    }
}
