//! Text of strangers, escaped so that it can be shown to a person.

use std::fmt::{self, Write as _};
use std::path::Path;

use crate::typed::PathText;

/// Text of a stranger (a model, a guest, an agent file, a peer), escaped when it is written: control
/// characters, bidirectional controls, zero-width and other invisible characters become `\u{..}`. So the
/// text cannot move the cursor, hide itself or reorder a line. A carriage return, for example, becomes `\r`.
///
/// Line feeds and tabs are escaped too, except with [`ShownText::multiline`].
#[derive(Debug, Clone, Copy)]
pub struct ShownText<'a> {
    text: &'a str,
    lines: bool,
    limit: usize,
}

impl<'a> ShownText<'a> {
    /// Writes the text on one line, whatever its length.
    pub fn new(text: &'a str) -> Self {
        Self { text, lines: false, limit: usize::MAX }
    }

    /// Writes the text on one line, and `…` in place of what comes after `limit` characters.
    pub fn clip_line(text: &'a str, limit: usize) -> Self {
        Self { text, lines: false, limit }
    }

    /// Writes the text with its line feeds and tabs; all else is escaped as with [`ShownText::new`].
    pub fn multiline(text: &'a str) -> Self {
        Self { text, lines: true, limit: usize::MAX }
    }

    /// Whether [`ShownText`] escapes this character, because a terminal or a page would not show it as
    /// itself. True for line feeds and tabs.
    pub fn is_hidden(c: char) -> bool {
        is_hidden(c)
    }
}

impl fmt::Display for ShownText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, c) in self.text.chars().enumerate() {
            if n == self.limit {
                return f.write_char('…');
            }
            match c {
                '\n' | '\t' if self.lines => f.write_char(c)?,
                c => write_shown(c, f)?,
            }
        }
        Ok(())
    }
}

/// Writes a character, or its escape if it is invisible.
pub(crate) fn write_shown(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\t' => f.write_str("\\t"),
        '\r' => f.write_str("\\r"),
        c if is_hidden(c) => write!(f, "\\u{{{:x}}}", u32::from(c)),
        c => f.write_char(c),
    }
}

/// Paths, escaped so that they can be shown to a person: the name of a directory may be a stranger's text
/// too.
pub trait ShownPath {
    /// The path on one line, escaped as with [`ShownText::new`], and with `\xE9` for a byte that is not
    /// UTF-8. Different paths have different texts, which [`typed_path`](crate::typed_path) parses.
    fn to_shown(&self) -> impl fmt::Display + '_;
}

impl ShownPath for Path {
    fn to_shown(&self) -> impl fmt::Display + '_ {
        PathText(self.as_os_str())
    }
}

/// Whether a terminal or a page would not show this character as itself: C0 and C1 controls, soft hyphen,
/// zero-width and joining characters, bidirectional controls, separators of lines and paragraphs, invisible
/// operators, variation selectors, interlinear marks, and tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_bidi_and_zero_width_are_spelled_out() {
        let hostile = "a\u{1b}[2Jb\u{202e}c\u{200b}d\r\ne\u{9b}f\u{e0041}";
        let shown = ShownText::new(hostile).to_string();
        assert_eq!(shown, "a\\u{1b}[2Jb\\u{202e}c\\u{200b}d\\r\\ne\\u{9b}f\\u{e0041}");
    }

    #[test]
    fn a_path_is_shown_without_what_it_hides() {
        let path = Path::new("/tmp/a\u{1b}[2J\u{202e}b");
        assert_eq!(path.to_shown().to_string(), "/tmp/a\\u{1b}[2J\\u{202e}b");
    }

    #[test]
    fn multiline_keeps_only_line_feeds_and_tabs() {
        assert_eq!(ShownText::multiline("a\n\tb\u{7}").to_string(), "a\n\tb\\u{7}");
    }

    #[test]
    fn clipping_counts_characters() {
        assert_eq!(ShownText::clip_line("äöü", 2).to_string(), "äö…");
        assert_eq!(ShownText::clip_line("äö", 2).to_string(), "äö");
    }
}
