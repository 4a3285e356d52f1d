//! Bounds of fuel, time, memory, output and stdio: each bound stops the call, is billed, and does not affect
//! other calls.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use belljar_kit::{TestHost, TestJar, WatTool, assert_text, stock, wat_tool};
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, ExhaustedLimit, Limits, Meter};
use belljar_sandbox::{CallEnding, CallError, CallResult, Wasm};

const SPIN: &str = "(loop $l (br $l)) unreachable";
const ECHO: &str = "(call $text (local.get $args) (local.get $args_len))";

fn spin() -> Wasm {
    Wasm::new(wat_tool("spin", SPIN))
}

fn echo() -> Wasm {
    Wasm::new(wat_tool("echo", ECHO))
}

async fn limited(host: &TestHost, wasm: Wasm, limits: Limits) -> TestJar {
    let mut builder = host.builder([wasm, echo()]);
    builder.limits = limits;
    host.build(builder).await
}

fn exhausted(result: &CallResult) -> ExhaustedLimit {
    match &result.outcome {
        Err(CallError::Exhausted(which)) => *which,
        other => panic!("{other:?}: {:#?}", result.receipt),
    }
}

#[tokio::test]
async fn an_endless_loop_ends_with_its_fuel_and_is_billed_all_of_it() {
    let host = TestHost::new();
    let limits = Limits { fuel_per_call: 5_000_000, ..Limits::default() };
    let jar = limited(&host, spin(), limits).await;
    let result = jar.call("spin", "{}").await;
    let which = exhausted(&result);
    assert_eq!(
        (which.meter, which.level, which.limit),
        (Meter::Fuel, BudgetLevel::Call, 5_000_000)
    );
    assert_eq!(result.receipt.fuel, 5_000_000);
    assert_eq!(jar.budget.spent_amount(Meter::Fuel), 5_000_000);
    assert_text(&jar.call("echo", "{}").await, "{}");
}

#[tokio::test]
async fn an_endless_loop_ends_with_its_time() {
    let host = TestHost::new();
    let limits = Limits {
        fuel_per_call: u64::MAX,
        fuel: u64::MAX,
        call_timeout_seconds: 1,
        ..Limits::default()
    };
    let jar = limited(&host, spin(), limits).await;
    let begun = Instant::now();
    let result = jar.call("spin", "{}").await;
    assert_eq!(result.outcome, Err(CallError::TimedOut(1)));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(result.receipt.times.guest > 100_000 && result.receipt.fuel > 1_000_000);
    assert_text(&jar.call("echo", "{}").await, "{}");
}

/// A tool that waits for ever.
fn wait() -> Wasm {
    let mut tool =
        WatTool::new("wait", "(call $block (call $subscribe (i64.const -1))) unreachable");
    tool.imports = r#"
        (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $subscribe (param i64) (result i32)))
        (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#
        .to_owned();
    tool.world = "import wasi:clocks/monotonic-clock@0.2.0; import wasi:io/poll@0.2.0;".to_owned();
    tool.packages = "
        package wasi:io@0.2.0 { interface poll { resource pollable { block: func(); } } }
        package wasi:clocks@0.2.0 { interface monotonic-clock {
            use wasi:io/poll@0.2.0.{pollable};
            subscribe-duration: func(when: u64) -> pollable;
        } }"
    .to_owned();
    Wasm::new(tool.build())
}

#[tokio::test]
async fn a_guest_that_waits_for_ever_ends_with_its_time() {
    let host = TestHost::new();
    let limits = Limits { call_timeout_seconds: 1, ..Limits::default() };
    let jar = limited(&host, wait(), limits).await;
    let result = jar.call("wait", "{}").await;
    assert_eq!(result.outcome, Err(CallError::TimedOut(1)));
    assert!(result.receipt.times.waiting > result.receipt.times.guest);
    assert_text(&jar.call("echo", "{}").await, "{}");
}

