//! A tenant that is removed and made again, and a server that is started again.

use anyhow::Result;
use serde_json::json;

use super::super::client::{Client, ask, get};
use super::super::stage::Stage;
use super::{Row, check, refused, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-remade-files",
        "takes the name of a removed tenant to get at its agents and files",
        "directories under ids (INV-123)",
        "agents",
        files
    ),
    row!(
        "server-remade-questions",
        "takes the name of a removed tenant to see what its agents ask",
        "open tenants under ids (INV-123)",
        "questions",
        questions
    ),
    row!(
        "server-remade-sessions",
        "takes the name of a removed tenant to read its sessions and log",
        "rows go with their tenant (INV-50)",
        "not-found",
        sessions
    ),
    row!(
        "server-remade-old-key",
        "uses a key of the removed tenant with the next one",
        "keys go with their tenant (INV-88)",
        "no-key",
        old_key
    ),
    row!(
        "server-remade-purged",
        "looks for files that were purged",
        "a purge takes the whole directory (INV-123)",
        "nothing is left",
        purged
    ),
    row!(
        "server-restart-keys",
        "uses a revoked key after the server was started again",
        "what is revoked is stored (INV-88)",
        "no-key",
        restart_keys
    ),
    row!(
        "server-restart-turn",
        "cuts the power to get at a turn of blue's at the next start",
        "a turn is its tenant's after a restart too (INV-94)",
        "not-found",
        restart_turn
    ),
];

/// A tenant that was furnished and used, and is removed and made again: the session of the first,
/// its key, and a caller of the second.
struct Remade {
    session: String,
    old: Client,
    next: Client,
}

async fn remade(stage: &Stage, agent: &str, until: &str) -> Result<Remade> {
    stage.belljar(&["tenants", "add", "grey"]).await?;
    stage.furnish("grey").await?;
    let old = stage.with_key(Some(&stage.new_key("grey", "admin").await?));
    let body = json!({ "agent": agent, "text": "go", "stream": true });
    let mut wire = old.open(&ask("POST", "/v1/chat").json(&body)).await?;
    let text = wire.until(until).await?;
    let session = text.split("\"session\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let session = session.unwrap_or_default().to_owned();
    stage.belljar(&["tenants", "rm", "grey", "--yes"]).await?;
    stage.belljar(&["tenants", "add", "grey"]).await?;
    let next = stage.with_key(Some(&stage.new_key("grey", "admin").await?));
    Ok(Remade { session, old, next })
}

async fn gone(stage: &Stage) -> Result<()> {
    stage.belljar(&["tenants", "rm", "grey", "--yes"]).await.map(drop)
}

async fn files(stage: &Stage) -> Stopped {
    let Remade { next, .. } = remade(stage, "teller", "event: done").await?;
    let agents = next.send(&get("/v1/agents")).await?;
    let grants = next.send(&get("/v1/grants?agent=asker")).await?;
    let [_, workspace] = stage.directories("grey").await?;
    let left = std::fs::read_dir(&workspace)?.count();
    gone(stage).await?;
    check(agents.status == 200 && !agents.body.contains("hanger"), || agents.body.clone())?;
    check(grants.status == 404, || grants.body.clone())?;
    check(left == 0, || "its workspace is not empty".to_owned())?;
    Ok(Verdict::told(agents.body))
}

async fn questions(stage: &Stage) -> Stopped {
    let Remade { next, session, .. } = remade(stage, "asker", "permission_asked").await?;
    let open = next.send(&get("/v1/questions")).await?;
    let running = next.send(&get("/v1/running")).await?;
    gone(stage).await?;
    let both = format!("{}{}", open.body, running.body);
    check(!both.contains(&session) && !both.contains("note.txt"), || both.clone())?;
    Ok(Verdict::told(both))
}

async fn sessions(stage: &Stage) -> Stopped {
    let Remade { next, session, .. } = remade(stage, "teller", "event: done").await?;
    let log = next.send(&get("/v1/audit?limit=200")).await?;
    let read = next.send(&get(&format!("/v1/sessions/{session}"))).await?;
    gone(stage).await?;
    check(!log.body.contains(&session), || log.body.clone())?;
    refused(read, 404)
}

async fn old_key(stage: &Stage) -> Stopped {
    let Remade { old, .. } = remade(stage, "teller", "event: done").await?;
    let answer = old.send(&get("/v1/sessions")).await?;
    gone(stage).await?;
    refused(answer, 401)
}

async fn purged(stage: &Stage) -> Stopped {
    stage.belljar(&["tenants", "add", "grey"]).await?;
    stage.furnish("grey").await?;
    let own = stage.directories("grey").await?;
    stage.belljar(&["tenants", "rm", "grey", "--yes", "--purge"]).await?;
    check(own.iter().all(|own| !own.exists()), || "a directory is still there".to_owned())?;
    let [_, blue] = stage.directories("blue").await?;
    check(blue.join("note.txt").exists(), || "blue's files are gone".to_owned())?;
    Ok(Verdict::told("nothing is left"))
}

async fn restart_keys(stage: &Stage) -> Stopped {
    let mut own = stage.another().await?;
    let key = own.key("red-admin")?.to_owned();
    own.belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    own.kill().await?;
    own.serve().await?;
    let answer = own.with_key(Some(&key)).send(&get("/v1/sessions")).await?;
    own.close().await?;
    refused(answer, 401)
}

async fn restart_turn(stage: &Stage) -> Stopped {
    let mut own = stage.another().await?;
    let body = json!({ "agent": "hanger", "text": "go", "stream": true });
    let mut wire = own.caller("blue-member").open(&ask("POST", "/v1/chat").json(&body)).await?;
    let text = wire.until("thinking").await?;
    let session = text.split("\"session\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/v1/sessions/{}", session.unwrap_or_default());
    own.kill().await?;
    own.serve().await?;
    let theirs = own.caller("red-admin").send(&get(&path)).await?;
    let blues = own.caller("blue-member").send(&get(&path)).await?;
    own.close().await?;
    check(blues.status == 200, || format!("blue lost it: {}", blues.body))?;
    refused(theirs, 404)
}
