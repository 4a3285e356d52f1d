//! Runs of agents for attacks: with a scripted model, the stock tool `file_read`, and further guests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use belljar_agent::{Event, EventSink, Host, Outcome, RunSpec, resolve_agent, run};
use belljar_catalogue::{Library, LibraryRoot, StockTool, TeamLibrary, ToolCatalogue};
use belljar_definition::{Settings, TeamDefinition};
use belljar_model::{
    CallContext, ChatMessage, ChatModel, ChatRequest, ModelError, ModelRegistry, ModelReply,
    ScriptedModel, StreamEvent,
};
use tokio_util::sync::CancellationToken;

use crate::arena::Arena;
use crate::attack::Escape;
use crate::guests::{FILE_READ, FILE_READ_MANIFEST, Guest};
use crate::lock_recovered;
use crate::witness::ArenaWitness;

/// The manifest of a guest that requests nothing.
pub const BARE: &str = "manifest = 1\ndescription = \"test\"\n";

/// What a scene consists of. Fields that are not set are empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScenePlan<'a> {
    /// The model's answers, in the format of scripted models; empty = no model.
    pub transcript: &'a str,
    /// The operator's `belljar.toml`.
    pub settings: &'a str,
    /// The operator's agent files: file name and text.
    pub agents: &'a [(&'a str, &'a str)],
    /// The operator's team files: file name and text.
    pub teams: &'a [(&'a str, &'a str)],
    /// Files of the workspace: path and text, for example a stranger's agent in `.belljar/agents/x.md`.
    pub files: &'a [(&'a str, &'a str)],
    /// Guests available as tools besides `file_read`, each with the text of its manifest.
    pub guests: &'a [(Guest, &'static str)],
}

/// A host with agents that can be run.
pub struct AgentScene {
    /// The host; an attack may change it before the first run.
    pub host: Host,
    workspace: PathBuf,
    model: Arc<SpyModel>,
    events: Arc<Mutex<Vec<Event>>>,
    witness: Arc<ArenaWitness>,
}

/// A model that records the requests that it was sent.
struct SpyModel {
    inner: ScriptedModel,
    sent: Mutex<Vec<(String, u32, ChatRequest)>>,
}

#[async_trait]
impl ChatModel for SpyModel {
    fn id(&self) -> &str {
        self.inner.id()
    }

    /// Records the request, and passes it on to the scripted model.
    async fn chat(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        events: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<ModelReply, ModelError> {
        let call = (cx.agent.to_owned(), cx.spawn_index, request.clone());
        lock_recovered(&self.sent).push(call);
        self.inner.chat(request, cx, events).await
    }
}

impl Arena {
    /// Builds a host with the agents and the scripted model of a plan.
    ///
    /// # Errors
    /// When the settings or the transcript cannot be parsed.
    pub fn build_scene(&self, plan: &ScenePlan<'_>) -> Result<AgentScene, Escape> {
        self.take_picture()?;
        AgentScene::new(self, plan)
    }
}

impl AgentScene {
    /// Writes the plan's files, parses its settings, and builds a host from them.
    pub(crate) fn new(arena: &Arena, plan: &ScenePlan<'_>) -> Result<Self, Escape> {
        let (home, workspace) = (arena.path("home"), arena.workspace());
        let below = [("agents", plan.agents), ("teams", plan.teams)];
        for (folder, files) in below {
            for (name, text) in files {
                write_file(&home.join(folder).join(name), text)?;
            }
        }
        for (name, text) in plan.files {
            write_file(&workspace.join(name), text)?;
        }
        let settings =
            Settings::parse(Some((Path::new("belljar.toml"), plan.settings)), None, None)
                .map_err(|problems| anyhow!("the settings: {problems:?}"))?;
        let settings = Arc::new(settings);
        let reader = (FILE_READ, FILE_READ_MANIFEST);
        let stock = std::iter::once(&reader).chain(plan.guests).map(|(guest, manifest)| {
            StockTool::new(guest.name, arena.guest_wasm(*guest), *manifest)
        });
        let tools = ToolCatalogue::from_stock(stock, &settings);
        let tools = tools.with_servers(&home.join("mcp"), &settings);
        if !tools.problems().is_empty() {
            return Err(anyhow!("the tools: {:?}", tools.problems()).into());
        }
        let roots = vec![LibraryRoot::for_home(&home), LibraryRoot::for_workspace(&workspace)];
        let library = Library::open(roots, tools.known_tools(), settings.project_override);
        let transcript = match plan.transcript {
            "" => "transcript: 1\nagents: []\n",
            text => text,
        };
        let inner = ScriptedModel::from_yaml(transcript, Path::new("transcript.yaml"))
            .map_err(|problem| anyhow!("the transcript: {problem:?}"))?;
        let model = Arc::new(SpyModel { inner, sent: Mutex::default() });
        let models = Arc::new(ModelRegistry::from_single(model.clone()));
        let sandbox = arena.sandbox().clone();
        let mut host = Host::new(sandbox, models, settings, Arc::new(tools), Arc::new(library));
        let roots = vec![
            LibraryRoot::in_home::<TeamDefinition>(&home),
            LibraryRoot::in_workspace::<TeamDefinition>(&workspace),
        ];
        host.teams = Arc::new(TeamLibrary::from_roots(roots, Vec::new(), (), false));
        host.home = Some(home);
        let (events, witness) = (Arc::default(), Arc::clone(arena.witness()));
        Ok(Self { host, workspace, model, events, witness })
    }

