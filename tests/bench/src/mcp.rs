//! One `file_read` of 4 KiB over `belljar mcp`, against the same call in a jar of this process; how soon it
//! first answers, and what it holds when nobody calls.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::measure::{median, micros, millis};
use crate::report::Row;
use crate::stores;

/// A client that writes a line and reads one.
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
    let mut begun = Vec::new();
    for n in 0..=starts {
        let started = Instant::now();
        let mut client = Client::start(binary, &home, &workspace)?;
        client.ask(&read())?;
        // The first fills the cache.
        if n > 0 {
            begun.push(started.elapsed());
        }
        client.end()?;
    }
    let mut client = Client::start(binary, &home, &workspace)?;
    let (message, mut took) = (read(), Vec::new());
    for _ in 0..calls {
        let started = Instant::now();
        client.ask(&message)?;
        took.push(started.elapsed());
    }
    let resident = resident(client.child.id())?;
    client.end()?;
    took.sort_unstable();
    let p99 = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
    let (p50, first) = (median(took), median(begun));
    let ratio = p50.as_secs_f64() / floor.as_secs_f64().max(1e-9);
    let measure = format!("file_read of 4 KiB over MCP, p99 {}", micros(p99));
    Ok(vec![
        Row::new(measure, micros(p50))
            .against("in an open jar", micros(floor))
            .verdict(format!("{ratio:.1} times"), "p50 200 µs, p99 400 µs"),
        Row::new("belljar mcp: its first answer", millis(first))
            .verdict(millis(first), "under 50 ms"),
        Row::new("belljar mcp: resident", format!("{resident} MiB"))
            .verdict(format!("{resident} MiB"), "at most 40 MiB"),
    ])
}

fn read() -> Value {
    json!({"name": "file_read", "arguments": {"path": "page.txt"}})
}

impl Client {
    fn start(binary: &Path, home: &Path, workspace: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(binary)
            .arg("mcp")
            .env("BELLJAR_HOME", home)
            .current_dir(workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("no stdin")?;
        let output = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut client = Self { child, input, output, line: String::new() };
        let info = json!({"name": "bench", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        client
            .send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))?;
        client.receive()?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    fn ask(&mut self, params: &Value) -> anyhow::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))?;
        self.receive()?;
        ensure!(self.line.contains("\"isError\":false"), "{}", self.line);
        Ok(())
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
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

/// Resident memory of a process, in MiB.
fn resident(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
    Ok(kib / 1024)
}
