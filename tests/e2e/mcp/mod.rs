//! `belljar mcp`: what a client that starts it sees.

mod client;
mod http;
mod lasting;
mod questions;
mod runs;
mod servers;
mod watching;

use serde_json::{Value, json};

use self::client::{Client, Revision};
use crate::kit::World;

const REVISIONS: [Revision; 2] = [Revision::Older, Revision::Newer];

fn world() -> World {
    let world = World::new();
    world.file("note.txt", "the tide turns at six\n");
    world
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn a_client_of_either_revision_calls_the_tools_that_it_is_granted() {
    let world = world();
    for revision in REVISIONS {
        let mut client = Client::start(&world, &[], revision);
        if revision == Revision::Newer {
            let found = client.ask("server/discover", json!({}));
            let name = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
            assert_eq!(*name, "belljar", "{found}");
        }
        let listed = client.ask("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let read = tools.iter().find(|tool| tool["name"] == "file_read").unwrap();
        assert_eq!(read["inputSchema"]["type"], "object");
        assert_eq!(read["annotations"]["readOnlyHint"], true);
        assert!(
            tools.iter().all(|tool| tool["name"] != "clarify" && tool["name"] != "spawn_agent")
        );
        let answer = client.call("file_read", json!({"path": "note.txt"}));
        assert!(text(&answer).contains("the tide turns at six"), "{answer}");
        assert_ne!(answer["result"]["isError"], true);
        let answer = client.call("file_read", json!({"path": "none.txt"}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let answer = client.call("file_reed", json!({}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        for wrong in
            [json!({"name": "file_list", "arguments": "{}"}), json!({"name": 7}), json!({})]
        {
            let answer = client.ask("tools/call", wrong);
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        let answer = client.ask("tools/none", json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        client.leave().exits(0);
    }
}

#[test]
fn parameters_of_any_form_are_answered_under_their_id_and_so_is_each_message_of_a_batch() {
    let world = world();
    let mut client = Client::start(&world, &[], Revision::Older);
    for (id, params) in [(100, "[1]"), (101, "\"x\""), (102, "7"), (103, "null")] {
        client.line(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}"
        ));
        let answer = client.answer(id);
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    let read = json!({"name": "file_read", "arguments": {"path": "note.txt"}});
    let read = json!({"jsonrpc": "2.0", "id": 104, "method": "tools/call", "params": read});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    client.send(&json!([told, read]));
    let answer = client.answer(104);
    assert!(text(&answer).contains("the tide turns at six"), "{answer}");
    client.leave().exits(0);
}

#[test]
fn what_it_may_is_said_by_the_grants_of_mcp() {
    let world = world();
    world.home_file("belljar.toml", "[grants.mcp]\ntools = ['file_list']\n");
    world.file(".belljar/agents/mcp.md", "---\nname: mcp\ndescription: d\ntools: []\n---\nNone.\n");
    let mut client = Client::start(&world, &[], Revision::Older);
    assert_eq!(client.tools(), ["file_list"]);
    let answer = client.call("file_read", json!({"path": "note.txt"}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert!(!answer.to_string().contains("tide"));
    let answer = client.call("file_list", json!({}));
    assert!(text(&answer).contains("note.txt"), "{answer}");
    client.leave().exits(0);
}

#[test]
fn what_it_writes_is_a_change_that_a_person_applies() {
    let world = world();
    let mut client = Client::start(&world, &[], Revision::Older);
    let arguments = json!({"path": "new.txt", "content": "low water\n"});
    let answer = client.call("file_write", arguments);
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let answer = client.call("file_read", json!({"path": "new.txt"}));
    assert!(text(&answer).contains("low water"), "the jar is the same: {answer}");
    assert!(!world.workspace().join("new.txt").exists());
    let listed = client.ask("resources/list", json!({}));
    let resources = listed["result"]["resources"].as_array().unwrap();
    let named = |name: &str| resources.iter().find(|it| it["name"] == name).unwrap()["uri"].clone();
    let read = client.ask("resources/read", json!({"uri": named("changes")}));
    let patch = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(patch.contains("+low water"), "{read}");
    let read = client.ask("resources/read", json!({"uri": named("receipts")}));
    let receipts = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(receipts.contains("\"tool\":\"file_write\""), "{read}");
    let answer = client.call("file_read", json!({"path": "new.txt"}));
    assert!(text(&answer).contains("low water"), "after a look at the changes: {answer}");
    client.leave().exits(0);
    let sessions = world.run(&["sessions", "list", "--json"]).exits(0).json();
    let session = &sessions.as_array().unwrap()[0];
    assert_eq!(session["title"], "MCP client tests 1");
    let id = session["id"].as_str().unwrap();
    world.run(&["changes", id]).exits(0).says("new.txt");
    world.run(&["apply", "--yes", id]).exits(0);
    assert_eq!(std::fs::read_to_string(world.workspace().join("new.txt")).unwrap(), "low water\n");
    world.run(&["receipts", id]).exits(0).says("file_write");
}

#[test]
fn each_call_has_its_receipt_however_fast_they_come() {
    const CALLS: usize = 150;
    let world = world();
    let mut client = Client::start(&world, &[], Revision::Older);
    let read = json!({"name": "file_read", "arguments": {"path": "note.txt"}});
    for _ in 0..CALLS {
        client.request("tools/call", read.clone());
    }
    for _ in 0..CALLS {
        assert!(text(&client.next()).contains("tide"));
    }
    client.leave().exits(0);
    let sessions = world.run(&["sessions", "list", "--json"]).exits(0).json();
    let id = sessions[0]["id"].as_str().unwrap();
    let export = world.run(&["sessions", "export", id]).exits(0).json();
    let receipts = export["receipts"].as_array().unwrap();
    let mut calls: Vec<&str> =
        receipts.iter().map(|receipt| receipt["call_id"].as_str().unwrap()).collect();
    let mut expected: Vec<String> = (1..=CALLS).map(|call| format!("mcp-{call}")).collect();
    // They end in any order.
    calls.sort_unstable();
    expected.sort_unstable();
    assert_eq!(calls, expected);
    assert!(receipts.iter().all(|receipt| receipt["tool"] == "file_read"), "{receipts:?}");
    world.run(&["receipts", id]).exits(0).says("file_read");
}

#[test]
fn progress_is_told_and_a_call_that_is_cancelled_has_no_answer() {
    let world = world();
    let mut client = Client::start(&world, &[], Revision::Older);
    let slow = json!({"command": "while true; do :; done"});
    let id = client.request("tools/call", json!({"name": "shell", "arguments": slow}));
    let read = client
        .request("tools/call", json!({"name": "file_read", "arguments": {"path": "note.txt"}}));
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}), "while a tool computes");
    client.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "enough"},
    }));
    let answer = client.answer(read);
    assert!(text(&answer).contains("tide"), "{answer}");
    assert!(client.seen.iter().all(|message| message["id"] != id), "{:?}", client.seen);
    client.leave().exits(0);
    let sessions = world.run(&["sessions", "list", "--json"]).exits(0).json();
    let session = sessions[0]["id"].as_str().unwrap().to_owned();
    world.run(&["receipts", &session]).exits(0).says("shell").says("cancelled");
}

#[test]
fn the_rights_of_clients_are_explained_granted_and_taken_back_without_a_file_of_theirs() {
    let world = world();
    world.run(&["explain", "mcp", "file_read"]).exits(0).says("allowed: home/mcp");
    let host = ["--host", "https://example.org"];
    world.run(&[&["grant", "mcp", "--yes"], &host[..]].concat()).exits(0);
    let settings = std::fs::read_to_string(world.home().join("belljar.toml")).unwrap();
    assert!(settings.contains("[grants.mcp]\nhosts = [\"https://example.org\"]"), "{settings}");
    world.run(&["explain", "home/mcp", "web_fetch", "https://example.org"]).exits(0);
    world.run(&[&["revoke", "mcp", "--yes"], &host[..]].concat()).exits(0);
    world.run(&["explain", "nobody", "file_read"]).exits(2).complains("no agent is called");
    // One of the workspace that has the name is somebody else.
    world.file(".belljar/agents/mcp.md", "---\nname: mcp\ndescription: d\ntools: []\n---\nNone.\n");
    world.run(&["explain", "mcp", "file_read"]).exits(0).says("allowed: home/mcp");
    world.run(&[&["grant", "mcp", "--yes"], &host[..]].concat()).exits(0);
}

/// INV-392.
#[test]
fn clients_have_nothing_while_the_file_that_says_what_they_may_do_is_broken() {
    let world = world();
    let none = "---\nname: mcp\ndescription: d\ntools: []\n---\nNone.\n";
    let file = world.home_file("agents/mcp.md", none);
    let mut client = Client::start(&world, &[], Revision::Older);
    assert_eq!(client.call("file_read", json!({"path": "note.txt"}))["error"]["code"], -32602);
    client.leave().exits(0);
    // Without an end of its head, and in an encoding that nobody reads.
    let wide: Vec<u8> = none.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [b"---\nname: mcp\ntools: [\n".to_vec(), [b"\xff\xfe", wide.as_slice()].concat()] {
        std::fs::write(&file, bytes).unwrap();
        let mut client = Client::start(&world, &[], Revision::Older);
        let arguments = json!({"path": "new.txt", "content": "low water\n"});
        let answer = client.call("file_write", arguments);
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(said.contains("mcp.md"), "{answer}");
        assert!(client.ask("tools/list", json!({}))["error"].is_object());
        client.leave().exits(0);
    }
    assert!(!world.workspace().join("new.txt").exists());
    let sessions = world.run(&["sessions", "list", "--json"]).exits(0).json();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "the first client's: {sessions}");
    world.run(&["explain", "mcp", "file_list"]).exits(2).complains("mcp.md");
    world.run(&["grant", "mcp", "--tool", "shell", "--yes"]).exits(2).complains("mcp.md");
    // Whole again, it says what it said.
    std::fs::write(&file, none).unwrap();
    let mut client = Client::start(&world, &[], Revision::Older);
    assert_eq!(client.tools(), [""; 0]);
    client.leave().exits(0);
}

#[test]
fn a_line_that_is_none_of_the_protocol_harms_nothing() {
    let world = world();
    let mut client = Client::start(&world, &[], Revision::Older);
    for line in ["", "{", "[]", "null", "{\"jsonrpc\":\"2.0\"}", "\u{0}\u{1}"] {
        client.line(line);
    }
    client.line(&format!("{{\"x\": \"{}\"}}", "y".repeat(9 << 20)));
    let answer = client.call("file_read", json!({"path": "note.txt"}));
    assert!(text(&answer).contains("tide"), "{answer}");
    client.leave().exits(0);
}

#[test]
fn ten_thousand_requests_that_nobody_reads_are_answered_when_somebody_does() {
    let world = world();
    let mut client = Client::start(&world, &[], Revision::Older);
    let mut input = client.take_input();
    let writer = std::thread::spawn(move || {
        for id in 0..10_000 {
            let line = json!({
                "jsonrpc": "2.0",
                "id": format!("n{id}"),
                "method": "tools/call",
                "params": {"name": "file_read", "arguments": {"path": "note.txt"}},
            });
            std::io::Write::write_all(&mut input, format!("{line}\n").as_bytes()).unwrap();
        }
        input
    });
    let answered = (0..10_000).filter(|_| client.next()["result"]["isError"] == false).count();
    assert_eq!(answered, 10_000);
    drop(writer.join().unwrap());
}

#[test]
fn skills_are_prompts() {
    let world = world();
    world.home_file(
        "skills/tides.md",
        "---\nname: tides\ndescription: When there are tides.\n---\nCount from six.\n",
    );
    let mut client = Client::start(&world, &[], Revision::Older);
    let listed = client.ask("prompts/list", json!({}));
    let prompts = listed["result"]["prompts"].as_array().unwrap();
    assert!(prompts.iter().any(|prompt| prompt["name"] == "tides"), "{listed}");
    let arguments = json!({"task": "when is low water?"});
    let got = client.ask("prompts/get", json!({"name": "tides", "arguments": arguments}));
    let said = got["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(said.contains("Count from six.") && said.ends_with("when is low water?"), "{got}");
    let got = client.ask("prompts/get", json!({"name": "none"}));
    assert_eq!(got["error"]["code"], -32602, "{got}");
}

#[test]
fn commands_are_prompts_with_their_arguments() {
    let world = world();
    let text =
        "---\ndescription: Reviews.\nargument-hint: ONE TWO\n---\nReview $1, $2, @note.txt.\n";
    world.home_file("commands/review.md", text);
    let mut client = Client::start(&world, &[], Revision::Older);
    let listed = client.ask("prompts/list", json!({})).to_string();
    assert!(listed.contains("\"review\"") && listed.contains("ONE TWO"), "{listed}");
    let arguments = json!({"arguments": "a \"b c\""});
    let got = client.ask("prompts/get", json!({"name": "review", "arguments": arguments}));
    // No agent reads the file for the client.
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "Review a, b c, @note.txt.");
    let arguments = json!({"arguments": "x".repeat(65 << 10)});
    let got = client.ask("prompts/get", json!({"name": "review", "arguments": arguments}));
    assert_eq!(got["error"]["code"], -32602, "{got}");
}

#[test]
fn a_skill_that_no_person_may_call_is_no_prompt() {
    let world = world();
    let text = |more: &str| format!("---\nname: n\ndescription: d\n{more}---\nCount from six.\n");
    world.home_file(
        "skills/ebb.md",
        &text("user-invocable: false\n").replace("name: n", "name: ebb"),
    );
    let kept = text("disable-model-invocation: true\n").replace("name: n", "name: flood");
    world.home_file("skills/flood.md", &kept);
    let mut client = Client::start(&world, &[], Revision::Older);
    let listed = client.ask("prompts/list", json!({})).to_string();
    assert!(!listed.contains("\"ebb\"") && listed.contains("\"flood\""), "{listed}");
    let got = client.ask("prompts/get", json!({"name": "ebb"}));
    assert_eq!(got["error"]["code"], -32602, "{got}");
    assert!(!got.to_string().contains("Count from six."), "{got}");
    let got = client.ask("prompts/get", json!({"name": "flood"}));
    assert!(got.to_string().contains("Count from six."), "{got}");
}

#[test]
fn a_client_is_told_how_to_start_it() {
    let world = World::new();
    let done = world.run(&["mcp", "config", "claude-code"]).exits(0);
    let printed = done.json();
    assert_eq!(printed["mcpServers"]["belljar"]["args"][0], "mcp");
    assert!(!world.workspace().join(".mcp.json").exists());
    world.file(".mcp.json", "{\"mcpServers\": {\"other\": {\"command\": \"x\"}}}");
    world.run(&["mcp", "config", "claude-code", "--write"]).exits(0);
    let written = std::fs::read_to_string(world.workspace().join(".mcp.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["mcpServers"]["other"]["command"], "x");
    let of_ours = &written["mcpServers"]["belljar"];
    let workspace = world.workspace().canonicalize().unwrap();
    assert_eq!(of_ours["args"], json!(["mcp", "--workspace", workspace.to_str().unwrap()]));
    world.file(".mcp.json", "{ // mine\n}");
    world.run(&["mcp", "config", "claude-code", "--write"]).exits(1).complains("left as it is");
    assert_eq!(
        std::fs::read_to_string(world.workspace().join(".mcp.json")).unwrap(),
        "{ // mine\n}"
    );
    for client in ["claude-desktop", "cursor", "vscode", "zed", "codex", "opencode", "gemini-cli"] {
        world.run(&["mcp", "config", client, "--write"]).exits(0).complains("wrote");
    }
}

#[test]
fn what_is_written_for_one_project_holds_in_no_other() {
    let world = World::new();
    let workspace = world.workspace().canonicalize().unwrap();
    for (client, file) in [
        ("claude-code", ".mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("codex", ".codex/config.toml"),
        ("opencode", "opencode.json"),
        ("gemini-cli", ".gemini/settings.json"),
        ("zed", ".zed/settings.json"),
    ] {
        world.run(&["mcp", "config", client, "--write"]).exits(0).complains(file);
        let written = std::fs::read_to_string(workspace.join(file)).unwrap();
        assert!(written.contains(workspace.to_str().unwrap()), "{written}");
    }
    // One file for all projects names none.
    world.run(&["mcp", "config", "cursor", "--write"]).exits(0);
    let home = workspace.parent().unwrap();
    for file in [".codex", ".config/opencode", ".config/zed", ".gemini"] {
        assert!(!home.join(file).exists(), "{file} is everybody's");
    }
    let cursor = std::fs::read_to_string(home.join(".cursor/mcp.json")).unwrap();
    assert!(cursor.contains("${workspaceFolder}"), "{cursor}");
    assert!(!cursor.contains(workspace.to_str().unwrap()), "{cursor}");
    // A client without projects is told so.
    let desktop = world.run(&["mcp", "config", "claude-desktop", "--write"]).exits(0);
    desktop.complains("one workspace for everything").complains(workspace.to_str().unwrap());
}

#[test]
fn a_token_is_not_copied_into_a_workspace_that_links_to_it() {
    use std::os::unix::fs::symlink;
    let token = "{\"auths\": {\"registry\": {\"auth\": \"dG9rZW4=\"}}}";
    let world = World::new();
    let file = world.other(".docker/config.json", token.as_bytes());
    let linked = world.workspace().join(".mcp.json");
    let links: [(&str, std::path::PathBuf); 2] =
        [(".mcp.json", file.clone()), (".vscode", file.parent().unwrap().to_path_buf())];
    for (name, target) in links {
        symlink(target, world.workspace().join(name)).unwrap();
    }
    for (client, name) in [("claude-code", ".mcp.json"), ("vscode", ".vscode")] {
        let refused = world.run(&["mcp", "config", client, "--write"]).exits(1);
        let refused = refused.complains(&format!("{name}` is a link"));
        assert!(!refused.stdout.contains("dG9rZW4"), "{}", refused.stdout);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), token);
    assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    assert!(std::fs::symlink_metadata(&linked).unwrap().is_symlink());
    // The neighbour: a plain file, and a link that the person has in the home.
    std::fs::remove_file(&linked).unwrap();
    world.run(&["mcp", "config", "claude-code", "--write"]).exits(0).complains("wrote");
    assert!(std::fs::read_to_string(&linked).unwrap().contains("belljar"));
    let kept = world.other("dotfiles/cursor.json", b"{\"mine\": 1}");
    std::fs::create_dir(world.workspace().parent().unwrap().join(".cursor")).unwrap();
    let cursor = world.workspace().parent().unwrap().join(".cursor/mcp.json");
    symlink(&kept, &cursor).unwrap();
    world.run(&["mcp", "config", "cursor", "--write"]).exits(0).complains("wrote");
    let written = std::fs::read_to_string(&kept).unwrap();
    assert!(written.contains("\"mine\"") && written.contains("belljar"), "{written}");
    assert!(std::fs::symlink_metadata(&cursor).unwrap().is_symlink(), "it stays a link");
}
