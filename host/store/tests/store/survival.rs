//! Tests that committed writes survive the death of the process.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use belljar_store::{JournalKind, Store, StoreWrite};

use crate::support::{Home, entry, filled};

/// The environment variable with the file's path for the child process.
const FILE: &str = "BELLJAR_STORE_TEST_FILE";

fn step(number: i64) -> Vec<StoreWrite> {
    vec![StoreWrite::Journal {
        session: "s".into(),
        message: "m2".into(),
        entries: vec![entry(JournalKind::Said, number), entry(JournalKind::Result, number)],
    }]
}

/// Writes, prints what was committed, and kills its own process during further writes.
async fn write_and_die(file: &Path) -> ! {
    let store = Store::open(file).await.unwrap();
    let mut out = std::io::stdout();
    for number in 0..100 {
        store.enqueue_writes(step(number)).await.unwrap();
        writeln!(out, "\nacknowledged {number}").unwrap();
    }
    for number in 100..200 {
        drop(store.enqueue_writes(step(number)));
    }
    out.flush().unwrap();
    std::process::abort()
}

#[tokio::test]
async fn what_was_acknowledged_outlives_the_process() {
    if let Some(file) = std::env::var_os(FILE) {
        write_and_die(Path::new(&file)).await;
    }
    let home = Home::new();
    filled(&home).await.close().await;
    let name = "survival::what_was_acknowledged_outlives_the_process";
    let child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(FILE, home.file())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(!child.status.success());
    let out = String::from_utf8(child.stdout).unwrap();
    let said: Vec<i64> = out
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged "))
        .map(|number| number.parse().unwrap())
        .collect();
    assert_eq!(said, (0..100).collect::<Vec<i64>>(), "{out}");
    let steps: Vec<i64> = home
        .open()
        .await
        .journal_of("s", "m2")
        .await
        .unwrap()
        .iter()
        .map(|entry| entry.step)
        .collect();
    assert!(steps.len() >= 2 * said.len(), "{} are there", steps.len());
    let whole: Vec<i64> = (0..steps.len() as i64).map(|at| at / 2).collect();
    assert_eq!(steps, whole, "in order, without gaps, and no group by half");
}

#[tokio::test]
async fn what_was_acknowledged_outlives_handles_that_nobody_closed() {
    let home = Home::new();
    let store = filled(&home).await;
    store.enqueue_writes(step(1)).await.unwrap();
    drop(store.enqueue_writes(step(2)));
    drop(store);
    let again = home.open().await;
    // The old writer ends after it has written everything that was enqueued.
    let mut steps = Vec::new();
    while steps.len() < 4 {
        tokio::task::yield_now().await;
        steps = again.journal_of("s", "m2").await.unwrap();
        assert!(steps.len() >= 2);
    }
    assert_eq!(steps[3], entry(JournalKind::Result, 2));
}
