//! Lays out the cells of a table: in columns, as wide as the screen allows. If the columns do not fit side by
//! side, the last text is placed below its row; on a very narrow screen, each cell has its own line. A word
//! that fits on a line is never broken, so that an id, a path or a name can be copied and searched for.

use unicode_width::UnicodeWidthStr as _;

use super::Cell;
use crate::term::out::{self, TextStyle};
use crate::term::wrap::words_and_commands;

/// The columns of each piece of a word that is too long for any line and has to be broken.
const PIECE: usize = 32;

/// The columns that a text must have beside its heading; with fewer, the heading gets a separate line.
const SHORTEST_PIECE: usize = 8;

/// The columns by which a last text below its row is indented.
const HANG: usize = 4;

/// The most lines of a short last text beside its row; a longer one is placed below.
const BESIDE: usize = 2;

/// The columns from which a text is readable, however many lines it has.
const WELL_READ: usize = 40;

/// The columns up to which a text is kept on one line before longer texts get more room.
const SHORT_TEXT: usize = 22;

/// The least columns of a long last text, because a description would otherwise become a column of single
/// words.
const LAST: usize = 12;

/// The columns of the narrowest supported screen; lines are never made narrower.
const NARROWEST: usize = 20;

/// The number of spaces between two columns.
const GAP: usize = 2;

/// Characters after which a word that is too long is preferably broken.
const JOINTS: &[char] = &['-', '/', '_', '.', ':', ',', ';', '=', '@', '?', '&'];

/// The rows and columns of a table, with the style of its output.
pub(crate) struct TableLayout<'a> {
    pub(crate) headings: &'a [String],
    /// For each column, whether it is a column of numbers, aligned right.
    pub(crate) numbers: &'a [bool],
    pub(crate) rows: &'a [Vec<Cell>],
    pub(crate) colour: bool,
}

/// The arrangement of a table's rows on a screen.
enum RowPlan {
    /// All columns are side by side, with these widths.
    Beside(Vec<usize>),
    /// All columns but the last are side by side, with these widths; the last text is below its row.
    Hanging(Vec<usize>),
    /// Each cell is below the one before, with its heading.
    Below,
}

