//! Stores in the pool and outside the pool.

use belljar_kit::{TestHost, WatTool, assert_text, wat_tool};
use belljar_policy::{Limits, Meter};
use belljar_sandbox::{PoolConfig, Wasm};

const ECHO: &str = "(call $text (local.get $args) (local.get $args_len))";

/// The memory of a pool slot, in pages.
const SLOT: u32 = 4_096;

const PAGE: u64 = 65_536;

/// Limits with the memory of two slots.
fn roomy() -> Limits {
    Limits { memory_bytes: 2 * u64::from(SLOT) * PAGE, ..Limits::default() }
}

#[tokio::test]
async fn a_component_that_needs_more_memory_than_a_slot_opens_outside_the_pool() {
    let host = TestHost::with(|config| config.describe.memory_bytes = roomy().memory_bytes);
    let mut large = WatTool::new("large", ECHO);
    large.pages = SLOT + 1;
    let small = Wasm::new(wat_tool("small", ECHO));
    let mut builder = host.builder([Wasm::new(large.build()), small]);
    builder.limits = roomy();
    let jar = host.build(builder).await;
    let result = jar.call("large", "{}").await;
    assert_text(&result, "{}");
    assert_eq!(result.receipt.peak_memory, u64::from(SLOT + 1) * PAGE);
    let warnings = host.sandbox.warnings();
    assert!(warnings.iter().any(|said| said.contains("opens outside the pool")), "{warnings:?}");
    assert_text(&jar.call("small", "{}").await, "{}");
    assert!(jar.jar.close().await.is_empty());
    assert_eq!(jar.budget.spent_amount(Meter::Memory), 0);
}

#[tokio::test]
async fn a_jar_that_may_use_more_than_a_slot_really_can() {
    let grow = wat_tool(
        "grow",
        &format!(
            "(i32.store8 (i32.const 0x300) (i32.add (i32.const 48)
               (i32.ne (i32.const -1) (memory.grow (i32.const {SLOT})))))
             (call $text (i32.const 0x300) (i32.const 1))"
        ),
    );
    let host = TestHost::new();
    let mut builder = host.builder([Wasm::new(grow)]);
    let narrow = host.build(builder.clone()).await;
    builder.limits = roomy();
    let wide = host.build(builder).await;
    assert_text(&narrow.call("grow", "{}").await, "0");
    assert_text(&wide.call("grow", "{}").await, "1");
    assert_eq!(host.sandbox.warnings(), [""; 0]);
}

#[tokio::test]
async fn stores_that_find_the_pool_full_open_outside_it_and_warn_once() {
    let host = TestHost::with(|config| config.pool = PoolConfig { slots: 1 });
    let wasm = Wasm::new(wat_tool("echo", ECHO));
    let first = host.jar([wasm.clone()]).await;
    assert_text(&first.call("echo", "{}").await, "{}");
    assert_eq!(host.sandbox.warnings(), [""; 0]);
    let (second, third) = (host.jar([wasm.clone()]).await, host.jar([wasm]).await);
    assert_text(&second.call("echo", "{}").await, "{}");
    assert_text(&third.call("echo", "{}").await, "{}");
    let warnings = host.sandbox.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("pool of stores is full"), "{warnings:?}");
    // A store that is already open is not affected.
    assert_text(&first.call("echo", "{}").await, "{}");
    assert_text(&second.call("echo", "{}").await, "{}");
}
