//! Tests of other rows: receipts, answers, files, summaries, agents, usage.

use belljar_store::{MAX_AGENT_BYTES, MAX_ATTACHMENT_BYTES, ReceiptRow, StoreError, StoreWrite};

use crate::support::{
    Home, answer, attachment, everything, filled, full, part, receipt, summary, usage,
};

#[tokio::test]
async fn receipts_are_the_latest_in_their_order() {
    let home = Home::new();
    let store = filled(&home).await;
    for (message, numbers) in [("m1", 0..3), ("m2", 3..6)] {
        let receipts = numbers.map(|at| receipt(&format!("r{at}"), at).into()).collect();
        let (session, message) = ("s".to_owned(), message.to_owned());
        store
            .enqueue_writes(vec![StoreWrite::Receipts { session, message, receipts }])
            .await
            .unwrap();
    }
    let check = async |message: Option<&str>, limit: u32, expected: &[&str]| {
        let found = store.latest_receipts("s", message, limit).await.unwrap();
        let ids: Vec<&str> = found.iter().map(|found| found.receipt.id.as_str()).collect();
        assert_eq!(ids, expected, "{message:?} {limit}");
    };
    check(None, 100, &["r0", "r1", "r2", "r3", "r4", "r5"]).await;
    check(None, 2, &["r4", "r5"]).await;
    check(Some("m1"), 100, &["r0", "r1", "r2"]).await;
    check(Some("m2"), 1, &["r5"]).await;
    check(Some("m9"), 100, &[]).await;
    let found = store.latest_receipts("s", None, 1).await.unwrap();
    assert_eq!((found[0].message.as_str(), &found[0].receipt), ("m2", &receipt("r5", 5)));
}

#[tokio::test]
async fn many_receipts_are_stored_whole_or_not_at_all() {
    let home = Home::new();
    let store = filled(&home).await;
    let many = |numbers: std::ops::Range<i64>| numbers.map(|at| receipt(&format!("r{at:02}"), at));
    let write = |message: &str, receipts: Vec<ReceiptRow>| {
        let (session, message) = ("s".to_owned(), message.to_owned());
        let receipts = receipts.into_iter().map(Into::into).collect();
        vec![StoreWrite::Receipts { session, message, receipts }]
    };
    store.enqueue_writes(write("m1", many(0..39).collect())).await.unwrap();
    let rows = async |store: &belljar_store::Store| {
        let found = store.latest_receipts("s", None, 100).await.unwrap();
        found.into_iter().map(|found| (found.message, found.receipt)).collect::<Vec<_>>()
    };
    let expected: Vec<_> = many(0..39).map(|receipt| ("m1".to_owned(), receipt)).collect();
    assert_eq!(rows(&store).await, expected);
    // The last of these receipts exists already.
    let taken = many(40..60).chain(many(38..39)).collect();
    store.enqueue_writes(write("m1", taken)).await.unwrap_err();
    let strange =
        store.for_tenant_name("other").enqueue_writes(write("m1", many(60..80).collect())).await;
    assert!(matches!(strange, Err(StoreError::NotFound { what: "message", .. })), "{strange:?}");
    store.enqueue_writes(write("m9", many(60..80).collect())).await.unwrap_err();
    assert_eq!(rows(&store).await, expected);
}

#[tokio::test]
async fn answers_files_and_summaries_come_back_as_they_were() {
    let home = Home::new();
    let store = full(&home).await;
    assert_eq!(store.latest_answers("s").await.unwrap(), [answer("s-answer", "s", "s2")]);
    let files = store.latest_attachments("s").await.unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].message.as_str(), files[0].size), ("s2", 7));
    assert_eq!(files[0].call_id.as_deref(), Some("call_1"));
    let (about, data) = store.read_attachment("s", "s-file").await.unwrap();
    assert_eq!((&about, data.as_slice()), (&files[0], b"\0bytes\xff".as_slice()));
    let strange = store.read_attachment("s", "t-file").await.unwrap_err();
    assert!(matches!(strange, StoreError::NotFound { what: "attachment", .. }), "{strange}");
    store.save_compaction("s", &summary(9)).await.unwrap();
    let mut earlier = summary(1);
    earlier.text = "another".into();
    store.save_compaction("s", &earlier).await.unwrap();
    assert_eq!(store.latest_compaction("s").await.unwrap(), Some(summary(9)));
    assert_eq!(store.latest_compaction("t").await.unwrap(), Some(summary(1)));
    let agent = store.find_subagent("s", "s-agent").await.unwrap().unwrap();
    assert_eq!(store.list_subagents("s").await.unwrap(), [agent]);
    assert!(store.find_subagent("s", "t-agent").await.unwrap().is_none());
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_with_its_whole_group() {
    let home = Home::new();
    let store = home.open().await;
    let mut group = everything("s");
    let attachments = vec![attachment("big", &vec![0; MAX_ATTACHMENT_BYTES + 1])];
    group.push(StoreWrite::Attachments { session: "s".into(), message: "s2".into(), attachments });
    let error = store.enqueue_writes(group).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    assert!(store.latest_sessions(10).await.unwrap().is_empty());
    assert_eq!(store.pending_writes(), 0);
}

