//! The component of the tool `shell` in a jar: what lasts between its calls, what ends it, and
//! how long a call takes. Whether it does what other shells do is compared in
//! `shell_compare.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::time::{Duration, Instant};

use belljar_kit::{JarBuilder, TestHost, assert_text, stock};
use belljar_policy::MountAccess;

/// How an answer says that there is none.
const NOTHING: &str = "[belljar: no output]\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lasts_between_the_calls_of_a_jar() {
    let host = TestHost::new();
    let jar = host.build(writable(&host)).await;
    for (command, expected) in [
        ("mkdir d; cd d; x=1; f() { echo \"f $1\"; }; set -e", NOTHING),
        ("pwd; echo $x; f y; false; echo on", "/workspace/d\n1\nf y\non\n"),
        ("echo kept > /tmp/t", NOTHING),
        ("cat /tmp/t", "kept\n"),
        ("exit 4", "[belljar: exit code 4]\n"),
        ("pwd", "/workspace/d\n"),
    ] {
        assert_text(&jar.call("shell", &arguments(command)).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_loop_ends_with_its_fuel_and_the_session_with_it() {
    let host = TestHost::new();
    let mut builder = writable(&host);
    builder.limits.fuel_per_call = 2_000_000_000;
    let jar = host.build(builder).await;
    assert_text(&jar.call("shell", &arguments("x=1; echo kept > f")).await, NOTHING);
    let stopped = jar.call("shell", &arguments("while :; do :; done")).await;
    assert!(stopped.outcome.is_err(), "{stopped:?}");
    assert_text(&jar.call("shell", &arguments("echo \"[$x]\"; cat f")).await, "[]\nkept\n");
}

/// The figure of the README is under 3 ms; a shared machine in CI gets ten times that, and
/// the figure itself is printed.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_an_open_jar_is_fast() {
    let host = TestHost::new();
    let jar = host.build(writable(&host)).await;
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        let result = jar.call("shell", &arguments("echo hi")).await;
        times.push(start.elapsed());
        assert_text(&result, "hi\n");
    }
    times.sort();
    println!("`echo hi`: {:?} (median of {}), slowest {:?}", times[10], times.len(), times[19]);
    assert!(times[10] < Duration::from_millis(30), "{:?}", times[10]);
}

fn writable(host: &TestHost) -> JarBuilder {
    JarBuilder { access: Some(MountAccess::ReadWrite), ..host.builder([stock("shell")]) }
}

fn arguments(command: &str) -> String {
    serde_json::json!({ "command": command }).to_string()
}
