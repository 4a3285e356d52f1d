//! Components that do not load, descriptions that are false, and a changed cache.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use belljar_kit::{TestHost, WatTool, assert_text, component, stock, wat_tool};
use belljar_sandbox::{
    Compiler, DescribeError, ImportNeed, LoadError, PoolConfig, Sandbox, StockCode, Wasm,
    inspect_component,
};

const ECHO: &str = "(call $text (local.get $args) (local.get $args_len))";

fn echo() -> Wasm {
    Wasm::new(wat_tool("echo", ECHO))
}

async fn refused(host: &TestHost, wasm: Vec<u8>) -> LoadError {
    host.sandbox.load_component(&Wasm::new(wasm)).await.unwrap_err()
}

async fn still_works(host: &TestHost) {
    let jar = host.jar([echo()]).await;
    assert_text(&jar.call("echo", "{}").await, "{}");
}

#[tokio::test]
async fn what_is_no_component_is_refused_with_its_reason() {
    let host = TestHost::new();
    for garbage in [b"".to_vec(), b"hello".to_vec(), vec![0; 100]] {
        assert!(matches!(refused(&host, garbage).await, LoadError::NotWasm));
    }
    let module = b"\0asm\x01\0\0\0".to_vec();
    assert!(matches!(refused(&host, module).await, LoadError::CoreModule));
    let whole = stock("file_read");
    for cut in [9, 100, whole.bytes().len() / 2, whole.bytes().len() - 1] {
        let error = refused(&host, whole.bytes()[..cut].to_vec()).await;
        assert!(matches!(error, LoadError::Malformed(_)), "{cut}: {error}");
    }
    let mut flipped = whole.bytes().to_vec();
    flipped[5_000] ^= 0xff;
    refused(&host, flipped).await;
    still_works(&host).await;
}

#[tokio::test]
async fn another_world_is_refused_and_says_what_it_exports() {
    let host = TestHost::new();
    let empty = component("package test:guest;\nworld guest {}", "(module)");
    assert!(matches!(refused(&host, empty).await, LoadError::WrongWorld(_)));
    let other = component(
        "package test:guest;
         world guest { export belljar:tool/tools@0.9.0; }
         package belljar:tool@0.9.0 { interface tools { invoke: func(); } }",
        r#"(module (func (export "belljar:tool/tools@0.9.0#invoke")))"#,
    );
    let error = refused(&host, other).await.to_string();
    assert!(error.contains("it exports belljar:tool/tools@0.9.0"), "{error}");
    let wrong_types = component(
        "package test:guest;\nworld guest { export belljar:tool/tools@0.1.0; }
         package belljar:tool@0.1.0 { interface tools {
             describe: func() -> string;
             invoke: func(a: u32);
         } }",
        r#"(module (memory (export "memory") 1)
             (func (export "belljar:tool/tools@0.1.0#describe") (result i32) (i32.const 0))
             (func (export "belljar:tool/tools@0.1.0#invoke") (param i32)))"#,
    );
    let error = refused(&host, wrong_types).await.to_string();
    assert!(error.contains("`describe` has another type"), "{error}");
    still_works(&host).await;
}

