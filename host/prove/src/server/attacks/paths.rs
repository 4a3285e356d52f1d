//! Places of the host in answers. Every answer of every attack is looked through; these ask where
//! the host has most to tell.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::super::client::{Answer, Ask, Client, ask, get};
use super::super::stage::Stage;
use super::{Row, check, row};
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
        broken
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
        preview
    ),
    row!(
        "server-path-unknown-agent",
        "talks to an agent that is not there",
        "answers leave as public text (INV-121)",
        "no agent",
        unknown_agent
    ),
];

async fn every_route(stage: &Stage) -> Stopped {
    let caller = stage.caller("red-admin");
    let document = caller.send(&get("/v1/openapi.json")).await?.value()?;
    let paths = document["paths"].as_object().context("no list of routes")?;
    let session = stage.session("red")?;
    let mut routes = 0;
    for (path, verbs) in paths {
        let target = path
            .replace("{id}", session)
            .replace("{slug}", "broken")
            .replace("{attachment}", "x")
            .replace("{question}", "1");
        for verb in verbs.as_object().into_iter().flat_map(|verbs| verbs.keys()) {
            // A body of no route's form is refused; what it would change stays. Streams end by
            // themselves.
            let target = match path.as_str() {
                "/v1/grants" => format!("{target}?agent=lost"),
                path if path.ends_with("/events") => format!("{target}?follow=false"),
                _ => target.clone(),
            };
            // Two take no form that could be refused: they do what they are for.
            let is_done = verb == "delete" || path == "/v1/logout" || path.ends_with("/resume");
            let ask = match verb.as_str() {
                "get" => get(&target),
                verb => ask(&verb.to_uppercase(), &target).json(&json!([])),
            };
            if !is_done {
                let answer = patiently(&caller, &ask).await?;
                check(answer.status < 500 || answer.status == 503, || answer.body.clone())?;
                routes += 1;
            }
        }
    }
    check(routes >= 20, || format!("only {routes} routes"))?;
    Ok(Verdict::told(format!("{routes} routes name none")))
}

/// Asks again where there was no answer in time: the tools are compiled when they are first listed.
async fn patiently(caller: &Client, ask: &Ask) -> anyhow::Result<Answer> {
    for _ in 0..2 {
        if let Ok(answer) = caller.send(ask).await {
            return Ok(answer);
        }
    }
    caller.send(ask).await
}

async fn streamed(stage: &Stage, agent: &str) -> anyhow::Result<String> {
    stage.red_may_change();
    let body = json!({ "agent": agent, "text": "go", "stream": true });
    let answer = stage.caller("red-member").send(&ask("POST", "/v1/chat").json(&body)).await?;
    Ok(answer.body)
}

async fn run_started(stage: &Stage) -> Stopped {
    let events = streamed(stage, "teller").await?;
    check(events.contains("run_started"), || events.clone())?;
    let workspace = "\"workspace\":\"/workspace\"";
    check(events.contains(workspace), || events.clone())?;
    Ok(Verdict::told(workspace))
}

async fn on_socket(stage: &Stage) -> Stopped {
    stage.red_may_change();
    let mut wire = stage.caller("red-member").socket().await?;
    wire.say(&json!({ "type": "chat", "agent": "teller", "text": "go" }).to_string()).await?;
    wire.until("\"done\"").await?;
    let text = wire.until("run_started").await?;
    check(text.contains("\"/workspace\""), || text.clone())?;
    Ok(Verdict::told("run_started is in /workspace"))
}

/// A turn that cannot be: its answer, and what is stored of it.
async fn fails(stage: &Stage, agent: &str) -> Stopped {
    stage.red_may_change();
    let answer: Answer = stage.talk("red-member", agent, "go").await?;
    let mut told = answer.body.clone();
    let session = answer.value()?["session"].as_str().map(str::to_owned);
    for path in ["/messages?full=true", "/receipts", "/events?follow=false"] {
        let Some(session) = &session else { break };
        let path = format!("/v1/sessions/{session}{path}");
        told.push_str(&stage.caller("red-member").send(&get(&path)).await?.body);
    }
    told.push_str(&streamed(stage, agent).await?);
    let grants = format!("/v1/grants?agent={agent}");
    told.push_str(&stage.caller("red-member").send(&get(&grants)).await?.body);
    Ok(Verdict::told(told))
}

async fn broken(stage: &Stage) -> Stopped {
    fails(stage, "broken").await
}

async fn missing_mount(stage: &Stage) -> Stopped {
    fails(stage, "lost").await
}

async fn key_file(stage: &Stage) -> Stopped {
    let told = fails(stage, "keyed").await?;
    let about = told.told.contains("key file") || told.told.contains("key");
    check(about, || told.told.clone())?;
    Ok(Verdict::told(format!("key file: {}", told.told)))
}

async fn unknown_agent(stage: &Stage) -> Stopped {
    fails(stage, "nobody").await
}

async fn preview(stage: &Stage) -> Stopped {
    let body = json!({ "agent": "reader", "text": "go" });
    let answer = stage.caller("red-member").send(&ask("POST", "/v1/preview").json(&body)).await?;
    let request: Value = answer.value()?["request"].clone();
    check(answer.status == 200 && request.is_object(), || answer.body.clone())?;
    Ok(Verdict::told(answer.body))
}
