//! Overlays in real stores: the stock tools write, and the directory stays unchanged.

use belljar_kit::{TestHost, stock};
use belljar_overlay::ChangeKind;
use belljar_policy::{DenyCode, Limits};
use belljar_sandbox::{CallResult, Jar, Overlay, OverlayQuota};
use tempfile::TempDir;

fn open(host: &TestHost, layers: &TempDir, quota: OverlayQuota) -> Overlay {
    Overlay::open(host.path(), layers.path().join("layer"), quota).unwrap()
}

async fn jar(host: &TestHost, overlay: &Overlay) -> Jar {
    let tools = ["file_read", "file_write", "file_edit", "file_list", "shell"].map(stock);
    let builder = tools.into_iter().fold(Jar::builder(), |jar, tool| jar.tool(tool));
    builder.overlay(overlay).limits(Limits::default()).build(&host.sandbox).await.unwrap()
}

async fn call(jar: &Jar, tool: &str, arguments: serde_json::Value) -> CallResult {
    jar.call_tool(tool, &arguments.to_string()).await.unwrap()
}

async fn read(jar: &Jar, path: &str) -> String {
    let read = call(jar, "file_read", serde_json::json!({ "path": path })).await;
    read.outcome.unwrap().text()
}

async fn write(jar: &Jar, path: &str, content: &str) -> CallResult {
    let arguments = serde_json::json!({ "path": path, "content": content, "create_dirs": true });
    call(jar, "file_write", arguments).await
}

#[tokio::test]
async fn tools_work_in_an_overlay_as_in_the_workspace_and_leave_it_as_it_is() {
    let (host, layers) = (TestHost::new(), tempfile::tempdir().unwrap());
    host.write("src/a.txt", "one\ntwo\n");
    host.write("b.txt", "kept\n");
    let overlay = open(&host, &layers, OverlayQuota::default());
    let one = jar(&host, &overlay).await;
    let edit = serde_json::json!({ "path": "src/a.txt", "old_text": "two", "new_text": "three" });
    let edited = call(&one, "file_edit", edit).await;
    edited.outcome.unwrap();
    write(&one, "new/deep.txt", "new\n").await.outcome.unwrap();
    let moved =
        serde_json::json!({ "command": "mv src lib && rm b.txt && echo more >> lib/a.txt" });
    call(&one, "shell", moved).await.outcome.unwrap();
    // Another jar of the session sees the change at once.
    let other = jar(&host, &overlay).await;
    assert!(read(&other, "lib/a.txt").await.contains("three\nmore"));
    drop((one, other));
    assert_eq!(host.read("src/a.txt").unwrap(), "one\ntwo\n");
    assert_eq!(host.read("b.txt").unwrap(), "kept\n");
    assert_eq!(host.read("lib/a.txt"), None);
    assert_eq!(std::fs::read_dir(host.path()).unwrap().count(), 2);
    let changes = overlay.list_changes();
    let told: Vec<_> = changes.iter().map(|change| change.path.to_str().unwrap()).collect();
    assert_eq!(told, ["b.txt", "lib", "lib/a.txt", "new", "new/deep.txt"]);
    assert_eq!(changes[0].kind, ChangeKind::Deleted);
    // The next turn of the session finds the same content.
    drop(overlay);
    let overlay = open(&host, &layers, OverlayQuota::default());
    assert_eq!(overlay.list_changes(), changes);
    let next = jar(&host, &overlay).await;
    assert!(read(&next, "lib/a.txt").await.contains("three\nmore"));
}

#[tokio::test]
async fn a_full_overlay_is_a_limit_in_the_receipt() {
    let (host, layers) = (TestHost::new(), tempfile::tempdir().unwrap());
    let quota = OverlayQuota { bytes: 1000, files: 100 };
    let overlay = open(&host, &layers, quota);
    let one = jar(&host, &overlay).await;
    let refused = write(&one, "big.txt", &"x".repeat(1001)).await;
    assert!(refused.outcome.is_err());
    let denial = &refused.receipt.denials[0];
    assert_eq!(denial.code, DenyCode::LimitReached);
    assert!(denial.facts.contains("of at most 1000 bytes"), "{}", denial.facts);
    assert_eq!(std::fs::read_dir(host.path()).unwrap().count(), 0);
    write(&one, "small.txt", "fits").await.outcome.unwrap();
    assert!(read(&one, "small.txt").await.contains("fits"));
}

