//! Tests of hooks that are components, the committed example among them.

use std::path::{Path, PathBuf};

use belljar_agent::{EventKind, RunStatus};
use belljar_kit::wat_hook;
use belljar_kit::world::{Plan, World, agent, results, stock};
use belljar_policy::DenyCode;
use belljar_sandbox::{CallEnding, Digest};
use tempfile::TempDir;

/// The example hook: the committed component, or a newly built one.
fn guard() -> PathBuf {
    let committed = "../../guest-sdk/examples/hook-guard/hook_guard.wasm";
    match std::env::var_os("BELLJAR_HOOK") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join(committed),
    }
}

fn hook(event: &str, matcher: &str, component: &Path, more: &str) -> String {
    let path = component.display();
    format!("[[hooks]]\nevent = '{event}'\nmatcher = '{matcher}'\ncomponent = '{path}'\n{more}\n")
}

/// A world with this transcript and these hooks.
fn world(transcript: &str, hooks: &str) -> World {
    let grants = "[grants.it]\ntools = ['file_read', 'file_write', 'file_list']\n\
        mounts = [{ path = '/workspace', access = 'read-write' }]\n";
    World::new(Plan {
        transcript,
        settings: &format!("{grants}{hooks}"),
        agents: &[("it.md", &agent("it", ""))],
        files: &[("a.txt", "text of a\n"), (".env", "KEY=1\n")],
        tools: vec![stock("file_read"), stock("file_write"), stock("file_list")],
        ..Plan::default()
    })
}

/// The decisions of hooks in the events.
fn decisions(world: &World) -> Vec<String> {
    let ran = |kind: EventKind| match kind {
        EventKind::HookRan { decision, .. } => Some(decision),
        _ => None,
    };
    world.kinds().into_iter().filter_map(ran).collect()
}

#[tokio::test]
async fn the_example_denies_asks_and_narrows() {
    let long: String = (1..=300).map(|n| format!("line {n}\n")).collect();
    let world = world(
        r#"
transcript: 1
agents:
  - agent: it
    turns:
      - calls:
          - {name: file_read, arguments: {path: .env}}
          - {name: file_read, arguments: {path: long.txt}}
          - {name: file_write, arguments: {path: src.txt, content: x}}
          - {name: file_write, arguments: {path: notes/n.txt, content: y, create_dirs: true}}
      - say: done
"#,
        &hook("PreToolUse", "file_.*", &guard(), ""),
    );
    belljar_kit::world::write(&world.workspace.path().join("long.txt"), &long);
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let answers = results(&world.sent()[1]);
    let denied = "denied by a hook: files with keys are off limits; work without them";
    assert_eq!(answers[0], (denied.to_owned(), true));
    assert!(answers[1].0.contains("line 200") && !answers[1].0.contains("line 201"));
    assert_eq!(answers[2], ("permission needed and nobody to ask".to_owned(), true));
    assert!(!answers[3].1, "{}", answers[3].0);
    let files = |name: &str| world.workspace.path().join(name).exists();
    assert!(!files("src.txt") && files("notes/n.txt"));
    assert_eq!(outcome.paths_read(), ["/workspace/long.txt"]);
    assert_eq!(decisions(&world), ["deny", "narrow", "ask", "pass"]);
    let receipt = &outcome.receipts[0].receipt;
    assert_eq!(receipt.ending, CallEnding::Refused("denied by a hook".into()));
    assert_eq!(receipt.denials[0].code, DenyCode::DeniedByHook);
}

const READ_AND_LIST: &str = r#"
transcript: 1
agents:
  - agent: it
    turns:
      - calls:
          - {name: file_read, arguments: {path: a.txt}}
          - {name: file_list, arguments: {path: .}}
      - say: done
"#;

/// The refused read has no effect, and the neighbouring call succeeds.
async fn refused(hooks: &str) -> String {
    let world = world(READ_AND_LIST, hooks);
    let outcome = world.go("it").await;
    assert_eq!(outcome.status, RunStatus::Completed, "{:?}", outcome.error);
    let answers = results(&world.sent()[1]);
    assert_eq!(answers[0], ("denied by a hook: the hook gave no answer".to_owned(), true));
    assert!(!answers[1].1 && answers[1].0.contains("a.txt"), "{}", answers[1].0);
    assert!(outcome.paths_read().is_empty());
    outcome.warnings.join("\n")
}

#[tokio::test]
async fn a_component_that_fails_denies_the_call() {
    let dir = TempDir::new().unwrap();
    let spin = "(loop $again (br $again)) unreachable";
    let bad = "(call $narrow (i32.const 0x300) (i32.const 2))";
    let cannot = "(call $error (i32.const 0x300) (i32.const 2))";
    for (check, part) in [
        ("unreachable", "unreachable"),
        (spin, "fuel"),
        (bad, "no JSON object"),
        (cannot, "cannot judge"),
    ] {
        let path = dir.path().join("hook.wasm");
        std::fs::write(&path, wat_hook(check, "[]")).unwrap();
        // The hook's fuel ends before the time limit, even on the slowest machine.
        let patient = hook("PreToolUse", "file_read", &path, "timeout_seconds = 30");
        let warnings = refused(&patient).await;
        assert!(warnings.contains(part), "{check}: {warnings}");
    }
}

#[tokio::test]
async fn a_component_that_is_missing_no_hook_or_not_the_pinned_one_denies_the_call() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("hook.wasm");
    let pre = |more: &str| hook("PreToolUse", "file_read", &path, more);
    assert!(refused(&pre("")).await.contains("cannot be read"));
    std::fs::write(&path, "not wasm").unwrap();
    assert!(refused(&pre("")).await.contains("not a WebAssembly file"));
    let wasm = wat_hook("(call $pass)", "");
    std::fs::write(&path, &wasm).unwrap();
    let wrong = format!("digest = 'sha256:{}'", "0".repeat(64));
    assert!(refused(&pre(&wrong)).await.contains("not the one that is pinned"));
    let right = format!("digest = 'sha256:{}'", Digest::hash_bytes(&wasm));
    let world = world(READ_AND_LIST, &pre(&right));
    world.go("it").await;
    assert!(results(&world.sent()[1])[0].0.contains("text of a"));
}

#[tokio::test]
async fn a_component_learns_no_path_of_the_host() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("hook.wasm");
    let echo = wat_hook("(call $deny (local.get $event) (local.get $event_len))", "");
    std::fs::write(&path, echo).unwrap();
    let world = world(READ_AND_LIST, &hook("PreToolUse", "file_read", &path, ""));
    world.go("it").await;
    let (text, is_error) = results(&world.sent()[1])[0].clone();
    assert!(is_error && text.contains(r#""cwd":"/workspace""#), "{text}");
    assert!(!text.contains(&*world.workspace.path().to_string_lossy()), "{text}");
    assert!(text.contains(r#""tool_input":{"path":"a.txt"}"#), "{text}");
}
