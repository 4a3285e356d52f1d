//! Receipts as a table for a spreadsheet: RFC 4180, and no cell that one would take for a formula.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use belljar_store::StoredReceipt;
use serde_json::Value;

use crate::http::outward::Outward;

/// The columns: their names, and where a receipt has them.
const COLUMNS: [(&str, Column); 20] = [
    ("created", |it| it.receipt.created.to_string()),
    ("message", |it| it.message.clone()),
    ("id", |it| it.receipt.id.clone()),
    ("agent", |it| it.receipt.agent.clone()),
    ("step", |it| it.receipt.step.to_string()),
    ("call_id", |it| it.receipt.call_id.clone()),
    ("tool", |it| it.receipt.tool.clone()),
    ("ok", |it| it.receipt.ok.to_string()),
    ("ending", |it| it.receipt.ending.clone()),
    ("fuel", |it| it.receipt.fuel.to_string()),
    ("micros", |it| it.receipt.micros.to_string()),
    ("peak_memory", |it| text(it, "peak_memory")),
    ("host_calls", |it| text(it, "host_calls")),
    ("paths_read", |it| list(it, "paths_read")),
    ("paths_written", |it| list(it, "paths_written")),
    ("hosts", |it| list(it, "hosts")),
    ("secrets_used", |it| list(it, "secrets_used")),
    ("denials", |it| denials(it)),
    ("arguments_digest", |it| text(it, "arguments_digest")),
    ("output_digest", |it| text(it, "output_digest")),
];

/// The text of a cell.
type Column = fn(&StoredReceipt) -> String;

/// Most bytes of one cell: what a spreadsheet takes.
const MAX_CELL: usize = 32_000;

/// Receipts as a file to save. `more`: there are older ones, which a line at the end says.
pub(crate) fn response(outward: &Outward, receipts: &[StoredReceipt], more: bool) -> Response {
    let mut table = row(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    for receipt in receipts {
        table.push_str(&row(COLUMNS.iter().map(|(_, column)| column(receipt))));
    }
    if more {
        table.push_str(&row(["older ones are left out; ask by message".to_owned()].into_iter()));
    }
    let table = outward.plain(&table).into_string();
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

fn row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|text| cell(&text)).collect();
    format!("{}\r\n", cells.join(","))
}

/// INV-266: a cell that no spreadsheet computes. One that begins like a formula gets a `'` in front, and
/// what a line or a cell could end with stands in quotes.
fn cell(text: &str) -> String {
    let mut text: String = text.chars().filter(|letter| *letter != '\0').collect();
    if let Some((end, _)) = text.char_indices().find(|(at, _)| *at >= MAX_CELL) {
        text.truncate(end);
    }
    let begins = text.trim_start_matches([' ', '\u{a0}', '\u{feff}']).chars().next();
    let formula = |first: char| {
        matches!(first, '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '|' | '%')
            || ('\u{ff00}'..='\u{ffef}').contains(&first)
    };
    let mark = if begins.is_some_and(formula) { "'" } else { "" };
    let quoted = text.contains(['"', ',', ';', '\r', '\n', '\t']);
    match quoted {
        true => format!("\"{mark}{}\"", text.replace('"', "\"\"")),
        false => format!("{mark}{text}"),
    }
}

fn text(receipt: &StoredReceipt, name: &str) -> String {
    match receipt.receipt.body.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn list(receipt: &StoredReceipt, name: &str) -> String {
    let all = receipt.receipt.body.get(name).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// The refusals, a line each: the code and what was refused.
fn denials(receipt: &StoredReceipt) -> String {
    let all = receipt.receipt.body.get("denials").and_then(Value::as_array).into_iter().flatten();
    let line = |denial: &Value| {
        let word = |name: &str| denial.get(name).and_then(Value::as_str).unwrap_or_default();
        format!("{} {}", word("code"), word("target")).trim_end().to_owned()
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
            ("  =1", "'  =1"),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\r=1\""),
            ("a\r\n=1", "\"a\r\n=1\""),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("=\"a\"", "\"'=\"\"a\"\"\""),
            ("a\0b", "ab"),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
        assert!(cell(&"ä".repeat(MAX_CELL)).len() <= MAX_CELL + 2);
    }
}
