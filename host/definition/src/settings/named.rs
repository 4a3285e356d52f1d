//! Checks that agents named in `belljar.toml` exist. A misspelt name there would silently grant nothing, or
//! block no agent. For example, `[grants.scuot]` yields a warning that suggests `scout`.

use std::path::{Path, PathBuf};

use belljar_policy::ShownText;

use super::schema::SettingsLoader;
use super::{Grantee, Settings};
use crate::diagnostic::{Diagnostic, FilePosition, MAX_DIAGNOSTICS, Severity};
use crate::toml_read::Item;
use crate::{AgentId, AgentScope, Catalog, LibraryName, Slug, TeamDefinition, suggest};

/// A name of an agent, with its position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NamedAgent {
    name: String,
    by: NamingPlace,
    path: PathBuf,
    at: FilePosition,
}

/// The setting that names an agent, which decides how the name is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamingPlace {
    /// `[grants.NAME]` at home: one agent or team; a bare name means one of the home.
    HomeGrant,
    /// `[grants.NAME]` in a workspace's file, where a bare name also means the workspace's own agents.
    WorkspaceGrant,
    /// `allowed_agents`: one agent, named as in a grant.
    Allowed,
    /// `blocked_agents`: all agents with this name.
    Blocked,
}

impl NamingPlace {
    /// The setting's name for messages.
    fn as_str(self) -> &'static str {
        match self {
            Self::HomeGrant | Self::WorkspaceGrant => "[grants]",
            Self::Allowed => "allowed_agents",
            Self::Blocked => "blocked_agents",
        }
    }
}

impl SettingsLoader<'_, '_, '_> {
    /// Stores the name for [`Settings::check_agents`].
    pub(super) fn name_agent(&mut self, name: &str, by: NamingPlace, item: &Item<'_>) {
        let at = self.reader.position_of(item.span());
        let (name, path) = (name.to_owned(), self.path.to_path_buf());
        self.settings.named_agents.push(NamedAgent { name, by, path, at });
    }
}

impl Settings {
    /// A warning for each name in a grant, `allowed_agents` or `blocked_agents` that matches no agent in this
    /// workspace, with the name that was likely meant. Agents of other workspaces are not checked, nor are
    /// names of unused files, which have diagnostics of their own.
    pub fn check_agents(
        &self,
        agents: &Catalog,
        teams: &Catalog<TeamDefinition>,
        workspace: &Path,
    ) -> Vec<Diagnostic> {
        let missing = self.named_agents.iter().filter(|named| {
            if let Some(name) = named.library_slug() {
                return !agents.has_library(name.as_str());
            }
            let id = named.name.parse::<AgentId>().ok();
            let elsewhere = matches!(&id, Some(AgentId { scope: AgentScope::Workspace(path), .. }) if path != workspace);
            !elsewhere && !named.is_there(id.as_ref(), agents, teams)
        });
        let (told, more) =
            (missing.clone().take(MAX_DIAGNOSTICS), missing.skip(MAX_DIAGNOSTICS).count());
        let mut told: Vec<_> = told.map(|named| named.missing_warning(agents)).collect();
        if let (Some(last), 1..) = (told.last(), more) {
            let message = format!("{more} more agents are named, and not there");
            let (path, hint) = (last.path.clone(), None);
            told.push(Diagnostic { path, message, hint, line: 0, column: 0, ..last.clone() });
        }
        told
    }
}

impl Settings {
    /// A warning for each grant with an outdated slug. Earlier versions dropped letters beyond ASCII, so
    /// `Café Reviewer` was `caf-reviewer`. Such a grant applies to no agent now, and the grant's restrictions
    /// are lost.
    pub fn outgrown_warnings(&self, agents: &Catalog) -> Vec<Diagnostic> {
        let grants = |named: &&NamedAgent| {
            matches!(named.by, NamingPlace::HomeGrant | NamingPlace::WorkspaceGrant)
        };
        let outgrown = self.named_agents.iter().filter(grants).filter_map(|named| {
            let id = named.name.parse::<AgentId>().ok()?;
            let there = agents.get(&id).is_some() || agents.has_unused(&id.slug);
            let now = outgrown_by(&id, agents).filter(|_| !there)?;
            Some(named.outgrown_warning(&id, now))
        });
        outgrown.take(MAX_DIAGNOSTICS).collect()
    }
}

/// The agent whose slug was `id` in the versions with only ASCII letters.
fn outgrown_by<'a>(id: &AgentId, agents: &'a Catalog) -> Option<&'a AgentId> {
    let of_ascii = |name: &str| {
        let kept = |c: char| if c.is_ascii() { c } else { ' ' };
        Slug::from_name(&name.chars().map(kept).collect::<String>())
    };
    let mut same = agents.agents().iter().filter(|entry| {
        entry.id.scope == id.scope && entry.id.slug != id.slug && {
            let name = entry.definition.name.as_str();
            !name.is_ascii() && of_ascii(name).as_ref() == Some(&id.slug)
        }
    });
    same.next().map(|entry| &entry.id)
}

