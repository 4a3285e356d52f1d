//! A tool of an agent that reaches for the server it runs in, and for files of others.

use super::super::client::get;
use super::super::stage::Stage;
use super::{Row, check, row};
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

/// Runs an agent, and gives what its tools returned. Each has to be an error.
async fn all_fail(stage: &Stage, agent: &str, secrets: &[&str]) -> Stopped {
    stage.red_may_change();
    let answer = stage.talk("red-member", agent, "go").await?;
    check(answer.status == 200, || answer.body.clone())?;
    let session = answer.field("session")?;
    let path = format!("/v1/sessions/{session}/messages?full=true");
    let said = stage.caller("red-member").send(&get(&path)).await?;
    check(said.body.contains("\"is_error\":true"), || said.body.clone())?;
    check(!said.body.contains("\"is_error\":false"), || said.body.clone())?;
    for secret in secrets {
        check(!said.body.contains(secret), || format!("it learned `{secret}`: {}", said.body))?;
    }
    Ok(Verdict::told(said.body))
}

async fn own_listener(stage: &Stage) -> Stopped {
    all_fail(stage, "fetcher", &["entries", "\"status\":\"ok\""]).await
}

async fn other_files(stage: &Stage) -> Stopped {
    all_fail(stage, "reader", &["SQLite format", "kind = ", "key_file"]).await
}
