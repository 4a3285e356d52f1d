//! Breaks sentences for a terminal between words. A terminal itself breaks lines anywhere, and broken words
//! cannot be searched for.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

/// The fewest columns of a supported terminal.
const NARROWEST: usize = 20;

/// The spaces before a continued line, in addition to the line's own indent.
const HANG: usize = 2;

/// The longest command that is not broken, in bytes, because a model can write one without end.
const MAX_COMMAND: usize = 2 << 10;

/// The programs whose commands a person may copy. Such a command, between backticks, stays in one piece, on a
/// line of its own if necessary; the terminal breaks one that is longer than a line.
const PROGRAMS: &[&str] =
    &["apt-get", "belljar", "cargo", "chmod", "chown", "git", "rustup", "sudo"];

/// The text, with each line broken to at most `columns` columns. Longer words and commands stay in one piece.
pub(crate) fn wrap_lines(text: &str, columns: usize) -> Cow<'_, str> {
    let columns = columns.max(NARROWEST);
    if text.split('\n').all(|line| shown_width(line) <= columns) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<String> = text.split('\n').map(|line| wrap_line(line, columns)).collect();
    Cow::Owned(lines.join("\n"))
}

/// Breaks one line, with its continued parts indented.
fn wrap_line(line: &str, columns: usize) -> String {
    if shown_width(line) <= columns {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let hang = (indent + HANG).min(columns / 2);
    let mut wrapped = String::with_capacity(line.len() + line.len() / 8);
    let mut used = 0;
    for (spaces, word) in split_words(line, columns - hang) {
        let width = shown_width(word);
        let is_first = used == 0;
        if !is_first && used + spaces + width > columns {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(hang));
            used = hang;
        } else {
            wrapped.push_str(&" ".repeat(spaces));
            used += spaces;
        }
        wrapped.push_str(word);
        used += width;
    }
    wrapped
}

/// Splits a line into words, each with the number of spaces before it. `room` = the columns of a line.
fn split_words(line: &str, room: usize) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let word = rest.trim_start_matches(' ');
        let spaces = rest.len() - word.len();
        if word.is_empty() {
            return words;
        }
        let (word, after) = word.split_at(end_of_word(word, room));
        words.push((spaces, word));
        rest = after;
    }
}

/// The words of a text, each with the space after it; a command counts as one word.
pub(crate) fn words_and_commands(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (word, after) = text.split_at(end_of_word(text, 0));
        rest = after.strip_prefix(' ');
        Some(word)
    })
}

/// The end of the first word in bytes: at a space that is neither in a command, nor between backticks whose
/// text fits into `room` columns.
fn end_of_word(text: &str, room: usize) -> usize {
    let space = |from: usize| {
        let found = text.get(from..).and_then(|rest| rest.find(' '));
        found.map_or(text.len(), |at| from + at)
    };
    let (mut end, mut seen) = (space(0), 0);
    while let Some(open) = text.get(seen..end).and_then(|word| word.find('`')) {
        let open = seen + open;
        let inner = text.get(open + 1..).unwrap_or_default();
        let Some(close) = inner.find('`') else { break };
        seen = open + 1 + close + 1;
        if seen > end {
            // The word includes what follows without a space, for example a comma.
            let whole = space(seen);
            if whole > MAX_COMMAND {
                break;
            }
            let fits = text.get(..whole).is_some_and(|whole| shown_width(whole) <= room);
            if !fits && !is_command(inner.get(..close).unwrap_or_default()) {
                break;
            }
            end = whole;
        }
    }
    end
}

fn is_command(code: &str) -> bool {
    code.split_once(' ').is_some_and(|(program, _)| PROGRAMS.contains(&program))
}

/// The number of columns that a text takes on a terminal, without the codes of belljar's own colours.
fn shown_width(text: &str) -> usize {
    let mut width = 0;
    let mut rest = text;
    while let Some((before, code)) = rest.split_once("\u{1b}[") {
        width += before.width();
        rest = code.split_once('m').map_or("", |(_, after)| after);
    }
    width + rest.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_between_words_and_keeps_its_indent() {
        let text = "  hint: it has no `file_read`, and asks for `file_write` as well";
        assert_eq!(
            wrap_lines(text, 32),
            "  hint: it has no `file_read`,\n    and asks for `file_write` as\n    well"
        );
        assert!(matches!(wrap_lines("short\nlines", 20), Cow::Borrowed(_)));
        assert_eq!(wrap_lines("one  two three four five", 20), "one  two three four\n  five");
    }

    #[test]
    fn what_is_to_be_copied_stays_in_one_piece() {
        let command = "`belljar grant scout --tool file_write --mount /workspace:read-write`";
        let wrapped = wrap_lines(&format!("give it what it asks for: {command}"), 40).into_owned();
        assert_eq!(wrapped, format!("give it what it asks for:\n  {command}"));
        // Commands of other programs, and a second command after a first, stay in one piece too.
        let other = "`chmod go-w /a/path/that/is/longer/than/a/line/of/it`";
        let text = format!("look at what it says, then {other}, or `x`/{command}");
        let wrapped = wrap_lines(&text, 40).into_owned();
        assert!(wrapped.contains(other) && wrapped.contains(command), "{wrapped}");
        let id = "0192f7a1-5c3e-7d10-9d0a-2f1f0b6f3c11";
        let wrapped = wrap_lines(&format!("session {id} is not there any more"), 40).into_owned();
        assert!(wrapped.lines().any(|line| line.trim() == id || line.contains(id)), "{wrapped}");
    }

    #[test]
    fn commands_without_a_space_between_them_are_one_word_only_up_to_a_bound() {
        let text = "`git x`".repeat(100_000);
        let words: Vec<&str> = words_and_commands(&text).collect();
        assert!(words.len() > 300, "{}", words.len());
        assert!(words.iter().all(|word| word.len() <= MAX_COMMAND + 8));
    }

    #[test]
    fn words_are_as_the_spaces_end_them_and_a_command_is_one() {
        let words = |text| words_and_commands(text).collect::<Vec<_>>();
        assert_eq!(words("  a b"), ["", "", "a", "b"]);
        assert_eq!(
            words("a `quoted text` (`belljar run x`)"),
            ["a", "`quoted", "text`", "(`belljar run x`)"]
        );
        assert_eq!(words(""), [""]);
        assert_eq!(words("a `belljar run"), ["a", "`belljar", "run"]);
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_but_for_a_word_that_is() {
        let text = "\u{1b}[1mwarning:\u{1b}[0m 漢字かな交じり文の and `a quote of many words` \
            and https://host.test/a/path/without/any/space and the end";
        for columns in [20, 33, 40, 80] {
            for line in wrap_lines(text, columns).lines() {
                let fits = shown_width(line) <= columns;
                assert!(fits || !line.trim().contains(' '), "{columns}: {line}");
            }
        }
    }
}
