//! Shows the output of a command as a terminal of the editor, if it supports that. INV-379: the terminal is
//! only a display: the command ran in its jar, and the editor is not asked to run anything.

use std::path::Path;

use agent_client_protocol::v1::schema::{Meta, Terminal, ToolCallContent, ToolKind};
use belljar_policy::ShownText;
use serde_json::{Value, json};

use crate::tool_call;

/// The beginning of the line with which the output of `shell`, `run_python` and `run_javascript` ends if the
/// exit code is not 0.
const EXIT: &str = "[belljar: exit code ";

/// A terminal that displays one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallTerminal {
    id: String,
    /// True if the call has ended, and its output has not arrived yet.
    over: bool,
    /// True if the editor was told that the terminal has ended.
    ended: bool,
}

impl CallTerminal {
    /// The terminal for a call; `None` if the tool runs no command.
    pub(crate) fn for_call(tool: &str, call: &str) -> Option<Self> {
        let runs = tool_call::tool_kind(tool) == ToolKind::Execute;
        runs.then(|| Self { id: format!("{call}.terminal"), over: false, ended: false })
    }

    /// The part of the call's content that refers to the terminal.
    pub(crate) fn terminal_content(&self) -> ToolCallContent {
        ToolCallContent::Terminal(Terminal::new(self.id.clone()))
    }

    /// The metadata that begins the terminal.
    pub(crate) fn begin_meta(&self, workspace: &Path) -> Meta {
        let cwd = workspace.to_string_lossy();
        to_meta([("terminal_info", json!({"terminal_id": self.id, "cwd": cwd}))])
    }

    /// The metadata with the output of a command that has ended or is about to. INV-378: the output is text
    /// without control sequences.
    pub(crate) fn output_meta(&mut self, output: &str, exit: u8) -> Meta {
        let data = ShownText::multiline(output).to_string();
        let shown = ("terminal_output", json!({"terminal_id": self.id, "data": data}));
        let exit = self.exit_entry(exit);
        to_meta(std::iter::once(shown).chain(exit))
    }

    /// Notes the end of the call. The exit code of a successful call is in its output, which may arrive
    /// later.
    pub(crate) fn end_call(&mut self, ok: bool) -> Option<Meta> {
        self.over = true;
        if ok {
            return None;
        }
        self.exit_entry(1).map(|exit| to_meta([exit]))
    }

    /// The metadata that ends a terminal whose output has not arrived; `None` if it has, or if the call still
    /// runs.
    pub(crate) fn missing_end_meta(&mut self) -> Option<Meta> {
        let exit = if self.over { self.exit_entry(0) } else { None };
        exit.map(|exit| to_meta([exit]))
    }

    /// The metadata about the program's end; `None` if it was already reported.
    fn exit_entry(&mut self, code: u8) -> Option<(&'static str, Value)> {
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        let exit = json!({"terminal_id": self.id, "exit_code": code, "signal": null});
        Some(("terminal_exit", exit))
    }
}

fn to_meta(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Meta {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The exit code that the output states; never 0 for a failed call.
pub(crate) fn exit_code(output: &str, failed: bool) -> u8 {
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    let code = last.strip_prefix(EXIT).and_then(|rest| rest.strip_suffix(']'));
    let code: u8 = code.and_then(|code| code.parse().ok()).unwrap_or_default();
    if failed { code.max(1) } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_shown_as_text_that_no_terminal_obeys_and_ends_once() {
        assert_eq!(CallTerminal::for_call("file_read", "1"), None);
        let mut screen = CallTerminal::for_call("shell", "1").unwrap();
        let hostile =
            "a\u{1b}]52;c;eHg=\u{7}\u{1b}[2J\u{9b}31m\u{202e}\nb\n[belljar: exit code 3]\n";
        let shown = Value::Object(screen.output_meta(hostile, exit_code(hostile, false)));
        let data = shown["terminal_output"]["data"].as_str().unwrap();
        let plain = |c: char| c == '\n' || !c.is_control() && c != '\u{202e}';
        assert!(data.chars().all(plain), "{data:?}");
        assert!(data.contains("\nb\n"), "{data:?}");
        assert_eq!(shown["terminal_exit"]["exit_code"], 3);
        assert_eq!((screen.end_call(true), screen.missing_end_meta()), (None, None));
        let mut lost = CallTerminal::for_call("shell", "3").unwrap();
        assert_eq!((lost.missing_end_meta(), lost.end_call(true)), (None, None));
        assert!(lost.missing_end_meta().is_some() && lost.missing_end_meta().is_none());
        let mut failed = CallTerminal::for_call("run_python", "2").unwrap();
        let ended = Value::Object(failed.end_call(false).unwrap());
        assert_eq!(ended["terminal_exit"]["exit_code"], 1);
        let late = failed.output_meta("late", 1);
        assert!(late.contains_key("terminal_output") && !late.contains_key("terminal_exit"));
    }

    #[test]
    fn an_exit_code_is_the_last_line_and_nothing_before_it() {
        for (output, expected) in [
            ("", 0),
            ("[belljar: exit code 2]\nmore", 0),
            ("x\n[belljar: exit code 127]\n", 127),
            ("[belljar: exit code 999]", 0),
        ] {
            assert_eq!(exit_code(output, false), expected, "{output}");
            assert_eq!(exit_code(output, true), expected.max(1), "{output}");
        }
    }
}
