//! Attacks by misleading texts: restrictions that a parser might not understand, and invalid UTF-16.

use super::attack_row;
use super::stage::LibraryStage;
use crate::attack::{Attack, Stopped};
use crate::peer::{LoopbackPeer, reply_script};

const BLOCKED: &str = "a restriction that is not understood blocks its agent (INV-450)";

const WHOLE: &str = "half a pair is U+FFFD, and the answer is read on (INV-470)";

/// A model's transcript that tries to write a file.
const WRITES: &str = "transcript: 1\nagents:\n  - agent: guest\n    turns:\n      - calls: \
    [{name: file_write, arguments: {path: owned.txt, content: x}}]\n      - say: Done.\n";

/// A model's answer with half a surrogate pair in its text.
const HALF: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"cut \\ud83d here\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

pub(super) const ATTACKS: &[Attack<LibraryStage>] = &[
    attack_row(
        "libraries-words-in-a-list",
        "restricts its tools with words that nobody understands, and writes",
        BLOCKED,
        "cannot be kept",
        false,
        |stage| {
            Box::pin(
                async move { run_restricted(stage, "tools: All tools unless they write").await },
            )
        },
    ),
    attack_row(
        "libraries-words-in-a-denial",
        "denies a tool whose name is misspelt, and calls it",
        BLOCKED,
        "is no tool that is known here",
        false,
        |stage| Box::pin(async move { run_restricted(stage, "disallowedTools: Wrte").await }),
    ),
    attack_row(
        "libraries-model-half-a-surrogate-pair",
        "runs a model whose answer has half a surrogate pair, so that nobody reads it to its end",
        WHOLE,
        "cut \u{fffd} here",
        false,
        |stage| {
            Box::pin(async move {
                let stream = [("content-type", "text/event-stream")];
                let peer = LoopbackPeer::start(reply_script("200 OK", &stream, HALF)).await?;
                let settings = format!(
                    "[models.main]\nkind = 'openai'\nbase_url = '{}/v1'\nmodel = 'm'\n",
                    peer.grant_rule()
                );
                stage.write_file("home/belljar.toml", settings)?;
                stage.write_file("home/agents/guest.md", GUEST)?;
                stage.expect_success(&["run", "--no-save", "--agent", "guest", "go"]).await
            })
        },
    ),
];

const GUEST: &str = "---\nname: guest\ndescription: d\ntools: []\n---\nRead.\n";

/// Makes 2 attacks, for example `libraries-words-in-a-list`: the attacker restricts its tools with words that
/// nobody understands, and writes.
async fn run_restricted(stage: &LibraryStage, words: &str) -> Stopped {
    let script = stage.write_file("home/script.yaml", WRITES)?;
    let script = script.to_string_lossy();
    let text = GUEST.replace("tools: []", words);
    stage.write_file("home/agents/guest.md", text)?;
    stage.expect_blocked(&["run", "--agent", "guest", "--transcript", &script, "go"]).await
}