#[tokio::test]
async fn an_unknown_import_is_refused_by_name() {
    let host = TestHost::new();
    for (import, package) in [
        ("evil:host/shell@1.0.0", "package evil:host@1.0.0 { interface shell { run: func(); } }"),
        ("wasi:cli/exit@0.3.0", "package wasi:cli@0.3.0 { interface exit { run: func(); } }"),
        ("wasi:io/poll@0.2.0", "package wasi:io@0.2.0 { interface poll { run: func(); } }"),
    ] {
        let mut tool = WatTool::new("a", &format!("(call $run) {ECHO}"));
        tool.imports = format!(r#"(import "{import}" "run" (func $run))"#);
        tool.world = format!("import {import};");
        tool.packages = package.to_owned();
        match refused(&host, tool.build()).await {
            LoadError::UnknownImport(what) => assert!(what.contains(import), "{what}"),
            other => panic!("{import}: {other}"),
        }
    }
    still_works(&host).await;
}

#[tokio::test]
async fn a_newer_patch_of_a_known_interface_is_known() {
    let host = TestHost::new();
    let mut tool = WatTool::new("a", &format!("(drop (call $now)) {ECHO}"));
    tool.imports =
        r#"(import "wasi:clocks/monotonic-clock@0.2.99" "now" (func $now (result i64)))"#
            .to_owned();
    tool.world = "import wasi:clocks/monotonic-clock@0.2.99;".to_owned();
    tool.packages =
        "package wasi:clocks@0.2.99 { interface monotonic-clock { now: func() -> u64; } }"
            .to_owned();
    let jar = host.jar([Wasm::new(tool.build())]).await;
    assert_text(&jar.call("a", "{}").await, "{}");
}

#[test]
fn inspection_runs_nothing_and_names_what_each_import_needs() {
    let found = inspect_component(stock("web_fetch").bytes()).unwrap();
    assert_eq!(found.tool_export.as_deref(), Some("belljar:tool/tools@0.1.0"));
    let need = |part: &str| {
        let import = found.imports.iter().find(|import| import.name.contains(part));
        import.unwrap_or_else(|| panic!("{part} in {:?}", found.imports)).need
    };
    assert_eq!(need("wasi:http/outgoing-handler"), ImportNeed::Network);
    assert_eq!(need("wasi:io/poll"), ImportNeed::Base);
    assert_eq!(found.digest, stock("web_fetch").digest());
}

#[tokio::test]
async fn a_description_that_lies_or_does_not_come_is_refused() {
    let host = TestHost::with(|config| {
        config.describe.fuel = 50_000_000;
        config.describe.memory_bytes = 8 << 20;
        config.describe.time = Duration::from_secs(2);
    });
    let tool = |change: &dyn Fn(&mut WatTool)| {
        let mut tool = WatTool::new("liar", ECHO);
        change(&mut tool);
        Wasm::new(tool.build())
    };
    for (wasm, part) in [
        (tool(&|t| t.describe = "(loop $l (br $l))".to_owned()), "fuel"),
        (tool(&|t| t.describe = "unreachable".to_owned()), "unreachable"),
        (tool(&|t| t.pages = 1_000), "memory"),
        (tool(&|t| t.tools.clear()), "no tool"),
        (tool(&|t| t.tools[0].0 = "Not A Name".to_owned()), "not a tool name"),
        (tool(&|t| t.tools[0].1 = "a\u{202e}b".to_owned()), "hidden character"),
        (tool(&|t| t.tools[0].1 = "x".repeat(20_000)), "bytes"),
        (tool(&|t| t.tools[0].2 = "{".to_owned()), "not JSON"),
        (tool(&|t| t.tools[0].2 = r#"{"type": "string"}"#.to_owned()), "not of an object"),
        (tool(&|t| t.tools.push(t.tools[0].clone())), "two tools"),
    ] {
        let error = host.sandbox.describe_tools(&wasm).await.unwrap_err();
        let told = matches!(error, DescribeError::Failed(_) | DescribeError::Invalid(_));
        assert!(told && error.to_string().contains(part), "{part}: {error}");
    }
    let tools = host.sandbox.describe_tools(&stock("file_read")).await.unwrap();
    assert!(tools[0].hints.read_only);
}

fn sandbox(cache: &Path, compiler: Compiler) -> Sandbox {
    let config = belljar_sandbox::SandboxConfig {
        cache_dir: Some(cache.to_owned()),
        compiler,
        pool: PoolConfig { slots: 16 },
        ..Default::default()
    };
    Sandbox::new(config).unwrap()
}

/// A compiler that records each run and fails.
fn failing(log: &Path, then: &str) -> Compiler {
    let script = format!("echo run >> '{}'; {then}", log.display());
    Compiler::Child { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()] }
}

fn entries(cache: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(cache)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == suffix))
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_known_component_is_neither_compiled_nor_described_again() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, log) = (dir.path().join("cache"), dir.path().join("log"));
    sandbox(&cache, Compiler::InProcess).describe_tools(&echo()).await.unwrap();
    let again = sandbox(&cache, failing(&log, "exit 1"));
    again.load_component(&echo()).await.unwrap();
    assert_eq!(again.describe_tools(&echo()).await.unwrap()[0].name.as_str(), "echo");
    assert!(!log.exists(), "the compiler ran");
}

