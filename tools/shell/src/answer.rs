//! What the model reads of a finished script.

use crate::session::Finished;

/// Bytes of stdout, and of stderr, in one answer: about eight thousand tokens each. More
/// belongs in a file, of which parts can be read.
const MAX_BYTES: usize = 30_000;

/// Stdout, then stderr, then the exit code where it is not 0.
///
/// A non-zero code is a result like any other: `grep` without a match has one.
#[must_use]
pub fn text(done: &Finished) -> String {
    let mut text = String::new();
    for stream in [&done.stdout, &done.stderr].into_iter().filter(|stream| !stream.is_empty()) {
        begin_line(&mut text);
        text.push_str(&cut(&String::from_utf8_lossy(stream)));
    }
    if done.code != 0 {
        begin_line(&mut text);
        text.push_str(&format!("[belljar: exit code {}]\n", done.code));
    }
    if text.is_empty() {
        text.push_str("[belljar: no output]\n");
    }
    text
}

fn begin_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Keeps the head and the tail: the first lines say what it is, the last how it ended.
fn cut(text: &str) -> String {
    if text.len() <= MAX_BYTES {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MAX_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_BYTES / 2);
    let (head, tail) = (&text[..head], &text[tail..]);
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n[belljar: {left_out} bytes left out; write to a file to see all]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(stdout: &str, stderr: &str, code: i32) -> Finished {
        Finished { stdout: stdout.into(), stderr: stderr.into(), code }
    }

    #[test]
    fn errors_follow_the_output_and_the_exit_code_ends_it() {
        for (stdout, stderr, code, expected) in [
            ("hi\n", "", 0, "hi\n"),
            ("hi", "", 0, "hi"),
            ("", "", 0, "[belljar: no output]\n"),
            ("", "", 1, "[belljar: exit code 1]\n"),
            ("a", "b", 2, "a\nb\n[belljar: exit code 2]\n"),
            ("a\n", "b\n", 0, "a\nb\n"),
        ] {
            assert_eq!(text(&finished(stdout, stderr, code)), expected);
        }
    }

    #[test]
    fn long_output_keeps_its_head_and_its_tail() {
        let long = format!("first\n{}last\n", "ä\n".repeat(30_000));
        let text = text(&finished(&long, "", 0));
        assert!(text.starts_with("first\n") && text.ends_with("last\n"));
        assert!(text.contains("bytes left out") && text.len() < MAX_BYTES + 200);
    }
}
