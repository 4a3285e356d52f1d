//! The attacks on a server, by their target.

use anyhow::Result;
use serde_json::Value;

use super::client::{CallerRequest, ServerAnswer};
use super::stage::ServerStage;
use crate::attack::{Attack, Escape, Stopped, Verdict};

mod audit;
mod callers;
mod connections;
mod crossing;
mod guards;
mod keys;
mod looks;
mod mcp;
mod numbers;
mod openai;
mod paths;
mod remade;
mod resources;
mod subjects;
mod tokens;
mod tools;
mod turns;

/// A row of a table.
type Row = Attack<ServerStage>;

/// Every attack, in the order in which they are made.
pub(super) fn list_attacks() -> impl Iterator<Item = &'static Row> {
    let tables: [&[Row]; 17] = [
        keys::ATTACKS,
        crossing::ATTACKS,
        guards::ATTACKS,
        numbers::ATTACKS,
        audit::ATTACKS,
        looks::ATTACKS,
        paths::ATTACKS,
        turns::ATTACKS,
        tools::ATTACKS,
        openai::ATTACKS,
        callers::ATTACKS,
        mcp::ATTACKS,
        tokens::ATTACKS,
        subjects::ATTACKS,
        remade::ATTACKS,
        connections::ATTACKS,
        resources::ATTACKS,
    ];
    tables.into_iter().flatten()
}

/// Makes a row. `$by` names what stops the attack.
macro_rules! row {
    ($id:literal, $tries:literal, $by:literal, $told:literal, $run:expr) => {
        crate::attack::Attack {
            id: $id,
            kind: crate::attack::AttackKind::Server,
            tries: $tries,
            stopped_by: $by,
            told: $told,
            embedded: true,
            run: |stage| Box::pin($run(stage)),
        }
    };
}
use row;

/// Checks that the answer is a refusal with the given status; returns its text.
fn check_refused(answer: ServerAnswer, status: u16) -> Stopped {
    if answer.status == status {
        return Ok(Verdict::with_words(answer.body));
    }
    Err(Escape::new(format!("answered {}: {}", answer.status, answer.body)))
}

/// Sends a request with one of the stage's keys (`""` = without a key), and checks that it is refused.
async fn expect_refused(
    stage: &ServerStage,
    caller: &str,
    ask: CallerRequest,
    status: u16,
) -> Stopped {
    check_refused(stage.client_for(caller).send(&ask).await?, status)
}

/// Sends bytes that no well-behaved client sends, and checks that they are refused with one of these
/// statuses.
async fn expect_raw_refused(stage: &ServerStage, bytes: &str, statuses: &[u16]) -> Stopped {
    let host = stage.address().to_string();
    let key = stage.api_key("red-admin")?;
    let bytes = bytes.replace("HOST", &host).replace("KEY", key);
    let answer = stage.client_for("").send_raw(bytes.as_bytes()).await?;
    let head = format!("{} {}", answer.head, answer.body);
    match statuses.contains(&answer.status) {
        true => Ok(Verdict::with_words(head)),
        false => Err(Escape::new(head)),
    }
}

/// The lines of a tenant's audit log, newest first.
async fn read_audit(stage: &ServerStage, admin: &str) -> Result<Vec<Value>> {
    let answer =
        stage.client_for(admin).send(&super::client::get_request("/v1/audit?limit=200")).await?;
    let mut value = answer.json_body()?;
    Ok(value["entries"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

/// Returns an escape unless `holds` is true.
fn escape_unless(holds: bool, why: impl FnOnce() -> String) -> Result<(), Escape> {
    if holds { Ok(()) } else { Err(Escape::new(why())) }
}
