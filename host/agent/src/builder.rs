//! Builds an agent inside another program: its file, tools, model and rights in one place.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_catalogue::{Library, ReadError, StockTool, ToolCatalogue, read_bounded};
use belljar_definition::{
    AgentReadiness, AgentScope, Diagnostic, MAX_DEFINITION, ScannedContent, Settings, Severity,
    SourceFile,
};
use belljar_model::{ChatModel, ModelRegistry};
use belljar_overlay::SessionLayers;
use belljar_overlay::{OverlayPool, OverlayQuota};
use belljar_policy::{ShownPath as _, ShownText};
use belljar_sandbox::{Sandbox, SecretStore};
use tokio_util::sync::CancellationToken;

use crate::events::EventSink;
use crate::host::Host;
use crate::outcome::Outcome;
use crate::rights::resolve::{ResolveError, ResolvedAgent, resolve_agent};
use crate::run::{RunSpec, run};
use crate::tools::approval::asker::Asker;

/// An agent that can be run any number of times.
#[derive(Debug, Clone)]
pub struct Agent {
    host: Host,
    agent: Arc<ResolvedAgent>,
    workspace: PathBuf,
    layers: Option<SessionLayers>,
}

/// Builds an [`Agent`]. Its rights are what its file requests within the grants of
/// [`AgentBuilder::settings`], as on the command line. Without settings the agent may use the added tools and
/// read the workspace, and writes nothing. [`AgentBuilder::build`] reports the first fault.
#[must_use = "a builder makes nothing until `build`"]
pub struct AgentBuilder {
    sandbox: Sandbox,
    workspace: PathBuf,
    files: Vec<SourceFile>,
    tools: Vec<StockTool>,
    models: Option<ModelRegistry>,
    settings: String,
    layers: Option<SessionLayers>,
    secrets: SecretStore,
    asker: Option<Arc<dyn Asker>>,
    /// The first fault so far.
    problem: Option<AgentBuildError>,
}

/// Why no agent is built.
#[derive(Debug, thiserror::Error)]
pub enum AgentBuildError {
    /// No agent file was added.
    #[error("there is no agent file")]
    NoAgent,
    /// No model was set that could answer.
    #[error("there is no model")]
    NoModel,
    /// A file cannot be read.
    #[error("failed to read `{}`: {source}", path.to_shown())]
    Read {
        /// The file that cannot be read.
        path: PathBuf,
        /// The reason.
        source: ReadError,
    },
    /// Faults in an agent file, a tool manifest or the settings.
    #[error("{}", format_headlines(.0))]
    Invalid(Vec<Diagnostic>),
    /// The workspace cannot be used, or the file is no agent.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The agent requests more rights than the grants give.
    #[error("agent `{agent}` is blocked: {}", reasons.join("; "))]
    Blocked {
        /// The agent's identity.
        agent: String,
        /// What is not granted. Quotes text of the agent's file, escaped.
        reasons: Vec<String>,
    },
}

fn format_headlines(found: &[Diagnostic]) -> String {
    found.iter().map(Diagnostic::headline).collect::<Vec<_>>().join("; ")
}

impl AgentBuildError {
    /// The code of the error, which stays the same in later versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoAgent => "no-agent",
            Self::NoModel => "no-model",
            Self::Read { .. } => "not-read",
            Self::Invalid(_) => "invalid-file",
            Self::Resolve(_) => "not-resolved",
            Self::Blocked { .. } => "blocked",
        }
    }

    /// Advice for the developer who calls the builder.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoAgent => "name one with `AgentBuilder::agent` or `agent_file`",
            Self::NoModel => "set one with `AgentBuilder::model`",
            Self::Read { .. } => "the path has to be a file that this program may read",
            Self::Invalid(_) => "mend the lines that are named",
            Self::Resolve(_) => "the workspace is a directory, and the first file an agent",
            Self::Blocked { .. } => {
                "give it the tools that it asks for, and grant them in `AgentBuilder::settings`"
            }
        }
    }
}

impl Agent {
    /// Starts to build an agent that works in this directory, which the agent sees as `/workspace`.
    pub fn builder(sandbox: &Sandbox, workspace: impl Into<PathBuf>) -> AgentBuilder {
        AgentBuilder {
            sandbox: sandbox.clone(),
            workspace: workspace.into(),
            files: Vec::new(),
            tools: Vec::new(),
            models: None,
            settings: String::new(),
            layers: None,
            secrets: SecretStore::default(),
            asker: None,
            problem: None,
        }
    }

    /// Runs the agent on a task to its end. Always returns an outcome.
    pub async fn run(&self, task: &str) -> Outcome {
        self.run_with(task, EventSink::none(), CancellationToken::new()).await
    }

    /// As [`Agent::run`], and passes each event of the agent and its subagents to `events`. `cancel` ends the
    /// run.
    pub async fn run_with(
        &self,
        task: &str,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Outcome {
        let spec = RunSpec::new(Arc::clone(&self.agent), task, self.workspace.clone());
        let spec = RunSpec { layers: self.layers.clone(), ..spec };
        run(&self.host, spec, events, cancel).await
    }

    /// The agent with its definition, grants and rights.
    pub fn resolved_agent(&self) -> &ResolvedAgent {
        &self.agent
    }

    /// The state that all runs of the agent share, for [`crate::run()`] with a custom [`RunSpec`].
    pub fn host(&self) -> &Host {
        &self.host
    }
}

impl AgentBuilder {
    /// Adds an agent file as text: frontmatter, then the system prompt. The first added agent is the one that
    /// runs; it may delegate to the others unless its file forbids it. `name` stands for the file's name, for
    /// example `reader.md`.
    pub fn agent(mut self, name: &str, text: impl Into<String>) -> Self {
        self.add_file(Path::new("agents").join(name), text.into().into_bytes());
        self
    }