impl TableLayout<'_> {
    /// The lines for a screen of this many columns. No line is longer, whatever the cells contain.
    pub(crate) fn screen_lines(&self, width: usize) -> Vec<String> {
        let width = width.max(NARROWEST);
        match self.plan_rows(width) {
            RowPlan::Beside(widths) => self.side_by_side(&widths),
            RowPlan::Hanging(widths) => self.hanging_lines(&widths, width),
            RowPlan::Below => self.one_below_the_other(width),
        }
    }

    /// The columns for the last text on a screen of `width` columns, beside its row or below.
    pub(crate) fn room_for_last(&self, width: usize) -> usize {
        let others = self.column_range().len().saturating_sub(1);
        let taken: usize = (0..others).map(|column| self.natural_width(column) + GAP).sum();
        let beside = width.saturating_sub(taken);
        // A narrower text would be placed below its row, where it has almost the whole width.
        if beside < WELL_READ { width.saturating_sub(HANG) } else { beside }
    }

    /// The lines for a file or a program: one line for each row, without wrapping.
    pub(crate) fn unbounded_lines(&self) -> Vec<String> {
        let widths =
            self.column_range().map(|column| self.natural_width(column)).collect::<Vec<_>>();
        self.side_by_side(&widths)
    }

    fn column_range(&self) -> std::ops::Range<usize> {
        0..self.headings.len()
    }

    /// Returns whether any column has a heading.
    fn has_headings(&self) -> bool {
        self.headings.iter().any(|heading| !heading.is_empty())
    }

    fn column_texts(&self, column: usize) -> impl Iterator<Item = &str> {
        let cells = self.rows.iter().filter_map(move |row| row.get(column));
        let heading = self.headings.get(column).map(String::as_str);
        cells.map(|(text, _)| text.as_str()).chain(heading)
    }

    fn is_number(&self, column: usize) -> bool {
        self.numbers.get(column).copied().unwrap_or(false)
    }

    /// The width of a column if nothing in it is wrapped.
    fn natural_width(&self, column: usize) -> usize {
        self.column_texts(column).flat_map(|text| text.split('\n')).map(width_of).max().unwrap_or(0)
    }

    /// The least width of a column, by its longest word that fits on a line of `line` columns. Numbers are
    /// never wrapped.
    fn least_width(&self, column: usize, line: usize) -> usize {
        if self.is_number(column) {
            return self.natural_width(column);
        }
        let lines = self.column_texts(column).flat_map(|text| text.split('\n'));
        let words = lines.flat_map(words_and_commands);
        let whole = |width: usize| if width > line { PIECE.min(line) } else { width };
        let longest = words.map(|word| whole(width_of(word))).max().unwrap_or(0);
        let is_last = column + 1 == self.headings.len();
        if is_last { longest.max(self.natural_width(column).min(LAST)) } else { longest }
    }

    /// Chooses the arrangement of the rows for a screen of `width` columns.
    fn plan_rows(&self, width: usize) -> RowPlan {
        let all = self.headings.len();
        let beside = self.fit_widths(all, width);
        if let Some(widths) = &beside
            && !self.is_squeezed(widths)
        {
            return RowPlan::Beside(widths.clone());
        }
        let may_hang = all > 1 && !self.is_number(all - 1);
        let hanging = may_hang.then(|| self.fit_widths(all - 1, width)).flatten();
        match (beside, hanging) {
            (None, Some(hanging)) => RowPlan::Hanging(hanging),
            // Only if the rest of each row then fits on one line.
            (Some(_), Some(hanging)) if self.is_natural(&hanging) => RowPlan::Hanging(hanging),
            (Some(beside), _) => RowPlan::Beside(beside),
            (None, None) => RowPlan::Below,
        }
    }

    /// Returns whether the last text would become a high and narrow column.
    fn is_squeezed(&self, widths: &[usize]) -> bool {
        let Some(last) = widths.last() else { return false };
        *last < WELL_READ && self.natural_width(widths.len() - 1) > BESIDE * last
    }

    fn is_natural(&self, widths: &[usize]) -> bool {
        widths.iter().enumerate().all(|(column, width)| *width == self.natural_width(column))
    }

    /// The widths of the first `columns` columns, for lines of at most `width`. `None` = their longest words
    /// do not fit side by side.
    fn fit_widths(&self, columns: usize, width: usize) -> Option<Vec<usize>> {
        let room = width.checked_sub(GAP * columns.saturating_sub(1))?;
        let natural = (0..columns).map(|column| self.natural_width(column)).collect::<Vec<_>>();
        if natural.iter().sum::<usize>() <= room {
            return Some(natural);
        }
        let least = (0..columns).map(|column| self.least_width(column, width));
        let mut widths = least.collect::<Vec<_>>();
        let left = room.checked_sub(widths.iter().sum())?;
        for _ in 0..left {
            let Some(column) = neediest_column(&widths, &natural) else { break };
            if let Some(width) = widths.get_mut(column) {
                *width += 1;
            }
        }
        Some(widths)
    }

    /// The lines of all rows: each row side by side except for its last text, which is indented below.
    fn hanging_lines(&self, widths: &[usize], screen: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let last = widths.len();
        if self.has_headings() {
            let bold = |heading: &String| (heading.clone(), Some(TextStyle::Bold));
            let headings = self.headings.iter().map(bold).collect::<Vec<_>>();
            self.hang_row(&headings, last, widths, screen, &mut lines);
        }
        for row in self.rows {
            self.hang_row(row, last, widths, screen, &mut lines);
        }
        lines
    }

    /// Appends one row and its indented last text to `lines`.
    fn hang_row(
        &self,
        row: &[Cell],
        last: usize,
        widths: &[usize],
        screen: usize,
        lines: &mut Vec<String>,
    ) {
        self.set_row(row, widths, lines);
        let text = row.get(last).map_or("", |(text, _)| text.as_str());
        for LinePiece { text, outdented } in wrap_pieces(text, screen.saturating_sub(HANG), screen)
        {
            if text.trim().is_empty() {
                continue;
            }
            let indent = if outdented { 0 } else { HANG };
            lines.push(format!("{}{}", " ".repeat(indent), self.paint_cell(row, last, &text)));
        }
    }

    /// The lines of all rows with all columns side by side, with the headings above.
    fn side_by_side(&self, widths: &[usize]) -> Vec<String> {
        let mut lines = Vec::new();
        if self.has_headings() {
            let bold = |heading: &String| (heading.clone(), Some(TextStyle::Bold));
            let headings = self.headings.iter().map(bold).collect::<Vec<_>>();
            self.set_row(&headings, widths, &mut lines);
        }
        for row in self.rows {
            self.set_row(row, widths, &mut lines);
        }
        lines
    }

    /// Appends one row to `lines`; it takes as many lines as its highest cell.
    fn set_row(&self, row: &[Cell], widths: &[usize], lines: &mut Vec<String>) {
        let cells = row.iter().zip(widths).map(|((text, _), width)| wrap_text(text, *width));
        let cells = cells.collect::<Vec<_>>();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let mut set = String::new();
            // Spaces are counted first, and written only before a following text, so that no line ends with
            // spaces.
            let mut owed = 0;
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let text = cell.get(line).map_or("", String::as_str);
                let space = width.saturating_sub(width_of(text));
                let number = self.is_number(column);
                if !text.is_empty() {
                    set.push_str(&" ".repeat(owed + if number { space } else { 0 }));
                    set.push_str(&self.paint_cell(row, column, text));
                    owed = 0;
                }
                owed += GAP + if number && !text.is_empty() { 0 } else { space };
                if text.is_empty() {
                    owed += width - space;
                }
            }
            lines.push(set);
        }
    }

    /// The lines of all rows, each as a block of `heading  text` lines, with a blank line between blocks.
    fn one_below_the_other(&self, width: usize) -> Vec<String> {
        let label = self.headings.iter().map(|heading| width_of(heading)).max().unwrap_or(0);
        // On a narrow screen, a heading gets a separate line above its text.
        let beside = label + GAP + SHORTEST_PIECE <= width;
        let indent = if beside && label > 0 { label + GAP } else { 0 };
        let mut lines = Vec::new();
        for row in self.rows {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            for (column, ((text, _), heading)) in row.iter().zip(self.headings).enumerate() {
                if text.is_empty() {
                    continue;
                }
                let mut heads =
                    wrap_text(heading, width).into_iter().filter(|_| !heading.is_empty());
                if !beside {
                    lines.extend(heads.by_ref().map(|head| self.paint_bold(&head)));
                }
                for LinePiece { text, outdented } in
                    wrap_pieces(text, width.saturating_sub(indent), width)
                {
                    let text = self.paint_cell(row, column, text.trim_start());
                    if outdented {
                        // A word needs the whole line, so its heading is on the line above.
                        lines.extend(heads.by_ref().map(|head| self.paint_bold(&head)));
                        lines.push(text);
                        continue;
                    }
                    let head = heads.next().unwrap_or_default();
                    let space = " ".repeat(indent.saturating_sub(width_of(&head)));
                    lines.push(format!("{}{space}{text}", self.paint_bold(&head)));
                }
            }
        }
        lines
    }

    fn paint_bold(&self, text: &str) -> String {
        out::paint_text(self.colour && !text.is_empty(), TextStyle::Bold, text)
    }

    /// Applies the style of the cell to a piece of its text.
    fn paint_cell(&self, row: &[Cell], column: usize, text: &str) -> String {
        match row.get(column).and_then(|(_, style)| *style) {
            Some(style) => out::paint_text(self.colour, style, text),
            None => text.to_owned(),
        }
    }
}

