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
//! A team names agents and grants them no right. Unlike agent files, teams are belljar's own format, so an
//! unknown key is an error.

mod parse;
mod template;

use std::path::{Path, PathBuf};

use crate::diagnostic::{FileFindings, FilePosition};
use crate::filed::{CatalogItem, FileKind, FileRead};
use crate::{NotAnAgent, Slug, frontmatter};

pub use template::TaskTemplate;

/// The longest team file, in bytes, because even a team of thirty agents with a paragraph for each has only
/// some 30 kB.
pub const MAX_TEAM: usize = 64 << 10;

/// The most agents of a team, all stages together, because each is a run with limits of its own.
pub const MAX_TEAM_AGENTS: usize = 32;

/// A valid team file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamDefinition {
    /// The name for people, as written, for example `Code Review`.
    pub name: String,
    /// The name for look-up, for example `code-review`.
    pub slug: Slug,
    /// The purpose of the team; not blank.
    pub description: String,
    /// The stages in order; at least one.
    pub stages: Vec<TeamStage>,
    /// The budget of the whole team.
    pub budget: TeamBudget,
    /// The file.
    pub path: PathBuf,
}

/// One stage of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamStage {
    /// The agents: one, or several that run concurrently with the same input. Never empty.
    pub members: Vec<TeamMember>,
    /// Whether the stage was written as `parallel`.
    pub parallel: bool,
    /// The condition of a parallel stage's success.
    pub join: StageJoin,
}

/// The condition of a parallel stage's success. A member that ended early (`partial`) has not failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum StageJoin {
    /// No member failed. The default.
    #[default]
    All,
    /// At least one member did not fail.
    Any,
}

/// One agent of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamMember {
    /// The agent, as written: a name or an id, for example `library/NAME/scout`.
    pub agent: String,
    /// Text that the agent receives unchanged in addition to its task, for example `Look at the code only.`.
    pub context: Option<String>,
    /// The agent's task; `None` = the output of the previous stage.
    pub task: Option<TaskTemplate>,
    /// The line of the member in the file, from 1.
    pub line: u32,
}

/// The budget of a whole team; absent = only the limits of its agents.
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

impl StageJoin {
    /// Both values, in the order of the documentation.
    pub const ALL: [Self; 2] = [Self::All, Self::Any];

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl TeamDefinition {
    /// All members, in the order written.
    pub fn members(&self) -> impl Iterator<Item = &TeamMember> {
        self.stages.iter().flat_map(|stage| &stage.members)
    }
}

impl CatalogItem for TeamDefinition {
    const KIND: &'static FileKind =
        &FileKind { noun: "team", a_noun: "a team", folder: "teams", max_bytes: MAX_TEAM };

    type Context = ();

    fn accepts_path(below: &Path) -> bool {
        let ending = below.extension().unwrap_or_default();
        ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml")
    }

    fn read_file(path: &Path, bytes: &[u8], (): &()) -> FileRead<Self> {
        if bytes.len() > MAX_TEAM {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            return FileRead::Invalid { diagnostics: Self::too_large(path, length) };
        }
        let mut findings = FileFindings::new(path);
        let text = match frontmatter::decode_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(at) => {
                report_not_utf8(at, &mut findings);
                return FileRead::from_findings(None, findings);
            }
        };
        if text.trim().is_empty() {
            return FileRead::Other { reason: NotAnAgent::Empty };
        }
        let team = parse::read_team(path, text, &mut findings);
        FileRead::from_findings(team, findings)
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

/// Reports the position where a file stops being UTF-8.
pub(crate) fn report_not_utf8(at: FilePosition, findings: &mut FileFindings<'_>) {
    let message = "the file is not UTF-8 from here on";
    findings.error_hint(at, "not-utf8", message, "save it as UTF-8");
}
