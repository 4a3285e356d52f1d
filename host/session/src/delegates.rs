//! The agents that a parent may hand work to: user-facing, ready, and not excluded by the
//! parent's own definition.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use belljar_definition::Catalog;
use belljar_definition::{AgentDefinition, AgentId, Slug, SubagentsAsk, Visibility};
use belljar_policy::ToolName;

use crate::bounds::{MAX_LISTED_AGENTS, MAX_PARALLEL_CHILDREN};
use crate::host::Host;
use crate::resolve;
use crate::spawn::ListedAgent;

/// All agents of a library that may be delegated to, by the name to call them by.
#[derive(Debug, Default)]
pub(crate) struct Listing(BTreeMap<String, Listed>);

#[derive(Debug, Clone)]
struct Listed {
    id: AgentId,
    description: String,
}

/// What one parent may delegate, and to whom.
#[derive(Debug, Default)]
pub(crate) struct Delegates {
    listing: Arc<Listing>,
    /// `None` = all of the listing.
    only: Option<BTreeSet<String>>,
    max_concurrent: usize,
    allowed_tools: Option<Vec<ToolName>>,
}

impl Listing {
    /// Asks each agent's definition and grants.
    pub(crate) fn of(host: &Host, catalog: &Catalog, workspace: &Path) -> Self {
        let mut listed = BTreeMap::new();
        for agent in catalog.agents() {
            if agent.definition.visibility == Visibility::Internal {
                continue;
            }
            let Ok(resolved) = resolve::resolve_child(host, &agent.id, workspace) else { continue };
            let short = resolved.id.slug.as_str().to_owned();
            // The slug alone means the first of that name; a namesake goes by its identity.
            let name = if listed.contains_key(&short) { resolved.id.to_string() } else { short };
            let description = resolved.definition.description.clone();
            listed.insert(name, Listed { id: resolved.id.clone(), description });
        }
        Self(listed)
    }
}

impl Delegates {
    /// Nobody.
    pub(crate) fn none() -> Self {
        Self { max_concurrent: 1, ..Self::default() }
    }

    /// Those that `parent`'s definition does not exclude.
    pub(crate) fn of(listing: Arc<Listing>, parent: &AgentDefinition) -> Self {
        let Some(asked) = &parent.subagents else {
            let max_concurrent = MAX_PARALLEL_CHILDREN;
            return Self { listing, only: None, max_concurrent, allowed_tools: None };
        };
        let SubagentsAsk { enabled, max_concurrent, allowed_agents, allowed_tools } = asked;
        let mut only = allowed_agents.as_ref().map(|names| named(&listing, names));
        if *enabled == Some(false) {
            only = Some(BTreeSet::new());
        }
        let asked = max_concurrent.map_or(MAX_PARALLEL_CHILDREN, |n| n as usize);
        Self {
            listing,
            only,
            max_concurrent: asked.clamp(1, MAX_PARALLEL_CHILDREN),
            allowed_tools: allowed_tools.clone(),
        }
    }

    /// How many children may run at the same time.
    pub(crate) fn max_concurrent(&self) -> usize {
        self.max_concurrent
    }

    /// The tools that children may have at most; `None` = as granted.
    pub(crate) fn allowed_tools(&self) -> Option<&[ToolName]> {
        self.allowed_tools.as_deref()
    }

    /// What the parent's model is told, by name.
    pub(crate) fn listed(&self) -> Vec<ListedAgent> {
        let all = self.entries();
        all.map(|(name, agent)| ListedAgent {
            name: name.clone(),
            description: agent.description.clone(),
        })
        .collect()
    }

    /// The agent that goes by this name.
    pub(crate) fn find(&self, name: &str) -> Option<&AgentId> {
        let name = name.trim();
        let by_slug = || {
            let slug = Slug::of(name)?;
            self.entries().find(|(listed, _)| listed.as_str() == slug.as_str())
        };
        let exact = self.entries().find(|(listed, _)| listed.as_str() == name);
        exact.or_else(by_slug).map(|(_, agent)| &agent.id)
    }

    /// The names, for an error.
    pub(crate) fn names(&self) -> String {
        let names: Vec<String> =
            self.entries().take(MAX_LISTED_AGENTS).map(|(name, _)| format!("`{name}`")).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    fn entries(&self) -> impl Iterator<Item = (&String, &Listed)> {
        let keep = |name: &String| self.only.as_ref().is_none_or(|only| only.contains(name));
        self.listing.0.iter().filter(move |(name, _)| keep(name))
    }
}

/// The listed names that a definition's own spelling means.
fn named(listing: &Listing, names: &[String]) -> BTreeSet<String> {
    let slugs: BTreeSet<Slug> = names.iter().filter_map(|name| Slug::of(name)).collect();
    let chosen =
        |name: &String, agent: &Listed| slugs.contains(&agent.id.slug) || names.contains(name);
    let found = listing.0.iter().filter(|(name, agent)| chosen(name, agent));
    found.map(|(name, _)| name.clone()).collect()
}
