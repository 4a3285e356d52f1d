//! The agents to which a parent may delegate: ready, open to calls of other agents, and not excluded by the
//! parent's own file or the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use belljar_definition::Catalog;
use belljar_definition::{AgentDefinition, AgentId, AgentScope, Slug, SubagentsAsk, Visibility};
use belljar_policy::{DecisionSource, ToolName};

use crate::finding::catalogue::{EntryKind, SearchEntry};
use crate::host::Host;
use crate::limits::{MAX_LISTED_AGENTS, MAX_SEARCHED_TEXT, PARALLEL_CHILDREN, truncate_str};
use crate::prompt::blocks::ListedAgent;
use crate::rights::resolve;
use crate::tools::builtin::tool::BuiltinTool;

/// All agents of a library open to delegation, keyed by the name for calls.
#[derive(Debug, Default)]
pub(crate) struct DelegateListing(BTreeMap<String, ListedDelegate>);

#[derive(Debug, Clone)]
struct ListedDelegate {
    id: AgentId,
    definition: Arc<AgentDefinition>,
    tools: Vec<String>,
    timeout_seconds: u64,
}

/// The agents to which one parent may delegate.
#[derive(Debug, Default)]
pub(crate) struct DelegateSet {
    listing: Arc<DelegateListing>,
    /// The names that the parent's file allows; `None` = all of the listing.
    only: Option<BTreeSet<String>>,
    /// The names that the operator allows; `None` = all of the listing.
    granted: Option<BTreeSet<String>>,
    max_concurrent: usize,
    allowed_tools: Option<Vec<ToolName>>,
    /// The library that the parent comes from: a name `plugin:agent` is looked for there.
    library: Option<AgentScope>,
}

impl DelegateListing {
    /// Lists the agents of the catalogue, with the rights that the host's settings grant to each.
    pub(crate) fn from_catalog(host: &Host, catalog: &Catalog, workspace: &Path) -> Self {
        let mut listed = BTreeMap::new();
        for agent in catalog.agents() {
            if agent.definition.visibility == Visibility::Internal || is_blocked(host, &agent.id) {
                continue;
            }
            // A slug alone means one agent everywhere, even an agent that cannot run. Another agent with the
            // same slug must be called by the whole id.
            let meant =
                catalog.find_unscoped(&agent.id.slug).is_some_and(|meant| meant.id == agent.id);
            let Ok(resolved) = resolve::resolve_child(host, &agent.id, workspace) else { continue };
            let name = match meant {
                true => resolved.id.slug.as_str().to_owned(),
                false => resolved.id.to_string(),
            };
            let tools = resolved.rights.offered_tools().map(|(name, _)| name);
            let tools = tools.filter(|name| BuiltinTool::from_name(name.as_str()).is_none());
            let tools = tools.map(|name| name.as_str().to_owned()).collect();
            let timeout_seconds = resolved.rights.limits().timeout_seconds;
            let definition = Arc::clone(&resolved.definition);
            listed.insert(
                name,
                ListedDelegate { id: resolved.id, definition, tools, timeout_seconds },
            );
        }
        Self(listed)
    }

    /// Whether an agent of the operator's or the workspace's has this name.
    fn has_own(&self, name: &str) -> bool {
        let slug = Slug::from_name(name);
        self.0.values().any(|it| !it.is_of_library() && slug.as_ref() == Some(&it.id.slug))
    }

    /// The agents as entries of a text index.
    pub(crate) fn searched_entries(&self) -> impl Iterator<Item = SearchEntry> {
        self.0.iter().map(|(name, agent)| {
            let AgentDefinition { description, body, .. } = &*agent.definition;
            let body = truncate_str(body, MAX_SEARCHED_TEXT);
            let more = format!("{} {body}", agent.tools.join(" "));
            SearchEntry::new(EntryKind::Agent, name.clone(), description, more)
        })
    }
}

