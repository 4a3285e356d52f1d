//! Tables for people: columns without lines, wrapped to the terminal; plain where there is none.

use comfy_table::presets::NOTHING;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table as Inner,
    Width,
};

use crate::out::{Out, Style};

/// Characters of a word that a table tries to keep in one piece: an id, an agent's path.
const LONGEST_WORD: usize = 32;

/// Characters of a word below which a narrow terminal has to look after itself.
const SHORTEST_PIECE: usize = 8;

/// Characters that the last column has at least, where its texts are that long: there stand tasks
/// and descriptions, which would be columns of single words.
const LAST: usize = 12;

/// Spaces between two columns.
const GAP: u16 = 2;

/// Where a word that is too long is best broken: after one of these.
const JOINTS: &[char] = &['-', '/', '_', '.', ':', ',', ';', '=', '@', '?', '&'];

/// A table being filled.
pub(crate) struct Table {
    headings: Vec<String>,
    /// Which columns are set flush right.
    numbers: Vec<bool>,
    rows: Vec<Vec<(String, Option<Style>)>>,
    colour: bool,
}

impl Table {
    /// A table with these headings. A heading that begins with `>` marks a column of numbers,
    /// set flush right.
    pub(crate) fn new(out: &Out, headings: &[&str]) -> Self {
        Self::of(headings, out.colours())
    }

    fn of(headings: &[&str], colour: bool) -> Self {
        let numbers = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let headings = headings.iter().map(|it| it.trim_start_matches('>').to_owned()).collect();
        Self { headings, numbers, rows: Vec::new(), colour }
    }

    /// Adds a row. The text is escaped already.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Option<Style>)>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it to stdout.
    pub(crate) fn print(self, out: &Out) {
        let mut inner = Inner::new();
        if !self.colour {
            inner.force_no_tty();
        }
        for line in self.lines(inner) {
            out.line(line.trim_end());
        }
    }

