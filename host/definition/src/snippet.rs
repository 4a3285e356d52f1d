//! The lines of a file that a finding is about, escaped for display to a person.

use std::borrow::Cow;
use std::fmt;

use belljar_policy::ShownText;
use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::diagnostic::Severity;

/// Displayed characters of a line: the width of an ordinary terminal. Of a longer line, the part around the
/// finding is shown.
const MAX_WIDTH: usize = 100;

/// Characters kept before the finding in a line that is too long.
const MAX_BEFORE: usize = 40;

/// Words that suggest a secret value, which is then hidden.
const SECRET_WORDS: &[&str] =
    &["key", "secret", "token", "password", "authorization", "bearer", "sk-", "header"];

/// The affected line and the one before, as a miette diagnostic with labels and source, but no text. The
/// source is escaped and clipped.
#[derive(Debug)]
pub struct SourceSnippet {
    severity: Severity,
    text: String,
    /// The number of the first line of `text`, from 0.
    first: usize,
    /// The position of the label in `text`, in bytes.
    label: (usize, usize),
}

/// A line, escaped and clipped, with the label's position in bytes.
struct SnippetLine {
    text: String,
    label: (usize, usize),
}

impl SourceSnippet {
    /// Makes a snippet. `line` and `column` count from 1; 0 = none.
    pub(crate) fn new(source: &str, severity: Severity, line: u32, column: u32) -> Option<Self> {
        let nth = usize::try_from(line.checked_sub(1)?).ok()?;
        let mut lines = source.lines().skip(nth.saturating_sub(1));
        let before = if nth > 0 { lines.next() } else { None };
        let here = format_line(lines.next()?, usize::try_from(column).ok()?);
        let mut text = before.map_or(String::new(), |line| format_line(line, 0).text + "\n");
        let (start, len) = here.label;
        let label = (text.len() + start, len);
        text.push_str(&here.text);
        if start == here.text.len() {
            // The label is after the last character.
            text.push(' ');
        }
        text.push('\n');
        Some(Self { severity, text, first: nth.saturating_sub(1), label })
    }
}

/// The displayed line, with the label on the word at `column` (from 1), or for 0 on all but the white space.
/// A tab counts as one column, as in findings.
fn format_line(line: &str, column: usize) -> SnippetLine {
    let line = without_secret(line);
    let at = match column.checked_sub(1) {
        Some(at) => at,
        None => line.chars().take_while(|c| c.is_whitespace()).count(),
    };
    let skipped = if at < MAX_WIDTH { 0 } else { at - MAX_BEFORE };
    let window: Vec<char> = line.chars().skip(skipped).take(MAX_WIDTH).collect();
    let cut = line.chars().nth(skipped + MAX_WIDTH).is_some();
    let (before, rest) = window.split_at_checked(at - skipped).unwrap_or((&window, &[]));
    let labelled = match column {
        0 => rest.len(),
        _ => rest.iter().take_while(|c| is_word(**c)).count().max(1),
    };
    let (word, after) = rest.split_at_checked(labelled).unwrap_or((rest, &[]));

    let escaped = |part: &[char]| {
        let part: String = part.iter().map(|c| if *c == '\t' { ' ' } else { *c }).collect();
        ShownText::new(&part).to_string()
    };
    let mut text = if skipped > 0 { "…" } else { "" }.to_owned();
    text.push_str(&escaped(before));
    let start = text.len();
    text.push_str(&escaped(word));
    let label = (start, (text.len() - start).max(1));
    text.push_str(&escaped(after));
    text.push_str(if cut { "…" } else { "" });
    SnippetLine { text, label }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// The line without the value if the value may be a secret, because terminals are recorded and shared
/// (INV-13).
pub(crate) fn without_secret(line: &str) -> Cow<'_, str> {
    let lower = line.to_ascii_lowercase();
    let suspect = SECRET_WORDS.iter().any(|word| lower.contains(word));
    match line.find(['=', ':']).filter(|_| suspect) {
        Some(at) => Cow::Owned(format!("{} …", line.get(..=at).unwrap_or_default())),
        None if suspect => Cow::Borrowed("…"),
        None => Cow::Borrowed(line),
    }
}

impl fmt::Display for SourceSnippet {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for SourceSnippet {}

impl miette::Diagnostic for SourceSnippet {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Note => miette::Severity::Advice,
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (start, len) = self.label;
        Some(Box::new(std::iter::once(LabeledSpan::new(None, start, len))))
    }
}

impl SourceCode for SourceSnippet {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new(
            read.data(),
            *read.span(),
            self.first + read.line(),
            read.column(),
            read.line_count(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shown text of a snippet, and the labelled part.
    fn labelled(source: &str, line: u32, column: u32) -> (String, String) {
        let snippet = SourceSnippet::new(source, Severity::Error, line, column).unwrap();
        let (start, len) = snippet.label;
        let label = snippet.text[start..start + len].to_owned();
        (snippet.text, label)
    }

    #[test]
    fn the_label_stands_on_the_word_at_the_column() {
        let source = "one: 1\ntwo-x: [a, b]\n";
        assert_eq!(labelled(source, 2, 1).1, "two-x");
        assert_eq!(labelled(source, 2, 8).1, "[");
        assert_eq!(labelled(source, 2, 0).1, "two-x: [a, b]");
        assert_eq!(labelled(source, 1, 99).1, " ", "past the end of the line");
        assert_eq!(labelled("\tä: 1", 1, 2).1, "ä");
    }

    #[test]
    fn a_place_that_is_not_in_the_text_has_no_snippet() {
        for (source, line) in [("a", 0), ("a", 2), ("", 1), ("a\n", u32::MAX)] {
            assert!(
                SourceSnippet::new(source, Severity::Error, line, 1).is_none(),
                "{source} {line}"
            );
        }
    }

    #[test]
    fn hostile_text_in_a_snippet_is_escaped_and_the_label_still_fits() {
        let source = "a\u{1b}[2J\u{202e}\r\nb\u{200b}: wrong";
        let (text, label) = labelled(source, 2, 3);
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\r']), "{text:?}");
        assert_eq!(label, ":");
    }

    #[test]
    fn a_line_that_may_hold_a_key_is_not_shown_whole() {
        for line in ["key = \"hidden\"", "x = {api_key = \"hidden\"}", "sk-hidden", "Token: hidden"]
        {
            for column in [0, 1, 12] {
                let (text, _) = labelled(&format!("{line}\n{line}"), 2, column);
                assert!(!text.contains("hidden"), "{text}");
            }
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let source = format!("{}wrong{}", "x ".repeat(5_000), " y".repeat(5_000));
        let (text, label) = labelled(&source, 1, 10_001);
        assert_eq!(label, "wrong");
        assert!(text.chars().count() < MAX_WIDTH + 10, "{}", text.len());
        let (text, _) = labelled(&source, 1, 1);
        assert!(text.chars().count() < MAX_WIDTH + 10);
    }
}
