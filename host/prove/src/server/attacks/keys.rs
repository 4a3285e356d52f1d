//! Attacks with missing, wrong and revoked keys, and with keys of too small a scope.

use serde_json::json;

use super::super::client::{get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, check_refused, escape_unless, expect_refused, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-key-none",
        "asks without a key",
        "the gate of each route (INV-86)",
        "no-key",
        send_no_key
    ),
    row!(
        "server-key-unknown",
        "presents a key that was never made",
        "the gate of each route (INV-86)",
        "no-key",
        send_unknown_key
    ),
    row!(
        "server-key-of-another",
        "joins the id of blue's key to the secret of its own",
        "digests compared in constant time (INV-88)",
        "no-key",
        send_mixed_key
    ),
    row!(
        "server-key-revoked",
        "uses a key after it was revoked",
        "each request looks its key up (INV-88)",
        "no-key",
        send_revoked_key
    ),
    row!(
        "server-key-of-a-disabled-tenant",
        "uses a key of a tenant that was disabled",
        "each request looks its tenant up (INV-88)",
        "no-key",
        send_disabled_key
    ),
    row!(
        "server-key-basic",
        "sends its key as a password",
        "keys are read in one form (INV-86)",
        "no-key",
        send_basic_key
    ),
    row!(
        "server-key-twice",
        "sends two keys, of which the second is good",
        "keys are read in one form (INV-86)",
        "no-key",
        send_two_keys
    ),
    row!(
        "server-key-in-the-query",
        "sends its key where logs keep it",
        "keys are read in one form (INV-86)",
        "no-key",
        send_query_key
    ),
    row!(
        "server-key-shortened",
        "presents all but the last letter of its key",
        "digests compared in constant time (INV-88)",
        "no-key",
        send_shortened_key
    ),
    row!(
        "server-key-guessing",
        "tries keys until one opens",
        "keys a minute of one address (INV-99)",
        "too-many",
        guess_keys
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

/// Attack `server-key-none`: the attacker asks without a key.
async fn send_no_key(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "", get_request("/v1/sessions"), 401).await
}

async fn expect_key_refused(stage: &ServerStage, key: &str) -> Stopped {
    check_refused(stage.with_key(Some(key)).send(&get_request("/v1/sessions")).await?, 401)
}

/// Attack `server-key-unknown`: the attacker presents a key that was never made.
async fn send_unknown_key(stage: &ServerStage) -> Stopped {
    expect_key_refused(stage, &format!("bj_{}_{}", "0".repeat(16), "A".repeat(43))).await
}

/// Attack `server-key-of-another`: the attacker joins the id of blue's key to the secret of its own.
async fn send_mixed_key(stage: &ServerStage) -> Stopped {
    let (own, other) = (stage.api_key("red-admin")?, stage.api_key("blue-admin")?);
    let id = other.get(..20).unwrap_or_default();
    expect_key_refused(stage, &format!("{id}{}", own.get(20..).unwrap_or_default())).await
}

/// Attack `server-key-revoked`: the attacker uses a key after it was revoked.
async fn send_revoked_key(stage: &ServerStage) -> Stopped {
    let key = stage.new_key("red", "admin").await?;
    let client = stage.with_key(Some(&key));
    let before = client.send(&get_request("/v1/running")).await?;
    escape_unless(before.status == 200, || format!("it never opened: {}", before.body))?;
    stage.run_belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    expect_key_refused(stage, &key).await
}

/// Attack `server-key-of-a-disabled-tenant`: the attacker uses a key of a tenant that was disabled.
async fn send_disabled_key(stage: &ServerStage) -> Stopped {
    stage.run_belljar(&["tenants", "add", "grey"]).await?;
    let key = stage.new_key("grey", "admin").await?;
    stage.run_belljar(&["tenants", "disable", "grey"]).await?;
    let told = expect_key_refused(stage, &key).await;
    stage.run_belljar(&["tenants", "rm", "grey", "--yes"]).await?;
    told
}

/// Attack `server-key-basic`: the attacker sends its key as a password.
async fn send_basic_key(stage: &ServerStage) -> Stopped {
    let line = format!("authorization: Basic {}", stage.api_key("red-admin")?);
    expect_refused(stage, "", get_request("/v1/sessions").with_line(line), 401).await
}

/// Attack `server-key-twice`: the attacker sends two keys, of which the second is good.
async fn send_two_keys(stage: &ServerStage) -> Stopped {
    let line = format!("authorization: Bearer {}", stage.api_key("red-admin")?);
    let ask = get_request("/v1/sessions").with_line("authorization: Bearer bj_x").with_line(line);
    expect_refused(stage, "", ask, 401).await
}

