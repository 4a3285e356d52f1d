//! Finds requests that are far wider than the description suggests.

use std::sync::LazyLock;

use belljar_policy::MountAccess;
use serde::Deserialize;

use crate::AgentDefinition;
use crate::agent::{TOOL_ALIASES, WrittenToolName};

/// Beginnings of the words in a description: the table in `tables/descriptions.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescriptionStems {
    /// Beginnings of words for an agent that only looks and reports, for example `review`.
    reading: Vec<String>,
    /// Beginnings of words for an agent that does more, for example `deploy`.
    acting: Vec<String>,
}

/// The table; a test reads it.
static STEMS: LazyLock<DescriptionStems> =
    LazyLock::new(|| toml::from_str(TABLE).unwrap_or_default());

const TABLE: &str = include_str!("../../tables/descriptions.toml");

/// Which kinds of requests beyond reading an agent makes.
#[derive(Debug, Default)]
struct RequestKinds {
    everything: bool,
    write: bool,
    shell: bool,
    network: bool,
}

/// Describes the requests of an agent whose description is only about reading. A reviewer may need a shell
/// for a repository's history, or the network for look-ups, so either alone is not reported; changing files
/// is, and so are both together, or all tools.
pub(super) fn find_wide_requests(definition: &AgentDefinition) -> Option<String> {
    let asks = RequestKinds::from_definition(definition);
    let wide = asks.everything || asks.write || asks.shell && asks.network;
    if !wide || !only_reads(&definition.description) {
        return None;
    }
    let mut what = Vec::new();
    for (is, words) in [
        (asks.everything, "every tool that there is"),
        (asks.write, "writing files"),
        (asks.shell, "a shell"),
        (asks.network, "the network"),
    ] {
        if is {
            what.push(words);
        }
    }
    Some(format!("asks for {}", what.join(", ")))
}

/// Whether a description is only about reading.
fn only_reads(description: &str) -> bool {
    let text = description.to_lowercase();
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let begins = |stems: &[String]| words().any(|word| stems.iter().any(|it| word.starts_with(it)));
    begins(&STEMS.reading) && !begins(&STEMS.acting)
}

impl RequestKinds {
    /// The kinds of requests in an agent's definition.
    fn from_definition(definition: &AgentDefinition) -> Self {
        let mut asks = Self::default();
        let asked = &definition.asked;
        let written = definition.tools_as_written.iter().flatten();
        for name in written {
            let name = WrittenToolName::from_text(name).name;
            // A file without a statement about tools asks for no tool in particular.
            asks.everything |= name == "*" && asked.tools.is_none();
            asks.add_tool(name);
            let aliases = TOOL_ALIASES.iter().filter(|alias| alias.name == name);
            aliases.flat_map(|alias| alias.canonical).for_each(|name| asks.add_tool(name));
        }
        asks.network |= asked.hosts.as_ref().is_some_and(|hosts| !hosts.is_empty());
        let mut mounts = asked.mounts.iter().flatten();
        asks.write |= mounts.any(|mount| mount.access == MountAccess::ReadWrite);
        asks
    }

    /// Notes what a requested tool can do: write files, run a shell or use the network. Other tools add
    /// nothing.
    fn add_tool(&mut self, name: &str) {
        match name {
            "file_write" | "file_edit" => self.write = true,
            "shell" => self.shell = true,
            "web_fetch" | "web_search" => self.network = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_stems_is_of_its_schema_and_no_stem_is_of_both_kinds() {
        let DescriptionStems { reading, acting } = toml::from_str(TABLE).unwrap();
        for stem in reading.iter().chain(&acting) {
            assert!(stem.len() > 2 && stem.bytes().all(|byte| byte.is_ascii_lowercase()), "{stem}");
            assert!(!(reading.contains(stem) && acting.contains(stem)), "{stem}");
        }
        assert!(only_reads("Reviews texts.") && !only_reads("Reviews texts and fixes them."));
    }
}
