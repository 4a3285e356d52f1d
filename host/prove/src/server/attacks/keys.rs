//! Keys: none, wrong ones, revoked ones, and those that are not enough.

use serde_json::json;

use super::super::client::{ask, get};
use super::super::stage::Stage;
use super::{Row, asked, check, refused, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-key-none",
        "asks without a key",
        "the gate of each route (INV-86)",
        "no-key",
        none
    ),
    row!(
        "server-key-unknown",
        "presents a key that was never made",
        "the gate of each route (INV-86)",
        "no-key",
        unknown
    ),
    row!(
        "server-key-of-another",
        "joins the id of blue's key to the secret of its own",
        "digests compared in constant time (INV-88)",
        "no-key",
        mixed
    ),
    row!(
        "server-key-revoked",
        "uses a key after it was revoked",
        "each request looks its key up (INV-88)",
        "no-key",
        revoked
    ),
    row!(
        "server-key-of-a-disabled-tenant",
        "uses a key of a tenant that was disabled",
        "each request looks its tenant up (INV-88)",
        "no-key",
        disabled
    ),
    row!(
        "server-key-basic",
        "sends its key as a password",
        "keys are read in one form (INV-86)",
        "no-key",
        basic
    ),
    row!(
        "server-key-twice",
        "sends two keys, of which the second is good",
        "keys are read in one form (INV-86)",
        "no-key",
        twice
    ),
    row!(
        "server-key-in-the-query",
        "sends its key where logs keep it",
        "keys are read in one form (INV-86)",
        "no-key",
        query
    ),
    row!(
        "server-key-shortened",
        "presents all but the last letter of its key",
        "digests compared in constant time (INV-88)",
        "no-key",
        shortened
    ),
    row!(
        "server-key-guessing",
        "tries keys until one opens",
        "keys a minute of one address (INV-99)",
        "too-many",
        guessing
    ),
    row!(
        "server-reader-talks",
        "begins a turn with a key that may look",
        "the scope of each route (INV-86)",
        "scope",
        reader_talks
    ),
    row!(
        "server-reader-deletes",
        "deletes a session with a key that may look",
        "the scope of each route (INV-86)",
        "scope",
        reader_deletes
    ),
    row!(
        "server-reader-cancels",
        "cancels a turn with a key that may look",
        "the scope of each route (INV-86)",
        "scope",
        reader_cancels
    ),
    row!(
        "server-reader-answers",
        "answers a question with a key that may look",
        "the scope of each route (INV-86)",
        "scope",
        reader_answers
    ),
    row!(
        "server-reader-talks-on-a-socket",
        "begins a turn on a WebSocket with a key that may look",
        "the scope of each message (INV-86)",
        "scope",
        reader_socket
    ),
    row!(
        "server-member-reads-the-log",
        "reads the audit log with a member's key",
        "the scope of each route (INV-86)",
        "scope",
        member_log
    ),
    row!(
        "server-member-makes-an-agent",
        "makes an agent with a member's key",
        "the scope of each route (INV-86)",
        "scope",
        member_agent
    ),
    row!(
        "server-member-deletes-all",
        "deletes all sessions with a member's key",
        "the scope of each route (INV-86)",
        "scope",
        member_deletes
    ),
    row!(
        "server-admin-reads-the-host",
        "reads the counters of the whole host with a tenant's admin key",
        "the scope of each route (INV-86)",
        "scope",
        admin_metrics
    ),
    row!(
        "server-last-key-revoked",
        "calls without a key after the last key was revoked",
        "a server that had a key stays shut (INV-110)",
        "no-key",
        last_key
    ),
    row!(
        "server-last-tenant-removed",
        "calls without a key after the tenant with the last key was removed",
        "a server that had a key stays shut (INV-110)",
        "no-key",
        last_tenant
    ),
];

async fn none(stage: &Stage) -> Stopped {
    asked(stage, "", get("/v1/sessions"), 401).await
}

async fn with(stage: &Stage, key: &str) -> Stopped {
    refused(stage.with_key(Some(key)).send(&get("/v1/sessions")).await?, 401)
}

async fn unknown(stage: &Stage) -> Stopped {
    with(stage, &format!("bj_{}_{}", "0".repeat(16), "A".repeat(43))).await
}

async fn mixed(stage: &Stage) -> Stopped {
    let (own, other) = (stage.key("red-admin")?, stage.key("blue-admin")?);
    let id = other.get(..20).unwrap_or_default();
    with(stage, &format!("{id}{}", own.get(20..).unwrap_or_default())).await
}

