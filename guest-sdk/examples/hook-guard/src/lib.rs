//! `hook_guard`: a complete hook. It keeps agents away from files with keys in them, has a
//! person asked before anything outside `notes/` is written, and lets nobody read more than
//! 200 lines at once.
#![cfg_attr(test, allow(clippy::unwrap_used))]

use belljar_hook::{Event, Verdict};

/// Most lines of one `file_read`.
const MAX_LINES: u64 = 200;

/// Endings of files that hold keys.
const KEYS: [&str; 4] = [".env", ".pem", ".key", "id_rsa"];

fn check(event: Event) -> Result<Verdict, String> {
    if event.hook_event_name != "PreToolUse" {
        return Ok(Verdict::Pass);
    }
    let path = event.text("path").to_lowercase();
    if KEYS.iter().any(|ending| path.ends_with(ending)) {
        return Ok(Verdict::Deny("files with keys are off limits; work without them".into()));
    }
    Ok(match event.tool_name.as_str() {
        "file_write" | "file_edit" if !in_notes(&path) => {
            Verdict::Ask("a write outside `notes/`".into())
        }
        "file_read" if lines(&event) > MAX_LINES => event.narrow("limit", MAX_LINES),
        _ => Verdict::Pass,
    })
}

fn in_notes(path: &str) -> bool {
    let path = path.trim_start_matches("/workspace/").trim_start_matches("./");
    path.starts_with("notes/") && !path.split('/').any(|part| part == "..")
}

/// The lines asked for; without a limit, as many as the tool gives.
fn lines(event: &Event) -> u64 {
    event.tool_input.get("limit").and_then(|limit| limit.as_u64()).unwrap_or(u64::MAX)
}

belljar_hook::hook!(check);

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(tool: &str, input: &str) -> Verdict {
        let event = format!(
            r#"{{"hook_event_name":"PreToolUse","tool_name":"{tool}","tool_input":{input}}}"#
        );
        belljar_hook::__private::run(&event, check).unwrap()
    }

    #[test]
    fn keys_are_denied_writes_asked_for_and_reads_narrowed() {
        assert!(matches!(verdict("file_read", r#"{"path":"a/.env"}"#), Verdict::Deny(_)));
        assert!(matches!(verdict("file_write", r#"{"path":"src/a"}"#), Verdict::Ask(_)));
        assert!(matches!(verdict("file_write", r#"{"path":"notes/../a"}"#), Verdict::Ask(_)));
        assert!(matches!(verdict("file_write", r#"{"path":"notes/a"}"#), Verdict::Pass));
        let Verdict::Narrow(input) = verdict("file_read", r#"{"path":"a","offset":3}"#) else {
            unreachable!("the read is narrowed")
        };
        for part in [r#""path":"a""#, r#""offset":3"#, r#""limit":200"#] {
            assert!(input.contains(part), "{part} is not in {input}");
        }
        assert!(matches!(verdict("file_read", r#"{"path":"a","limit":5}"#), Verdict::Pass));
    }
}
