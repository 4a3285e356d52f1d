//! What a person calls by name: a command with its arguments, and the look-up of names.

use belljar_definition::{
    AgentScope, Catalog, CatalogEntry, CatalogItem, CommandDefinition, CommandPiece, NotFound,
    SkillDefinition, UseTerms,
};
use belljar_policy::ShownText;
use serde::{Deserialize, Serialize};

/// Characters of a name that is repeated.
const MAX_NAME: usize = 80;

/// A person's call of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandCall {
    /// The name, without `/`.
    pub name: String,
    /// The arguments as typed.
    #[serde(default)]
    pub arguments: String,
}

/// A called command, on its way to the first message.
#[derive(Debug, Clone)]
pub(crate) struct CalledCommand {
    /// The name, for people.
    pub(crate) name: String,
    /// The pieces of the message.
    pub(crate) pieces: Vec<CommandPiece>,
    /// The terms, which hold for the turn.
    pub(crate) terms: UseTerms,
}

/// The terms in the place of those that cannot be read any more, for example of a skill that was removed: none of
/// the tools that act remains.
pub(crate) fn closed_terms() -> UseTerms {
    UseTerms { allowed_tools: Some(Vec::new()), ..UseTerms::default() }
}

impl CommandCall {
    /// The call in a line such as `/commit the fix`; `None` = the line is no call.
    pub fn from_line(line: &str) -> Option<Self> {
        let line = line.strip_prefix('/')?;
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (name, arguments) = (name.to_owned(), rest.trim().to_owned());
        (!name.is_empty()).then_some(Self { name, arguments })
    }
}

impl CalledCommand {
    /// A command that is gone since the turn began: it has no text, and its turn no tool that acts.
    pub(crate) fn without_text(name: &str) -> Self {
        let name = ShownText::clip_line(name, MAX_NAME).to_string();
        Self { name, pieces: Vec::new(), terms: closed_terms() }
    }

    /// The message with the author's words for files and shell commands.
    pub(crate) fn written_text(&self) -> String {
        self.text_with(|piece| match piece {
            CommandPiece::Text(text) => text.clone(),
            CommandPiece::File { written, .. } | CommandPiece::Shell { written, .. } => {
                written.clone()
            }
        })
    }

    /// The message with these texts for its pieces.
    pub(crate) fn text_with(&self, text: impl FnMut(&CommandPiece) -> String) -> String {
        self.pieces.iter().map(text).collect()
    }
}

/// The entry of this name or id. `PLUGIN:NAME`, as other programs write it, is an entry of a library; so are
/// `PLUGIN:FOLDER:NAME` and `MARKET:PLUGIN:NAME`.
pub fn find_called<'c, D: CatalogItem>(
    catalog: &'c Catalog<D>,
    name: &str,
) -> Result<&'c CatalogEntry<D>, NotFound> {
    let name = name.trim();
    let Some((plugin, slug)) = name.rsplit_once(':') else { return catalog.find_by_name(name) };
    let mut of_plugin = catalog.entries().iter().filter(|entry| match &entry.id.scope {
        AgentScope::Library(library) => {
            let last = library.rsplit('/').next().unwrap_or(library);
            let in_folder =
                plugin.strip_prefix(last).is_some_and(|folders| folders.starts_with(':'));
            let is_plugin = last == plugin || library.replace('/', ":") == plugin || in_folder;
            is_plugin && entry.id.slug.as_str() == slug
        }
        AgentScope::Home | AgentScope::Workspace(_) => false,
    });
    match (of_plugin.next(), of_plugin.next()) {
        (Some(entry), None) => Ok(entry),
        // None, or one of two plugins: the catalogue names what there is.
        (None | Some(_), _) => catalog.find_by_name(name),
    }
}

/// The kind of what a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalledKind {
    /// A command.
    Command,
    /// A skill.
    Skill,
}

/// The kind of what a person calls by this name: a command of the home, or else a skill of the home that persons may
/// call, or else any command, or else any skill. `None` = there is neither.
///
/// INV-657: so a workspace's command takes no name of the home's.
pub fn find_called_kind(
    commands: &Catalog<CommandDefinition>,
    skills: &Catalog<SkillDefinition>,
    name: &str,
) -> Option<CalledKind> {
    let skill = find_called(skills, name).ok();
    let Ok(command) = find_called(commands, name) else { return skill.map(|_| CalledKind::Skill) };
    let is_home = command.id.scope == AgentScope::Home;
    let is_skill = !is_home && skill.is_some_and(is_callers_own);
    Some(if is_skill { CalledKind::Skill } else { CalledKind::Command })
}

/// Returns whether the name of a command means a skill of the home.
pub fn yields_to_skill(
    command: &CatalogEntry<CommandDefinition>,
    skills: &Catalog<SkillDefinition>,
) -> bool {
    // The name of a library's command has a colon, and no skill of the home has.
    matches!(command.id.scope, AgentScope::Workspace(_))
        && find_called(skills, command.id.slug.as_str()).is_ok_and(is_callers_own)
}

fn is_callers_own(skill: &CatalogEntry<SkillDefinition>) -> bool {
    skill.id.scope == AgentScope::Home && skill.definition.callers.person
}

/// The name by which a person calls an entry: `NAME`, or `LIBRARY:NAME`.
pub fn call_name<D>(entry: &CatalogEntry<D>) -> String {
    match &entry.id.scope {
        AgentScope::Home | AgentScope::Workspace(_) => entry.id.slug.to_string(),
        AgentScope::Library(library) => format!("{}:{}", library.replace('/', ":"), entry.id.slug),
    }
}
