//! The state of a process that runs need and share: sandbox, models, settings, tools, agents.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use belljar_definition::Catalog;
use belljar_definition::{Settings, SkillDefinition, command_of};
use belljar_model::ModelRegistry;
use belljar_sandbox::{Sandbox, SecretStore};

use crate::billed::AgentBills;
use crate::clock::{Clock, SystemClock};
use crate::finding::catalogue::{EntryKind, SearchCatalogue, SearchEntry};
use crate::finding::search::{CatalogueSearch, NoSearch};
use crate::limits::{MAX_SEARCHED_TEXT, truncate_str};
use crate::prompt::skills::{SkillCaller, call_name, offered_skills};
use crate::replay::journal::{Journal, NoJournal};
use crate::rights::delegates::DelegateListing;
use crate::rights::resolve::ResolvedAgent;
use crate::tools::approval::asker::{Asker, NoAsker};
use crate::tools::hooks::Hooks;
use belljar_catalogue::ToolCatalogue;
use belljar_catalogue::{CommandLibrary, Library, SkillFolder, SkillLibrary, TeamLibrary};

/// The state of a process, shared by all runs and by clones of this value.
#[derive(Clone)]
pub struct Host {
    /// Runs the tools.
    pub sandbox: Sandbox,
    /// The configured models.
    pub models: Arc<ModelRegistry>,
    /// The settings of `belljar.toml`, the home's and the workspace's.
    pub settings: Arc<Settings>,
    /// The installed tools.
    pub tools: Arc<ToolCatalogue>,
    /// The known agents.
    pub library: Arc<Library>,
    /// The operator's hooks. Default: those in the settings.
    pub hooks: Arc<Hooks>,
    /// The known teams. Default: none.
    pub teams: Arc<TeamLibrary>,
    /// The known skills. Default: none.
    pub skills: Arc<SkillLibrary>,
    /// The commands that exist. Default: none.
    pub commands: Arc<CommandLibrary>,
    /// The folders of skills that agents of a run read. Default: none; a run looks for them.
    pub(crate) skill_folders: Arc<[SkillFolder]>,
    /// The values of secrets, which the grants give to tools.
    pub secrets: SecretStore,
    /// The person to ask if a grant says `ask`. Default: no person, and such calls are refused.
    pub asker: Arc<dyn Asker>,
    /// Stores a run while it runs. Default: stores nothing.
    pub journal: Arc<dyn Journal>,
    /// The operator's home directory, for its `AGENTS.md`. Default: none.
    pub home: Option<PathBuf>,
    /// The tenant, for commands in hints. Default: none.
    pub tenant: Option<String>,
    /// The data directory for commands in hints, if it is not the configured one. Default: none.
    pub data: Option<PathBuf>,
    /// Time and random ids. Default: the machine's.
    pub clock: Arc<dyn Clock>,
    /// The text index of agents, skills and tools. Default: none, so contexts list everything.
    pub search: Arc<dyn CatalogueSearch>,
    /// What models have billed for the latest steps of each agent.
    pub(crate) billed: Arc<AgentBills>,
    /// The agents open to delegation, cached for one catalogue and workspace.
    listing: Arc<Mutex<Option<CachedListing>>>,
    /// The entries of the text index, cached for one listing, its skills and tools.
    searched: Arc<Mutex<Option<CachedEntries>>>,
}

struct CachedEntries {
    listing: Arc<DelegateListing>,
    skills: Arc<Catalog<SkillDefinition>>,
    tools: Arc<ToolCatalogue>,
    entries: Arc<SearchCatalogue>,
}

struct CachedListing {
    catalog: Arc<Catalog>,
    workspace: PathBuf,
    listing: Arc<DelegateListing>,
}

impl Host {
    /// A host that asks no person, has no secrets and uses the machine's clock.
    pub fn new(
        sandbox: Sandbox,
        models: Arc<ModelRegistry>,
        settings: Arc<Settings>,
        tools: Arc<ToolCatalogue>,
        library: Arc<Library>,
    ) -> Self {
        Self {
            sandbox,
            models,
            hooks: Arc::new(Hooks::from_settings(&settings)),
            settings,
            tools,
            library,
            teams: Arc::new(TeamLibrary::from_roots(Vec::new(), Vec::new(), (), false)),
            skills: Arc::new(SkillLibrary::from_roots(Vec::new(), Vec::new(), (), false)),
            commands: Arc::new(CommandLibrary::from_roots(Vec::new(), Vec::new(), (), false)),
            skill_folders: Arc::default(),
            secrets: SecretStore::default(),
            asker: Arc::new(NoAsker),
            journal: Arc::new(NoJournal),
            home: None,
            tenant: None,
            data: None,
            clock: Arc::new(SystemClock),
            search: Arc::new(NoSearch),
            billed: Arc::default(),
            listing: Arc::default(),
            searched: Arc::default(),
        }
    }

