//! Overlays: reading, writing and walking through one, against a mount that is not.

use std::path::Path;
use std::time::{Duration, Instant};

use belljar_kit::{TestHost, stock};
use belljar_policy::Limits;
use belljar_sandbox::{Jar, Overlay, OverlayQuota};

use crate::measure::{median, micros, millis};
use crate::report::Row;

/// The workspace that is walked: directories, files in each, and how many of all are changed.
const FOLDERS: usize = 500;
const FILES: usize = 100;
const CHANGED: usize = 1000;

/// Files of 1 MiB that are written for the first time.
const LARGE: usize = 100;

/// Walks of all files.
const WALKS: usize = 9;

/// Limits that no measure uses up.
fn unmetered() -> Limits {
    let most = u64::MAX / 4;
    Limits {
        fuel: most,
        fuel_per_call: most,
        read_bytes: most,
        write_bytes: most,
        output_total_bytes: most,
        call_timeout_seconds: 600,
        ..Limits::default()
    }
}

pub(crate) async fn rows(calls: usize) -> anyhow::Result<Vec<Row>> {
    let mut rows = vec![read(calls).await?];
    rows.extend(write().await?);
    rows.push(walk().await?);
    Ok(rows)
}

fn open(host: &TestHost, layers: &Path) -> anyhow::Result<Overlay> {
    Ok(Overlay::open(host.path(), layers.join("layer"), OverlayQuota::default())?)
}

async fn call(jar: &Jar, tool: &str, arguments: &serde_json::Value) -> anyhow::Result<Duration> {
    let arguments = arguments.to_string();
    let started = Instant::now();
    let result = jar.call_tool(tool, &arguments).await?;
    let took = started.elapsed();
    result.outcome?;
    Ok(took)
}

fn ratio(ours: Duration, floor: Duration) -> String {
    format!("{:.2}x", ours.as_secs_f64() / floor.as_secs_f64())
}

async fn read(calls: usize) -> anyhow::Result<Row> {
    let (host, layers) = (TestHost::new(), tempfile::tempdir()?);
    host.write("src/page.txt", "0123456789abcde\n".repeat(256));
    let overlay = open(&host, layers.path())?;
    let tools = || {
        let jar = Jar::builder().tool(stock("file_read")).tool(stock("file_write"));
        jar.limits(unmetered())
    };
    let plain = tools().read_only(host.path()).build(&host.sandbox).await?;
    let over = tools().overlay(&overlay).build(&host.sandbox).await?;
    let beside = serde_json::json!({ "path": "src/beside.txt", "content": "changed" });
    call(&over, "file_write", &beside).await?;
    let arguments = serde_json::json!({ "path": "src/page.txt" });
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..calls {
        ours.push(call(&over, "file_read", &arguments).await?);
        floor.push(call(&plain, "file_read", &arguments).await?);
    }
    let (ours, floor) = (median(ours), median(floor));
    Ok(Row::new("file_read of 4 KiB through an overlay", micros(ours))
        .against("read-only mount", micros(floor))
        .verdict(ratio(ours, floor), "at most 1.25x"))
}

async fn write() -> anyhow::Result<Vec<Row>> {
    let (host, in_place, layers) = (TestHost::new(), TestHost::new(), tempfile::tempdir()?);
    let content = "0123456789abcde\n".repeat(1 << 16);
    for n in 0..LARGE {
        host.write(&format!("{n}"), &content);
        in_place.write(&format!("{n}"), &content);
    }
    let overlay = open(&host, layers.path())?;
    let shell = || Jar::builder().tool(stock("shell")).limits(unmetered());
    let over = shell().overlay(&overlay).build(&host.sandbox).await?;
    let plain = shell().read_write(in_place.path()).build(&host.sandbox).await?;
    let copy = layers.path().join("copy");
    let (mut first, mut next, mut floor, mut copies) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for n in 0..LARGE {
        let append = serde_json::json!({ "command": format!("echo more >> {n}") });
        call(&plain, "shell", &append).await?;
        first.push(call(&over, "shell", &append).await?);
        floor.push(call(&plain, "shell", &append).await?);
        next.push(call(&over, "shell", &append).await?);
        let started = Instant::now();
        std::fs::copy(host.path().join(format!("{n}")), &copy)?;
        copies.push(started.elapsed());
        std::fs::remove_file(&copy)?;
    }
    anyhow::ensure!(overlay.used_quota().files == LARGE as u64, "{:?}", overlay.used_quota());
    let (first, next) = (median(first), median(next));
    let (floor, copies) = (median(floor), median(copies));
    let more = first.saturating_sub(floor);
    Ok(vec![
        Row::new("the first write to a file of 1 MiB in an overlay", micros(first))
            .against("the same in place", micros(floor))
            .verdict(
                format!("+{}; a copy takes {}", micros(more), micros(copies)),
                "a copy and 100 µs more",
            ),
        Row::new("the next write to it", micros(next))
            .against("the same in place", micros(floor))
            .verdict(ratio(next, floor), "at most 1.25x"),
    ])
}

async fn walk() -> anyhow::Result<Row> {
    let (host, layers) = (TestHost::new(), tempfile::tempdir()?);
    for folder in 0..FOLDERS {
        for file in 0..FILES {
            host.write(&format!("{folder}/{file}.txt"), "");
        }
    }
    let overlay = open(&host, layers.path())?;
    let find = || {
        let jar = Jar::builder().tool(stock("file_find")).tool(stock("file_write"));
        jar.limits(unmetered())
    };
    let plain = find().read_only(host.path()).build(&host.sandbox).await?;
    let over = find().overlay(&overlay).build(&host.sandbox).await?;
    for n in 0..CHANGED {
        let path = format!("{}/{}.txt", n % FOLDERS, n / FOLDERS);
        let change = serde_json::json!({ "path": path, "content": "changed" });
        call(&over, "file_write", &change).await?;
    }
    anyhow::ensure!(overlay.used_quota().files >= CHANGED as u64, "{:?}", overlay.used_quota());
    let nothing = serde_json::json!({ "pattern": "**/*.none" });
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..WALKS {
        ours.push(call(&over, "file_find", &nothing).await?);
        floor.push(call(&plain, "file_find", &nothing).await?);
    }
    let (ours, floor) = (median(ours), median(floor));
    let what = format!("file_find over {} files, {CHANGED} changed", FOLDERS * FILES);
    Ok(Row::new(what, millis(ours))
        .against("read-only mount", millis(floor))
        .verdict(ratio(ours, floor), "at most 1.3x"))
}
