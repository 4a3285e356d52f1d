//! Finds a team and its agents by name, and lists what keeps the team from running.

use std::path::Path;
use std::sync::Arc;

use belljar_definition::{
    AgentId, AgentReadiness, AgentScope, Diagnostic, GrantChange, Severity, TeamDefinition,
    TeamMember, TeamStage, Visibility, grant_command,
};
use belljar_policy::{NarrowingNote, ShownText};

use crate::host::Host;
use crate::rights::resolve::{
    MAKE_IT, ResolveError, ResolvedAgent, canonicalize_workspace, resolve_known,
};

/// A team together with its agents.
#[derive(Debug, Clone)]
pub struct ResolvedTeam {
    /// Scope and slug, for example `library/NAME/review`.
    pub id: AgentId,
    /// The definition.
    pub definition: Arc<TeamDefinition>,
    /// The agents of each stage, in the order of the file. Unknown or blocked agents are missing.
    pub(crate) stages: Vec<Vec<Arc<ResolvedAgent>>>,
    /// Why the team cannot run: its unknown or blocked agents, each with the line of the file and, if known,
    /// the remedy.
    pub problems: Vec<Diagnostic>,
}

/// Finds a team and its agents. Looks for changed files first, so an edit counts at once.
pub fn resolve_team(
    host: &Host,
    name: &str,
    workspace: &Path,
) -> Result<ResolvedTeam, ResolveError> {
    let workspace = canonicalize_workspace(workspace)?;
    host.teams.refresh();
    host.library.refresh();
    let catalog = host.teams.catalog();
    let team = catalog.find_by_name(name)?;
    Ok(resolve_definition(host, team.id.clone(), team.definition.clone(), &workspace))
}

/// All teams of the library, in the catalogue's order.
pub fn resolve_all_teams(host: &Host, workspace: &Path) -> Result<Vec<ResolvedTeam>, ResolveError> {
    let workspace = canonicalize_workspace(workspace)?;
    host.teams.refresh();
    host.library.refresh();
    let catalog = host.teams.catalog();
    let teams = catalog.entries().iter();
    Ok(teams
        .map(|t| resolve_definition(host, t.id.clone(), t.definition.clone(), &workspace))
        .collect())
}

/// As [`resolve_team`], for a definition that is in no library.
pub fn resolve_team_file(
    host: &Host,
    id: AgentId,
    definition: TeamDefinition,
    workspace: &Path,
) -> Result<ResolvedTeam, ResolveError> {
    let workspace = canonicalize_workspace(workspace)?;
    host.library.refresh();
    Ok(resolve_definition(host, id, definition, &workspace))
}

impl ResolvedTeam {
    /// The code of the problem that a member exists but may not run.
    pub const BLOCKED: &str = "blocked-agent";

    /// Returns whether blocked agents are the team's only problems.
    pub fn is_only_blocked(&self) -> bool {
        !self.problems.is_empty()
            && self.problems.iter().all(|problem| problem.code == Self::BLOCKED)
    }

    /// The agents of each stage, in the order of the file. An agent with a problem is missing.
    pub fn stages(&self) -> &[Vec<Arc<ResolvedAgent>>] {
        &self.stages
    }
}

/// Resolves the agents of every stage of a team.
fn resolve_definition(
    host: &Host,
    id: AgentId,
    definition: TeamDefinition,
    workspace: &Path,
) -> ResolvedTeam {
    let mut problems = Vec::new();
    let stages = definition
        .stages
        .iter()
        .map(|stage| resolve_members(host, &id, &definition, stage, workspace, &mut problems))
        .collect();
    ResolvedTeam { id, definition: Arc::new(definition), stages, problems }
}

