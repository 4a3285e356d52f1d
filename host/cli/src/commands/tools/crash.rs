//! Shows a tool's streams to its author, and finds the message of a panic in them.

use belljar_policy::ShownText;
use belljar_sandbox::Receipt;

use crate::term::out::TerminalOutput;
use crate::term::table;

/// The most characters of a panic's message in an error; the whole stream is printed above the error.
const MAX_PANIC: usize = 1_000;

/// Prints the tool's standard streams. The sandbox keeps the first bytes of each, and the number of dropped
/// ones.
pub(super) fn print_streams(receipt: &Receipt, out: &TerminalOutput) {
    for (name, text) in [("stdout", &receipt.stdout), ("stderr", &receipt.stderr)] {
        for line in ShownText::multiline(text.trim_end()).to_string().lines() {
            out.note(format_args!("{name}: {line}"));
        }
    }
    if receipt.stdio_dropped > 0 {
        out.note(format_args!(
            "{} more of stdout and stderr are not kept",
            table::format_size(receipt.stdio_dropped)
        ));
    }
}

/// The place and message of a Rust program's panic, in the format of Rust's standard library, escaped. Of
/// several panics the last counts, because it ended the call. `None` = no panic.
pub(crate) fn panic_message(stderr: &str) -> Option<String> {
    let lines: Vec<&str> = stderr.lines().collect();
    let is_head = |line: &&str| line.starts_with("thread ") && line.contains(PANICKED);
    let head = lines.iter().rposition(is_head)?;
    let (_, place) = lines.get(head)?.split_once(PANICKED)?;
    let message = lines.get(head + 1..).unwrap_or_default();
    let message = message.iter().take_while(|line| !line.starts_with("note: "));
    let message = message.copied().collect::<Vec<_>>().join("\n");
    let place = place.trim().trim_end_matches(':');
    let text = format!("it panicked at {place}: {}", message.trim());
    Some(ShownText::clip_line(&text, MAX_PANIC).to_string())
}

/// The words before the place of a panic.
const PANICKED: &str = " panicked at ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_and_the_message_of_the_last_panic_are_found() {
        let stderr = "loading\n\nthread 'main' panicked at src/lib.rs:3:9:\nfirst\n\
            \nthread '<unnamed>' (1) panicked at src/lib.rs:12:5:\nno \u{1b}[2Jword\n\
            note: run with `RUST_BACKTRACE=1` environment variable\n";
        let text = panic_message(stderr).unwrap();
        assert_eq!(text, "it panicked at src/lib.rs:12:5: no \\u{1b}[2Jword");
        for other in ["", "panicked at nothing", "it fails\n"] {
            assert_eq!(panic_message(other), None, "{other}");
        }
    }
}
