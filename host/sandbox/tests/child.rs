//! Compiling in a child process: this program also plays the compiler.
//!
//! The usual test harness is not used: its output on stdout would mix with the compiled code.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
#![allow(missing_docs)]

use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use belljar_kit::{TestHost, assert_text, stock};
use belljar_sandbox::{Compiler, PoolConfig, compile_child};

const COMPILE: &str = "compile-component";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(COMPILE) {
        return compile_child(true);
    }
    a_child_compiles_what_then_runs();
    a_child_says_why_it_does_not_compile();
    the_compilers_child_is_behind_a_wall_before_it_reads();
    println!("test result: ok");
    ExitCode::SUCCESS
}

fn compiler() -> Compiler {
    Compiler::Child { program: std::env::current_exe().unwrap(), args: vec![COMPILE.into()] }
}

fn a_child_compiles_what_then_runs() {
    let cache = tempfile::tempdir().unwrap();
    let host = TestHost::with(|config| {
        config.cache_dir = Some(cache.path().join("cache"));
        config.compiler = compiler();
        config.pool = PoolConfig { slots: 0 };
    });
    host.write("a.txt", "a");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let jar = host.jar([stock("file_read")]).await;
        assert_text(&jar.call("file_read", r#"{"path": "a.txt"}"#).await, "a");
    });
    assert!(host.sandbox.warnings().is_empty());
}

fn child() -> Child {
    Command::new(std::env::current_exe().unwrap())
        .arg(COMPILE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The child waits for its input during the test.
#[cfg(target_os = "linux")]
fn the_compilers_child_is_behind_a_wall_before_it_reads() {
    let mut child = child();
    let status = format!("/proc/{}/status", child.id());
    let limit = Instant::now() + Duration::from_secs(60);
    let is_walled = || {
        let text = std::fs::read_to_string(&status).unwrap();
        text.contains("Seccomp:\t2") && text.contains("NoNewPrivs:\t1")
    };
    while !is_walled() {
        assert!(Instant::now() < limit, "it has no wall");
        std::thread::yield_now();
    }
    drop(child.stdin.take());
    assert!(!child.wait_with_output().unwrap().status.success(), "it still heeds its input");
}

#[cfg(not(target_os = "linux"))]
fn the_compilers_child_is_behind_a_wall_before_it_reads() {}

fn a_child_says_why_it_does_not_compile() {
    let mut child = child();
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(!output.stderr.is_empty(), "it says why");
}
