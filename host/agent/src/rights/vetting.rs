//! The findings for a person about an agent before and after trusting it: requests, rights and missing
//! rights; and whether installed libraries have changed since the person agreed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_catalogue::{API_LIBRARY, LibraryRoot, PinState, ToolComponent, read_bounded};
use belljar_definition::suspicion::{Suspicion, find_suspicions};
use belljar_definition::{AgentReadiness, AgentScope, MAX_DEFINITION, SkipReason};
use belljar_policy::{CallPermission, ShownText};
use belljar_work::StopSignal;

use crate::host::Host;
use crate::rights::decide::{OfferConditions, left_out};
use crate::rights::resolve::{ResolveError, ResolvedAgent, resolve_all_until};
use crate::tools::builtin::tool::{AgentDepth, BuiltinTool};

/// Most characters of a name that is shown.
const MAX_NAME: usize = 60;

/// Most characters of a host rule that is shown.
const MAX_RULE: usize = 100;

/// An installed library as it is now.
#[derive(Debug, Clone)]
pub struct VettedLibrary {
    /// The name, for example `reviewers`.
    pub name: String,
    /// Where it was installed from, for example a directory or a repository.
    pub source: String,
    /// The commit of the installed files; `None` = the source is no repository.
    pub revision: Option<String>,
    /// Whether the files have changed since the person agreed.
    pub state: PinState,
    /// The agents, by file.
    pub agents: Vec<VettedAgent>,
    /// Files that are not agents now, each with the reason. Foreign text, escaped.
    pub left_out: Vec<(String, String)>,
}

/// An agent of a library.
#[derive(Debug, Clone)]
pub struct VettedAgent {
    /// The agent with the present grants.
    pub agent: ResolvedAgent,
    /// The path of its file below the library's directory, for example `agents/scout.md`.
    pub file: String,
    /// The SHA-256 digest, in hex, of the file to which the person agreed.
    pub digest: String,
    /// Signs in the file that a person should look at.
    pub suspicions: Vec<Suspicion>,
}

impl ResolvedAgent {
    /// The requests of the file, one item a line. A file without a list of tools requests everything granted.
    pub fn list_requests(&self) -> Vec<String> {
        let definition = &self.definition;
        let mut asks = Vec::new();
        match &definition.asked.tools {
            None => asks.push("whatever is granted".to_owned()),
            Some(tools) => asks.extend(tools.iter().map(ToString::to_string)),
        }
        let shown = |name: &str| ShownText::clip_line(name, MAX_NAME).to_string();
        asks.extend(definition.unknown_tools.iter().map(|name| shown(name)));
        asks.extend(definition.unavailable.iter().map(|tool| shown(&tool.name)));
        asks.extend(definition.unclear.iter().map(|it| shown(&it.name)));
        for mount in definition.asked.mounts.iter().flatten() {
            asks.push(format!("mount {} ({})", mount.guest, mount.access));
        }
        for host in definition.asked.hosts.iter().flatten() {
            asks.push(format!("host {}", ShownText::clip_line(&host.to_string(), MAX_RULE)));
        }
        if asks.is_empty() {
            asks.push("nothing".to_owned());
        }
        asks
    }

    /// The rights that the agent would have in a run, one item a line.
    pub fn list_rights(&self) -> Vec<String> {
        let rights = &self.rights;
        let offered = rights.offered_tools().filter(|(tool, _)| self.is_offered(tool.as_str()));
        let tools = offered.map(|(tool, permission)| match permission {
            CallPermission::Allow | CallPermission::Deny => tool.to_string(),
            CallPermission::Ask => format!("{tool} (ask)"),
        });
        let mut gets: Vec<String> = tools.collect();
        if gets.is_empty() {
            gets.push("no tools".to_owned());
        }
        gets.extend(
            rights
                .mounts()
                .iter()
                .filter(|mount| mount.guest.as_str() != "/workspace")
                .map(|mount| format!("mount {} ({})", mount.guest, mount.access)),
        );
        let workspace = rights.mounts().iter().find(|mount| mount.guest.as_str() == "/workspace");
        if let Some(mount) = workspace.filter(|mount| mount.access.to_string() != "read") {
            gets.push(format!("mount {} ({})", mount.guest, mount.access));
        }
        for list in rights.hosts().lists() {
            gets.extend(list.rules.iter().map(|rule| format!("host {rule}")));
        }
        gets
    }

    /// Returns whether the model sees a granted tool. Only the worktree tool may be hidden: it is shown if
    /// the agent has an overlay and its file names the tool.
    pub fn is_offered(&self, tool: &str) -> bool {
        let means =
            OfferConditions::for_agent(&self.definition, &self.rights, AgentDepth::for_root(0));
        match BuiltinTool::from_name(tool) {
            Some(tool @ BuiltinTool::Worktree) => left_out(tool, means).is_none(),
            Some(_) | None => true,
        }
    }

