//! Tests of tables with long, wide and hostile texts, on narrow and wide terminals.

use unicode_width::UnicodeWidthStr as _;

use super::*;

/// The headings of tables with many columns, or with numbers.
const TABLES: &[&[&str]] = &[
    &["", ""],
    &["exports"],
    &["limit", ">default", "unit", "what it bounds, and why"],
    &["agent", "scope", "status", "tools", "description"],
    &["id", "tenant", "scope", "name", "made", "used", "state"],
    &["attack", "", "stopped by", ">time", ">memory", ">neighbour", ">at worst"],
    &["agent", "tool", "ended", ">fuel", ">time", ">memory", ">read", ">written", ">sent", ">no"],
];

/// Texts such as strangers may write.
const TEXTS: &[&str] = &[
    "",
    "ready",
    "library/some-agents/general-purpose-research-assistant",
    "Finds the files that matter, keeps an index of them, and answers with one line each.",
    "漢字かな交じり文の説明は二倍の幅を取るので折り返しも二倍になる",
    "🦀🦀🦀 crabs 🦀 and 🧑 people",
    "a\u{1b}[2J\u{1b}]0;title\u{7}b\u{202e}c\u{200b}d\u{feff}\te",
    "two\nlines",
    "→ helper#0",
];

/// Cells of a column of numbers.
const AMOUNTS: &[&str] = &["0", "1\u{a0}234\u{a0}567", "1013.4 KiB", "608.7 k"];

/// A table with every text in every column, each beside another text.
fn full(headings: &[&str], colour: bool) -> TextTable {
    let mut table = TextTable::with_headings(headings, colour);
    for shift in 0..TEXTS.len() {
        let cells = headings.iter().enumerate().map(|(column, heading)| {
            let from = if heading.starts_with('>') { AMOUNTS } else { TEXTS };
            styled_cell(TextStyle::Yellow, from[(shift + column * 2) % from.len()])
        });
        table.push_row(cells);
    }
    table
}

#[test]
fn no_line_is_longer_than_the_terminal_or_ends_in_spaces() {
    for headings in TABLES {
        for columns in [1, 20, 33, 40, 60, 80, 100, 120, 200] {
            for line in full(headings, false).render_lines(Some(columns)) {
                let bound = columns.max(20);
                assert!(line.width() <= bound, "{} > {bound}, {headings:?}: {line}", line.width());
                assert_eq!(line, line.trim_end(), "{headings:?} at {columns}");
            }
        }
    }
}

#[test]
fn nothing_that_a_terminal_would_obey_gets_through() {
    for columns in [None, Some(30), Some(80), Some(200)] {
        for line in full(&["a", "b", "c"], false).render_lines(columns) {
            assert!(!line.chars().any(ShownText::is_hidden), "{line:?}");
        }
    }
}

#[test]
fn colour_changes_no_column() {
    let without = |line: &str| {
        let mut text = String::new();
        let mut rest = line;
        while let Some((before, code)) = rest.split_once('\u{1b}') {
            text.push_str(before);
            rest = code.split_once('m').unwrap().1;
        }
        text + rest
    };
    for headings in TABLES {
        for columns in [30, 80, 200] {
            let painted = full(headings, true).render_lines(Some(columns));
            let painted: Vec<_> = painted.iter().map(|line| without(line)).collect();
            assert_eq!(painted, full(headings, false).render_lines(Some(columns)), "{headings:?}");
        }
    }
}

#[test]
fn without_a_terminal_a_row_is_a_line_and_two_spaces_end_a_field() {
    for headings in TABLES.iter().filter(|headings| headings.concat() != "") {
        let lines = full(headings, false).render_lines(None);
        assert_eq!(lines.len(), TEXTS.len() + 1, "{headings:?}");
        for line in lines.iter().skip(1) {
            let fields = line.split("  ").filter(|field| !field.trim().is_empty()).count();
            assert_eq!(fields, headings.len(), "{line}");
        }
        let text = lines.join("\n");
        for whole in TEXTS.iter().filter(|text| text.is_ascii() && !text.contains(['\n', '\u{1b}']))
        {
            assert!(headings.len() < 3 || text.contains(whole), "{whole} in\n{text}");
        }
    }
    let mut table = TextTable::with_headings(&["a", ">n"], false);
    table.push_row([plain_cell("x"), plain_cell(format_count(1_234_567))]);
    assert_eq!(table.render_lines(None)[1], "x  1234567");
}

#[test]
fn wide_characters_keep_the_columns_straight() {
    for columns in [None, Some(80)] {
        let mut table = TextTable::with_headings(&["name", "what"], false);
        for name in ["ascii", "漢字", "🦀", "é"] {
            table.push_row([plain_cell(name), plain_cell("here")]);
        }
        for line in table.render_lines(columns).iter().skip(1) {
            let (before, _) = line.split_once("here").unwrap();
            assert_eq!(before.width(), 7, "{line}");
        }
    }
}

