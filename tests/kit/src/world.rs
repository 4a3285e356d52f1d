//! The world of tests of the crates: a host with a scripted model, the committed stock tools, and a
//! home and workspace of its own; the model's requests are kept for the tests to look at.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use belljar_agent::{
    Event, EventKind, EventSink, FixedClock, Host, Outcome, RunSpec, resolve_agent, run,
};
use belljar_catalogue::{Library, LibraryRoot, StockTool, TeamLibrary, ToolCatalogue};
use belljar_definition::{Settings, TeamDefinition};
use belljar_model::{
    CallContext, ChatMessage, ChatModel, ChatRequest, ModelError, ModelRegistry, ModelReply,
    ScriptedModel, StreamEvent,
};
use belljar_sandbox::{Sandbox, SandboxConfig};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::host::root;

/// A model that keeps what it was sent.
pub struct Spy {
    inner: ScriptedModel,
    /// Agent, spawn index and request of each call, in order.
    pub sent: Mutex<Vec<(String, u32, ChatRequest)>>,
}

#[async_trait]
impl ChatModel for Spy {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn takes_images(&self) -> bool {
        self.inner.takes_images()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        events: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<ModelReply, ModelError> {
        let call = (cx.agent.to_owned(), cx.spawn_index, request.clone());
        self.sent.lock().unwrap().push(call);
        self.inner.chat(request, cx, events).await
    }
}

/// A host in directories of its own.
pub struct World {
    /// Where agents and teams lie.
    pub home: TempDir,
    /// The workspace of runs.
    pub workspace: TempDir,
    /// The host of runs.
    pub host: Host,
    /// The model of the transcript, which keeps what it was sent.
    pub model: Arc<Spy>,
    /// The events that [`World::sink`] was sent.
    pub events: Arc<Mutex<Vec<Event>>>,
}

/// One sandbox for all tests of a file, so that a component is compiled once.
pub fn sandbox() -> Sandbox {
    static SANDBOX: std::sync::OnceLock<Sandbox> = std::sync::OnceLock::new();
    let make = || Sandbox::new(SandboxConfig::default()).unwrap();
    SANDBOX.get_or_init(make).clone()
}

/// A committed stock tool.
pub fn stock(name: &'static str) -> StockTool {
    let manifest = fs::read_to_string(root().join(format!("tools/{name}/tool.toml"))).unwrap();
    StockTool::new(name, crate::stock(name), manifest)
}

/// The manifest of a test tool that asks for nothing.
pub const BARE: &str = "manifest = 1\ndescription = \"test\"\n";

/// The plan of a world: files by path below home (`agents/...`) and workspace.
#[derive(Default)]
pub struct Plan<'a> {
    /// The model's answers; empty = it is never asked.
    pub transcript: &'a str,
    /// The `belljar.toml` of the home.
    pub settings: &'a str,
    /// Below `agents/` of the home.
    pub agents: &'a [(&'a str, &'a str)],
    /// Below `teams/` of the home.
    pub teams: &'a [(&'a str, &'a str)],
    /// In the workspace.
    pub files: &'a [(&'a str, &'a str)],
    /// Empty = `file_read` alone.
    pub tools: Vec<StockTool>,
    /// Whether agents without a grant get an overlay to write in.
    pub overlays: bool,
}

impl World {
    /// Writes the files and puts the host together.
    pub fn new(plan: Plan<'_>) -> Self {
        let (home, workspace) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for (name, text) in plan.agents {
            write(&home.path().join("agents").join(name), text);
        }
        for (name, text) in plan.teams {
            write(&home.path().join("teams").join(name), text);
        }
        for (name, text) in plan.files {
            write(&workspace.path().join(name), text);
        }
        let (mut host, model) = host(home.path(), &workspace.path().canonicalize().unwrap(), plan);
        host.clock = Arc::new(FixedClock::new("2026-11-20T10:00:00Z".parse().unwrap()));
        Self { home, workspace, host, model, events: Arc::default() }
    }

    /// The workspace, without a link in its path.
    pub fn root(&self) -> PathBuf {
        self.workspace.path().canonicalize().unwrap()
    }

