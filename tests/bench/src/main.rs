//! Measures belljar against the bare floor and prints one table of ratios.
//!
//! `cargo run --bin belljar-bench [PART...]` runs all parts or those named; with
//! `BELLJAR_BENCH_QUICK=1` fewer repetitions, with `BELLJAR_BENCH_BINARY=PATH` on a `belljar` that is
//! there already. Nothing here fails because something is slow; a part that fails is named with its
//! error behind the figures of the others, and the exit code is 1.
//! `belljar-bench server-soak --seconds 600` is a part of its own. What pure computation in a jar costs
//! against native interpreters, `python3 tests/bench/pure/compare.py` measures.

mod acp;
mod bare;
mod bare_mcp;
mod code;
mod delegation;
mod find;
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
use std::process::ExitCode;

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
    /// Searches of the index of agents, skills and tools.
    searches: usize,
}

/// The parts that can be asked for by themselves.
const PARTS: [&str; 18] = [
    "open",
    "read",
    "overlay",
    "shell",
    "code",
    "jars",
    "runs",
    "find",
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
    searches: 200,
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
    searches: 20,
};

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    if parts == [bare_mcp::NAME] {
        bare_mcp::serve().await?;
        return Ok(ExitCode::SUCCESS);
    }
    if let [first, rest @ ..] = parts.as_slice()
        && first == "server-soak"
    {
        report::print(&server_soak(rest).await?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = parts.iter().find(|part| !PARTS.contains(&part.as_str())) {
        anyhow::bail!("no part `{unknown}`; there are {}", PARTS.join(", "));
    }
    let quick = std::env::var_os("BELLJAR_BENCH_QUICK").is_some();
    let times = if quick { QUICK } else { FULL };
    let asked = |part: &&str| parts.is_empty() || parts.iter().any(|asked| asked == part);
    let measured =
        Measured::of(PARTS.into_iter().filter(asked), async |part| rows(part, &times).await);
    Ok(measured.await.report())
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

/// The rows of all parts, and the parts that failed: one that does takes nothing from the others.
struct Measured {
    rows: Vec<Row>,
    failed: Vec<(&'static str, anyhow::Error)>,
}

impl Measured {
    /// Measures these parts, one after the other.
    async fn of(
        parts: impl IntoIterator<Item = &'static str>,
        mut measure: impl AsyncFnMut(&'static str) -> anyhow::Result<Vec<Row>>,
    ) -> Self {
        let mut all = Self { rows: Vec::new(), failed: Vec::new() };
        for part in parts {
            report::begin(part);
            match measure(part).await {
                Ok(rows) => all.rows.extend(rows),
                Err(error) => all.failed.push((part, error)),
            }
        }
        all
    }

    /// Prints the table, then why the parts failed that did.
    fn report(&self) -> ExitCode {
        report::print(&self.rows);
        for (part, error) in &self.failed {
            report::failed(part, error);
        }
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The rows of one part.
async fn rows(part: &str, times: &Times) -> anyhow::Result<Vec<Row>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let few = || stores::Bench::new(root, 100);
    Ok(match part {
        "open" => vec![stores::open_and_drop(&few()?, times.stores).await?],
        "read" => vec![stores::read_call(&few()?, times.calls).await?],
        "overlay" => overlay::rows(times.calls.min(1000)).await?,
        "shell" => vec![shell::echo(times.calls).await?],
        "code" => code::rows(root, times.calls.min(1000), times.jars.min(1000)).await?,
        "jars" => {
            let many = stores::Bench::new(root, times.jars as u32 + 10)?;
            stores::live_jars(many, times.jars).await?
        }
        "runs" => vec![runs::scripted(root, times.runs).await?],
        "find" => find::rows(root, times.searches).await?,
        "delegation" => delegation::rows(root, times.children, times.calls.min(1000)).await?,
        "neighbours" => neighbours::rows(times.calls.min(1000)).await?,
        "interval" => interval::rows(times.starts).await.map_err(stores::plain)?,
        "soak" => vec![soak::row(times.attacks).await?],
        "startup" => startup::rows(root, times.starts)?,
        "mcp" => {
            let binary = startup::binary(root)?;
            let mut rows = mcp::rows(&few()?, &binary, times.calls, times.starts).await?;
            let time = std::time::Duration::from_secs(times.seconds.min(10));
            rows.push(mcp::http_row(binary, time).await?);
            rows
        }
        "serve" => {
            let time = std::time::Duration::from_secs(times.seconds);
            serve::rows(startup::binary(root)?, time).await?
        }
        "watch" => {
            let time = std::time::Duration::from_secs(times.seconds.min(20));
            vec![watch::row(startup::binary(root)?, times.watchers, time).await?]
        }
        "acp" => vec![acp::row(&startup::binary(root)?, times.calls.min(300))?],
        "kill" => {
            let mut rows = vec![kill::row(startup::binary(root)?, times.kills).await?];
            rows.extend(kill::overlay_rows(startup::binary(root)?, times.kills).await?);
            rows
        }
        unknown => anyhow::bail!("no part `{unknown}`; there are {}", PARTS.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_that_fails_is_named_and_the_others_are_printed() {
        let measured = Measured::of(["open", "watch", "kill"], async |part| match part {
            "watch" => anyhow::bail!("too many bytes in flight"),
            part => Ok(vec![Row::new(part, "1 ms")]),
        });
        let measured = measured.await;
        assert_eq!(measured.rows.len(), 2);
        let failed: Vec<_> =
            measured.failed.iter().map(|(part, why)| (*part, why.to_string())).collect();
        assert_eq!(failed, [("watch", "too many bytes in flight".to_owned())]);
        assert_eq!(format!("{:?}", measured.report()), format!("{:?}", ExitCode::FAILURE));
    }

    #[tokio::test]
    async fn every_part_is_known_and_another_one_is_not() {
        assert!(rows("nothing", &QUICK).await.is_err_and(|why| why.to_string().contains("watch")));
        let all = Measured::of(PARTS, async |_| Ok(Vec::new())).await;
        assert_eq!(format!("{:?}", all.report()), format!("{:?}", ExitCode::SUCCESS));
    }
}
