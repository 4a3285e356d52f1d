//! A client of `belljar mcp` that writes and reads lines.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};

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
    child: Option<Child>,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    revision: Revision,
    capabilities: Value,
    last: u64,
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
        let mut child = world.command(&args).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self {
            child: Some(child),
            input,
            output,
            revision,
            capabilities,
            last: 0,
            seen: VecDeque::new(),
        };
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
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// The stream that it is written to, for a client that writes on its own.
    pub(super) fn take_input(&mut self) -> ChildStdin {
        self.input.take().unwrap()
    }

    /// Sends a request and gives its id.
    pub(super) fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if self.revision == Revision::Newer {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "tests", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message. All that a server writes is one on each line.
    pub(super) fn next(&mut self) -> Value {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).unwrap();
        if read == 0 {
            let done = Done::of(self.child.take().unwrap().wait_with_output().unwrap());
            panic!("it ended: {}", done.stderr);
        }
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
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
    pub(super) fn leave(mut self) -> Done {
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        for line in rest.lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
        Done::of(self.child.take().unwrap().wait_with_output().unwrap())
    }

    /// Ends it as `kill -9` does.
    pub(super) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
