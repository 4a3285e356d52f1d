//! The same door of a server, where files of the home change while it runs.

use serde_json::{Value, json};

use super::world;
use crate::kit::server::Server;

fn ask(server: &Server, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name =
        params["name"].as_str().map_or(String::new(), |name| format!("mcp-name: {name}\r\n"));
    let lines = format!(
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: {method}\r\n{name}"
    );
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (status, text) = server.post("/mcp", &lines, &message.to_string());
    let mut found = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let found = found.find_map(|line| serde_json::from_str::<Value>(line).ok());
    found.unwrap_or_else(|| panic!("{status}: {text}"))
}

#[test]
fn a_right_that_is_taken_back_is_gone_with_the_next_call() {
    let world = world();
    world.home_file("belljar.toml", "[grants.mcp]\ntools = ['file_read', 'file_list']\n");
    let server = Server::start(&world, &[]);
    let read = || {
        ask(&server, "tools/call", json!({"name": "file_read", "arguments": {"path": "note.txt"}}))
    };
    assert!(read().to_string().contains("tide"));
    world.home_file("belljar.toml", "[grants.mcp]\ntools = ['file_list']\n");
    crate::kit::until("the right is gone", || read()["error"]["code"] == -32602);
    let listed = ask(&server, "tools/call", json!({"name": "file_list", "arguments": {}}));
    assert!(listed.to_string().contains("note.txt"), "{listed}");
    assert!(!read().to_string().contains("tide"));
}
