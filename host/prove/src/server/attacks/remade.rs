//! Attacks with a tenant that was removed and made again, and with a server that was restarted.

use anyhow::Result;
use serde_json::json;

use super::super::client::{ServerClient, get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, check_refused, escape_unless, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-remade-files",
        "takes the name of a removed tenant to get at its agents and files",
        "directories under ids (INV-123)",
        "agents",
        inherit_files
    ),
    row!(
        "server-remade-questions",
        "takes the name of a removed tenant to see what its agents ask",
        "open tenants under ids (INV-123)",
        "questions",
        inherit_questions
    ),
    row!(
        "server-remade-sessions",
        "takes the name of a removed tenant to read its sessions and log",
        "rows go with their tenant (INV-50)",
        "not-found",
        inherit_sessions
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
        search_purged_files
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

/// A tenant that was used, removed and made again: a session of the first one, a client with its key, and a
/// client of the second one.
struct RemadeTenant {
    session: String,
    old: ServerClient,
    next: ServerClient,
}

/// Makes the tenant `grey`, begins a turn, waits until the stream contains `until`, and then removes the
/// tenant and makes it again.
async fn remake_tenant(stage: &ServerStage, agent: &str, until: &str) -> Result<RemadeTenant> {
    stage.run_belljar(&["tenants", "add", "grey"]).await?;
    stage.furnish_tenant("grey").await?;
    let old = stage.with_key(Some(&stage.new_key("grey", "admin").await?));
    let body = json!({ "agent": agent, "text": "go", "stream": true });
    let mut wire = old.send_open(&new_request("POST", "/v1/chat").with_json(&body)).await?;
    let text = wire.read_until(until).await?;
    let session = text.split("\"session\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let session = session.unwrap_or_default().to_owned();
    stage.run_belljar(&["tenants", "rm", "grey", "--yes"]).await?;
    stage.run_belljar(&["tenants", "add", "grey"]).await?;
    let next = stage.with_key(Some(&stage.new_key("grey", "admin").await?));
    Ok(RemadeTenant { session, old, next })
}

async fn remove_tenant(stage: &ServerStage) -> Result<()> {
    stage.run_belljar(&["tenants", "rm", "grey", "--yes"]).await.map(drop)
}

/// Attack `server-remade-files`: the attacker takes the name of a removed tenant to get at its agents and
/// files.
async fn inherit_files(stage: &ServerStage) -> Stopped {
    let RemadeTenant { next, .. } = remake_tenant(stage, "teller", "event: done").await?;
    let agents = next.send(&get_request("/v1/agents")).await?;
    let grants = next.send(&get_request("/v1/grants?agent=asker")).await?;
    let [_, workspace] = stage.tenant_directories("grey").await?;
    let left = std::fs::read_dir(&workspace)?.count();
    remove_tenant(stage).await?;
    escape_unless(agents.status == 200 && !agents.body.contains("hanger"), || agents.body.clone())?;
    escape_unless(grants.status == 404, || grants.body.clone())?;
    escape_unless(left == 0, || "its workspace is not empty".to_owned())?;
    Ok(Verdict::with_words(agents.body))
}

/// Attack `server-remade-questions`: the attacker takes the name of a removed tenant to see what its agents
/// ask.
async fn inherit_questions(stage: &ServerStage) -> Stopped {
    let RemadeTenant { next, session, .. } =
        remake_tenant(stage, "asker", "permission_asked").await?;
    let open = next.send(&get_request("/v1/questions")).await?;
    let running = next.send(&get_request("/v1/running")).await?;
    remove_tenant(stage).await?;
    let both = format!("{}{}", open.body, running.body);
    escape_unless(!both.contains(&session) && !both.contains("note.txt"), || both.clone())?;
    Ok(Verdict::with_words(both))
}

/// Attack `server-remade-sessions`: the attacker takes the name of a removed tenant to read its sessions and
/// log.
async fn inherit_sessions(stage: &ServerStage) -> Stopped {
    let RemadeTenant { next, session, .. } = remake_tenant(stage, "teller", "event: done").await?;
    let log = next.send(&get_request("/v1/audit?limit=200")).await?;
    let read = next.send(&get_request(&format!("/v1/sessions/{session}"))).await?;
    remove_tenant(stage).await?;
    escape_unless(!log.body.contains(&session), || log.body.clone())?;
    check_refused(read, 404)
}

/// Attack `server-remade-old-key`: the attacker uses a key of the removed tenant with the next one.
async fn old_key(stage: &ServerStage) -> Stopped {
    let RemadeTenant { old, .. } = remake_tenant(stage, "teller", "event: done").await?;
    let answer = old.send(&get_request("/v1/sessions")).await?;
    remove_tenant(stage).await?;
    check_refused(answer, 401)
}

/// Attack `server-remade-purged`: the attacker looks for files that were purged.
async fn search_purged_files(stage: &ServerStage) -> Stopped {
    stage.run_belljar(&["tenants", "add", "grey"]).await?;
    stage.furnish_tenant("grey").await?;
    let own = stage.tenant_directories("grey").await?;
    stage.run_belljar(&["tenants", "rm", "grey", "--yes", "--purge"]).await?;
    escape_unless(own.iter().all(|own| !own.exists()), || "a directory is still there".to_owned())?;
    let [_, blue] = stage.tenant_directories("blue").await?;
    escape_unless(blue.join("note.txt").exists(), || "blue's files are gone".to_owned())?;
    Ok(Verdict::with_words("nothing is left"))
}

/// Attack `server-restart-keys`: the attacker uses a revoked key after the server was started again.
async fn restart_keys(stage: &ServerStage) -> Stopped {
    let mut own = stage.start_another().await?;
    let key = own.api_key("red-admin")?.to_owned();
    own.run_belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    own.kill_server().await?;
    own.start_server().await?;
    let answer = own.with_key(Some(&key)).send(&get_request("/v1/sessions")).await?;
    own.close().await?;
    check_refused(answer, 401)
}

/// Attack `server-restart-turn`: the attacker cuts the power to get at a turn of blue's at the next start.
async fn restart_turn(stage: &ServerStage) -> Stopped {
    let mut own = stage.start_another().await?;
    let body = json!({ "agent": "hanger", "text": "go", "stream": true });
    let mut wire = own
        .client_for("blue-member")
        .send_open(&new_request("POST", "/v1/chat").with_json(&body))
        .await?;
    let text = wire.read_until("thinking").await?;
    let session = text.split("\"session\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/v1/sessions/{}", session.unwrap_or_default());
    own.kill_server().await?;
    own.start_server().await?;
    let theirs = own.client_for("red-admin").send(&get_request(&path)).await?;
    let blues = own.client_for("blue-member").send(&get_request(&path)).await?;
    own.close().await?;
    escape_unless(blues.status == 200, || format!("blue lost it: {}", blues.body))?;
    check_refused(theirs, 404)
}
