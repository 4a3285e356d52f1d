//! The verdict on a file, and the rights of its agent under the operator's policy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use belljar_agent::{Host, resolve_entry};
use belljar_definition::{
    AgentDefinition, AgentId, AgentReadiness, Catalog, CatalogEntry, Diagnostic, MAX_DEFINITION,
    Parsed, Scope, Severity, Shapes, SkipReason, parse_agent_in, parse_too_large,
};
use belljar_policy::{LIMITS, Permission, Shown, Wanted};
use serde_json::{Map, Value, json};

use crate::commands::catalogue::agents;
use crate::setup::home::read_bounded;

/// The kind of a file, as found; the order is the table's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Ready,
    Warnings,
    Blocked,
    Invalid,
    NotAnAgent,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Ready, Self::Warnings, Self::Blocked, Self::Invalid, Self::NotAnAgent];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Warnings => "ready with warnings",
            Self::Blocked => "blocked",
            Self::Invalid => "invalid",
            Self::NotAnAgent => "not an agent",
        }
    }
}

/// A file that was looked at.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    /// The reasons for the kind, one a line; the first one is used if there is room for one only.
    pub(crate) reasons: Vec<String>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) agent: Option<Judged>,
}

/// An agent with its future rights.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) definition: AgentDefinition,
    tools: Vec<(String, Permission)>,
    needs: Vec<Wanted>,
    /// The command that grants the requests; only for an agent that grants can name.
    pub(crate) grant: Option<String>,
}

/// Judges files under one policy.
pub(crate) struct Judge<'a> {
    host: &'a Host,
    workspace: &'a Path,
    known: belljar_definition::KnownTools,
    shapes: Shapes,
    /// The ids of the home's and the workspace's agents, by file.
    ids: BTreeMap<PathBuf, AgentId>,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(host: &'a Host, workspace: &'a Path, lenient: bool) -> Self {
        let shapes = if lenient { Shapes::Lenient } else { host.settings.shapes };
        let catalog = host.library.catalog();
        let ids = catalog.agents().iter().filter_map(|entry| {
            Some((entry.definition.path.canonicalize().ok()?, entry.id.clone()))
        });
        Self { host, workspace, known: host.tools.known(), shapes, ids: ids.collect() }
    }

    pub(crate) fn known(&self) -> &belljar_definition::KnownTools {
        &self.known
    }

    /// Of a word that is no file and no agent: the agent that may be meant.
    fn meant(&self, word: &Path) -> String {
        let near = self.host.library.catalog().find(&word.to_string_lossy()).err();
        match near.iter().flat_map(|near| &near.suggestions).next() {
            Some(name) => format!("no agent is called so either; did you mean `{name}`?"),
            None => "no agent is called so either; `belljar agents list` shows all".to_owned(),
        }
    }

    /// Reads a file of any place.
    pub(crate) fn file(&self, path: &Path) -> Verdict {
        let parsed = match read_bounded(path, MAX_DEFINITION as u64) {
            Ok(bytes) => {
                let parsed = parse_agent_in(path, &bytes, &self.known, self.shapes);
                if self.is_own(path) { parsed.in_own_home() } else { parsed }
            }
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                parse_too_large(path, std::fs::metadata(path).map_or(0, |meta| meta.len()))
            }
            Err(error) => {
                let mut finding = agents::unreadable(path, &error);
                if error.kind() == std::io::ErrorKind::NotFound {
                    finding.hint = Some(self.meant(path));
                }
                return Verdict::invalid(path, vec![finding]);
            }
        };
        match parsed {
            Parsed::Agent { definition, diagnostics } => {
                let id = self.id(path, &definition);
                self.agent(&id, *definition, diagnostics)
            }
            Parsed::Invalid { diagnostics } => Verdict::invalid(path, diagnostics),
            Parsed::NotAnAgent { reason } => Verdict {
                path: path.to_path_buf(),
                kind: Kind::NotAnAgent,
                reasons: vec![reason.as_str().to_owned()],
                diagnostics: Vec::new(),
                agent: None,
            },
        }
    }

    /// Whether a file lies among the agents of the home.
    fn is_own(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let roots = self.host.library.roots().iter();
        let mut own = roots.filter(|root| root.scope == Scope::Home);
        own.any(|root| root.dir.canonicalize().is_ok_and(|dir| path.starts_with(dir)))
    }

    /// An agent that the catalogue has.
    pub(crate) fn entry(&self, entry: &CatalogEntry) -> Verdict {
        let CatalogEntry { id, definition, diagnostics } = entry;
        self.agent(id, definition.clone(), diagnostics.clone())
    }

    /// Everything in home and workspace, as the catalogue has it.
    pub(crate) fn catalog(&self, catalog: &Catalog) -> Vec<Verdict> {
        let entries = catalog.agents().iter().map(|entry| self.entry(entry));
        let skipped = catalog.skipped().iter().filter_map(|skipped| match &skipped.reason {
            SkipReason::Invalid(found) => Some(Verdict::invalid(&skipped.path, found.clone())),
            SkipReason::Duplicate(other) => {
                let other = Shown::new(&other.to_string_lossy()).to_string();
                let message = format!("`{other}` already has its name");
                Some(Verdict::invalid(
                    &skipped.path,
                    vec![Diagnostic::of_file(&skipped.path, "duplicate-name", message)],
                ))
            }
            SkipReason::Quarantined | SkipReason::NotAnAgent(_) => None,
        });
        let mut all: Vec<Verdict> = entries.chain(skipped).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// The id from the catalogue, otherwise an id that no grant can name: a file that is not installed is
    /// judged by the defaults.
    fn id(&self, path: &Path, definition: &AgentDefinition) -> AgentId {
        let known = || self.ids.get(&path.canonicalize().ok()?).cloned();
        let nobody =
            || AgentId { scope: Scope::Library(String::new()), slug: definition.slug.clone() };
        if self.ids.is_empty() { nobody() } else { known().unwrap_or_else(nobody) }
    }

    fn agent(
        &self,
        id: &AgentId,
        definition: AgentDefinition,
        diagnostics: Vec<Diagnostic>,
    ) -> Verdict {
        // As a run would find it.
        let entry = CatalogEntry { id: id.clone(), definition, diagnostics };
        let agent = resolve_entry(self.host, &entry, self.workspace);
        let CatalogEntry { definition, diagnostics, .. } = entry;
        let (kind, reasons) = match agent.status {
            AgentReadiness::Ready => (Kind::Ready, Vec::new()),
            AgentReadiness::ReadyWithWarnings { warnings } => (Kind::Warnings, warnings),
            AgentReadiness::Blocked { reasons } => (Kind::Blocked, reasons),
        };
        let tools = agent.rights.tools().map(|(tool, may)| (tool.to_string(), may)).collect();
        let named = !matches!(&id.scope, Scope::Library(name) if name.is_empty());
        let grant = (named && !agent.hint.is_empty()).then_some(agent.hint);
        let needs = agent.narrowed.into_iter().map(|narrowing| narrowing.wanted).collect();
        Verdict {
            path: definition.path.clone(),
            kind,
            reasons,
            diagnostics,
            agent: Some(Judged { definition, tools, needs, grant }),
        }
    }
}

