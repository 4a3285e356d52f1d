//! Tables for people: columns without lines, wrapped to the terminal; plain where there is none.

use comfy_table::presets::NOTHING;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table as Inner,
};

use crate::out::{Out, Style};

/// A table being filled.
pub(crate) struct Table {
    inner: Inner,
    /// Which columns are set flush right.
    numbers: Vec<bool>,
    colour: bool,
}

impl Table {
    /// A table with these headings. A heading that begins with `>` marks a column of numbers,
    /// set flush right.
    pub(crate) fn new(out: &Out, headings: &[&str]) -> Self {
        let mut inner = Inner::new();
        inner.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if !out.colours() {
            inner.force_no_tty();
            inner.set_content_arrangement(ContentArrangement::Disabled);
        }
        // Without a header where there is nothing to say in it.
        if headings.iter().any(|heading| !heading.is_empty()) {
            inner.set_header(headings.iter().map(|heading| {
                let cell = Cell::new(heading.trim_start_matches('>'));
                if out.colours() { cell.add_attribute(Attribute::Bold) } else { cell }
            }));
        }
        let numbers = headings.iter().map(|heading| heading.starts_with('>')).collect();
        Self { inner, numbers, colour: out.colours() }
    }

    /// Adds a row. The text is escaped already.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Option<Style>)>) {
        let cells = cells.into_iter().map(|(text, style)| match style.filter(|_| self.colour) {
            None => Cell::new(text),
            Some(Style::Bold) => Cell::new(text).add_attribute(Attribute::Bold),
            Some(Style::Dim) => Cell::new(text).add_attribute(Attribute::Dim),
            Some(Style::Red) => Cell::new(text).fg(Color::Red),
            Some(Style::Green) => Cell::new(text).fg(Color::Green),
            Some(Style::Yellow) => Cell::new(text).fg(Color::Yellow),
            Some(Style::Cyan) => Cell::new(text).fg(Color::Cyan),
        });
        self.inner.add_row(cells);
    }

    /// Prints it to stdout.
    pub(crate) fn print(mut self, out: &Out) {
        for (column, number) in self.inner.column_iter_mut().zip(&self.numbers) {
            column.set_padding((0, 2));
            if *number {
                column.set_cell_alignment(CellAlignment::Right);
                // Where it is narrow, texts are wrapped and numbers are not.
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        for line in self.inner.lines() {
            out.line(line.trim_end());
        }
    }
}

/// A cell without style.
pub(crate) fn plain(text: impl ToString) -> (String, Option<Style>) {
    (text.to_string(), None)
}

/// A cell in a style.
pub(crate) fn styled(style: Style, text: impl ToString) -> (String, Option<Style>) {
    (text.to_string(), Some(style))
}

/// A count with a space between thousands groups: `1 234 567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 step`, `2 steps`.
pub(crate) fn some(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(number))
}

/// A size in the largest unit that keeps it above one: `3.2 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A time in microseconds: `820 µs`, `12.4 ms`, `3.20 s`.
pub(crate) fn micros(time: u64) -> String {
    match time {
        0..1_000 => format!("{time} µs"),
        1_000..1_000_000 => format!("{:.1} ms", time as f64 / 1e3),
        _ => format!("{:.2} s", time as f64 / 1e6),
    }
}

/// An amount of fuel: `608.7 k`, `2.3 M`, `20.0 G`.
pub(crate) fn fuel(amount: u64) -> String {
    match amount {
        0..1_000 => amount.to_string(),
        1_000..1_000_000 => format!("{:.1} k", amount as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", amount as f64 / 1e6),
        _ => format!("{:.1} G", amount as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_short_and_have_units() {
        assert_eq!(count(1_234_567), "1\u{a0}234\u{a0}567");
        assert_eq!(count(12), "12");
        assert_eq!((some(1, "step"), some(2, "step")), ("1 step".into(), "2 steps".into()));
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(3 << 20), "3.0 MiB");
        assert_eq!(micros(999), "999 µs");
        assert_eq!(micros(12_400), "12.4 ms");
        assert_eq!(fuel(608_700), "608.7 k");
    }
}
