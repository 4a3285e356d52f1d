//! The changes of a text, as removed and added lines.

use belljar_policy::Shown;
use belljar_work::StopSignal;

use crate::term::out::{Out, Style};

/// Shows on stdout what changes; `name` stands above. Foreign text is escaped.
pub(crate) fn show(name: &str, old: &str, new: &str, out: &Out) {
    // The work is bounded, so no stop signal is needed.
    let stop = StopSignal::never();
    let hunks = belljar_changes::unified(old.as_bytes(), new.as_bytes(), &stop).unwrap_or_default();
    if hunks.is_empty() {
        return;
    }
    show_line(&format!("--- {name}"), out);
    show_line(&format!("+++ {name}"), out);
    String::from_utf8_lossy(&hunks).lines().for_each(|line| show_line(line, out));
}

/// A line of a patch.
pub(crate) fn show_line(line: &str, out: &Out) {
    let style = match line.as_bytes().first() {
        _ if line.starts_with("+++") || line.starts_with("---") => Some(Style::Bold),
        _ if line.starts_with("diff ") => Some(Style::Bold),
        Some(b'+') => Some(Style::Green),
        Some(b'-') => Some(Style::Red),
        Some(b'@') => Some(Style::Cyan),
        _ => None,
    };
    let line = Shown::multiline(line).to_string();
    // Unchanged, because somebody may use it as a patch.
    match style {
        Some(style) => out.text(&format!("{}\n", out.paint(style, line))),
        None => out.text(&format!("{line}\n")),
    }
}