impl Verdict {
    fn invalid(path: &Path, diagnostics: Vec<Diagnostic>) -> Self {
        let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let reasons = errors.map(|found| match found.line {
            0 => found.message.clone(),
            line => format!("line {line}: {}", found.message),
        });
        Self {
            path: path.to_path_buf(),
            kind: Kind::Invalid,
            reasons: reasons.collect(),
            diagnostics,
            agent: None,
        }
    }

    /// A file named by its own path has to be an agent.
    pub(crate) fn must_be_an_agent(&mut self) {
        if self.kind == Kind::NotAnAgent {
            let reasons = self.reasons.join("; ");
            let message = format!("not an agent: {reasons}");
            self.diagnostics.push(Diagnostic::of_file(&self.path, "not-an-agent", message));
        }
    }

    /// As an entry of `--json`. Its fields are part of the command's interface.
    pub(crate) fn as_json(&self) -> Value {
        let agent = self.agent.as_ref();
        let definition = agent.map(|agent| &agent.definition);
        let asking = |may: &Permission| *may == Permission::Ask;
        let tools = agent.map_or(&[][..], |agent| agent.tools.as_slice());
        let names = |keep: &dyn Fn(&Permission) -> bool| -> Vec<&str> {
            tools.iter().filter(|(_, may)| keep(may)).map(|(tool, _)| tool.as_str()).collect()
        };
        let unknown = definition.iter().flat_map(|agent| &agent.unknown_tools);
        let unknown = unknown.map(|name| json!({ "name": name, "why": "it does not exist" }));
        let unavailable = definition.iter().flat_map(|agent| &agent.unavailable);
        let unclear = definition.iter().flat_map(|agent| &agent.unclear);
        let unavailable =
            unavailable.chain(unclear).map(|tool| json!({ "name": tool.name, "why": tool.why }));
        json!({
            "path": self.path,
            "status": self.kind.as_str(),
            "reasons": self.reasons,
            "dialect": definition.map(|agent| agent.dialect),
            "name": definition.map(|agent| &agent.name),
            "tools": names(&|_| true),
            "ask": names(&asking),
            "limits": definition.map_or_else(Map::new, limits),
            "writes": definition.map(|agent| agent.asked.writes),
            "max_depth": definition.and_then(|agent| agent.subagents.as_ref()?.max_depth),
            "unavailable": unknown.chain(unavailable).collect::<Vec<_>>(),
            "needs": agent.map_or(&[][..], |agent| agent.needs.as_slice()),
            "diagnostics": self.diagnostics.iter().map(agents::as_json).collect::<Vec<_>>(),
        })
    }
}

/// The limits stated in the agent's own file.
fn limits(agent: &AgentDefinition) -> Map<String, Value> {
    let stated = |key: &str| Some((key.to_owned(), json!(agent.asked.limits.get(key)?)));
    LIMITS.iter().filter_map(|row| stated(row.key)).collect()
}
