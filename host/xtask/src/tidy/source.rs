//! Rules about a single source file.

use super::TreeFile;

/// The most lines of a file. A longer file has more than one subject, except a data table or a test that
/// gives a reason in a line that starts with `//! Long because`.
const MAX_LINES: usize = 600;

/// The files that may contain `unsafe` code: loading compiled artifacts, process setup, the system calls of
/// attacks on the OS sandbox, and, in the guest SDK, one call into its C library. Generated bindings are
/// expanded from macros and are not in the tree.
const UNSAFE_MODULES: &[&str] = &[
    "guest-sdk/rust/src/workspace.rs",
    "host/sandbox/src/component/artifact.rs",
    "host/sandbox/src/component/in_place.rs",
    "host/os_sandbox/src/broker/births.rs",
    "host/os_sandbox/src/process.rs",
    "host/prove/src/wall/raw.rs",
    // Load compiled code that comes with the program. Whoever built the program is trusted.
    "host/sandbox/src/sandbox.rs",
    "host/sandbox/tests/sandbox/loading.rs",
    "host/cli/src/setup/beside.rs",
    "host/cli/src/setup/embedded.rs",
    // Calls a function of the C library that gives free memory back to the system.
    "host/work/src/memory.rs",
    // Makes system calls about the scheduling of a thread.
    "host/cli/src/setup/threads.rs",
];

/// The function that turns a permit that needs a person's answer into a permit that needs no answer, and the
/// files that may use the function: the definition, and the code that asks.
const CONSENT: &str = concat!("consen", "ted");
const MAY_CONSENT: &[&str] =
    &["host/policy/src/rights.rs", "host/agent/src/tools/approval/consent.rs"];

/// The same for a reason other than a person's yes, and the files that have such a reason.
const UNASKED: &str = concat!("without_", "asking(");
const MAY_LEAVE_UNASKED: &[&str] = &[
    "host/agent/src/tools/approval/consent.rs",
    "host/agent/src/tools/execute.rs",
    "host/agent/src/tools/hooks/apply.rs",
    "host/agent/src/replay/rerunning.rs",
];

/// Texts that no file may contain, each with advice. The texts are split so that this table does not match.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("#[ig", "nore"), "assert today's result instead, and say why"),
    (concat!("unbounded", "_channel("), "give every queue a named bound"),
    (concat!("thread::sl", "eep("), "wait for a condition with a time limit"),
    (concat!("time::sl", "eep("), "wait for a condition with a time limit"),
];

/// The files that print paths for a person. These files print a path with `shown`, never unescaped.
const PRINTS_PATHS: &str = "host/cli/src/";
const RAW_PATH: &str = concat!(".dis", "play()");

/// The files of the host that may wait for a time, for example for retries and regular reports.
const MAY_WAIT: &[&str] = &[
    "host/model/src/",
    "host/sandbox/src/",
    "host/overlay/src/layer.rs",
    "host/agent/src/",
    "host/store/src/open.rs",
    "host/xtask/src/dev.rs",
    // Kill a server after a random time, or begin turns at a steady rate. No test result depends on the
    // waiting.
    "tests/bench/src/kill.rs",
    "tests/bench/src/overlay_kills.rs",
    "tests/bench/src/server_soak.rs",
    "tests/bench/src/watch.rs",
];

pub(super) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    files.iter().filter(|file| file.path.ends_with(".rs")).flat_map(file_breaches).collect()
}

