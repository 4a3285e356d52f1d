//! The shell, built natively, does what bash and dash do.
//!
//! The same cases run against the component in `tests/kit/tests/shell_compare.rs`; this test needs
//! neither a WebAssembly toolchain nor the sandbox.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::path::Path;

use belljar_shell_cases::{Build, Case, Outcome, Reference, Report, Said, Tree, WORKSPACE, load};
use belljar_tool_shell::files::Mount;
use belljar_tool_shell::session::Session;

#[test]
fn the_shell_does_what_bash_and_dash_do() {
    let reference = Reference::new();
    let mut report = Report::default();
    // `BELLJAR_SHELL_CASE` narrows the run to titles that contain it, for work on one.
    let only = std::env::var("BELLJAR_SHELL_CASE").ok();
    let wanted = |case: &Case| only.as_ref().is_none_or(|part| case.title().contains(part));
    for case in load().iter().filter(|case| wanted(case)) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().canonicalize().unwrap();
        case.fill(&workspace);
        report.add(case, &reference.run(case), &run(case, &workspace));
    }
    println!("{}", report.summary());
    if only.is_none() {
        let faults = report.verdict(Build::Native);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

fn run(case: &Case, workspace: &Path) -> Outcome {
    let mount = Mount { guest: WORKSPACE.to_owned(), host: workspace.to_owned() };
    let mut session = Session::new(&[mount]).unwrap();
    let done = session.run(&case.script);
    Outcome {
        said: Said::Apart {
            stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
            complained: !done.stderr.is_empty(),
        },
        code: done.code,
        tree: Tree::read(workspace, WORKSPACE),
    }
}
