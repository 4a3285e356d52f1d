//! Attacks by an agent's tool on the server that runs it, and on others' files.

use super::super::client::get_request;
use super::super::stage::ServerStage;
use super::{Row, escape_unless, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-tool-own-listener",
        "has a tool that may reach every port of this machine ask the server itself",
        "belljar's own listeners are no address of a guest (INV-114)",
        "is_error",
        own_listener
    ),
    row!(
        "server-tool-other-files",
        "has a tool step back from its workspace to the store and the settings",
        "every path is resolved below its mount (INV-5)",
        "is_error",
        other_files
    ),
];

/// Runs an agent, and checks that each of its tool results is an error; returns them. `secrets` are texts
/// that no result may contain.
async fn all_fail(stage: &ServerStage, agent: &str, secrets: &[&str]) -> Stopped {
    stage.red_may_change();
    let answer = stage.send_chat("red-member", agent, "go").await?;
    escape_unless(answer.status == 200, || answer.body.clone())?;
    let session = answer.json_field("session")?;
    let path = format!("/v1/sessions/{session}/messages?full=true");
    let said = stage.client_for("red-member").send(&get_request(&path)).await?;
    escape_unless(said.body.contains("\"is_error\":true"), || said.body.clone())?;
    escape_unless(!said.body.contains("\"is_error\":false"), || said.body.clone())?;
    for secret in secrets {
        escape_unless(!said.body.contains(secret), || {
            format!("it learned `{secret}`: {}", said.body)
        })?;
    }
    Ok(Verdict::with_words(said.body))
}

/// Attack `server-tool-own-listener`: the attacker has a tool that may reach every port of this machine ask
/// the server itself.
async fn own_listener(stage: &ServerStage) -> Stopped {
    all_fail(stage, "fetcher", &["entries", "\"status\":\"ok\""]).await
}

/// Attack `server-tool-other-files`: the attacker has a tool step back from its workspace to the store and
/// the settings.
async fn other_files(stage: &ServerStage) -> Stopped {
    all_fail(stage, "reader", &["SQLite format", "kind = ", "key_file"]).await
}
