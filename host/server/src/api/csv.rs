//! Receipts of tool calls as a CSV table for a spreadsheet (RFC 4180), without cells that look like
//! formulas.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use belljar_store::StoredReceipt;
use serde_json::Value;

use crate::http::outward::PlaceHider;

/// The columns of the table: each a name, and the function that reads the cell's text from a receipt.
const COLUMNS: [(&str, Column); 27] = [
    ("created", |it| it.receipt.created.to_string()),
    ("message", |it| it.message.clone()),
    ("id", |it| it.receipt.id.clone()),
    ("agent", |it| it.receipt.agent.clone()),
    ("step", |it| it.receipt.step.to_string()),
    ("call_id", |it| it.receipt.call_id.clone()),
    ("parent", |it| value_word(it.receipt.body.get("parent"))),
    ("tool", |it| it.receipt.tool.clone()),
    ("ok", |it| it.receipt.ok.to_string()),
    ("ending", |it| it.receipt.ending.clone()),
    ("error", |it| value_word(it.receipt.body.get("error"))),
    ("fuel", |it| it.receipt.fuel.to_string()),
    ("micros", |it| it.receipt.micros.to_string()),
    ("peak_memory", |it| text_effect(it, "peak_memory")),
    ("bytes_read", |it| bytes_effect(it, "read")),
    ("bytes_written", |it| bytes_effect(it, "written")),
    ("bytes_sent", |it| bytes_effect(it, "sent")),
    ("bytes_received", |it| bytes_effect(it, "received")),
    ("bytes_output", |it| bytes_effect(it, "output")),
    ("host_calls", |it| text_effect(it, "host_calls")),
    ("paths_read", |it| list_effect(it, "paths_read")),
    ("paths_written", |it| list_effect(it, "paths_written")),
    ("hosts", |it| list_effect(it, "hosts")),
    ("secrets_used", |it| list_effect(it, "secrets_used")),
    ("denials", |it| format_denials(it)),
    ("arguments_digest", |it| text_effect(it, "arguments_digest")),
    ("output_digest", |it| text_effect(it, "output_digest")),
];

/// A function that returns the text of a cell for one receipt.
type Column = fn(&StoredReceipt) -> String;

/// The most bytes of one cell, because spreadsheets cut a cell at about 32,000 characters.
const MAX_CELL: usize = 32_000;

/// The answer with receipts as a file to save. `more` = older receipts are missing in the file, and its
/// last line notes this.
pub(crate) fn table_response(
    outward: &PlaceHider,
    receipts: &[StoredReceipt],
    more: bool,
) -> Response {
    let mut table = format_row(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    for receipt in receipts {
        table.push_str(&format_row(COLUMNS.iter().map(|(_, column)| column(receipt))));
    }
    if more {
        table.push_str(&format_row(
            ["older ones are left out; ask by message".to_owned()].into_iter(),
        ));
    }
    let table = outward.hide_in_text(&table).into_string();
    let mut response = Response::new(Body::from(table));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"receipts.csv\""),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn format_row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|text| format_cell(&text)).collect();
    format!("{}\r\n", cells.join(","))
}

/// INV-266: the text of a cell in a form that no spreadsheet computes. A text with separators is
/// quoted. Some readers split at `;` or a tab even within quotes, so each part that begins like a
/// formula, for example with `=`, gets a leading `'`.
fn format_cell(text: &str) -> String {
    let mut text: String = text.chars().filter(|letter| *letter != '\0').collect();
    if let Some((end, _)) = text.char_indices().find(|(at, _)| *at >= MAX_CELL) {
        text.truncate(end);
    }
    let mut marked = String::with_capacity(text.len());
    let mut begins = true;
    for letter in text.chars() {
        if begins && is_formula(letter) {
            marked.push('\'');
        }
        begins = is_end(letter) || (begins && is_blank(letter));
        marked.push(letter);
    }
    match marked.contains(['"', ',']) || marked.contains(is_end) {
        true => format!("\"{}\"", marked.replace('"', "\"\"")),
        false => marked,
    }
}

/// Returns whether a spreadsheet may compute a cell that begins with this letter, for example `=`.
fn is_formula(letter: char) -> bool {
    matches!(letter, '=' | '+' | '-' | '@' | '|' | '%')
        || ('\u{ff00}'..='\u{ffef}').contains(&letter)
}

/// Returns whether a program may read the letter as the end of a cell.
fn is_end(letter: char) -> bool {
    matches!(
        letter,
        ';' | '\t' | '\r' | '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Returns whether a spreadsheet ignores the letter at the beginning of a cell.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\u{feff}' | '\u{200b}')
}

/// The value of the field `name` among the receipt's effects, for example the files that the call
/// wrote.
fn find_effect<'a>(receipt: &'a StoredReceipt, name: &str) -> Option<&'a Value> {
    receipt.receipt.body.get("receipt").and_then(|receipt| receipt.get(name))
}

fn text_effect(receipt: &StoredReceipt, name: &str) -> String {
    value_word(find_effect(receipt, name))
}

fn bytes_effect(receipt: &StoredReceipt, name: &str) -> String {
    value_word(find_effect(receipt, "bytes").and_then(|bytes| bytes.get(name)))
}

/// A JSON value as the text of a cell; empty for anything but a text or a number.
fn value_word(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn list_effect(receipt: &StoredReceipt, name: &str) -> String {
    let all = find_effect(receipt, name).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// The refusals of a call, one per line: code, refused object and details.
fn format_denials(receipt: &StoredReceipt) -> String {
    let all = find_effect(receipt, "denials").and_then(Value::as_array).into_iter().flatten();
    let line = |denial: &Value| {
        let words = ["code", "what", "target", "facts"].map(|name| value_word(denial.get(name)));
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    all.map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula_and_never_two() {
        for (text, expected) in [
            ("file_read", "file_read"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "'=1+1"),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@x", "'@x"),
            ("  =1", "  '=1"),
            ("\t=1", "\"\t'=1\""),
            ("\r=1", "\"\r'=1\""),
            ("a\r\n=1", "\"a\r\n'=1\""),
            ("x;=cmd|' /C calc'!A0;y", "\"x;'=cmd|' /C calc'!A0;y\""),
            ("x;\"=1\"", "\"x;\"\"'=1\"\"\""),
            ("x\t @y", "\"x\t '@y\""),
            ("a\u{2028}+1", "\"a\u{2028}'+1\""),
            ("a-b", "a-b"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("=\"a\"", "\"'=\"\"a\"\"\""),
            ("a\0b", "ab"),
            ("", ""),
        ] {
            assert_eq!(format_cell(text), expected, "{text:?}");
        }
        assert!(format_cell(&"ä".repeat(MAX_CELL)).len() <= MAX_CELL + 2);
    }
}