impl NamedAgent {
    /// Whether an agent or a team has the name.
    fn is_there(
        &self,
        id: Option<&AgentId>,
        agents: &Catalog,
        teams: &Catalog<TeamDefinition>,
    ) -> bool {
        let slug = self.slug();
        let own = || {
            let mut found = slug.iter().flat_map(|slug| agents.entries_named(slug));
            found.any(|entry| matches!(entry.id.scope, AgentScope::Workspace(_)))
        };
        let is = |id: &AgentId| agents.get(id).is_some();
        let found = match self.by {
            NamingPlace::HomeGrant => id.is_some_and(|id| is(id) || teams.get(id).is_some()),
            NamingPlace::WorkspaceGrant => {
                let bare = id.is_none_or(|id| id.scope == AgentScope::Home);
                id.is_some_and(|id| is(id) || teams.get(id).is_some()) || bare && own()
            }
            NamingPlace::Allowed => id.is_some_and(is),
            NamingPlace::Blocked => {
                let whole = id.filter(|id| id.to_string() == self.name);
                let any = |slug: Slug| agents.entries_named(&slug).next().is_some();
                whole.is_some_and(is) || Slug::from_name(&self.name).is_some_and(any)
            }
        };
        let unused = |slug: &Slug| agents.has_unused(slug) || teams.has_unused(slug);
        found || slug.as_ref().is_some_and(unused)
    }

    /// The library that a grant names as a whole.
    fn library_slug(&self) -> Option<LibraryName> {
        match (self.by, self.name.parse()) {
            (NamingPlace::HomeGrant | NamingPlace::WorkspaceGrant, Ok(Grantee::Library(name))) => {
                Some(name)
            }
            (
                NamingPlace::HomeGrant
                | NamingPlace::WorkspaceGrant
                | NamingPlace::Allowed
                | NamingPlace::Blocked,
                _,
            ) => None,
        }
    }

    /// The name without its scope.
    fn slug(&self) -> Option<Slug> {
        Slug::from_name(self.name.rsplit('/').next().unwrap_or_default())
    }

    /// The warning about an outdated slug, with the present slug.
    fn outgrown_warning(&self, id: &AgentId, now: &AgentId) -> Diagnostic {
        let (id, now) = (id.grant_key(), now.grant_key());
        let shown = |id| ShownText::clip_line(id, 200).to_string();
        let by = self.by.as_str();
        Diagnostic {
            path: self.path.clone(),
            line: self.at.line,
            column: self.at.column,
            severity: Severity::Warning,
            code: "outgrown-name",
            message: format!(
                "`{by}` names `{}`, as `{}` was called before names could have letters of any \
                 script: it holds for nobody",
                shown(&id),
                shown(&now)
            ),
            hint: Some(format!("write `{}` in its place", shown(&now))),
        }
    }

    /// The warning about a name without an agent, with the likely agent.
    fn missing_warning(&self, agents: &Catalog) -> Diagnostic {
        let shown = match (self.by, self.name.parse::<AgentId>()) {
            (NamingPlace::HomeGrant | NamingPlace::WorkspaceGrant, Ok(id)) => id.to_string(),
            (
                NamingPlace::HomeGrant
                | NamingPlace::WorkspaceGrant
                | NamingPlace::Allowed
                | NamingPlace::Blocked,
                _,
            ) => self.name.clone(),
        };
        if let (NamingPlace::HomeGrant | NamingPlace::WorkspaceGrant, Ok(id)) =
            (self.by, self.name.parse::<AgentId>())
            && let Some(now) = outgrown_by(&id, agents)
        {
            return self.outgrown_warning(&id, now);
        }
        let (by, shown) = (self.by.as_str(), ShownText::clip_line(&shown, 200));
        let library = self.library_slug();
        let meant = match &library {
            Some(name) => {
                agents.library_like(name.as_str()).map(|near| format!("library/{near}/*"))
            }
            None => self.likely_agent(agents).map(AgentId::grant_key),
        };
        let meant = meant.map(|id| format!("did you mean `{}`?", ShownText::clip_line(&id, 200)));
        let kind = if library.is_some() { "library" } else { "agent" };
        Diagnostic {
            path: self.path.clone(),
            line: self.at.line,
            column: self.at.column,
            severity: Severity::Warning,
            code: "unknown-agent",
            message: format!("`{by}` names `{shown}`, and there is no such {kind}"),
            hint: Some(meant.unwrap_or_else(|| "`belljar agents list` shows all".to_owned())),
        }
    }

    /// The agent probably meant: of the same name in another scope, otherwise of the most similar name.
    fn likely_agent<'a>(&self, agents: &'a Catalog) -> Option<&'a AgentId> {
        let slug = self.slug()?;
        let ids = || agents.agents().iter().map(|entry| &entry.id);
        let namesake = agents.entries_named(&slug).next().map(|entry| &entry.id);
        namesake.or_else(|| {
            let near = suggest::find_nearest(slug.as_str(), ids().map(|id| id.slug.as_str()))?;
            ids().find(|id| id.slug.as_str() == near)
        })
    }
}
