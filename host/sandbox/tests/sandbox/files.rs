//! Files in real stores: the stock tools with mounts that allow little.

use std::time::Duration;

use belljar_kit::{TestHost, TestJar, assert_denied, assert_text, stock};
use belljar_policy::{DenyCode, Limits, MountAccess};
use belljar_sandbox::{CallError, CallResult};

/// A jar with the stock file tools.
async fn jar(host: &TestHost, access: MountAccess, limits: Limits) -> TestJar {
    let tools = ["file_read", "file_write", "file_edit", "file_list", "file_find"].map(stock);
    let mut builder = host.builder(tools);
    (builder.access, builder.limits) = (Some(access), limits);
    host.build(builder).await
}

async fn write(jar: &TestJar, path: &str, content: &str) -> CallResult {
    let arguments = serde_json::json!({ "path": path, "content": content, "create_dirs": true });
    jar.call("file_write", &arguments.to_string()).await
}

async fn read(jar: &TestJar, path: &str) -> CallResult {
    jar.call("file_read", &serde_json::json!({ "path": path }).to_string()).await
}

fn kind(result: &CallResult) -> String {
    match &result.outcome {
        Err(CallError::Tool { kind, .. }) => format!("{kind:?}").to_lowercase(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_tool_writes_into_a_read_write_mount_and_the_receipt_says_so() {
    let host = TestHost::new();
    let jar = jar(&host, MountAccess::ReadWrite, Limits::default()).await;
    let result = write(&jar, "sub/new.txt", "hello\n").await;
    result.outcome.unwrap();
    assert_eq!(host.read("sub/new.txt").unwrap(), "hello\n");
    let written = &result.receipt.paths_written;
    assert_eq!(written, &["/workspace/sub", "/workspace/sub/new.txt"]);
    assert_eq!(result.receipt.bytes.written, 6);
    assert_text(&read(&jar, "sub/new.txt").await, "hello\n");
}

#[tokio::test]
async fn a_tool_that_writes_gets_nothing_done_in_a_read_only_mount() {
    let host = TestHost::new();
    host.write("a.txt", "before\n");
    let jar = jar(&host, MountAccess::Read, Limits::default()).await;
    for path in ["a.txt", "new.txt", "sub/new.txt"] {
        let result = write(&jar, path, "after\n").await;
        assert_denied(&result, DenyCode::ReadOnly);
        assert_eq!(kind(&result), "denied", "{path}");
    }
    assert_eq!(host.read("a.txt").unwrap(), "before\n");
    assert_eq!(std::fs::read_dir(host.path()).unwrap().count(), 1);
    assert_text(&read(&jar, "a.txt").await, "before\n");
}

#[tokio::test]
async fn a_tool_cannot_write_what_decides_about_rights() {
    let host = TestHost::new();
    host.write("AGENTS.md", "rules\n");
    host.write(".belljar/belljar.toml", "limits\n");
    let jar = jar(&host, MountAccess::ReadWrite, Limits::default()).await;
    for path in ["AGENTS.md", "agents.MD", ".belljar/agents/evil.md", "sub/belljar.toml"] {
        assert_denied(&write(&jar, path, "evil").await, DenyCode::PathNotAllowed);
    }
    assert_eq!(host.read("AGENTS.md").unwrap(), "rules\n");
    assert!(host.read(".belljar/agents/evil.md").is_none());
    assert!(host.read("sub/belljar.toml").is_none());
    assert_text(&read(&jar, "AGENTS.md").await, "rules\n");
    write(&jar, "other.md", "fine").await.outcome.unwrap();
}

/// Documents a known risk, of which `host/docs/security/files.md` warns the operator.
#[tokio::test]
async fn git_hooks_are_written_like_any_other_file_of_a_read_write_mount() {
    let host = TestHost::new();
    let path = ".git/hooks/pre-commit";
    let read_only = jar(&host, MountAccess::Read, Limits::default()).await;
    assert_denied(&write(&read_only, path, "x").await, DenyCode::ReadOnly);
    assert!(host.read(path).is_none());
    let jar = jar(&host, MountAccess::ReadWrite, Limits::default()).await;
    write(&jar, path, "x").await.outcome.unwrap();
    assert_eq!(host.read(path).unwrap(), "x");
    assert_denied(&write(&jar, "AGENTS.md", "x").await, DenyCode::PathNotAllowed);
}

#[tokio::test]
async fn a_link_out_of_the_workspace_is_not_followed() {
    let host = TestHost::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), host.path().join("out")).unwrap();
    host.write("in.txt", "in\n");
    let jar = jar(&host, MountAccess::ReadWrite, Limits::default()).await;
    assert_denied(&read(&jar, "out/secret.txt").await, DenyCode::PathNotAllowed);
    assert_denied(&write(&jar, "out/secret.txt", "x").await, DenyCode::PathNotAllowed);
    assert_eq!(std::fs::read_to_string(outside.path().join("secret.txt")).unwrap(), "secret");
    assert_text(&read(&jar, "in.txt").await, "in\n");
}

#[tokio::test]
async fn a_fifo_holds_up_no_call() {
    let host = TestHost::new();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = host.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    host.write("a.txt", "a\n");
    let jar = jar(&host, MountAccess::ReadWrite, Limits::default()).await;
    let result = tokio::time::timeout(Duration::from_secs(30), read(&jar, "fifo")).await;
    assert!(result.expect("in time").outcome.is_err());
    assert_text(&read(&jar, "a.txt").await, "a\n");
}

#[tokio::test]
async fn a_tool_that_writes_too_much_is_told_that_the_limit_is_reached() {
    let host = TestHost::new();
    let limits = Limits { write_bytes: 10, ..Limits::default() };
    let jar = jar(&host, MountAccess::ReadWrite, limits).await;
    let result = write(&jar, "big.txt", "more than ten bytes").await;
    assert_denied(&result, DenyCode::LimitReached);
    assert_eq!(kind(&result), "toolarge");
    assert!(host.read("big.txt").is_none());
    write(&jar, "small.txt", "ten bytes!").await.outcome.unwrap();
}

#[tokio::test]
async fn open_files_and_listings_of_a_large_tree_stay_within_their_limits() {
    let host = TestHost::new();
    for n in 0..300 {
        host.write(&format!("d{}/{}/f{n}.txt", n % 30, n % 7), "x");
    }
    let limits = Limits { open_files: 8, ..Limits::default() };
    let jar = jar(&host, MountAccess::Read, limits).await;
    let listed = jar.call("file_list", r#"{"depth": 3, "limit": 5000}"#).await;
    assert!(belljar_kit::text(&listed).contains("f299.txt"));
    let found = jar.call("file_find", r#"{"pattern": "**/f29*.txt"}"#).await;
    assert!(belljar_kit::text(&found).contains("f299.txt"));
    assert_eq!(found.receipt.denials, []);
}

#[tokio::test]
async fn a_tool_that_asks_to_read_does_not_write_where_the_jar_may() {
    let host = TestHost::new();
    host.write("a.txt", "before\n");
    let mut builder = host.builder(["file_write", "file_edit"].map(stock));
    builder.access = Some(MountAccess::ReadWrite);
    builder.asks.insert("file_write".to_owned(), MountAccess::Read);
    let jar = host.build(builder).await;
    for path in ["a.txt", "new.txt"] {
        assert_denied(&write(&jar, path, "after\n").await, DenyCode::ReadOnly);
    }
    assert_eq!(host.read("a.txt").unwrap(), "before\n");
    assert!(host.read("new.txt").is_none());
    let edit = serde_json::json!({ "path": "a.txt", "old_text": "before", "new_text": "edited" });
    jar.call("file_edit", &edit.to_string()).await.outcome.unwrap();
    assert_eq!(host.read("a.txt").unwrap(), "edited\n");
}

#[tokio::test]
async fn all_tools_of_a_jar_see_the_directory_that_was_there_when_it_was_made() {
    let host = TestHost::new();
    host.write("old.txt", "old\n");
    let tools = || ["file_read", "file_list"].map(stock);
    let jar = host.jar(tools()).await;
    assert_text(&read(&jar, "old.txt").await, "old\n");
    let aside = tempfile::tempdir().unwrap();
    std::fs::rename(host.path(), aside.path().join("moved")).unwrap();
    host.write("new.txt", "new\n");
    let listed = belljar_kit::text(&jar.call("file_list", "{}").await);
    assert!(listed.contains("old.txt") && !listed.contains("new.txt"), "{listed}");
    assert!(read(&jar, "new.txt").await.outcome.is_err());
    let later = host.jar(tools()).await;
    assert_text(&read(&later, "new.txt").await, "new\n");
    assert!(read(&later, "old.txt").await.outcome.is_err());
}