/// Checks the length and the module comment of a file, then each line for `unsafe` and forbidden texts.
fn file_breaches(file: &TreeFile) -> Vec<String> {
    let mut breaches = Vec::new();
    let lines = file.text.lines().count();
    if lines > MAX_LINES && !file.text.contains("//! Long because") {
        breaches.push(format!("{}: {lines} lines; split it by subject", file.path));
    }
    if !file.path.starts_with("tools/") && !file.text.trim_start().starts_with("//!") {
        breaches.push(format!("{}: the module has no doc comment", file.path));
    }
    let may_wait = MAY_WAIT.iter().any(|folder| file.path.starts_with(folder));
    for (number, line) in file.text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if uses_unsafe(code) && !UNSAFE_MODULES.contains(&file.path.as_str()) {
            breaches.push(format!("{}:{}: unsafe outside its modules", file.path, number + 1));
        }
        if code.contains(CONSENT) && !MAY_CONSENT.contains(&file.path.as_str()) {
            let asks = MAY_CONSENT.last().copied().unwrap_or_default();
            breaches.push(format!(
                "{}:{}: a permit without its answer: only `{asks}` takes that step",
                file.path,
                number + 1
            ));
        }
        if code.contains(UNASKED) && !MAY_LEAVE_UNASKED.contains(&file.path.as_str()) {
            breaches.push(format!(
                "{}:{}: a permit that nobody is asked for: the files with a reason are listed",
                file.path,
                number + 1
            ));
        }
        if file.path.starts_with(PRINTS_PATHS) && code.contains(RAW_PATH) {
            breaches.push(format!(
                "{}:{}: `{RAW_PATH}`: a path is a stranger's text; use `ShownPath::to_shown`",
                file.path,
                number + 1
            ));
        }
        for (text, instead) in FORBIDDEN {
            if code.contains(text) && !(may_wait && text.contains("eep(")) {
                breaches.push(format!("{}:{}: `{text}`: {instead}", file.path, number + 1));
            }
        }
    }
    breaches
}

fn uses_unsafe(code: &str) -> bool {
    let forms = [" {", " fn", " impl", " extern"];
    forms.iter().any(|form| code.contains(&format!("unsafe{form}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_not_displayed_as_it_is_where_a_person_reads_it() {
        let file = |path: &str| TreeFile {
            path: path.into(),
            text: concat!("//! B.\nlet text = path.dis", "play();\n").into(),
        };
        assert_eq!(file_breaches(&file("host/cli/src/a.rs")).len(), 1);
        assert!(file_breaches(&file("host/xtask/src/a.rs")).is_empty());
    }

    #[test]
    fn only_the_code_that_asks_makes_a_permit_that_needs_no_answer() {
        let file = |path: &str| TreeFile {
            path: path.into(),
            text: concat!("//! B.\nlet permit = permit.consen", "ted();\n").into(),
        };
        for path in
            ["host/agent/src/tools/execute.rs", "host/server/src/a.rs", "tests/kit/src/a.rs"]
        {
            let found = file_breaches(&file(path));
            assert!(matches!(found.as_slice(), [one] if one.contains(":2: a permit")), "{found:?}");
        }
        for path in MAY_CONSENT {
            assert!(file_breaches(&file(path)).is_empty());
        }
    }

    #[test]
    fn only_listed_files_have_a_reason_to_ask_nobody() {
        let text = concat!("//! B.\nlet permit = without_", "asking(permit, reason);\n");
        let file = |path: &str| TreeFile { path: path.into(), text: text.into() };
        let found = file_breaches(&file("host/agent/src/tools/dispatch.rs"));
        assert!(matches!(found.as_slice(), [one] if one.contains(":2: a permit")), "{found:?}");
        for path in MAY_LEAVE_UNASKED {
            assert!(file_breaches(&file(path)).is_empty(), "{path}");
        }
    }

    #[test]
    fn forbidden_forms_are_found_with_their_line() {
        let file =
            |text: &str| TreeFile { path: "a/b.rs".into(), text: format!("//! B.\n{text}\n") };
        let sleeping = file(concat!("std::thread::sl", "eep(d);"));
        assert_eq!(file_breaches(&sleeping).len(), 1);
        assert!(file_breaches(&file(concat!("// unsafe ", "{ in words }"))).is_empty());
        assert_eq!(file_breaches(&file(concat!("unsafe ", "{ x() }"))).len(), 1);
    }
}
