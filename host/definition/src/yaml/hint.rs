//! Advice about a text at which the YAML parser stops.

/// A hint for the parser's message about the line `nth` of `yaml`, counted from 0; `first_line` is the line
/// of the file at which `yaml` begins.
pub(super) fn find_hint(message: &str, yaml: &str, nth: usize, first_line: u32) -> Option<String> {
    unclosed_hint(message, yaml, nth, first_line)
        .or_else(|| yaml.lines().nth(nth).and_then(line_hint))
}

/// Advice about quotes and brackets that end too early or not at all. The parser stops at a later line, `nth`
/// from the first, and its message does not contain the line where the quote began.
fn unclosed_hint(message: &str, yaml: &str, nth: usize, first_line: u32) -> Option<String> {
    if message.contains("unclosed bracket") {
        return Some("close the list, `[a, b]`; quote a text that begins so".to_owned());
    }
    if message.contains("after single-quoted scalar") {
        return Some("write `''` for a `'` within `'…'`, or put the value in `\"…\"`".to_owned());
    }
    if message.contains("after double-quoted scalar") {
        let hint = "put the whole value in `'…'`, or write `\\\"` for a `\"` within `\"…\"`";
        return Some(hint.to_owned());
    }
    if !message.contains("unclosed quote") && !message.contains("quoted scalar") {
        return None;
    }
    let lines = yaml.lines().take(nth.saturating_add(1)).zip(first_line..);
    let (quote, line) = lines.filter_map(|(text, line)| Some((open_quote(text)?, line))).last()?;
    Some(format!("the `{quote}` that opens on line {line} is not closed: end the value with one"))
}

/// The quote that a line opens and does not close.
fn open_quote(line: &str) -> Option<char> {
    let mut open = None;
    let mut before = ' ';
    let mut escaped = false;
    for c in line.chars() {
        match open {
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(quote) if c == quote => open = None,
            Some(_) => {}
            // Within a word the quote is an apostrophe; two quotes mean one.
            None if matches!(c, '"' | '\'') && is_opening_quote(before, c) => open = Some(c),
            None => {}
        }
        before = c;
    }
    open
}

/// Whether a quote after this character opens a text.
fn is_opening_quote(before: char, quote: char) -> bool {
    before.is_whitespace() || "[{,:".contains(before) || before == '\'' && quote == before
}

/// Advice about the usual error in a line at which a YAML parser stops.
fn line_hint(line: &str) -> Option<String> {
    let (key, value) = line.split_once(':')?;
    let (key, value) = (key.trim().trim_start_matches("- "), value.trim());
    if key.len() > 64 || key.is_empty() {
        return None;
    }
    let key = belljar_policy::ShownText::new(key);
    if value.starts_with('*') {
        return Some(format!("quote the value: `{key}: \"*\"`; a bare `*` is a YAML alias"));
    }
    if value.contains(": ") || value.ends_with(':') {
        return Some(format!("quote the value of `{key}`: it holds `: `"));
    }
    match value.chars().next()? {
        '`' | '@' | '%' | '&' | '!' | '|' | '>' | '[' | '{' => {
            Some(format!("quote the value of `{key}`: its first character means something in YAML"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_open_where_a_value_begins_with_it_and_no_other_ends_it() {
        for open in ["a: \"b", "a: ['b', \"c]", "a: \"b\\\"", "- 'it''s"] {
            assert!(open_quote(open).is_some(), "{open}");
        }
        for closed in ["a: \"b\"", "a: it's", "a: 'it''s'", "a: \"b\\\"\"", "a: b", "don't: 1"] {
            assert_eq!(open_quote(closed), None, "{closed}");
        }
    }
}
