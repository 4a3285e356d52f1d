//! Calls through a jar: answers, errors, bounds, isolation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use belljar_kit::{TestHost, WatTool, assert_text, stock, wat_tool};
use belljar_sandbox::{CallError, Wasm};

/// A guest that answers with its arguments.
const ECHO: &str = "(call $text (local.get $args) (local.get $args_len))";

#[tokio::test]
async fn a_stock_tool_reads_a_file_of_its_mount() {
    let host = TestHost::new();
    host.write("notes.txt", "one\ntwo\n");
    let jar = host.jar([stock("file_read")]).await;
    let result = jar.call("file_read", r#"{"path": "notes.txt"}"#).await;
    assert_text(&result, "one\ntwo\n");
    assert_eq!(result.receipt.paths_read, ["/workspace/notes.txt"]);
    assert_eq!(result.receipt.bytes.read, 8);
}

#[tokio::test]
async fn a_tool_of_a_few_lines_answers() {
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(wat_tool("echo", ECHO))]).await;
    let result = jar.call("echo", r#"{"a": 1}"#).await;
    assert_text(&result, r#"{"a": 1}"#);
    let tool = WatTool::new("sad", "(call $fail (i32.const 1) (local.get $args) (i32.const 2))");
    let jar = host.jar([Wasm::new(tool.build())]).await;
    let error = jar.call("sad", "{}").await.outcome.unwrap_err();
    assert!(matches!(error, CallError::Tool { ref message, .. } if message == "{}"), "{error}");
}
