//! Resolves an agent's name to its definition, grants, rights and readiness.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use belljar_definition::{
    AgentDefinition, AgentId, AgentReadiness, CatalogEntry, GrantChange, NotFound, ParsedAgentFile,
    Settings, assess_readiness, grant_command, parse_agent,
};
use belljar_policy::{
    CallPermission, Grants, MountAccess, NarrowingNote, Rights, ShownPath as _, ShownText, ToolName,
};

use belljar_work::{StopSignal, WorkStopped};

use crate::host::Host;
use crate::outcome::RunError;
use crate::rights::decide::{NO_OVERLAY_HERE, NO_OVERLAYS, find_withheld};

/// An agent together with the operator's grants.
#[derive(Debug, Clone)]
pub struct ResolvedAgent {
    /// Scope and slug, for example `library/NAME/scout`.
    pub id: AgentId,
    /// The definition.
    pub definition: Arc<AgentDefinition>,
    /// The operator's grants, defaults filled in.
    pub grants: Grants,
    /// The intersection of definition and grants; a subagent's rights are also within its parent's.
    pub rights: Rights,
    /// What the agent's file asks for and is not granted.
    pub narrowed: Vec<NarrowingNote>,
    /// The readiness of the agent at present.
    pub status: AgentReadiness,
    /// The operator's command that would grant what the agent lacks; empty if no grant would help.
    pub hint: String,
    /// How long the agent waits for a subagent before the subagent continues in the background; `None` =
    /// until the subagent ends.
    pub auto_background: Option<Duration>,
    /// True if a granted directory is missing: the agent does not start, with `--partial` or without. Checked
    /// for agents at the top; a subagent's directories are checked at its start.
    pub lacks_directory: bool,
    /// Tools granted by default only to agents with overlays, and therefore missing for this agent, each with
    /// the reason.
    pub(crate) for_overlays: Arc<BTreeMap<ToolName, &'static str>>,
}

/// Why no agent could be resolved from a name.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ResolveError {
    /// No agent has this name.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The workspace is no directory that can be used.
    #[error("the workspace `{}` cannot be used: {why}", path.to_shown())]
    Workspace {
        /// The path, as the caller wrote it.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The agent's file was removed after the name was found.
    #[error("agent `{0}` is no longer there")]
    Gone(AgentId),
    /// The agent is blocked, and cannot be delegated to.
    #[error("agent `{0}` is blocked")]
    Blocked(AgentId),
    /// The caller has disconnected, or the time is up.
    #[error("looking for agents: {0}")]
    Stopped(#[from] WorkStopped),
}

/// Why an agent may not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("agent `{agent}` is blocked: {}", reasons.join("; "))]
pub struct BlockedAgent {
    /// The agent's id.
    pub agent: AgentId,
    /// The reasons. Foreign text: escape it before a person sees it.
    pub reasons: Vec<String>,
    /// The operator's remedies, for example a grant. One is enough, unless a directory is missing.
    pub remedies: Vec<String>,
    /// True if a granted directory is missing on disk.
    pub lacks_directory: bool,
}

/// The advice for a granted directory that is missing.
pub(crate) const MAKE_IT: &str = "make the directory, or take the mount out of `belljar.toml`";

/// Finds the agent `name` for a run started by a person. Looks for changed files first, so an edit
/// counts at once.
pub fn resolve_agent(
    host: &Host,
    name: &str,
    workspace: &Path,
) -> Result<ResolvedAgent, ResolveError> {
    resolve_until(host, name, workspace, &StopSignal::never_raised())
}

/// As [`resolve_agent`], but a raised signal ends the search with [`ResolveError::Stopped`].
pub fn resolve_until(
    host: &Host,
    name: &str,
    workspace: &Path,
    stop: &StopSignal,
) -> Result<ResolvedAgent, ResolveError> {
    let workspace = canonicalize_workspace(workspace)?;
    host.library.refresh_until(stop)?;
    let catalog = host.library.catalog();
    let agent = catalog.find_by_name(name)?;
    Ok(at_the_top(host, agent, &workspace))
}

/// Resolves an agent by name in a canonical workspace, without looking for changed files first. See
/// [`resolve_agent`].
pub fn resolve_known(
    host: &Host,
    name: &str,
    workspace: &Path,
) -> Result<ResolvedAgent, ResolveError> {
    let catalog = host.library.catalog();
    Ok(at_the_top(host, catalog.find_by_name(name)?, workspace))
}

/// Resolves all agents of the library, in the catalogue's order.
pub fn resolve_all(host: &Host, workspace: &Path) -> Result<Vec<ResolvedAgent>, ResolveError> {
    resolve_all_until(host, workspace, &StopSignal::never_raised())
}

/// As [`resolve_all`], but a raised signal ends the search with [`ResolveError::Stopped`].
pub fn resolve_all_until(
    host: &Host,
    workspace: &Path,
    stop: &StopSignal,
) -> Result<Vec<ResolvedAgent>, ResolveError> {
    let workspace = canonicalize_workspace(workspace)?;
    host.library.refresh_until(stop)?;
    let catalog = host.library.catalog();
    let resolved = |agent| {
        stop.check_raised()?;
        Ok::<_, ResolveError>(at_the_top(host, agent, &workspace))
    };
    catalog.agents().iter().map(resolved).collect()
}

/// Resolves agents one by one, as the iterator is advanced. `last` selects the agent behind which the
/// iteration begins, for example the last agent of the previous page. Without `last` the iteration begins
/// with the first agent; if `last` selects no agent, the iterator is empty. Raising the signal ends the
/// search for files with [`ResolveError::Stopped`].
pub fn resolve_behind<'a>(
    host: &'a Host,
    workspace: &Path,
    last: Option<&dyn Fn(&AgentId) -> bool>,
    stop: &StopSignal,
) -> Result<impl Iterator<Item = ResolvedAgent> + use<'a>, ResolveError> {
    let workspace = canonicalize_workspace(workspace)?;
    host.library.refresh_until(stop)?;
    let catalog = host.library.catalog();
    let all = catalog.agents();
    let first = last.map_or(0, |last| {
        all.iter().position(|agent| last(&agent.id)).map_or(all.len(), |at| at.saturating_add(1))
    });
    let places = first..all.len();
    Ok(places.filter_map(move |at| Some(at_the_top(host, catalog.agents().get(at)?, &workspace))))
}

