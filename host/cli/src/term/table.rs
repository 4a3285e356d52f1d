//! Tables for people: columns without rules, never wider than the terminal. On other output, each row is one
//! line.

mod layout;

use belljar_policy::ShownText;

use self::layout::TableLayout;
use crate::term::out::{TerminalOutput, TextStyle};

/// The text of a cell, and its style on a terminal.
pub(crate) type Cell = (String, Option<TextStyle>);

/// A table that rows are added to.
pub(crate) struct TextTable {
    headings: Vec<String>,
    /// For each column, whether it is a column of numbers, aligned right.
    numbers: Vec<bool>,
    rows: Vec<Vec<Cell>>,
    colour: bool,
    /// The most characters of each row's last text on other output than a terminal; `None` = it is not cut.
    cut: Option<usize>,
}

/// The most lines of a cut last text on a terminal, approximately.
const CUT_LINES: usize = 2;

impl TextTable {
    /// Makes a table with these headings. A heading that begins with `>` marks a column of numbers, aligned
    /// right.
    pub(crate) fn new(out: &TerminalOutput, headings: &[&str]) -> Self {
        Self::with_headings(headings, out.has_colours())
    }

    /// As [`Self::new`], with or without colours.
    fn with_headings(headings: &[&str], colour: bool) -> Self {
        let numbers = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let headings =
            headings.iter().map(|it| spell_out_hidden(it.trim_start_matches('>'))).collect();
        Self { headings, numbers, rows: Vec::new(), colour, cut: None }
    }

    /// Cuts the last text of each row: at `most` characters, or on a wide terminal at about two lines.
    #[must_use]
    pub(crate) fn with_cut(self, most: usize) -> Self {
        Self { cut: Some(most), ..self }
    }

    /// Adds a row. Characters that a terminal would not show are escaped, even if the text was escaped
    /// before.
    pub(crate) fn push_row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells = cells.into_iter().map(|(text, style)| (spell_out_hidden(&text), style));
        self.rows.push(cells.collect());
    }

    /// Prints the table to stdout.
    pub(crate) fn print_to(self, out: &TerminalOutput) {
        for line in self.render_lines(out.terminal_columns()) {
            out.print_line(line);
        }
    }

    /// The lines for a terminal of this many columns; `None` = for a file or a program.
    fn render_lines(mut self, columns: Option<usize>) -> Vec<String> {
        self.cut_last(columns);
        match columns {
            Some(_) => self.map_cells(keep_together),
            None => {
                let headed = self.headings.iter().any(|heading| !heading.is_empty());
                self.map_cells(if headed { one_field } else { one_line });
            }
        }
        let Self { headings, numbers, rows, colour, cut: _ } = &self;
        let layout = TableLayout { headings, numbers, rows, colour: *colour };
        match columns {
            Some(columns) => layout.screen_lines(columns),
            None => layout.unbounded_lines(),
        }
    }

    /// Cuts the last text of each row, if the table has a limit.
    fn cut_last(&mut self, columns: Option<usize>) {
        let Some(least) = self.cut else { return };
        let Self { headings, numbers, rows, colour, .. } = &*self;
        let layout = TableLayout { headings, numbers, rows, colour: *colour };
        let room = columns.map_or(0, |columns| layout.room_for_last(columns));
        let most = least.max(CUT_LINES * room);
        let last = self.headings.len().saturating_sub(1);
        for (text, _) in self.rows.iter_mut().filter_map(|row| row.get_mut(last)) {
            if let Some((end, _)) = text.char_indices().nth(most) {
                text.truncate(end);
                text.push('…');
            }
        }
    }

    fn map_cells(&mut self, change: impl Fn(&str) -> String) {
        self.rows.iter_mut().flatten().for_each(|(text, _)| *text = change(text));
    }
}

/// Escapes all characters that a terminal would not show, except line feeds.
fn spell_out_hidden(text: &str) -> String {
    let lines = text.split('\n').map(|line| ShownText::new(line).to_string());
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces spaces so that an arrow stays with its name, and a date with its time, when lines are wrapped.
fn keep_together(text: &str) -> String {
    let mut text = text.replace("→ ", "→\u{a0}");
    if let Some(at) = TIME.find('h').filter(|_| is_time(&text)) {
        text.replace_range(at - 1..at, "\u{a0}");
    }
    text
}

/// The form of a time in a cell: each letter stands for a digit.
const TIME: &str = "yyyy-mm-dd hh:mm";

fn is_time(text: &str) -> bool {
    let fits =
        |(c, form): (char, char)| c == form || form.is_ascii_alphabetic() && c.is_ascii_digit();
    text.len() == TIME.len() && text.chars().zip(TIME.chars()).all(fits)
}

/// A cell without two spaces in a row, so that `awk -F '  +'` can split a line into cells.
fn one_field(text: &str) -> String {
    match one_line(text) {
        text if text.is_empty() => "-".to_owned(),
        text => text,
    }
}

/// A cell on one line, with single spaces. Numbers have no spaces between thousands, so that a program can
/// parse them.
fn one_line(text: &str) -> String {
    let words = text.split([' ', '\n']).filter(|word| !word.is_empty());
    let text = words.collect::<Vec<_>>().join(" ");
    let groups = text.split(GROUP).all(|group| group.bytes().all(|byte| byte.is_ascii_digit()));
    if groups { text.replace(GROUP, "") } else { text }
}

/// The space between groups of thousands: one that is not broken at a line end.
const GROUP: char = '\u{a0}';

/// A cell without a style.
pub(crate) fn plain_cell(text: impl ToString) -> Cell {
    (text.to_string(), None)
}

pub(crate) fn styled_cell(style: TextStyle, text: impl ToString) -> Cell {
    (text.to_string(), Some(style))
}

/// A count with a space between groups of thousands, for example `1 234 567`.
pub(crate) fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text
}

/// A number of things, for example `1 step`, `2 steps`.
pub(crate) fn format_quantity(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", format_count(number))
}

/// A size in the largest unit of which it is at least one, for example `3.2 MiB`.
pub(crate) fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A time in microseconds, for example `820 µs`, `12.4 ms`, `3.20 s`.
pub(crate) fn format_micros(time: u64) -> String {
    match time {
        0..1_000 => format!("{time} µs"),
        1_000..1_000_000 => format!("{:.1} ms", time as f64 / 1e3),
        _ => format!("{:.2} s", time as f64 / 1e6),
    }
}

/// An amount of fuel, for example `608.7 k`, `2.3 M`, `20.0 G`.
pub(crate) fn format_fuel(amount: u64) -> String {
    match amount {
        0..1_000 => amount.to_string(),
        1_000..1_000_000 => format!("{:.1} k", amount as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", amount as f64 / 1e6),
        _ => format!("{:.1} G", amount as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests;