    /// The spec of a run of `agent`.
    pub fn spec(&self, agent: &str, task: &str) -> RunSpec {
        let agent = match resolve_agent(&self.host, agent, self.workspace.path()) {
            Ok(agent) => agent,
            Err(error) => panic!("{error}: {:#?}", self.host.library.problems()),
        };
        RunSpec::new(Arc::new(agent), task, self.root())
    }

    /// Keeps events in [`World::events`].
    pub fn sink(&self) -> EventSink {
        let kept = Arc::clone(&self.events);
        EventSink::with_listener(move |event| kept.lock().unwrap().push(event.clone()))
    }

    /// Runs a spec to its end.
    pub async fn run(&self, spec: RunSpec) -> Outcome {
        run(&self.host, spec, self.sink(), CancellationToken::new()).await
    }

    /// Runs `agent` on a task that does not matter.
    pub async fn go(&self, agent: &str) -> Outcome {
        self.run(self.spec(agent, "task")).await
    }

    /// The requests that the model was sent, in order.
    pub fn sent(&self) -> Vec<ChatRequest> {
        self.model.sent.lock().unwrap().iter().map(|(_, _, request)| request.clone()).collect()
    }

    /// The requests of one agent.
    pub fn sent_by(&self, agent: &str, spawn: u32) -> Vec<ChatRequest> {
        let sent = self.model.sent.lock().unwrap();
        let own = sent.iter().filter(|(name, index, _)| name == agent && *index == spawn);
        own.map(|(_, _, request)| request.clone()).collect()
    }

    /// The kinds of the events so far.
    pub fn kinds(&self) -> Vec<EventKind> {
        self.events.lock().unwrap().iter().map(|event| event.kind.clone()).collect()
    }
}

/// A host over a home and a workspace that are there, with the settings, tools and transcript of a
/// plan; and its model.
pub fn host(home: &Path, workspace: &Path, plan: Plan<'_>) -> (Host, Arc<Spy>) {
    let toml = (Path::new("belljar.toml"), plan.settings);
    let settings = match Settings::parse(Some(toml), None, None) {
        Ok(mut settings) => {
            settings.overlays.by_default &= plan.overlays;
            Arc::new(settings)
        }
        Err(problems) => panic!("{problems:#?}"),
    };
    let tools = if plan.tools.is_empty() { vec![stock("file_read")] } else { plan.tools };
    let tools = ToolCatalogue::from_stock(tools, &settings);
    assert_eq!(tools.problems(), []);
    let roots = vec![LibraryRoot::for_home(home), LibraryRoot::for_workspace(workspace)];
    let library = Library::open(roots, tools.known_tools(), settings.project_override);
    let transcript = if plan.transcript.is_empty() { NO_CALLS } else { plan.transcript };
    let inner = ScriptedModel::from_yaml(transcript, Path::new("test.yaml")).unwrap();
    let model = Arc::new(Spy { inner, sent: Mutex::default() });
    let models = Arc::new(ModelRegistry::from_single(model.clone()));
    let mut host = Host::new(sandbox(), models, settings, Arc::new(tools), Arc::new(library));
    let roots = vec![
        LibraryRoot::in_home::<TeamDefinition>(home),
        LibraryRoot::in_workspace::<TeamDefinition>(workspace),
    ];
    host.teams = Arc::new(TeamLibrary::from_roots(roots, Vec::new(), (), false));
    (host, model)
}

const NO_CALLS: &str = "transcript: 1\nagents: []\n";

/// An agent file with more frontmatter.
pub fn agent(name: &str, more: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Does {name}.\nvisibility: user-facing\n{more}---\nYou are {name}.\n"
    )
}

/// Writes a file, and its directories.
pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The results that the last request carried: content and whether it is an error.
pub fn results(request: &ChatRequest) -> Vec<(String, bool)> {
    let last = request.messages.iter().rev().find_map(|message| match message {
        ChatMessage::Tool { results } => Some(results),
        ChatMessage::User { .. } | ChatMessage::Assistant { .. } => None,
    });
    last.unwrap().iter().map(|result| (result.content.clone(), result.is_error)).collect()
}

/// The tools that a request shows, in its order.
pub fn tool_names(request: &ChatRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}
