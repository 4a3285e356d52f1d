//! Checks, for `belljar doctor`, whether hooks could run, without running them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use belljar_definition::HookEvent;
use belljar_policy::ShownText;
use belljar_sandbox::{ImportNeed, LoadError, Wasm, inspect_component};

use super::{Hook, HookRunner, Hooks};

/// A hook, with the problem found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCheck {
    /// The event of the hook.
    pub event: HookEvent,
    /// The pattern of tools or agents that the hook is for; empty = all. Escaped.
    pub matcher: String,
    /// The command, or the path of the component, for example `./check.sh`; escaped and cut.
    pub name: String,
    /// What is wrong, escaped; `None` = nothing that can be seen without running the hook.
    pub problem: Option<String>,
}

impl Hooks {
    /// Checks that each command's program exists, and that each component can be read and has the right
    /// digest and interface. Compiles nothing.
    pub async fn check_all(&self, workspace: &Path) -> Vec<HookCheck> {
        let mut checks = Vec::with_capacity(self.0.len());
        for hook in &self.0 {
            let problem = hook.find_problem(workspace).await;
            checks.push(HookCheck {
                event: hook.event,
                matcher: ShownText::new(hook.matcher.as_str()).to_string(),
                name: hook.name.clone(),
                problem: problem.map(|why| ShownText::new(&why).to_string()),
            });
        }
        checks
    }
}

impl Hook {
    /// What is wrong with a hook; `None` = nothing that can be seen.
    async fn find_problem(&self, workspace: &Path) -> Option<String> {
        match &self.action {
            HookRunner::Command { text, .. } => {
                let program = command_program(text)?;
                let path = std::env::var_os("PATH").unwrap_or_default();
                let places = std::env::split_paths(&path).collect::<Vec<_>>();
                let found = is_there(program, workspace, &places);
                (!found).then(|| format!("`{program}` is not there or cannot be executed"))
            }
            HookRunner::Component(component) => match component.read_wasm().await {
                Ok(wasm) => unfit_reason(&wasm),
                Err(why) => Some(why),
            },
        }
    }
}

/// Why a component cannot be a hook, as far as its bytes show; `None` = no reason.
fn unfit_reason(wasm: &Wasm) -> Option<String> {
    let found = match inspect_component(wasm.bytes()) {
        Ok(found) => found,
        Err(error) => return Some(error.to_string()),
    };
    let unknown = found.imports.into_iter().find(|import| import.need == ImportNeed::Unknown);
    match (found.hook_export, unknown) {
        (None, _) => Some(LoadError::NoHook.to_string()),
        (Some(_), Some(import)) => Some(LoadError::UnknownImport(import.name).to_string()),
        (Some(_), None) => None,
    }
}

/// The program of a simple command line; `None` = only a shell could tell.
fn command_program(command: &str) -> Option<&str> {
    let word = command.split_whitespace().next()?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+".contains(&b);
    let builtin = ["exit", "test", "read", "cd", "if", "for", "while", "case", "set", "exec"];
    (word.bytes().all(plain) && !builtin.contains(&word) && !word.starts_with('.')
        || word.contains('/'))
    .then_some(word)
    .filter(|word| word.bytes().all(plain))
}

/// Returns whether a program exists and can be executed: in the workspace for a name with `/`, otherwise in
/// `places`.
fn is_there(program: &str, workspace: &Path, places: &[PathBuf]) -> bool {
    let executable = |path: PathBuf| {
        std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return executable(workspace.join(program));
    }
    // A shell builtin such as `echo` is found because it exists as a program too.
    places.iter().any(|place| executable(place.join(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_first_word_is_looked_for() {
        assert_eq!(command_program("/opt/guard.sh --strict"), Some("/opt/guard.sh"));
        assert_eq!(command_program("jq -e .x >/dev/null"), Some("jq"));
        assert_eq!(command_program("./guard"), Some("./guard"));
        for unclear in
            ["exit 2", "\"$HOME/guard\"", "A=1 guard", "{ a; }", "if true; then :; fi", ""]
        {
            assert_eq!(command_program(unclear), None, "{unclear}");
        }
        assert!(is_there("/bin/sh", Path::new("/"), &[]));
        assert!(!is_there("no-such-guard", Path::new("/"), &[PathBuf::from("/bin")]));
    }
}
