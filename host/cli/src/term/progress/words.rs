//! Words and colours of a run's lines, for example `2 running, 1 failed` for a batch.

use belljar_agent::{Counts, RunStatus};
use belljar_policy::ShownText;
use belljar_store::MessageStatus;

use crate::term::out::TextStyle;

/// The most characters of a call's arguments on a line: enough for a path or a pattern.
pub(super) const MAX_ARGUMENTS: usize = 60;

/// The colour of a run's status.
pub(crate) fn status_style(status: RunStatus) -> TextStyle {
    match status {
        RunStatus::Completed => TextStyle::Green,
        RunStatus::Partial | RunStatus::Cancelled => TextStyle::Yellow,
        RunStatus::Failed => TextStyle::Red,
    }
}

/// The colour of a turn's status.
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

/// The counts of a batch of subagents, without zeros, for example `2 running, 1 failed`.
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

/// The ending of a line with the reason for a failure; empty without one.
pub(super) fn format_reason(error: Option<&String>) -> String {
    error.map_or(String::new(), |error| format!(": {}", ShownText::new(error)))
}

/// The arguments of a call on one line, without the braces of a JSON object.
pub(super) fn shorten_arguments(arguments: &str) -> String {
    ShownText::clip_line(arguments.trim(), MAX_ARGUMENTS).to_string()
}

/// The indent of an agent's lines: two spaces for each agent above it, and two for itself.
pub(super) fn agent_indent(agent: &str) -> String {
    "  ".repeat(agent.matches('/').count() + 1)
}

/// The last part of an agent's path. The number of the first agent of a name is left out.
pub(super) fn name_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix("#0").unwrap_or(name)
}
