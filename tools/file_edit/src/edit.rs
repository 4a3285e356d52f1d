//! The replacement itself, as a function of texts.

use crate::MAX_FILE;
use belljar_guest::ToolError;
use std::fmt::Write as _;

/// Line numbers named in an error: enough to choose from.
const MAX_NAMED: usize = 10;

/// The most edits of one call. A model that sends more should write the file anew.
const MAX_EDITS: usize = 200;

/// What is to be replaced by what.
#[derive(Clone, Copy)]
pub(crate) struct Edit<'a> {
    pub(crate) path: &'a str,
    pub(crate) old_text: &'a str,
    pub(crate) new_text: &'a str,
    pub(crate) replace_all: bool,
}

/// A file's new text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Edited {
    pub(crate) text: String,
    /// What was done, for the model.
    pub(crate) summary: String,
}

/// Applies one edit to a file's text.
pub(crate) fn one(edit: &Edit<'_>, file: &str) -> Result<Edited, ToolError> {
    edit.apply(file, has_only_crlf(file))
}

/// Applies edits in order, each to the result of the one before. The first that fails fails
/// all of them, with an error that counts from 1.
pub(crate) fn all(edits: &[Edit<'_>], file: &str) -> Result<Edited, ToolError> {
    let count = edits.len();
    if count == 0 || count > MAX_EDITS {
        let text = format!("`edits` has {count} edits; there are 1 to {MAX_EDITS} in one call");
        return Err(invalid(&text));
    }
    // Decided once: an edit that deletes the only line break must not change the next one's.
    let crlf = has_only_crlf(file);
    let mut text = file.to_owned();
    let mut summary = format!("{count} edits");
    for (number, edit) in (1..).zip(edits) {
        let done = edit.apply(&text, crlf).map_err(|error| {
            with_text(error, |why| format!("edit {number} of {count}: {why}; nothing was changed"))
        })?;
        text = done.text;
        let _ = write!(summary, "\n{number}: {}", done.summary);
    }
    Ok(Edited { text, summary })
}

impl Edit<'_> {
    /// Applies the edit to a file's text.
    ///
    /// Models write `\n`. In a file whose lines all end with `\r\n`, the texts are read as if
    /// they did too, so that an edit neither misses nor leaves mixed endings.
    fn apply(&self, file: &str, crlf: bool) -> Result<Edited, ToolError> {
        if self.old_text.is_empty() {
            return Err(invalid("`old_text` is empty; `file_write` creates or replaces a file"));
        }
        let old = if crlf { with_crlf(self.old_text) } else { self.old_text.to_owned() };
        let new = if crlf { with_crlf(self.new_text) } else { self.new_text.to_owned() };
        if old == new {
            return Err(invalid("`old_text` and `new_text` are the same; nothing would change"));
        }
        let lines = occurrences(file, &old);
        let summary = match lines.as_slice() {
            [] => return Err(self.absent(file)),
            [line] => format!("replaced 1 occurrence, at line {line}"),
            _ if self.replace_all => {
                format!("replaced {} occurrences, {}", lines.len(), named(&lines))
            }
            _ => return Err(self.ambiguous(&lines)),
        };
        self.check_size(file.len(), lines.len(), old.len(), new.len())?;
        Ok(Edited { text: file.replace(&old, &new), summary })
    }

    /// Replacing every occurrence can make much of little, and edits in a row more of that.
    fn check_size(
        &self,
        file: usize,
        times: usize,
        old: usize,
        new: usize,
    ) -> Result<(), ToolError> {
        let result = times
            .checked_mul(new)
            .and_then(|added| added.checked_add(file))
            .and_then(|sum| sum.checked_sub(times.saturating_mul(old)));
        match result {
            Some(bytes) if bytes as u64 <= MAX_FILE => Ok(()),
            _ => Err(ToolError::TooLarge(format!(
                "`{}` would have more than {MAX_FILE} bytes",
                self.path
            ))),
        }
    }

    fn ambiguous(&self, lines: &[usize]) -> ToolError {
        ToolError::Failed(format!(
            "`old_text` occurs {} times in `{}`, {}; add surrounding text to make it unique, or \
             set `replace_all`",
            lines.len(),
            self.path,
            named(lines)
        ))
    }

    fn absent(&self, file: &str) -> ToolError {
        let loose = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = loose(self.old_text);
        let hint = if !wanted.is_empty() && loose(file).contains(&wanted) {
            "it differs only in white space: copy it exactly"
        } else {
            "read the file again"
        };
        ToolError::NotFound(format!("`old_text` is not in `{}`; {hint}", self.path))
    }
}

fn invalid(text: &str) -> ToolError {
    ToolError::InvalidArguments(text.to_owned())
}

/// The same error with another text.
fn with_text(error: ToolError, change: impl FnOnce(String) -> String) -> ToolError {
    match error {
        ToolError::InvalidArguments(text) => ToolError::InvalidArguments(change(text)),
        ToolError::NotFound(text) => ToolError::NotFound(change(text)),
        ToolError::TooLarge(text) => ToolError::TooLarge(change(text)),
        ToolError::Failed(text) => ToolError::Failed(change(text)),
        ToolError::Denied(text) => ToolError::Denied(change(text)),
    }
}

/// The line numbers at which a text begins, without overlaps.
fn occurrences(file: &str, text: &str) -> Vec<usize> {
    let mut line = 1;
    let mut from = 0;
    let mut lines = Vec::new();
    for (at, _) in file.match_indices(text) {
        line += file[from..at].matches('\n').count();
        from = at;
        lines.push(line);
    }
    lines
}

