//! A server with one accepted tool, `echo`, and an agent that calls it and reads a file.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Arena;
use crate::attack::{Escape, Stopped, Verdict};
use crate::attacks::agents;
use crate::peer::{LoopbackPeer, PeerAct, PeerRequest, Script};
use crate::scene::{ScenePlan, agent_file};

/// The file that the neighbouring call of the agent reads.
const NOTE: &str = "the tide turns at six";

/// Seconds of a call that something else than its time ends.
const GENEROUS: u64 = 60;

/// One request of the protocol.
pub(super) struct McpMessage<'a> {
    pub(super) method: &'a str,
    pub(super) body: &'a Value,
    pub(super) asked: &'a PeerRequest,
}

/// A place where an agent was told something by a server.
pub(super) struct McpEncounter {
    pub(super) peer: LoopbackPeer,
    /// The answers to the agent's calls of the server.
    pub(super) told: Vec<(String, bool)>,
    /// How often a model was asked for a text for it.
    pub(super) sampled: usize,
}

/// A server as the operator knows it.
#[derive(Default)]
pub(super) struct KnownServer<'a> {
    /// How it was spoken to; empty = with sessions.
    pub(super) revision: &'a str,
    /// More lines below `[mcp.peer]`.
    pub(super) settings: String,
    /// The token that somebody has got for it.
    pub(super) token: Option<&'a str>,
    /// How often it is called, once in each step; 0 = once.
    pub(super) calls: usize,
    /// Texts that a model would write for it.
    pub(super) texts: usize,
    /// Seconds that a call may take; 0 = more than any attack needs that something else ends.
    pub(super) seconds: u64,
}

impl McpMessage<'_> {
    /// Answers with a result.
    pub(super) fn result_reply(&self, result: &Value) -> Vec<PeerAct> {
        json_reply(&json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}))
    }

    pub(super) fn sse_event(message: &Value) -> Vec<u8> {
        format!("data: {message}\n\n").into_bytes()
    }
}

/// A tool as a server lists it.
pub(super) fn tool_json(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// The list of an honest server.
pub(super) fn honest_list() -> Value {
    json!({"tools": [tool_json("echo", "Gives back its text.")], "resultType": "complete"})
}

/// A result that says this.
pub(super) fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A reply with a message in JSON.
pub(super) fn json_reply(message: &Value) -> Vec<PeerAct> {
    let body = message.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n",
        body.len()
    );
    vec![PeerAct::Send([head.into_bytes(), body.into_bytes()].concat())]
}

/// A reply of a status and headers alone.
pub(super) fn status_reply(status: &str, headers: &str) -> Vec<PeerAct> {
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n");
    vec![PeerAct::Send(head.into_bytes())]
}

/// The head of a stream of events.
pub(super) fn stream_head() -> PeerAct {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    PeerAct::Send(head.as_bytes().to_vec())
}

/// A server that is honest where this says nothing.
pub(super) fn honest_server(
    act: impl Fn(&McpMessage<'_>) -> Option<Vec<PeerAct>> + Send + Sync + 'static,
) -> Script {
    Arc::new(move |asked| {
        let body = serde_json::from_slice::<Value>(&asked.body).unwrap_or_default();
        let message =
            McpMessage { method: body["method"].as_str().unwrap_or_default(), body: &body, asked };
        if let Some(acts) = act(&message) {
            return acts;
        }
        match message.method {
            "initialize" => message.result_reply(&json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "peer", "version": "1"},
            })),
            "tools/list" => message.result_reply(&honest_list()),
            "tools/call" => message.result_reply(&text_result("here")),
            _ => status_reply("202 Accepted", ""),
        }
    })
}

/// Has an agent call the tool of a server that acts so, and read a file beside it.
pub(super) async fn call_server(
    arena: &Arena,
    script: Script,
    known: KnownServer<'_>,
) -> Result<McpEncounter, Escape> {
    let peer = arena.start_peer(script).await?;
    let url = format!("{}/mcp", peer.grant_rule());
    call_server_at(arena, peer, &url, known).await
}

