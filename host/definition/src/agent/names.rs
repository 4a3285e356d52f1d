//! Tool names as people write them: split out of a text, and looked up for restrictions.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use belljar_policy::ToolName;

use super::builtin_tools::{
    AGENT_CANCEL, AGENT_RESULT, AGENT_STATUS, DELEGATE_PARALLEL, SPAWN_AGENT,
};
use super::program_tools::find_equivalent_tools;
use super::tools::{KnownTools, TOOL_ALIASES, ToolAlias};
use super::words::{flatten_text, visible_text};
use crate::Dialect;
use crate::diagnostic::FilePosition;

/// One name with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameEntry {
    pub(super) text: String,
    pub(super) at: FilePosition,
}

/// The tools that a name in a list of forbidden tools means.
#[derive(Debug, Default)]
pub(super) struct NamedTools {
    pub(super) tools: BTreeSet<ToolName>,
    /// Tools of belljar denied together with the found ones, because no foreign name means them alone.
    pub(super) beside: BTreeSet<ToolName>,
    /// Whether the name is known, even if its tools are unavailable here.
    pub(super) is_known: bool,
}

/// Words for all tools of all MCP servers.
const ALL_OF_SERVERS: &[&str] = &["mcp", "mcptool", "mcptools", "mcpserver", "mcpservers"];

/// For a belljar tool, other belljar tools that do part of the same foreign tool's work and have no foreign
/// name. They are denied together with the tool.
const TOGETHER: &[(&str, &[&str])] = &[
    (SPAWN_AGENT, &[DELEGATE_PARALLEL, AGENT_STATUS, AGENT_RESULT, AGENT_CANCEL]),
    ("file_read", &["attach_file"]),
    ("file_edit", &["notebook_edit"]),
];

/// The rows of the translation table with their names in lower case.
static LOWER_ALIASES: LazyLock<Vec<LowerAlias>> = LazyLock::new(|| {
    let alias = |row: &'static ToolAlias| {
        let lower = row.name.to_ascii_lowercase();
        LowerAlias { flat: flatten_text(&lower), lower, row }
    };
    TOOL_ALIASES.iter().map(alias).collect()
});

/// A foreign tool's name, in the two forms used for comparison.
struct LowerAlias {
    lower: String,
    /// The name without characters that only join words.
    flat: String,
    row: &'static ToolAlias,
}

/// Splits at commas and line ends outside parentheses.
pub(super) fn split_names(text: &str, at: FilePosition) -> Vec<NameEntry> {
    split_entries(text, at, |c| {
        matches!(c, ',' | '\n' | '\u{ff0c}' | '\u{3001}' | '\u{60c}' | '\u{fe50}' | '\u{fe51}')
    })
}

/// Splits at blanks outside parentheses.
pub(super) fn split_words(text: &str, at: FilePosition) -> Vec<NameEntry> {
    split_entries(text, at, char::is_whitespace)
}

/// Splits at the other separators of names, outside parentheses.
pub(super) fn split_marks(text: &str, at: FilePosition) -> Vec<NameEntry> {
    split_entries(text, at, |c| {
        matches!(c, '/' | '|' | ';' | '&' | '+' | '\u{ff1b}' | '\u{b7}' | '\u{2022}')
    })
}

/// Whether a text is the whole name of a foreign tool.
pub(super) fn program_tool(text: &str) -> bool {
    let plain = flatten_text(text);
    LOWER_ALIASES.iter().any(|alias| alias.flat == plain)
}

/// Splits a text at the characters that `ends` accepts, outside parentheses, into names with positions.
fn split_entries(text: &str, at: FilePosition, ends: impl Fn(char) -> bool) -> Vec<NameEntry> {
    let mut depth = 0_usize;
    let parts = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        ends(c) && depth == 0
    });
    // In a text of several lines, `- ` marks an item; in a single line, it denies.
    let marks = text.contains('\n');
    let bare = |part: &'_ str| -> String {
        let part = part.trim();
        if marks { part.trim_start_matches("- ").trim().to_owned() } else { part.to_owned() }
    };
    let parts = parts.map(bare);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(|text| NameEntry { text, at }).collect()
}

/// All tools that a name may match in any program's files, in any letter case. A scope is ignored, and `*`
/// matches any letters, because a restriction must cover every possible meaning.
pub(super) fn find_named_tools(text: &str, known: &KnownTools) -> NamedTools {
    let text = visible_text(text);
    let name = text.split('(').next().unwrap_or_default().trim().to_ascii_lowercase();
    let plain = flatten_text(&name);
    let name = match ALL_OF_SERVERS.contains(&plain.as_str()) && !name.starts_with("mcp__") {
        true => "mcp__*".to_owned(),
        false => name,
    };
    let mut behind =
        NamedTools { is_known: name == "*" || name.starts_with("mcp__"), ..NamedTools::default() };
    let own = |tool: &&str| known.get(tool).cloned();
    // All names are compared in lower case; servers' names keep their separators.
    let (is_pattern, is_of_server) = (name.contains('*'), name.starts_with("mcp__"));
    let fits = |alias: &LowerAlias| {
        matches_pattern(&name, &alias.lower)
            || !is_of_server && matches_pattern(&plain, &alias.flat)
    };
    for LowerAlias { row, .. } in LOWER_ALIASES.iter().filter(|alias| fits(alias)) {
        behind.is_known = true;
        let others = TOGETHER.iter().filter(|(tool, _)| row.canonical.contains(tool));
        let others = others.flat_map(|(_, others)| others.iter());
        behind.beside.extend(others.filter_map(own));
        behind.tools.extend(row.canonical.iter().filter_map(own));
    }
    // A name is looked up; a pattern is compared with each tool.
    let mut spoken = match is_pattern {
        true => known.spoken_like(|other| matches_pattern(&name, other)),
        false => known.spoken_tools(&name),
    };
    if !is_of_server {
        spoken.extend(match is_pattern {
            true => known.flat_like(|other| matches_pattern(&plain, other)),
            false => known.tools_by_spelling(&plain),
        });
    }
    behind.is_known |= !spoken.is_empty();
    behind.tools.extend(spoken);
    // A whole name in the table means only that row; rows for its last part do not count.
    if (!behind.is_known || behind.tools.is_empty() || name.contains('*'))
        && let Some(tools) = find_equivalent_tools(&name, matches_pattern)
    {
        behind.is_known = true;
        let given_back = behind.tools.clone();
        behind.beside.extend(tools.iter().filter_map(own).filter(|it| !given_back.contains(it)));
    }
    // `Bash:*` means that tool, not a server.
    if let Some(tool) = server_of_pattern(&name)
        && !is_of_server
        && behind.tools.is_empty()
        && behind.beside.is_empty()
    {
        let of = find_named_tools(tool, known);
        if !of.tools.is_empty() || !of.beside.is_empty() {
            return of;
        }
    }
    // A pattern for a server's tools is known even without that server, because it may be added
    // later.
    behind.is_known |= matches_whole_server(&name);
    behind
}