    /// The lines. Where `inner` knows how wide it may be, texts are wrapped and numbers are not,
    /// and words stay whole while there is room; past that they break at a joint.
    fn lines(mut self, mut inner: Inner) -> Vec<String> {
        let width = inner.width();
        inner.load_preset(NOTHING).set_content_arrangement(match width {
            Some(_) => ContentArrangement::Dynamic,
            None => ContentArrangement::Disabled,
        });
        let mut piece = LONGEST_WORD;
        if let Some(width) = width {
            // An arrow stays with its name.
            let texts = self.rows.iter_mut().flatten();
            texts.for_each(|(text, _)| *text = text.replace("→ ", "→\u{a0}"));
            piece = self.piece(usize::from(width));
            self.break_words(piece);
        }
        let words = self.longest_words();
        // Without a header where there is nothing to say in it.
        if self.headings.iter().any(|heading| !heading.is_empty()) {
            let bold = |cell: Cell| match self.colour {
                true => cell.add_attribute(Attribute::Bold),
                false => cell,
            };
            inner.set_header(self.headings.iter().map(|heading| bold(Cell::new(heading))));
        }
        for row in self.rows {
            inner.add_row(row.into_iter().map(|(text, style)| cell(text, style, self.colour)));
        }
        for ((column, number), word) in inner.column_iter_mut().zip(&self.numbers).zip(words) {
            column.set_padding((0, GAP));
            if *number {
                column.set_cell_alignment(CellAlignment::Right);
                column.set_constraint(ColumnConstraint::ContentWidth);
            } else if width.is_some() {
                // The boundary counts the padding too.
                let least = u16::try_from(word.min(piece)).unwrap_or(GAP).saturating_add(GAP);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        inner.lines().collect()
    }

    /// How many characters of a word stay together in a table of this width.
    fn piece(&self, width: usize) -> usize {
        let words = self.longest_words();
        let columns = || words.iter().zip(&self.numbers);
        let fits = |piece: &usize| {
            let needed = columns().map(|(word, number)| match number {
                true => *word,
                false => *word.min(piece),
            });
            needed.sum::<usize>() + words.len() * usize::from(GAP) <= width
        };
        (SHORTEST_PIECE..=LONGEST_WORD).rev().find(fits).unwrap_or(SHORTEST_PIECE)
    }

    /// Characters of the longest word in each column; of a column of numbers, the longest cell. The
    /// last column has some room to spare.
    fn longest_words(&self) -> Vec<usize> {
        let measure = |number: bool, text: &str| match number {
            true => text.chars().count(),
            false => text.split([' ', '\n']).map(|word| word.chars().count()).max().unwrap_or(0),
        };
        let columns = self.headings.iter().zip(&self.numbers).enumerate();
        let longest = columns.map(|(at, (heading, number))| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let texts = cells.map(|(text, _)| text.as_str()).chain([heading.as_str()]);
            texts.map(|text| measure(*number, text)).max().unwrap_or(0)
        });
        let mut longest: Vec<usize> = longest.collect();
        let cells = self.rows.iter().filter_map(|row| row.get(longest.len().checked_sub(1)?));
        let widest = cells.map(|(text, _)| text.chars().count()).max().unwrap_or(0);
        if let Some(last) = longest.last_mut() {
            *last = (*last).max(widest.min(LAST));
        }
        longest
    }

    /// Breaks words of texts that have more than `piece` characters.
    fn break_words(&mut self, piece: usize) {
        for row in &mut self.rows {
            let texts = row.iter_mut().zip(&self.numbers).filter(|(_, number)| !**number);
            for ((text, _), _) in texts {
                let words = text.split(' ').map(|word| broken(word, piece));
                *text = words.collect::<Vec<_>>().join(" ");
            }
        }
    }
}

/// A word in lines of at most `piece` characters, where its joints allow.
fn broken(word: &str, piece: usize) -> String {
    let mut lines = Vec::new();
    let mut rest = word;
    while let Some((end, _)) = rest.char_indices().nth(piece) {
        let head = rest.get(..end).unwrap_or(rest);
        let cut = head.rfind(JOINTS).map_or(end, |at| at + 1);
        let (line, more) = rest.split_at(cut);
        lines.push(line);
        rest = more;
    }
    lines.push(rest);
    lines.join("\n")
}

fn cell(text: String, style: Option<Style>, colour: bool) -> Cell {
    match style.filter(|_| colour) {
        None => Cell::new(text),
        Some(Style::Bold) => Cell::new(text).add_attribute(Attribute::Bold),
        Some(Style::Dim) => Cell::new(text).add_attribute(Attribute::Dim),
        Some(Style::Red) => Cell::new(text).fg(Color::Red),
        Some(Style::Green) => Cell::new(text).fg(Color::Green),
        Some(Style::Yellow) => Cell::new(text).fg(Color::Yellow),
        Some(Style::Cyan) => Cell::new(text).fg(Color::Cyan),
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

    /// The lines of a table like that of the receipts, this wide.
    fn at(width: u16) -> Vec<String> {
        let mut table = Table::of(&["agent", "tool", "ended", ">fuel", ">refused", "why"], false);
        let texts = ["→ research-assistant#0", "file_search", "tool error: not-found"];
        let more = ["1.2\u{a0}G", "0", "`/workspace/nowhere/at-all.txt` does not exist"];
        table.row(texts.into_iter().chain(more).map(plain));
        let mut inner = Inner::new();
        inner.set_width(width);
        table.lines(inner)
    }

    #[test]
    fn words_stay_whole_where_there_is_room_and_break_at_joints_where_there_is_not() {
        let wide = at(120).join("\n");
        for word in ["research-assistant#0", "`/workspace/nowhere/at-all.txt`", "not-found"] {
            assert!(wide.contains(word), "{word} in\n{wide}");
        }
        let lines = at(80);
        let narrow = lines.join("\n");
        assert!(lines.iter().all(|line| line.trim_end().chars().count() <= 80), "{narrow}");
        for word in ["research-", "assistant#0", "file_search", "not-found", "1.2\u{a0}G", "exist"]
        {
            assert!(narrow.contains(word), "{word} in\n{narrow}");
        }
    }

    #[test]
    fn a_long_word_breaks_after_its_last_joint_that_fits() {
        assert_eq!(broken("general-purpose", 12), "general-\npurpose");
        assert_eq!(broken("a/bc/def", 5), "a/bc/\ndef");
        assert_eq!(broken("äöüäöü", 4), "äöüä\nöü");
        assert_eq!(broken("short", 8), "short");
    }

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
