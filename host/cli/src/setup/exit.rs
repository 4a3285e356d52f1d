//! The exit codes of commands, and the failure type, which has one.

use std::fmt;

use belljar_definition::Diagnostic;

/// The way in which a command ends. [`EXITS`] explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CommandExit {
    Completed,
    Failed,
    Usage,
    Partial,
    NotAllowed,
    NoModel,
    Differs,
    Cancelled,
}

/// A row of the table of exit codes.
pub(crate) struct ExitRow {
    pub(crate) exit: CommandExit,
    pub(crate) code: u8,
    pub(crate) meaning: &'static str,
}

/// Every exit code with its number and meaning: the one source for the process, `--help` and the
/// documentation.
pub(crate) const EXITS: &[ExitRow] = &[
    ExitRow { exit: CommandExit::Completed, code: 0, meaning: "done; a run completed" },
    ExitRow {
        exit: CommandExit::Failed,
        code: 1,
        meaning: "a run failed, or something could not be done",
    },
    ExitRow {
        exit: CommandExit::Usage,
        code: 2,
        meaning: "the command line, a configuration file or a definition is not valid",
    },
    ExitRow {
        exit: CommandExit::Partial,
        code: 3,
        meaning: "a run ended early, with part of its output; `apply` left a part",
    },
    ExitRow {
        exit: CommandExit::NotAllowed,
        code: 4,
        meaning: "a right is missing: an agent is blocked, or `explain` says no",
    },
    ExitRow { exit: CommandExit::NoModel, code: 5, meaning: "no model is configured" },
    ExitRow { exit: CommandExit::Differs, code: 6, meaning: "a replay differs from its run" },
    ExitRow { exit: CommandExit::Cancelled, code: 130, meaning: "cancelled" },
];

impl CommandExit {
    /// The number that the shell gets.
    pub(crate) fn code(self) -> u8 {
        EXITS.iter().find(|row| row.exit == self).map_or(1, |row| row.code)
    }

    /// The worse of two exits, for a script: any failure is worse than success.
    pub(crate) fn worse_of(self, other: Self) -> Self {
        self.max(other)
    }
}

/// The table of exit codes, as shown below `--help`.
pub(crate) fn exit_table() -> String {
    let mut text = "Exit codes:\n".to_owned();
    for row in EXITS {
        text.push_str(&format!("  {:>3}  {}\n", row.code, row.meaning));
    }
    text.push_str("\nStart with `belljar demo`: it needs no configuration and no network.");
    text
}

/// The text below the `--help` of all commands together.
pub(crate) fn help_of_all() -> String {
    format!(
        "{}\nSettings, agents and sessions are in `~/.belljar`, or where `BELLJAR_HOME=DIR` says; compiled\n\
         components in its `cache`, or where `BELLJAR_CACHE=DIR` says.",
        exit_table()
    )
}

/// The reason why a command ended without doing its work. Printed once, by
/// [`crate::term::out::TerminalOutput::print_failure`].
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: CommandExit,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
    /// Diagnostics of files, shown before the message.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Failure {
    /// The failure of an attempt, for example to read a file.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            exit: CommandExit::Failed,
            message: message.into(),
            hints: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    /// The failure of a caller, who has to change the command line or a file.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: CommandExit::Usage, ..Self::new(message) }
    }

    /// The failure for invalid files.
    pub(crate) fn from_diagnostics(
        message: impl Into<String>,
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        Self { diagnostics, ..Self::usage(message) }
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The message, followed by its hints, one line each.
    pub(crate) fn with_hints(&self) -> String {
        let hints = self.hints.iter().map(|hint| format!("\nhint: {hint}"));
        std::iter::once(self.message.clone()).chain(hints).collect()
    }

    #[must_use]
    pub(crate) fn with_exit(mut self, exit: CommandExit) -> Self {
        self.exit = exit;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The causes are joined with `: `. Lines in them that begin with `hint: ` become hints.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let text = format!("{error:#}");
        let (hints, message): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.trim_start().starts_with("hint: "));
        let mut failure = Self::new(message.join("\n"));
        let strip = |hint: &str| hint.trim_start().trim_start_matches("hint: ").to_owned();
        failure.hints = hints.into_iter().map(strip).collect();
        failure
    }
}

/// An error with its causes, in one text without repetition.
pub(crate) fn format_error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_has_one_row_with_a_code_of_its_own() {
        let all = [
            CommandExit::Completed,
            CommandExit::Failed,
            CommandExit::Usage,
            CommandExit::Partial,
            CommandExit::NotAllowed,
            CommandExit::NoModel,
            CommandExit::Differs,
            CommandExit::Cancelled,
        ];
        for exit in all {
            assert_eq!(EXITS.iter().filter(|row| row.exit == exit).count(), 1, "{exit:?}");
        }
        let mut codes: Vec<u8> = EXITS.iter().map(|row| row.code).collect();
        codes.dedup();
        assert_eq!(codes.len(), all.len());
    }

    #[test]
    fn hint_lines_of_an_error_become_hints() {
        let failure = Failure::from(anyhow::anyhow!("no toolchain\nhint: install one"));
        assert_eq!(failure.message, "no toolchain");
        assert_eq!(failure.hints, ["install one"]);
    }
}
