//! The audit log: silenced, filled, forged.

use serde_json::Value;

use super::super::client::{ask, get};
use super::super::stage::Stage;
use super::{Row, asked, audit, check, row};
use crate::attack::{Stopped, Verdict};

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-audit-silenced",
        "drowns the refusals of a member in requests of strangers",
        "strangers are counted apart (INV-122)",
        "10 of 10",
        silenced
    ),
    row!(
        "server-audit-filled",
        "fills the log with requests that need no key",
        "strangers are counted apart (INV-122)",
        "lines",
        filled
    ),
    row!(
        "server-audit-forged",
        "makes blue's key the actor of what it did not do",
        "an actor is a key whose secret was presented (INV-122)",
        "no-key",
        forged
    ),
    row!(
        "server-audit-of-a-revoked-key",
        "goes on under a key that was revoked, unseen",
        "a proven key is named (INV-122)",
        "it is named",
        revoked
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
        of_nothing
    ),
    row!(
        "server-audit-no-change",
        "changes and deletes lines of the log",
        "no route does (INV-91)",
        "method",
        no_change
    ),
];

fn refusals<'a>(lines: &'a [Value], key: &str) -> Vec<&'a Value> {
    let actor = format!("key:{}", key.get(3..19).unwrap_or_default());
    lines.iter().filter(|line| line["actor"] == actor && line["action"] == "refused").collect()
}

async fn silenced(stage: &Stage) -> Stopped {
    // A key of its own: its lines are told from those of other attacks.
    let key = stage.new_key("red", "read-only").await?;
    let member = stage.with_key(Some(&key));
    let path = format!("/v1/sessions/{}", stage.session("red")?);
    for _ in 0..10 {
        for _ in 0..30 {
            stage.caller("").send(&get("/v1/sessions").host("evil.test")).await?;
        }
        member.send(&ask("DELETE", &path)).await?;
    }
    let lines = audit(stage, "red-admin").await?;
    let found = refusals(&lines, &key).len();
    check(found == 10, || format!("{found} of 10 refusals are in the log"))?;
    Ok(Verdict::told("10 of 10 refusals are in the log"))
}

async fn filled(stage: &Stage) -> Stopped {
    let before = audit(stage, "operator").await?.first().map(Value::to_string);
    for _ in 0..300 {
        stage.caller("").send(&get("/v1/sessions").host("evil.test")).await?;
    }
    let lines = audit(stage, "operator").await?;
    let new = lines.iter().take_while(|line| Some(line.to_string()) != before).count();
    check(new <= 2, || format!("{new} lines more"))?;
    Ok(Verdict::told(format!("{new} lines more after 300 requests")))
}

async fn forged(stage: &Stage) -> Stopped {
    let (own, other) = (stage.key("red-admin")?, stage.key("blue-member")?);
    let before = refusals(&audit(stage, "blue-admin").await?, other).len();
    let mixed =
        format!("{}{}", other.get(..20).unwrap_or_default(), own.get(20..).unwrap_or_default());
    let mut told = String::new();
    for _ in 0..5 {
        told = stage.with_key(Some(&mixed)).send(&ask("DELETE", "/v1/sessions")).await?.body;
    }
    let lines = audit(stage, "blue-admin").await?;
    let after = refusals(&lines, other).len();
    check(after == before, || format!("{} lines name a key that was not there", after - before))?;
    Ok(Verdict::told(told))
}

async fn revoked(stage: &Stage) -> Stopped {
    let key = stage.new_key("red", "admin").await?;
    stage.belljar(&["keys", "revoke", key.get(3..19).unwrap_or_default()]).await?;
    let answer = stage.with_key(Some(&key)).send(&get("/v1/sessions")).await?;
    check(answer.status == 401, || answer.body.clone())?;
    let found = refusals(&audit(stage, "red-admin").await?, &key).len();
    check(found == 1, || format!("{found} lines name it"))?;
    Ok(Verdict::told("it is named in the log of its tenant"))
}

async fn lines_of_its_own(stage: &Stage) -> Stopped {
    let path = "/v1/sessions/x%0d%0a%1b%5b2J";
    stage.caller("red-reader").send(&ask("DELETE", path)).await?;
    let text = format!("{:?}", audit(stage, "red-admin").await?);
    check(!text.contains('\u{1b}') && !text.contains("\\u{1b}[2J"), || text.clone())?;
    Ok(Verdict::told("it stands there escaped"))
}

async fn of_nothing(stage: &Stage) -> Stopped {
    stage.red_may_change();
    let admin = stage.caller("red-admin");
    let text = "---\nname: same\ndescription: Is stored once.\n---\nBe brief.\n";
    let body = serde_json::json!({ "slug": "same", "text": text });
    let made = admin.send(&ask("POST", "/v1/agents").json(&body)).await?;
    let version = made.value()?["updated"].to_string();
    let before = audit(stage, "red-admin").await?.first().map(Value::to_string);
    for _ in 0..10 {
        let same = ask("PUT", "/v1/agents/same").line(format!("if-match: \"{version}\""));
        let answer = admin.send(&same.json(&serde_json::json!({ "text": text }))).await?;
        check(answer.status == 200, || format!("the same text: {}", answer.body))?;
    }
    let member = stage.caller("red-member");
    let path = format!("/v1/sessions/{}", stage.session("red")?);
    for what in ["cancel", "undo", "discard", "apply", "resume"] {
        for _ in 0..10 {
            let ask = ask("POST", &format!("{path}/{what}")).json(&serde_json::json!({}));
            let answer = member.send(&ask).await?;
            check(answer.status == 200, || format!("{what}: {}", answer.body))?;
        }
    }
    let lines = audit(stage, "red-admin").await?;
    let new = lines.iter().take_while(|line| Some(line.to_string()) != before).count();
    check(new == 0, || format!("{new} lines more"))?;
    admin.send(&ask("DELETE", "/v1/agents/same")).await?;
    Ok(Verdict::told("0 lines more after 60 calls"))
}

async fn no_change(stage: &Stage) -> Stopped {
    for verb in ["PUT", "POST", "PATCH"] {
        asked(stage, "red-admin", ask(verb, "/v1/audit"), 405).await?;
    }
    asked(stage, "red-admin", ask("DELETE", "/v1/audit"), 405).await
}
