//! Calls through a jar: answers, errors, order and isolation.

use belljar_kit::{TestHost, WatTool, assert_text, stock, text, wat_tool};
use belljar_policy::{DenyCode, Rights};
use belljar_sandbox::{CallEnding, CallError, OutputPart, ProgressReport, ToolErrorKind, Wasm};

/// A tool body that answers with the arguments.
const ECHO: &str = "(call $text (local.get $args) (local.get $args_len))";

/// A tool that answers with the number of calls of its store, one digit.
fn counter(name: &str) -> WatTool {
    let mut tool = WatTool::new(
        name,
        "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
         (if (i32.eq (local.get $args_len) (i32.const 3)) (then unreachable))
         (i32.store8 (i32.const 0x300) (i32.add (i32.const 48) (global.get $calls)))
         (call $text (i32.const 0x300) (i32.const 1))",
    );
    tool.items = "(global $calls (mut i32) (i32.const 0))".to_owned();
    tool
}

/// Arguments that make [`counter`] trap: three bytes.
const TRAP: &str = "{ }";

#[tokio::test]
async fn a_stock_tool_reads_a_file_of_its_mount() {
    let host = TestHost::new();
    host.write("notes.txt", "one\ntwo\n");
    let jar = host.jar([stock("file_read")]).await;
    let result = jar.call("file_read", r#"{"path": "notes.txt"}"#).await;
    assert_text(&result, "one\ntwo\n");
    let receipt = &result.receipt;
    assert_eq!(receipt.paths_read, ["/workspace/notes.txt"]);
    assert_eq!((receipt.bytes.read, receipt.bytes.output), (8, 8));
    assert_eq!(receipt.component, stock("file_read").digest().to_string());
    assert!(receipt.fuel > 0 && receipt.host_calls > 0 && receipt.peak_memory > 0);
}

#[tokio::test]
async fn a_tools_own_error_keeps_its_kind_and_its_store() {
    let host = TestHost::new();
    host.write("a.txt", "a");
    let jar = host.jar([stock("file_read")]).await;
    let result = jar.call("file_read", r#"{"path": "absent.txt"}"#).await;
    let Err(CallError::Tool { kind, .. }) = result.outcome else { panic!("{result:?}") };
    assert_eq!(kind, ToolErrorKind::NotFound);
    assert_eq!(result.receipt.ending, CallEnding::ToolError("not-found".to_owned()));
    let again = jar.call("file_read", r#"{"path": "a.txt"}"#).await;
    assert_text(&again, "a");
    assert!(again.receipt.times.opening < result.receipt.times.opening, "the store was kept");
}

#[tokio::test]
async fn a_store_lives_from_call_to_call_and_ends_with_a_trap() {
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(counter("count").build())]).await;
    assert_text(&jar.call("count", "{}").await, "1");
    assert_text(&jar.call("count", "{}").await, "2");
    let trapped = jar.call("count", TRAP).await;
    let Err(CallError::Trapped(name)) = &trapped.outcome else { panic!("{trapped:?}") };
    assert!(name.contains("unreachable"), "{name}");
    assert!(trapped.receipt.fuel >= 100_000, "a trap is billed a whole slice");
    assert_text(&jar.call("count", "{}").await, "1");
}

/// INV-488.
#[tokio::test]
async fn a_text_that_is_not_valid_is_told_as_that_and_the_next_call_is_well() {
    // `x`, then the bytes ED A0 80: half of a surrogate pair, which is not valid UTF-8.
    let bad = "(i32.store (i32.const 0x300) (i32.const 0x80a0ed78))";
    let answers = [
        ("(call $text (i32.const 0x300) (i32.const 4))", "output"),
        ("(call $fail (i32.const 4) (i32.const 0x300) (i32.const 4))", "an error"),
    ];
    for (answer, what) in answers {
        let body = format!(
            "{bad} (if (i32.eq (local.get $args_len) (i32.const 3)) (then (return {answer}))) {ECHO}"
        );
        let host = TestHost::new();
        let jar = host.jar([Wasm::new(WatTool::new("say", &body).build())]).await;
        let told = jar.call("say", TRAP).await;
        let Err(error @ CallError::Trapped(_)) = &told.outcome else { panic!("{what}: {told:?}") };
        let said = error.to_string();
        assert!(said.contains("not valid UTF-8 from byte 1 on"), "{what}: {said}");
        assert!(said.contains("U+FFFD"), "{what}: {said}");
        assert_text(&jar.call("say", "{}").await, "{}");
    }
}

#[tokio::test]
async fn an_exit_is_told_with_the_status_that_it_has_and_no_other() {
    let exits = |function: &str, status: u32| {
        let call = format!("(call $exit (i32.const {status})) unreachable");
        let mut tool = WatTool::new("leave", &call);
        let import = format!("\"wasi:cli/exit@0.2.12\" \"{function}\"");
        tool.imports = format!("(import {import} (func $exit (param i32)))");
        tool.world = "import wasi:cli/exit@0.2.12;".to_owned();
        tool.packages = "package wasi:cli@0.2.12 { interface exit {
            exit: func(status: result);
            exit-with-code: func(status-code: u8);
        } }"
        .to_owned();
        Wasm::new(tool.build())
    };
    let host = TestHost::new();
    for (function, status, said) in [
        ("exit-with-code", 3, "it exited with status 3"),
        ("exit-with-code", 0, "it exited with status 0"),
        ("exit", 1, "it exited with a failure"),
        ("exit", 0, "it exited in the middle of the call"),
    ] {
        let jar = host.jar([exits(function, status), stock("file_read")]).await;
        let result = jar.call("leave", "{}").await;
        assert_eq!(result.outcome, Err(CallError::Trapped(said.to_owned())), "{function}");
        host.write("a.txt", "a");
        assert_text(&jar.call("file_read", r#"{"path": "a.txt"}"#).await, "a");
    }
}

#[tokio::test]
async fn jars_share_nothing_and_a_trap_in_one_leaves_the_other_alone() {
    let host = TestHost::new();
    let wasm = Wasm::new(counter("count").build());
    let (a, b) = (host.jar([wasm.clone()]).await, host.jar([wasm]).await);
    assert_text(&a.call("count", "{}").await, "1");
    assert_text(&b.call("count", "{}").await, "1");
    assert!(a.call("count", TRAP).await.outcome.is_err());
    assert_text(&b.call("count", "{}").await, "2");
    assert_text(&a.call("count", "{}").await, "1");
}

#[tokio::test]
async fn calls_of_one_tool_run_in_the_order_asked() {
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(counter("count").build())]).await;
    let results = futures::future::join_all((0..5).map(|_| jar.call("count", "{}"))).await;
    let answers: Vec<_> = results.iter().map(text).collect();
    assert_eq!(answers, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn a_name_outside_the_rights_is_refused_before_guest_code_runs() {
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(wat_tool("echo", ECHO))]).await;
    let other = host.jar([Wasm::new(wat_tool("other", ECHO))]).await;
    let permit = other.rights.tool("other").unwrap();
    let result = jar.jar.call_permitted(permit, "{}").await;
    assert_eq!(result.outcome, Err(CallError::Refused(DenyCode::ToolNotAllowed)));
    assert_eq!(result.receipt.fuel, 0);
    assert!(Rights::none().tool("echo").is_err());
    assert_text(&jar.call("echo", "{}").await, "{}");
}

