//! Two texts compared line by line, in the formats of GNU diff.

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};
use std::fmt::Write;

/// What does not count as a difference.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Ignore {
    /// Upper and lower case.
    pub(super) case: bool,
    /// How much white space there is.
    pub(super) space_amount: bool,
    /// All white space.
    pub(super) space: bool,
    /// Lines that are empty.
    pub(super) blank_lines: bool,
    /// A carriage return at the end of a line.
    pub(super) trailing_cr: bool,
}

impl Ignore {
    /// What is compared of a line.
    fn key(self, line: &str) -> String {
        let mut key = match (self.space, self.space_amount) {
            (true, _) => line.split_whitespace().collect(),
            (false, true) => {
                let words: Vec<_> = line.split_whitespace().collect();
                let indent = if line.starts_with(char::is_whitespace) { " " } else { "" };
                format!("{indent}{}", words.join(" "))
            }
            (false, false) if self.trailing_cr => line.trim_end_matches(['\r', '\n']).to_owned(),
            (false, false) => line.to_owned(),
        };
        if self.case {
            key = key.to_lowercase();
        }
        key
    }
}

/// The comparison of two texts.
pub(super) struct Comparison<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    ops: Vec<DiffOp>,
}

impl<'a> Comparison<'a> {
    /// Lines keep their ends, so that a missing last one is a difference.
    pub(super) fn new(old: &'a str, new: &'a str, ignore: Ignore) -> Comparison<'a> {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        let keys = |lines: &[&str]| lines.iter().map(|line| ignore.key(line)).collect::<Vec<_>>();
        let mut ops = capture_diff_slices(Algorithm::Myers, &keys(&old), &keys(&new));
        if ignore.blank_lines {
            let blank =
                |lines: &[&str]| lines.iter().all(|line| line.trim_end_matches('\n').is_empty());
            ops.retain(|op| {
                matches!(op, DiffOp::Equal { .. })
                    || !(blank(&old[op.old_range()]) && blank(&new[op.new_range()]))
            });
        }
        Comparison { old, new, ops }
    }

    pub(super) fn is_same(&self) -> bool {
        self.ops.iter().all(|op| matches!(op, DiffOp::Equal { .. }))
    }

    /// `2c2`, `< old`, `---`, `> new`.
    pub(super) fn normal(&self) -> String {
        let mut text = String::new();
        for op in self.ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
            let (old, new) = (op.old_range(), op.new_range());
            let command = match (old.is_empty(), new.is_empty()) {
                (true, _) => 'a',
                (_, true) => 'd',
                _ => 'c',
            };
            let _ = writeln!(text, "{}{command}{}", lines(&old), lines(&new));
            marked(&mut text, "< ", &self.old[old]);
            if command == 'c' {
                text.push_str("---\n");
            }
            marked(&mut text, "> ", &self.new[new]);
        }
        text
    }

    /// Hunks with `context` lines around them, without the two header lines.
    pub(super) fn unified(&self, context: usize) -> String {
        let mut text = String::new();
        for hunk in group_diff_ops(self.ops.clone(), context) {
            let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
            let old = first.old_range().start..last.old_range().end;
            let new = first.new_range().start..last.new_range().end;
            let _ = writeln!(text, "@@ -{} +{} @@", hunk_range(&old), hunk_range(&new));
            for op in &hunk {
                if matches!(op, DiffOp::Equal { .. }) {
                    marked(&mut text, " ", &self.old[op.old_range()]);
                } else {
                    marked(&mut text, "-", &self.old[op.old_range()]);
                    marked(&mut text, "+", &self.new[op.new_range()]);
                }
            }
        }
        text
    }
}

fn marked(text: &mut String, mark: &str, lines: &[&str]) {
    for line in lines {
        text.push_str(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// `3`, `3,5`, or the line before where there is none.
fn lines(range: &std::ops::Range<usize>) -> String {
    match range.len() {
        0 => range.start.to_string(),
        1 => (range.start + 1).to_string(),
        _ => format!("{},{}", range.start + 1, range.end),
    }
}

fn hunk_range(range: &std::ops::Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => (range.start + 1).to_string(),
        length => format!("{},{length}", range.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_end_of_line_is_shown() {
        let comparison = Comparison::new("a\nb", "a\nb\n", Ignore::default());
        assert_eq!(comparison.normal(), "2c2\n< b\n\\ No newline at end of file\n---\n> b\n");
    }

    #[test]
    fn an_empty_side_has_the_range_of_the_line_before() {
        let comparison = Comparison::new("", "a\n", Ignore::default());
        assert_eq!(comparison.unified(3), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(comparison.normal(), "0a1\n> a\n");
    }

    #[test]
    fn what_is_ignored_is_no_difference() {
        let same = |ignore| Comparison::new("A  b\n\n", "a b\n", ignore).is_same();
        assert!(!same(Ignore::default()));
        let ignore =
            Ignore { case: true, space_amount: true, blank_lines: true, ..Ignore::default() };
        assert!(same(ignore));
    }
}
