//! Tests of events: none is lost or read twice, wherever a reader begins.

use belljar_store::{EventBlock, MAX_BLOCK_BYTES, Store, StoreError, StoreWrite};

use crate::support::{Home, filled};

fn events(first_seq: i64, bodies: impl IntoIterator<Item = String>) -> Vec<StoreWrite> {
    let block = EventBlock { first_seq, events: bodies.into_iter().collect() };
    vec![StoreWrite::Events { session: "s".into(), message: "m2".into(), block }]
}

/// An event whose text contains the separator of events, escaped.
fn body(seq: i64) -> String {
    serde_json::json!({"seq": seq, "text": ",\n[{\"\\\n,"}).to_string()
}

/// Stores blocks of 1, 2, 3, ... events until `last` is reached; returns the number of the last event.
async fn store_events(store: &Store, last: i64) -> i64 {
    let (mut next, mut size) = (1, 1);
    while next <= last {
        store.enqueue_writes(events(next, (next..next + size).map(body))).await.unwrap();
        (next, size) = (next + size, size + 1);
    }
    next - 1
}

#[tokio::test]
async fn a_reader_who_begins_anywhere_gets_each_event_once() {
    let home = Home::new();
    let store = filled(&home).await;
    assert_eq!(store.last_event("s").await.unwrap(), 0);
    let last = store_events(&store, 60).await;
    assert_eq!(store.last_event("s").await.unwrap(), last);
    for limit in [1, 2, 7, 10, 1_000] {
        for begin in [0, 1, 2, 5, 6, last - 1, last, last + 5] {
            let (mut after, mut read) = (begin, Vec::new());
            loop {
                let page = store.events_after("s", after, limit).await.unwrap();
                assert!(page.len() <= limit as usize);
                let Some(end) = page.last() else { break };
                after = end.id;
                read.extend(page);
            }
            let seqs: Vec<i64> = read.iter().map(|event| event.id).collect();
            assert_eq!(seqs, (begin + 1..=last).collect::<Vec<i64>>(), "{limit} after {begin}");
            assert!(read.iter().all(|event| *event.json == *body(event.id)));
            assert!(read.iter().all(|event| *event.message == *"m2"));
        }
    }
    assert!(store.events_after("s", 0, 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_large_page_is_cut_and_the_next_goes_on() {
    let home = Home::new();
    let store = filled(&home).await;
    let large = format!("\"{}\"", "x".repeat(3 << 20));
    for seq in 1..=6 {
        store.enqueue_writes(events(seq, [large.clone()])).await.unwrap();
    }
    let first = store.events_after("s", 0, 100).await.unwrap();
    assert_eq!(first.len(), 1, "as many as go beyond the bound, and no more");
    let second = store.events_after("s", 1, 100).await.unwrap();
    assert_eq!(second[0].id, 2);
}

#[tokio::test]
async fn a_gap_or_a_repeat_is_refused_and_the_right_block_goes_on() {
    let home = Home::new();
    let store = filled(&home).await;
    let last = store_events(&store, 1).await;
    assert_eq!(last, 1);
    for first in [i64::MIN, -1, 0, 1, 3, 100] {
        let error = store.enqueue_writes(events(first, [body(first)])).await.unwrap_err();
        assert!(matches!(error, StoreError::OutOfOrder { .. }), "{first}: {error}");
    }
    // Events after an invalid block would leave a gap, so they fail with it.
    let bad = store.enqueue_writes(events(2, ["{".to_owned()]));
    let behind = store.enqueue_writes(events(3, [body(3)]));
    assert!(matches!(bad.await, Err(StoreError::Invalid { .. })));
    assert!(matches!(behind.await, Err(StoreError::OutOfOrder { .. })));
    store.enqueue_writes(events(2, [body(2), body(3)])).await.unwrap();
    assert_eq!(store.last_event("s").await.unwrap(), 3);
}

#[tokio::test]
async fn what_is_no_event_is_refused() {
    let home = Home::new();
    let store = filled(&home).await;
    for (bad, first) in [
        (vec![], 1),
        (vec!["{\"a\":\n1}".to_owned()], 1),
        (vec!["1,2".to_owned()], 1),
        (vec![String::new()], 1),
        (vec!["1".to_owned(), "2".to_owned()], i64::MAX),
    ] {
        let error = store.enqueue_writes(events(first, bad)).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
    }
    let large = format!("\"{}\"", "x".repeat(MAX_BLOCK_BYTES));
    let error = store.enqueue_writes(events(1, [large])).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    assert_eq!(store.last_event("s").await.unwrap(), 0);
}

#[tokio::test]
async fn a_block_that_somebody_has_changed_is_an_error_and_not_a_gap() {
    let home = Home::new();
    let store = filled(&home).await;
    store_events(&store, 10).await;
    home.tamper("UPDATE event_blocks SET body = '[1]' WHERE first_seq = 4").await;
    let error = store.events_after("s", 0, 100).await.unwrap_err();
    assert!(matches!(error, StoreError::Row { .. }), "{error}");
    assert!(error.to_string().contains("session `s`"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_beside_the_writer_sees_no_gap() {
    const LAST: i64 = 400;
    let home = Home::new();
    let store = filled(&home).await;
    let writer = store.clone();
    let writing = tokio::spawn(async move { store_events(&writer, LAST).await });
    let mut seen = 0;
    while seen < LAST {
        for event in store.events_after("s", seen, 50).await.unwrap() {
            assert_eq!(event.id, seen + 1);
            seen = event.id;
        }
    }
    assert!(writing.await.unwrap() >= seen);
}
