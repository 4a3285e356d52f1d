//! Words and colours of a run's lines, for example `2 running, 1 failed` for a batch.

use belljar_agent::{Counts, RunStatus};
use belljar_policy::ShownText;
use belljar_store::MessageStatus;

use crate::term::out::TextStyle;

/// Characters of arguments on a line: a path or a pattern, not a file.
pub(super) const MAX_ARGUMENTS: usize = 60;

/// The colour of an ending.
pub(crate) fn status_style(status: RunStatus) -> TextStyle {
    match status {
        RunStatus::Completed => TextStyle::Green,
        RunStatus::Partial | RunStatus::Cancelled => TextStyle::Yellow,
        RunStatus::Failed => TextStyle::Red,
    }
}

/// The colour of how far a turn is.
pub(crate) fn message_style(status: MessageStatus) -> TextStyle {
    match status {
        MessageStatus::Completed => TextStyle::Green,
        MessageStatus::Partial
        | MessageStatus::Cancelled
        | MessageStatus::Interrupted
        | MessageStatus::InFlight => TextStyle::Yellow,
        MessageStatus::Failed => TextStyle::Red,
    }
}

/// How a batch is doing, without the zeros.
pub(super) fn format_counts(counts: &Counts) -> String {
    let Counts { total: _, queued, running, completed, partial, failed, cancelled } = counts;
    let words = [
        (queued, "queued"),
        (running, "running"),
        (completed, "completed"),
        (partial, "partial"),
        (failed, "failed"),
        (cancelled, "cancelled"),
    ];
    let some = words.into_iter().filter(|(count, _)| **count > 0);
    some.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Why something failed, behind what did.
pub(super) fn format_reason(error: Option<&String>) -> String {
    error.map_or(String::new(), |error| format!(": {}", ShownText::new(error)))
}

/// Arguments on one line, without the braces of an object.
pub(super) fn shorten_arguments(arguments: &str) -> String {
    ShownText::clip_line(arguments.trim(), MAX_ARGUMENTS).to_string()
}

/// Two spaces for each agent above, and for the agent's own lines.
pub(super) fn agent_indent(agent: &str) -> String {
    "  ".repeat(agent.matches('/').count() + 1)
}

/// The last part of an agent's path; the first of its name goes without a number.
pub(super) fn name_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix("#0").unwrap_or(name)
}
