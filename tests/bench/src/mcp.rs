//! One `file_read` of 4 KiB over `belljar mcp`, against the same call in a jar of this process and against a
//! server that is `rmcp` and nothing else; how soon it first answers, and what it holds when nobody calls.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::bare_mcp;
use crate::measure::{median, micros, millis};
use crate::report::Row;
use crate::server::{self, Site, Work};
use crate::stores;

/// Turns in which both servers are measured: a machine is not equally fast from one minute to the next.
const TURNS: usize = 5;

/// Clients over HTTP at a time.
const CLIENTS: usize = 64;

/// A client over standard streams, that writes a line and reads one.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

pub(crate) async fn rows(
    bench: &stores::Bench,
    binary: &Path,
    calls: usize,
    starts: usize,
) -> anyhow::Result<Vec<Row>> {
    let (floor, _) = stores::read_medians(bench, calls).await?;
    let world = tempfile::tempdir()?;
    let (home, workspace) = (world.path().join("home"), world.path().join("workspace"));
    std::fs::create_dir(&home)?;
    std::fs::create_dir(&workspace)?;
    std::fs::write(workspace.join("page.txt"), "x".repeat(4096))?;
    let belljar = || {
        let mut command = Command::new(binary);
        command.arg("mcp").env("BELLJAR_HOME", &home).current_dir(&workspace);
        command
    };
    let mut begun = Vec::new();
    for n in 0..=starts {
        let started = Instant::now();
        let mut client = Client::start(belljar())?;
        client.ask(&read())?;
        // The first fills the cache.
        if n > 0 {
            begun.push(started.elapsed());
        }
        client.end()?;
    }
    let mut client = Client::start(belljar())?;
    let mut rmcp = Command::new(std::env::current_exe()?);
    rmcp.arg(bare_mcp::NAME).current_dir(&workspace);
    let mut rmcp = Client::start(rmcp)?;
    let (mut took, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        client.calls(calls / TURNS, &mut took)?;
        rmcp.calls(calls / TURNS, &mut bare)?;
    }
    let resident = resident(client.child.id())?;
    client.end()?;
    rmcp.end()?;
    let (p99, bare_p99) = (p99(&mut took), p99(&mut bare));
    let (p50, bare_p50, first) = (median(took), median(bare), median(begun));
    let times = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64().max(1e-9);
    let ratio = format!("{:.1} times, {:.1} times", times(p50, floor), times(p50, bare_p50));
    let floors = format!("{}, rmcp alone: {}", micros(floor), micros(bare_p50));
    Ok(vec![
        Row::new("file_read of 4 KiB over MCP", micros(p50))
            .against("in an open jar", floors)
            .verdict(ratio, "200 µs where rmcp alone takes 90: 2.2 times"),
        Row::new("file_read of 4 KiB over MCP, p99", micros(p99))
            .against("rmcp alone", micros(bare_p99))
            .verdict(
                format!("{:.1} times", times(p99, bare_p99)),
                "400 µs where rmcp alone takes 150: 2.7 times",
            ),
        Row::new("belljar mcp: its first answer", millis(first))
            .verdict(millis(first), "under 50 ms"),
        Row::new("belljar mcp: resident", format!("{resident} MiB"))
            .verdict(format!("{resident} MiB"), "at most 40 MiB"),
    ])
}

/// The same over HTTP: how many calls a second the sessions of many clients have answered.
pub(crate) async fn http_row(binary: PathBuf, time: Duration) -> anyhow::Result<Row> {
    let site = Site::new(binary, Work::Read)?;
    std::fs::write(site.workspace().join("page.txt"), "x".repeat(4096))?;
    let server = site.start()?;
    let mut clients = Vec::with_capacity(CLIENTS);
    for _ in 0..CLIENTS {
        clients.push(session(&server.address).await?);
    }
    let body = message("tools/call", &read());
    let (started, calls) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::with_capacity(CLIENTS);
    for mut client in clients {
        let (body, calls) = (body.clone(), Arc::clone(&calls));
        tasks.push(tokio::spawn(async move {
            while started.elapsed() < time {
                let answer = client.ask("POST", "/mcp", &body).await?;
                ensure!(answer.text.contains("\"isError\":false"), "{}", answer.text);
                calls.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    let rate = calls.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
    let resident = server.resident()? / 1024;
    let measure = format!("file_read of 4 KiB over MCP, HTTP, {CLIENTS} clients");
    Ok(Row::new(measure, format!("{resident} MiB resident"))
        .verdict(format!("{rate:.0} a second"), "at least 4,000 a second on 2 cores"))
}

/// A client whose session has begun and whose jar is open.
async fn session(address: &str) -> anyhow::Result<server::Client> {
    let mut client = server::Client::connect(address).await?;
    client.headers = "accept: application/json, text/event-stream\r\n".to_owned();
    let begun = client.ask("POST", "/mcp", &message("initialize", &initialize())).await?;
    let session = begun.session.with_context(|| format!("no session: {}", begun.text))?;
    let revision = "mcp-protocol-version: 2025-11-25\r\n";
    client.headers = format!("{}{revision}mcp-session-id: {session}\r\n", client.headers);
    client.ask("POST", "/mcp", &ready().to_string()).await?;
    client.ask("POST", "/mcp", &message("tools/call", &read())).await?;
    Ok(client)
}

fn message(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

fn initialize() -> Value {
    let info = json!({"name": "bench", "version": "1"});
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
}

fn ready() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn read() -> Value {
    json!({"name": "file_read", "arguments": {"path": "page.txt"}})
}

impl Client {
    fn start(mut server: Command) -> anyhow::Result<Self> {
        let mut child = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no stdin")?;
        let output = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut client = Self { child, input, output, line: String::new() };
        client.send(&message("initialize", &initialize()))?;
        client.receive()?;
        client.send(&ready().to_string())?;
        Ok(client)
    }

    fn ask(&mut self, params: &Value) -> anyhow::Result<()> {
        self.send(&message("tools/call", params))?;
        self.receive()?;
        ensure!(self.line.contains("\"isError\":false"), "{}", self.line);
        Ok(())
    }

    /// How long so many calls take, one behind the other.
    fn calls(&mut self, calls: usize, took: &mut Vec<Duration>) -> anyhow::Result<()> {
        let message = read();
        for _ in 0..calls {
            let started = Instant::now();
            self.ask(&message)?;
            took.push(started.elapsed());
        }
        Ok(())
    }

    fn send(&mut self, message: &str) -> anyhow::Result<()> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes())?)
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        self.line.clear();
        ensure!(self.output.read_line(&mut self.line)? > 0, "it ended");
        Ok(())
    }

    fn end(self) -> anyhow::Result<()> {
        let Self { mut child, input, .. } = self;
        drop(input);
        ensure!(child.wait()?.success(), "it failed");
        Ok(())
    }
}

fn p99(took: &mut [Duration]) -> Duration {
    took.sort_unstable();
    took.get(took.len() * 99 / 100).copied().unwrap_or_default()
}

/// Resident memory of a process, in MiB.
fn resident(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
    Ok(kib / 1024)
}
