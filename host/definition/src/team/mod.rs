//! Team definitions: `teams/NAME.yaml`, a pipeline of agents.
//!
//! ```yaml
//! name: research-report
//! description: Gathers facts, checks them and writes them up.
//! stages:
//!   - agent: research-assistant
//!   - parallel:
//!       - { agent: code-analyst, context: Look at the code only. }
//!       - { agent: summarizer, task: "Condense what is known so far: {input}" }
//!     join: any
//!   - agent: summarizer
//!     task: "Answer the question `{task}` from these findings: {input}"
//! budget: { steps: 60, tokens: 400000, timeoutSeconds: 900 }
//! ```
//!
//! A team names agents and gives them no right. Unlike agent files, teams are our own format,
//! so a key that nobody knows is an error.

mod parse;
mod template;

use std::path::{Path, PathBuf};

use crate::diagnostic::{Findings, Position};
use crate::filed::{FileKind, FileRead, Filed};
use crate::{NotAnAgent, Slug, frontmatter};

pub use template::Template;

/// The longest team file, in bytes. A team of thirty agents with a paragraph for each has
/// some 30 kB.
pub const MAX_TEAM: usize = 64 << 10;

/// The most agents of a team, all stages together: each is a run with limits of its own, and
/// the subagents of one run are bounded too.
pub const MAX_TEAM_AGENTS: usize = 32;

/// A team file that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamDefinition {
    /// The name for people, as written, for example `Code Review`.
    pub name: String,
    /// The name for look-up, for example `code-review`.
    pub slug: Slug,
    /// The purpose of the team; not blank.
    pub description: String,
    /// The stages in their order; at least one.
    pub stages: Vec<Stage>,
    /// The budget of the whole team.
    pub budget: TeamBudget,
    /// The file.
    pub path: PathBuf,
}

/// One stage of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its agents: one, or several that get the same input side by side. Never empty.
    pub members: Vec<Member>,
    /// Whether it was written as `parallel`.
    pub parallel: bool,
    /// When a parallel stage has succeeded.
    pub join: Join,
}

/// When a parallel stage has succeeded. A member that ended early (`partial`) counts as one
/// that did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Join {
    /// When no member failed. The default.
    #[default]
    All,
    /// When at least one member did not fail.
    Any,
}

/// One agent of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The agent, as written: a name or an id, for example `library/NAME/scout`.
    pub agent: String,
    /// Knowledge for it beside its task; sent as it stands.
    pub context: Option<String>,
    /// Its task; `None` = the output of the stage before.
    pub task: Option<Template>,
    /// The line on which it stands, from 1.
    pub line: u32,
}

/// The budget of a whole team; absent = no bound besides those of its agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TeamBudget {
    /// Steps.
    pub steps: Option<u64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    /// Fuel of all tool calls.
    pub fuel: Option<u64>,
    /// Wall time in seconds, from the first stage's start.
    pub timeout_seconds: Option<u64>,
}

impl Join {
    /// Both, in the order of the docs.
    pub const ALL: [Self; 2] = [Self::All, Self::Any];

    /// The word in files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl TeamDefinition {
    /// All members, in the order written.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.stages.iter().flat_map(|stage| &stage.members)
    }
}

impl Filed for TeamDefinition {
    const KIND: &'static FileKind =
        &FileKind { noun: "team", a_noun: "a team", folder: "teams", max_bytes: MAX_TEAM };

    type Context = ();

    fn wants(below: &Path) -> bool {
        let ending = below.extension().unwrap_or_default();
        ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml")
    }

    fn read(path: &Path, bytes: &[u8], (): &()) -> FileRead<Self> {
        if bytes.len() > MAX_TEAM {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            return FileRead::Invalid { diagnostics: Self::too_large(path, length) };
        }
        let mut findings = Findings::new(path);
        let text = match frontmatter::utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(at) => {
                say_not_utf8(at, &mut findings);
                return FileRead::of(None, findings);
            }
        };
        if text.trim().is_empty() {
            return FileRead::Other { reason: NotAnAgent::Empty };
        }
        let team = parse::read(path, text, &mut findings);
        FileRead::of(team, findings)
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

/// Reports where a file stops being UTF-8.
pub(crate) fn say_not_utf8(at: Position, findings: &mut Findings<'_>) {
    let message = "the file is not UTF-8 from here on";
    findings.error_hint(at, "not-utf8", message, "save it as UTF-8");
}
