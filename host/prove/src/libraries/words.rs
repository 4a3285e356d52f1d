//! Words that are not what they seem: restrictions that nobody understands, and text that is none.

use super::row;
use super::stage::Stage;
use crate::attack::{Attack, Stopped};
use crate::peer::{Peer, reply};

const BLOCKED: &str = "a restriction that is not understood blocks its agent (INV-450)";

const WHOLE: &str = "half a pair is U+FFFD, and the answer is read on (INV-470)";

/// A model that writes a file where it can.
const WRITES: &str = "transcript: 1\nagents:\n  - agent: guest\n    turns:\n      - calls: \
    [{name: file_write, arguments: {path: owned.txt, content: x}}]\n      - say: Done.\n";

/// An answer with half a surrogate pair in its text.
const HALF: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"cut \\ud83d here\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

pub(super) const ATTACKS: &[Attack<Stage>] = &[
    row(
        "libraries-words-in-a-list",
        "restricts its tools with words that nobody understands, and writes",
        BLOCKED,
        "cannot be kept",
        false,
        |stage| {
            Box::pin(async move { restricted(stage, "tools: All tools unless they write").await })
        },
    ),
    row(
        "libraries-words-in-a-denial",
        "denies a tool whose name is misspelt, and calls it",
        BLOCKED,
        "is no tool that is known here",
        false,
        |stage| Box::pin(async move { restricted(stage, "disallowedTools: Wrte").await }),
    ),
    row(
        "libraries-model-half-a-surrogate-pair",
        "runs a model whose answer has half a surrogate pair, so that nobody reads it to its end",
        WHOLE,
        "cut \u{fffd} here",
        false,
        |stage| {
            Box::pin(async move {
                let stream = [("content-type", "text/event-stream")];
                let peer = Peer::start(reply("200 OK", &stream, HALF)).await?;
                let settings = format!(
                    "[models.main]\nkind = 'openai'\nbase_url = '{}/v1'\nmodel = 'm'\n",
                    peer.rule()
                );
                stage.put("home/belljar.toml", settings)?;
                stage.put("home/agents/guest.md", GUEST)?;
                stage.ends_well(&["run", "--no-save", "--agent", "guest", "go"]).await
            })
        },
    ),
];

const GUEST: &str = "---\nname: guest\ndescription: d\ntools: []\n---\nRead.\n";

async fn restricted(stage: &Stage, words: &str) -> Stopped {
    let script = stage.put("home/script.yaml", WRITES)?;
    let script = script.to_string_lossy();
    let text = GUEST.replace("tools: []", words);
    stage.put("home/agents/guest.md", text)?;
    stage.blocks(&["run", "--agent", "guest", "--transcript", &script, "go"]).await
}
