//! The common part of agents, teams and skills: each is a file in a folder named after its kind, with a name
//! in the file.

use std::path::Path;

use belljar_policy::ShownText;

use crate::agent::name::{is_unfit_name, unfit_message};
use crate::agent::{
    AgentContext, AgentDefinition, NotAnAgent, ParsedAgentFile, forms, own, parse_agent_in,
    parse_too_large,
};
use crate::diagnostic::{Diagnostic, FileFindings, FilePosition};
use crate::{MAX_DEFINITION, Slug};

/// A kind of file with a [`crate::Catalog`].
pub trait CatalogItem: Sized {
    /// The noun, folder and size limit of the kind.
    const KIND: &'static FileKind;

    /// The inputs of parsing in addition to the text, for example the names of known tools.
    type Context;

    /// Whether a file is of this kind, by its path below the folder. Other files are skipped without a
    /// report.
    fn accepts_path(below: &Path) -> bool;

    /// Whether an installed file, by its path below the folder, only belongs to another one and is never parsed
    /// itself, for example a script of a skill.
    fn is_material(_below: &Path) -> bool {
        false
    }

    /// Parses one file. Never panics.
    fn read_file(path: &Path, bytes: &[u8], context: &Self::Context) -> FileRead<Self>;

    /// Converts the result for a file of the person's own home: some warnings become errors there, for example
    /// an unknown tool.
    #[must_use]
    fn in_own_home(read: FileRead<Self>) -> FileRead<Self> {
        read
    }

    /// The finding about a file longer than [`FileKind::max_bytes`].
    fn too_large(path: &Path, length: u64) -> Vec<Diagnostic> {
        let FileKind { a_noun, max_bytes, .. } = Self::KIND;
        let mut findings = FileFindings::new(path);
        let message = format!("the file has {length} bytes; {a_noun} has at most {max_bytes}");
        findings.error(FilePosition::default(), "too-large", message);
        findings.into_diagnostics()
    }

    /// The name that is derived from the path alone.
    fn name_of_path(path: &Path) -> Option<String> {
        path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
    }

    /// The name for people.
    fn name(&self) -> &str;

    /// The name for look-up.
    fn slug(&self) -> &Slug;

    /// The path of the file.
    fn path(&self) -> &Path;
}

/// The names and limits of a kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind {
    /// The noun, for example `agent`.
    pub noun: &'static str,
    /// The noun with its article, for example `an agent`.
    pub a_noun: &'static str,
    /// The folder below the home and `.belljar`, and the name of the command, for example `agents`.
    pub folder: &'static str,
    /// The most bytes of a file.
    pub max_bytes: usize,
}

/// The result of parsing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileRead<D> {
    /// A valid file; the diagnostics are only warnings and notes.
    Item {
        /// The definition.
        item: D,
        /// Warnings and notes for the author.
        diagnostics: Vec<Diagnostic>,
    },
    /// Meant as this kind, but invalid: at least one error.
    Invalid {
        /// The errors, with their positions.
        diagnostics: Vec<Diagnostic>,
    },
    /// Not meant as this kind.
    Other {
        /// The reason.
        reason: NotAnAgent,
    },
}

impl<D> FileRead<D> {
    /// The item, unless a finding is an error.
    pub(crate) fn from_findings(item: Option<D>, findings: FileFindings<'_>) -> Self {
        let failed = findings.has_errors();
        let diagnostics = findings.into_diagnostics();
        match item {
            Some(item) if !failed => Self::Item { item, diagnostics },
            Some(_) | None => Self::Invalid { diagnostics },
        }
    }
}

impl CatalogItem for AgentDefinition {
    const KIND: &'static FileKind = &FileKind {
        noun: "agent",
        a_noun: "an agent",
        folder: "agents",
        max_bytes: MAX_DEFINITION,
    };

    type Context = AgentContext;

    fn accepts_path(below: &Path) -> bool {
        forms::may_be_agent(below)
    }

    fn read_file(path: &Path, bytes: &[u8], context: &AgentContext) -> FileRead<Self> {
        match parse_agent_in(path, bytes, &context.known, context.shapes) {
            ParsedAgentFile::Agent { definition, diagnostics } => {
                FileRead::Item { item: *definition, diagnostics }
            }
            ParsedAgentFile::Invalid { diagnostics } => FileRead::Invalid { diagnostics },
            ParsedAgentFile::NotAnAgent { reason } => FileRead::Other { reason },
        }
    }

    fn in_own_home(read: FileRead<Self>) -> FileRead<Self> {
        match read {
            FileRead::Item { item, diagnostics } => {
                match own::refuse_unknown_tools(&item, diagnostics) {
                    Ok(diagnostics) => FileRead::Item { item, diagnostics },
                    Err(diagnostics) => FileRead::Invalid { diagnostics },
                }
            }
            FileRead::Invalid { .. } | FileRead::Other { .. } => read,
        }
    }

    fn too_large(path: &Path, length: u64) -> Vec<Diagnostic> {
        match parse_too_large(path, length) {
            ParsedAgentFile::Invalid { diagnostics }
            | ParsedAgentFile::Agent { diagnostics, .. } => diagnostics,
            ParsedAgentFile::NotAnAgent { .. } => Vec::new(),
        }
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

pub(crate) fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// The name and its slug; an error if the name cannot be displayed in a list.
pub(crate) fn checked_name(
    name: &str,
    at: FilePosition,
    findings: &mut FileFindings<'_>,
) -> Option<(String, Slug)> {
    let name = name.trim();
    if is_unfit_name(name) {
        findings.error(at, "bad-name", unfit_message());
        return None;
    }
    let Some(slug) = Slug::from_name(name) else {
        findings.error_hint(
            at,
            "bad-name",
            format!("`{}` gives no identity", ShownText::new(name)),
            "give `name` at least one letter or digit",
        );
        return None;
    };
    Some((name.to_owned(), slug))
}
