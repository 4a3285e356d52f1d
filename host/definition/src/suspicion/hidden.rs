//! Finds invisible characters.

use std::collections::BTreeMap;

use belljar_policy::ShownText;

use super::{HIDDEN_CHARACTER, SuspicionCollector, format_count};

/// Searches every line. Characters that are part of an emoji or of a script with joined letters are ordinary
/// text, and so is a byte order mark at the very beginning.
pub(super) fn find_hidden_characters(text: &str, found: &mut SuspicionCollector<'_>) {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\r', '\n']);
        let content = match offset {
            0 => content.strip_prefix('\u{feff}').unwrap_or(content),
            _ => content,
        };
        let kinds = count_hidden_kinds(content);
        if !kinds.is_empty() {
            let kinds: Vec<String> =
                kinds.into_iter().map(|(kind, number)| format_count(number, kind)).collect();
            found.push_suspicion(HIDDEN_CHARACTER, offset, kinds.join(", "));
        }
        if found.is_full(HIDDEN_CHARACTER) {
            return;
        }
        offset += line.len();
    }
}

/// The hidden characters of a line, counted by kind.
fn count_hidden_kinds(line: &str) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    let mut before = None;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied();
        if ShownText::is_hidden(c) && c != '\t' && !is_ordinary(before, c, after) {
            *kinds.entry(character_kind(c)).or_default() += 1;
        }
        before = Some(c);
    }
    kinds
}

/// Whether a hidden character is part of the writing of its neighbours.
fn is_ordinary(before: Option<char>, c: char, after: Option<char>) -> bool {
    let shows = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !ShownText::is_hidden(c));
    // An emoji's variation selector may precede a joiner.
    let emoji = |c: Option<char>| c == Some('\u{fe0f}') || shows(c);
    match c {
        // A selector follows the character that it selects: an emoji, or the digit of a keycap.
        '\u{fe0e}' | '\u{fe0f}' => {
            shows(before)
                || after == Some('\u{20e3}') && before.is_some_and(|c| "0123456789#*".contains(c))
        }
        '\u{200c}' | '\u{200d}' => emoji(before) && shows(after),
        _ => false,
    }
}

/// The kind of a hidden character, for a message.
fn character_kind(c: char) -> &'static str {
    match c {
        '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            "character that changes the direction of text"
        }
        '\u{e0000}'..='\u{e007f}' => "tag character",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180f}' => {
            "loose variation selector"
        }
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => "zero-width character",
        '\u{ad}' => "soft hyphen",
        '\u{2028}' | '\u{2029}' => "separator of lines",
        c if c.is_control() => "control character",
        _ => "invisible character",
    }
}
