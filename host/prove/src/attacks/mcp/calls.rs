//! Attacks by MCP servers in their answer to a call.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;

use super::stage::{
    KnownServer, McpMessage, call_server, call_server_at, honest_server, in_call, status_reply,
    stream_head, text_result,
};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped};
use crate::peer::PeerAct;

/// The host name of this attack's server.
const NAME: &str = "mcp-server.test";

pub(super) const ATTACKS: &[Attack<Arena>] = &[
    Attack {
        id: "mcp-flood-of-messages",
        kind: AttackKind::Mcp,
        tries: "sends reports of progress without end in place of an answer",
        stopped_by: "messages of one reply are counted (INV-315)",
        told: "it sends too many messages",
        embedded: true,
        run: |arena| Box::pin(flood_progress(arena)),
    },
    Attack {
        id: "mcp-endless-message",
        kind: AttackKind::Mcp,
        tries: "sends one message without end",
        stopped_by: "a message has a longest size (INV-315)",
        told: "a message is too long",
        embedded: true,
        run: |arena| Box::pin(stream_endlessly(arena)),
    },
    Attack {
        id: "mcp-never-answers",
        kind: AttackKind::Mcp,
        tries: "takes the call and says nothing",
        stopped_by: "the time of a call (INV-315)",
        told: "the call took over 1 seconds",
        embedded: true,
        run: |arena| Box::pin(never_answer(arena)),
    },
    Attack {
        id: "mcp-answer-of-another",
        kind: AttackKind::Mcp,
        tries: "answers a request that nobody has made",
        stopped_by: "an answer counts for its own request (INV-315)",
        told: "it answers another request",
        embedded: true,
        run: |arena| Box::pin(answer_another_id(arena)),
    },
    Attack {
        id: "mcp-asks-in-a-loop",
        kind: AttackKind::Mcp,
        tries: "asks for the agent's model again and again",
        stopped_by: "a server is answered `ping`, and what it was granted (INV-314, INV-360)",
        told: "it asks for too much",
        embedded: true,
        run: |arena| Box::pin(ask_for_samples(arena)),
    },
    Attack {
        id: "mcp-rounds-without-end",
        kind: AttackKind::Mcp,
        tries: "has no session, and answers each round with another form",
        stopped_by: "forms are declined and rounds are counted (INV-331)",
        told: "it asks for more again and again",
        embedded: true,
        run: |arena| Box::pin(ask_endless_rounds(arena)),
    },
    Attack {
        id: "mcp-asks-in-a-round",
        kind: AttackKind::Mcp,
        tries: "has no session, and asks for the agent's model before it answers",
        stopped_by: "what was not offered to it ends the call (INV-331)",
        told: "what is not offered to it",
        embedded: true,
        run: |arena| Box::pin(asks_in_a_round(arena)),
    },
    Attack {
        id: "mcp-redirect",
        kind: AttackKind::Mcp,
        tries: "redirects a call to a service of this machine",
        stopped_by: "no redirect is followed (INV-310)",
        told: "it redirects, which is not followed",
        embedded: true,
        run: |arena| Box::pin(redirect_call(arena)),
    },
    Attack {
        id: "mcp-name-of-this-machine",
        kind: AttackKind::Mcp,
        tries: "has its name lead to this machine after it was accepted",
        stopped_by: "addresses are checked after names are resolved (INV-310)",
        told: "destination ip prohibited",
        embedded: true,
        run: |arena| Box::pin(resolve_to_loopback(arena)),
    },
    Attack {
        id: "mcp-output-bomb",
        kind: AttackKind::Mcp,
        tries: "answers with three megabytes of text",
        stopped_by: "the output of a call is bounded (INV-315)",
        told: "output",
        embedded: true,
        run: |arena| Box::pin(return_huge_output(arena)),
    },
];

/// Attack `mcp-flood-of-messages`: the attacker sends reports of progress without end in place of an answer.
async fn flood_progress(arena: &Arena) -> Stopped {
    in_call(arena, |_| {
        let report = json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": 1, "progress": 1},
        });
        vec![stream_head(), PeerAct::Flood(McpMessage::sse_event(&report).repeat(100))]
    })
    .await
}

