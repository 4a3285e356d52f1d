//! `belljar agents list`: a row for each agent that fits on a screen, and a line for each library that does not.
//!
//! The agents of a line are not resolved: a library of two thousand costs a list as little as one of ten.

use std::collections::BTreeMap;

use belljar_agent::{Host, ResolveError, ResolvedAgent, canonicalize_workspace, resolve_entry};
use belljar_definition::{AgentScope, CatalogEntry};

use crate::args::server::TenantArg;
use crate::setup::home::HomePaths;
use crate::term::out::TerminalOutput;
use crate::term::table;

/// Rows of a list: a screen or two.
const MAX_ROWS: usize = 40;

/// The agents of a list.
pub(super) struct AgentListing {
    /// The agents with a row each.
    pub(super) agents: Vec<ResolvedAgent>,
    /// The libraries with a line each, and the numbers of their agents.
    pub(super) libraries: BTreeMap<String, usize>,
    /// Agents of home and workspace without a row.
    more: usize,
}

/// Which agents a person wants to see.
#[derive(Debug, Clone, Copy)]
pub(super) enum ListedAgents<'a> {
    /// As many as fit on a screen.
    Screen,
    /// The agents of one library.
    Library(&'a str),
    /// All.
    All,
}

impl AgentListing {
    /// Resolves the agents that get a row.
    pub(super) fn from_host(
        host: &Host,
        places: &HomePaths,
        wanted: ListedAgents<'_>,
    ) -> Result<Self, ResolveError> {
        let workspace = canonicalize_workspace(&places.workspace)?;
        host.library.refresh();
        let catalog = host.library.catalog();
        let all = catalog.agents();
        let library = |entry: &CatalogEntry| match &entry.id.scope {
            AgentScope::Library(name) => Some(name.clone()),
            AgentScope::Home | AgentScope::Workspace(_) => None,
        };
        let mut libraries = BTreeMap::new();
        let shown: Vec<&CatalogEntry> = match wanted {
            ListedAgents::All => all.iter().collect(),
            ListedAgents::Library(name) => {
                all.iter().filter(|entry| library(entry).as_deref() == Some(name)).collect()
            }
            ListedAgents::Screen if all.len() <= MAX_ROWS => all.iter().collect(),
            ListedAgents::Screen => {
                for name in all.iter().filter_map(library) {
                    *libraries.entry(name).or_insert(0) += 1;
                }
                all.iter().filter(|entry| library(entry).is_none()).collect()
            }
        };
        let rows = match wanted {
            ListedAgents::Screen => MAX_ROWS,
            ListedAgents::Library(_) | ListedAgents::All => usize::MAX,
        };
        let more = shown.len().saturating_sub(rows);
        let shown = shown.into_iter().take(rows);
        let agents = shown.map(|entry| resolve_entry(host, entry, &workspace)).collect();
        Ok(Self { agents, libraries, more })
    }

    /// The lines of the agents without a row.
    pub(super) fn print_rest(&self, of: &TenantArg, out: &TerminalOutput) {
        if self.more > 0 {
            out.print_line(format_args!(
                "and {} more of home and workspace",
                table::format_quantity(self.more as u64, "agent")
            ));
        }
        for (name, count) in &self.libraries {
            let agents = table::format_quantity(*count as u64, "agent");
            out.print_line(format_args!("library/{name}  {agents}"));
        }
        if let Some((name, _)) = self.libraries.first_key_value() {
            let command = of.format_command(&format!("belljar agents list --library {name}"));
            out.print_line(format_args!("`{command}` lists one of them, `--verbose` all"));
        } else if self.more > 0 {
            out.print_line("`--verbose` lists all");
        }
    }
}
