//! The entries that a text index searches: the agents, the skills and the MCP servers' tools of a host.

use std::collections::HashMap;
use std::fmt::Write as _;

use belljar_definition::builtin_tools::{FIND_AGENT, FIND_SKILL, FIND_TOOL};
use belljar_sandbox::Digest;

use crate::limits::{MAX_SEARCHED_TEXT, truncate_str};

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// An agent to which some parent may delegate.
    Agent,
    /// A skill that a model may load.
    Skill,
    /// A tool of an MCP server.
    Tool,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Agent, Self::Skill, Self::Tool];

    /// The plural noun, for texts: `agents`, `skills` or `tools`.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Agent => "agents",
            Self::Skill => "skills",
            Self::Tool => "tools",
        }
    }

    /// The name of the search tool for this kind, for example `find_agent`.
    pub fn finder_name(self) -> &'static str {
        match self {
            Self::Agent => FIND_AGENT,
            Self::Skill => FIND_SKILL,
            Self::Tool => FIND_TOOL,
        }
    }

    /// The kind that the search tool with this name finds.
    pub fn from_finder_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.finder_name() == name)
    }
}

/// One entry of the text index. Its texts are a stranger's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchEntry {
    /// The kind.
    pub kind: EntryKind,
    /// The name for calls, unique in the kind.
    pub name: String,
    /// The description, without its examples.
    pub about: String,
    /// Further text to search: tags, and the beginning of the instructions.
    pub more: String,
}

/// All searchable entries of a host.
#[derive(Debug, Default)]
pub struct SearchCatalogue {
    entries: Vec<SearchEntry>,
    positions: HashMap<(EntryKind, String), usize>,
    digest: String,
}

impl SearchCatalogue {
    /// A catalogue of these entries. If two have the same kind and name, the first counts.
    pub fn from_entries(all: impl IntoIterator<Item = SearchEntry>) -> Self {
        let (mut entries, mut positions) = (Vec::new(), HashMap::new());
        let mut whole = String::new();
        for entry in all {
            let SearchEntry { kind, name, about, more } = &entry;
            let key = (*kind, name.clone());
            if positions.contains_key(&key) {
                continue;
            }
            // Writing to a `String` cannot fail. The lengths make the digest differ if text moves between
            // neighbouring fields.
            let _ = write!(
                whole,
                "{} {} {} {} {name}{about}{more}",
                kind.plural(),
                name.len(),
                about.len(),
                more.len()
            );
            positions.insert(key, entries.len());
            entries.push(entry);
        }
        let digest = Digest::hash_bytes(whole.as_bytes()).to_string();
        Self { entries, positions, digest }
    }

    /// The entries, each at its position.
    pub fn entries(&self) -> &[SearchEntry] {
        &self.entries
    }

    /// The digest of all entries, which shows whether a text index is up to date.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The position of the entry with this kind and name.
    pub fn position_of(&self, kind: EntryKind, name: &str) -> Option<usize> {
        self.positions.get(&(kind, name.to_owned())).copied()
    }
}

impl SearchEntry {
    /// An entry whose description loses its `<example>` blocks.
    pub fn new(kind: EntryKind, name: String, description: &str, more: String) -> Self {
        Self { kind, name, about: without_examples(description), more }
    }
}

/// A description in one line, without `<example>` blocks, in which authors show dialogues. A block without an
/// end tag ends with the text.
pub(crate) fn without_examples(description: &str) -> String {
    const OPEN: &str = "<example>";
    const CLOSE: &str = "</example>";
    // In quoted YAML, authors write line breaks as `
    // `.
    let text = truncate_str(description, MAX_SEARCHED_TEXT).replace("\\n", " ");
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, block)) = rest.split_once(OPEN) {
        kept.push_str(before);
        kept.push(' ');
        rest = block.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    let words: Vec<&str> = kept.split_whitespace().collect();
    let line = words.join(" ");
    // Removes the heading of blocks that were removed.
    let line = line.trim_end_matches("Examples:").trim_end_matches("Example:");
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_no_part_of_a_description() {
        for (text, left) in [
            (
                "Reviews code. Examples: <example>Context: x</example> <example>y</example>",
                "Reviews code.",
            ),
            ("Reviews\n code.<example>never closed", "Reviews code."),
            ("a <example>b</example> c", "a c"),
            ("a\\n\\nExample:\\n<example>b</example>", "a"),
            ("plain", "plain"),
            ("</example> x", "</example> x"),
        ] {
            assert_eq!(without_examples(text), left, "{text}");
        }
    }

    #[test]
    fn a_change_of_any_text_changes_the_digest_and_a_namesake_of_another_kind_is_another() {
        let entry = |kind, name: &str, about: &str| {
            SearchEntry::new(kind, name.to_owned(), about, String::new())
        };
        let one = SearchCatalogue::from_entries([entry(EntryKind::Agent, "ab", "c")]);
        let two = SearchCatalogue::from_entries([entry(EntryKind::Agent, "a", "bc")]);
        let three = SearchCatalogue::from_entries([entry(EntryKind::Skill, "ab", "c")]);
        assert_ne!(one.digest(), two.digest());
        assert_ne!(one.digest(), three.digest());
        let both = SearchCatalogue::from_entries([
            entry(EntryKind::Agent, "a", "x"),
            entry(EntryKind::Skill, "a", "y"),
            entry(EntryKind::Agent, "a", "z"),
        ]);
        assert_eq!(both.entries().len(), 2);
        assert_eq!(both.position_of(EntryKind::Skill, "a"), Some(1));
        assert_eq!(both.position_of(EntryKind::Tool, "a"), None);
    }
}
