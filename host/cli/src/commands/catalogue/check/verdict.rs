//! Judges a file for `agents check`: what kind of file it is, and which rights its agent would have under the
//! operator's settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use belljar_agent::{Host, resolve_entry};
use belljar_definition::{
    AgentDefinition, AgentId, AgentReadiness, AgentScope, Catalog, CatalogEntry, Diagnostic,
    FrontmatterShapes, MAX_DEFINITION, ParsedAgentFile, Severity, SkipReason, parse_agent_in,
    parse_too_large,
};
use belljar_policy::{CallPermission, LIMITS, ShownText, WantedRight};
use serde_json::{Map, Value, json};

use crate::commands::catalogue::agents;
use crate::setup::home::read_bounded;

/// The verdict about a file. The variants are in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JudgedFileKind {
    Ready,
    Warnings,
    Blocked,
    Invalid,
    NotAnAgent,
}

impl JudgedFileKind {
    /// All verdicts, in the order of the summary.
    pub(crate) const ALL: [Self; 5] =
        [Self::Ready, Self::Warnings, Self::Blocked, Self::Invalid, Self::NotAnAgent];

    /// The verdict as shown.
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

/// A file with its verdict.
#[derive(Debug)]
pub(crate) struct JudgedFile {
    pub(crate) path: PathBuf,
    pub(crate) kind: JudgedFileKind,
    /// The reasons for the verdict, one line each. If there is room for a single one, the first is shown.
    pub(crate) reasons: Vec<String>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) agent: Option<JudgedAgent>,
}

impl JudgedFile {
    /// Whether it is one of the many files of TOML, JSON or YAML that hold no agent.
    pub(crate) fn is_other_form(&self) -> bool {
        let is_markdown =
            self.path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
        self.kind == JudgedFileKind::NotAnAgent && !is_markdown
    }
}

/// An agent with its future rights.
#[derive(Debug)]
pub(crate) struct JudgedAgent {
    pub(crate) definition: AgentDefinition,
    tools: Vec<(String, CallPermission)>,
    needs: Vec<WantedRight>,
    /// The command that grants what the agent requests; `None` = no grant can name the agent.
    pub(crate) grant: Option<String>,
}

/// Judges files under the operator's settings.
pub(crate) struct FileJudge<'a> {
    host: &'a Host,
    workspace: &'a Path,
    known: belljar_definition::KnownTools,
    shapes: FrontmatterShapes,
    /// The ids of the home's and the workspace's agents, by the paths of their files.
    ids: BTreeMap<PathBuf, AgentId>,
}

impl<'a> FileJudge<'a> {
    /// Makes a judge for this host and workspace. `lenient` = frontmatter in unusual forms is read too.
    pub(crate) fn new(host: &'a Host, workspace: &'a Path, lenient: bool) -> Self {
        let shapes = if lenient { FrontmatterShapes::Lenient } else { host.settings.shapes };
        let catalog = host.library.catalog();
        let ids = catalog.agents().iter().filter_map(|entry| {
            Some((entry.definition.path.canonicalize().ok()?, entry.id.clone()))
        });
        Self { host, workspace, known: host.tools.known_tools(), shapes, ids: ids.collect() }
    }

    pub(crate) fn known_tools(&self) -> &belljar_definition::KnownTools {
        &self.known
    }

    /// A note about an agent with a similar name, for a word that is neither a file nor an agent.
    fn suggest_agent(&self, word: &Path) -> String {
        let near = self.host.library.catalog().find_by_name(&word.to_string_lossy()).err();
        match near.iter().flat_map(|near| &near.suggestions).next() {
            Some(name) => format!("no agent is called so either; did you mean `{name}`?"),
            None => "no agent is called so either; `belljar agents list` shows all".to_owned(),
        }
    }