async fn revoked(stage: &Stage) -> Stopped {
    let key = stage.new_key("red", "admin").await?;
    let client = stage.with_key(Some(&key));
    let before = client.send(&get("/v1/running")).await?;
    check(before.status == 200, || format!("it never opened: {}", before.body))?;
    stage.belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    with(stage, &key).await
}

async fn disabled(stage: &Stage) -> Stopped {
    stage.belljar(&["tenants", "add", "grey"]).await?;
    let key = stage.new_key("grey", "admin").await?;
    stage.belljar(&["tenants", "disable", "grey"]).await?;
    let told = with(stage, &key).await;
    stage.belljar(&["tenants", "rm", "grey", "--yes"]).await?;
    told
}

async fn basic(stage: &Stage) -> Stopped {
    let line = format!("authorization: Basic {}", stage.key("red-admin")?);
    asked(stage, "", get("/v1/sessions").line(line), 401).await
}

async fn twice(stage: &Stage) -> Stopped {
    let line = format!("authorization: Bearer {}", stage.key("red-admin")?);
    let ask = get("/v1/sessions").line("authorization: Bearer bj_x").line(line);
    asked(stage, "", ask, 401).await
}

async fn query(stage: &Stage) -> Stopped {
    let target = format!("/v1/sessions?key={}", stage.key("red-admin")?);
    asked(stage, "", get(&target), 401).await
}

async fn shortened(stage: &Stage) -> Stopped {
    let key = stage.key("red-admin")?;
    with(stage, key.get(..key.len().saturating_sub(1)).unwrap_or_default()).await
}

async fn guessing(stage: &Stage) -> Stopped {
    for number in 0..100_u32 {
        let key = format!("bj_{number:016x}_{}", "A".repeat(43));
        let answer = stage.with_key(Some(&key)).send(&get("/v1/sessions")).await?;
        check(answer.status != 200, || "a guessed key opens".to_owned())?;
    }
    // By now not even a good one is looked at.
    asked(stage, "red-admin", get("/v1/sessions"), 429).await
}

async fn reader_talks(stage: &Stage) -> Stopped {
    let body = json!({ "agent": "teller", "text": "tell" });
    asked(stage, "red-reader", ask("POST", "/v1/chat").json(&body), 403).await
}

async fn reader_deletes(stage: &Stage) -> Stopped {
    let path = format!("/v1/sessions/{}", stage.session("red")?);
    asked(stage, "red-reader", ask("DELETE", &path), 403).await
}

async fn reader_cancels(stage: &Stage) -> Stopped {
    let path = format!("/v1/sessions/{}/cancel", stage.session("red")?);
    asked(stage, "red-reader", ask("POST", &path).json(&json!({})), 403).await
}

async fn reader_answers(stage: &Stage) -> Stopped {
    let path = format!("/v1/sessions/{}/questions/1", stage.session("red")?);
    let body = json!({ "answer": "yes" });
    asked(stage, "red-reader", ask("POST", &path).json(&body), 403).await
}

async fn reader_socket(stage: &Stage) -> Stopped {
    let message = json!({ "type": "chat", "agent": "teller", "text": "tell" });
    Ok(Verdict::told(stage.caller("red-reader").on_socket(&message).await?))
}

async fn member_log(stage: &Stage) -> Stopped {
    asked(stage, "red-member", get("/v1/audit"), 403).await
}

async fn member_agent(stage: &Stage) -> Stopped {
    let body = json!({ "slug": "mine", "text": "---\nname: mine\n---\nHello.\n" });
    asked(stage, "red-member", ask("POST", "/v1/agents").json(&body), 403).await
}

async fn member_deletes(stage: &Stage) -> Stopped {
    asked(stage, "red-member", ask("DELETE", "/v1/sessions"), 403).await
}

async fn admin_metrics(stage: &Stage) -> Stopped {
    asked(stage, "red-admin", get("/metrics"), 403).await
}

async fn last_key(stage: &Stage) -> Stopped {
    let mut own = stage.another_bare()?;
    let key = own.new_key("local", "admin").await?;
    own.serve().await?;
    own.belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    let told = asked(&own, "", get("/v1/audit"), 401).await;
    own.close().await?;
    told
}

async fn last_tenant(stage: &Stage) -> Stopped {
    let mut own = stage.another_bare()?;
    own.belljar(&["tenants", "add", "red"]).await?;
    own.new_key("red", "admin").await?;
    own.serve().await?;
    own.belljar(&["tenants", "rm", "red", "--yes"]).await?;
    let told = asked(&own, "", ask("DELETE", "/v1/sessions"), 401).await;
    own.close().await?;
    told
}
