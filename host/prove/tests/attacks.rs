//! Runs every attack, each as one test; `cargo test --test attacks -- files-` runs those with `files-` in the
//! name.
//!
//! This program is also the compiler of strangers' components, as `belljar` is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use belljar_prove::{Arena, Attack, Suite, SuiteOptions, list_attacks};
use belljar_sandbox::{Compiler, compile_child};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

const COMPILE: &str = "compile-component";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(COMPILE) {
        return compile_child(true);
    }
    let mut arguments = Arguments::from_args();
    // One attack at a time, because time and memory are measured for the whole process.
    arguments.test_threads = Some(1);
    let runtime = Arc::new(Runtime::new().unwrap());
    let suite = Suite::new(options()).unwrap();
    runtime.block_on(suite.prepare()).unwrap();
    let mut trials: Vec<_> = list_attacks().map(|attack| trial(attack, &runtime, &suite)).collect();
    trials.push(soak(&runtime, &suite));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn options() -> SuiteOptions {
    let program = std::env::current_exe().unwrap();
    let probe = std::env::var_os("BELLJAR_PROBE").map(|path| std::fs::read(path).unwrap());
    SuiteOptions {
        compiler: Compiler::Child { program, args: vec![COMPILE.into()] },
        cache_dir: Some(target().join("belljar-prove-cache")),
        probe,
    }
}

fn target() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn trial(attack: &'static Attack<Arena>, runtime: &Arc<Runtime>, suite: &Suite) -> Trial {
    let (runtime, suite) = (Arc::clone(runtime), suite.clone());
    Trial::test(attack.id, move || {
        let report = runtime.block_on(suite.run_attack(attack));
        if std::env::var_os("BELLJAR_HOSTILE_FIGURES").is_some() {
            println!("{}", serde_json::to_string(&report).unwrap());
        }
        report.result.map(drop).map_err(Failed::from)
    })
}

/// A short soak as a test; the long one is in the benchmark.
fn soak(runtime: &Arc<Runtime>, suite: &Suite) -> Trial {
    const CALLS: u64 = 1_000;
    let (runtime, suite) = (Arc::clone(runtime), suite.clone());
    Trial::test("a-thousand-hostile-calls-leave-nothing-behind", move || {
        let soak = runtime.block_on(suite.run_soak(CALLS)).map_err(|error| format!("{error:#}"))?;
        let fine = soak.calls == CALLS
            && soak.escapes.is_empty()
            && soak.host_faults == 0
            && soak.memory_growth_bytes <= belljar_prove::GROWTH_BOUND;
        if fine { Ok(()) } else { Err(Failed::from(format!("{soak:#?}"))) }
    })
}
