//! The means that a process works with: the runtime, the sandbox, and the session's host put
//! together from the places.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_agent::{Asker, Hooks, Host};
use belljar_catalogue::{Library, Root, SkillLibrary, StockTool, TeamLibrary, ToolCatalogue};
use belljar_definition::{
    AgentContext, AgentDefinition, Content, Filed, KeySetting, ModelKind, ModelSetting, Scope,
    Settings, Skill, SourceFile, TeamDefinition,
};
use belljar_model::{
    Effort, KeySource, MaxTokensField, ModelConfig, ModelRole, Models, Provider, Recording, Roles,
};
use belljar_policy::{Access, Shown, ShownPath as _};
use belljar_sandbox::{Sandbox, SandboxConfig, SandboxError, SlowCompile, Wasm};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::libraries;
use crate::setup::beside;
use crate::setup::embedded::{self, AGENTS, STOCK_TOOLS};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, create_private, read_own_config, read_workspace_config};
use crate::setup::ours;
use crate::setup::secrets;
use crate::setup::walls;
use crate::term::out::Out;
use crate::term::progress::Progress;

/// Puts a host together. Nothing here opens a connection, makes an engine or compiles.
pub(crate) struct Assembly<'a> {
    places: &'a Places,
    out: &'a Out,
    settings: Settings,
    models: Option<Models>,
    recording: Option<Recording>,
    asker: Option<Arc<dyn Asker>>,
    slow: SlowCompile,
    sandbox: Option<Sandbox>,
    listeners: Vec<SocketAddr>,
    closed: Vec<PathBuf>,
}

impl<'a> Assembly<'a> {
    /// Reads the settings.
    pub(crate) fn new(places: &'a Places, out: &'a Out) -> Result<Self, Failure> {
        Ok(Self::of(settings(places)?, places, out))
    }

    /// With settings that were read.
    pub(crate) fn of(settings: Settings, places: &'a Places, out: &'a Out) -> Self {
        for warning in settings.warnings() {
            out.diagnostic(warning);
        }
        let slow = slow(out);
        Self {
            places,
            out,
            settings,
            models: None,
            recording: None,
            asker: None,
            slow,
            sandbox: None,
            listeners: Vec::new(),
            closed: Vec::new(),
        }
    }

    /// These models instead of the configured ones.
    pub(crate) fn with_models(mut self, models: Models) -> Self {
        self.models = Some(models);
        self
    }

