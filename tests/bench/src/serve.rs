//! Turns over HTTP: how many a second, and what the server's memory does meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::report::Row;
use crate::server::{Client, Server, Site, Work};

/// Clients at a time.
const CLIENTS: usize = 64;

/// Turns before the clock starts: components are compiled, pools are warm.
const WARM: usize = 200;

pub(crate) async fn rows(binary: PathBuf, time: Duration) -> anyhow::Result<Vec<Row>> {
    let site = Site::new(binary, Work::Read)?;
    let server = site.start()?;
    let mut first = Client::connect(&server.address).await?;
    for _ in 0..WARM {
        turn(&mut first).await?;
    }
    // The first part fills what is kept on purpose; flat is what follows.
    let (before, _) = load(&server, time / 3).await?;
    let warm = server.resident()?;
    let (turns, took) = load(&server, time).await?;
    let end = server.resident()?;
    let rate = turns as f64 / took.as_secs_f64();
    let bytes = std::fs::metadata(site.home().join("sessions/store/belljar.db"))?.len();
    let all = before + turns + WARM as u64;
    Ok(vec![
        Row::new(
            format!("turns over HTTP, {CLIENTS} clients, {:.0} s", took.as_secs_f64()),
            format!("{turns} turns, {} KiB of store each", bytes / 1024 / all.max(1)),
        )
        .verdict(format!("{rate:.0} a second"), "300 a second"),
        Row::new("memory of the server meanwhile", format!("{} MiB", end / 1024))
            .against("before", format!("{} MiB", warm / 1024))
            .verdict(format!("{:+} MiB", (end as i64 - warm as i64) / 1024), "flat"),
    ])
}

/// Turns of all clients for a time: how many, and how long it was.
async fn load(server: &Server, time: Duration) -> anyhow::Result<(u64, Duration)> {
    let (started, turns) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..CLIENTS {
        let (address, turns) = (server.address.clone(), Arc::clone(&turns));
        tasks.push(tokio::spawn(async move {
            let mut client = Client::connect(&address).await?;
            while started.elapsed() < time {
                turn(&mut client).await?;
                turns.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok((turns.load(Ordering::Relaxed), started.elapsed()))
}

async fn turn(client: &mut Client) -> anyhow::Result<()> {
    let body = r#"{"agent": "boss", "text": "look at both sides"}"#;
    let (status, text) = client.request("POST", "/v1/chat", body).await?;
    ensure!(status == 200 && text.contains("both have looked"), "{status}: {text}");
    Ok(())
}
