//! The component of the tool `shell` does what bash and dash do, in a jar: on a directory, and on an
//! overlay of it whose changes are applied.
//!
//! Needs both shells and their utilities, so `cargo xtask test guests` runs it and `cargo test`
//! does not. The same cases run natively in `tools/shell/tests/compare.rs`.
//! `BELLJAR_TOOLS_DIR` names another folder of components than `tools/prebuilt`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use belljar_kit::{JarBuilder, TestHost, text};
use belljar_overlay::{ApplyOptions, OverlayReview, PathSelection};
use belljar_policy::MountAccess;
use belljar_sandbox::{Overlay, OverlayQuota, Wasm};
use belljar_shell_cases::{Build, Case, Outcome, Reference, Report, Said, Tree, WORKSPACE, load};
use tempfile::TempDir;

/// How a non-zero exit code ends an answer.
const CODE: &str = "[belljar: exit code ";

/// How an answer says that there is none.
const NOTHING: &str = "[belljar: no output]\n";

/// The kind of the workspace of a case.
#[derive(Debug, Clone, Copy)]
enum Mount {
    /// A directory that the shell writes.
    Plain,
    /// An overlay, whose changes are applied to the directory at the end.
    Overlay,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_component_does_what_bash_and_dash_do() {
    let reference = Reference::new();
    let mut reports = [Mount::Plain, Mount::Overlay].map(|mount| (mount, Report::default()));
    let (host, wasm) = (TestHost::new(), component());
    for case in load() {
        let expected = reference.run(&case);
        for (mount, report) in &mut reports {
            empty(host.path());
            let seen = run(&host, &wasm, &case, *mount).await;
            report.add(&case, &expected, &seen);
        }
    }
    let mut faults = Vec::new();
    for (mount, report) in &reports {
        println!("{mount:?}:\n{}", report.summary());
        let found = report.verdict(Build::Component).into_iter();
        faults.extend(found.map(|fault| format!("{mount:?}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn component() -> Wasm {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("BELLJAR_TOOLS_DIR")
        .map_or_else(|| root.join("tools/prebuilt"), PathBuf::from);
    Wasm::new(std::fs::read(folder.join("shell.wasm")).expect("the component is there"))
}

/// One host serves all cases, each in a jar of its own over an emptied workspace.
async fn run(host: &TestHost, wasm: &Wasm, case: &Case, mount: Mount) -> Outcome {
    case.fill(host.path());
    let layer = match mount {
        Mount::Plain => None,
        Mount::Overlay => Some(memory()),
    };
    let overlay = layer.as_ref().map(|layer| {
        tick(layer.path());
        let quota = OverlayQuota::default();
        Overlay::open(host.path(), layer.path().join("layer"), quota).expect("an overlay")
    });
    let access = if overlay.is_some() { MountAccess::Overlay } else { MountAccess::ReadWrite };
    let builder = host.builder([wasm.clone()]);
    let builder = JarBuilder { access: Some(access), overlay: overlay.clone(), ..builder };
    let jar = host.build(builder).await;
    let arguments = serde_json::json!({ "command": case.script }).to_string();
    let result = jar.call("shell", &arguments).await;
    jar.jar.close().await;
    let (said, code) = match &result.outcome {
        Ok(_) => split(&text(&result)),
        Err(error) => (error.to_string(), -1),
    };
    if let (Some(overlay), Some(layer)) = (overlay, &layer) {
        overlay.finish_digests();
        let review = OverlayReview::open(&overlay, layer.path().join("journal")).expect("a review");
        let options = ApplyOptions { also_what_runs: true, ..ApplyOptions::default() };
        let applied =
            review.apply_changes(&PathSelection::all(), &options).expect("changes are applied");
        assert_eq!(applied.conflicts, [], "{}", case.title());
    }
    let tree = Tree::read(host.path(), WORKSPACE);
    Outcome { said: Said::Together(said), code, tree }
}

/// Waits until the coarse clock, which an overlay goes by, has passed the times of all files: what the
/// case finds is older than all that it does, else it counts as somebody else's work.
fn tick(dir: &Path) {
    let path = dir.join("probe");
    std::fs::write(&path, "x").expect("a probe");
    let probe = path.metadata().expect("its times");
    let now = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        (now.tv_sec, now.tv_nsec)
    };
    while now() <= (probe.ctime(), probe.ctime_nsec()) {
        std::thread::yield_now();
    }
}

/// A directory in memory, where there is one: nothing of it has to last.
fn memory() -> TempDir {
    let shared = Path::new("/dev/shm");
    let made = if shared.is_dir() { TempDir::new_in(shared) } else { TempDir::new() };
    made.expect("a directory")
}

fn empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// The exit code, and what stands before it.
fn split(answer: &str) -> (String, i32) {
    let answer = if answer == NOTHING { "" } else { answer };
    let Some(start) = answer.rfind(CODE) else { return (answer.to_owned(), 0) };
    let code = answer[start + CODE.len()..].trim_end().trim_end_matches(']');
    (answer[..start].to_owned(), code.parse().expect("a code"))
}