/// Resolves the agents of a stage, and appends what keeps others from running to `problems`.
fn resolve_members(
    host: &Host,
    team: &AgentId,
    definition: &TeamDefinition,
    stage: &TeamStage,
    workspace: &Path,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Arc<ResolvedAgent>> {
    let mut agents = Vec::new();
    for member in &stage.members {
        let found = match resolve_known(host, &member.agent, workspace) {
            Ok(agent) => within_team(host, team, agent, workspace),
            Err(error) => Err(unknown_agent(&error)),
        };
        let found = found.and_then(if_ready);
        match found {
            Ok(agent) => agents.push(Arc::new(agent)),
            Err(problem) => problems.push(problem.into_diagnostic(definition, member)),
        }
    }
    agents
}

/// What keeps one member from running.
struct MemberProblem {
    code: &'static str,
    message: String,
    hint: Option<String>,
}

impl MemberProblem {
    /// The problem at the member's line in the team's file.
    fn into_diagnostic(self, definition: &TeamDefinition, member: &TeamMember) -> Diagnostic {
        let Self { code, message, hint } = self;
        let path = definition.path.clone();
        Diagnostic {
            path,
            line: member.line,
            column: 0,
            severity: Severity::Error,
            code,
            message,
            hint,
        }
    }
}

/// The problem of an unknown agent. The error's own text ends with a hint.
fn unknown_agent(error: &ResolveError) -> MemberProblem {
    let text = error.to_string();
    let (message, hint) = match text.split_once("\n  hint: ") {
        Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
        None => (text, None),
    };
    MemberProblem { code: "unknown-agent", message, hint }
}

/// The agent if it may run, otherwise the problem.
fn if_ready(agent: ResolvedAgent) -> Result<ResolvedAgent, MemberProblem> {
    let AgentReadiness::Blocked { reasons } = &agent.status else { return Ok(agent) };
    let reasons = ShownText::new(&reasons.join("; ")).to_string();
    let message = format!("agent `{}` is blocked: {reasons}", agent.id);
    let command = &agent.hint;
    let grant = (!command.is_empty()).then(|| format!("give it what it asks for: `{command}`"));
    let hint = grant.or_else(|| agent.lacks_directory.then(|| MAKE_IT.to_owned()));
    Err(MemberProblem { code: ResolvedTeam::BLOCKED, message, hint })
}

/// If the team is a stranger's, limits the agent's rights to what the team's id is granted.
fn within_team(
    host: &Host,
    team: &AgentId,
    mut agent: ResolvedAgent,
    workspace: &Path,
) -> Result<ResolvedAgent, MemberProblem> {
    match team.scope {
        // The operator wrote the team, and so decides how its agents work together.
        AgentScope::Home => return Ok(agent),
        AgentScope::Library(_) | AgentScope::Workspace(_) => {}
    }
    let visibility = Visibility::UserFacing;
    let grants = host.settings.agent_grants(team, visibility, workspace);
    let (rights, missing) = agent.rights.attenuate_for_child(&agent.definition.asked, &grants);
    if !missing.is_empty() {
        let what: Vec<String> = missing.iter().map(NarrowingNote::to_string).collect();
        let message = format!(
            "agent `{}` is blocked in team `{team}`, which is not yours: {}",
            agent.id,
            what.join("; ")
        );
        let change = GrantChange::for_missing(&missing);
        let hint = (!change.is_empty()).then(|| {
            let command = host.for_its_tenant(&grant_command(team, &change, false));
            format!("read the team's file; then `{command}`")
        });
        return Err(MemberProblem { code: ResolvedTeam::BLOCKED, message, hint });
    }
    if !agent.rights.is_within(&rights) {
        let message = format!(
            "agent `{}` has only the rights of team `{team}`, which is not yours",
            agent.id
        );
        agent.status = match agent.status {
            AgentReadiness::Ready => AgentReadiness::ReadyWithWarnings { warnings: vec![message] },
            AgentReadiness::ReadyWithWarnings { mut warnings } => {
                warnings.push(message);
                AgentReadiness::ReadyWithWarnings { warnings }
            }
            blocked @ AgentReadiness::Blocked { .. } => blocked,
        };
    }
    agent.rights = rights;
    Ok(agent)
}
