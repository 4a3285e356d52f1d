//! How fast the binary is there: listing many agents, and reaching the first model request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::measure::{median, millis};
use crate::report::Row;

/// `belljar agents list` with this many agent files, against a process that does nothing.
const AGENTS: usize = 500;

pub(crate) fn rows(root: &Path, times: usize) -> anyhow::Result<Vec<Row>> {
    let binary = binary(root)?;
    let home = tempfile::tempdir()?;
    let agents = home.path().join("agents");
    std::fs::create_dir_all(&agents)?;
    for n in 0..AGENTS {
        let text = format!(
            "---\nname: agent-{n}\ndescription: The agent number {n}.\ntools: [file_read]\n\
             visibility: user-facing\n---\n{}\n",
            "Do what is asked, and say how.\n".repeat(100)
        );
        std::fs::write(agents.join(format!("agent-{n}.md")), text)?;
    }
    Ok(vec![list(&binary, home.path(), times)?, first_request(&binary, home.path(), times)?])
}

/// Names a `belljar` to measure in place of the one that is built on the way: one that is installed,
/// or of a profile that `cargo build` was told of.
const BINARY: &str = "BELLJAR_BENCH_BINARY";

/// The binary of the same profile, built on the way if it is not there.
pub(crate) fn binary(root: &Path) -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(BINARY) {
        return std::path::absolute(&named)
            .with_context(|| format!("`{BINARY}` is {}", named.display()));
    }
    let optimised = !cfg!(debug_assertions);
    let mut cargo = Command::new("cargo");
    // `cargo run` tells this program of itself, and the build script of ring asks for it: with it, ring and
    // all above it would be built anew.
    for (name, _) in std::env::vars_os() {
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    let status = cargo
        .args(["build", "--quiet", "--bin", "belljar"])
        .args(optimised.then_some("--release"))
        .current_dir(root)
        .status()?;
    ensure!(status.success(), "belljar does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root.join("target"));
    Ok(target.join(if optimised { "release" } else { "debug" }).join("belljar"))
}

fn list(binary: &Path, home: &Path, times: usize) -> anyhow::Result<Row> {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for n in 0..=times {
        let started = Instant::now();
        let output = Command::new(binary)
            .args(["agents", "list"])
            .env("BELLJAR_HOME", home)
            .current_dir(home)
            .output()?;
        // The first run fills the cache.
        if n > 0 {
            ours.push(started.elapsed());
        }
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let started = Instant::now();
        Command::new(binary).arg("--version").output()?;
        floor.push(started.elapsed());
    }
    let ours = median(ours);
    Ok(Row::new(format!("belljar agents list, {AGENTS} agents"), millis(ours))
        .against("belljar --version", millis(median(floor)))
        .verdict(millis(ours), "under 50 ms"))
}

fn first_request(binary: &Path, home: &Path, times: usize) -> anyhow::Result<Row> {
    let server = TcpListener::bind(("127.0.0.1", 0))?;
    let settings = format!(
        "[models.bench]\nkind = \"openai\"\nbase_url = \"http://{}/v1\"\nmodel = \"bench\"\n\
         [roles]\nmain = \"bench\"\n",
        server.local_addr()?
    );
    std::fs::write(home.join("belljar.toml"), settings)?;
    let mut samples = Vec::new();
    for n in 0..=times {
        let took = one_request(binary, home, &server)?;
        if n > 0 {
            samples.push(took);
        }
    }
    let took = median(samples);
    Ok(Row::new("belljar run up to its first model request", millis(took))
        .verdict(millis(took), "under 50 ms, warm cache"))
}

fn one_request(binary: &Path, home: &Path, server: &TcpListener) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let mut child = Command::new(binary)
        .args(["run", "--quiet", "--agent", "agent-7", "Say something."])
        .env("BELLJAR_HOME", home)
        .current_dir(home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting belljar")?;
    let address = server.local_addr()?;
    // Its end connects too: a run that asks no model does not keep this waiting.
    let ended = std::thread::spawn(move || {
        let status = child.wait();
        drop(TcpStream::connect(address));
        status
    });
    let (mut connection, _) = server.accept()?;
    let mut first = [0; 4];
    let asked = connection.read_exact(&mut first);
    let took = started.elapsed();
    ensure!(asked.is_ok(), "`belljar run` ended without a request to the model");
    // A refusal that is not retried ends the run.
    connection.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")?;
    drop(connection);
    server.accept()?;
    ended.join().map_err(|_| anyhow::anyhow!("nobody waited for `belljar run`"))??;
    Ok(took)
}