    /// A command for the operator, with the options for the host's tenant and data directory.
    pub fn for_its_tenant(&self, command: &str) -> String {
        command_of(command, self.tenant.as_deref(), self.data.as_deref())
    }

    /// The owner to whom threads for one kind of work are counted, for example `TENANT/overlays`. Each kind
    /// has a share of the tenant's threads, so no kind waits for another.
    pub(crate) fn owner_of(&self, share: &str) -> String {
        format!("{}/{share}", self.tenant.as_deref().unwrap_or_default())
    }

    /// The owner of the threads on which overlays are closed and removed.
    pub fn owner_of_overlays(&self) -> String {
        self.owner_of("overlays")
    }

    /// The owner of the threads that work on the layers of sessions: one share, however many subagents have
    /// copies.
    pub(crate) fn owner_of_layers(&self) -> String {
        self.owner_of("layers")
    }

    /// This host with the model bills that an earlier host has collected.
    #[must_use]
    pub fn knowing_the_bills_of(self, before: &Self) -> Self {
        Self { billed: Arc::clone(&before.billed), ..self }
    }

    /// The host for a run of these agents. Replies to tools are searched for the secrets of these agents;
    /// that is enough, because subagents have no further rights.
    pub(crate) fn for_run<'a>(&self, agents: impl IntoIterator<Item = &'a ResolvedAgent>) -> Self {
        let names = agents.into_iter().flat_map(|agent| agent.rights.secrets()).cloned();
        Self { secrets: self.secrets.for_run(&names.collect()), ..self.clone() }
    }

    /// The agents open to delegation in the workspace, listed again only if the library has changed.
    pub(crate) fn delegate_listing(&self, workspace: &Path) -> Arc<DelegateListing> {
        let catalog = self.library.catalog();
        let mut cached = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*cached
            && Arc::ptr_eq(&known.catalog, &catalog)
            && known.workspace == workspace
        {
            return Arc::clone(&known.listing);
        }
        let listing = Arc::new(DelegateListing::from_catalog(self, &catalog, workspace));
        *cached = Some(CachedListing {
            catalog,
            workspace: workspace.to_owned(),
            listing: Arc::clone(&listing),
        });
        listing
    }

    /// The entries of the text index: each agent that some parent may hand work to, each skill of models, and
    /// each accepted tool of a server. Rights are decided later, for each agent.
    fn list_entries(&self, agents: &DelegateListing) -> SearchCatalogue {
        let agents = agents.searched_entries();
        let catalog = self.skills.catalog();
        let skills = offered_skills(catalog.entries(), SkillCaller::Model).map(|skill| {
            let definition = &skill.definition;
            let body = truncate_str(&definition.body, MAX_SEARCHED_TEXT);
            let more = format!("{} {body}", definition.triggers.join(" "));
            SearchEntry::new(EntryKind::Skill, call_name(skill), &definition.description, more)
        });
        let servers = self.tools.servers().iter();
        let tools = servers.flat_map(|server| server.tools().iter()).map(|(name, tool)| {
            let about = truncate_str(&tool.description, MAX_SEARCHED_TEXT);
            SearchEntry::new(EntryKind::Tool, name.to_string(), about, String::new())
        });
        SearchCatalogue::from_entries(agents.chain(skills).chain(tools))
    }

    /// The entries of the text index in this workspace; made anew only if agents, skills or tools have changed.
    pub(crate) fn searched_catalogue(&self, workspace: &Path) -> Arc<SearchCatalogue> {
        let (listing, skills) = (self.delegate_listing(workspace), self.skills.catalog());
        let mut cached = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*cached
            && Arc::ptr_eq(&known.listing, &listing)
            && Arc::ptr_eq(&known.skills, &skills)
            && Arc::ptr_eq(&known.tools, &self.tools)
        {
            return Arc::clone(&known.entries);
        }
        let entries = self.list_entries(&listing);
        let (entries, tools) = (Arc::new(entries), Arc::clone(&self.tools));
        *cached = Some(CachedEntries { listing, skills, tools, entries: Arc::clone(&entries) });
        entries
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}
