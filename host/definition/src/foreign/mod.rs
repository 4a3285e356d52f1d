//! The tools of other programs: the names and arguments that agent files of these programs use, and the
//! belljar tool and arguments that each becomes.
//!
//! [`TOOL_ALIASES`](crate::TOOL_ALIASES) states which belljar tool a name in a file's `tools` means. The
//! tables here state under which name the model sees the tool, so a system prompt with `Read` and `file_path`
//! stays true word for word. The tables are data, `tables/foreign/*.toml`, read once; `belljar-agent`
//! translates calls with them.

use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};

use crate::Dialect;

macro_rules! table {
    ($name:literal) => {
        LazyLock::new(|| {
            toml::from_str(include_str!(concat!("../../tables/foreign/", $name, ".toml")))
        })
    };
}

/// The tools of a dialect, read when first needed.
type Table = LazyLock<Result<ToolTable, toml::de::Error>>;

/// The tables. A table that cannot be read has no tools, and their agents see belljar's own names. A test reads
/// every table.
static TABLES: [(Dialect, Table); 5] = [
    (Dialect::ClaudeCode, table!("claude_code")),
    (Dialect::OpenCode, table!("opencode")),
    (Dialect::Copilot, table!("copilot")),
    (Dialect::GeminiCli, table!("gemini_cli")),
    (Dialect::Pi, table!("pi")),
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
struct ToolTable {
    tools: Vec<ForeignTool>,
}

/// One tool of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignTool {
    /// The name that the model calls, for example `Read`.
    #[serde(deserialize_with = "keep_text")]
    pub name: &'static str,
    /// The name of belljar's tool, for example `file_read`.
    #[serde(deserialize_with = "keep_text")]
    pub tool: &'static str,
    /// The description that the model reads.
    #[serde(deserialize_with = "keep_text")]
    pub description: &'static str,
    /// The arguments of the foreign tool, in the order shown to the model.
    #[serde(default, deserialize_with = "keep_list")]
    pub arguments: &'static [ForeignArgument],
    /// Values for belljar's arguments that the model has not set.
    #[serde(default, deserialize_with = "keep_given")]
    pub given: &'static [(&'static str, FixedValue)],
}

/// One argument of a foreign tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignArgument {
    /// The name that the model writes, for example `file_path`.
    #[serde(deserialize_with = "keep_text")]
    pub name: &'static str,
    /// The type of the argument's value.
    pub kind: ArgumentKind,
    /// Whether a call without the argument is malformed.
    #[serde(default)]
    pub required: bool,
    /// The description that the model reads.
    #[serde(deserialize_with = "keep_text")]
    pub description: &'static str,
    /// The argument of belljar's tool that this argument becomes.
    pub becomes: ArgumentMapping,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", bound(deserialize = "'de: 'static"))]
pub enum ArgumentKind {
    /// A text.
    Text,
    /// A whole number.
    Number,
    /// True or false.
    Flag,
    /// One of these words. Each pair has the foreign word and belljar's word.
    #[serde(deserialize_with = "keep_words")]
    Word(&'static [(&'static str, &'static str)]),
    /// A list of texts.
    Texts,
    /// An object with any members.
    Object,
    /// A list of objects with these members.
    #[serde(deserialize_with = "keep_list")]
    Items(&'static [ForeignArgument]),
}

/// How belljar uses a foreign argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentMapping {
    /// Belljar's argument of this name, for example `path`, with the same value.
    #[serde(deserialize_with = "keep_text")]
    Argument(&'static str),
    /// The list's only element becomes belljar's argument of this name. A longer list is refused, because one
    /// call of belljar does one thing.
    #[serde(deserialize_with = "keep_text")]
    OnlyElement(&'static str),
    /// The members of the list's only object become arguments of the call; a longer list is refused.
    OnlyObject,
    /// More search terms in the text argument `of`: results only from these sites, or from all others.
    Sites {
        /// The argument that holds the terms.
        #[serde(deserialize_with = "keep_text")]
        of: &'static str,
        /// Whether only these sites are searched; otherwise they are left out.
        only: bool,
    },
    /// If false or absent, the text argument of this name is a literal text, and is escaped for a regular
    /// expression.
    #[serde(deserialize_with = "keep_text")]
    IsPattern(&'static str),
    /// The argument is accepted and has no effect, for this reason.
    #[serde(deserialize_with = "keep_text")]
    Nothing(&'static str),
    /// A call with the argument is refused, with this text.
    #[serde(deserialize_with = "keep_text")]
    Never(&'static str),
}

/// A fixed value of belljar's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum FixedValue {
    /// A text.
    #[serde(deserialize_with = "keep_text")]
    Text(&'static str),
    /// True or false.
    Flag(bool),
}

impl ForeignTool {
    /// The foreign tools of a dialect. An unknown dialect has none: all tools keep belljar's names.
    pub fn for_dialect(dialect: Dialect) -> &'static [ForeignTool] {
        let table = TABLES.iter().find(|(named, _)| *named == dialect);
        table.and_then(|(_, table)| table.as_ref().ok()).map_or(&[], |table| &table.tools)
    }

    /// The aliases under which a tool is offered to an agent of this dialect: those that the author wrote in
    /// `tools`, else the dialect's first. An empty list means that the tool keeps its own name, for example
    /// because the author wrote that name.
    pub fn offered_aliases(
        dialect: Dialect,
        tool: &str,
        written: &[&str],
    ) -> Vec<&'static ForeignTool> {
        if written.contains(&tool) {
            return Vec::new();
        }
        let aliases = || Self::for_dialect(dialect).iter().filter(|alias| alias.tool == tool);
        let named: Vec<_> = aliases().filter(|alias| written.contains(&alias.name)).collect();
        if named.is_empty() { aliases().take(1).collect() } else { named }
    }

    /// The foreign name of belljar's argument `own`.
    pub fn argument_for(&self, own: &str) -> Option<&'static str> {
        let is = |argument: &&ForeignArgument| matches!(argument.becomes, ArgumentMapping::Argument(it) if it == own);
        self.arguments.iter().find(is).map(|argument| argument.name)
    }

    /// The arguments that have no effect or are refused, each with the reason.
    pub fn argument_limits(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.arguments.iter().filter_map(|argument| match argument.becomes {
            ArgumentMapping::Nothing(why) | ArgumentMapping::Never(why) => {
                Some((argument.name, why))
            }
            ArgumentMapping::Argument(_)
            | ArgumentMapping::OnlyElement(_)
            | ArgumentMapping::OnlyObject
            | ArgumentMapping::Sites { .. }
            | ArgumentMapping::IsPattern(_) => None,
        })
    }
}

/// The target of an object's only member when the member's value replaces the object: a list of such objects
/// becomes a list of the values.
pub const SELF: &str = ".";

/// A text of a table, kept as long as the process: each table is read once.
fn keep_text<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    Ok(String::deserialize(from)?.leak())
}

fn keep_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<&'static [T], D::Error> {
    Ok(Vec::deserialize(from)?.leak())
}

/// Reads the fixed values of a tool's table, kept as long as the process.
fn keep_given<'de: 'static, D: Deserializer<'de>>(
    from: D,
) -> Result<&'static [(&'static str, FixedValue)], D::Error> {
    let pairs = Vec::<(String, FixedValue)>::deserialize(from)?.into_iter();
    Ok(pairs.map(|(name, value)| (&*name.leak(), value)).collect::<Vec<_>>().leak())
}