/// Resolves a catalogue entry, even one that is not in the library. The workspace must be canonical.
pub fn resolve_entry(host: &Host, agent: &CatalogEntry, workspace: &Path) -> ResolvedAgent {
    at_the_top(host, agent, workspace)
}

/// Resolves the agent whose tools a client calls directly: the home's agent with this name; without a file,
/// an agent that requests all its grants. INV-291: never an agent of a workspace or a library, so that no
/// stranger's file decides a client's rights. INV-392: an agent with a malformed file does not get all its
/// grants. The workspace is canonical.
///
/// # Errors
///
/// When the name is invalid, or the file is malformed.
pub fn resolve_direct(
    host: &Host,
    slug: &str,
    workspace: &Path,
) -> Result<ResolvedAgent, ResolveError> {
    let catalog = host.library.catalog();
    match catalog.home_entry(slug)? {
        (_, Some(agent)) => Ok(at_the_top(host, agent, workspace)),
        (id, None) => Ok(at_the_top(host, &without_file(host, id)?, workspace)),
    }
}

/// An agent without a file, whose request is everything granted to its id.
fn without_file(host: &Host, id: AgentId) -> Result<CatalogEntry, ResolveError> {
    let slug = &id.slug;
    let text =
        format!("---\nname: {slug}\ndescription: tools for clients\n---\nTools for clients.\n");
    let path = PathBuf::from(format!("{slug}.md"));
    match parse_agent(&path, text.as_bytes(), &host.tools.known_tools()) {
        ParsedAgentFile::Agent { definition, diagnostics } => {
            Ok(CatalogEntry { id, definition: *definition, diagnostics })
        }
        ParsedAgentFile::Invalid { .. } | ParsedAgentFile::NotAnAgent { .. } => {
            Err(ResolveError::Gone(id))
        }
    }
}

/// Missing directories of the mounts in these rights, one a line. An agent with tools does not start while a
/// directory is missing.
pub fn absent_directories(rights: &Rights) -> Vec<String> {
    let absent = rights.mounts().iter().filter(|mount| !mount.host.is_dir());
    absent
        .map(|mount| {
            let host = ShownText::new(&mount.host.to_string_lossy()).to_string();
            format!("there is no directory `{host}`, which is mounted at `{}`", mount.guest)
        })
        .collect()
}

/// The workspace as an absolute path without symbolic links, the form that grants and mounts use.
pub fn canonicalize_workspace(workspace: &Path) -> Result<PathBuf, ResolveError> {
    let error = |why: String| ResolveError::Workspace { path: workspace.to_owned(), why };
    let path = workspace.canonicalize().map_err(|found| error(found.to_string()))?;
    if path.is_dir() { Ok(path) } else { Err(error("it is no directory".to_owned())) }
}

/// Resolves an agent for use as a subagent; an error if the agent is not ready. Tools barred for subagents do
/// not block the agent, but are removed at the start.
pub(crate) fn resolve_child(
    host: &Host,
    id: &AgentId,
    workspace: &Path,
) -> Result<ResolvedAgent, ResolveError> {
    let catalog = host.library.catalog();
    let agent = catalog.get(id).ok_or_else(|| ResolveError::Gone(id.clone()))?;
    let resolved = build_resolved(host, agent, workspace);
    if resolved.status.is_ready() { Ok(resolved) } else { Err(ResolveError::Blocked(resolved.id)) }
}