/// The number of children that may run side by side. Only the operator's setting can raise the default.
fn granted_side_by_side(granted: &[SubagentsAsk]) -> usize {
    let most = granted.iter().filter_map(|it| it.max_concurrent).min();
    most.map_or(PARALLEL_CHILDREN, |n| n as usize).max(1)
}

/// The number of this parent's children that may run side by side, by the operator's settings and the
/// parent's file.
pub fn side_by_side(granted: &[SubagentsAsk], parent: &AgentDefinition) -> usize {
    let asked = parent.subagents.as_ref().and_then(|asked| asked.max_concurrent);
    let granted = granted_side_by_side(granted);
    asked.map_or(granted, |asked| granted.min(asked as usize)).max(1)
}

impl DelegateSet {
    /// The delegates of an agent that may start no other agent: none.
    pub(crate) fn none() -> Self {
        Self { max_concurrent: 1, ..Self::default() }
    }

    /// The listed agents that neither the operator nor the file of `parent` excludes. `granted` has one rule
    /// for each settings file of the operator.
    pub(crate) fn from_listing(
        listing: Arc<DelegateListing>,
        granted: &[SubagentsAsk],
        parent: &AgentDefinition,
        scope: &AgentScope,
    ) -> Self {
        let library = matches!(scope, AgentScope::Library(_)).then(|| scope.clone());
        let mut it = Self { listing, library: library.clone(), ..Self::default() };
        it.max_concurrent = granted_side_by_side(granted);
        for said in granted {
            it.narrow_by(said, resolve_operator_names);
        }
        it.granted.clone_from(&it.only);
        if let Some(said) = &parent.subagents {
            it.narrow_by(said, |listing, names| {
                resolve_definition_names(listing, names, library.as_ref())
            });
        }
        it
    }

    /// Narrows the set by a rule: the list of agents, `enabled`, the number side by side and the tools.
    /// `meant` resolves the rule's names.
    fn narrow_by(
        &mut self,
        said: &SubagentsAsk,
        meant: impl Fn(&DelegateListing, &[String]) -> BTreeSet<String>,
    ) {
        let SubagentsAsk { enabled, max_depth: _, max_concurrent, allowed_agents, allowed_tools } =
            said;
        if let Some(names) = allowed_agents {
            let named = meant(&self.listing, names);
            self.only = Some(match self.only.take() {
                Some(only) => only.intersection(&named).cloned().collect(),
                None => named,
            });
        }
        if *enabled == Some(false) {
            self.only = Some(BTreeSet::new());
        }
        if let Some(most) = max_concurrent {
            self.max_concurrent = self.max_concurrent.min(*most as usize).max(1);
        }
        if let Some(tools) = allowed_tools {
            let keep = |tool: &&ToolName| {
                self.allowed_tools.as_ref().is_none_or(|allowed| allowed.contains(tool))
            };
            self.allowed_tools = Some(tools.iter().filter(keep).cloned().collect());
        }
    }

    /// The number of children that may run side by side.
    pub(crate) fn max_concurrent(&self) -> usize {
        self.max_concurrent
    }

    /// The tools that children may have at most; `None` = each child's grants alone decide.
    pub(crate) fn allowed_tools(&self) -> Option<&[ToolName]> {
        self.allowed_tools.as_deref()
    }

    /// The list of agents for the parent's prompt, by name.
    pub(crate) fn listed_agents(&self) -> Vec<ListedAgent> {
        let all = self.ordered_entries();
        all.map(|(name, agent)| ListedAgent {
            name: name.clone(),
            description: agent.definition.description.clone(),
            tools: agent.tools.clone(),
            timeout_seconds: agent.timeout_seconds,
        })
        .collect()
    }