#[tokio::test]
async fn planted_and_altered_code_is_not_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, log) = (dir.path().join("cache"), dir.path().join("log"));
    let sad = Wasm::new(wat_tool("sad", "unreachable"));
    let first = sandbox(&cache, Compiler::InProcess);
    first.load_component(&echo()).await.unwrap();
    let echo_entry = entries(&cache, "cwasm")[0].clone();
    let good = std::fs::read(&echo_entry).unwrap();
    first.load_component(&sad).await.unwrap();
    let other = entries(&cache, "cwasm").into_iter().find(|path| *path != echo_entry).unwrap();
    let planted = std::fs::read(other).unwrap();
    let mut altered = good.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    for bad in [planted, altered, good[..good.len() - 1].to_vec(), b"x".to_vec()] {
        std::fs::write(&echo_entry, bad).unwrap();
        let error =
            sandbox(&cache, failing(&log, "exit 1")).load_component(&echo()).await.unwrap_err();
        assert!(matches!(error, LoadError::Compile(_)), "compiled again, not loaded: {error}");
    }
    sandbox(&cache, Compiler::InProcess).load_component(&echo()).await.unwrap();
    assert_eq!(std::fs::read(&echo_entry).unwrap().len(), good.len(), "written anew");
}

/// A sandbox whose compiler fails, and that gets this code as the machine code of `echo`.
#[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
fn bringing(cache: &Path, log: &Path, code: &[u8], in_place: bool) -> Sandbox {
    let sandbox = sandbox(cache, failing(log, "exit 1"));
    let code = if in_place {
        StockCode::InPlace(on_a_page(code))
    } else {
        StockCode::Packed(belljar_engine::pack_code(code).leak())
    };
    // SAFETY: the code is machine code of that component, or is not in the form of machine code.
    unsafe { sandbox.know_code(echo().digest(), code) };
    sandbox
}

/// A leaked copy of the code that begins at a page.
fn on_a_page(code: &[u8]) -> &'static [u8] {
    const PAGE: usize = 64 << 10;
    let room: &'static mut [u8] = vec![0; code.len() + PAGE].leak();
    let start = room.as_ptr().align_offset(PAGE);
    let place = &mut room[start..start + code.len()];
    place.copy_from_slice(code);
    place
}

#[tokio::test]
async fn code_that_the_program_brings_is_loaded_where_it_fits_and_else_the_component_is_compiled() {
    for in_place in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (cache, log) = (dir.path().join("cache"), dir.path().join("log"));
        let code = belljar_engine::compile_component(echo().bytes()).unwrap();
        bringing(&cache, &log, &code, in_place).load_component(&echo()).await.unwrap();
        assert!(!log.exists(), "the compiler ran");
        assert!(entries(&cache, "cwasm").is_empty(), "it is kept nowhere else");
        // Code of another engine version, which the first bytes state.
        let mut other = code.clone();
        let version = other.windows(2).position(|bytes| bytes == b"48").unwrap();
        other[version] = b'9';
        for unfit in [other, code[..code.len() / 2].to_vec(), Vec::new()] {
            let told = bringing(&cache, &log, &unfit, in_place);
            let error = told.load_component(&echo()).await.unwrap_err();
            assert!(matches!(error, LoadError::Compile(_)), "compiled in its place: {error}");
            // If the code does not fit, the compiled code is cached, and the next sandbox finds it.
            sandbox(&cache, Compiler::InProcess).load_component(&echo()).await.unwrap();
            bringing(&cache, &log, &unfit, in_place).load_component(&echo()).await.unwrap();
            std::fs::remove_dir_all(&cache).unwrap();
        }
    }
}

