//! Commands as tools: their input, their output, and what stays between calls.

use std::collections::BTreeMap;

use belljar_kit::{TestHost, TestJar, command};
use belljar_policy::MountAccess;
use belljar_sandbox::{
    CallError, CommandForm, ComponentKind, LoadError, OutputPart, ToolErrorKind, Wasm,
    inspect_component,
};
use serde_json::{Value, json};

/// A command that writes its arguments, each after a line feed, then its variables, then its input. The exit
/// code is the number of arguments.
const ECHO: &str = r#"(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $esizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 4)
  (func $put (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func (export "_start")
    (drop (call $sizes (i32.const 16) (i32.const 20)))
    (drop (call $args (i32.const 1024) (i32.const 8192)))
    (call $put (i32.const 1) (i32.const 8192) (i32.load (i32.const 20)))
    (drop (call $esizes (i32.const 24) (i32.const 28)))
    (drop (call $environ (i32.const 65536) (i32.const 69632)))
    (call $put (i32.const 1) (i32.const 69632) (i32.load (i32.const 28)))
    (block $end
      (loop $next
        (i32.store (i32.const 32) (i32.const 131072))
        (i32.store (i32.const 36) (i32.const 65536))
        (br_if $end (call $read (i32.const 0) (i32.const 32) (i32.const 1) (i32.const 40)))
        (br_if $end (i32.eqz (i32.load (i32.const 40))))
        (call $put (i32.const 1) (i32.const 131072) (i32.load (i32.const 40)))
        (br $next)))
    (call $put (i32.const 2) (i32.const 8192) (i32.const 4))
    (call $exit (i32.load (i32.const 16)))))"#;

fn echo() -> Wasm {
    Wasm::new(command(ECHO)).with_name("echo.wasm")
}

async fn call(jar: &TestJar, arguments: Value) -> (Value, String) {
    let result = jar.call("echo", &arguments.to_string()).await;
    let output = result.outcome.unwrap();
    let Some(OutputPart::Json(head)) = output.parts.first() else { panic!("{output:?}") };
    let text = match output.parts.get(1) {
        Some(OutputPart::Text(text)) => text.clone(),
        _ => String::new(),
    };
    (serde_json::from_str(head).unwrap(), text)
}

#[tokio::test]
async fn a_command_gets_its_words_and_input_and_gives_output_and_code() {
    let host = TestHost::new();
    assert_eq!(inspect_component(echo().bytes()).unwrap().kind, Some(ComponentKind::Command));
    let jar = host.jar([echo()]).await;
    let arguments = json!({ "args": ["-a", "b c"], "stdin": "six\n", "files": ["n.txt"] });
    for _ in 0..2 {
        let (head, text) = call(&jar, arguments.clone()).await;
        assert_eq!(text, "echo\0-a\0b c\0/workspace/n.txt\0six\n");
        assert_eq!(head, json!({ "exit_code": 4, "stderr": "echo" }));
    }
    let (head, text) = call(&jar, json!({})).await;
    assert_eq!((head["exit_code"].as_u64(), text.as_str()), (Some(1), "echo\0"));
}

#[tokio::test]
async fn a_long_input_arrives_whole() {
    let host = TestHost::new();
    let jar = host.jar([echo()]).await;
    let long = "0123456789".repeat(20_000);
    let (_, text) = call(&jar, json!({ "stdin": long })).await;
    assert_eq!(text.strip_prefix("echo\0").unwrap(), long);
}

#[tokio::test]
async fn a_fixed_line_and_its_variables_are_all_that_a_command_has() {
    let host = TestHost::new();
    let variables = BTreeMap::from([("TZ".to_owned(), "UTC".to_owned())]);
    let line = ["-s".to_owned(), "{statement}".to_owned()];
    let form = CommandForm::default().with_line(&line, None).unwrap();
    let wasm = echo().with_form(form.with_environment(&variables).unwrap());
    let tools = host.sandbox.describe_tools(&wasm).await.unwrap();
    assert_eq!(tools[0].schema["required"], json!(["statement"]));
    let jar = host.jar([wasm]).await;
    let (_, text) = call(&jar, json!({ "statement": "select" })).await;
    assert_eq!(text, "echo\0-s\0select\0TZ=UTC\0");
    for (arguments, why) in [
        (json!({ "statement": "-x" }), "would be an option"),
        (json!({ "statement": "s", "args": ["-x"] }), "no argument `args`"),
    ] {
        let result = jar.call("echo", &arguments.to_string()).await;
        match result.outcome.unwrap_err() {
            CallError::Tool { kind: ToolErrorKind::InvalidArguments, message } => {
                assert!(message.contains(why), "{message}");
            }
            error => panic!("{error}"),
        }
    }
    call(&jar, json!({ "statement": "select" })).await;
}

/// A command that makes `made.txt` in its current directory, and then traps if there is an argument.
const MAKE: &str = r#"(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "made.txt")
  (func (export "_start")
    (local $failed i32)
    (local.set $failed (call $open (i32.const 3) (i32.const 1) (i32.const 100) (i32.const 8)
      (i32.const 1) (i64.const 64) (i64.const 64) (i32.const 0) (i32.const 40)))
    (drop (call $sizes (i32.const 16) (i32.const 20)))
    (if (i32.gt_u (i32.load (i32.const 16)) (i32.const 1)) (then unreachable))
    (call $exit (local.get $failed))))"#;