    /// Returns whether the agent of this name is the operator's or the workspace's, not a library's.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.listing.0.get(name).is_some_and(|agent| !agent.is_of_library())
    }

    /// Returns whether the agent has no delegates. Copies nothing, because this check runs for every listed
    /// agent.
    pub(crate) fn is_empty(&self) -> bool {
        self.ordered_entries().next().is_none()
    }

    /// The agent with this name: as listed, else by its id, in the own library, in a plugin, by its slug.
    pub(crate) fn find_agent(&self, name: &str) -> Option<&AgentId> {
        let name = name.trim();
        // `pilot:scout` is never a library's `pilot-scout`.
        let by_slug = || {
            let slug = Slug::from_name(name)?;
            let is_meant = |agent: &ListedDelegate| !name.contains(':') || !agent.is_of_library();
            let mut listed = self.ordered_entries();
            listed.find(|(listed, it)| listed.as_str() == slug.as_str() && is_meant(it))
        };
        let exact = self.ordered_entries().find(|(listed, _)| listed.as_str() == name);
        // The name may also be an id, as in grants, for example `library/NAME/agent`.
        let by_id = || self.ordered_entries().find(|(_, agent)| is_identity(name, &agent.id));
        // `PLUGIN:NAME`, if it names one agent only, and none of the operator's or the workspace's.
        let by_plugin = || {
            if self.listing.has_own(name) {
                return None;
            }
            let mut found = self.ordered_entries().filter(|(_, it)| it.id.has_plugin_name(name));
            found.next().filter(|_| found.next().is_none())
        };
        let in_library = || {
            let library = self.library.as_ref()?;
            self.ordered_entries().find(|(_, agent)| is_of_plugin(name, &agent.id, library))
        };
        let found = exact.or_else(by_id).or_else(in_library).or_else(by_plugin).or_else(by_slug);
        found.map(|(_, agent)| &agent.id)
    }

    /// Which source denies this parent the agent `name`, after [`Self::find_agent`] has returned `None`.
    pub(crate) fn refused_by(&self, host: &Host, name: &str) -> DecisionSource {
        let name = name.trim();
        let slug = Slug::from_name(name);
        let blocked = host.settings.subagents.blocked_agents.iter();
        let mut blocked = blocked.filter_map(|blocked| Slug::from_name(blocked));
        let is_listed = |listed: &&String| {
            listed.as_str() == name || slug.as_ref().is_some_and(|slug| slug.as_str() == *listed)
        };
        match self.listing.0.keys().find(is_listed) {
            Some(listed) if self.granted.as_ref().is_none_or(|only| only.contains(listed)) => {
                DecisionSource::Definition
            }
            Some(_) => DecisionSource::Grants,
            None if slug.is_some() && blocked.any(|blocked| Some(blocked) == slug) => {
                DecisionSource::Grants
            }
            None => DecisionSource::Host,
        }
    }

    /// The names of the agents, for an error text.
    pub(crate) fn format_names(&self) -> String {
        let names: Vec<String> = self
            .ordered_entries()
            .take(MAX_LISTED_AGENTS)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }

    /// Agents of libraries come last: in a cut list, a large library must not displace others.
    fn ordered_entries(&self) -> impl Iterator<Item = (&String, &ListedDelegate)> {
        let keep = |name: &String| self.only.as_ref().is_none_or(|only| only.contains(name));
        let of = move |libraries: bool| {
            let found = self.listing.0.iter().filter(move |(name, _)| keep(name));
            found.filter(move |(_, agent)| agent.is_of_library() == libraries)
        };
        of(false).chain(of(true))
    }
}

/// Returns whether `name`, written with its scope, is the agent's id, in any Unicode normalization.
fn is_identity(name: &str, id: &AgentId) -> bool {
    name.contains('/') && name.parse::<AgentId>().is_ok_and(|named| named == *id)
}

/// Returns whether `plugin:name`, written in an agent file of `library`, means the agent `id`. An agent of
/// the same name from another library does not count.
fn is_of_plugin(name: &str, id: &AgentId, library: &AgentScope) -> bool {
    let last = name.rsplit_once(':').filter(|(plugin, _)| !plugin.contains('/'));
    let slug = last.and_then(|(_, last)| Slug::from_name(last));
    id.scope == *library && slug.is_some_and(|slug| slug == id.slug)
}

