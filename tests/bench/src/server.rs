//! A real `belljar serve` with a scripted model, and a small HTTP client for it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

/// The turn that is measured: a parent with two steps that delegates to two children of
/// two steps and one tool call each.
const TRANSCRIPT: &str = r#"
transcript: 1
each_run: true
agents:
  - agent: boss
    turns:
      - calls: [{name: delegate_parallel, arguments: {tasks: [{agent: scout, task: left}, {agent: scout, task: right}]}}]
      - say: both have looked
  - agent: scout
    spawn: any
    turns:
      - calls: [{name: TOOL, arguments: ARGUMENTS}]
      - say: found
"#;

const SETTINGS: &str = r#"
[models.bench]
kind = "scripted"
model = "transcript.yaml"
[roles]
main = "bench"
[server]
jars = 4000
queue = 4000
tenant_turns = 1000
tenant_queue = 4000
requests_per_second = 100000
connections_per_address = 100000
[grants.boss]
tools = ["spawn_agent", "delegate_parallel", "TOOL"]
mounts = [{ path = "/workspace", access = "read-write" }]
[grants.scout]
tools = ["TOOL"]
mounts = [{ path = "/workspace", access = "read-write" }]
"#;

/// The work of a turn's children.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Read a file.
    Read,
    /// Add a line to a file.
    Append,
}

/// The files of a server, and how to start it on them.
pub(crate) struct Site {
    binary: PathBuf,
    home: tempfile::TempDir,
    workspace: tempfile::TempDir,
}

/// A server that runs. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
}

/// One connection.
pub(crate) struct Client {
    stream: BufStream<TcpStream>,
    address: String,
    /// Lines of the head that every request has besides those that all have.
    pub(crate) headers: String,
}

/// The head of an answer.
struct Head {
    status: u16,
    /// The length of the body; `None` = it comes in chunks.
    length: Option<usize>,
    /// The session of MCP that the server began.
    session: Option<String>,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) text: String,
}

impl Site {
    pub(crate) fn new(binary: PathBuf, work: Work) -> anyhow::Result<Self> {
        let (home, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let (tool, arguments) = match work {
            Work::Read => ("file_read", "{path: a.txt}"),
            Work::Append => ("shell", "{command: 'echo done >> done.txt'}"),
        };
        let fill = |text: &str| text.replace("TOOL", tool).replace("ARGUMENTS", arguments);
        std::fs::write(home.path().join("belljar.toml"), fill(SETTINGS))?;
        std::fs::write(home.path().join("transcript.yaml"), fill(TRANSCRIPT))?;
        std::fs::write(workspace.path().join("a.txt"), "text of a\n")?;
        let agents = home.path().join("agents");
        std::fs::create_dir_all(&agents)?;
        for (name, tools) in
            [("boss", format!("[delegate_parallel, {tool}]")), ("scout", format!("[{tool}]"))]
        {
            let text = format!(
                "---\nname: {name}\ndescription: Does {name}.\nvisibility: user-facing\n\
                 tools: {tools}\n---\nYou are {name}.\n"
            );
            std::fs::write(agents.join(format!("{name}.md")), text)?;
        }
        Ok(Self { binary, home, workspace })
    }

    pub(crate) fn start(&self) -> anyhow::Result<Server> {
        let mut child = Command::new(&self.binary)
            .args(["--quiet", "serve", "--listen", "127.0.0.1:0", "--workspace"])
            .arg(self.workspace.path())
            .env("BELLJAR_HOME", self.home.path())
            .current_dir(self.workspace.path())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(self.home.path().join("log"))?)
            .spawn()?;
        let stdout = child.stdout.take().context("it has a stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://").map(str::to_owned);
        let Some(address) = address else {
            child.wait()?;
            let said = std::fs::read_to_string(self.home.path().join("log"))?;
            anyhow::bail!("it did not start: {said}");
        };
        Ok(Server { child, address })
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.path()
    }
}

impl Server {
    /// Kills it as the system would, without a chance to say anything.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Memory that is resident, in KiB.
    pub(crate) fn resident(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|rest| rest.split_whitespace().next());
        kib.context("no VmRSS")?.parse().context("VmRSS is no number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    pub(crate) async fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let stream = BufStream::new(stream);
        Ok(Self { stream, address: address.to_owned(), headers: String::new() })
    }

    /// Sends a request and reads the head of the answer.
    async fn head(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<Head> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n{}\r\n",
            self.address,
            body.len(),
            self.headers
        );
        self.stream.write_all(head.as_bytes()).await?;
        self.stream.write_all(body.as_bytes()).await?;
        self.stream.flush().await?;
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line).await? > 0, "the connection was closed");
        let status = line.split(' ').nth(1).context("no status")?.parse()?;
        let (mut length, mut session) = (None, None);
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line).await? > 0, "the connection was closed");
            let line = line.trim();
            if line.is_empty() {
                return Ok(Head { status, length, session });
            }
            match line.split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = Some(value.trim().parse()?);
                }
                Some((name, value)) if name.eq_ignore_ascii_case("mcp-session-id") => {
                    session = Some(value.trim().to_owned());
                }
                _ => {}
            }
        }
    }

    /// One request and the whole of its answer.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<Answer> {
        let Head { status, length, session } = self.head(method, path, body).await?;
        let mut bytes = Vec::new();
        if let Some(length) = length {
            bytes.resize(length, 0);
            self.stream.read_exact(&mut bytes).await?;
        } else {
            while self.chunk(&mut bytes).await? {}
        }
        Ok(Answer { status, session, text: String::from_utf8(bytes)? })
    }

    /// Adds a chunk of a body to what was read of it. `false` = it was the empty one at the end.
    async fn chunk(&mut self, bytes: &mut Vec<u8>) -> anyhow::Result<bool> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        let size = usize::from_str_radix(line.trim(), 16).context("no size of a chunk")?;
        let from = bytes.len();
        // Two more: each chunk ends with a line end that is none of it.
        bytes.resize(from + size + 2, 0);
        self.stream.read_exact(bytes.get_mut(from..).unwrap_or_default()).await?;
        bytes.truncate(from + size);
        Ok(size > 0)
    }

    /// One request: the status and the text of its answer.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<(u16, String)> {
        let Answer { status, text, .. } = self.ask(method, path, body).await?;
        Ok((status, text))
    }

    /// Begins a turn and returns as soon as it is acknowledged: with the head of the stream.
    pub(crate) async fn begin(&mut self, body: &str) -> anyhow::Result<u16> {
        Ok(self.head("POST", "/v1/chat", body).await?.status)
    }

    /// Reads the stream to its last event.
    pub(crate) async fn until_done(&mut self) -> anyhow::Result<()> {
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line).await? > 0, "the connection was closed");
            if line.starts_with("event: done") {
                return Ok(());
            }
        }
    }
}