#[tokio::test]
#[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
async fn code_in_place_serves_both_engines_and_outlives_each() {
    let code = on_a_page(&belljar_engine::compile_component(echo().bytes()).unwrap());
    for _ in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let host = TestHost::with(|config| {
            (config.cache_dir, config.compiler) = (None, failing(&log, "exit 1"));
        });
        // SAFETY: the code is machine code of that component.
        unsafe { host.sandbox.know_code(echo().digest(), StockCode::InPlace(code)) };
        let mut builder = host.builder([echo()]);
        let pooled = host.build(builder.clone()).await;
        builder.limits.memory_bytes = 1 << 30;
        let outside = host.build(builder).await;
        for jar in [pooled, outside] {
            assert_text(&jar.call("echo", r#"{"a":1}"#).await, r#"{"a":1}"#);
        }
        assert!(!log.exists(), "the compiler ran");
    }
}

#[tokio::test]
async fn loads_of_one_component_share_one_compilation_and_its_failure() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, log) = (dir.path().join("cache"), dir.path().join("log"));
    let sandbox = sandbox(&cache, failing(&log, "echo out of ideas >&2; exit 1"));
    let wasm = echo();
    let loads = (0..8).map(|_| sandbox.load_component(&wasm));
    for result in futures::future::join_all(loads).await {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("out of ideas"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "run\n");
    sandbox.load_component(&wasm).await.unwrap_err();
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "run\nrun\n", "a later load tries again");
}

#[tokio::test]
async fn a_compiler_that_dies_or_talks_nonsense_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    for (then, part) in [
        ("kill -9 $$", "signal"),
        ("echo nonsense", "cannot be loaded"),
        ("printf 'bad\\033[2J' >&2; exit 3", "bad\\u{1b}[2J"),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let sandbox = sandbox(&cache.path().join("c"), failing(&dir.path().join("log"), then));
        let error = sandbox.load_component(&echo()).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(entries(&cache.path().join("c"), "cwasm").is_empty(), "only what loads is kept");
    }
}

/// A compiler that waits for a reader of a FIFO in `dir`, and never ends.
fn stuck(dir: &Path) -> String {
    let fifo = dir.join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    format!("echo stuck > '{}'", fifo.display())
}

#[tokio::test]
async fn a_load_does_not_wait_for_the_compilation_of_another_component() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    sandbox(&cache, Compiler::InProcess).load_component(&echo()).await.unwrap();
    let stuck = stuck(dir.path());
    let sandbox = Arc::new(sandbox(&cache, failing(&dir.path().join("log"), &stuck)));
    let other = Wasm::new(wat_tool("other", ECHO));
    let compiling = tokio::spawn({
        let (sandbox, other) = (Arc::clone(&sandbox), other.clone());
        async move { sandbox.load_component(&other).await }
    });
    while !dir.path().join("log").exists() {
        tokio::task::yield_now().await;
    }
    sandbox.load_component(&echo()).await.unwrap();
    assert!(!compiling.is_finished());
    compiling.abort();
}

#[tokio::test]
async fn a_compiler_ends_when_nobody_waits_for_it_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, log) = (dir.path().join("cache"), dir.path().join("log"));
    let pid = dir.path().join("pid");
    let script = format!("echo $$ > '{}'; {}", pid.display(), stuck(dir.path()));
    let sandbox = Arc::new(sandbox(&cache, failing(&log, &script)));
    let loading = tokio::spawn({
        let sandbox = Arc::clone(&sandbox);
        async move { sandbox.load_component(&echo()).await }
    });
    let started = || std::fs::read_to_string(&pid).ok().and_then(|pid| pid.trim().parse().ok());
    let id = loop {
        match started() {
            Some(id) => break rustix::process::Pid::from_raw(id).unwrap(),
            None => tokio::task::yield_now().await,
        }
    };
    assert!(rustix::process::test_kill_process(id).is_ok(), "it compiles");
    loading.abort();
    assert!(loading.await.unwrap_err().is_cancelled());
    let ended = async {
        // The process exists for the system until the runtime has collected its status.
        while rustix::process::test_kill_process(id).is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("the compiler ended");
    assert!(entries(&cache, "cwasm").is_empty());
}