/// Whether a pattern matches all tools of a server, for example `jira_*`.
fn matches_whole_server(name: &str) -> bool {
    server_of_pattern(name).is_some()
}

/// The part of a pattern before its final separator and star.
fn server_of_pattern(name: &str) -> Option<&str> {
    let server = name.strip_suffix('*')?.strip_suffix(['_', '/', '.', ':', '-'])?;
    (!server.is_empty() && !server.contains('*')).then_some(server)
}

/// Whether a text is exactly a tool's name, in the style of Claude Code or of a program that joins words by
/// `_`. Everyday words do not count.
pub(super) fn is_tool_of_a_program(text: &str) -> bool {
    let is_name = |row: &&super::ToolAlias| {
        row.name == text && (row.dialect == Dialect::ClaudeCode || text.contains('_'))
    };
    TOOL_ALIASES.iter().any(|row| is_name(&row)) || super::READING_TOOLS.contains(&text)
}

/// Whether a pattern with `*` matches the text.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(start) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_commas_and_lines_outside_parentheses() {
        let names = |text| -> Vec<String> {
            split_names(text, FilePosition::default()).into_iter().map(|entry| entry.text).collect()
        };
        assert_eq!(names("Read, Agent(a, b),, Grep"), ["Read", "Agent(a, b)", "Grep"]);
        assert_eq!(names("- Read\n- Write\n"), ["Read", "Write"]);
        let words = split_words("Read Bash(git diff) ", FilePosition::default());
        assert_eq!(words.len(), 2, "{words:?}");
    }

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, text) in
            [("*", ""), ("web*", "webfetch"), ("*_read", "file_read"), ("a*b*c", "axbxc")]
        {
            assert!(matches_pattern(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("web*", "we"), ("a*b*c", "acb"), ("ab", "abc"), ("a*a", "a")] {
            assert!(!matches_pattern(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn tools_of_a_server_are_taken_away_by_every_name_for_them() {
        let known = ["mcp__a__x", "mcp__a__Y", "mcp__ab__z"];
        let known = KnownTools::new(known.map(|name| ToolName::new(name).unwrap()));
        let behind = |text| find_named_tools(text, &known).tools.len();
        for both in ["mcp__a", "mcp__a__*", "a_*", "MCP__A"] {
            assert_eq!(behind(both), 2, "{both}");
        }
        for one in ["mcp__a__y", "a_x", "ab_z", "mcp__ab"] {
            assert_eq!(behind(one), 1, "{one}");
        }
        assert_eq!((behind("mcp__*"), behind("b_*"), behind("mcp__")), (3, 0, 0));
    }

    #[test]
    fn a_name_takes_away_all_that_it_may_mean() {
        let known: KnownTools =
            ["file_edit", "file_write", "web_fetch", "web_search", SPAWN_AGENT, DELEGATE_PARALLEL]
                .iter()
                .map(|name| ToolName::new(name).unwrap())
                .collect();
        let behind = |text| {
            let found = find_named_tools(text, &known);
            let all = found.tools.union(&found.beside);
            (all.map(ToString::to_string).collect::<Vec<_>>(), found.is_known)
        };
        assert_eq!(behind("WRITE").0, ["file_write"]);
        assert_eq!(behind("edit").0, ["file_edit", "file_write"]);
        assert_eq!(behind("Write(src").0, ["file_write"]);
        assert_eq!(behind("web*").0, ["web_fetch", "web_search"]);
        assert_eq!(behind("Task").0, ["delegate_parallel", "spawn_agent"]);
        assert_eq!(behind("spawn_agent").0, ["spawn_agent"]);
        assert_eq!(behind("mcp__x__*"), (vec![], true));
        assert_eq!(behind("Wriet"), (vec![], false));
        // Of other programs.
        assert_eq!(behind("fs_write").0, ["file_edit", "file_write"]);
        assert_eq!(behind("ApplyPatch").0, ["file_edit", "file_write"]);
        assert_eq!(behind("str_replace_based_edit_tool").0, ["file_edit", "file_write"]);
        assert_eq!(behind("browser*").0, ["web_fetch", "web_search"]);
        assert_eq!(behind("W\u{200b}rite").0, ["file_write"]);
        assert_eq!(behind("attempt_completion"), (vec![], true));
        assert_eq!((behind("jira_*").1, behind("wirte*").1), (true, false));
    }
}
