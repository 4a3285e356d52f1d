//! Tests of packed receipts: they are read as if each had a separate row.

use belljar_store::{ReceiptRow, Store, StoreError, StoreWrite};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Home, filled, receipt};

/// Bytes of contents that are too many for packing.
const LARGE: usize = 20_000;

fn write(packed: bool, message: &str, rows: &[ReceiptRow]) -> Vec<StoreWrite> {
    let (session, message) = ("s".to_owned(), message.to_owned());
    let receipts = rows.iter().cloned().map(Into::into).collect();
    vec![match packed {
        true => StoreWrite::PackedReceipts { session, message, receipts },
        false => StoreWrite::Receipts { session, message, receipts },
    }]
}

fn numbered(numbers: std::ops::Range<i64>) -> Vec<ReceiptRow> {
    numbers.map(|at| receipt(&format!("r{at:03}"), at)).collect()
}

async fn rows(store: &Store) -> Vec<ReceiptRow> {
    let found = store.latest_receipts("s", None, 1_000).await.unwrap();
    found.into_iter().map(|found| found.receipt).collect()
}

#[tokio::test]
async fn many_are_few_rows_and_come_back_as_they_were() {
    let home = Home::new();
    let store = filled(&home).await;
    let mut all = numbered(0..300);
    all[150].body = json!({"text": "\u{1f41a}\n\"", "large": "x".repeat(LARGE)});
    all[151].body = Value::Null;
    all[152].ok = false;
    store.enqueue_writes(write(true, "m2", &all)).await.unwrap();
    assert_eq!(rows(&store).await, all);
    let of_turn = store.receipts_of_turn("s", "m2").await.unwrap();
    assert!(of_turn.iter().map(|found| &found.receipt).eq(&all));
    assert!(of_turn.iter().all(|found| found.message == "m2"));
    assert_eq!(store.read_contents("s").await.unwrap().receipts, 300);
    // 128 small receipts are packed into one row.
    assert_eq!(home.number("SELECT COUNT(*) FROM receipt_blocks").await, 3);
    assert_eq!(home.number("SELECT COUNT(*) FROM receipts").await, 1, "the large one");
    store.enqueue_writes(write(true, "m1", &numbered(300..303))).await.unwrap();
    assert_eq!(home.number("SELECT COUNT(*) FROM receipts").await, 4, "few are rows of their own");
    assert_eq!(store.latest_receipts("s", Some("m1"), 9).await.unwrap().len(), 3);
    assert_eq!(store.latest_receipts("s", Some("m2"), 1).await.unwrap()[0].receipt, all[299]);
}

#[tokio::test]
async fn they_take_little_room_and_count_for_their_length() {
    let home = Home::new();
    let store = filled(&home).await;
    let like = |at: i64| {
        let mut row = receipt(&format!("r{at:03}"), at);
        row.body = json!({"component": "07d0".repeat(16), "call": at, "stdout": "", "hosts": []});
        row
    };
    let all: Vec<_> = (0..64).map(like).collect();
    let before = store.stored_bytes().await.unwrap();
    store.enqueue_writes(write(true, "m2", &all)).await.unwrap();
    let packed = home.number("SELECT SUM(LENGTH(body)) FROM receipt_blocks").await;
    let text: usize = all.iter().map(|row| row.body.to_string().len()).sum();
    assert!(usize::try_from(packed).unwrap() * 2 < text, "{packed} of {text}");
    assert_eq!(rows(&store).await, all);
    // Packed receipts count as if each had a separate row.
    let counted = store.stored_bytes().await.unwrap() - before;
    assert_eq!(usize::try_from(counted).unwrap(), text + 128 * all.len());
}

#[tokio::test]
async fn a_row_takes_so_many_bytes_of_them() {
    let home = Home::new();
    let store = filled(&home).await;
    let mut all = numbered(0..100);
    for (row, bytes) in all.iter_mut().zip(15_000..) {
        row.body = json!("x".repeat(bytes));
    }
    store.enqueue_writes(write(true, "m2", &all)).await.unwrap();
    // 35 of these receipts have half a MiB.
    assert_eq!(home.number("SELECT COUNT(*) FROM receipt_blocks").await, 3);
    assert_eq!(rows(&store).await, all);
    let page = store.receipts_page("s", None, None, 100, 100_000).await.unwrap();
    assert!(page.rows.iter().map(|row| &row.receipt).eq(&all[93..]) && page.more);
}

#[tokio::test]
async fn they_are_stored_whole_or_not_at_all_and_for_nobody_else() {
    let home = Home::new();
    let store = filled(&home).await;
    let mut both = write(true, "m2", &numbered(0..9));
    both.extend(write(true, "m9", &numbered(10..19)));
    let error = store.enqueue_writes(both).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { what: "message", .. }), "{error}");
    let other = store.for_tenant_name("other");
    let error = other.enqueue_writes(write(true, "m2", &numbered(0..9))).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { what: "message", .. }), "{error}");
    assert_eq!(home.number("SELECT COUNT(*) FROM receipt_blocks").await, 0);
    store.enqueue_writes(write(true, "m2", &numbered(0..9))).await.unwrap();
    assert!(other.latest_receipts("s", None, 9).await.unwrap().is_empty());
    assert!(other.receipts_page("s", None, Some("r005"), 9, 9_000).await.unwrap().rows.is_empty());
    assert!(other.receipts_of_turn("s", "m2").await.unwrap().is_empty());
    assert_eq!(rows(&store).await, numbered(0..9));
}