/// Records whether a future was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_cancelled_budget_wakes_a_call_that_waits() {
    let host = TestHost::new();
    let session = Budget::new_root(BudgetLevel::Session, BudgetCaps::unlimited());
    let mut builder = host.builder([wait(), echo()]);
    builder.parent = Some(session.clone());
    let jar = host.build(builder).await;
    jar.jar.preopen_store("wait").await.unwrap();
    let mut call = pin!(jar.call("wait", "{}"));
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(Arc::clone(&woken));
    loop {
        woken.0.store(false, Ordering::SeqCst);
        assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        if !woken.0.load(Ordering::SeqCst) {
            break;
        }
    }
    session.cancel();
    assert!(woken.0.load(Ordering::SeqCst), "nothing else would have woken it for a minute");
    assert_eq!(call.await.outcome, Err(CallError::Cancelled));
    assert_eq!(jar.call("echo", "{}").await.outcome, Err(CallError::Cancelled));
    let other = host.jar([echo()]).await;
    assert_text(&other.call("echo", "{}").await, "{}");
}

#[tokio::test]
async fn stores_of_a_jar_share_its_memory_and_give_it_back() {
    // Asks for 60 more pages. Answers 1 if the memory grew, and 0 if not.
    let grow = |name: &str| {
        Wasm::new(wat_tool(
            name,
            "(i32.store8 (i32.const 0x300) (i32.add (i32.const 48)
               (i32.ne (i32.const -1) (memory.grow (i32.const 60)))))
             (call $text (i32.const 0x300) (i32.const 1))",
        ))
    };
    let host = TestHost::new();
    let mut builder = host.builder([grow("one"), grow("two")]);
    builder.limits.memory_bytes = 80 * 65_536;
    let jar = host.build(builder).await;
    let first = jar.call("one", "{}").await;
    assert_text(&first, "1");
    assert_eq!(first.receipt.peak_memory, 64 * 65_536);
    assert_text(&jar.call("two", "{}").await, "0");
    assert_eq!(jar.budget.spent_amount(Meter::Memory), (64 + 4) * 65_536);
    assert!(jar.jar.close().await.is_empty());
    assert_eq!(jar.budget.spent_amount(Meter::Memory), 0);
}

#[tokio::test]
async fn a_store_that_does_not_fit_the_memory_is_refused_by_name() {
    let host = TestHost::new();
    let limits = Limits { memory_bytes: 3 * 65_536, ..Limits::default() };
    let jar = limited(&host, spin(), limits).await;
    assert_eq!(exhausted(&jar.call("spin", "{}").await).meter, Meter::Memory);
    assert_eq!(jar.budget.spent_amount(Meter::Memory), 0);
}

#[tokio::test]
async fn an_answer_past_its_bound_is_an_error_and_not_a_cut() {
    let mut tool = WatTool::new("big", "(call $text (i32.const 0x20000) (i32.const 2000000))");
    tool.pages = 40;
    let host = TestHost::new();
    let jar = limited(&host, Wasm::new(tool.build()), Limits::default()).await;
    let result = jar.call("big", "{}").await;
    assert!(matches!(result.outcome, Err(CallError::BadOutput(_))), "{result:?}");
    assert!(matches!(result.receipt.ending, CallEnding::BadOutput(_)));
    assert_eq!(jar.budget.spent_amount(Meter::Output), 0);
}

#[tokio::test]
async fn an_answer_that_would_fill_the_host_is_cut_off_while_it_is_copied() {
    // Each of a hundred parts refers to the same 3 MB of the guest's memory.
    let mut tool = WatTool::new(
        "bomb",
        "(local $n i32)
         (loop $l
           (i32.store (i32.add (i32.const 0x1000) (i32.mul (local.get $n) (i32.const 28))) (i32.const 0))
           (i32.store (i32.add (i32.const 0x1004) (i32.mul (local.get $n) (i32.const 28))) (i32.const 0x20000))
           (i32.store (i32.add (i32.const 0x1008) (i32.mul (local.get $n) (i32.const 28))) (i32.const 3000000))
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br_if $l (i32.lt_u (local.get $n) (i32.const 100))))
         (i32.store (i32.const 0x100) (i32.const 0))
         (i32.store (i32.const 0x104) (i32.const 0x1000))
         (i32.store (i32.const 0x108) (i32.const 100))
         (i32.const 0x100)",
    );
    tool.pages = 60;
    let host = TestHost::new();
    let jar = limited(&host, Wasm::new(tool.build()), Limits::default()).await;
    let result = jar.call("bomb", "{}").await;
    assert!(matches!(result.outcome, Err(CallError::Trapped(_))), "{result:?}");
    assert_text(&jar.call("echo", "{}").await, "{}");
}

