//! Measures belljar against the bare floor and prints one table of ratios.
//!
//! `cargo run --bin belljar-bench`; with `BELLJAR_BENCH_QUICK=1` fewer repetitions. Nothing here
//! fails because something is slow.

mod bare;
mod measure;
mod report;
mod runs;
mod startup;
mod stores;

use std::path::Path;

use report::Row;

/// How often each measure is repeated.
struct Times {
    stores: usize,
    calls: usize,
    jars: usize,
    runs: usize,
    starts: usize,
}

const FULL: Times = Times { stores: 5000, calls: 5000, jars: 10_000, runs: 10_000, starts: 20 };
const QUICK: Times = Times { stores: 300, calls: 300, jars: 300, runs: 300, starts: 3 };

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let quick = std::env::var_os("BELLJAR_BENCH_QUICK").is_some();
    let times = if quick { QUICK } else { FULL };
    report::print(&rows(&times).await?);
    Ok(())
}

async fn rows(times: &Times) -> anyhow::Result<Vec<Row>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    let mut rows = Vec::new();
    let few = stores::Bench::new(root, 100)?;
    rows.push(stores::open_and_drop(&few, times.stores).await?);
    rows.push(stores::read_call(&few, times.calls).await?);
    let many = stores::Bench::new(root, times.jars as u32 + 10)?;
    rows.extend(stores::live_jars(&many, times.jars).await?);
    rows.push(runs::scripted(root, times.runs).await?);
    rows.extend(startup::rows(root, times.starts)?);
    Ok(rows)
}
