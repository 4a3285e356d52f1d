//! Interfaces that are not granted, and what happens after a cancellation.

use std::collections::{BTreeMap, BTreeSet};

use belljar_kit::{TestHost, WatTool, assert_denied, assert_text, stock, wat_tool};
use belljar_policy::{DenyCode, Meter, SecretName};
use belljar_sandbox::http::Secret;
use belljar_sandbox::{CallEnding, CallError, CallResult, Wasm};

const SPIN: &str = "(loop $l (br $l)) unreachable";

#[tokio::test]
async fn a_socket_is_refused_with_the_interfaces_own_error() {
    let mut tool = WatTool::new(
        "socket",
        "(call $create (i32.const 0) (i32.const 0x300))
         (i32.store8 (i32.const 0x308) (i32.add (i32.const 48) (i32.load8_u (i32.const 0x300))))
         (i32.store8 (i32.const 0x309) (i32.add (i32.const 48) (i32.load8_u (i32.const 0x304))))
         (call $text (i32.const 0x308) (i32.const 2))",
    );
    tool.imports = r#"(import "wasi:sockets/tcp-create-socket@0.2.3" "create-tcp-socket" (func $create (param i32 i32)))"#.to_owned();
    tool.world = "import wasi:sockets/tcp-create-socket@0.2.3;".to_owned();
    tool.packages = "package wasi:sockets@0.2.3 {
        interface network {
            enum error-code { unknown, access-denied, not-supported }
            enum ip-address-family { ipv4, ipv6 }
        }
        interface tcp { resource tcp-socket; }
        interface tcp-create-socket {
            use network.{error-code, ip-address-family};
            use tcp.{tcp-socket};
            create-tcp-socket: func(family: ip-address-family) -> result<tcp-socket, error-code>;
        }
    }"
    .to_owned();
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(tool.build())]).await;
    let result = jar.call("socket", "{}").await;
    // The digits are the result `error` (1) and its case `access-denied` (1).
    assert_text(&result, "11");
    let denial = &result.receipt.denials[0];
    assert_eq!(denial.code, DenyCode::InterfaceNotGranted);
    assert_eq!(denial.what, "wasi:sockets/tcp-create-socket@0.2.3#create-tcp-socket");
    assert_text(&jar.call("socket", "{}").await, "11");
}