/// Reads pairs of words of a tool's table, kept as long as the process.
fn keep_words<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<&'static [(&'static str, &'static str)], D::Error> {
    let pairs = Vec::<(String, String)>::deserialize(from)?.into_iter();
    Ok(pairs.map(|(own, here)| (&*own.leak(), &*here.leak())).collect::<Vec<_>>().leak())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::TOOL_ALIASES;

    /// The names shown for a tool whose file lists these names.
    fn names(dialect: Dialect, tool: &str, written: &[&str]) -> Vec<&'static str> {
        ForeignTool::offered_aliases(dialect, tool, written)
            .iter()
            .map(|alias| alias.name)
            .collect()
    }

    #[test]
    fn every_table_is_of_its_schema_and_holds_tools() {
        for (dialect, table) in &TABLES {
            let table = table.as_ref().unwrap_or_else(|why| panic!("{dialect}: {why}"));
            assert!(table.tools.iter().all(|tool| !tool.name.is_empty() && !tool.tool.is_empty()));
            assert!(
                Dialect::WITH_TOOLS.contains(dialect)
                    && !ForeignTool::for_dialect(*dialect).is_empty()
            );
        }
        assert_eq!(TABLES.each_ref().map(|(dialect, _)| *dialect), Dialect::WITH_TOOLS);
    }

    #[test]
    fn every_tool_that_a_dialects_names_give_has_a_face_there() {
        for dialect in Dialect::WITH_TOOLS {
            let rows = TOOL_ALIASES.iter().filter(|row| row.dialect == dialect);
            let given: BTreeSet<_> = rows.flat_map(|row| row.canonical).collect();
            for tool in given {
                let known =
                    ForeignTool::for_dialect(dialect).iter().any(|alias| alias.tool == *tool);
                // Copilot has no tool of its own that searches the web.
                let exempt = (dialect, *tool) == (Dialect::Copilot, "web_search");
                assert!(known || exempt, "{dialect}: {tool}");
            }
        }
    }

    #[test]
    fn what_the_author_wrote_is_what_the_model_is_offered() {
        let claude = |tool, written: &[&str]| names(Dialect::ClaudeCode, tool, written);
        assert_eq!(claude("file_edit", &[]), ["Edit"]);
        assert_eq!(claude("file_edit", &["MultiEdit"]), ["MultiEdit"]);
        assert_eq!(claude("file_edit", &["Edit", "MultiEdit", "Read"]), ["Edit", "MultiEdit"]);
        assert!(claude("file_edit", &["file_edit", "Edit"]).is_empty());
        assert!(claude("attach_file", &[]).is_empty());
        assert_eq!(names(Dialect::Copilot, "file_edit", &["edit"]), ["replace_string_in_file"]);
        assert!(names(Dialect::Unknown, "file_read", &["Read"]).is_empty());
    }

    #[test]
    fn every_name_of_the_tool_that_starts_a_subagent_takes_an_agent_a_task_and_a_context() {
        for dialect in Dialect::WITH_TOOLS {
            for alias in
                ForeignTool::for_dialect(dialect).iter().filter(|it| it.tool == "spawn_agent")
            {
                for own in ["agent", "task", "context"] {
                    let named = alias.argument_for(own);
                    assert!(named.is_some(), "{dialect} {}: `{own}`", alias.name);
                }
            }
        }
    }

    #[test]
    fn names_are_unique_and_every_required_argument_becomes_something() {
        for dialect in Dialect::WITH_TOOLS {
            let aliases = ForeignTool::for_dialect(dialect);
            let names: BTreeSet<_> = aliases.iter().map(|alias| alias.name).collect();
            assert_eq!(names.len(), aliases.len(), "{dialect}");
            for argument in aliases.iter().flat_map(|alias| alias.arguments) {
                let lost = matches!(argument.becomes, ArgumentMapping::Never(_));
                assert!(!(argument.required && lost), "{dialect}: {}", argument.name);
            }
        }
    }
}
