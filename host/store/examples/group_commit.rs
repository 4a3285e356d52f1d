//! Measures how many writes per second the store accepts, if each caller waits for one journal row before it
//! enqueues the next.
//!
//! ```sh
//! cargo run -p belljar-store --example group_commit
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::time::{Duration, Instant};

use belljar_store::{
    JournalEntry, JournalKind, MessageStatus, NewMessage, Role, SessionKind, Store, StoreWrite,
    StoredSession,
};
use serde_json::json;

/// The time for which each number of callers is measured.
const TIME: Duration = Duration::from_secs(2);

#[tokio::main]
// For each number of callers: every caller writes rows of its own turn for some seconds, and the rate of all
// is printed.
async fn main() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("belljar.db")).await.unwrap();
    for callers in [1, 8, 64] {
        let started = Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|caller| tokio::spawn(write_turn(store.clone(), format!("{callers}-{caller}"))))
            .collect();
        let mut rows = 0_u32;
        for task in tasks {
            rows += task.await.unwrap();
        }
        let rate = f64::from(rows) / started.elapsed().as_secs_f64();
        println!("{callers:>3} callers: {rate:>8.0} rows/s");
    }
    store.close().await;
}

/// One caller with a separate turn; returns the number of rows written.
async fn write_turn(store: Store, id: String) -> u32 {
    let text = || "a".to_owned();
    let session = StoredSession {
        id: id.clone(),
        title: text(),
        agent: text(),
        workspace: text(),
        model: text(),
        kind: SessionKind::Chat,
        created: 0,
        updated: 0,
    };
    let placeholder = NewMessage {
        id: id.clone(),
        role: Role::Assistant,
        status: MessageStatus::InFlight,
        content: json!({}),
        metadata: json!({}),
        created: 0,
    };
    let append = StoreWrite::AppendMessages { session: id.clone(), messages: vec![placeholder] };
    store.enqueue_writes(vec![StoreWrite::CreateSession(session), append]).await.unwrap();
    let started = Instant::now();
    let mut rows = 0;
    while started.elapsed() < TIME {
        let entries = vec![JournalEntry {
            agent: "top".to_owned(),
            step: i64::from(rows),
            position: 0,
            kind: JournalKind::Said,
            body: json!({"text": "what a model might say in a sentence or two"}),
        }];
        let row = StoreWrite::Journal { session: id.clone(), message: id.clone(), entries };
        store.enqueue_writes(vec![row]).await.unwrap();
        rows += 1;
    }
    rows
}