    /// Records what the models say.
    pub(crate) fn recorded(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// Sets the person to ask if a grant says `ask`.
    pub(crate) fn asking(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// The same, with everything that a person waits for shown between the lines of a run.
    pub(crate) fn showing(mut self, progress: &Progress) -> Self {
        if self.out.explains_waiting() {
            let progress = progress.clone();
            self.slow = SlowCompile::to(move |wasm| progress.note(&compiling(wasm)));
        }
        self
    }

    /// Uses this sandbox: engine, pool and cache are shared, jars are not.
    pub(crate) fn sharing(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// The listening address of this process: no tool is connected to it, whatever its grants.
    pub(crate) fn listening_on(mut self, address: SocketAddr) -> Self {
        self.listeners.push(address);
        self
    }

    /// The same, with another directory that, like the home, no agent writes.
    pub(crate) fn keeping(mut self, directory: &Path) -> Self {
        self.closed.push(directory.to_path_buf());
        self
    }

    /// The host. Faults of single tools are in its catalogue.
    pub(crate) fn host(self) -> Result<Host, Failure> {
        let Self { places, out, settings, models, recording, asker, slow, sandbox, .. } = self;
        let models = match models {
            Some(models) => models,
            None => self::models(&settings, places)?,
        };
        let models = match recording {
            Some(recording) => models.recorded(recording),
            None => models,
        };
        let sandbox = match sandbox {
            Some(sandbox) => sandbox,
            None => sandbox_telling(places, out, slow, self.listeners)?.with_closed_directories(
                [own_directories(places, settings.server.data.as_deref()), self.closed].concat(),
            ),
        };
        let sandbox = sandbox.with_written_directories(written(&settings, places));
        let tools = ToolCatalogue::stock(stock_tools(), &settings);
        let installed = places.tools();
        let tools = if installed.is_dir() {
            small_runtime()?.block_on(tools.with_home(&installed, &settings, &sandbox))
        } else {
            tools
        };
        let tools = tools.with_servers(&places.mcp(), &settings);
        let context = AgentContext { known: tools.known(), shapes: settings.shapes };
        for warning in settings.check_tools(&context.known) {
            out.diagnostic(&warning);
        }
        let mut roots = roots_of::<AgentDefinition>(places);
        match libraries::roots(places) {
            Ok(installed) => roots.extend(installed),
            // Without them there is less, never more: the operator's own agents go on.
            Err(failure) => out.failure(&failure),
        }
        let project_override = settings.project_override;
        let library = Library::open_with_stock(roots, stock_agents(), context, project_override);
        for warning in settings.outgrown(&library.catalog()) {
            out.diagnostic(&warning);
        }
        let teams = TeamLibrary::of(
            roots_of::<TeamDefinition>(places),
            stock_files::<TeamDefinition>(),
            (),
            project_override,
        );
        let skills = SkillLibrary::of(
            roots_of::<Skill>(places),
            stock_files::<Skill>(),
            (),
            project_override,
        );
        let mut host = Host::new(
            sandbox,
            Arc::new(models),
            Arc::new(settings),
            Arc::new(tools),
            Arc::new(library),
        );
        if let Some(broker) = walls::broker() {
            host.hooks = Arc::new(Hooks::of(&host.settings).through(broker));
        }
        host.teams = Arc::new(teams);
        host.skills = Arc::new(skills);
        host.secrets = secrets::store(&host.settings, places, out);
        host.home = Some(places.home.clone());
        if let Some(asker) = asker {
            host.asker = asker;
        }
        Ok(host)
    }
}

/// Both `belljar.toml` files, read and checked.
pub(crate) fn settings(places: &Places) -> Result<Settings, Failure> {
    ours::check_home(places)?;
    parsed(places, read_own_config(&places.config())?)
}

/// Like [`settings`], for the operator's own in a process behind its OS sandbox: the file may have been
/// replaced since the wall went up, so the broker reads it. Not inside the runtime.
pub(crate) fn settings_again(places: &Places) -> Result<Settings, Failure> {
    let Some(broker) = walls::broker() else { return settings(places) };
    ours::check_home(places)?;
    let text = small_runtime()?.block_on(broker.settings());
    let text = text.map_err(|error| Failure::from(anyhow::Error::from(error)))?;
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    parsed(places, text)
}

fn parsed(places: &Places, home_text: Option<String>) -> Result<Settings, Failure> {
    let (home, workspace) = (places.config(), places.workspace_config());
    let workspace_text = read_workspace_config(places)?;
    Settings::parse(
        home_text.as_deref().map(|text| (home.as_path(), text)),
        workspace_text.as_deref().map(|text| (workspace.as_path(), text)),
        places.user_home.as_deref(),
    )
    .map_err(|diagnostics| Failure::diagnostics("", diagnostics))
}

/// The configured models. Keys are read when a model is first used.
pub(crate) fn models(settings: &Settings, places: &Places) -> Result<Models, Failure> {
    let mut configs = BTreeMap::new();
    for (name, setting) in &settings.models {
        configs.insert(name.clone(), model_config(settings, name, setting, places)?);
    }
    let role = |role: ModelRole| settings.roles.get(role.name()).cloned();
    let roles = Roles {
        main: role(ModelRole::Main),
        fast: role(ModelRole::Fast),
        strong: role(ModelRole::Strong),
        compaction: role(ModelRole::Compaction),
        fallback: role(ModelRole::Fallback),
    };
    Models::new(configs, roles, Box::new(|name| std::env::var(name).ok()))
        .map_err(|error| Failure::usage(error.to_string()))
}

fn model_config(
    settings: &Settings,
    name: &str,
    setting: &ModelSetting,
    places: &Places,
) -> Result<ModelConfig, Failure> {
    let wrong = |what: &str, value: &str| {
        let (name, value) = (Shown::clipped(name, 80), Shown::clipped(value, 200));
        Failure::usage(format!("model `{name}`: `{value}` is not {what}"))
            .hint(format!("correct it in {}", places.config().shown()))
    };
    let (provider, model) = match setting.kind {
        ModelKind::OpenAi => (Provider::OpenAi, setting.model.clone()),
        ModelKind::Anthropic => (Provider::Anthropic, setting.model.clone()),
        ModelKind::Scripted => {
            (Provider::Scripted, places.home.join(&setting.model).to_string_lossy().into_owned())
        }
    };
    let mut config = ModelConfig::new(provider, model);
    config.base_url = match &setting.base_url {
        None => None,
        Some(url) => Some(url.parse().map_err(|_| wrong("a URL", url))?),
    };
    config.key = match &setting.key {
        KeySetting::None => KeySource::None,
        KeySetting::Env(variable) => KeySource::Env(variable.clone()),
        KeySetting::File(path) => KeySource::File(places.home.join(path)),
    };
    config.effort = match setting.effort.as_deref() {
        None => None,
        Some("low") => Some(Effort::Low),
        Some("medium") => Some(Effort::Medium),
        Some("high") => Some(Effort::High),
        Some("max") => Some(Effort::Max),
        Some(other) => return Err(wrong("an effort (low, medium, high, max)", other)),
    };
    config.max_output_tokens = setting.max_output_tokens;
    config.context_tokens = setting.context_tokens;
    config.small = settings.small_models.contains(name);
    config.images = setting.images;
    config.temperature = setting.temperature;
    config.allow_insecure = setting.allow_insecure;
    config.headers = setting.headers.clone();
    config.max_tokens_field = match setting.max_tokens_field.as_deref() {
        None => None,
        Some("max_tokens") => Some(MaxTokensField::MaxTokens),
        Some("max_completion_tokens") => Some(MaxTokensField::MaxCompletionTokens),
        Some(other) => return Err(wrong("`max_tokens` or `max_completion_tokens`", other)),
    };
    config.stream_options = setting.stream_options;
    config.extra_body = setting.extra_body.clone();
    Ok(config)
}

/// The agents that are there without `init`.
fn stock_agents() -> Vec<SourceFile> {
    let root = Path::new("built-in");
    let files = embedded::below(AGENTS, "agents/");
    files
        .map(|(name, bytes)| SourceFile {
            scope: Scope::Home,
            root: root.to_path_buf(),
            path: root.join(name),
            content: Content::Bytes(bytes.to_vec()),
        })
        .collect()
}

/// The teams or skills that are there without `init`.
fn stock_files<D: Filed>() -> Vec<SourceFile> {
    let folder = D::KIND.folder;
    let root = Path::new("built-in").join(folder);
    let files = embedded::below(AGENTS, "").filter_map(|(name, bytes)| {
        let below = name.strip_prefix(folder)?.strip_prefix('/')?;
        Some((root.join(below), bytes))
    });
    files
        .map(|(path, bytes)| SourceFile {
            scope: Scope::Home,
            root: root.clone(),
            path,
            content: Content::Bytes(bytes.to_vec()),
        })
        .collect()
}

/// The folders of home and workspace, in the order of precedence.
fn roots_of<D: Filed>(places: &Places) -> Vec<Root> {
    let mut roots = vec![Root::in_home::<D>(&places.home)];
    if !places.is_around_home() {
        roots.push(Root::in_workspace::<D>(&places.workspace));
    }
    roots
}

fn stock_tools() -> impl Iterator<Item = StockTool> {
    STOCK_TOOLS.iter().map(|tool| StockTool::new(tool.name, tool.wasm(), tool.manifest))
}

/// A runtime for one thing after another.
pub(crate) fn small_runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(no_runtime)
}

/// A runtime for agents side by side.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_multi_thread().enable_all().build().map_err(no_runtime)
}

/// The first Ctrl-C, or a request to terminate, cancels; the second leaves at once. Call it
/// inside the runtime.
pub(crate) fn cancel_on_interrupt(cancel: &CancellationToken, out: &Out) {
    on_interrupt(cancel, out, "cancelling");
}

/// The first Ctrl-C, or a request to terminate, asks to stop; the second leaves at once. Call it
/// inside the runtime.
pub(crate) fn stop_on_interrupt(stop: &CancellationToken, out: &Out) {
    on_interrupt(stop, out, "stopping when the turns that run have ended");
}

fn on_interrupt(cancel: &CancellationToken, out: &Out, doing: &'static str) {
    let (cancel, out) = (cancel.clone(), out.clone());
    tokio::spawn(async move {
        if interrupted().await.is_err() {
            return;
        }
        out.note(format_args!("{doing}; press Ctrl-C again to leave at once"));
        cancel.cancel();
        if interrupted().await.is_ok() {
            std::process::exit(i32::from(Exit::Cancelled.code()));
        }
    });
}

#[cfg(unix)]
async fn interrupted() -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn interrupted() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// The sandbox with its cache in the places. Where the cache cannot be used, a warning says
/// so, and components are compiled each time.
pub(crate) fn sandbox(places: &Places, out: &Out) -> Result<Sandbox, Failure> {
    let sandbox = sandbox_telling(places, out, slow(out), Vec::new())?;
    let data = settings(places).ok().and_then(|settings| settings.server.data);
    Ok(sandbox.with_closed_directories(own_directories(places, data.as_deref())))
}

/// INV-178: the directories that agents may write under these settings: the workspace, whoever is granted it,
/// and every writable mount.
fn written(settings: &Settings, places: &Places) -> Vec<PathBuf> {
    let mounted = mounted(settings, places, Access::ReadWrite);
    let paths: BTreeSet<PathBuf> = mounted.chain(places.workspace.canonicalize()).collect();
    paths.into_iter().collect()
}

/// The directories that these settings let agents mount with at least this access, links followed.
pub(crate) fn mounted(
    settings: &Settings,
    places: &Places,
    least: Access,
) -> impl Iterator<Item = PathBuf> {
    let mounts = settings.mounts(&places.workspace).into_iter();
    let mounts = mounts.filter(move |mount| mount.access >= least);
    mounts.filter_map(|mount| mount.host.canonicalize().ok())
}

/// INV-155: the places of belljar's files that decide about agents, including the program. Missing ones are
/// closed too, because only belljar may make them.
pub(crate) fn own_directories(places: &Places, data: Option<&Path>) -> Vec<PathBuf> {
    let mut own = vec![places.home.clone(), places.cache.clone()];
    own.extend(data.map(Path::to_path_buf));
    linked(&places.home, LINKED_DEPTH, &mut own);
    if let Ok(program) = std::env::current_exe() {
        own.extend(beside::place(&program));
        own.push(program);
    }
    own
}

/// How deep links are looked for in a home: as deep as the file of an agent or a tool.
const LINKED_DEPTH: usize = 3;

/// The links in a directory, which lead to files that a person keeps elsewhere.
fn linked(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    // An unreadable directory has no links for its readers either.
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => found.push(entry.path()),
            Ok(kind) if kind.is_dir() && depth > 1 && !is_filled_by_belljar(&entry.file_name()) => {
                linked(&entry.path(), depth - 1, found);
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// Directories of a home that only belljar fills, without links of a person.
fn is_filled_by_belljar(name: &std::ffi::OsStr) -> bool {
    ["cache", "libraries", "sessions"].iter().any(|own| name == *own)
}

fn sandbox_telling(
    places: &Places,
    out: &Out,
    slow: SlowCompile,
    listeners: Vec<SocketAddr>,
) -> Result<Sandbox, Failure> {
    let mut config = config()?;
    config.slow = slow;
    config.http = config.http.with_own_listeners(listeners);
    let unusable = |why: String| {
        out.warning(format_args!(
            "the cache `{}` cannot be used, so components are compiled each time: {why}",
            places.cache.shown()
        ));
    };
    if let Some(cached) = walls::keeps_cache() {
        // The broker's cache, because the cache's own place is unusable.
        config.cache_dir = cached.then(|| places.cache.clone());
        return knowing(Sandbox::new(config));
    }
    match create_private(&places.cache) {
        Ok(()) => config.cache_dir = Some(places.cache.clone()),
        Err(error) => unusable(error.to_string()),
    }
    match Sandbox::new(config.clone()) {
        Err(SandboxError::Cache { why, .. }) => {
            unusable(why);
            config.cache_dir = None;
            knowing(Sandbox::new(config))
        }
        made => knowing(made),
    }
}

/// A sandbox with the stock tools' descriptions.
fn knowing(made: Result<Sandbox, SandboxError>) -> Result<Sandbox, Failure> {
    let sandbox = made.map_err(|error| no_sandbox(&error))?;
    embedded::bring_stock_tools(&sandbox)?;
    Ok(sandbox)
}

/// The sandbox without a cache on disk: for self-tests, which should really compile.
pub(crate) fn sandbox_without_cache(out: &Out) -> Result<Sandbox, Failure> {
    let config = SandboxConfig { slow: slow(out), ..config()? };
    Sandbox::new(config).map_err(|error| no_sandbox(&error))
}

/// A line for whoever waits at a terminal.
fn slow(out: &Out) -> SlowCompile {
    if !out.explains_waiting() {
        return SlowCompile::default();
    }
    let out = out.clone();
    SlowCompile::to(move |wasm| out.note(compiling(wasm)))
}

/// Characters of a component's name.
const MAX_NAME: usize = 80;

fn compiling(wasm: &Wasm) -> String {
    let stock = STOCK_TOOLS.iter().find(|tool| tool.digest() == wasm.digest());
    let name = stock.map(|tool| tool.name).or(wasm.name());
    let what = match name {
        Some(name) => format!("`{}`", Shown::clipped(name, MAX_NAME)),
        None => "a component".to_owned(),
    };
    format!("compiling {what} for its first use; later ones find it in the cache")
}

fn config() -> Result<SandboxConfig, Failure> {
    Ok(SandboxConfig { compiler: walls::compiler()?, ..SandboxConfig::default() })
}

fn no_sandbox(error: &SandboxError) -> Failure {
    Failure::new(format!("the sandbox cannot be set up: {error}"))
        .hint("`belljar doctor` says more")
}

fn no_runtime(error: std::io::Error) -> Failure {
    Failure::new(format!("failed to start the async runtime: {error}"))
}