#[tokio::test]
async fn without_a_host_a_request_is_refused_and_recorded() {
    let host = TestHost::new();
    host.write("a.txt", "a");
    let jar = host.jar([stock("web_fetch"), stock("file_read")]).await;
    let result = jar.call("web_fetch", r#"{"url": "http://127.0.0.1:9/"}"#).await;
    assert_denied(&result, DenyCode::InterfaceNotGranted);
    assert!(matches!(result.outcome, Err(CallError::Tool { .. })), "{:?}", result.outcome);
    assert_eq!(result.receipt.bytes.sent, 0);
    // The receipt contains the target of the request; the tool's message does not.
    let target = |result: &CallResult| result.receipt.denials[0].target.clone();
    assert_eq!(target(&result).as_deref(), Some("http://127.0.0.1:9"));
    let facts = &result.receipt.denials[0].facts;
    assert!(facts.contains("no host is granted") && !facts.contains("wasi:"), "{facts}");
    // Repeated often: the resources of a refused request are released.
    for _ in 0..300 {
        let again = jar.call("web_fetch", r#"{"url": "https://tides.test/x?y"}"#).await;
        assert_eq!(target(&again).as_deref(), Some("https://tides.test"));
        assert!(!format!("{:?}", again.outcome).contains("granted to"), "{:?}", again.outcome);
    }
    assert_text(&jar.call("file_read", r#"{"path": "a.txt"}"#).await, "a");
}

#[tokio::test]
async fn without_a_mount_a_file_is_not_found_and_nothing_is_read() {
    let host = TestHost::new();
    host.write("a.txt", "a");
    let mut builder = host.builder([stock("file_read")]);
    builder.access = None;
    let jar = host.build(builder).await;
    let result = jar.call("file_read", r#"{"path": "a.txt"}"#).await;
    assert!(matches!(result.outcome, Err(CallError::Tool { .. })), "{:?}", result.outcome);
    assert_eq!(result.receipt.bytes.read, 0);
    assert!(result.receipt.paths_read.is_empty());
}

#[tokio::test]
async fn a_read_only_mount_is_not_written() {
    let host = TestHost::new();
    let jar = host.jar([stock("file_write")]).await;
    let result = jar.call("file_write", r#"{"path": "a.txt", "content": "x"}"#).await;
    assert_denied(&result, DenyCode::ReadOnly);
    assert_eq!(host.read("a.txt"), None);
    assert!(result.receipt.paths_written.is_empty());
}

/// A tool that answers with the setting whose name is `k` of its arguments. Empty = there is no such
/// setting.
fn config_tool() -> Wasm {
    // Uses the arguments without braces as the name.
    let mut tool = WatTool::new(
        "config",
        "(call $get (i32.add (local.get $args) (i32.const 6)) (i32.sub (local.get $args_len) (i32.const 8)) (i32.const 0x300))
         (if (i32.eqz (i32.load8_u (i32.const 0x304)))
           (then (return (call $text (i32.const 0x300) (i32.const 0)))))
         (call $text (i32.load (i32.const 0x308)) (i32.load (i32.const 0x30c)))",
    );
    tool.imports =
        r#"(import "wasi:config/store@0.2.0-rc.1" "get" (func $get (param i32 i32 i32)))"#
            .to_owned();
    tool.world = "import wasi:config/store@0.2.0-rc.1;".to_owned();
    tool.packages = "package wasi:config@0.2.0-rc.1 { interface store {
        variant error { upstream(string), io(string) }
        get: func(key: string) -> result<option<string>, error>;
    } }"
    .to_owned();
    Wasm::new(tool.build())
}

#[tokio::test]
async fn a_guest_learns_that_a_secret_exists_and_never_its_value() {
    const VALUE: &str = "hunter2-hunter2";
    let name = |name: &str| SecretName::new(name).unwrap();
    let secret = || {
        let hosts = vec!["https://api.test".parse().unwrap()];
        Secret::new(&VALUE.to_owned().into(), hosts, "authorization", "Bearer ").unwrap()
    };
    let host = TestHost::new();
    let mut builder = host.builder([config_tool()]);
    builder.secrets = BTreeSet::from([name("granted")]);
    builder.store.insert(name("granted"), secret());
    builder.store.insert(name("other"), secret());
    // A setting with the name of a secret does not replace the secret.
    builder.config = BTreeMap::from([("secret.other".to_owned(), "set".to_owned())]);
    let jar = host.build(builder).await;
    let get = |key: &str| format!("{{\"k\":\"{key}\"}}");
    let told = jar.call("config", &get("secret.granted")).await;
    assert_text(&told, "granted");
    assert!(!format!("{told:?}").contains(VALUE));
    assert_text(&jar.call("config", &get("secret.other")).await, "");
    assert_text(&jar.call("config", &get("granted")).await, "");
}

#[tokio::test]
async fn settings_are_told_and_a_secret_without_a_value_does_not_exist() {
    let host = TestHost::new();
    let mut builder = host.builder([config_tool()]);
    builder.config = BTreeMap::from([("color".to_owned(), "red".to_owned())]);
    builder.secrets = BTreeSet::from([SecretName::new("absent").unwrap()]);
    let jar = host.build(builder).await;
    let get = |key: &str| format!("{{\"k\":\"{key}\"}}");
    assert_text(&jar.call("config", &get("color")).await, "red");
    assert_text(&jar.call("config", &get("other")).await, "");
    // Granted, but without a value from the operator: the secret does not exist.
    assert_text(&jar.call("config", &get("secret.absent")).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_cancellation_nothing_more_happens() {
    let host = TestHost::new();
    let spin = Wasm::new(wat_tool("spin", SPIN));
    let jar = host.jar([spin, stock("file_read")]).await;
    let spinning = jar.call("spin", "{}");
    let cancelling = async {
        while jar.budget.spent_amount(Meter::Fuel) == 0 {
            tokio::task::yield_now().await;
        }
        jar.cancel.cancel();
        jar.jar.close().await
    };
    let (result, left) = tokio::join!(spinning, cancelling);
    assert_eq!(result.outcome, Err(CallError::Cancelled));
    assert_eq!(result.receipt.ending, CallEnding::Cancelled);
    assert!(left.is_empty(), "{left:?}");
    let spent = jar.budget.spent_amount(Meter::Fuel);
    let after = jar.call("file_read", r#"{"path": "a.txt"}"#).await;
    assert_eq!(after.outcome, Err(CallError::Cancelled));
    assert_eq!(jar.budget.spent_amount(Meter::Fuel), spent, "no guest ran");
    assert_eq!(jar.budget.spent_amount(Meter::Memory), 0, "no store is left");
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_the_jar_usable() {
    let host = TestHost::new();
    host.write("a.txt", "a");
    let spin = Wasm::new(wat_tool("spin", SPIN));
    let jar = host.jar([spin, stock("file_read")]).await;
    let spinning = jar.call("spin", "{}");
    let begun = async {
        while jar.budget.spent_amount(Meter::Fuel) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = spinning => panic!("it spins"),
        () = begun => {}
    }
    assert_text(&jar.call("file_read", r#"{"path": "a.txt"}"#).await, "a");
    assert!(jar.jar.close().await.is_empty());
}

#[tokio::test]
async fn a_cancelled_budget_stops_a_call_of_a_jar_below_it() {
    let host = TestHost::new();
    let jar = host.jar([Wasm::new(wat_tool("spin", SPIN))]).await;
    let stopping = async {
        while jar.budget.spent_amount(Meter::Fuel) == 0 {
            tokio::task::yield_now().await;
        }
        jar.budget.cancel();
    };
    let (result, ()) = tokio::join!(jar.call("spin", "{}"), stopping);
    assert_eq!(result.outcome, Err(CallError::Cancelled));
}
