//! Makes a stranger's text safe to show: escaped and cut.

use std::fmt::Write as _;

/// The most characters of a peer's text that an error repeats: enough for any real message, too few to flood
/// a terminal or a log.
pub(crate) const MAX_QUOTED_CHARS: usize = 400;

/// Cuts `text` to [`MAX_QUOTED_CHARS`], and escapes control, bidirectional and invisible characters, so a
/// peer cannot move the cursor or hide words.
pub(crate) fn quote_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_QUOTED_CHARS));
    for (count, c) in text.trim().chars().enumerate() {
        if count == MAX_QUOTED_CHARS {
            out.push('…');
            break;
        }
        if is_deceptive(c) {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// True for characters that are invisible or change how the text around them is shown.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The names in backticks, separated by commas; `none` if there are no names.
pub(crate) fn list_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> =
        names.into_iter().map(|name| format!("`{}`", quote_text(name))).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        assert_eq!(quote_text("a\u{1b}[2J\u{202e}b\n"), "a\\u{1b}[2J\\u{202e}b");
    }

    #[test]
    fn long_text_is_cut() {
        let text = quote_text(&"x".repeat(10_000));
        assert_eq!(text.chars().count(), MAX_QUOTED_CHARS + 1);
        assert!(text.ends_with('…'));
    }
}
