//! Rule: a command in a message has backticks, so that a reader sees where the command ends. A text that
//! begins with a command contains only the command; the code that prints such a text adds the backticks,
//! which `tests/e2e/commands.rs` checks.

use super::TreeFile;

/// Words that, after `belljar` in a message, show that a command is meant, for example `belljar run`.
const SUBCOMMANDS: &[&str] = &[
    "agents",
    "backup",
    "chat",
    "commands",
    "demo",
    "doctor",
    "drafts",
    "explain",
    "grant",
    "init",
    "keys",
    "limits",
    "marketplaces",
    "plugins",
    "prove",
    "receipts",
    "restore",
    "revoke",
    "run",
    "serve",
    "sessions",
    "skills",
    "teams",
    "tenants",
    "tools",
];

const PROGRAM: &str = "belljar ";

pub(super) fn find_breaches(files: &[TreeFile]) -> Vec<String> {
    let speaks = |path: &str| {
        path.starts_with("host/") && path.ends_with(".rs") && !path.starts_with("host/xtask/")
    };
    files.iter().filter(|file| speaks(&file.path)).flat_map(file_breaches).collect()
}

fn file_breaches(file: &TreeFile) -> Vec<String> {
    let lines = file.text.lines().zip(1..).filter(|(line, _)| !line.trim_start().starts_with("//"));
    let bare = lines.filter(|(line, _)| is_bare(line));
    bare.map(|(line, number)| {
        let line = line.trim();
        format!("{}:{number}: put the command between backticks: {line}", file.path)
    })
    .collect()
}

fn is_bare(line: &str) -> bool {
    line.match_indices(PROGRAM).any(|(at, _)| {
        let behind = line.get(at + PROGRAM.len()..).unwrap_or_default();
        let word = behind.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        let before = line.get(..at).unwrap_or_default();
        SUBCOMMANDS.contains(&word) && !before.ends_with(['`', '"', '.', '/'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_backticks_is_a_breach_and_one_alone_is_none() {
        let of = |text: &str| {
            let file = TreeFile { path: "host/cli/src/x.rs".into(), text: text.to_owned() };
            find_breaches(&[file]).len()
        };
        assert_eq!(of("out.line(\"to allow it: belljar grant x\");"), 1);
        assert_eq!(of("out.line(\"to allow it: `belljar grant x`\");"), 0);
        assert_eq!(of("let command = \"belljar grant x\";\n// belljar grant x"), 0);
        assert_eq!(of("\"this belljar reads version 1\""), 0);
    }
}
