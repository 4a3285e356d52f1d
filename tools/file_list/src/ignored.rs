//! Which entries the caller wants left out.

use belljar_guest::ToolError;
use belljar_guest::walk::Glob;

/// The most globs of one call: each is tried on every entry.
const MAX_GLOBS: usize = 100;

/// Globs; an entry that any of them matches is left out.
pub(crate) struct Ignored(Vec<Pattern>);

struct Pattern {
    glob: Glob,
    /// It was written with a `/` at its end, as in a `.gitignore`.
    directories_only: bool,
}

impl Ignored {
    pub(crate) fn new(patterns: &[String]) -> Result<Ignored, ToolError> {
        if patterns.len() > MAX_GLOBS {
            let text = format!("`ignore` has more than {MAX_GLOBS} globs");
            return Err(ToolError::InvalidArguments(text));
        }
        patterns.iter().map(|text| Pattern::new(text)).collect::<Result<_, _>>().map(Ignored)
    }

    /// Whether to leave out an entry: `below` is its path from the directory that is listed,
    /// `shown` the one that the answer shows. A glob may be meant for either.
    pub(crate) fn matches(&self, below: &str, shown: &str, is_directory: bool) -> bool {
        self.0.iter().any(|pattern| {
            (is_directory || !pattern.directories_only)
                && (pattern.glob.matches(below) || pattern.glob.matches(shown))
        })
    }
}

impl Pattern {
    fn new(text: &str) -> Result<Pattern, ToolError> {
        let bare = text.trim_end_matches('/');
        if bare.is_empty() {
            return Err(ToolError::InvalidArguments(format!("`ignore`: `{text}` names nothing")));
        }
        let glob = Glob::new(bare).map_err(|error| match error {
            ToolError::InvalidArguments(why) => {
                ToolError::InvalidArguments(format!("`ignore`: {why}"))
            }
            other => other,
        })?;
        Ok(Pattern { glob, directories_only: bare.len() < text.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(patterns: &[&str]) -> Result<Ignored, ToolError> {
        Ignored::new(&patterns.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn an_entry_is_left_out_by_name_or_by_path() {
        let out = |pattern: &str, below: &str, shown: &str| {
            ignored(&["unrelated", pattern]).unwrap().matches(below, shown, false)
        };
        assert!(out("*.pyc", "a/b.pyc", "src/a/b.pyc"));
        assert!(out("a/*.pyc", "a/b.pyc", "src/a/b.pyc"));
        assert!(out("src/**/b.pyc", "a/b.pyc", "src/a/b.pyc"));
        assert!(out("./a/b.pyc", "a/b.pyc", "src/a/b.pyc"));
        assert!(!out("b/*.pyc", "a/b.pyc", "src/a/b.pyc"));
        assert!(!out("*.py", "a/b.pyc", "src/a/b.pyc"));
    }

    #[test]
    fn a_slash_at_the_end_is_about_directories() {
        let ignored = ignored(&["target/"]).unwrap();
        assert!(ignored.matches("target", "target", true));
        assert!(!ignored.matches("target", "target", false));
    }

    #[test]
    fn a_bad_glob_and_too_many_of_them_are_bad_arguments() {
        for patterns in [&["a["][..], &["/"], &[""], &["a"; MAX_GLOBS + 1]] {
            assert!(matches!(ignored(patterns).map(|_| ()), Err(ToolError::InvalidArguments(text))
                if text.starts_with("`ignore`")));
        }
    }
}
