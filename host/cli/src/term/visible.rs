//! The last step before text is printed: characters that a screen would not show are escaped.

use std::borrow::Cow;

use belljar_policy::ShownText;

/// The text with every hidden character escaped, except line feeds and tabs. With `colour`, the codes of
/// colours stay too, because belljar's own texts have them.
pub(crate) fn visible_text(text: &str, colour: bool) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_hidden) {
        let (plain, hidden) = rest.split_at(at);
        visible.push_str(plain);
        let passes = if colour { colour_at_start(hidden) } else { 0 };
        let whole =
            if passes > 0 { passes } else { hidden.chars().next().map_or(0, char::len_utf8) };
        let (taken, after) = hidden.split_at(whole);
        if passes > 0 {
            visible.push_str(taken);
        } else {
            visible.push_str(&ShownText::new(taken).to_string());
        }
        rest = after;
    }
    visible.push_str(rest);
    Cow::Owned(visible)
}

fn is_hidden(c: char) -> bool {
    !matches!(c, '\n' | '\t') && ShownText::is_hidden(c)
}

/// The number of bytes at the start of `text` that only set a colour: `ESC [`, numbers, `m`.
fn colour_at_start(text: &str) -> usize {
    let Some(body) = text.strip_prefix("\u{1b}[") else { return 0 };
    let numbers =
        body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').len();
    match body.get(numbers..) {
        Some(end) if end.starts_with('m') => 2 + numbers + 1,
        Some(_) | None => 0,
    }
}

/// The same JSON value, with every character that a screen would not show written as `\uXXXX`, so that a
/// stranger's text in a pager moves no cursor and hides nothing.
pub(crate) fn visible_json(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // These are between values; a string in JSON cannot contain them.
            '\n' | '\t' => visible.push(c),
            '\r' => visible.push(' '),
            // A hidden character is inside a string, because JSON has none elsewhere.
            c if ShownText::is_hidden(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    visible.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => visible.push(c),
        }
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn nothing_hidden_passes_and_colours_only_where_they_are_taken() {
        let hostile = "a\u{1b}[2Jb\u{202e}c\r\n\td\u{1b}[1;31me\u{1b}[0m\u{1b}";
        let plain = "a\\u{1b}[2Jb\\u{202e}c\\r\n\td\\u{1b}[1;31me\\u{1b}[0m\\u{1b}";
        assert_eq!(visible_text(hostile, false), plain);
        let coloured = "a\\u{1b}[2Jb\\u{202e}c\\r\n\td\u{1b}[1;31me\u{1b}[0m\\u{1b}";
        assert_eq!(visible_text(hostile, true), coloured);
        assert!(matches!(visible_text("as\tit is\n", false), Cow::Borrowed(_)));
    }

    #[test]
    fn json_hides_nothing_and_keeps_its_value() {
        let hostile = "a\u{9b}2J\u{202e}b\u{200b}\u{7f}\u{85}\u{e0041}\u{1b}\n\t\\u202e ä";
        let value = json!({ hostile: [hostile, 1, null] });
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let visible = visible_json(&text);
            assert!(!visible.chars().any(|c| c != '\n' && ShownText::is_hidden(c)), "{visible}");
            assert!(visible.contains("\\u009b") && visible.contains("\\udb40\\udc41"), "{visible}");
            assert_eq!(serde_json::from_str::<Value>(&visible).unwrap(), value);
        }
    }
}