#[tokio::test]
async fn an_agent_is_changed_only_by_who_has_read_its_latest_version() {
    let home = Home::new();
    let store = home.open().await;
    let first = store.save_agent("scout", "one", 10, None).await.unwrap();
    assert_eq!(first, 10);
    // Two people edit the agent at the same time of the clock.
    let second = store.save_agent("scout", "two", 10, Some(first)).await.unwrap();
    assert_ne!(second, first);
    for stale in [None, Some(first), Some(99)] {
        let error = store.save_agent("scout", "three", 20, stale).await.unwrap_err();
        assert!(matches!(error, StoreError::Conflict { .. }), "{stale:?}: {error}");
    }
    let error = store.save_agent("other", "text", 20, Some(10)).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
    let large = "x".repeat(MAX_AGENT_BYTES + 1);
    let error = store.save_agent("other", &large, 20, None).await.unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    let agents = store.list_agents().await.unwrap();
    assert_eq!(agents.len(), 1);
    assert_eq!((agents[0].text.as_str(), agents[0].created), ("two", 10));
    assert_eq!(store.find_agent("scout").await.unwrap().as_ref(), agents.first());
    assert!(store.delete_agent("scout").await.unwrap());
    assert!(!store.delete_agent("scout").await.unwrap());
    assert!(store.find_agent("scout").await.unwrap().is_none());
}

#[tokio::test]
async fn a_tenant_has_a_bounded_number_of_agents() {
    let home = Home::new();
    let store = home.open().await;
    let slugs: Vec<String> = (0..belljar_store::MAX_AGENTS).map(|at| format!("a{at}")).collect();
    for slug in &slugs {
        store.save_agent(slug, "text", 1, None).await.unwrap();
    }
    let error = store.save_agent("more", "text", 1, None).await.unwrap_err();
    assert!(matches!(error, StoreError::TooMany { .. }), "{error}");
    store.save_agent("a0", "changed", 2, Some(1)).await.unwrap();
    store.delete_agent("a1").await.unwrap();
    store.save_agent("more", "text", 1, None).await.unwrap();
}

#[tokio::test]
async fn usage_adds_up_by_day_and_never_beyond_its_column() {
    let home = Home::new();
    let store = home.open().await;
    let add = |row| vec![StoreWrite::Usage(part("home/scout", "m", row))];
    for row in [usage("2026-01-02", 3), usage("2026-01-01", 1), usage("2026-01-02", 4)] {
        store.enqueue_writes(add(row)).await.unwrap();
    }
    store.enqueue_writes(add(usage("2026-01-02", -9))).await.unwrap();
    let both = [usage("2026-01-01", 1), usage("2026-01-02", 7)];
    assert_eq!(store.usage_by_day("").await.unwrap(), both);
    assert_eq!(store.usage_by_day("2026-01-02").await.unwrap(), both[1..]);
    assert!(store.usage_by_day("2026-01-03").await.unwrap().is_empty());
    store.enqueue_writes(add(usage("2026-01-02", i64::MAX - 1))).await.unwrap();
    assert_eq!(store.usage_by_day("2026-01-02").await.unwrap(), [usage("2026-01-02", i64::MAX)]);
    for day in ["", "2026-1-2", "2026-01-0x", "today's dat", "2026/01/02"] {
        let error = store.enqueue_writes(add(usage(day, 1))).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { .. }), "{day}: {error}");
    }
}

#[tokio::test]
async fn usage_is_counted_by_agent_and_model_and_its_days_sum_them() {
    let home = Home::new();
    let store = home.open().await;
    let parts = [
        part("home/scout", "fast", usage("2026-01-01", 1)),
        part("home/scout", "strong", usage("2026-01-01", i64::MAX - 1)),
        part("home/teller", "fast", usage("2026-01-02", 4)),
    ];
    for part in &parts {
        store.enqueue_writes(vec![StoreWrite::Usage(part.clone())]).await.unwrap();
    }
    assert_eq!(store.usage_parts("").await.unwrap(), parts);
    assert_eq!(store.usage_parts("2026-01-02").await.unwrap(), parts[2..]);
    let days = [usage("2026-01-01", i64::MAX), usage("2026-01-02", 4)];
    assert_eq!(store.usage_by_day("").await.unwrap(), days);
    let neighbour = store.for_tenant_name("neighbour");
    assert_eq!(neighbour.usage_parts("").await.unwrap(), []);
}
