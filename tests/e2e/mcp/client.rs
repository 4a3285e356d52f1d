//! A client of `belljar mcp` that writes and reads lines.

use std::collections::VecDeque;
use std::process::ChildStdin;

use belljar_kit::peers::RpcClient;
use serde_json::{Value, json};

use crate::kit::{Done, World};

/// The revision of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revision {
    /// 2025-11-25: `initialize`, then a session.
    Older,
    /// 2026-07-28: every request says who sends it.
    Newer,
}

pub(super) struct Client {
    server: RpcClient,
    revision: Revision,
    capabilities: Value,
    /// Messages that came before the answer that was waited for.
    pub(super) seen: VecDeque<Value>,
}

impl Client {
    pub(super) fn start(world: &World, more: &[&str], revision: Revision) -> Self {
        Self::with(world, more, revision, json!({}))
    }

    pub(super) fn with(
        world: &World,
        more: &[&str],
        revision: Revision,
        capabilities: Value,
    ) -> Self {
        let args = [&["mcp"], more].concat();
        let server = RpcClient::start(&mut world.command(&args));
        let mut client = Self { server, revision, capabilities, seen: VecDeque::new() };
        if revision == Revision::Older {
            let begun = client.ask(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": client.capabilities,
                    "clientInfo": {"name": "tests", "version": "1"},
                }),
            );
            assert_eq!(begun["result"]["protocolVersion"], "2025-11-25", "{begun}");
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub(super) fn line(&mut self, line: &str) {
        self.server.line(line);
    }

    /// The stream that it is written to, for a client that writes on its own.
    pub(super) fn take_input(&mut self) -> ChildStdin {
        self.server.take_input()
    }

    /// Sends a request and gives its id.
    pub(super) fn request(&mut self, method: &str, mut params: Value) -> u64 {
        if self.revision == Revision::Newer {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "tests", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.server.request(method, &params)
    }

    /// The next message. All that a server writes is one on each line.
    pub(super) fn next(&mut self) -> Value {
        self.server.next_message()
    }

    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.seen.push_back(message);
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The names of the tools.
    pub(super) fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Closes the streams, and waits for the end.
    pub(super) fn leave(self) -> Done {
        Done::of(self.server.leave())
    }

    /// Ends it as `kill -9` does.
    pub(super) fn kill(self) {
        self.server.kill();
    }
}