/// The same with a server at this address.
pub(super) async fn call_server_at(
    arena: &Arena,
    peer: LoopbackPeer,
    url: &str,
    known: KnownServer<'_>,
) -> Result<McpEncounter, Escape> {
    let revision = if known.revision.is_empty() { "2025-11-25" } else { known.revision };
    let accepted = json!({
        "version": 1,
        "url": url,
        "revision": revision,
        "tools": [
            {"name": "echo", "description": "Gives back its text.", "schema": {"type": "object"}},
            {"name": "free", "description": "Is granted to nobody.", "schema": {"type": "object"}},
        ],
    });
    let directory = arena.path("home").join("mcp");
    std::fs::create_dir_all(directory.join("tokens"))?;
    std::fs::write(directory.join("peer.json"), accepted.to_string())?;
    if let Some(token) = known.token {
        let tokens = json!({
            "version": 1, "url": url, "resource": url, "issuer": url,
            "endpoint": format!("{url}/token"), "scopes": [], "access": token, "refresh": null,
            "client": {"id": "c", "secret": null, "method": "none"},
        });
        std::fs::write(directory.join("tokens/peer.json"), tokens.to_string())?;
    }
    let seconds = if known.seconds == 0 { GENEROUS } else { known.seconds };
    let settings = format!(
        "[mcp.peer]\nurl = '{url}'\ntimeout_seconds = {seconds}\n{}\n[grants.victim]\ntools = \
         ['mcp__peer__echo', 'file_read']\n",
        known.settings
    );
    let calls = known.calls.max(1);
    let call = "      - calls: [{name: mcp__peer__echo, arguments: {}}, {name: file_read, arguments: \
                {path: note.txt}}]\n";
    let texts = match known.texts {
        0 => String::new(),
        texts => {
            format!("  - agent: mcp__peer\n    turns:\n{}", "      - say: A text.\n".repeat(texts))
        }
    };
    let transcript = format!(
        "transcript: 1\nagents:\n  - agent: victim\n    turns:\n{}      - say: Done.\n{texts}",
        call.repeat(calls)
    );
    let victim = agent_file("victim", "");
    let scene = arena.build_scene(&ScenePlan {
        transcript: &transcript,
        settings: &settings,
        agents: &[("victim.md", &victim)],
        files: &[("note.txt", NOTE)],
        ..ScenePlan::default()
    })?;
    scene.run_agent("victim", "go").await?;
    let mut told = Vec::new();
    for request in scene.sent_by("victim", 0).iter().skip(1).take(calls) {
        match agents::request_results(request).as_slice() {
            [of_server, (note, false)] if note.contains(NOTE) => told.push(of_server.clone()),
            other => return Err(Escape::new(format!("the neighbouring call failed: {other:?}"))),
        }
    }
    if told.len() != calls {
        return Err(Escape::new(format!("{} results, not {calls}", told.len())));
    }
    let written = scene.sent_by("mcp__peer", 0);
    if written.iter().any(|request| !request.foreign || !request.tools.is_empty()) {
        return Err(Escape::new("a model was asked for it with more than words".to_owned()));
    }
    let sampled = written.len();
    Ok(McpEncounter { peer, told, sampled })
}

impl McpEncounter {
    /// The last answer, which has to be an error.
    pub(super) fn check_refused(&self) -> Stopped {
        match self.told.last() {
            Some((text, true)) => Ok(Verdict::with_words(text)),
            other => Err(Escape::new(format!("it was answered: {other:?}"))),
        }
    }

    /// How many requests of this method the server has got.
    pub(super) fn count_requests(&self, method: &str) -> usize {
        let wanted = format!("\"method\":\"{method}\"");
        let bodies = self.peer.received_requests();
        let bodies = bodies.iter().map(|asked| String::from_utf8_lossy(&asked.body).into_owned());
        bodies.filter(|body| body.contains(&wanted)).count()
    }
}

/// Calls a server that acts so in calls, which has to be refused.
pub(super) async fn in_call(
    arena: &Arena,
    act: impl Fn(&McpMessage<'_>) -> Vec<PeerAct> + Send + Sync + 'static,
) -> Stopped {
    let script =
        honest_server(move |message| (message.method == "tools/call").then(|| act(message)));
    call_server(arena, script, KnownServer::default()).await?.check_refused()
}

/// Calls a server that lists so, which has to be refused before the call is made.
pub(super) async fn in_list(
    arena: &Arena,
    act: impl Fn(&McpMessage<'_>) -> Vec<PeerAct> + Send + Sync + 'static,
) -> Stopped {
    let script =
        honest_server(move |message| (message.method == "tools/list").then(|| act(message)));
    let met = call_server(arena, script, KnownServer::default()).await?;
    match met.count_requests("tools/call") {
        0 => met.check_refused(),
        calls => Err(Escape::new(format!("{calls} calls were made"))),
    }
}
