//! Matches the calls or agents of a hook: the `matcher` of Claude Code's hooks. For example, `Write|Edit`
//! matches calls of `file_write`.

use std::collections::BTreeSet;

use belljar_policy::ShownText;
use regex::{Regex, RegexBuilder};

use crate::Dialect;
use crate::agent::TOOL_ALIASES;

/// The longest matcher, in bytes, because even a list of fifty names is shorter.
const MAX_MATCHER: usize = 2_000;

/// The most memory of a compiled pattern, in bytes, because patterns for names compile to a few KiB.
const MAX_PATTERN: usize = 256 << 10;

/// Matches names of tools or agents, case-sensitively.
///
/// An empty text or `*` matches every name. A text of letters, digits, `_`, `-`, blanks, `,` and `|` alone is
/// a name, or a list of names between `|` or `,`. Any other text is a regular expression for the whole name.
/// A tool's name in Claude Code (`Write`) also matches belljar's tool (`file_write`).
#[derive(Debug, Clone)]
pub struct HookMatcher {
    text: String,
    rule: MatchRule,
}

#[derive(Debug, Clone)]
enum MatchRule {
    All,
    Names(BTreeSet<String>),
    Pattern(Regex),
}

impl HookMatcher {
    /// Matches every name.
    pub fn match_all() -> Self {
        Self { text: String::new(), rule: MatchRule::All }
    }

    /// Parses a matcher; the error is a text for a person and does not repeat the matcher.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_MATCHER {
            return Err(format!("{} bytes, and at most {MAX_MATCHER} are read", text.len()));
        }
        let trimmed = text.trim();
        let rule = if trimmed.is_empty() || trimmed == "*" {
            MatchRule::All
        } else if trimmed.chars().all(is_plain) {
            MatchRule::Names(parse_names(trimmed))
        } else {
            MatchRule::Pattern(compile_pattern(trimmed)?)
        };
        Ok(Self { text: trimmed.to_owned(), rule })
    }

    /// Whether any of the names matches: belljar's name of a tool, and the name that was shown to the model.
    pub fn matches_any(&self, names: &[&str]) -> bool {
        match &self.rule {
            MatchRule::All => true,
            MatchRule::Names(known) => names.iter().any(|name| known.contains(*name)),
            MatchRule::Pattern(pattern) => names.iter().any(|name| pattern.is_match(name)),
        }
    }

    /// The text without surrounding blanks.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the matcher matches every name.
    pub fn is_all(&self) -> bool {
        matches!(self.rule, MatchRule::All)
    }

    /// The listed names that are not Claude Code's names of tools.
    pub(crate) fn own_names(&self) -> impl Iterator<Item = &str> {
        let names = match &self.rule {
            MatchRule::Names(names) => Some(names),
            MatchRule::All | MatchRule::Pattern(_) => None,
        };
        names.into_iter().flatten().map(String::as_str).filter(|name| tool_aliases(name).is_empty())
    }

    /// Detects a pattern that was written for a search, with `^` or `$` at one end and no wildcard at the
    /// other, and would miss here. Returns the pattern that was likely meant.
    pub(crate) fn meant_as_search(&self) -> Option<String> {
        let MatchRule::Pattern(_) = self.rule else { return None };
        let (start, end) = (self.text.starts_with('^'), self.text.ends_with('$'));
        match (start, end) {
            (true, false) if !self.text.ends_with('*') => Some(format!("{}.*", self.text)),
            (false, true) if !self.text.starts_with(".*") => Some(format!(".*{}", self.text)),
            _ => None,
        }
    }
}

impl PartialEq for HookMatcher {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|')
}

/// The names of a list, with belljar's names of the same tools.
fn parse_names(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for name in text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty()) {
        all.insert(name.to_owned());
        all.extend(tool_aliases(name).iter().map(|tool| (*tool).to_owned()));
    }
    all
}

/// Belljar's names of a Claude Code tool, because hooks may use Claude Code's names.
fn tool_aliases(name: &str) -> &'static [&'static str] {
    let row =
        TOOL_ALIASES.iter().find(|row| row.dialect == Dialect::ClaudeCode && row.name == name);
    row.map_or(&[], |row| row.canonical)
}

/// Compiles a pattern for whole names; the error is a text for a person.
fn compile_pattern(text: &str) -> Result<Regex, String> {
    let whole = format!(r"\A(?:{text})\z");
    RegexBuilder::new(&whole).size_limit(MAX_PATTERN).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "a pattern that is too large".to_owned(),
        // The last line contains the reason; the lines before it draw the pattern.
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let why = last.trim_start_matches("error: ");
            format!("not a regular expression: {}", ShownText::clip_line(why, 200))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(matcher: &str, name: &str) -> bool {
        HookMatcher::parse(matcher).unwrap().matches_any(&[name])
    }

    #[test]
    fn a_name_matches_itself_a_list_its_names_and_a_star_all() {
        for all in ["", " ", "*"] {
            assert!(matches(all, "file_read"));
        }
        assert!(matches("file_read", "file_read"));
        assert!(!matches("file_read", "file_read2") && !matches("file_read", "File_Read"));
        for list in ["file_read|file_write", "file_read, file_write", "x | file_write"] {
            assert!(matches(list, "file_write"), "{list}");
            assert!(!matches(list, "file"), "{list}");
        }
    }

    #[test]
    fn a_pattern_is_for_the_whole_name() {
        assert!(matches("file_.*", "file_read") && matches("file_(read|find)", "file_find"));
        assert!(!matches("file_(read|find)", "my_file_find"));
        assert!(!matches("file_r.", "file_read"));
        assert!(matches("^file_.*$", "file_read"));
        assert!(!matches("a|.b", "xa"), "the alternatives stay inside the anchors");
    }

    #[test]
    fn either_name_of_a_tool_will_do() {
        let matcher = HookMatcher::parse("offered").unwrap();
        assert!(matcher.matches_any(&["canonical", "offered"]));
        assert!(!matcher.matches_any(&["canonical", "other"]));
    }

    #[test]
    fn claude_codes_names_mean_the_tools_here() {
        assert!(matches("Write|Edit", "file_write") && matches("Write|Edit", "file_edit"));
        assert!(!matches("Write|Edit", "file_read"));
        assert!(matches("Task", "spawn_agent"));
    }

    #[test]
    fn a_search_that_would_miss_is_seen() {
        let meant = |text| HookMatcher::parse(text).unwrap().meant_as_search();
        assert_eq!(meant("^file_").as_deref(), Some("^file_.*"));
        assert_eq!(meant("_write$").as_deref(), Some(".*_write$"));
        for fine in ["^file_.*", "^a$", "file_.*", "a|b", "*"] {
            assert_eq!(meant(fine), None, "{fine}");
        }
    }

    #[test]
    fn bombs_and_nonsense_are_refused() {
        let large = format!("({}){{1000}}", r"\w{100}");
        for bad in ["(", "[", large.as_str(), &"a".repeat(MAX_MATCHER + 1), r"(?=a)b"] {
            assert!(HookMatcher::parse(bad).is_err(), "{}", ShownText::clip_line(bad, 20));
        }
    }
}