/// The lines of a table like that of receipts, on a terminal of `columns` columns.
fn receipts(columns: usize) -> String {
    let mut table =
        TextTable::with_headings(&["agent", "tool", "ended", ">fuel", ">refused", "why"], false);
    let texts = ["→ research-assistant#0", "file_search", "tool error: not-found"];
    let more = ["1.2\u{a0}G", "0", "`/workspace/nowhere/at-all.txt` does not exist"];
    table.push_row(texts.into_iter().chain(more).map(plain_cell));
    table.render_lines(Some(columns)).join("\n")
}

/// Words of that table, each of which fits on a line of 40 columns.
const WORDS: &[&str] =
    &["research-assistant#0", "file_search", "`/workspace/nowhere/at-all.txt`", "not-found"];

#[test]
fn a_word_that_fits_on_a_line_is_never_broken() {
    for columns in [40, 60, 80, 100, 120, 200] {
        let shown = receipts(columns);
        for word in WORDS {
            assert!(shown.contains(word), "{word} at {columns} in\n{shown}");
        }
    }
    let id = "0192f7a1-5c3e-7d10-9d0a-2f1f0b6f3c11";
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    for columns in [36, 40, 72, 80, 200] {
        let mut table = TextTable::with_headings(&["session", "agent", "last", "title"], false);
        let agent = "a-research-assistant-with-a-long-name";
        table.push_row([
            plain_cell(id),
            plain_cell(agent),
            plain_cell("2026-11-23 12:00"),
            plain_cell(&digest),
        ]);
        let shown = table.render_lines(Some(columns)).join("\n");
        let words = [id, agent, &digest].into_iter().filter(|word| word.width() <= columns);
        words.for_each(|word| assert!(shown.contains(word), "{word} at {columns} in\n{shown}"));
    }
}

#[test]
fn a_last_text_that_would_be_narrow_stands_below_its_row() {
    let shown = receipts(80);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("agent ") && lines[0].ends_with(" refused"), "{shown}");
    assert_eq!(lines[1], "    why", "{shown}");
    assert_eq!(lines[3], "    `/workspace/nowhere/at-all.txt` does not exist", "{shown}");
    assert_eq!(receipts(130).lines().count(), 2);
}

#[test]
fn a_text_that_is_cut_gets_the_room_of_a_wide_terminal() {
    let long = "word ".repeat(100);
    let shown = |columns: Option<usize>| {
        let mut table = TextTable::with_headings(&["tool", "description"], false).with_cut(70);
        table.push_row([plain_cell("file_read"), plain_cell(long.trim())]);
        table.render_lines(columns)
    };
    assert_eq!(shown(None)[1].width(), "file_read  ".len() + 71);
    assert!(shown(Some(200))[1].width() > 180, "{:?}", shown(Some(200)));
    assert!(shown(Some(200)).len() <= 4, "{:?}", shown(Some(200)));
}

#[test]
fn columns_that_do_not_fit_side_by_side_stand_one_below_the_other() {
    let narrow = receipts(40);
    let lines: Vec<&str> = narrow.lines().collect();
    assert_eq!(lines[0], "agent    →\u{a0}research-assistant#0", "{narrow}");
    assert_eq!(lines[3], "fuel     1.2\u{a0}G", "{narrow}");
    assert_eq!(lines[6], "         does not exist", "{narrow}");
}

#[test]
fn amounts_are_short_and_have_units() {
    assert_eq!(format_count(1_234_567), "1\u{a0}234\u{a0}567");
    assert_eq!(format_count(12), "12");
    assert_eq!(
        (format_quantity(1, "step"), format_quantity(2, "step")),
        ("1 step".into(), "2 steps".into())
    );
    assert_eq!(format_size(1023), "1023 B");
    assert_eq!(format_size(3 << 20), "3.0 MiB");
    assert_eq!(format_micros(999), "999 µs");
    assert_eq!(format_micros(12_400), "12.4 ms");
    assert_eq!(format_fuel(608_700), "608.7 k");
}

#[test]
fn a_date_stays_with_its_time_on_a_terminal_and_is_plain_text_elsewhere() {
    let made = || {
        let mut table = TextTable::with_headings(&["made", "used", "note"], false);
        table.push_row([
            plain_cell("2026-01-02 03:04"),
            plain_cell("2026-01-02 03:05"),
            plain_cell("a b c d e f g h"),
        ]);
        table
    };
    for columns in [40, 44, 50, 80] {
        let lines = made().render_lines(Some(columns)).join("\n");
        let whole = ["2026-01-02\u{a0}03:04", "2026-01-02\u{a0}03:05"];
        assert!(whole.iter().all(|time| lines.contains(time)), "{columns}:\n{lines}");
    }
    assert!(made().render_lines(None)[1].starts_with("2026-01-02 03:04  2026-01-02 03:05"));
    assert!(!is_time("2026-01-02 03:0x") && !is_time("2026-01-02"));
}