    /// The description of a run of this agent, for [`Self::run_spec`].
    ///
    /// # Errors
    /// When there is no agent of the given name that can be run.
    pub fn spec_for_agent(&self, agent: &str, task: &str) -> Result<RunSpec, Escape> {
        let agent = resolve_agent(&self.host, agent, &self.workspace)
            .with_context(|| format!("the agents: {:?}", self.host.library.problems()))?;
        Ok(RunSpec::new(Arc::new(agent), task, self.workspace.clone()))
    }

    /// Runs an agent on a task, and searches everything that the model, the guests and the person see for the
    /// secret.
    ///
    /// # Errors
    /// Like [`Self::spec_for_agent`].
    pub async fn run_agent(&self, agent: &str, task: &str) -> Result<Outcome, Escape> {
        Ok(self.run_spec(self.spec_for_agent(agent, task)?).await)
    }

    /// Runs an agent as described by `spec`. Then the witness searches what the models were sent, the events
    /// and the outcome for leaked secrets.
    pub async fn run_spec(&self, spec: RunSpec) -> Outcome {
        let kept = Arc::clone(&self.events);
        let sink = EventSink::with_listener(move |event| lock_recovered(&kept).push(event.clone()));
        let outcome = run(&self.host, spec, sink, CancellationToken::new()).await;
        for request in self.sent_requests() {
            self.witness.inspect_told("what the model is sent", format!("{request:?}").as_bytes());
        }
        for event in self.events() {
            self.witness.inspect_shown("an event", format!("{event:?}").as_bytes());
        }
        self.witness.inspect_shown("the outcome", format!("{outcome:?}").as_bytes());
        outcome
    }

    /// The requests that the models were sent, in order.
    pub fn sent_requests(&self) -> Vec<ChatRequest> {
        lock_recovered(&self.model.sent).iter().map(|(_, _, request)| request.clone()).collect()
    }

    /// The requests that the model of one agent was sent; `spawn` counts the runs of an agent with the given
    /// name from 0.
    pub fn sent_by(&self, agent: &str, spawn: u32) -> Vec<ChatRequest> {
        let sent = lock_recovered(&self.model.sent);
        let own = sent.iter().filter(|(name, index, _)| name == agent && *index == spawn);
        own.map(|(_, _, request)| request.clone()).collect()
    }

    /// The events of the runs.
    pub fn events(&self) -> Vec<Event> {
        lock_recovered(&self.events).clone()
    }

    /// The tool results that the models were sent, in order: each text, and whether it is an error.
    pub fn tool_results(&self) -> Vec<(String, bool)> {
        let of = |request: &ChatRequest| match request.messages.last() {
            Some(ChatMessage::Tool { results }) => results
                .iter()
                .map(|result| (result.content.clone(), result.is_error))
                .collect::<Vec<_>>(),
            Some(ChatMessage::User { .. } | ChatMessage::Assistant { .. }) | None => Vec::new(),
        };
        self.sent_requests().iter().flat_map(of).collect()
    }
}

/// The text of an agent file, with `more` added to its frontmatter.
pub fn agent_file(name: &str, more: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Does {name}.\nvisibility: user-facing\n{more}---\nYou are {name}.\n"
    )
}

/// Writes a file, and creates its directories.
fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}