    /// Returns whether a callable tool is useless, because it works on the network alone and no host is
    /// granted: every request of its calls is refused (INV-513).
    pub fn reaches_no_host(&self, host: &Host, tool: &str) -> bool {
        let asks = |owner: &Arc<ToolComponent>| !owner.manifest.ask.hosts.is_empty();
        self.rights.hosts().is_none() && host.tools.find_component(tool).is_some_and(asks)
    }

    /// The requests that are not granted, in a few words each.
    pub fn list_denials(&self) -> Vec<String> {
        let definition = &self.definition;
        let shown = |name: &str| ShownText::clip_line(name, MAX_NAME).to_string();
        let mut lacks: Vec<String> =
            self.narrowed.iter().map(|note| note.what.replace('`', "")).collect();
        lacks.iter_mut().for_each(|what| {
            if let Some(tool) = what.strip_prefix("tool ") {
                *what = tool.to_owned();
            }
        });
        lacks.extend(definition.unknown_tools.iter().map(|name| shown(name)));
        lacks.extend(definition.unavailable.iter().map(|tool| shown(&tool.name)));
        lacks.extend(definition.unclear.iter().map(|it| shown(&it.name)));
        if definition.disabled {
            lacks.push("its file switches it off".to_owned());
        }
        lacks
    }

    /// Why the agent is ready, limited or blocked, in full.
    pub fn status_reasons(&self) -> &[String] {
        match &self.status {
            AgentReadiness::Ready => &[],
            AgentReadiness::ReadyWithWarnings { warnings } => warnings,
            AgentReadiness::Blocked { reasons } => reasons,
        }
    }
}

/// All installed libraries, by name, each with its agents. Reads the files.
///
/// # Errors
///
/// When the workspace cannot be used, and once the signal is raised.
pub fn vetted_libraries(
    host: &Host,
    workspace: &Path,
    stop: &StopSignal,
) -> Result<Vec<VettedLibrary>, ResolveError> {
    let agents = resolve_all_until(host, workspace, stop)?;
    let installed = host.library.roots().iter().filter_map(|root| match &root.scope {
        AgentScope::Library(name) if name != API_LIBRARY => Some((name, root)),
        AgentScope::Library(_) | AgentScope::Home | AgentScope::Workspace(_) => None,
    });
    let mut libraries = Vec::new();
    for (name, root) in installed {
        stop.check_raised()?;
        libraries.push(vet_library(host, name, root, &agents));
    }
    Ok(libraries)
}

/// Compares a library's files with the files that the person agreed to, and lists the agents.
fn vet_library(
    host: &Host,
    name: &str,
    root: &LibraryRoot,
    agents: &[ResolvedAgent],
) -> VettedLibrary {
    let catalog = host.library.catalog();
    let (source, revision) = root.source.clone().unwrap_or_default();
    let mut vetted = VettedLibrary {
        name: name.to_owned(),
        source,
        revision,
        state: root.pin_state(),
        agents: Vec::new(),
        left_out: Vec::new(),
    };
    for (below, digest) in root.pinned.iter().flat_map(|pinned| pinned.iter()) {
        let path = root.dir.join(below);
        let file = ShownText::new(&below.to_string_lossy()).to_string();
        let own = |agent: &&ResolvedAgent| {
            matches!(&agent.id.scope, AgentScope::Library(of) if of == name)
                && agent.definition.path == path
        };
        if let Some(agent) = agents.iter().find(own) {
            let text = read_bounded(&path, MAX_DEFINITION as u64).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            vetted.agents.push(VettedAgent {
                agent: agent.clone(),
                file,
                digest: digest.to_string(),
                suspicions: find_suspicions(&text, &agent.definition),
            });
            continue;
        }
        let skipped = catalog.skipped_files().iter().find(|skipped| skipped.path == path);
        vetted.left_out.push((file, why_left_out(skipped.map(|skipped| &skipped.reason))));
    }
    vetted
}

/// Why a file that the person agreed to is not an agent now.
fn why_left_out(reason: Option<&SkipReason>) -> String {
    let name = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ShownText::new(&name).to_string()
    };
    match reason {
        None => "it is not the file that was agreed to, or not there".to_owned(),
        Some(SkipReason::NotAnAgent(why)) => why.as_str().to_owned(),
        Some(SkipReason::Quarantined) => "it lies in a folder of drafts".to_owned(),
        Some(SkipReason::Duplicate(first)) => format!("its name is that of `{}`", name(first)),
        Some(SkipReason::Invalid(found)) => found
            .first()
            .map_or_else(String::new, |found| format!("line {}: {}", found.line, found.message)),
    }
}