/// The column that gets the next free column of the screen: first short texts until they fit on one line,
/// then the column with the most lines.
fn neediest_column(widths: &[usize], natural: &[usize]) -> Option<usize> {
    let wanting = || {
        let all = widths.iter().zip(natural).enumerate();
        all.filter(|(_, (width, natural))| width < natural)
    };
    let short = wanting().filter(|(_, (_, natural))| **natural <= SHORT_TEXT);
    let short = short.min_by_key(|(_, (width, natural))| **natural - **width);
    // The number of lines that a cell takes, in thousandths.
    let lines = |width: usize, natural: usize| natural * 1_000 / width.max(1);
    let highest = wanting().max_by_key(|(_, (width, natural))| lines(**width, **natural));
    short.or(highest).map(|(column, _)| column)
}

/// The number of columns that a text takes on a terminal: two for a Chinese character or an emoji.
pub(crate) fn width_of(text: &str) -> usize {
    text.width()
}

/// One line of a wrapped text.
struct LinePiece {
    text: String,
    /// True if the line has no indent, because its word would not fit with it.
    outdented: bool,
}

/// Breaks a text into lines of at most `width` columns: at spaces, and within a word only if the word is
/// longer than a line.
pub(crate) fn wrap_text(text: &str, width: usize) -> Vec<String> {
    wrap_pieces(text, width, width).into_iter().map(|piece| piece.text).collect()
}