    /// Adds an agent file from disk, as [`AgentBuilder::agent`] does.
    pub fn agent_file(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        match read_bounded(path, MAX_DEFINITION as u64) {
            Ok(bytes) => self.add_file(path.to_owned(), bytes),
            Err(source) => {
                self.record_problem(AgentBuildError::Read { path: path.to_owned(), source })
            }
        }
        self
    }

    /// Adds one of belljar's tools, which agents may then be granted.
    pub fn tool(mut self, tool: StockTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a tool from a component and its `tool.toml`; the tool has the component's name. The component is
    /// compiled at the first run: a component that does not load is left out, with the reason in
    /// [`Outcome::warnings`].
    pub fn tool_files(mut self, component: impl AsRef<Path>, manifest: impl AsRef<Path>) -> Self {
        match StockTool::from_files(component.as_ref(), manifest.as_ref()) {
            Ok(tool) => self.tools.push(tool),
            Err((path, source)) => self.record_problem(AgentBuildError::Read { path, source }),
        }
        self
    }

    /// Sets the one model for all agents.
    pub fn model(self, model: Arc<dyn ChatModel>) -> Self {
        self.models(ModelRegistry::from_single(model))
    }

    /// Sets several models, by the names and roles that agent files use.
    pub fn models(mut self, models: ModelRegistry) -> Self {
        self.models = Some(models);
        self
    }

    /// Sets the grants, as text in the format of `belljar.toml`.
    pub fn settings(mut self, toml: impl Into<String>) -> Self {
        self.settings = toml.into();
        self
    }

    /// Lets the agent write without a grant: to an overlay of the workspace, whose layer is stored in this
    /// directory. The layer stays from run to run; see [`Agent::session_layers`]. A directory inside the workspace is
    /// hidden from agents. Default: read only.
    pub fn overlay_in(mut self, directory: impl Into<PathBuf>) -> Self {
        let none = OverlayQuota { bytes: 0, files: 0 };
        let directory = directory.into();
        let pool = OverlayPool::new(OverlayQuota::default(), none).with_hidden(&directory);
        self.layers = Some(SessionLayers::in_directory(directory, pool));
        self
    }

    /// Sets the values of secrets. The grants decide which tool may use which secret.
    pub fn secrets(mut self, secrets: SecretStore) -> Self {
        self.secrets = secrets;
        self
    }

    /// Sets the person who is asked about a tool that is granted as `ask`. Without a person, such a call is
    /// refused.
    pub fn with_asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Reads all files and computes the agent's rights. Tools are compiled later, at the first run.
    ///
    /// # Errors
    ///
    /// The first fault.
    pub fn build(self) -> Result<Agent, AgentBuildError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let first = self.files.first().ok_or(AgentBuildError::NoAgent)?.path.clone();
        let models = self.models.ok_or(AgentBuildError::NoModel)?;
        let toml = (Path::new("belljar.toml"), self.settings.as_str());
        let mut settings =
            Settings::parse(Some(toml), None, None).map_err(AgentBuildError::Invalid)?;
        settings.overlays.by_default &= self.layers.is_some();
        let tools = ToolCatalogue::from_stock(self.tools, &settings);
        let library = Library::open(Vec::new(), tools.known_tools(), false);
        library.set_other_texts(self.files);
        let found = tools.problems().iter().cloned().chain(library.problems());
        let errors: Vec<_> = found.filter(|found| found.severity == Severity::Error).collect();
        if !errors.is_empty() {
            return Err(AgentBuildError::Invalid(errors));
        }
        let catalog = library.catalog();
        let entry = catalog.entries().iter().find(|entry| entry.definition.path == first);
        let name = entry.map_or_else(|| first.display().to_string(), |entry| entry.id.to_string());
        let (settings, tools, library) = (Arc::new(settings), Arc::new(tools), Arc::new(library));
        let mut host = Host::new(self.sandbox, Arc::new(models), settings, tools, library);
        host.secrets = self.secrets;
        if let Some(asker) = self.asker {
            host.asker = asker;
        }
        let agent = resolve_agent(&host, &name, &self.workspace)?;
        if let AgentReadiness::Blocked { reasons } = &agent.status {
            let reasons = reasons.iter().map(|why| ShownText::new(why).to_string()).collect();
            return Err(AgentBuildError::Blocked { agent: agent.id.to_string(), reasons });
        }
        let workspace = crate::rights::resolve::canonicalize_workspace(&self.workspace)?;
        Ok(Agent { host, agent: Arc::new(agent), workspace, layers: self.layers })
    }

    /// Adds the content of an agent file as if it were in the operator's home.
    fn add_file(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let root = path.parent().map(Path::to_owned).unwrap_or_default();
        self.files.push(SourceFile {
            scope: AgentScope::Home,
            root,
            path,
            content: ScannedContent::Bytes(bytes),
        });
    }

    fn record_problem(&mut self, problem: AgentBuildError) {
        self.problem.get_or_insert(problem);
    }
}

impl Agent {
    /// The layers of the agent's overlays, if [`AgentBuilder::overlay_in`] set a directory for them.
    pub fn session_layers(&self) -> Option<&SessionLayers> {
        self.layers.as_ref()
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files: Vec<&PathBuf> = self.files.iter().map(|file| &file.path).collect();
        f.debug_struct("AgentBuilder").field("files", &files).finish_non_exhaustive()
    }
}
