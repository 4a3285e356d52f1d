//! Commands: `commands/NAME.md`, or `commands/NAME.toml` as Gemini writes them.
//!
//! A command is the text of a message, with places for arguments, files and the output of shell commands. A person
//! calls it, for example `/commit the fix`. It grants no right: files and shell commands are read and run by the
//! agent's own tools, and `allowed-tools` narrows the agent.

mod expand;
mod scan;
mod words;

use std::path::{Path, PathBuf};

use belljar_policy::ShownText;

use crate::agent::{is_documentation, no_agent, say_no_split, say_utf16};
use crate::diagnostic::{FileFindings, FilePosition};
use crate::fields::UnreadFields;
use crate::filed::{self, CatalogItem, FileKind, FileRead, is_markdown};
use crate::frontmatter::{self, FrontmatterSplit, NoSplit, is_utf16};
use crate::skill::{first_line, parse_frontmatter};
use crate::team::report_not_utf8;
use crate::{Slug, UseTerms};

pub use expand::{CommandArguments, CommandPiece, ExpandError, expand_skill};

/// The longest command file, in bytes; the longest public ones have some 60 kB.
pub const MAX_COMMAND: usize = 256 << 10;

/// The placeholders that a command's text uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommandStyle {
    /// `$ARGUMENTS`, `$1`, `@file`, and `!` before a command in backticks.
    #[default]
    Dollar,
    /// `{{args}}`, `@{file}`, `!{command}`.
    Braces,
}

/// A valid command file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandDefinition {
    /// The name for people: the file's.
    pub name: String,
    /// The name for look-up, for example `fix-issue`.
    pub slug: Slug,
    /// The purpose of the command; not blank.
    pub description: String,
    /// The fields about the use of the command: remaining tools, a model, arguments.
    pub terms: UseTerms,
    /// The placeholders of the text.
    pub style: CommandStyle,
    /// The text: every byte after the frontmatter; not blank.
    pub body: String,
    /// The file.
    pub path: PathBuf,
}