impl ResolvedAgent {
    /// Warnings for a person before the run, for example missing tools or misread fields.
    pub fn run_warnings(&self) -> Vec<String> {
        match &self.status {
            AgentReadiness::Ready => Vec::new(),
            AgentReadiness::ReadyWithWarnings { warnings } => warnings.clone(),
            AgentReadiness::Blocked { reasons } => reasons.clone(),
        }
    }

    /// Returns whether the option `--partial` would start the agent although it is blocked.
    pub fn may_be_partial(&self) -> bool {
        !self.lacks_directory && !self.definition.has_lost_all_tools()
    }

    /// Checks that the agent may run. With `partial`, a blocked agent may run with its remaining tools.
    pub fn check_runnable(&self, partial: bool) -> Result<(), BlockedAgent> {
        let AgentReadiness::Blocked { reasons } = &self.status else { return Ok(()) };
        if partial && self.may_be_partial() {
            return Ok(());
        }
        let grant =
            (!self.hint.is_empty()).then(|| format!("give it what it asks for: `{}`", self.hint));
        let directory = self.lacks_directory.then(|| MAKE_IT.to_owned());
        let part = self.may_be_partial();
        let part = part.then(|| "run it with what it is given: `--partial`".to_owned());
        Err(BlockedAgent {
            agent: self.id.clone(),
            reasons: reasons.clone(),
            remedies: [grant, directory, part].into_iter().flatten().collect(),
            lacks_directory: self.lacks_directory,
        })
    }
}

impl From<BlockedAgent> for RunError {
    fn from(blocked: BlockedAgent) -> Self {
        let hint = Some(blocked.remedies.join("\nor ")).filter(|hint| !hint.is_empty());
        Self::Setup { message: blocked.to_string(), hint }
    }
}

/// As [`build_resolved`], and also checks that the directories of the mounts exist.
fn at_the_top(host: &Host, agent: &CatalogEntry, workspace: &Path) -> ResolvedAgent {
    let mut agent = build_resolved(host, agent, workspace);
    let absent = absent_directories(&agent.rights);
    if !absent.is_empty() {
        agent.lacks_directory = true;
        let reasons = match agent.status {
            AgentReadiness::Blocked { reasons } => reasons.into_iter().chain(absent).collect(),
            AgentReadiness::Ready | AgentReadiness::ReadyWithWarnings { .. } => absent,
        };
        agent.status = AgentReadiness::Blocked { reasons };
    }
    agent
}

/// Intersects an agent's file with the operator's grants, and finds out whether the agent is ready.
fn build_resolved(host: &Host, agent: &CatalogEntry, workspace: &Path) -> ResolvedAgent {
    let definition = &agent.definition;
    let grants = host.settings.agent_grants(&agent.id, definition.visibility, workspace);
    let (rights, mut narrowed) = Rights::intersect_rights(&definition.asked, &grants, None);
    narrowed.extend(find_withheld(&host.tools, definition, &rights));
    let missing = host.settings.missing_tools;
    let status = assess_readiness(definition, &grants, &narrowed, &agent.diagnostics, missing);
    let hint =
        if status.is_ready() { String::new() } else { suggest_grant(host, agent, &narrowed) };
    let for_overlays = Arc::new(for_overlays(&host.settings, agent, &grants, workspace));
    ResolvedAgent {
        id: agent.id.clone(),
        definition: Arc::new(definition.clone()),
        grants,
        rights,
        narrowed,
        status,
        hint,
        auto_background: host.settings.auto_background(&agent.id, definition.visibility),
        lacks_directory: false,
        for_overlays,
    }
}

/// The default tools with an overlay that the agent lacks, each with the reason.
fn for_overlays(
    settings: &Settings,
    agent: &CatalogEntry,
    grants: &Grants,
    workspace: &Path,
) -> BTreeMap<ToolName, &'static str> {
    let (with, why) = if !settings.overlays.by_default {
        let mut with = settings.clone();
        with.overlays.by_default = true;
        (with, NO_OVERLAYS)
    } else if grants.mounts.iter().any(|mount| mount.access == MountAccess::ReadWrite) {
        (settings.without_mounts(), NO_OVERLAY_HERE)
    } else {
        return BTreeMap::new();
    };
    let with = with.agent_grants(&agent.id, agent.definition.visibility, workspace);
    let lacks = |tool: &ToolName| grants.tool_permission(tool.as_str()) == CallPermission::Deny;
    let given =
        with.tools.into_iter().filter(|(_, permission)| *permission != CallPermission::Deny);
    given.map(|(tool, _)| (tool, why)).filter(|(tool, _)| lacks(tool)).collect()
}

/// The `belljar grant` command for what the agent asks and lacks; empty if no grant would help.
fn suggest_grant(host: &Host, agent: &CatalogEntry, narrowed: &[NarrowingNote]) -> String {
    let change = GrantChange::for_missing(narrowed);
    if change.is_empty() {
        return String::new();
    }
    host.for_its_tenant(&grant_command(&agent.id, &change, true))
}