/// Attack `mcp-endless-message`: the attacker sends one message without end.
async fn stream_endlessly(arena: &Arena) -> Stopped {
    in_call(arena, |_| vec![stream_head(), PeerAct::Flood(b"data: x\n".repeat(1_000))]).await
}

/// Attack `mcp-never-answers`: the attacker takes the call and says nothing.
async fn never_answer(arena: &Arena) -> Stopped {
    let script =
        honest_server(|message| (message.method == "tools/call").then(|| vec![PeerAct::Hold]));
    call_server(arena, script, KnownServer { seconds: 1, ..KnownServer::default() })
        .await?
        .check_refused()
}

/// Attack `mcp-answer-of-another`: the attacker answers a request that nobody has made.
async fn answer_another_id(arena: &Arena) -> Stopped {
    in_call(arena, |message| {
        let id = message.body["id"].as_u64().unwrap_or_default() + 1;
        super::stage::json_reply(
            &json!({"jsonrpc": "2.0", "id": id, "result": text_result("for another")}),
        )
    })
    .await
}

/// Attack `mcp-asks-in-a-loop`: the attacker asks for the agent's model again and again.
async fn ask_for_samples(arena: &Arena) -> Stopped {
    in_call(arena, |_| {
        let wish = json!({
            "jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {},
        });
        vec![stream_head(), PeerAct::Send(McpMessage::sse_event(&wish).repeat(100)), PeerAct::Hold]
    })
    .await
}

/// A result by which the server demands input, as a request of the given method.
fn input_required_result(method: &str) -> serde_json::Value {
    json!({
        "resultType": "input_required",
        "inputRequests": {"more": {"method": method, "params": {}}},
        "requestState": "s",
    })
}

/// Attack by a server without sessions that demands input in every round; `calls` = how many rounds must be
/// made.
async fn without_a_session(arena: &Arena, method: &'static str, calls: usize) -> Stopped {
    let script = honest_server(move |message| {
        (message.method == "tools/call")
            .then(|| message.result_reply(&input_required_result(method)))
    });
    let known = KnownServer { revision: "2026-07-28", ..KnownServer::default() };
    let met = call_server(arena, script, known).await?;
    match met.count_requests("tools/call") {
        made if made == calls => met.check_refused(),
        made => Err(Escape::new(format!("{made} rounds, not {calls}"))),
    }
}

/// Attack `mcp-rounds-without-end`: the attacker has no session, and answers each round with another form.
async fn ask_endless_rounds(arena: &Arena) -> Stopped {
    without_a_session(arena, "elicitation/create", 8).await
}

/// Attack `mcp-asks-in-a-round`: the attacker has no session, and asks for the agent's model before it
/// answers.
async fn asks_in_a_round(arena: &Arena) -> Stopped {
    without_a_session(arena, "sampling/createMessage", 1).await
}

/// Attack `mcp-redirect`: the attacker redirects a call to a service of this machine.
async fn redirect_call(arena: &Arena) -> Stopped {
    let elsewhere = format!("location: http://{}/\r\n", arena.forbidden_address());
    in_call(arena, move |_| status_reply("307 Temporary Redirect", &elsewhere)).await
}

/// Attack `mcp-name-of-this-machine`: the attacker has its name lead to this machine after it was accepted.
async fn resolve_to_loopback(arena: &Arena) -> Stopped {
    arena.set_name_answers(NAME, [vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]]);
    let peer = arena.start_peer(honest_server(|_| None)).await?;
    let url = format!("http://{NAME}:{}/mcp", peer.address().port());
    let met = call_server_at(arena, peer, &url, KnownServer::default()).await?;
    match met.peer.received_requests().len() {
        0 => met.check_refused(),
        requests => Err(Escape::new(format!("{requests} requests came"))),
    }
}

/// Attack `mcp-output-bomb`: the attacker answers with three megabytes of text.
async fn return_huge_output(arena: &Arena) -> Stopped {
    in_call(arena, |message| message.result_reply(&text_result(&"x".repeat(3 << 20)))).await
}
