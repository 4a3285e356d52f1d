//! Attacks by several subjects of one issuer in one tenant: with each other's states, and by their number.

use serde_json::{Value, json};

use super::mcp::{
    allowed_call, check_refused, elicitation_capability, newer_message, older_message, read_params,
    request_state, send_message,
};
use super::tokens::IssuerScene;
use super::{Row, escape_unless, row};
use crate::attack::{Stopped, Verdict};
use crate::server::stage::ServerStage;

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

/// The number of subjects.
const SUBJECTS: usize = 300;

fn team_token(scene: &IssuerScene, subject: &str) -> String {
    let mut claims = scene.subject_claims(subject);
    claims["team"] = json!("red");
    scene.issue_token(&claims)
}

/// Attack `server-token-state-of-another`: the attacker brings a state that was given to another subject of
/// its issuer and tenant.
async fn state_of_another(stage: &ServerStage) -> Stopped {
    let scene = IssuerScene::new(stage).await?;
    let rita = scene.client_with_token(&scene.issue_token(&scene.subject_claims("rita")));
    let rob = scene.client_with_token(&team_token(&scene, "rob"));
    let own = send_message(
        &rob,
        &newer_message("tools/call", read_params("note.txt"), elicitation_capability()),
    )
    .await?;
    escape_unless(own["result"]["requestState"].is_string(), || {
        format!("rob is not asked: {own}")
    })?;
    let given = request_state(&rita).await?;
    let verdict = check_refused(&send_message(&rob, &allowed_call("note.txt", &given)).await?)?;
    let answer = send_message(&rita, &allowed_call("note.txt", &given)).await?;
    escape_unless(answer.to_string().contains("red's own words"), || format!("its own: {answer}"))?;
    scene.close_checked().await?;
    Ok(verdict)
}

fn initialize_message() -> Value {
    let client = json!({"name": "prove", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// Attack `server-token-sessions`: the attacker begins sessions of MCP as three hundred subjects of one
/// tenant.
async fn many_sessions(stage: &ServerStage) -> Stopped {
    let scene = IssuerScene::new(stage).await?;
    let mut told = String::new();
    let mut begun = 0;
    for number in 0..SUBJECTS {
        let client = scene.client_with_token(&team_token(&scene, &format!("subject-{number}")));
        let answer = client.send(&older_message("POST", None, &initialize_message())).await?;
        match answer.status {
            200 => begun += 1,
            429 => told = answer.body,
            _ => escape_unless(false, || format!("{}: {}", answer.status, answer.body))?,
        }
    }
    escape_unless(begun == 256, || format!("{begun} sessions were begun"))?;
    let blue =
        scene.neighbour_client().send(&older_message("POST", None, &initialize_message())).await?;
    escape_unless(blue.status == 200, || format!("the neighbour: {}", blue.body))?;
    scene.close_checked().await?;
    Ok(Verdict::with_words(told))
}