fn named(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(MAX_NAMED).map(usize::to_string).collect();
    let more = if lines.len() > MAX_NAMED { " and more" } else { "" };
    format!("at lines {}{more}", shown.join(", "))
}

fn has_only_crlf(file: &str) -> bool {
    let all = file.matches('\n').count();
    all > 0 && all == file.matches("\r\n").count()
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(
        file: &str,
        old_text: &str,
        new_text: &str,
        replace_all: bool,
    ) -> Result<Edited, ToolError> {
        one(&Edit { path: "a.txt", old_text, new_text, replace_all }, file)
    }

    fn edits(file: &str, pairs: &[(&str, &str)]) -> Result<Edited, ToolError> {
        let edit =
            |(old_text, new_text)| Edit { path: "a.txt", old_text, new_text, replace_all: false };
        all(&pairs.iter().copied().map(edit).collect::<Vec<_>>(), file)
    }

    #[test]
    fn a_unique_text_is_replaced() {
        let done = edit("a\nb\nc\n", "b", "B", false).unwrap();
        assert_eq!(done.text, "a\nB\nc\n");
        assert_eq!(done.summary, "replaced 1 occurrence, at line 2");
    }

    #[test]
    fn a_text_that_is_not_unique_is_refused_with_its_lines() {
        let error = edit("x\na\nx x\n", "x", "y", false).unwrap_err();
        assert!(matches!(error, ToolError::Failed(text)
            if text.contains("occurs 3 times") && text.contains("at lines 1, 3, 3")));
        assert_eq!(edit("x\na\nx x\n", "x", "y", true).unwrap().text, "y\na\ny y\n");
    }

    #[test]
    fn an_absent_text_is_not_found_and_white_space_is_hinted_at() {
        let error = edit("fn  a() {}\n", "fn a() {}", "", false).unwrap_err();
        assert!(matches!(error, ToolError::NotFound(text) if text.contains("white space")));
        let error = edit("a", "b", "c", false).unwrap_err();
        assert!(matches!(error, ToolError::NotFound(text) if text.contains("read the file again")));
    }

    #[test]
    fn crlf_files_keep_their_endings() {
        assert_eq!(edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny", false).unwrap().text, "x\r\ny\r\nc\r\n");
        // Mixed endings are matched as they are.
        assert_eq!(edit("a\r\nb\nc", "b\nc", "d", false).unwrap().text, "a\r\nd");
    }

    #[test]
    fn an_edit_that_changes_nothing_is_refused() {
        assert!(matches!(edit("a", "a", "a", false), Err(ToolError::InvalidArguments(_))));
        assert!(matches!(edit("a", "", "a", false), Err(ToolError::InvalidArguments(_))));
        assert!(matches!(
            edit("a\r\nb\r\n", "a\nb", "a\r\nb", false),
            Err(ToolError::InvalidArguments(_))
        ));
    }
    #[test]
    fn each_of_several_edits_sees_what_the_one_before_left() {
        let done = edits("a\nb\n", &[("a", "c\nc2"), ("c2", "d"), ("b", "")]).unwrap();
        assert_eq!(done.text, "c\nd\n\n");
        assert_eq!(
            done.summary,
            "3 edits\n1: replaced 1 occurrence, at line 1\n2: replaced 1 occurrence, at line 2\n\
             3: replaced 1 occurrence, at line 3"
        );
    }

    #[test]
    fn the_edit_that_fails_is_counted_and_says_why() {
        let error = edits("a\nb\n", &[("a", "c"), ("a", "d"), ("b", "e")]).unwrap_err();
        assert!(matches!(&error, ToolError::NotFound(text)
            if text.starts_with("edit 2 of 3: `old_text` is not in `a.txt`")
                && text.ends_with("; nothing was changed")));
        let error = edits("aa", &[("a", "b")]).unwrap_err();
        assert!(matches!(&error, ToolError::Failed(text)
            if text.starts_with("edit 1 of 1: `old_text` occurs 2 times")));
        let error = edits("a", &[("a", "b"), ("b", "b")]).unwrap_err();
        assert!(matches!(&error, ToolError::InvalidArguments(text)
            if text.starts_with("edit 2 of 2: ")));
    }

    #[test]
    fn the_number_of_edits_is_bounded() {
        let many = vec![("a", "b"); MAX_EDITS + 1];
        for pairs in [&many[..], &[]] {
            assert!(matches!(edits("a", pairs), Err(ToolError::InvalidArguments(text))
                if text.contains("1 to 200")));
        }
        let swaps: Vec<_> =
            (0..MAX_EDITS).map(|n| if n % 2 == 0 { ("a", "b") } else { ("b", "a") }).collect();
        assert_eq!(edits("a", &swaps).unwrap().text, "a");
    }

    #[test]
    fn crlf_files_keep_their_endings_through_edits_that_remove_all_of_them() {
        let done = edits("a\r\nb", &[("a\nb", "ab"), ("ab", "a\nb\n")]).unwrap();
        assert_eq!(done.text, "a\r\nb\r\n");
    }

    #[test]
    fn edits_cannot_blow_a_file_up() {
        let double = Edit { path: "a.txt", old_text: "a", new_text: "aa", replace_all: true };
        let error = all(&[double; 60], "aa").unwrap_err();
        assert!(
            matches!(&error, ToolError::TooLarge(text)
            if text.contains("would have more than 8388608 bytes")),
            "{error:?}"
        );
    }
}