impl CatalogItem for CommandDefinition {
    const KIND: &'static FileKind = &FileKind {
        noun: "command",
        a_noun: "a command",
        folder: "commands",
        max_bytes: MAX_COMMAND,
    };

    type Context = ();

    /// Accepts markdown and TOML at any depth: folders only group commands.
    fn accepts_path(below: &Path) -> bool {
        is_toml(below) || is_markdown(below) && !is_documentation(below)
    }

    fn is_material(below: &Path) -> bool {
        !Self::accepts_path(below)
    }

    fn read_file(path: &Path, bytes: &[u8], (): &()) -> FileRead<Self> {
        if bytes.len() > MAX_COMMAND {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            return FileRead::Invalid { diagnostics: Self::too_large(path, length) };
        }
        let mut findings = FileFindings::new(path);
        let text = match frontmatter::decode_utf8(bytes) {
            Ok(text) => text,
            Err(_) if is_utf16(bytes) => {
                say_utf16(&mut findings);
                return FileRead::from_findings(None, findings);
            }
            Err(at) => {
                report_not_utf8(at, &mut findings);
                return FileRead::from_findings(None, findings);
            }
        };
        let command = if is_toml(path) {
            read_toml(path, text, &mut findings)
        } else {
            match frontmatter::split_frontmatter(text) {
                Ok(split) => read_markdown(path, &split, &mut findings),
                Err(NoSplit::NoFrontmatter) => {
                    let body = text.trim_start_matches('\u{feff}');
                    let parts = CommandParts { body, ..CommandParts::default() };
                    parts.into_command(path, &mut findings)
                }
                Err(why @ NoSplit::Empty) => {
                    return FileRead::Other { reason: no_agent(path, why) };
                }
                Err(why @ (NoSplit::Unclosed(_) | NoSplit::TooLong(..))) => {
                    say_no_split(why, &mut findings);
                    None
                }
            }
        };
        FileRead::from_findings(command, findings)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn slug(&self) -> &Slug {
        &self.slug
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl CommandDefinition {
    /// The message of the command with these arguments, in pieces: text, files, and shell commands.
    ///
    /// # Errors
    ///
    /// When the arguments or the message exceed their bounds.
    pub fn expand_text(
        &self,
        arguments: &CommandArguments<'_>,
    ) -> Result<Vec<CommandPiece>, ExpandError> {
        expand::expand_body(&self.body, self.style, &self.terms.arguments, arguments)
    }
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// The parts of a file that make a command.
#[derive(Default)]
struct CommandParts<'a> {
    description: Option<String>,
    terms: UseTerms,
    style: CommandStyle,
    body: &'a str,
}

impl CommandParts<'_> {
    fn into_command(
        self,
        path: &Path,
        findings: &mut FileFindings<'_>,
    ) -> Option<CommandDefinition> {
        let Self { description, terms, style, body } = self;
        let at = FilePosition { line: 1, column: 1 };
        if body.trim().is_empty() {
            let hint = "write the message that the command stands for";
            findings.error_hint(at, "missing-body", "the command has no text", hint);
            return None;
        }
        let name = CommandDefinition::name_of_path(path).unwrap_or_default();
        let (name, slug) = filed::checked_name(&name, at, findings)?;
        let description = description.or_else(|| first_line(body));
        let description =
            description.unwrap_or_else(|| format!("runs `{}`", ShownText::new(&name)));
        let (body, path) = (body.to_owned(), path.to_path_buf());
        Some(CommandDefinition { name, slug, description, terms, style, body, path })
    }
}

fn read_markdown(
    path: &Path,
    split: &FrontmatterSplit<'_>,
    findings: &mut FileFindings<'_>,
) -> Option<CommandDefinition> {
    let opening = FilePosition { line: split.yaml_line.saturating_sub(1), column: 1 };
    let entries = parse_frontmatter(split, findings)?;
    let mut fields = UnreadFields::new(entries, opening, findings).with_fault_warnings();
    let terms = UseTerms::take_from(&mut fields);
    let description = fields.optional_text("description");
    let description = description.filter(|text| !text.trim().is_empty());
    let (left, findings) = fields.into_rest();
    let ignored: Vec<String> = left
        .iter()
        .filter(|(key, _)| key.text != "name")
        .take(20)
        .map(|(key, _)| format!("`{}`", ShownText::clip_line(&key.text, 64)))
        .collect();
    if let Some((key, _)) = left.first().filter(|_| !ignored.is_empty()) {
        let message = format!("ignored: {}", ignored.join(", "));
        findings.note(key.at, "ignored-fields", message);
    }
    let parts = CommandParts { description, terms, style: CommandStyle::Dollar, body: split.body };
    parts.into_command(path, findings)
}

/// Parses a file of Gemini: `prompt`, and perhaps `description`.
fn read_toml(
    path: &Path,
    text: &str,
    findings: &mut FileFindings<'_>,
) -> Option<CommandDefinition> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            let at = FilePosition { line: 1, column: 1 };
            let why = ShownText::clip_line(error.message(), 200);
            findings.error(at, "toml", format!("the file is not valid TOML: {why}"));
            return None;
        }
    };
    let text_of = |key: &str| table.get(key).and_then(toml::Value::as_str);
    let Some(body) = text_of("prompt") else {
        let at = FilePosition { line: 1, column: 1 };
        let hint = "write `prompt = \"...\"`";
        findings.error_hint(at, "missing-field", "`prompt` is missing, or not a text", hint);
        return None;
    };
    let description = text_of("description").filter(|text| !text.trim().is_empty());
    let description = description.map(str::to_owned);
    let parts =
        CommandParts { description, terms: UseTerms::default(), style: CommandStyle::Braces, body };
    parts.into_command(path, findings)
}