#[tokio::test]
async fn packed_bytes_that_nobody_wrote_are_refused_and_take_no_memory() {
    let home = Home::new();
    let store = filled(&home).await;
    store.enqueue_writes(write(true, "m2", &numbered(0..9))).await.unwrap();
    for (change, why) in [
        ("UPDATE receipt_blocks SET body = X''", "larger than any that is written"),
        ("UPDATE receipt_blocks SET body = X'ffffffff00'", "larger than any that is written"),
        ("UPDATE receipt_blocks SET body = X'10000000f0'", "packed receipts"),
        ("UPDATE receipt_blocks SET body = X'02000000207b7d'", "packed receipts"),
    ] {
        home.tamper(change).await;
        let error = store.latest_receipts("s", None, 9).await.unwrap_err();
        assert!(matches!(error, StoreError::Row { .. }), "{change}: {error}");
        let text = error.to_string();
        assert!(text.contains("packed receipts") && text.contains(why), "{change}: {text}");
    }
    home.tamper("UPDATE receipt_blocks SET body = X'02000000205b5d'").await;
    assert!(rows(&store).await.is_empty(), "that is an empty array");
}

/// A receipt of the property test: its time, the bytes of its contents, whether it begins another write, and
/// whether that write is packed.
type Made = (i64, usize, bool, bool);

#[test]
fn pages_are_the_same_however_receipts_are_stored() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let made = prop::collection::vec(
        (0..60_i64, 1..400_usize, prop::bool::weighted(0.1), any::<bool>()),
        1..250,
    );
    let config = ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() };
    let asked = (1..90_u32, prop_oneof![1..3_000_i64, Just(i64::MAX)]);
    // In some cases the receipts' times are in no order, in others they increase.
    let test = |(made, (limit, bytes), pace): (Vec<Made>, (u32, i64), i64)| {
        let later = |(at, (created, size, begins, next))| (created + at * pace, size, begins, next);
        let made = (0..).zip(made).map(later).collect();
        runtime.block_on(like_rows(made, limit, bytes));
        Ok(())
    };
    TestRunner::new(config)
        .run(&(made, asked, prop_oneof![Just(0_i64), Just(5), Just(100)]), test)
        .unwrap();
}

async fn like_rows(made: Vec<Made>, limit: u32, bytes: i64) {
    let home = Home::new();
    let store = filled(&home).await;
    let (mut all, mut batch, mut packed, mut message) = (Vec::new(), Vec::new(), true, "m1");
    for (at, (created, size, begins, next)) in made.into_iter().enumerate() {
        if begins {
            store.enqueue_writes(write(packed, message, &batch)).await.unwrap();
            packed = next;
            message = if at % 2 == 0 { "m1" } else { "m2" };
            batch.clear();
        }
        // The ids are in no order, as after a clock was set back.
        let mut row = receipt(&format!("r{:03}", at * 7 % 251), created);
        row.body = json!("x".repeat(size));
        batch.push(row.clone());
        all.push((message, row));
    }
    store.enqueue_writes(write(packed, message, &batch)).await.unwrap();
    all.sort_by(|(_, one), (_, other)| (one.created, &one.id).cmp(&(other.created, &other.id)));
    for of in [None, Some("m1"), Some("m2")] {
        let rows = all.iter().filter(|(message, _)| of.is_none_or(|of| of == *message));
        in_pages(&store, of, rows.map(|(_, row)| row.clone()).collect(), limit, bytes).await;
    }
    let none = store.receipts_page("s", None, None, 0, bytes).await.unwrap();
    assert!(none.rows.is_empty() && !none.more);
}

/// Reads the receipts `left` of a message page by page.
async fn in_pages(
    store: &Store,
    message: Option<&str>,
    mut left: Vec<ReceiptRow>,
    limit: u32,
    bytes: i64,
) {
    let mut before: Option<String> = None;
    while !left.is_empty() {
        // The newest of the remaining receipts must be on the next page, up to its limits.
        let page = store.receipts_page("s", message, before.as_deref(), limit, bytes).await;
        let page = page.unwrap();
        let found: Vec<_> = page.rows.into_iter().map(|row| row.receipt).collect();
        assert!(found.len() <= limit as usize && !found.is_empty());
        assert_eq!(found, left.split_off(left.len() - found.len()));
        let size = |rows: &[ReceiptRow]| -> i64 {
            rows.iter().map(|row| i64::try_from(row.body.to_string().len()).unwrap()).sum()
        };
        assert!(size(&found[1..]) < bytes, "{} bytes", size(&found));
        assert_eq!(page.more, !left.is_empty());
        let full = found.len() == limit as usize || size(&found) >= bytes;
        assert!(
            full || !page.more,
            "{} of {limit}, {} bytes of {bytes}",
            found.len(),
            size(&found)
        );
        before = found.first().map(|first| first.id.clone());
    }
}
