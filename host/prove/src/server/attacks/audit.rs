//! Attacks on the audit log: to suppress, fill or forge lines.

use serde_json::Value;

use super::super::client::{get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, expect_refused, read_audit, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-audit-silenced",
        "drowns the refusals of a member in requests of strangers",
        "strangers are counted apart (INV-122)",
        "10 of 10",
        silence_audit
    ),
    row!(
        "server-audit-filled",
        "fills the log with requests that need no key",
        "strangers are counted apart (INV-122)",
        "lines",
        fill_audit
    ),
    row!(
        "server-audit-forged",
        "makes blue's key the actor of what it did not do",
        "an actor is a key whose secret was presented (INV-122)",
        "no-key",
        forge_actor
    ),
    row!(
        "server-audit-of-a-revoked-key",
        "goes on under a key that was revoked, unseen",
        "a proven key is named (INV-122)",
        "it is named",
        use_revoked_key
    ),
    row!(
        "server-audit-lines-of-its-own",
        "writes a line of its own into the log by a path",
        "text of a stranger is escaped (INV-15)",
        "escaped",
        lines_of_its_own
    ),
    row!(
        "server-audit-of-nothing",
        "fills the log with calls that change nothing",
        "a call that changes nothing leaves no line (INV-413)",
        "0 lines more",
        change_nothing
    ),
    row!(
        "server-audit-no-change",
        "changes and deletes lines of the log",
        "no route does (INV-91)",
        "method",
        no_change
    ),
];

fn list_refusals<'a>(lines: &'a [Value], key: &str) -> Vec<&'a Value> {
    let actor = format!("key:{}", key.get(3..19).unwrap_or_default());
    lines.iter().filter(|line| line["actor"] == actor && line["action"] == "refused").collect()
}

/// Attack `server-audit-silenced`: the attacker drowns the refusals of a member in requests of strangers.
async fn silence_audit(stage: &ServerStage) -> Stopped {
    // A new key, so its lines can be told from those of other attacks.
    let key = stage.new_key("red", "read-only").await?;
    let member = stage.with_key(Some(&key));
    let path = format!("/v1/sessions/{}", stage.session_id("red")?);
    for _ in 0..10 {
        for _ in 0..30 {
            stage.client_for("").send(&get_request("/v1/sessions").with_host("evil.test")).await?;
        }
        member.send(&new_request("DELETE", &path)).await?;
    }
    let lines = read_audit(stage, "red-admin").await?;
    let found = list_refusals(&lines, &key).len();
    escape_unless(found == 10, || format!("{found} of 10 refusals are in the log"))?;
    Ok(Verdict::with_words("10 of 10 refusals are in the log"))
}

/// Attack `server-audit-filled`: the attacker fills the log with requests that need no key.
async fn fill_audit(stage: &ServerStage) -> Stopped {
    let before = read_audit(stage, "operator").await?.first().map(Value::to_string);
    for _ in 0..300 {
        stage.client_for("").send(&get_request("/v1/sessions").with_host("evil.test")).await?;
    }
    let lines = read_audit(stage, "operator").await?;
    let new = lines.iter().take_while(|line| Some(line.to_string()) != before).count();
    escape_unless(new <= 2, || format!("{new} lines more"))?;
    Ok(Verdict::with_words(format!("{new} lines more after 300 requests")))
}

/// Attack `server-audit-forged`: the attacker makes blue's key the actor of what it did not do.
async fn forge_actor(stage: &ServerStage) -> Stopped {
    let (own, other) = (stage.api_key("red-admin")?, stage.api_key("blue-member")?);
    let before = list_refusals(&read_audit(stage, "blue-admin").await?, other).len();
    let mixed =
        format!("{}{}", other.get(..20).unwrap_or_default(), own.get(20..).unwrap_or_default());
    let mut told = String::new();
    for _ in 0..5 {
        told =
            stage.with_key(Some(&mixed)).send(&new_request("DELETE", "/v1/sessions")).await?.body;
    }
    let lines = read_audit(stage, "blue-admin").await?;
    let after = list_refusals(&lines, other).len();
    escape_unless(after == before, || {
        format!("{} lines name a key that was not there", after - before)
    })?;
    Ok(Verdict::with_words(told))
}

/// Attack `server-audit-of-a-revoked-key`: the attacker goes on under a key that was revoked, unseen.
async fn use_revoked_key(stage: &ServerStage) -> Stopped {
    let key = stage.new_key("red", "admin").await?;
    stage.run_belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    let answer = stage.with_key(Some(&key)).send(&get_request("/v1/sessions")).await?;
    escape_unless(answer.status == 401, || answer.body.clone())?;
    let found = list_refusals(&read_audit(stage, "red-admin").await?, &key).len();
    escape_unless(found == 1, || format!("{found} lines name it"))?;
    Ok(Verdict::with_words("it is named in the log of its tenant"))
}

/// Attack `server-audit-lines-of-its-own`: the attacker writes a line of its own into the log by a path.
async fn lines_of_its_own(stage: &ServerStage) -> Stopped {
    let path = "/v1/sessions/x%0d%0a%1b%5b2J";
    stage.client_for("red-reader").send(&new_request("DELETE", path)).await?;
    let text = format!("{:?}", read_audit(stage, "red-admin").await?);
    escape_unless(!text.contains('\u{1b}') && !text.contains("\\u{1b}[2J"), || text.clone())?;
    Ok(Verdict::with_words("it stands there escaped"))
}

/// Attack `server-audit-of-nothing`: the attacker fills the log with calls that change nothing.
async fn change_nothing(stage: &ServerStage) -> Stopped {
    stage.red_may_change();
    let admin = stage.client_for("red-admin");
    let text = "---\nname: same\ndescription: Is stored once.\n---\nBe brief.\n";
    let body = serde_json::json!({ "slug": "same", "text": text });
    let made = admin.send(&new_request("POST", "/v1/agents").with_json(&body)).await?;
    let version = made.json_body()?["updated"].to_string();
    let before = read_audit(stage, "red-admin").await?.first().map(Value::to_string);
    for _ in 0..10 {
        let same =
            new_request("PUT", "/v1/agents/same").with_line(format!("if-match: \"{version}\""));
        let answer = admin.send(&same.with_json(&serde_json::json!({ "text": text }))).await?;
        escape_unless(answer.status == 200, || format!("the same text: {}", answer.body))?;
    }
    let member = stage.client_for("red-member");
    let path = format!("/v1/sessions/{}", stage.session_id("red")?);
    for what in ["cancel", "undo", "discard", "apply", "resume"] {
        for _ in 0..10 {
            let ask =
                new_request("POST", &format!("{path}/{what}")).with_json(&serde_json::json!({}));
            let answer = member.send(&ask).await?;
            escape_unless(answer.status == 200, || format!("{what}: {}", answer.body))?;
        }
    }
    let lines = read_audit(stage, "red-admin").await?;
    let new = lines.iter().take_while(|line| Some(line.to_string()) != before).count();
    escape_unless(new == 0, || format!("{new} lines more"))?;
    admin.send(&new_request("DELETE", "/v1/agents/same")).await?;
    Ok(Verdict::with_words("0 lines more after 60 calls"))
}

/// Attack `server-audit-no-change`: the attacker changes and deletes lines of the log.
async fn no_change(stage: &ServerStage) -> Stopped {
    for verb in ["PUT", "POST", "PATCH"] {
        expect_refused(stage, "red-admin", new_request(verb, "/v1/audit"), 405).await?;
    }
    expect_refused(stage, "red-admin", new_request("DELETE", "/v1/audit"), 405).await
}