#[tokio::test]
async fn the_workspace_is_its_current_directory_with_the_access_that_is_granted() {
    let host = TestHost::new();
    let make = || Wasm::new(command(MAKE)).with_name("make");
    let mut builder = host.builder([make()]);
    builder.access = Some(MountAccess::ReadWrite);
    let jar = host.build(builder).await;
    let result = jar.call("make", "{}").await;
    assert!(result.outcome.unwrap().text().contains("\"exit_code\":0"));
    assert_eq!(result.receipt.paths_written, ["/workspace/made.txt"]);
    assert!(host.read("made.txt").is_some());
    let other = TestHost::new();
    let jar = other.jar([make()]).await;
    let result = jar.call("make", "{}").await;
    assert!(!result.outcome.unwrap().text().contains("\"exit_code\":0"));
    assert_eq!((result.receipt.denials.len(), other.read("made.txt")), (1, None));
    // Without a mount, the file cannot be made.
    let mut builder = other.builder([make()]);
    builder.access = None;
    let result = other.build(builder).await.call("make", "{}").await;
    assert!(!result.outcome.unwrap().text().contains("\"exit_code\":0"));
}

#[tokio::test]
async fn a_trap_is_a_trap_and_the_next_call_is_well() {
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(command(MAKE)).with_name("make")]).await;
    let result = jar.call("make", r#"{"args": ["trap"]}"#).await;
    assert!(matches!(result.outcome.unwrap_err(), CallError::Trapped(_)));
    jar.call("make", "{}").await.outcome.unwrap();
}

#[tokio::test]
async fn a_core_module_is_adapted_and_never_loaded_as_it_is() {
    let host = TestHost::new();
    let module = b"\0asm\x01\0\0\0".to_vec();
    let error = host.sandbox.adapt_module(&module).await.unwrap_err();
    assert!(error.to_string().contains("no `_start`"), "{error}");
    let error = host.sandbox.load_component(&Wasm::new(module)).await.unwrap_err();
    assert!(matches!(error, LoadError::CoreModule));
    let component = command(ECHO);
    let error = host.sandbox.adapt_module(&component).await.unwrap_err();
    assert!(matches!(error, LoadError::NotWasm), "{error}");
}

/// A command that writes the names of its preopened directories. The exit code is the sum of what is
/// possible in the first: 1 = open `note.txt`, 2 = open `../note.txt`, 4 = make `new.txt`.
const LOOK: &str = r#"(module
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_dir_name" (func $name (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 2)
  (data (i32.const 100) "../note.txt")
  (data (i32.const 140) "new.txt")
  (func $try (param $at i32) (param $length i32) (param $flags i32) (param $rights i64) (result i32)
    (i32.eqz (call $open (i32.const 3) (i32.const 0) (local.get $at) (local.get $length)
      (local.get $flags) (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 16))))
  (func (export "_start") (local $fd i32) (local $length i32)
    (local.set $fd (i32.const 3))
    (block $end
      (loop $next
        (br_if $end (call $prestat (local.get $fd) (i32.const 200)))
        (local.set $length (i32.load (i32.const 204)))
        (drop (call $name (local.get $fd) (i32.const 300) (local.get $length)))
        (i32.store8 (i32.add (i32.const 300) (local.get $length)) (i32.const 10))
        (i32.store (i32.const 0) (i32.const 300))
        (i32.store (i32.const 4) (i32.add (local.get $length) (i32.const 1)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
        (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
        (br $next)))
    (call $exit (i32.add
      (call $try (i32.const 103) (i32.const 8) (i32.const 0) (i64.const 2))
      (i32.add
        (i32.mul (i32.const 2) (call $try (i32.const 100) (i32.const 11) (i32.const 0) (i64.const 2)))
        (i32.mul (i32.const 4) (call $try (i32.const 140) (i32.const 7) (i32.const 1) (i64.const 64))))))))"#;

#[tokio::test]
async fn a_command_sees_its_workspace_at_the_root_and_nothing_besides() {
    for (at, access, names, may) in [
        ("/workspace", MountAccess::Read, ".\n/workspace\n", 1),
        ("/", MountAccess::Read, "/\n", 1),
        ("/", MountAccess::ReadWrite, "/\n", 5),
        ("/work", MountAccess::Read, ".\n/work\n", 1),
    ] {
        let host = TestHost::new();
        host.write("note.txt", "a note");
        let form = CommandForm::default().with_workspace_at(at).unwrap();
        let look = Wasm::new(command(LOOK)).with_name("echo.wasm").with_form(form);
        let mut builder = host.builder([look]);
        builder.access = Some(access);
        let jar = host.build(builder).await;
        let (head, text) = call(&jar, json!({})).await;
        assert_eq!((text.as_str(), &head["exit_code"]), (names, &json!(may)), "{at}");
        assert_eq!(host.read("new.txt").is_some(), access == MountAccess::ReadWrite);
    }
}

#[tokio::test]
async fn a_number_that_is_whole_is_an_integer_where_the_schema_says_so() {
    let host = TestHost::new();
    let line = ["{n}".to_owned(), "{x}".to_owned()];
    let schema =
        r#"{"type": "object", "properties": {"n": {"type": "integer"}, "x": {"type": "number"}}}"#;
    let form = CommandForm::default().with_line(&line, Some(schema)).unwrap();
    let jar = host.jar([echo().with_form(form)]).await;
    for (arguments, words) in [
        (r#"{"n": 5.0, "x": 5.0}"#, "echo 5 5.0 "),
        (r#"{"n": 1e3, "x": 0.5}"#, "echo 1000 0.5 "),
        (r#"{"n": 9007199254740993.0, "x": 1}"#, "echo 9007199254740993 1 "),
        (r#"{"n": 5.5, "x": 1}"#, "echo 5.5 1 "),
    ] {
        let output = jar.call("echo", arguments).await.outcome.unwrap();
        let Some(OutputPart::Text(text)) = output.parts.get(1) else { panic!("{output:?}") };
        assert_eq!(text.replace('\0', " "), words, "{arguments}");
    }
}