/// As `wrap_text`, for indented lines. A word that fits into `wide` columns without the indent is not broken.
fn wrap_pieces(text: &str, width: usize, wide: usize) -> Vec<LinePiece> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        if width_of(paragraph) <= width {
            lines.push(LinePiece { text: paragraph.to_owned(), outdented: false });
            continue;
        }
        let mut line = String::new();
        // True if nothing is on this line yet, not even an indent.
        let mut fresh = true;
        for word in words_and_commands(paragraph) {
            // A command is not broken here; the terminal itself breaks one that is longer than a line.
            let is_command = word.contains(' ') && width_of(word) > width;
            if is_command || (width + 1..=wide).contains(&width_of(word)) {
                flush_line(&mut line, &mut lines);
                lines.push(LinePiece { text: word.to_owned(), outdented: true });
                fresh = true;
                continue;
            }
            let mut pieces = break_word(word, width).into_iter();
            let first = pieces.next().unwrap_or_default();
            let space = usize::from(!fresh);
            if width_of(&line) + space + width_of(first) <= width {
                line.push_str(if fresh { "" } else { " " });
            } else {
                flush_line(&mut line, &mut lines);
            }
            line.push_str(first);
            fresh = false;
            for piece in pieces {
                flush_line(&mut line, &mut lines);
                line.push_str(piece);
            }
        }
        flush_line(&mut line, &mut lines);
    }
    lines
}

/// Ends the line, unless it consists only of an indent whose word did not fit.
fn flush_line(line: &mut String, lines: &mut Vec<LinePiece>) {
    let ended = std::mem::take(line);
    let text = ended.trim_end();
    if !text.is_empty() {
        lines.push(LinePiece { text: text.to_owned(), outdented: false });
    }
}

/// Breaks a word into pieces of at most `width` columns, preferably after one of `JOINTS`.
fn break_word(word: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while width_of(rest) > width {
        let fits = |end: &usize| rest.get(..*end).is_some_and(|head| width_of(head) <= width);
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let first = rest.chars().next().map_or(0, char::len_utf8);
        // A character wider than the column is a piece all the same.
        let end = ends.take_while(fits).last().unwrap_or(first);
        let head = rest.get(..end).unwrap_or(rest);
        let cut = head.rfind(JOINTS).map_or(end, |at| at + 1);
        let (piece, more) = rest.split_at(cut);
        pieces.push(piece);
        rest = more;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_breaks_after_its_last_joint_that_fits() {
        assert_eq!(break_word("general-purpose", 12), ["general-", "purpose"]);
        assert_eq!(break_word("a/bc/def", 5), ["a/bc/", "def"]);
        assert_eq!(break_word("äöüäöü", 4), ["äöüä", "öü"]);
        assert_eq!(break_word("short", 8), ["short"]);
        assert_eq!(break_word("漢字漢字漢", 5), ["漢字", "漢字", "漢"]);
    }

    #[test]
    fn a_command_is_one_word() {
        let text = "one `belljar grant scout --tool shell` and two";
        let lines = wrap_text(text, 20);
        assert_eq!(lines, ["one", "`belljar grant scout --tool shell`", "and two"]);
    }

    #[test]
    fn a_text_breaks_at_spaces_and_keeps_its_indent() {
        assert_eq!(wrap_text("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap_text("    → one two", 9), ["    → one", "two"]);
        assert_eq!(wrap_text("", 4), [""]);
        assert_eq!(wrap_text("a\nbc", 4), ["a", "bc"]);
        assert_eq!(
            wrap_text("to https://host.test/path/file", 12)[..2],
            ["to https://", "host.test/"]
        );
    }
}
