//! The replacement itself, as a function of texts.

use belljar_guest::ToolError;

/// Line numbers named in an error: enough to choose from.
const MAX_NAMED: usize = 10;

/// What is to be replaced by what.
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

impl Edit<'_> {
    /// Applies the edit to a file's text.
    ///
    /// Models write `\n`. In a file whose lines all end with `\r\n`, the texts are read as if
    /// they did too, so that an edit neither misses nor leaves mixed endings.
    pub(crate) fn apply(&self, file: &str) -> Result<Edited, ToolError> {
        if self.old_text.is_empty() {
            return Err(invalid("`old_text` is empty; `file_write` creates or replaces a file"));
        }
        let crlf = has_only_crlf(file);
        let old = if crlf { with_crlf(self.old_text) } else { self.old_text.to_owned() };
        let new = if crlf { with_crlf(self.new_text) } else { self.new_text.to_owned() };
        if old == new {
            return Err(invalid("`old_text` and `new_text` are the same; nothing would change"));
        }
        let lines = occurrences(file, &old);
        match lines.as_slice() {
            [] => Err(self.absent(file)),
            [line] => {
                let text = file.replacen(&old, &new, 1);
                Ok(Edited { text, summary: format!("replaced 1 occurrence, at line {line}") })
            }
            _ if self.replace_all => Ok(Edited {
                text: file.replace(&old, &new),
                summary: format!("replaced {} occurrences, {}", lines.len(), named(&lines)),
            }),
            _ => Err(ToolError::Failed(format!(
                "`old_text` occurs {} times in `{}`, {}; add surrounding text to make it unique, \
                 or set `replace_all`",
                lines.len(),
                self.path,
                named(&lines)
            ))),
        }
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
        Edit { path: "a.txt", old_text, new_text, replace_all }.apply(file)
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
}
