//! Subjects of one issuer in one tenant: what one does with another's, and what many take from others.

use serde_json::{Value, json};

use super::mcp::{allowed, elicits, newer, older, read, refused, said, state};
use super::tokens::Scene;
use super::{Row, check, row};
use crate::attack::{Stopped, Verdict};
use crate::server::stage::Stage;

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-token-state-of-another",
        "brings a state that was given to another subject of its issuer and tenant",
        "a state belongs to issuer and subject (INV-375)",
        "not valid here",
        state_of_another
    ),
    row!(
        "server-token-sessions",
        "begins sessions of MCP as three hundred subjects of one tenant",
        "a tenant has so many sessions of MCP (INV-383)",
        "this tenant has 256 sessions",
        many_sessions
    ),
];

/// Subjects that come.
const SUBJECTS: usize = 300;

fn of_team(scene: &Scene, subject: &str) -> String {
    let mut claims = scene.claims(subject);
    claims["team"] = json!("red");
    scene.token(&claims)
}

async fn state_of_another(stage: &Stage) -> Stopped {
    let scene = Scene::new(stage).await?;
    let rita = scene.client(&scene.token(&scene.claims("rita")));
    let rob = scene.client(&of_team(&scene, "rob"));
    let own = said(&rob, &newer("tools/call", read("note.txt"), elicits())).await?;
    check(own["result"]["requestState"].is_string(), || format!("rob is not asked: {own}"))?;
    let given = state(&rita).await?;
    let verdict = refused(&said(&rob, &allowed("note.txt", &given)).await?)?;
    let answer = said(&rita, &allowed("note.txt", &given)).await?;
    check(answer.to_string().contains("red's own words"), || format!("its own: {answer}"))?;
    scene.ends().await?;
    Ok(verdict)
}

fn initialize() -> Value {
    let client = json!({"name": "prove", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

async fn many_sessions(stage: &Stage) -> Stopped {
    let scene = Scene::new(stage).await?;
    let mut told = String::new();
    let mut begun = 0;
    for number in 0..SUBJECTS {
        let client = scene.client(&of_team(&scene, &format!("subject-{number}")));
        let answer = client.send(&older("POST", None, &initialize())).await?;
        match answer.status {
            200 => begun += 1,
            429 => told = answer.body,
            _ => check(false, || format!("{}: {}", answer.status, answer.body))?,
        }
    }
    check(begun == 256, || format!("{begun} sessions were begun"))?;
    let blue = scene.neighbour().send(&older("POST", None, &initialize())).await?;
    check(blue.status == 200, || format!("the neighbour: {}", blue.body))?;
    scene.ends().await?;
    Ok(Verdict::told(told))
}