#[tokio::test]
async fn arguments_that_are_no_object_do_not_reach_the_guest() {
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(wat_tool("echo", ECHO))]).await;
    for bad in
        ["", "[]", "{\"a\":", "null", &format!("{{\"a\":{}1{}}}", "[".repeat(99), "]".repeat(99))]
    {
        let result = jar.call("echo", bad).await;
        let Err(CallError::Tool { kind, .. }) = result.outcome else { panic!("{bad:.9}") };
        assert_eq!((kind, result.receipt.fuel), (ToolErrorKind::InvalidArguments, 0));
    }
}

#[tokio::test]
async fn logs_progress_and_attachments_arrive_cut_and_clean() {
    let mut tool = WatTool::new(
        "chatty",
        r#"(call $log (i32.const 3) (local.get $args) (local.get $args_len))
           (call $report (i64.const 1) (i32.const 1) (i64.const 2) (local.get $args) (local.get $args_len))
           (i32.store (i32.const 0x100) (i32.const 0))
           (i32.store (i32.const 0x104) (i32.const 0x200))
           (i32.store (i32.const 0x108) (i32.const 1))
           (i32.store (i32.const 0x200) (i32.const 2))
           (i32.store (i32.const 0x204) (i32.const 0x400)) (i32.store (i32.const 0x208) (i32.const 8))
           (i32.store (i32.const 0x20c) (i32.const 0x408)) (i32.store (i32.const 0x210) (i32.const 10))
           (i32.store (i32.const 0x214) (i32.const 0x408)) (i32.store (i32.const 0x218) (i32.const 4))
           (i32.const 0x100)"#,
    );
    tool.imports = r#"(import "belljar:tool/log@0.1.0" "log" (func $log (param i32 i32 i32)))
        (import "belljar:tool/progress@0.1.0" "report" (func $report (param i64 i32 i64 i32 i32)))"#
        .to_owned();
    tool.world = "import belljar:tool/log@0.1.0; import belljar:tool/progress@0.1.0;".to_owned();
    tool.items =
        r#"(data (i32.const 0x400) "../../ab")(data (i32.const 0x408) "text/plain")"#.to_owned();
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(tool.build())]).await;
    let (send, reports) = std::sync::mpsc::channel();
    let sink = std::sync::Arc::new(move |report| drop(send.send(report)));
    let permit = jar.rights.tool("chatty").unwrap();
    let result = jar.jar.call_with_progress(permit, "{}", Some(sink)).await;
    let reported = ProgressReport { done: 1, total: Some(2), message: "{}".to_owned() };
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [reported]);
    assert_eq!((result.receipt.logs[0].level.as_str(), result.receipt.logs.len()), ("warn", 1));
    let parts = result.outcome.unwrap().parts;
    let [OutputPart::Attachment { name, media_type, data }] = &parts[..] else {
        panic!("{parts:?}")
    };
    assert_eq!((name.as_str(), media_type.as_str(), &data[..]), ("ab", "text/plain", &b"text"[..]));
}

