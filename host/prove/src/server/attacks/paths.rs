//! Attacks that look for paths of the host in answers. Every answer of every attack is searched; these
//! requests are those whose answers might contain most paths.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::super::client::{CallerRequest, ServerAnswer, ServerClient, get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-path-every-route",
        "asks every route for what it knows, and looks for places of the host",
        "answers leave as public text (INV-121)",
        "routes",
        every_route
    ),
    row!(
        "server-path-run-started",
        "reads the first event of a turn",
        "answers leave as public text (INV-121)",
        "/workspace",
        run_started
    ),
    row!(
        "server-path-on-a-socket",
        "reads the first event of a turn on a WebSocket",
        "answers leave as public text (INV-121)",
        "run_started",
        on_socket
    ),
    row!(
        "server-path-broken-agent",
        "talks to an agent whose file is broken",
        "answers leave as public text (INV-121)",
        "broken",
        run_broken_agent
    ),
    row!(
        "server-path-missing-mount",
        "talks to an agent whose mount is missing",
        "answers leave as public text (INV-121)",
        "lost",
        missing_mount
    ),
    row!(
        "server-path-key-file",
        "talks to a model whose key file is missing",
        "answers leave as public text (INV-121)",
        "key file",
        key_file
    ),
    row!(
        "server-path-preview",
        "looks at what a model would be sent",
        "answers leave as public text (INV-121)",
        "request",
        preview_agent
    ),
    row!(
        "server-path-unknown-agent",
        "talks to an agent that is not there",
        "answers leave as public text (INV-121)",
        "no agent",
        unknown_agent
    ),
];

/// Attack `server-path-every-route`: the attacker asks every route for what it knows, and looks for places of
/// the host.
async fn every_route(stage: &ServerStage) -> Stopped {
    let caller = stage.client_for("red-admin");
    let document = caller.send(&get_request("/v1/openapi.json")).await?.json_body()?;
    let paths = document["paths"].as_object().context("no list of routes")?;
    let session = stage.session_id("red")?;
    let mut routes = 0;
    for (path, verbs) in paths {
        let target = path
            .replace("{id}", session)
            .replace("{slug}", "broken")
            .replace("{attachment}", "x")
            .replace("{question}", "1");
        for verb in verbs.as_object().into_iter().flat_map(|verbs| verbs.keys()) {
            // A body that no route accepts is refused, so nothing changes. Streams end by themselves.
            let target = match path.as_str() {
                "/v1/grants" => format!("{target}?agent=lost"),
                path if path.ends_with("/events") => format!("{target}?follow=false"),
                _ => target.clone(),
            };
            // Deletions, a logout and a resume have no body that could be refused, so they take effect.
            let is_done = verb == "delete" || path == "/v1/logout" || path.ends_with("/resume");
            let ask = match verb.as_str() {
                "get" => get_request(&target),
                verb => new_request(&verb.to_uppercase(), &target).with_json(&json!([])),
            };
            if !is_done {
                let answer = send_patiently(&caller, &ask).await?;
                escape_unless(answer.status < 500 || answer.status == 503, || answer.body.clone())?;
                routes += 1;
            }
        }
    }
    escape_unless(routes >= 20, || format!("only {routes} routes"))?;
    Ok(Verdict::with_words(format!("{routes} routes name none")))
}

/// Repeats a request that got no answer in time, because tools are compiled when they are first listed.
async fn send_patiently(
    caller: &ServerClient,
    ask: &CallerRequest,
) -> anyhow::Result<ServerAnswer> {
    for _ in 0..2 {
        if let Ok(answer) = caller.send(ask).await {
            return Ok(answer);
        }
    }
    caller.send(ask).await
}

/// Runs a turn of red's member; returns its stream of events as text.
async fn stream_turn(stage: &ServerStage, agent: &str) -> anyhow::Result<String> {
    stage.red_may_change();
    let body = json!({ "agent": agent, "text": "go", "stream": true });
    let answer = stage
        .client_for("red-member")
        .send(&new_request("POST", "/v1/chat").with_json(&body))
        .await?;
    Ok(answer.body)
}

/// Attack `server-path-run-started`: the attacker reads the first event of a turn.
async fn run_started(stage: &ServerStage) -> Stopped {
    let events = stream_turn(stage, "teller").await?;
    escape_unless(events.contains("run_started"), || events.clone())?;
    let workspace = "\"workspace\":\"/workspace\"";
    escape_unless(events.contains(workspace), || events.clone())?;
    Ok(Verdict::with_words(workspace))
}

/// Attack `server-path-on-a-socket`: the attacker reads the first event of a turn on a WebSocket.
async fn on_socket(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let mut wire = stage.client_for("red-member").open_socket().await?;
    wire.send_text(&json!({ "type": "chat", "agent": "teller", "text": "go" }).to_string()).await?;
    wire.read_until("\"done\"").await?;
    let text = wire.read_until("run_started").await?;
    escape_unless(text.contains("\"/workspace\""), || text.clone())?;
    Ok(Verdict::with_words("run_started is in /workspace"))
}

/// Runs a turn that must fail; returns its answer, and checks what was stored of it.
async fn run_failing_turn(stage: &ServerStage, agent: &str) -> Stopped {
    stage.red_may_change();
    let answer: ServerAnswer = stage.send_chat("red-member", agent, "go").await?;
    let mut told = answer.body.clone();
    let session = answer.json_body()?["session"].as_str().map(str::to_owned);
    for path in ["/messages?full=true", "/receipts", "/events?follow=false"] {
        let Some(session) = &session else { break };
        let path = format!("/v1/sessions/{session}{path}");
        told.push_str(&stage.client_for("red-member").send(&get_request(&path)).await?.body);
    }
    told.push_str(&stream_turn(stage, agent).await?);
    let grants = format!("/v1/grants?agent={agent}");
    told.push_str(&stage.client_for("red-member").send(&get_request(&grants)).await?.body);
    Ok(Verdict::with_words(told))
}

/// Attack `server-path-broken-agent`: the attacker talks to an agent whose file is broken.
async fn run_broken_agent(stage: &ServerStage) -> Stopped {
    run_failing_turn(stage, "broken").await
}

/// Attack `server-path-missing-mount`: the attacker talks to an agent whose mount is missing.
async fn missing_mount(stage: &ServerStage) -> Stopped {
    run_failing_turn(stage, "lost").await
}

/// Attack `server-path-key-file`: the attacker talks to a model whose key file is missing.
async fn key_file(stage: &ServerStage) -> Stopped {
    let told = run_failing_turn(stage, "keyed").await?;
    let about = told.told.contains("key file") || told.told.contains("key");
    escape_unless(about, || told.told.clone())?;
    Ok(Verdict::with_words(format!("key file: {}", told.told)))
}

/// Attack `server-path-unknown-agent`: the attacker talks to an agent that is not there.
async fn unknown_agent(stage: &ServerStage) -> Stopped {
    run_failing_turn(stage, "nobody").await
}

/// Attack `server-path-preview`: the attacker looks at what a model would be sent.
async fn preview_agent(stage: &ServerStage) -> Stopped {
    let body = json!({ "agent": "reader", "text": "go" });
    let answer = stage
        .client_for("red-member")
        .send(&new_request("POST", "/v1/preview").with_json(&body))
        .await?;
    let request: Value = answer.json_body()?["request"].clone();
    escape_unless(answer.status == 200 && request.is_object(), || answer.body.clone())?;
    Ok(Verdict::with_words(answer.body))
}
