//! Builds what a command works with: the runtime, the sandbox, and the host for sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_agent::{Asker, Hooks, Host};
use belljar_catalogue::{
    CommandLibrary, Library, LibraryRoot, SkillLibrary, StockTool, TeamLibrary, ToolCatalogue,
};
use belljar_definition::{
    AgentContext, AgentDefinition, AgentScope, CatalogItem, CommandDefinition, KeySetting,
    ModelKind, ModelSetting, ScannedContent, Settings, SkillDefinition, SourceFile, TeamDefinition,
};
use belljar_model::{
    Effort, KeySource, MaxTokensField, ModelConfig, ModelProvider, ModelRegistry, ModelRole,
    Recording, RoleTable,
};
use belljar_policy::{MountAccess, ShownPath as _, ShownText};
use belljar_sandbox::{Sandbox, SandboxConfig, SandboxError, SlowCompile, Wasm};
use belljar_session::IndexedSearch;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::libraries;
use crate::setup::beside;
use crate::setup::embedded::{self, AGENTS, STOCK_TOOLS};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, create_private, read_own_config, read_workspace_config};
use crate::setup::ours;
use crate::setup::secrets;
use crate::setup::walls;
use crate::term::out::TerminalOutput;
use crate::term::progress::RunProgress;

/// Builds a host from settings and options. Nothing here opens a connection, makes an engine or compiles.
pub(crate) struct HostAssembly<'a> {
    places: &'a HomePaths,
    out: &'a TerminalOutput,
    settings: Settings,
    models: Option<ModelRegistry>,
    recording: Option<Recording>,
    asker: Option<Arc<dyn Asker>>,
    slow: SlowCompile,
    sandbox: Option<Sandbox>,
    listeners: Vec<SocketAddr>,
    closed: Vec<PathBuf>,
}

impl<'a> HostAssembly<'a> {
    /// Begins with the settings of `belljar.toml`.
    pub(crate) fn new(places: &'a HomePaths, out: &'a TerminalOutput) -> Result<Self, Failure> {
        Ok(Self::from_settings(read_settings(places)?, places, out))
    }

