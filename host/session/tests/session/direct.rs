//! A client that calls tools itself, and what the store has of its calls.

use belljar_agent::DirectCall;
use belljar_session::{DirectSession, ServiceError, ServiceLimits};
use tokio_util::sync::CancellationToken;

use crate::service::{LIMITS, questions_with};

/// A call of `file_read`.
fn call(number: usize, path: &str) -> DirectCall {
    DirectCall {
        id: format!("call-{number}"),
        tool: "file_read".to_owned(),
        arguments: format!("{{\"path\": \"{path}\"}}"),
        progress: None,
        asker: None,
        cancel: CancellationToken::new(),
        fresh: false,
    }
}

/// Makes calls until one is refused, and waits until each is stored; returns the number of successful calls,
/// and the refusal.
async fn until_refused(client: &DirectSession) -> (usize, ServiceError) {
    for number in 0.. {
        match client.call_tool(call(number, "a.txt")).await {
            Ok(done) => assert!(done.result.outcome.is_ok(), "{done:?}"),
            Err(error) => return (number, error),
        }
        client.wait_until_stored().await;
        assert!(number < 1_000, "it may store what it likes");
    }
    unreachable!()
}

#[tokio::test]
async fn receipts_of_calls_count_and_a_session_that_is_open_stores_no_more_than_it_may() {
    const STORAGE: u64 = 20_000;
    let limits = ServiceLimits { storage_bytes: Some(STORAGE), ..LIMITS };
    let questions = questions_with(limits).await;
    let client = questions.service.begin_direct("scout", "tests", "key:1").await.unwrap();
    let (made, refused) = until_refused(&client).await;
    assert!(matches!(refused, ServiceError::StorageFull { .. }), "{refused}");
    assert!(made > 3, "{made}");
    let stored = questions.store.stored_bytes().await.unwrap();
    assert!(stored > STORAGE && stored < STORAGE * 2, "{stored}");
    // After the tenant has room again, a client can call.
    let other = questions.service.begin_direct("scout", "another", "key:2").await;
    assert!(matches!(other, Err(ServiceError::StorageFull { .. })), "{other:?}");
    client.close_jar().await;
    assert!(questions.store.delete_session(client.session_id()).await.unwrap());
    let next = questions.service.begin_direct("scout", "another", "key:2").await.unwrap();
    next.call_tool(call(0, "a.txt")).await.unwrap();
    // The effects before the client notices the deletion are deleted with the session; later calls are
    // recorded in a new one.
    for number in [9_997, 9_998, 9_999] {
        client.call_tool(call(number, "a.txt")).await.unwrap();
        client.wait_until_stored().await;
    }
    let receipts = questions.store.latest_receipts(client.session_id(), None, 9).await.unwrap();
    let calls: Vec<&str> = receipts.iter().map(|stored| stored.receipt.call_id.as_str()).collect();
    assert_eq!(calls, ["call-9998", "call-9999"]);
}

#[tokio::test]
async fn each_of_many_calls_has_its_receipt_in_their_order() {
    let questions = questions_with(LIMITS).await;
    let client = questions.service.begin_direct("scout", "tests", "key:1").await.unwrap();
    for number in 0..50 {
        let path = if number == 20 { "none.txt" } else { "a.txt" };
        client.call_tool(call(number, path)).await.unwrap();
    }
    client.close_jar().await;
    let receipts = questions.store.latest_receipts(client.session_id(), None, 1_000).await.unwrap();
    let calls: Vec<&str> = receipts.iter().map(|stored| stored.receipt.call_id.as_str()).collect();
    let expected: Vec<String> = (0..50).map(|number| format!("call-{number}")).collect();
    assert_eq!(calls, expected);
    let failed: Vec<&str> = receipts
        .iter()
        .filter(|stored| !stored.receipt.ok)
        .map(|stored| stored.receipt.call_id.as_str())
        .collect();
    assert_eq!(failed, ["call-20"]);
    assert_eq!(questions.store.read_contents(client.session_id()).await.unwrap().receipts, 50);
}
