//! Many WebSocket clients of one host: how late an event gets to them.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::report::Row;
use crate::server::{Site, Work};
use crate::socket;

/// The time between the turns that each active client begins, one after the other.
const PACE: Duration = Duration::from_secs(2);

pub(crate) async fn row(
    binary: PathBuf,
    (idle, active): (usize, usize),
    time: Duration,
) -> anyhow::Result<Row> {
    let site = Site::new(binary, Work::Read)?;
    let server = site.start()?;
    let mut sleepers = Vec::with_capacity(idle);
    for _ in 0..idle {
        let (mut reader, mut writer) = socket::open(&server.address).await?;
        writer.send(r#"{"type": "ping"}"#).await?;
        ensure!(reader.next().await?.contains("pong"), "no answer");
        sleepers.push((reader, writer));
    }
    let started = Instant::now();
    let mut tasks = Vec::new();
    for client in 0..active {
        let address = server.address.clone();
        let first = PACE.mul_f64(client as f64 / active as f64);
        tasks.push(tokio::spawn(talk(address, started + first, started + time)));
    }
    let mut late = Vec::new();
    let mut turns = 0;
    for task in tasks {
        let (seen, begun) = task.await??;
        late.extend(seen);
        turns += begun;
    }
    late.sort_unstable();
    let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or_default();
    let row = Row::new(
        format!("WebSocket clients, {idle} idle and {active} active"),
        format!(
            "{} events of {turns} turns in {:.0} s",
            late.len(),
            started.elapsed().as_secs_f64()
        ),
    );
    drop(sleepers);
    Ok(row
        .against("median", format!("{} ms", at(50)))
        .verdict(format!("p99 {} ms", at(99)), "under 100 ms"))
}

/// Turns at a pace; how late each event of them was, in milliseconds.
async fn talk(
    address: String,
    first: Instant,
    until: Instant,
) -> anyhow::Result<(Vec<i64>, usize)> {
    let (mut reader, mut writer) = socket::open(&address).await?;
    let (mut late, mut turns) = (Vec::new(), 0);
    let mut next = first;
    while next < until {
        tokio::time::sleep_until(next.into()).await;
        next += PACE;
        writer.send(r#"{"type": "chat", "id": "1", "agent": "boss", "text": "look"}"#).await?;
        turns += 1;
        loop {
            let message: Value = serde_json::from_str(&reader.next().await?)?;
            match message["type"].as_str() {
                // A session stays watched until somebody says otherwise, and each that is takes a
                // part of its tenant's bytes in flight.
                Some("done") => {
                    let session = &message["session"];
                    ensure!(session.is_string(), "no `session`: {message}");
                    let unwatch = json!({"type": "unsubscribe", "session": session});
                    writer.send(&unwatch.to_string()).await?;
                }
                Some("unsubscribed") => break,
                Some("event") => {
                    let made = message["event"]["at"].as_i64().context("no `at`")?;
                    late.push(now() - made);
                }
                Some("error") => anyhow::bail!("refused: {message}"),
                _ => {}
            }
        }
    }
    Ok((late, turns))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
