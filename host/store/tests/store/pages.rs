//! Tests of pages that end after a number of bytes: each row occurs once, in the right order, and no other
//! tenant's rows.

use belljar_store::{ListPage, StoreWrite};
use serde_json::json;

use crate::support::Writes as _;
use crate::support::{Home, audit, filled, receipt, subagent};

/// The bytes of a large row.
const LARGE: usize = 1_000;

/// Reads all pages; returns the names of all rows, page by page. `page` returns the page after a name.
async fn all<T>(
    page: impl AsyncFn(Option<String>) -> ListPage<T>,
    name: impl Fn(&T) -> String,
    end: impl Fn(&ListPage<T>) -> Option<&T>,
) -> (Vec<Vec<String>>, usize) {
    let (mut pages, mut seen): (Vec<Vec<String>>, Option<String>) = (Vec::new(), None);
    loop {
        let page = page(seen).await;
        pages.push(page.rows.iter().map(&name).collect());
        seen = end(&page).filter(|_| page.more).map(&name);
        if seen.is_none() {
            let rows = pages.iter().map(Vec::len).sum();
            return (pages, rows);
        }
        assert!(pages.len() < 100, "no end");
    }
}

#[tokio::test]
async fn pages_of_receipts_end_behind_their_bytes() {
    let home = Home::new();
    let store = filled(&home).await;
    let receipts = (0..7).map(|number| {
        let mut row = receipt(&format!("r{number}"), number / 2);
        row.body = json!("x".repeat(LARGE));
        row
    });
    let (session, message) = ("s".to_owned(), "m2".to_owned());
    let write =
        StoreWrite::Receipts { session, message, receipts: receipts.map(Into::into).collect() };
    store.enqueue_writes(vec![write]).await.unwrap();
    let read = async |limit: u32, bytes: usize| {
        let bytes = i64::try_from(bytes).unwrap();
        let page = async |before: Option<String>| {
            store.receipts_page("s", None, before.as_deref(), limit, bytes).await.unwrap()
        };
        all(page, |row| row.receipt.id.clone(), |page| page.rows.first()).await.0
    };
    assert_eq!(read(100, usize::MAX / 2).await, [["r0", "r1", "r2", "r3", "r4", "r5", "r6"]]);
    let by_three = [vec!["r4", "r5", "r6"], vec!["r1", "r2", "r3"], vec!["r0"]];
    assert_eq!(read(3, usize::MAX / 2).await, by_three);
    assert_eq!(read(100, 2 * LARGE + 10).await, by_three);
    assert_eq!(read(100, 1).await.len(), 7, "one at least");
    let page = store.receipts_page("s", Some("m2"), Some("r1"), 9, 9_000).await.unwrap();
    assert_eq!((page.rows.len(), page.more), (1, false));
    for (session, message, before) in
        [("s", Some("m1"), None), ("s", None, Some("nothing")), ("other", None, None)]
    {
        let page = store.receipts_page(session, message, before, 9, 9_000).await.unwrap();
        assert!(page.rows.is_empty() && !page.more, "{session} {message:?} {before:?}");
    }
    let other =
        store.for_tenant_name("other").receipts_page("s", None, None, 9, 9_000).await.unwrap();
    assert!(other.rows.is_empty());
}

#[tokio::test]
async fn pages_of_subagents_end_behind_their_bytes() {
    let home = Home::new();
    let store = filled(&home).await;
    let records: Vec<_> = (0..5)
        .map(|number| {
            let mut record = subagent(&format!("b{number}"), "m2", number + 1);
            match number {
                0 => record.goal = "x".repeat(LARGE),
                1 => record.context = Some("x".repeat(LARGE)),
                2 => record.summary = "x".repeat(LARGE),
                3 => record.result = json!("x".repeat(LARGE)),
                _ => record.error = Some("x".repeat(LARGE)),
            }
            record
        })
        .collect();
    store.record_subagents("s", &records).await.unwrap();
    let read = async |limit: u32, bytes: i64| {
        let page = async |after: Option<String>| {
            store.subagents_page("s", None, after.as_deref(), limit, bytes).await.unwrap()
        };
        all(page, |row| row.id.clone(), |page| page.rows.last()).await.0
    };
    assert_eq!(read(100, i64::MAX).await, [["a1", "b0", "b1", "b2", "b3", "b4"]]);
    assert_eq!(read(4, i64::MAX).await, [vec!["a1", "b0", "b1", "b2"], vec!["b3", "b4"]]);
    // The first row is small; each of the others is the last one on its page.
    let each = [vec!["a1", "b0"], vec!["b1"], vec!["b2"], vec!["b3"], vec!["b4"]];
    assert_eq!(read(100, 900).await, each);
    for (session, message, after) in
        [("s", Some("m1"), None), ("s", None, Some("nothing")), ("other", None, None)]
    {
        let page = store.subagents_page(session, message, after, 9, 9_000).await.unwrap();
        assert!(page.rows.is_empty() && !page.more, "{session} {message:?} {after:?}");
    }
    let other =
        store.for_tenant_name("other").subagents_page("s", None, None, 9, 9_000).await.unwrap();
    assert!(other.rows.is_empty());
}

#[tokio::test]
async fn pages_of_the_audit_log_end_behind_their_bytes() {
    let home = Home::new();
    let store = home.open().await;
    let lines = (0..5).map(|number| {
        let mut line = audit(&format!("a{number}"), number);
        line.detail = json!("x".repeat(LARGE));
        StoreWrite::Audit(line)
    });
    store.enqueue_writes(lines.collect()).await.unwrap();
    let page = async |before: Option<String>| {
        store.read_audit(before.as_deref(), 100, 1_500).await.unwrap()
    };
    let (pages, rows) = all(page, |line| line.id.clone(), |page| page.rows.last()).await;
    assert_eq!(pages, [vec!["a4", "a3"], vec!["a2", "a1"], vec!["a0"]]);
    assert_eq!(rows, 5);
}
