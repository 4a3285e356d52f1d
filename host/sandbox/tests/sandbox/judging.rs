//! Hook components: the verdict is used, and any failure of a hook is an error.

use std::time::Duration;

use belljar_kit::{TestHost, component, stock, wat_hook, wat_tool};
use belljar_sandbox::{HookError, HookVerdict, LoadError, Wasm, inspect_component};
use tokio_util::sync::CancellationToken;

const EVENT: &str = r#"{"hook_event_name":"PreToolUse"}"#;

async fn judge(host: &TestHost, wasm: Vec<u8>) -> Result<HookVerdict, HookError> {
    let cancel = CancellationToken::new();
    host.sandbox.judge_event(&Wasm::new(wasm), EVENT, Duration::from_secs(20), &cancel).await
}

/// A hook that answers with the text.
fn says(word: &str, text: &str) -> Vec<u8> {
    let len = text.len();
    wat_hook(&format!("(call ${word} (i32.const 0x300) (i32.const {len}))"), text)
}

#[tokio::test]
async fn each_verdict_is_heard_and_reasons_are_cut() {
    let host = TestHost::new();
    let pass = judge(&host, wat_hook("(call $pass)", "")).await.unwrap();
    assert_eq!(pass, HookVerdict::Pass);
    let deny = judge(&host, says("deny", "no")).await.unwrap();
    assert_eq!(deny, HookVerdict::Deny("no".into()));
    assert_eq!(judge(&host, says("ask", "why")).await.unwrap(), HookVerdict::Ask("why".into()));
    let narrow = judge(&host, says("narrow", r#"{"a":1}"#)).await.unwrap();
    assert_eq!(narrow, HookVerdict::Narrow(r#"{"a":1}"#.into()));
    let HookVerdict::Deny(long) = judge(&host, says("deny", &"x".repeat(5_000))).await.unwrap()
    else {
        panic!("not denied")
    };
    assert_eq!(long.len(), 1_000);
    // The hook gets the event, byte for byte.
    let echo = wat_hook("(call $deny (local.get $event) (local.get $event_len))", "");
    assert_eq!(judge(&host, echo).await.unwrap(), HookVerdict::Deny(EVENT.into()));
}

#[tokio::test]
async fn a_trap_a_loop_a_hunger_for_memory_and_a_bad_answer_are_errors() {
    let host = TestHost::new();
    let spin = "(loop $again (br $again)) unreachable";
    let grow = "(loop $again (drop (memory.grow (i32.const 16)))
      (br_if $again (i32.lt_u (memory.size) (i32.const 1000)))) (call $pass)";
    for (check, part) in [("unreachable", "it failed"), (spin, "fuel"), (grow, "it failed")] {
        let error = judge(&host, wat_hook(check, "")).await.unwrap_err();
        assert!(error.to_string().contains(part), "{check}: {error}");
    }
    let said = judge(&host, says("error", "cannot")).await.unwrap_err();
    assert_eq!(said.to_string(), "it cannot judge: cannot");
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    for bad in ["[]", "{", "", deep.as_str()] {
        let error = judge(&host, says("narrow", bad)).await.unwrap_err();
        assert!(matches!(error, HookError::BadAnswer(_)), "{bad}: {error}");
    }
    let not_text = wat_hook("(call $deny (i32.const 0x300) (i32.const 1))", "");
    assert!(judge(&host, not_text).await.is_ok(), "a zero byte is text");
    let outside = wat_hook("(call $deny (i32.const 0x7fffff00) (i32.const 16))", "");
    assert!(judge(&host, outside).await.is_err());
    // The next judgement is not affected.
    assert_eq!(judge(&host, wat_hook("(call $pass)", "")).await.unwrap(), HookVerdict::Pass);
}

#[tokio::test]
async fn a_hook_is_late_or_cancelled_as_an_error() {
    let host = TestHost::new();
    let spin = Wasm::new(wat_hook("(loop $again (br $again)) unreachable", ""));
    let cancel = CancellationToken::new();
    host.sandbox.judge_event(&spin, EVENT, Duration::ZERO, &cancel).await.unwrap_err();
    cancel.cancel();
    let time = Duration::from_secs(20);
    let error = host.sandbox.judge_event(&spin, EVENT, time, &cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "it failed: it was cancelled");
}

#[tokio::test]
async fn every_judgement_starts_from_nothing() {
    let host = TestHost::new();
    // Counts calls in memory: a second call in the same store would deny.
    let counts = "(i32.store (i32.const 0x80) (i32.add (i32.const 1) (i32.load (i32.const 0x80))))
      (if (result i32) (i32.gt_u (i32.load (i32.const 0x80)) (i32.const 1))
        (then (call $deny (i32.const 0x300) (i32.const 5))) (else (call $pass)))";
    let wasm = wat_hook(counts, "again");
    for _ in 0..3 {
        assert_eq!(judge(&host, wasm.clone()).await.unwrap(), HookVerdict::Pass);
    }
}

#[tokio::test]
async fn a_tool_is_no_hook_and_a_hook_no_tool() {
    let host = TestHost::new();
    let tool = wat_tool("echo", "(call $text (local.get $args) (local.get $args_len))");
    let error = judge(&host, tool).await.unwrap_err();
    assert!(matches!(error, HookError::Load(LoadError::NoHook)), "{error}");
    let hook = Wasm::new(wat_hook("(call $pass)", ""));
    assert!(inspect_component(hook.bytes()).unwrap().hook_export.is_some());
    let error = host.sandbox.load_component(&hook).await.unwrap_err();
    assert!(error.to_string().contains("it is a hook"), "{error}");
    host.sandbox.describe_tools(&hook).await.unwrap_err();
    host.sandbox.load_component(&stock("file_read")).await.unwrap();
    let other_type = component(
        "package test:hook;\nworld hook { export belljar:hook/hooks@0.1.0; }
         package belljar:hook@0.1.0 { interface hooks { check: func(); } }",
        r#"(module (func (export "belljar:hook/hooks@0.1.0#check")))"#,
    );
    let error = judge(&host, other_type).await.unwrap_err();
    assert!(error.to_string().contains("another type"), "{error}");
}
