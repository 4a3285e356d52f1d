//! Measures belljar against the bare floor and prints one table of ratios.
//!
//! `cargo run --bin belljar-bench [PART...]` runs all parts or those named; with
//! `BELLJAR_BENCH_QUICK=1` fewer repetitions, with `BELLJAR_BENCH_BINARY=PATH` on a `belljar` that is
//! there already. Nothing here fails because something is slow.
//! `belljar-bench server-soak --seconds 600` is a part of its own. What pure computation in a jar costs
//! against native interpreters, `python3 tests/bench/pure/compare.py` measures.

mod acp;
mod bare;
mod bare_mcp;
mod code;
mod delegation;
mod interval;
mod kill;
mod mcp;
mod measure;
mod neighbours;
mod overlay;
mod overlay_kills;
mod report;
mod runs;
mod serve;
mod server;
mod server_soak;
mod shell;
mod soak;
mod socket;
mod startup;
mod stores;
mod watch;

use std::path::Path;

use report::Row;

/// How often each measure is repeated.
struct Times {
    stores: usize,
    calls: usize,
    jars: usize,
    runs: usize,
    starts: usize,
    children: usize,
    attacks: u64,
    /// Seconds of turns over HTTP.
    seconds: u64,
    kills: usize,
    /// WebSocket clients, idle and active.
    watchers: (usize, usize),
}

/// The parts that can be asked for by themselves.
const PARTS: [&str; 17] = [
    "open",
    "read",
    "overlay",
    "shell",
    "code",
    "jars",
    "runs",
    "delegation",
    "neighbours",
    "interval",
    "soak",
    "startup",
    "mcp",
    "serve",
    "watch",
    "acp",
    "kill",
];

const FULL: Times = Times {
    stores: 5000,
    calls: 5000,
    jars: 10_000,
    runs: 10_000,
    starts: 20,
    children: 1000,
    attacks: 100_000,
    seconds: 60,
    kills: 200,
    watchers: (2000, 200),
};
const QUICK: Times = Times {
    stores: 300,
    calls: 300,
    jars: 300,
    runs: 300,
    starts: 3,
    children: 50,
    attacks: 1000,
    seconds: 3,
    kills: 10,
    watchers: (100, 20),
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    if parts == [bare_mcp::NAME] {
        return bare_mcp::serve().await;
    }
    if let [first, rest @ ..] = parts.as_slice()
        && first == "server-soak"
    {
        report::print(&server_soak(rest).await?);
        return Ok(());
    }
    if let Some(unknown) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
        anyhow::bail!("no part `{unknown}`; there are {}", PARTS.join(", "));
    }
    let quick = std::env::var_os("BELLJAR_BENCH_QUICK").is_some();
    let times = if quick { QUICK } else { FULL };
    let asked = |part: &str| {
        let asked = parts.is_empty() || parts.iter().any(|asked| asked == part);
        if asked {
            report::begin(part);
        }
        asked
    };
    report::print(&rows(&times, asked).await?);
    Ok(())
}

impl server_soak::Soak {
    fn rows(&self, seconds: u64) -> Vec<Row> {
        let Self { start, peak, end, calls, answers, alone, among, stored } = self;
        vec![
            Row::new(
                format!("a server among misbehaving callers, {seconds} s"),
                format!("{calls} calls of theirs; {stored} MiB of database"),
            )
            .against("memory at the start", format!("{start} MiB"))
            .verdict(format!("{peak} MiB at most, {end} MiB after"), "within its bounds"),
            Row::new(
                format!("its neighbour, {answers} answers"),
                format!("p99 {:.1} ms", *among as f64 / 1e3),
            )
            .against("alone", format!("p99 {:.1} ms", *alone as f64 / 1e3))
            .verdict(
                format!("{:.0} times", *among as f64 / (*alone).max(1) as f64),
                "each answered",
            ),
        ]
    }
}

/// `server-soak [--seconds N]`: fails where memory or the neighbour does. Default: what CI takes.
async fn server_soak(args: &[String]) -> anyhow::Result<Vec<Row>> {
    let seconds = match args {
        [] => 30,
        [option, seconds] if option == "--seconds" => seconds.parse()?,
        _ => anyhow::bail!("server-soak takes `--seconds N` alone"),
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let time = std::time::Duration::from_secs(seconds);
    let soak = server_soak::run(&startup::binary(root)?, time).await?;
    let rows = soak.rows(seconds);
    if let Err(error) = soak.check() {
        report::print(&rows);
        return Err(error);
    }
    Ok(rows)
}

async fn rows(times: &Times, asked: impl Fn(&str) -> bool) -> anyhow::Result<Vec<Row>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let mut rows = Vec::new();
    let few = stores::Bench::new(root, 100)?;
    if asked("open") {
        rows.push(stores::open_and_drop(&few, times.stores).await?);
    }
    if asked("read") {
        rows.push(stores::read_call(&few, times.calls).await?);
    }
    if asked("overlay") {
        rows.extend(overlay::rows(times.calls.min(1000)).await?);
    }
    if asked("shell") {
        rows.push(shell::echo(times.calls).await?);
    }
    if asked("code") {
        rows.extend(code::rows(root, times.calls.min(1000), times.jars.min(1000)).await?);
    }
    if asked("jars") {
        let many = stores::Bench::new(root, times.jars as u32 + 10)?;
        rows.extend(stores::live_jars(many, times.jars).await?);
    }
    if asked("runs") {
        rows.push(runs::scripted(root, times.runs).await?);
    }
    if asked("delegation") {
        rows.extend(delegation::rows(root, times.children, times.calls.min(1000)).await?);
    }
    if asked("neighbours") {
        rows.extend(neighbours::rows(times.calls.min(1000)).await?);
    }
    if asked("interval") {
        rows.extend(interval::rows(times.starts).await.map_err(stores::plain)?);
    }
    if asked("soak") {
        rows.push(soak::row(times.attacks).await?);
    }
    if asked("startup") {
        rows.extend(startup::rows(root, times.starts)?);
    }
    if asked("mcp") {
        let binary = startup::binary(root)?;
        rows.extend(mcp::rows(&few, &binary, times.calls, times.starts).await?);
        let time = std::time::Duration::from_secs(times.seconds.min(10));
        rows.push(mcp::http_row(binary, time).await?);
    }
    if asked("serve") {
        let time = std::time::Duration::from_secs(times.seconds);
        rows.extend(serve::rows(startup::binary(root)?, time).await?);
    }
    if asked("watch") {
        let time = std::time::Duration::from_secs(times.seconds.min(20));
        rows.push(watch::row(startup::binary(root)?, times.watchers, time).await?);
    }
    if asked("acp") {
        rows.push(acp::row(&startup::binary(root)?, times.calls.min(300))?);
    }
    if asked("kill") {
        rows.push(kill::row(startup::binary(root)?, times.kills).await?);
        rows.extend(kill::overlay_rows(startup::binary(root)?, times.kills).await?);
    }
    Ok(rows)
}