/// Returns whether the operator forbids all delegation to the agent.
fn is_blocked(host: &Host, id: &AgentId) -> bool {
    let blocked = &host.settings.subagents.blocked_agents;
    blocked.iter().any(|name| {
        is_identity(name, id) || Slug::from_name(name).is_some_and(|slug| slug == id.slug)
    })
}

/// Resolves names that the operator wrote. A bare name means the agent of the operator's home, as in grants,
/// never an agent of the same name from elsewhere.
fn resolve_operator_names(listing: &DelegateListing, names: &[String]) -> BTreeSet<String> {
    let ids: Vec<AgentId> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let found = listing.0.iter().filter(|(_, agent)| ids.contains(&agent.id));
    found.map(|(name, _)| name.clone()).collect()
}

impl ListedDelegate {
    fn is_of_library(&self) -> bool {
        matches!(self.id.scope, AgentScope::Library(_))
    }
}

/// Resolves names in an agent's own file. A bare name means a library's agent only if no other listed agent
/// has that name.
fn resolve_definition_names(
    listing: &DelegateListing,
    names: &[String],
    library: Option<&AgentScope>,
) -> BTreeSet<String> {
    let slugs: BTreeSet<Slug> = names.iter().filter_map(|name| Slug::from_name(name)).collect();
    let bare_names = names.iter().filter(|name| !name.contains(':'));
    let bare_slugs: BTreeSet<Slug> = bare_names.filter_map(|name| Slug::from_name(name)).collect();
    let chosen = |name: &String, agent: &ListedDelegate| {
        let by_slug = match agent.is_of_library() {
            true => name.as_str() == agent.id.slug.as_str() && bare_slugs.contains(&agent.id.slug),
            false => slugs.contains(&agent.id.slug),
        };
        let of_plugin = || {
            let library = library.filter(|library| agent.id.scope == **library);
            library
                .is_some_and(|library| names.iter().any(|it| is_of_plugin(it, &agent.id, library)))
        };
        let by_plugin = |name: &String| agent.id.has_plugin_name(name) && !listing.has_own(name);
        by_slug || names.contains(name) || names.iter().any(by_plugin) || of_plugin()
    };
    let found = listing.0.iter().filter(|(name, agent)| chosen(name, agent));
    found.map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_definition::{KnownTools, ParsedAgentFile, parse_agent};

    /// A listing of these (name, id) pairs.
    fn listing(names: &[(&str, &str)]) -> Arc<DelegateListing> {
        let listed = names.iter().map(|(name, id)| {
            let id = id.parse().unwrap();
            let text = b"---\nname: a\ndescription: b\n---\nc";
            let parsed = parse_agent(Path::new("a.md"), text, &KnownTools::default());
            let ParsedAgentFile::Agent { definition, .. } = parsed else { panic!("{parsed:?}") };
            let (definition, tools) = (Arc::from(definition), Vec::new());
            ((*name).to_owned(), ListedDelegate { id, definition, tools, timeout_seconds: 1 })
        });
        Arc::new(DelegateListing(listed.collect()))
    }

    #[test]
    fn libraries_are_listed_last_and_meant_by_their_own_names_only() {
        let listing = listing(&[
            ("adder", "library/x/adder"),
            ("library/x/scout", "library/x/scout"),
            ("scout", "home/scout"),
            ("zoo", "workspace:/w/zoo"),
        ]);
        let all = DelegateSet { listing: Arc::clone(&listing), ..DelegateSet::none() };
        let names: Vec<_> = all.listed_agents().into_iter().map(|agent| agent.name).collect();
        assert_eq!(names, ["scout", "zoo", "adder", "library/x/scout"]);
        assert_eq!(all.find_agent("scout").unwrap().to_string(), "home/scout");

        // An agent is found by its id too, whatever its name in the listing; an id finds no other agent.
        for (name, id) in [
            ("library/x/adder", "library/x/adder"),
            (" library/x/scout ", "library/x/scout"),
            ("home/scout", "home/scout"),
            ("Scout", "home/scout"),
        ] {
            assert_eq!(
                all.find_agent(name).map(ToString::to_string).as_deref(),
                Some(id),
                "{name}"
            );
        }
        for name in ["library/y/adder", "library/x/zoo", "library/x", "x/adder", "home/adder"] {
            assert!(all.find_agent(name).is_none(), "{name}");
        }

        let meant = |name: &str| {
            let names = [name.to_owned()];
            resolve_definition_names(&listing, &names, None).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(meant("scout"), ["scout"]);
        assert_eq!(meant("Adder"), ["adder"]);
        assert_eq!(meant("library/x/scout"), ["library/x/scout"]);
    }

    #[test]
    fn a_name_with_a_colon_is_no_librarys_agent_of_the_joined_name() {
        let stranger = ("pilot-scout", "library/x/pilot-scout");
        let plugins = ("scout", "library/harbour/pilot/scout");
        let own = ("pilot-scout", "home/pilot-scout");
        for (listed, id) in [
            (&[stranger][..], None),
            (&[stranger, plugins], Some(plugins.1)),
            (&[own, plugins], Some(own.1)),
        ] {
            let listing = listing(listed);
            let names = ["pilot:scout".to_owned()];
            let meant = resolve_definition_names(&listing, &names, None);
            let meant: Vec<_> = meant.iter().map(|name| listing.0[name].id.to_string()).collect();
            assert_eq!(meant.first().map(String::as_str), id, "{meant:?}");
            assert_eq!(meant.len(), usize::from(id.is_some()), "{meant:?}");
            let all = DelegateSet { listing, ..DelegateSet::none() };
            assert_eq!(all.find_agent("pilot:scout").map(ToString::to_string).as_deref(), id);
            assert!(all.find_agent("pilot-scout").is_some());
        }
    }

    #[test]
    fn the_own_librarys_agent_comes_before_other_plugins() {
        let listing = listing(&[
            ("library/eve/pilot/scout", "library/eve/pilot/scout"),
            ("library/harbour/pilot/scout", "library/harbour/pilot/scout"),
            ("pilot-scout", "library/x/pilot-scout"),
        ]);
        let library = Some(AgentScope::Library("harbour/pilot".to_owned()));
        let set = DelegateSet { listing, library, ..DelegateSet::none() };
        let found = |set: &DelegateSet| set.find_agent("pilot:scout").map(ToString::to_string);
        assert_eq!(found(&set).as_deref(), Some("library/harbour/pilot/scout"));
        // Elsewhere the name is two plugins', and means none.
        assert_eq!(found(&DelegateSet { library: None, ..set }), None);
    }

    #[test]
    fn a_plugins_name_means_an_agent_of_the_own_library() {
        let listing = listing(&[
            ("adder", "library/x/adder"),
            ("library/x/scout", "library/x/scout"),
            ("scout", "home/scout"),
            ("library/y/scout", "library/y/scout"),
        ]);
        let library = AgentScope::Library("x".to_owned());
        let names = ["kit:scout".to_owned(), "kit:adder".to_owned(), "other/kit:adder".to_owned()];
        let meant = resolve_definition_names(&listing, &names[..1], Some(&library));
        assert_eq!(meant.into_iter().collect::<Vec<_>>(), ["library/x/scout"]);
        assert!(resolve_definition_names(&listing, &names[..1], None).is_empty());
        let set = DelegateSet { listing, library: Some(library), ..DelegateSet::none() };
        let found = |name: &str| set.find_agent(name).map(ToString::to_string);
        assert_eq!(found("kit:scout").as_deref(), Some("library/x/scout"));
        assert_eq!(found("kit:adder").as_deref(), Some("library/x/adder"));
        assert_eq!(found(&names[2]), None);
        let home = DelegateSet { library: None, ..set };
        assert_eq!(home.find_agent("kit:scout"), None);
    }
}