#[tokio::test]
async fn a_host_function_that_panics_ends_one_call_and_its_store() {
    let mut tool = counter("count");
    let report =
        "(call $report (i64.const 1) (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 0))";
    tool.invoke = tool.invoke.replacen("(i32.store8", &format!("{report} (i32.store8"), 1);
    tool.imports =
        r#"(import "belljar:tool/progress@0.1.0" "report" (func $report (param i64 i32 i64 i32 i32)))"#
            .to_owned();
    tool.world = "import belljar:tool/progress@0.1.0;".to_owned();
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(tool.build()), Wasm::new(wat_tool("echo", ECHO))]).await;
    assert_text(&jar.call("count", "{}").await, "1");
    // The sink runs inside a host function.
    let sink = std::sync::Arc::new(|_| panic!("a bug of the host"));
    let permit = jar.rights.tool("count").unwrap();
    let result = jar.jar.call_with_progress(permit, "{}", Some(sink)).await;
    assert_eq!(result.outcome, Err(CallError::HostFault));
    assert!(
        matches!(result.receipt.ending, CallEnding::HostFault(_)),
        "{:?}",
        result.receipt.ending
    );
    assert_text(&jar.call("echo", "{}").await, "{}");
    assert_text(&jar.call("count", "{}").await, "1");
}