    /// Reads and judges a file, in whichever directory it is.
    pub(crate) fn judge_file(&self, path: &Path) -> JudgedFile {
        let parsed = match read_bounded(path, MAX_DEFINITION as u64) {
            Ok(bytes) => {
                let parsed = parse_agent_in(path, &bytes, &self.known, self.shapes);
                if self.is_own(path) { parsed.in_own_home() } else { parsed }
            }
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                parse_too_large(path, std::fs::metadata(path).map_or(0, |meta| meta.len()))
            }
            Err(error) => {
                let mut finding = agents::unreadable_file(path, &error);
                if error.kind() == std::io::ErrorKind::NotFound {
                    finding.hint = Some(self.suggest_agent(path));
                }
                return JudgedFile::invalid_file(path, vec![finding]);
            }
        };
        match parsed {
            ParsedAgentFile::Agent { definition, diagnostics } => {
                let id = self.agent_id(path, &definition);
                self.judge_agent(&id, *definition, diagnostics)
            }
            ParsedAgentFile::Invalid { diagnostics } => JudgedFile::invalid_file(path, diagnostics),
            ParsedAgentFile::NotAnAgent { reason } => JudgedFile {
                path: path.to_path_buf(),
                kind: JudgedFileKind::NotAnAgent,
                reasons: vec![reason.as_str().to_owned()],
                diagnostics: Vec::new(),
                agent: None,
            },
        }
    }

    /// Returns whether a file is among the agents of the home.
    fn is_own(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        let roots = self.host.library.roots().iter();
        let mut own = roots.filter(|root| root.scope == AgentScope::Home);
        own.any(|root| root.dir.canonicalize().is_ok_and(|dir| path.starts_with(dir)))
    }

    /// The verdict on an agent of the catalogue.
    pub(crate) fn judge_entry(&self, entry: &CatalogEntry) -> JudgedFile {
        let CatalogEntry { id, definition, diagnostics } = entry;
        self.judge_agent(id, definition.clone(), diagnostics.clone())
    }

    /// The verdicts on all files of home and workspace, from the catalogue.
    pub(crate) fn judge_catalog(&self, catalog: &Catalog) -> Vec<JudgedFile> {
        let entries = catalog.agents().iter().map(|entry| self.judge_entry(entry));
        let skipped = catalog.skipped_files().iter().filter_map(|skipped| match &skipped.reason {
            SkipReason::Invalid(found) => {
                Some(JudgedFile::invalid_file(&skipped.path, found.clone()))
            }
            SkipReason::Duplicate(other) => {
                let other = ShownText::new(&other.to_string_lossy()).to_string();
                let message = format!("`{other}` already has its name");
                Some(JudgedFile::invalid_file(
                    &skipped.path,
                    vec![Diagnostic::for_file(&skipped.path, "duplicate-name", message)],
                ))
            }
            SkipReason::Quarantined | SkipReason::NotAnAgent(_) => None,
        });
        let mut all: Vec<JudgedFile> = entries.chain(skipped).collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// The agent's id in the catalogue. A file that is not installed gets an id that no grant can name, so it
    /// is judged by the defaults.
    fn agent_id(&self, path: &Path, definition: &AgentDefinition) -> AgentId {
        let known = || self.ids.get(&path.canonicalize().ok()?).cloned();
        let nobody =
            || AgentId { scope: AgentScope::Library(String::new()), slug: definition.slug.clone() };
        if self.ids.is_empty() { nobody() } else { known().unwrap_or_else(nobody) }
    }

    /// The verdict on an agent that was read without errors: its status, tools, and the grants that it lacks.
    fn judge_agent(
        &self,
        id: &AgentId,
        definition: AgentDefinition,
        diagnostics: Vec<Diagnostic>,
    ) -> JudgedFile {
        // Resolved in the same way as for a run.
        let entry = CatalogEntry { id: id.clone(), definition, diagnostics };
        let agent = resolve_entry(self.host, &entry, self.workspace);
        let CatalogEntry { definition, diagnostics, .. } = entry;
        let (kind, reasons) = match agent.status {
            AgentReadiness::Ready => (JudgedFileKind::Ready, Vec::new()),
            AgentReadiness::ReadyWithWarnings { warnings } => (JudgedFileKind::Warnings, warnings),
            AgentReadiness::Blocked { reasons } => (JudgedFileKind::Blocked, reasons),
        };
        let tools =
            agent.rights.offered_tools().map(|(tool, may)| (tool.to_string(), may)).collect();
        let named = !matches!(&id.scope, AgentScope::Library(name) if name.is_empty());
        let grant = (named && !agent.hint.is_empty()).then_some(agent.hint);
        let needs = agent.narrowed.into_iter().map(|narrowing| narrowing.wanted).collect();
        JudgedFile {
            path: definition.path.clone(),
            kind,
            reasons,
            diagnostics,
            agent: Some(JudgedAgent { definition, tools, needs, grant }),
        }
    }
}

impl JudgedFile {
    /// The verdict on a file with errors.
    fn invalid_file(path: &Path, diagnostics: Vec<Diagnostic>) -> Self {
        let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let reasons = errors.map(|found| match found.line {
            0 => found.message.clone(),
            line => format!("line {line}: {}", found.message),
        });
        Self {
            path: path.to_path_buf(),
            kind: JudgedFileKind::Invalid,
            reasons: reasons.collect(),
            diagnostics,
            agent: None,
        }
    }

    /// Makes the verdict invalid if the file is no agent. Used for a file that the person named.
    pub(crate) fn must_be_an_agent(&mut self) {
        if self.kind == JudgedFileKind::NotAnAgent {
            let reasons = self.reasons.join("; ");
            let message = format!("not an agent: {reasons}");
            self.diagnostics.push(Diagnostic::for_file(&self.path, "not-an-agent", message));
        }
    }

    /// The verdict as an entry of `--json`. Its fields are a stable interface of the command.
    pub(crate) fn as_json(&self) -> Value {
        let agent = self.agent.as_ref();
        let definition = agent.map(|agent| &agent.definition);
        let asking = |may: &CallPermission| *may == CallPermission::Ask;
        let tools = agent.map_or(&[][..], |agent| agent.tools.as_slice());
        let names = |keep: &dyn Fn(&CallPermission) -> bool| -> Vec<&str> {
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
            "limits": definition.map_or_else(Map::new, stated_limits),
            "writes": definition.map(|agent| agent.asked.writes),
            "max_depth": definition.and_then(|agent| agent.subagents.as_ref()?.max_depth),
            "unavailable": unknown.chain(unavailable).collect::<Vec<_>>(),
            "needs": agent.map_or(&[][..], |agent| agent.needs.as_slice()),
            "diagnostics": self.diagnostics.iter().map(agents::as_json).collect::<Vec<_>>(),
        })
    }
}

/// The limits that the agent's own file requests.
fn stated_limits(agent: &AgentDefinition) -> Map<String, Value> {
    let stated = |key: &str| Some((key.to_owned(), json!(agent.asked.limits.get(key)?)));
    LIMITS.iter().filter_map(|row| stated(row.key)).collect()
}
