//! The library of one agent: its candidates, its finders, and the note behind its first message.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_definition::{CatalogEntry, SkillDefinition};
use belljar_mcp::Server;
use belljar_model::ToolSpec;
use belljar_policy::ToolName;

use crate::agent_loop::job::AgentJob;
use crate::finding::answers::{SearchPort, finder_spec};
use crate::finding::catalogue::EntryKind;
use crate::finding::plan::{Candidate, LibraryPlan, PlanBounds};
use crate::finding::recent;
use crate::limits::{MAX_LISTED_DESCRIPTION, MAX_LISTED_SKILL_DESCRIPTION, MAX_TOOLS};
use crate::prompt::blocks::ListedAgent;
use crate::prompt::skills::{self, SkillCaller, call_name, is_own};
use crate::rights::delegates::DelegateSet;
use crate::tools::answer::CallAnswer;
use crate::tools::builtin::tool::BuiltinTool;

/// Divides the budget of the settings between what the agent may use. Without an index nothing is deferred.
pub(crate) fn plan_library(
    job: &AgentJob,
    delegates: &DelegateSet,
    listed: &[ListedAgent],
    given: &[BuiltinTool],
    specs: &[(ToolName, ToolSpec)],
    remote: &BTreeMap<ToolName, Arc<Server>>,
) -> LibraryPlan {
    let host = &job.shared.host;
    if !host.search.is_available() || job.direct {
        return LibraryPlan::default();
    }
    let agents = listed.iter().map(|agent| agent_candidate(agent, delegates.is_own(&agent.name)));
    let mut candidates: Vec<Candidate> = agents.collect();
    if given.contains(&BuiltinTool::Skill) {
        let catalog = host.skills.catalog();
        let skills = skills::offered_skills(catalog.entries(), SkillCaller::Model);
        candidates.extend(skills.map(skill_candidate));
    }
    let tools = specs.iter().filter(|(name, _)| remote.contains_key(name));
    candidates.extend(tools.map(|(_, spec)| Candidate::from_tool(spec)));
    let setting = &host.settings.context;
    let bounds = PlanBounds { budget: setting.library_tokens, pinned: &setting.pinned };
    LibraryPlan::divide(candidates, || host.searched_catalogue(&job.shared.workspace), bounds)
}

/// Adds the finders of what nothing lists. Returns each with a tool that its results are for.
pub(crate) fn offer_finders(
    library: &LibraryPlan,
    given: &[BuiltinTool],
    specs: &mut Vec<ToolSpec>,
) -> BTreeMap<EntryKind, ToolName> {
    let mut finders = BTreeMap::new();
    for kind in library.deferred_kinds().filter(|kind| library.hides(*kind)) {
        let carrier = match kind {
            EntryKind::Agent => {
                let spawns = |tool: &&BuiltinTool| {
                    matches!(tool, BuiltinTool::Spawn | BuiltinTool::Parallel)
                };
                given.iter().find(spawns).map(|tool| tool.name())
            }
            EntryKind::Skill => Some(BuiltinTool::Skill.name()),
            EntryKind::Tool => library.candidates_of(kind).next().map(|tool| tool.name.as_str()),
        };
        let carrier = carrier.and_then(|name| ToolName::new(name).ok());
        let taken = specs.iter().any(|spec| spec.name == kind.finder_name());
        if let Some(carrier) = carrier.filter(|_| !taken && specs.len() < MAX_TOOLS) {
            specs.push(finder_spec(kind));
            finders.insert(kind, carrier);
        }
    }
    finders
}

/// Loads the deferred tools that an earlier turn has called.
pub(crate) fn load_called_tools(
    job: &AgentJob,
    library: &mut LibraryPlan,
    specs: &mut Vec<ToolSpec>,
) {
    for name in recent::called_tools(&job.history) {
        if specs.len() < MAX_TOOLS
            && let Some(spec) = library.tools.remove(name)
        {
            specs.push(spec);
        }
    }
}

/// The search of a job's host.
fn search_port(job: &AgentJob) -> SearchPort<'_> {
    let host = &job.shared.host;
    SearchPort { search: &*host.search, owner: host.owner_of("index") }
}

/// The note about what fits the words of the first message. A fork keeps its parent's.
pub(crate) async fn match_message(job: &AgentJob, library: &LibraryPlan) -> Option<String> {
    if job.direct || job.fork.is_some() {
        return None;
    }
    library.note_for_message(&search_port(job), &job.first, &job.history).await
}

/// The answer of a finder.
pub(crate) async fn answer_search(
    job: &AgentJob,
    library: &LibraryPlan,
    kind: EntryKind,
    words: &str,
) -> CallAnswer {
    library.answer_search(&search_port(job), kind, words).await
}

fn agent_candidate(agent: &ListedAgent, own: bool) -> Candidate {
    let ListedAgent { name, description, tools, .. } = agent;
    let tools: usize = tools.iter().map(|tool| tool.len() + 2).sum();
    let bytes = description.len().min(MAX_LISTED_DESCRIPTION) + name.len() + tools;
    Candidate::new(EntryKind::Agent, name, description, own, bytes)
}

fn skill_candidate(skill: &CatalogEntry<SkillDefinition>) -> Candidate {
    let (name, description) = (call_name(skill), &skill.definition.description);
    let bytes = description.len().min(MAX_LISTED_SKILL_DESCRIPTION) + name.len();
    let mut it = Candidate::new(EntryKind::Skill, &name, description, is_own(skill), bytes);
    if !is_own(skill) {
        it.about = format!("(came with the workspace) {}", it.about);
    }
    it
}
