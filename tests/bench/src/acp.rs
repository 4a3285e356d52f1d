//! An editor's prompt: how long until the first word of the answer is there, with a model that takes no
//! time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::measure::{median, millis};
use crate::report::Row;

/// Prompts in one session: a past of some length, and no more.
const IN_A_SESSION: usize = 20;

/// The two ends of an agent.
struct Editor {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    asked: u64,
}

pub(crate) fn row(binary: &Path, times: usize) -> anyhow::Result<Row> {
    let home = tempfile::tempdir()?;
    let settings =
        "[models.bench]\nkind = 'scripted'\nmodel = 'script.yaml'\n[roles]\nmain = 'bench'\n";
    std::fs::write(home.path().join("belljar.toml"), settings)?;
    std::fs::create_dir(home.path().join("agents"))?;
    let agent = "---\nname: clerk\ndescription: Answers.\ntools: []\n---\nAnswer.\n";
    std::fs::write(home.path().join("agents/clerk.md"), agent)?;
    let script = "      - say: Here.\n".repeat(times + 2);
    let script = format!("transcript: 1\nagents:\n  - agent: clerk\n    turns:\n{script}");
    std::fs::write(home.path().join("script.yaml"), script)?;
    let workspace = tempfile::tempdir()?;
    let mut child = Command::new(binary)
        .args(["-q", "acp", "--agent", "clerk"])
        .env("BELLJAR_HOME", home.path())
        .current_dir(workspace.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdin = child.stdin.take().context("no input")?;
    let stdout = BufReader::new(child.stdout.take().context("no output")?);
    let mut editor = Editor { stdin, stdout, asked: 0 };
    let (firsts, pings) = editor.prompts(&workspace.path().canonicalize()?, times)?;
    drop(editor);
    child.wait()?;
    let mut sorted = firsts.clone();
    sorted.sort_unstable();
    let late = sorted.get(sorted.len() * 99 / 100).copied().unwrap_or_default();
    let middle = median(firsts);
    Ok(Row::new("ACP: a prompt until its first word, scripted model", millis(middle))
        .against("session/list", millis(median(pings)))
        .verdict(format!("p99 {}", millis(late)), "10 ms"))
}

impl Editor {
    fn prompts(
        &mut self,
        workspace: &Path,
        times: usize,
    ) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
        self.call("initialize", &json!({"protocolVersion": 1}))?;
        let place = json!({"cwd": workspace, "mcpServers": []});
        let (mut firsts, mut pings) = (Vec::new(), Vec::new());
        let mut session = Value::Null;
        for n in 0..=times {
            if n % IN_A_SESSION == 0 {
                session = self.call("session/new", &place)?.0["sessionId"].clone();
            }
            let prompt = json!([{"type": "text", "text": "where?"}]);
            let prompt = json!({"sessionId": session, "prompt": prompt});
            let began = Instant::now();
            let (_, first) = self.call("session/prompt", &prompt)?;
            // The first one reads what the others find.
            if n > 0 {
                firsts.push(first.context("no word came")?.duration_since(began));
            }
            let began = Instant::now();
            self.call("session/list", &json!({}))?;
            pings.push(began.elapsed());
        }
        Ok((firsts, pings))
    }

    /// The result of a request, and when the first word came.
    fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<(Value, Option<Instant>)> {
        self.asked += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        writeln!(self.stdin, "{line}")?;
        let mut first = None;
        loop {
            let mut line = String::new();
            ensure!(self.stdout.read_line(&mut line)? > 0, "the agent has ended");
            if first.is_none() && line.contains("\"agent_message_chunk\"") {
                first = Some(Instant::now());
            }
            let mut line: Value = serde_json::from_str(&line)?;
            if line["id"] == self.asked {
                ensure!(line.get("error").is_none(), "{line}");
                return Ok((line["result"].take(), first));
            }
        }
    }
}
