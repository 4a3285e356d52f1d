//! How the text of a notebook is laid out, so that a new piece looks like the rest.

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value};

/// How deep cells stand: in an array, in an object.
const DEPTH: usize = 2;

/// Line breaks and indentation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout<'a> {
    /// `\n`, `\r\n`, or nothing when all stands in one line.
    newline: &'a str,
    /// White space for each level.
    unit: &'a str,
}

/// What Jupyter itself writes.
const JUPYTER: Layout<'static> = Layout { newline: "\n", unit: " " };

impl<'a> Layout<'a> {
    /// Reads it off the white space between the bracket of the array of cells and the first
    /// cell, if there is one.
    pub(crate) fn of(gap: Option<&'a str>) -> Layout<'a> {
        let Some(gap) = gap else { return JUPYTER };
        let Some((_, indent)) = gap.rsplit_once('\n') else {
            return Layout { newline: "", unit: "" };
        };
        let newline = if gap.contains("\r\n") { "\r\n" } else { "\n" };
        // JSON allows white space of one byte only, so half of it is a place to cut.
        let unit = if indent.len() % DEPTH == 0 { &indent[..indent.len() / DEPTH] } else { " " };
        Layout { newline, unit }
    }

    /// The start of a line at this depth.
    pub(crate) fn line(&self, depth: usize) -> String {
        format!("{}{}", self.newline, self.unit.repeat(depth))
    }

    /// A cell as JSON text, to stand among the others.
    pub(crate) fn cell(&self, cell: &Map<String, Value>) -> Result<String, serde_json::Error> {
        if self.newline.is_empty() {
            return serde_json::to_string(cell);
        }
        let mut bytes = Vec::new();
        let format = PrettyFormatter::with_indent(self.unit.as_bytes());
        cell.serialize(&mut Serializer::with_formatter(&mut bytes, format))?;
        // A line break within a string is written `\n`, so these are the formatter's own.
        Ok(String::from_utf8_lossy(&bytes).replace('\n', &self.line(DEPTH)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_the_first_cell() {
        for (gap, newline, unit) in [
            (Some("\n  "), "\n", " "),
            (Some("\r\n    "), "\r\n", "  "),
            (Some("\n\t\t"), "\n", "\t"),
            (Some("\n   "), "\n", " "),
            (Some("\n"), "\n", ""),
            (Some(""), "", ""),
            (None, "\n", " "),
        ] {
            assert_eq!(Layout::of(gap), Layout { newline, unit }, "{gap:?}");
        }
    }
}
