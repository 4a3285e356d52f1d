//! `kill -9` at random moments under load: what was acknowledged is there, nothing is done twice
//! unmarked, every session opens.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use belljar_store::{MessageStatus, Store};

use crate::overlay_kills::{self, OverlayKills};
use crate::report::Row;
use crate::server::{Client, Site, Work};

/// Clients at a time.
const CLIENTS: usize = 8;

/// The longest that a server lives.
const LIFE: Duration = Duration::from_millis(400);

/// How long the last server may take for what the others left.
const PATIENCE: Duration = Duration::from_secs(120);

/// The texts whose receipt was acknowledged to clients.
type Acknowledged = Arc<Mutex<Vec<String>>>;

/// The state that was found afterwards.
#[derive(Debug, Default)]
struct Found {
    sessions: usize,
    resumed: usize,
    interrupted: usize,
    done: usize,
}

pub(crate) async fn row(binary: PathBuf, kills: usize) -> anyhow::Result<Row> {
    let site = Site::new(binary, Work::Append)?;
    let acknowledged = Acknowledged::default();
    // The first one compiles, and is left in peace.
    warm(&site).await?;
    for round in 0..kills {
        let server = site.start()?;
        let tasks: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let kept = Arc::clone(&acknowledged);
                tokio::spawn(talk(server.address.clone(), round, client, kept))
            })
            .collect();
        let life = LIFE.mul_f64(f64::from(fastrand::u32(..1000)) / 1000.0);
        tokio::time::sleep(life).await;
        server.kill()?;
        for task in tasks {
            // They end with their connections.
            task.await?;
        }
    }
    let server = site.start()?;
    finished(&server.address).await?;
    server.kill()?;
    let acknowledged =
        std::mem::take(&mut *acknowledged.lock().unwrap_or_else(PoisonError::into_inner));
    let found = look(&site, &acknowledged).await?;
    Ok(Row::new(
        format!("kill -9, {kills} times, {CLIENTS} clients"),
        format!(
            "{} messages acknowledged, {} sessions, {} turns resumed, {} calls interrupted",
            acknowledged.len(),
            found.sessions,
            found.resumed,
            found.interrupted
        ),
    )
    .against("effects that were made", found.done.to_string())
    .verdict("none lost, none twice", "none lost, none twice"))
}

/// Kills of runs that write to an overlay, and of applies.
pub(crate) async fn overlay_rows(binary: PathBuf, kills: usize) -> anyhow::Result<Vec<Row>> {
    let found = overlay_kills::run(&binary, kills, kills).await?;
    let OverlayKills { runs, early, interrupted, lines, applies, applied } = found;
    Ok(vec![
        Row::new(
            format!("kill -9 of a run in an overlay, {runs} times"),
            format!("{early} before anything was stored, {interrupted} calls interrupted"),
        )
        .against("effects that were made", lines.to_string())
        .verdict("none lost, none twice", "none lost, none twice"),
        Row::new(
            format!("kill -9 of an apply, {applies} times"),
            format!("{applied} applied, {} not", applies - applied),
        )
        .against("workspaces of both", "0")
        .verdict("all old or all new", "all old or all new"),
    ])
}

async fn warm(site: &Site) -> anyhow::Result<()> {
    let server = site.start()?;
    let mut client = Client::connect(&server.address).await?;
    let (status, text) =
        client.request("POST", "/v1/chat", r#"{"agent": "boss", "text": "warm"}"#).await?;
    ensure!(status == 200, "{status}: {text}");
    server.kill()
}

/// Turns, one after the other, until the server is gone.
async fn talk(address: String, round: usize, client: usize, kept: Acknowledged) {
    let Ok(mut connection) = Client::connect(&address).await else { return };
    for turn in 0.. {
        let text = format!("round {round} client {client} turn {turn}");
        let body = format!(r#"{{"agent": "boss", "text": "{text}", "stream": true}}"#);
        let Ok(200) = connection.begin(&body).await else { return };
        kept.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        if connection.until_done().await.is_err() {
            return;
        }
        // The rest of a stream is in the way of the next answer.
        let Ok(next) = Client::connect(&address).await else { return };
        connection = next;
    }
}

/// Waits until no turn runs any more.
async fn finished(address: &str) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut client = Client::connect(address).await?;
    loop {
        let (status, text) = client.request("GET", "/v1/running", "").await?;
        ensure!(status == 200, "{status}: {text}");
        if !text.contains("\"message\"") {
            return Ok(());
        }
        ensure!(started.elapsed() < PATIENCE, "turns still run: {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Reads the store itself.
async fn look(site: &Site, acknowledged: &[String]) -> anyhow::Result<Found> {
    let store = Store::open(&site.home().join("sessions/store/belljar.db")).await?;
    let mut found = Found::default();
    let mut said: HashMap<String, usize> = HashMap::new();
    let (mut made, mut known) = (0, 0);
    for session in all_sessions(&store).await? {
        found.sessions += 1;
        let messages = store.list_messages(&session).await?;
        for message in &messages {
            ensure!(
                message.status != MessageStatus::InFlight,
                "a turn of {session} was not resumed"
            );
            if let Some(text) = message.content["text"].as_str() {
                *said.entry(text.to_owned()).or_default() += 1;
            }
        }
        let mut calls = HashMap::new();
        for stored in store.latest_receipts(&session, None, 10_000).await? {
            let receipt = stored.receipt;
            let call = (stored.message, receipt.agent.clone(), receipt.call_id.clone());
            *calls.entry(call).or_insert(0) += 1;
            if receipt.tool == "shell" {
                known += 1;
                let ended = receipt.body["error"].as_str().unwrap_or_default();
                match ended.contains("it is not known how far") {
                    true => found.interrupted += 1,
                    false => made += 1,
                }
            }
        }
        for (call, times) in calls {
            ensure!(times == 1, "{call:?} of {session} was answered {times} times");
        }
        let events = store.events_after(&session, 0, 10_000).await?;
        for (place, event) in events.iter().enumerate() {
            ensure!(event.id == place as i64 + 1, "event {} of {session} is missing", place + 1);
        }
        found.resumed +=
            events.iter().filter(|event| event.json.contains("\"run_resumed\"")).count();
    }
    for text in acknowledged {
        let times = said.get(text).copied().unwrap_or(0);
        ensure!(times == 1, "`{text}` was acknowledged and is there {times} times");
    }
    let lines = std::fs::read_to_string(site.workspace().join("done.txt"));
    found.done = lines.context("no effect at all")?.lines().count();
    ensure!(
        (made..=known).contains(&found.done),
        "{} effects, {made} calls that made one and {} that may have",
        found.done,
        found.interrupted
    );
    store.close().await;
    Ok(found)
}

async fn all_sessions(store: &Store) -> anyhow::Result<Vec<String>> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let before = all.last().map(String::as_str);
        let page = store.sessions_page(before, belljar_store::MAX_LISTED).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page.into_iter().map(|session| session.id));
    }
}
