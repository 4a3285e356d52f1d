//! A client that calls tools itself, and what is stored of that.

use belljar_agent::DirectCall;
use tokio_util::sync::CancellationToken;

use crate::service::{LIMITS, questions_with};

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

#[tokio::test]
async fn each_of_many_calls_has_its_receipt_in_their_order() {
    let questions = questions_with(LIMITS).await;
    let client = questions.service.direct("scout", "tests", "key:1").await.unwrap();
    for number in 0..50 {
        let path = if number == 20 { "none.txt" } else { "a.txt" };
        client.call(call(number, path)).await.unwrap();
    }
    client.close().await;
    let receipts = questions.store.receipts(client.id(), None, 1_000).await.unwrap();
    let calls: Vec<&str> = receipts.iter().map(|stored| stored.receipt.call_id.as_str()).collect();
    let expected: Vec<String> = (0..50).map(|number| format!("call-{number}")).collect();
    assert_eq!(calls, expected);
    let failed: Vec<&str> = receipts
        .iter()
        .filter(|stored| !stored.receipt.ok)
        .map(|stored| stored.receipt.call_id.as_str())
        .collect();
    assert_eq!(failed, ["call-20"]);
    assert_eq!(questions.store.contents(client.id()).await.unwrap().receipts, 50);
}