    /// Begins with settings that the caller has read.
    pub(crate) fn from_settings(
        settings: Settings,
        places: &'a HomePaths,
        out: &'a TerminalOutput,
    ) -> Self {
        for warning in settings.warnings() {
            out.print_diagnostic(warning);
        }
        let slow = slow_compile_note(out);
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

    /// Uses these models instead of the configured ones.
    pub(crate) fn with_models(mut self, models: ModelRegistry) -> Self {
        self.models = Some(models);
        self
    }

    /// Records the answers of the models.
    pub(crate) fn with_recording(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// Sets who is asked if a grant says `ask`.
    pub(crate) fn with_asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Shows what takes long, for example a compilation, between the lines of this run.
    pub(crate) fn with_progress(mut self, progress: &RunProgress) -> Self {
        if self.out.explains_waiting() {
            let progress = progress.clone();
            self.slow =
                SlowCompile::with_callback(move |wasm| progress.show_note(&compiling_line(wasm)));
        }
        self
    }

    /// Uses an existing sandbox: its engine, pool and cache are shared, jars are not.
    pub(crate) fn with_sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Adds a listening address of this process: no tool can connect to it, whatever its grants.
    pub(crate) fn listening_on(mut self, address: SocketAddr) -> Self {
        self.listeners.push(address);
        self
    }

    /// Adds a directory that, like the home, no agent may write.
    pub(crate) fn with_closed_directory(mut self, directory: &Path) -> Self {
        self.closed.push(directory.to_path_buf());
        self
    }

    /// Builds the host. Faults of single tools do not stop this; the host's catalogue has them.
    pub(crate) fn build_host(self) -> Result<Host, Failure> {
        let Self { places, out, settings, models, recording, asker, slow, sandbox, .. } = self;
        let models = match models {
            Some(models) => models,
            None => self::make_models(&settings, places)?,
        };
        let models = match recording {
            Some(recording) => models.with_recording(recording),
            None => models,
        };
        let sandbox = match sandbox {
            Some(sandbox) => sandbox,
            None => sandbox_telling(places, out, slow, self.listeners)?.with_closed_directories(
                [own_directories(places, settings.server.data.as_deref()), self.closed].concat(),
            ),
        };
        let sandbox = sandbox.with_written_directories(writable_directories(&settings, places));
        let tools = ToolCatalogue::from_stock(stock_tools(), &settings);
        let installed = places.tools_directory();
        let tools = if installed.is_dir() {
            small_runtime()?.block_on(tools.with_home(&installed, &settings, &sandbox))
        } else {
            tools
        };
        let tools = tools.with_servers(&places.mcp_directory(), &settings);
        let context = AgentContext { known: tools.known_tools(), shapes: settings.shapes };
        for warning in settings.check_tools(&context.known) {
            out.print_diagnostic(&warning);
        }
        let mut roots = list_library_roots::<AgentDefinition>(places);
        match libraries::library_roots(places) {
            Ok(installed) => roots.extend(installed),
            // Without these files agents have fewer rights, never more, so the operator's own agents still
            // run.
            Err(failure) => out.print_failure(&failure),
        }
        let project_override = settings.project_override;
        let library = Library::open_with_stock(roots, stock_agents(), context, project_override);
        for warning in settings.outgrown_warnings(&library.catalog()) {
            out.print_diagnostic(&warning);
        }
        let teams = TeamLibrary::from_roots(
            list_library_roots::<TeamDefinition>(places),
            stock_files::<TeamDefinition>(),
            (),
            project_override,
        );
        let mut skill_roots = list_library_roots::<SkillDefinition>(places);
        // An unreadable list was reported above.
        skill_roots.extend(libraries::skill_roots(places).unwrap_or_default());
        let skills = SkillLibrary::from_roots(
            skill_roots,
            stock_files::<SkillDefinition>(),
            (),
            project_override,
        );
        let mut command_roots = list_library_roots::<CommandDefinition>(places);
        command_roots.extend(libraries::command_roots(places).unwrap_or_default());
        let commands = CommandLibrary::from_roots(command_roots, Vec::new(), (), project_override);
        let mut host = Host::new(
            sandbox,
            Arc::new(models),
            Arc::new(settings),
            Arc::new(tools),
            Arc::new(library),
        );
        if let Some(broker) = walls::outside_broker() {
            host.hooks = Arc::new(Hooks::from_settings(&host.settings).with_broker(broker));
        }
        host.search = Arc::new(IndexedSearch::default());
        host.teams = Arc::new(teams);
        host.skills = Arc::new(skills);
        host.commands = Arc::new(commands);
        host.secrets = secrets::read_secrets(&host.settings, places, out);
        host.home = Some(places.home.clone());
        if let Some(asker) = asker {
            host.asker = asker;
        }
        Ok(host)
    }
}

/// Reads and checks the `belljar.toml` of the home and of the workspace.
pub(crate) fn read_settings(places: &HomePaths) -> Result<Settings, Failure> {
    ours::check_home(places)?;
    parse_settings(places, read_own_config(&places.config_path())?)
}

/// Like [`read_settings`], for the operator's settings in a process behind its OS sandbox: the file may have
/// been replaced since the sandbox was raised, so the broker reads it. Must not be called inside the runtime.
pub(crate) fn settings_again(places: &HomePaths) -> Result<Settings, Failure> {
    let Some(broker) = walls::outside_broker() else { return read_settings(places) };
    ours::check_home(places)?;
    let text = small_runtime()?.block_on(broker.read_settings());
    let text = text.map_err(|error| Failure::from(anyhow::Error::from(error)))?;
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    parse_settings(places, text)
}

/// Parses the text of the home's `belljar.toml`, with the workspace's beside it.
fn parse_settings(places: &HomePaths, home_text: Option<String>) -> Result<Settings, Failure> {
    let (home, workspace) = (places.config_path(), places.workspace_config());
    let workspace_text = read_workspace_config(places)?;
    Settings::parse(
        home_text.as_deref().map(|text| (home.as_path(), text)),
        workspace_text.as_deref().map(|text| (workspace.as_path(), text)),
        places.user_home.as_deref(),
    )
    .map_err(|diagnostics| Failure::from_diagnostics("", diagnostics))
}

/// Makes the configured models. Keys are read when a model is first used.
pub(crate) fn make_models(
    settings: &Settings,
    places: &HomePaths,
) -> Result<ModelRegistry, Failure> {
    let mut configs = BTreeMap::new();
    for (name, setting) in &settings.models {
        configs.insert(name.clone(), model_config(settings, name, setting, places)?);
    }
    let role = |role: ModelRole| settings.roles.get(role.name()).cloned();
    let roles = RoleTable {
        main: role(ModelRole::Main),
        fast: role(ModelRole::Fast),
        strong: role(ModelRole::Strong),
        compaction: role(ModelRole::Compaction),
        fallback: role(ModelRole::Fallback),
    };
    ModelRegistry::new(configs, roles, Box::new(|name| std::env::var(name).ok()))
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Makes the configuration of one model from its section in `belljar.toml`.
fn model_config(
    settings: &Settings,
    name: &str,
    setting: &ModelSetting,
    places: &HomePaths,
) -> Result<ModelConfig, Failure> {
    let wrong = |what: &str, value: &str| {
        let (name, value) = (ShownText::clip_line(name, 80), ShownText::clip_line(value, 200));
        Failure::usage(format!("model `{name}`: `{value}` is not {what}"))
            .with_hint(format!("correct it in {}", places.config_path().to_shown()))
    };
    let (provider, model) = match setting.kind {
        ModelKind::OpenAi => (ModelProvider::OpenAi, setting.model.clone()),
        ModelKind::Anthropic => (ModelProvider::Anthropic, setting.model.clone()),
        ModelKind::Scripted => (
            ModelProvider::Scripted,
            places.home.join(&setting.model).to_string_lossy().into_owned(),
        ),
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

/// Returns the agents in the program itself, which exist even if `belljar init` was never run.
fn stock_agents() -> Vec<SourceFile> {
    let root = Path::new("built-in");
    let files = embedded::files_below(AGENTS, "agents/");
    files
        .map(|(name, bytes)| SourceFile {
            scope: AgentScope::Home,
            root: root.to_path_buf(),
            path: root.join(name),
            content: ScannedContent::Bytes(bytes.to_vec()),
        })
        .collect()
}

/// Returns the teams or skills in the program itself, which exist even if `belljar init` was never run.
fn stock_files<D: CatalogItem>() -> Vec<SourceFile> {
    let folder = D::KIND.folder;
    let root = Path::new("built-in").join(folder);
    let files = embedded::files_below(AGENTS, "").filter_map(|(name, bytes)| {
        let below = name.strip_prefix(folder)?.strip_prefix('/')?;
        Some((root.join(below), bytes))
    });
    files
        .map(|(path, bytes)| SourceFile {
            scope: AgentScope::Home,
            root: root.clone(),
            path,
            content: ScannedContent::Bytes(bytes.to_vec()),
        })
        .collect()
}

/// The folders of agents, teams or skills in home and workspace, in the order of precedence.
fn list_library_roots<D: CatalogItem>(places: &HomePaths) -> Vec<LibraryRoot> {
    let mut roots = vec![LibraryRoot::in_home::<D>(&places.home)];
    if !places.is_around_home() {
        roots.push(LibraryRoot::in_workspace::<D>(&places.workspace));
    }
    roots
}

fn stock_tools() -> impl Iterator<Item = StockTool> {
    STOCK_TOOLS.iter().map(|tool| StockTool::new(tool.name, tool.to_wasm(), tool.manifest))
}

/// A runtime with one thread, for commands without concurrent agents.
pub(crate) fn small_runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(no_runtime)
}

/// A runtime with several threads, for agents that run concurrently.
pub(crate) fn make_runtime() -> Result<Runtime, Failure> {
    Builder::new_multi_thread().enable_all().build().map_err(no_runtime)
}

/// Starts a task that cancels `cancel` at the first Ctrl-C or SIGTERM, and exits the process at the second.
/// Must be called inside the runtime.
pub(crate) fn cancel_on_interrupt(cancel: &CancellationToken, out: &TerminalOutput) {
    on_interrupt(cancel, out, "cancelling");
}

/// As [`cancel_on_interrupt`], with a message that the server waits for running turns.
pub(crate) fn stop_on_interrupt(stop: &CancellationToken, out: &TerminalOutput) {
    on_interrupt(stop, out, "stopping when the turns that run have ended");
}

/// Starts the task for both: prints `doing` at the first signal, and exits at the second.
fn on_interrupt(cancel: &CancellationToken, out: &TerminalOutput, doing: &'static str) {
    let (cancel, out) = (cancel.clone(), out.clone());
    tokio::spawn(async move {
        if wait_interrupt().await.is_err() {
            return;
        }
        out.note(format_args!("{doing}; press Ctrl-C again to leave at once"));
        cancel.cancel();
        if wait_interrupt().await.is_ok() {
            std::process::exit(i32::from(CommandExit::Cancelled.code()));
        }
    });
}

/// Waits for Ctrl-C or SIGTERM.
#[cfg(unix)]
async fn wait_interrupt() -> std::io::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn wait_interrupt() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Creates the sandbox, with compiled components cached in `places.cache`. If the cache cannot be used, a
/// warning is printed, and components are compiled each time.
pub(crate) fn make_sandbox(places: &HomePaths, out: &TerminalOutput) -> Result<Sandbox, Failure> {
    let sandbox = sandbox_telling(places, out, slow_compile_note(out), Vec::new())?;
    let data = read_settings(places).ok().and_then(|settings| settings.server.data);
    Ok(sandbox.with_closed_directories(own_directories(places, data.as_deref())))
}

/// INV-178: the directories that agents may write under these settings: the workspace, whether or not any
/// agent is granted it, and every writable mount.
fn writable_directories(settings: &Settings, places: &HomePaths) -> Vec<PathBuf> {
    let mounted = mountable_directories(settings, places, MountAccess::ReadWrite);
    let paths: BTreeSet<PathBuf> = mounted.chain(places.workspace.canonicalize()).collect();
    paths.into_iter().collect()
}

/// The directories that these settings let agents mount with at least the access `least`, with links
/// resolved.
pub(crate) fn mountable_directories(
    settings: &Settings,
    places: &HomePaths,
    least: MountAccess,
) -> impl Iterator<Item = PathBuf> {
    let mounts = settings.possible_mounts(&places.workspace).into_iter();
    let mounts = mounts.filter(move |mount| mount.access >= least);
    mounts.filter_map(|mount| mount.host.canonicalize().ok())
}

/// INV-155: belljar's files that decide about agents, and the program itself, which no agent may write.
/// Missing files are included, because only belljar may make them.
pub(crate) fn own_directories(places: &HomePaths, data: Option<&Path>) -> Vec<PathBuf> {
    let mut own = vec![places.home.clone(), places.cache.clone()];
    own.extend(data.map(Path::to_path_buf));
    collect_links(&places.home, LINKED_DEPTH, &mut own);
    if let Ok(program) = std::env::current_exe() {
        own.extend(beside::library_directory(&program));
        own.push(program);
    }
    own
}

/// How many levels of a home are searched for links: the depth at which files of agents and tools are.
const LINKED_DEPTH: usize = 3;

/// Collects the links in a directory; they lead to files that a person keeps elsewhere.
fn collect_links(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    // Links in an unreadable directory cannot be followed by this process either.
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => found.push(entry.path()),
            Ok(kind) if kind.is_dir() && depth > 1 && !is_filled_by_belljar(&entry.file_name()) => {
                collect_links(&entry.path(), depth - 1, found);
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// Returns whether this directory of a home is filled by belljar only, so that it has no links of a person.
fn is_filled_by_belljar(name: &std::ffi::OsStr) -> bool {
    ["cache", "libraries", "sessions"].iter().any(|own| name == *own)
}

/// Makes a sandbox with the cache on disk. `slow` tells a person about compilations; `listeners` are
/// addresses that no tool may connect to.
fn sandbox_telling(
    places: &HomePaths,
    out: &TerminalOutput,
    slow: SlowCompile,
    listeners: Vec<SocketAddr>,
) -> Result<Sandbox, Failure> {
    let mut config = sandbox_config()?;
    config.slow = slow;
    config.http = config.http.with_own_listeners(listeners);
    let unusable = |why: String| {
        out.print_warning(format_args!(
            "the cache `{}` cannot be used, so components are compiled each time: {why}",
            places.cache.to_shown()
        ));
    };
    if let Some(cached) = walls::keeps_cache() {
        // The broker uses the cache, because this process cannot open it behind the OS sandbox.
        config.cache_dir = cached.then(|| places.cache.clone());
        return add_stock_tools(Sandbox::new(config));
    }
    match create_private(&places.cache) {
        Ok(()) => config.cache_dir = Some(places.cache.clone()),
        Err(error) => unusable(error.to_string()),
    }
    match Sandbox::new(config.clone()) {
        Err(SandboxError::Cache { why, .. }) => {
            unusable(why);
            config.cache_dir = None;
            add_stock_tools(Sandbox::new(config))
        }
        made => add_stock_tools(made),
    }
}

/// Adds the stock tools' descriptions and machine code to a new sandbox.
fn add_stock_tools(made: Result<Sandbox, SandboxError>) -> Result<Sandbox, Failure> {
    let sandbox = made.map_err(|error| no_sandbox(&error))?;
    embedded::bring_stock_tools(&sandbox)?;
    Ok(sandbox)
}

/// Makes a sandbox without a cache on disk, for self-tests, which must really compile.
pub(crate) fn sandbox_without_cache(out: &TerminalOutput) -> Result<Sandbox, Failure> {
    let config = SandboxConfig { slow: slow_compile_note(out), ..sandbox_config()? };
    Sandbox::new(config).map_err(|error| no_sandbox(&error))
}

/// A callback that tells a person at a terminal that a component is being compiled.
fn slow_compile_note(out: &TerminalOutput) -> SlowCompile {
    if !out.explains_waiting() {
        return SlowCompile::default();
    }
    let out = out.clone();
    SlowCompile::with_callback(move |wasm| out.note(compiling_line(wasm)))
}

/// The most characters of a component's name in the message.
const MAX_NAME: usize = 80;

/// The message about a component that is being compiled.
fn compiling_line(wasm: &Wasm) -> String {
    let stock = STOCK_TOOLS.iter().find(|tool| tool.digest() == wasm.digest());
    let name = stock.map(|tool| tool.name).or(wasm.name());
    let what = match name {
        Some(name) => format!("`{}`", ShownText::clip_line(name, MAX_NAME)),
        None => "a component".to_owned(),
    };
    format!("compiling {what} for its first use; later ones find it in the cache")
}

fn sandbox_config() -> Result<SandboxConfig, Failure> {
    Ok(SandboxConfig { compiler: walls::make_compiler()?, ..SandboxConfig::default() })
}

fn no_sandbox(error: &SandboxError) -> Failure {
    Failure::new(format!("the sandbox cannot be set up: {error}"))
        .with_hint("`belljar doctor` says more")
}

fn no_runtime(error: std::io::Error) -> Failure {
    Failure::new(format!("failed to start the async runtime: {error}"))
}