/// Attack `server-key-in-the-query`: the attacker sends its key where logs keep it.
async fn send_query_key(stage: &ServerStage) -> Stopped {
    let target = format!("/v1/sessions?key={}", stage.api_key("red-admin")?);
    expect_refused(stage, "", get_request(&target), 401).await
}

/// Attack `server-key-shortened`: the attacker presents all but the last letter of its key.
async fn send_shortened_key(stage: &ServerStage) -> Stopped {
    let key = stage.api_key("red-admin")?;
    expect_key_refused(stage, key.get(..key.len().saturating_sub(1)).unwrap_or_default()).await
}

/// Attack `server-key-guessing`: the attacker tries keys until one opens.
async fn guess_keys(stage: &ServerStage) -> Stopped {
    for number in 0..100_u32 {
        let key = format!("bj_{number:016x}_{}", "A".repeat(43));
        let answer = stage.with_key(Some(&key)).send(&get_request("/v1/sessions")).await?;
        escape_unless(answer.status != 200, || "a guessed key opens".to_owned())?;
    }
    // Now even a valid key is refused without a check.
    expect_refused(stage, "red-admin", get_request("/v1/sessions"), 429).await
}

/// Attack `server-reader-talks`: the attacker begins a turn with a key that may look.
async fn reader_talks(stage: &ServerStage) -> Stopped {
    let body = json!({ "agent": "teller", "text": "tell" });
    expect_refused(stage, "red-reader", new_request("POST", "/v1/chat").with_json(&body), 403).await
}

/// Attack `server-reader-deletes`: the attacker deletes a session with a key that may look.
async fn reader_deletes(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/{}", stage.session_id("red")?);
    expect_refused(stage, "red-reader", new_request("DELETE", &path), 403).await
}

/// Attack `server-reader-cancels`: the attacker cancels a turn with a key that may look.
async fn reader_cancels(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/{}/cancel", stage.session_id("red")?);
    expect_refused(stage, "red-reader", new_request("POST", &path).with_json(&json!({})), 403).await
}

/// Attack `server-reader-answers`: the attacker answers a question with a key that may look.
async fn reader_answers(stage: &ServerStage) -> Stopped {
    let path = format!("/v1/sessions/{}/questions/1", stage.session_id("red")?);
    let body = json!({ "answer": "yes" });
    expect_refused(stage, "red-reader", new_request("POST", &path).with_json(&body), 403).await
}

/// Attack `server-reader-talks-on-a-socket`: the attacker begins a turn on a WebSocket with a key that may
/// look.
async fn reader_socket(stage: &ServerStage) -> Stopped {
    let message = json!({ "type": "chat", "agent": "teller", "text": "tell" });
    Ok(Verdict::with_words(stage.client_for("red-reader").on_socket(&message).await?))
}

/// Attack `server-member-reads-the-log`: the attacker reads the audit log with a member's key.
async fn member_log(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "red-member", get_request("/v1/audit"), 403).await
}

/// Attack `server-member-makes-an-agent`: the attacker makes an agent with a member's key.
async fn member_agent(stage: &ServerStage) -> Stopped {
    let body = json!({ "slug": "mine", "text": "---\nname: mine\n---\nHello.\n" });
    expect_refused(stage, "red-member", new_request("POST", "/v1/agents").with_json(&body), 403)
        .await
}

/// Attack `server-member-deletes-all`: the attacker deletes all sessions with a member's key.
async fn member_deletes(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "red-member", new_request("DELETE", "/v1/sessions"), 403).await
}

/// Attack `server-admin-reads-the-host`: the attacker reads the counters of the whole host with a tenant's
/// admin key.
async fn admin_metrics(stage: &ServerStage) -> Stopped {
    expect_refused(stage, "red-admin", get_request("/metrics"), 403).await
}

/// Attack `server-last-key-revoked`: the attacker calls without a key after the last key was revoked.
async fn last_key(stage: &ServerStage) -> Stopped {
    let mut own = stage.another_bare()?;
    let key = own.new_key("local", "admin").await?;
    own.start_server().await?;
    own.run_belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    let told = expect_refused(&own, "", get_request("/v1/audit"), 401).await;
    own.close().await?;
    told
}

/// Attack `server-last-tenant-removed`: the attacker calls without a key after the tenant with the last key
/// was removed.
async fn last_tenant(stage: &ServerStage) -> Stopped {
    let mut own = stage.another_bare()?;
    own.run_belljar(&["tenants", "add", "red"]).await?;
    own.new_key("red", "admin").await?;
    own.start_server().await?;
    own.run_belljar(&["tenants", "rm", "red", "--yes"]).await?;
    let told = expect_refused(&own, "", new_request("DELETE", "/v1/sessions"), 401).await;
    own.close().await?;
    told
}
