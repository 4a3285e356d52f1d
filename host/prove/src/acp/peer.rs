//! A minimal editor for attacks: it sends lines, and sorts the lines that it receives.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// An editor with the `belljar acp` process that it talks to. Dropping the editor ends the process.
pub(super) struct EditorPeer {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    next: u64,
    /// Requests of the agent that the attack has not read yet.
    asked: VecDeque<Value>,
    answers: Vec<Value>,
    /// The agent's texts: each with the id of its session.
    words: Vec<(String, String)>,
}

impl EditorPeer {
    /// Starts `belljar acp` with its home, cache and directory, and sends `initialize`.
    pub(super) async fn start(
        program: &Path,
        home: &Path,
        cache: &Path,
        cwd: &Path,
    ) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["acp", "--agent", "clerk"])
            .env("BELLJAR_HOME", home)
            .env("BELLJAR_CACHE", cache)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("`belljar acp` does not start")?;
        let stdin = child.stdin.take().context("it has no input")?;
        let stdout = child.stdout.take().context("it has no output")?;
        let lines = BufReader::new(stdout).lines();
        let (asked, answers, words) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut peer = Self { child, stdin, lines, next: 1, asked, answers, words };
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {"subagents": {}}});
        peer.call_method("initialize", hello).await?;
        Ok(peer)
    }

    /// The resident memory of the process in bytes; `None` if it has ended, or if the system does not report
    /// it.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        crate::memory::process_resident_bytes(self.child.id()?)
    }

    /// Sends a line unchanged, even if it is no valid message.
    pub(super) async fn send_line(&mut self, line: &[u8]) -> Result<()> {
        self.stdin.write_all(line).await?;
        self.stdin.write_all(b"\n").await?;
        Ok(self.stdin.flush().await?)
    }

    /// Sends a request, and returns the request's id.
    pub(super) async fn send_request(&mut self, method: &str, params: Value) -> Result<u64> {
        let id = self.next;
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(request.to_string().as_bytes()).await?;
        Ok(id)
    }

    /// Sends a message that needs no answer.
    pub(super) async fn send_notification(&mut self, method: &str, params: Value) -> Result<()> {
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send_line(line.to_string().as_bytes()).await
    }

    /// Answers a question of the agent by one of its options.
    pub(super) async fn answer_question(&mut self, id: &Value, option: &str) -> Result<()> {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let line = json!({"jsonrpc": "2.0", "id": id, "result": outcome});
        self.send_line(line.to_string().as_bytes()).await
    }

    /// Reads lines until the answer to the request `id` arrives; returns the answer.
    pub(super) async fn read_answer(&mut self, id: u64) -> Result<Value> {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                return Ok(self.answers.remove(at));
            }
            self.read_line().await?;
        }
    }

    /// Sends a request, and returns its answer.
    pub(super) async fn call_method(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.send_request(method, params).await?;
        self.read_answer(id).await
    }

    /// Waits for the agent's next question.
    pub(super) async fn next_question(&mut self) -> Result<Value> {
        loop {
            if let Some(asked) = self.asked.pop_front() {
                return Ok(asked);
            }
            self.read_line().await?;
        }
    }

    /// All that the agent has written in a session.
    pub(super) fn session_text(&self, session: &str) -> String {
        let of = self.words.iter().filter(|(of, _)| of == session);
        of.map(|(_, text)| text.as_str()).collect()
    }

    /// Reads a line, and stores it as a request of the agent, as a text of the agent, or as an answer.
    async fn read_line(&mut self) -> Result<()> {
        let Some(line) = self.lines.next_line().await? else { bail!("the agent has ended") };
        let line: Value = serde_json::from_str(&line).context("the agent sent no JSON")?;
        match (line["method"].as_str(), line.get("id")) {
            (Some(_), Some(_)) => self.asked.push_back(line),
            (Some(_), None) => {
                let params = &line["params"];
                let text = params["update"]["content"]["text"].as_str();
                let words = params["update"]["sessionUpdate"] == "agent_message_chunk";
                if let Some(text) = text.filter(|_| words) {
                    let session = params["sessionId"].as_str().unwrap_or_default();
                    self.words.push((session.to_owned(), text.to_owned()));
                }
            }
            (None, _) => self.answers.push(line),
        }
        Ok(())
    }
}
