//! A fake MCP server with one accepted tool, `echo`, and an agent that calls this tool and reads a file.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::Arena;
use crate::attack::{Escape, Stopped, Verdict};
use crate::attacks::agents;
use crate::peer::{LoopbackPeer, PeerAct, PeerRequest, Script};
use crate::scene::{ScenePlan, agent_file};

/// The text of the file that the agent reads next to its calls of the server.
const NOTE: &str = "the tide turns at six";

/// The seconds that a call may take if something other than its time limit must end it.
const GENEROUS: u64 = 60;

/// One MCP message that the server received, with its HTTP request.
pub(super) struct McpMessage<'a> {
    pub(super) method: &'a str,
    pub(super) body: &'a Value,
    pub(super) asked: &'a PeerRequest,
}

/// What happened in a run of the agent with a hostile server.
pub(super) struct McpEncounter {
    pub(super) peer: LoopbackPeer,
    /// The results of the agent's calls of the server: each text, and whether it is an error.
    pub(super) told: Vec<(String, bool)>,
    /// How often a model was called for the server.
    pub(super) sampled: usize,
}

/// What the operator has stored about the server, and how the agent uses it.
#[derive(Default)]
pub(super) struct KnownServer<'a> {
    /// The MCP revision that was negotiated; empty = 2025-11-25, which has sessions.
    pub(super) revision: &'a str,
    /// More lines in the table `[mcp.peer]` of the settings.
    pub(super) settings: String,
    /// The token that the operator has obtained for the server.
    pub(super) token: Option<&'a str>,
    /// The number of steps in which the agent calls the server; 0 = one.
    pub(super) calls: usize,
    /// The number of texts that the model has ready for the server.
    pub(super) texts: usize,
    /// The seconds that a call may take; 0 = more than an attack takes that something else ends.
    pub(super) seconds: u64,
}

impl McpMessage<'_> {
    /// The HTTP reply with a result of the given message.
    pub(super) fn result_reply(&self, result: &Value) -> Vec<PeerAct> {
        json_reply(&json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result}))
    }

    pub(super) fn sse_event(message: &Value) -> Vec<u8> {
        format!("data: {message}\n\n").into_bytes()
    }
}

/// A tool in the form of a server's list.
pub(super) fn tool_json(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// The list of tools of an honest server.
pub(super) fn honest_list() -> Value {
    json!({"tools": [tool_json("echo", "Gives back its text.")], "resultType": "complete"})
}

/// The result of a tool call with this text.
pub(super) fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// An HTTP reply with a JSON message.
pub(super) fn json_reply(message: &Value) -> Vec<PeerAct> {
    let body = message.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n",
        body.len()
    );
    vec![PeerAct::Send([head.into_bytes(), body.into_bytes()].concat())]
}

/// An HTTP reply with a status and headers, but without a body.
pub(super) fn status_reply(status: &str, headers: &str) -> Vec<PeerAct> {
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n");
    vec![PeerAct::Send(head.into_bytes())]
}

/// The head of an HTTP reply with an event stream.
pub(super) fn stream_head() -> PeerAct {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    PeerAct::Send(head.as_bytes().to_vec())
}

/// A script of a server that acts as `act` returns, and honestly where `act` returns `None`.
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

/// Runs an agent that calls the tool of a server with the given script, and that reads a file next to it.
pub(super) async fn call_server(
    arena: &Arena,
    script: Script,
    known: KnownServer<'_>,
) -> Result<McpEncounter, Escape> {
    let peer = arena.start_peer(script).await?;
    let url = format!("{}/mcp", peer.grant_rule());
    call_server_at(arena, peer, &url, known).await
}

/// Like [`call_server`], with a server at the given address.
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
    /// Checks that the last call was answered with an error.
    pub(super) fn check_refused(&self) -> Stopped {
        match self.told.last() {
            Some((text, true)) => Ok(Verdict::with_words(text)),
            other => Err(Escape::new(format!("it was answered: {other:?}"))),
        }
    }

    /// The number of requests with this method that the server has received.
    pub(super) fn count_requests(&self, method: &str) -> usize {
        let wanted = format!("\"method\":\"{method}\"");
        let bodies = self.peer.received_requests();
        let bodies = bodies.iter().map(|asked| String::from_utf8_lossy(&asked.body).into_owned());
        bodies.filter(|body| body.contains(&wanted)).count()
    }
}

/// Runs an agent with a server that acts hostile when it is called; the call must be refused.
pub(super) async fn in_call(
    arena: &Arena,
    act: impl Fn(&McpMessage<'_>) -> Vec<PeerAct> + Send + Sync + 'static,
) -> Stopped {
    let script =
        honest_server(move |message| (message.method == "tools/call").then(|| act(message)));
    call_server(arena, script, KnownServer::default()).await?.check_refused()
}

/// Runs an agent with a server that lists hostile tools; the call must be refused before it is sent.
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