#[tokio::test]
async fn a_tool_cannot_write_what_decides_about_rights_in_an_overlay() {
    let (host, layers) = (TestHost::new(), tempfile::tempdir().unwrap());
    host.write("AGENTS.md", "rules\n");
    let overlay = open(&host, &layers, OverlayQuota::default());
    let one = jar(&host, &overlay).await;
    for path in ["AGENTS.md", "agents.MD", ".belljar/agents/evil.md", "belljar.toml"] {
        let refused = write(&one, path, "evil").await;
        assert!(refused.outcome.is_err(), "{path}");
        assert_eq!(refused.receipt.denials[0].code, DenyCode::PathNotAllowed, "{path}");
    }
    assert_eq!(overlay.list_changes(), []);
    assert!(read(&one, "AGENTS.md").await.contains("rules"));
    write(&one, "other.md", "fine").await.outcome.unwrap();
}

#[tokio::test]
async fn an_overlay_in_name_alone_makes_no_jar() {
    let host = TestHost::new();
    let builder = Jar::builder().tool(stock("file_write"));
    let mount = belljar_policy::MountAccess::Overlay;
    let made = builder.mount("/workspace", host.path(), mount).build(&host.sandbox).await;
    let error = made.unwrap_err();
    assert_eq!(error.code(), "directory-not-opened");
    assert!(error.to_string().contains("was given none"), "{error}");
}

#[tokio::test]
async fn a_file_whose_name_is_no_text_is_changed_in_an_overlay_and_in_a_fork_of_it() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let (host, layers) = (TestHost::new(), tempfile::tempdir().unwrap());
    let odd = |name: &[u8]| host.path().join(OsStr::from_bytes(name));
    std::fs::create_dir(odd(b"d\xff")).unwrap();
    std::fs::write(odd(b"d\xff/caf\xe9.txt"), "one\n").unwrap();
    std::fs::write(odd(b"d\xff/caf\\xE9.txt"), "letters\n").unwrap();
    let overlay = open(&host, &layers, OverlayQuota::default());
    let one = jar(&host, &overlay).await;
    let list = serde_json::json!({ "path": "d\\xFF" });
    let list = call(&one, "file_list", list).await.outcome.unwrap().text();
    assert!(list.contains("caf\\xE9.txt") && list.contains("caf\\x5CxE9.txt"), "{list}");
    let path = "d\\xFF/caf\\xE9.txt";
    let edit = serde_json::json!({ "path": path, "old_text": "one", "new_text": "two" });
    call(&one, "file_edit", edit).await.outcome.unwrap();
    assert!(read(&one, path).await.contains("two"));
    assert!(read(&one, "d\\xFF/caf\\x5CxE9.txt").await.contains("letters"));
    assert_eq!(std::fs::read(odd(b"d\xff/caf\xe9.txt")).unwrap(), b"one\n");
    let changed = overlay.list_changes();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].path.as_os_str().as_bytes(), b"d\xff/caf\xe9.txt");
    // A copy of the layer for a subagent or a worktree, and the merge back.
    let fork = overlay.open_fork(layers.path().join("forks")).unwrap();
    let child = jar(&host, fork.overlay()).await;
    assert!(read(&child, path).await.contains("two"));
    let edit = serde_json::json!({ "path": path, "old_text": "two", "new_text": "three" });
    call(&child, "file_edit", edit).await.outcome.unwrap();
    write(&child, "d\\xFF/n\\xFE", "new\n").await.outcome.unwrap();
    drop(child);
    assert_eq!(fork.merge_into(&overlay, "child").unwrap().conflicts, []);
    assert!(read(&one, path).await.contains("three"));
    assert!(read(&one, "d\\xFF/n\\xFE").await.contains("new"));
}
