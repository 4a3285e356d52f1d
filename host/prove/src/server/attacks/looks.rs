//! Attacks by changed files whose comparison is as expensive as possible.

use std::time::{Duration, Instant};

use serde_json::json;

use super::super::client::{get_request, new_request};
use super::super::stage::ServerStage;
use super::{Row, escape_unless, row};
use crate::attack::{Stopped, Verdict};

/// The time within which a later message must be answered: less than one comparison may take.
const SOON: Duration = Duration::from_secs(15);

pub(super) const ATTACKS: &[Row] = &[
    row!(
        "server-look-worst-texts",
        "turns 4 MiB of lines around that are empty or one letter, and looks at the difference",
        "steps of a comparison (INV-410)",
        "\"replaced\":true",
        worst_texts
    ),
    row!(
        "server-looks-hung-up",
        "looks again and again with a key that may only read, and hangs up",
        "a look ends with its caller, and gives way to a message (INV-412)",
        "is answered",
        hung_up
    ),
    row!(
        "server-merge-worst-texts",
        "has 4 MiB of such lines merged with what changed in the workspace meanwhile",
        "steps of a comparison (INV-410)",
        "\"conflicts\":[{",
        merge_turned_file
    ),
];

/// A text just below the size from which on lines are not compared.
fn short_lines() -> String {
    let mut text = String::new();
    let mut at = 1_u64;
    while text.len() < (4 << 20) - 2 {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(if (at >> 60).is_multiple_of(2) { "\n" } else { "x\n" });
    }
    text
}

/// Starts a server with a session of red's in which an agent has reversed such a file; returns it with the
/// session's path.
async fn turn_file(stage: &ServerStage) -> anyhow::Result<(ServerStage, String)> {
    let own = stage.start_another().await?;
    let [_, workspace] = own.tenant_directories("red").await?;
    std::fs::write(workspace.join("big.txt"), short_lines())?;
    let answer = own.send_chat("red-member", "turner", "go").await?;
    let path = format!("/v1/sessions/{}", answer.json_field("session")?);
    Ok((own, path))
}

/// Attack `server-look-worst-texts`: the attacker turns 4 MiB of lines around that are empty or one letter,
/// and looks at the difference.
async fn worst_texts(stage: &ServerStage) -> Stopped {
    let (own, path) = turn_file(stage).await?;
    let answer =
        own.client_for("red-reader").send(&get_request(&format!("{path}/changes"))).await?;
    let blue = own.send_chat("blue-member", "teller", "tell").await?;
    own.close().await?;
    escape_unless(answer.status == 200, || answer.body.clone())?;
    escape_unless(blue.body.contains("Once upon"), || blue.body.clone())?;
    Ok(Verdict::with_words(answer.body))
}

/// Attack `server-merge-worst-texts`: the attacker has 4 MiB of such lines merged with what changed in the
/// workspace meanwhile.
async fn merge_turned_file(stage: &ServerStage) -> Stopped {
    let (own, path) = turn_file(stage).await?;
    let [_, workspace] = own.tenant_directories("red").await?;
    let big = workspace.join("big.txt");
    let meanwhile = format!("{}\nthe person's\n", short_lines());
    std::fs::write(&big, &meanwhile)?;
    let begun = Instant::now();
    let apply =
        new_request("POST", &format!("{path}/apply")).with_json(&json!({ "paths": ["big.txt"] }));
    let answer = own.client_for("red-member").send(&apply).await?;
    let took = begun.elapsed();
    let blue = own.send_chat("blue-member", "teller", "tell").await?;
    let kept = std::fs::read_to_string(&big)? == meanwhile;
    own.close().await?;
    escape_unless(answer.status == 200, || answer.body.clone())?;
    escape_unless(took < SOON, || format!("the apply took {took:?}"))?;
    escape_unless(kept, || "what the person wrote is gone".to_owned())?;
    escape_unless(blue.body.contains("Once upon"), || blue.body.clone())?;
    Ok(Verdict::with_words(answer.body))
}

/// Attack `server-looks-hung-up`: the attacker looks again and again with a key that may only read, and hangs
/// up.
async fn hung_up(stage: &ServerStage) -> Stopped {
    let (own, path) = turn_file(stage).await?;
    let look = get_request(&format!("{path}/changes?patch=true"));
    for _ in 0..24 {
        drop(own.client_for("red-reader").send_open(&look).await?);
    }
    let begun = Instant::now();
    let id = path.rsplit('/').next().unwrap_or_default();
    let body = json!({ "session": id, "text": "again" });
    let answer = own
        .client_for("red-member")
        .send(&new_request("POST", "/v1/chat").with_json(&body))
        .await?;
    let took = begun.elapsed();
    let blue = own.send_chat("blue-member", "teller", "tell").await?;
    own.close().await?;
    escape_unless(answer.status == 200, || answer.body.clone())?;
    escape_unless(took < SOON, || format!("the message waited {took:?}"))?;
    escape_unless(blue.body.contains("Once upon"), || blue.body.clone())?;
    Ok(Verdict::with_words("the message behind them is answered"))
}
