//! Shows the difference of two texts, as removed and added lines.

use belljar_policy::ShownText;
use belljar_work::StopSignal;

use crate::term::out::{TerminalOutput, TextStyle};

/// Prints the difference to stdout, below `name`. Strangers' text in it is escaped.
pub(crate) fn print_diff(name: &str, old: &str, new: &str, out: &TerminalOutput) {
    // The texts are small, so no stop signal is needed.
    let stop = StopSignal::never_raised();
    let hunks =
        belljar_overlay::unified_diff(old.as_bytes(), new.as_bytes(), &stop).unwrap_or_default();
    if hunks.is_empty() {
        return;
    }
    show_line(&format!("--- {name}"), out);
    show_line(&format!("+++ {name}"), out);
    String::from_utf8_lossy(&hunks).lines().for_each(|line| show_line(line, out));
}

/// Prints one line of a patch, in its colour.
pub(crate) fn show_line(line: &str, out: &TerminalOutput) {
    let style = match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => Some(TextStyle::Bold),
        _ if line.starts_with("diff ") => Some(TextStyle::Bold),
        Some(b'+') => Some(TextStyle::Green),
        Some(b'-') => Some(TextStyle::Red),
        Some(b'@') => Some(TextStyle::Cyan),
        _ => None,
    };
    let line = ShownText::multiline(line).to_string();
    // The text of the line is not changed, because somebody may use it as a patch.
    match style {
        Some(style) => out.print_text(&format!("{}\n", out.paint(style, line))),
        None => out.print_text(&format!("{line}\n")),
    }
}