#[tokio::test]
async fn json_parts_must_be_json() {
    let host = TestHost::new();
    let tool = wat_tool(
        "json",
        "(call $json (local.get $args) (i32.sub (local.get $args_len) (i32.const 1)))",
    );
    let jar = limited(&host, Wasm::new(tool), Limits::default()).await;
    let result = jar.call("json", r#"{"a": 1}"#).await;
    assert!(matches!(result.outcome, Err(CallError::BadOutput(_))), "{result:?}");
}

#[tokio::test]
async fn a_flood_on_stdout_is_cut_and_counted_and_costs_fuel() {
    let mut tool = WatTool::new(
        "flood",
        "(local $n i32)
         (local.set $n (call $stdout))
         (loop $l (call $write (local.get $n) (i32.const 0x20000) (i32.const 4096) (i32.const 0x300)) (br $l))
         unreachable",
    );
    tool.imports = r#"
        (import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
        (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush" (func $write (param i32 i32 i32 i32)))"#
        .to_owned();
    tool.world = "import wasi:cli/stdout@0.2.0; import wasi:io/streams@0.2.0;".to_owned();
    tool.packages = "
        package wasi:io@0.2.0 {
            interface error { resource error; }
            interface streams {
                use error.{error};
                variant stream-error { last-operation-failed(error), closed }
                resource output-stream {
                    blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
                }
            }
        }
        package wasi:cli@0.2.0 { interface stdout {
            use wasi:io/streams@0.2.0.{output-stream};
            get-stdout: func() -> output-stream;
        } }"
    .to_owned();
    let host = TestHost::new();
    let limits = Limits { fuel_per_call: 200_000_000, stdio_bytes: 10_000, ..Limits::default() };
    let jar = limited(&host, Wasm::new(tool.build()), limits).await;
    let result = jar.call("flood", "{}").await;
    assert_eq!(exhausted(&result).meter, Meter::Fuel);
    let receipt = &result.receipt;
    assert_eq!(receipt.stdout.len(), 10_000);
    assert!(receipt.stdio_dropped > 1_000_000 && receipt.host_calls > 1_000);
    assert!(receipt.fuel < 250_000_000, "{}", receipt.fuel);
    assert_text(&jar.call("echo", "{}").await, "{}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_jars_under_one_budget_stop_together() {
    let host = TestHost::new();
    let session = Budget::new_root(
        BudgetLevel::Session,
        BudgetCaps::unlimited().with_cap(Meter::Fuel, 30_000_000),
    );
    let mut builder = host.builder([spin(), echo()]);
    builder.parent = Some(session.clone());
    let (a, b) = (host.build(builder.clone()).await, host.build(builder).await);
    let (a, b) = tokio::join!(a.call("spin", "{}"), b.call("spin", "{}"));
    for result in [&a, &b] {
        assert_eq!(exhausted(result).level, BudgetLevel::Session);
    }
    let spent = session.spent_amount(Meter::Fuel);
    assert!((30_000_000..31_000_000).contains(&spent), "{spent}");
    assert_eq!(spent, a.receipt.fuel + b.receipt.fuel);
    let other = host.jar([echo()]).await;
    assert_text(&other.call("echo", "{}").await, "{}");
}

#[tokio::test]
async fn the_same_call_costs_the_same_fuel() {
    let host = TestHost::new();
    host.write("a.txt", "x".repeat(5_000));
    let mut fuel = Vec::new();
    for _ in 0..3 {
        let jar = host.jar([stock("file_read")]).await;
        fuel.push(jar.call("file_read", r#"{"path": "a.txt"}"#).await.receipt.fuel);
    }
    assert!(fuel.iter().all(|amount| *amount == fuel[0]), "{fuel:?}");
}
