//! Raises the OS sandbox (also called the wall) of this process, decides its gaps, and reports about it.
//!
//! The OS sandbox is raised once, before there is a runtime or any other thread, in every command that runs a
//! tool. Its gaps are the union of all agents' grants, because a process has one OS sandbox for all agents.
//! Programs outside of it are started by the broker.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use belljar_definition::{HookAction, KeySetting, ModelKind, Settings};
use belljar_os_sandbox::{
    Broker, BrokerSetup, DerivedFile, KeeperArguments, Making, Program, Wall, WallReach, WallStatus,
};
use belljar_policy::{MountAccess, ShownPath as _};
use belljar_sandbox::{Compiler, ComponentVault, SandboxError};

use crate::setup::exit::Failure;
use crate::setup::home::{HomePaths, create_private, read_own_config};
use crate::setup::host;
use crate::setup::programs::{self, FileDigests};
use crate::setup::secrets;
use crate::term::out::TerminalOutput;

/// The hidden first argument that makes this program a child that compiles components.
pub(crate) const COMPILE_CHILD: &str = "compile-component";

/// The hidden first argument that makes this program a broker.
pub(crate) const BROKER: &str = "start-outside-the-wall";

/// The hidden first argument that makes this program a child that lists the tools of components.
pub(crate) const DESCRIBE_CHILD: &str = "describe-component";

/// The hidden first argument that makes this program the parent of a hook command.
pub(crate) const KEEPER: &str = "keep-hook-command";

/// The hidden first argument that makes this program the parent of an MCP server that is a command.
pub(crate) const PROGRAM_KEEPER: &str = "keep-program";

/// The hidden first argument that makes this program sandbox itself and become another program.
pub(crate) const PROGRAM: &str = "become-program";

/// The hidden first argument for a process that fetches from another machine.
pub(crate) const HELPER: &str = "fetch-outside";

/// The hidden first argument for attacking the OS sandbox from inside.
pub(crate) const ATTACK: &str = "attack-the-wall";

/// The hidden first argument that makes this program the process that such an attack tries to reach.
pub(crate) const VICTIM: &str = "be-attacked";

/// The option that switches the OS sandbox off, for the command line and for a compiling child.
pub(crate) const NO_WALL: &str = "--no-os-sandbox";

/// The most entries in folders of the home that are searched for links; further entries are ignored.
const MAX_ENTRIES: usize = 10_000;

/// The most levels below the home that are searched for links.
const MAX_DEPTH: usize = 8;

/// The state of this process's OS sandbox, which can be raised only once. Unset = not decided yet.
static STATE: OnceLock<WallState> = OnceLock::new();

/// Whether this process runs behind its OS sandbox.
enum WallState {
    /// Switched off by `--no-os-sandbox`.
    Off,
    Up {
        broker: Broker,
        /// True if the broker stores compiled components.
        cached: bool,
        /// The files that this process can open behind the OS sandbox, as of the moment when it was raised.
        reach: WallReach,
    },
}

/// Raises the OS sandbox of this process when a command needs it.
#[derive(Clone, Copy)]
pub(crate) struct WallRaiser<'a> {
    out: &'a TerminalOutput,
}

/// The files that one command needs behind the OS sandbox, beside those of every command.
#[derive(Debug, Default)]
pub(crate) struct WallGaps {
    /// Directories and files that the process may read, for example the workspace.
    pub(crate) read: Vec<PathBuf>,
    /// Directories and files that the process may write, for example the store's.
    pub(crate) write: Vec<PathBuf>,
    /// The parents of temporary directories, which the process removes when it ends.
    pub(crate) temporary: Vec<PathBuf>,
    /// True if the command refuses to run without the OS sandbox. If set, `require_os_sandbox` in
    /// `belljar.toml` decides instead.
    pub(crate) required: bool,
    /// True if the process reads `belljar.toml` again later, through the broker.
    pub(crate) settings_again: bool,
    /// The data root, for a command in which it may differ from the one in `belljar.toml`.
    pub(crate) data: Option<PathBuf>,
}

impl<'a> WallRaiser<'a> {
    /// `off` = the OS sandbox is never raised in this process.
    pub(crate) fn new(off: bool, out: &'a TerminalOutput) -> Self {
        if off {
            let _ = STATE.set(WallState::Off);
        }
        Self { out }
    }

    /// Whether this process and its children run without an OS sandbox.
    pub(crate) fn is_off(&self) -> bool {
        matches!(STATE.get(), Some(WallState::Off))
    }

    /// Raises the wall for a command in these places. An invalid `belljar.toml` grants nothing here; the
    /// command itself reports the fault.
    ///
    /// # Errors
    ///
    /// When the OS sandbox is required and does not stand. If not required, a warning lists the missing
    /// parts, even with `--quiet`.
    pub(crate) fn raise_for(
        &self,
        places: &HomePaths,
        through: &WallGaps,
    ) -> Result<WallStatus, Failure> {
        let settings = host::read_settings(places).unwrap_or_default();
        let required = settings.require_os_sandbox.unwrap_or(through.required);
        let raised = self.raise_wall(places, &settings, through);
        if !matches!(STATE.get(), Some(WallState::Off)) && !raised.stands {
            let missing = raised.all.missing.join("; ");
            if required {
                return Err(Failure::new(format!("the OS sandbox does not stand: {missing}"))
                    .with_hint("`require_os_sandbox` in belljar.toml, or what this command is, asks for it")
                    .with_hint(format!("`{NO_WALL}` runs without it: wasmtime alone holds the tools then")));
            }
            self.out.print_alarm(format_args!("the OS sandbox does not stand: {missing}"));
        } else if !raised.all.is_whole() && !matches!(STATE.get(), Some(WallState::Off)) {
            let missing = raised.all.missing.join("; ");
            self.out.print_alarm(format_args!("the OS sandbox is not whole: {missing}"));
        }
        Ok(raised.all)
    }

    /// Raises the OS sandbox for a command without tools, which only writes below these directories:
    /// afterwards it can open no other file, and start no process or connection. There is no broker.
    pub(crate) fn raise_around(&self, written: &[&Path]) {
        if matches!(STATE.get(), Some(WallState::Off)) {
            return;
        }
        let mut wall = Wall::default();
        written.iter().for_each(|path| wall.allow_write(path));
        let raised = wall.raise_wall();
        if raised.landlock.is_none() || !raised.seccomp {
            let missing = raised.missing.join("; ");
            self.out.print_alarm(format_args!("the OS sandbox does not stand: {missing}"));
        }
    }

    /// Raises the OS sandbox, and returns which parts of it are active. Prints only if it is switched off.
    pub(crate) fn raise_quietly(&self, places: &HomePaths, through: &WallGaps) -> WallStatus {
        let settings = host::read_settings(places).unwrap_or_default();
        self.raise_wall(places, &settings, through).all
    }

    /// Raises the OS sandbox: starts the broker with its list of programs, and then restricts this process.
    fn raise_wall(
        &self,
        places: &HomePaths,
        settings: &Settings,
        through: &WallGaps,
    ) -> RaisedWall {
        match STATE.get() {
            Some(WallState::Off) => {
                let why = format!("switched off by `{NO_WALL}`");
                self.out.print_warning(format_args!("the OS sandbox is {why}"));
                return RaisedWall { stands: false, all: WallStatus::not_raised(why) };
            }
            // A second OS sandbox could not have wider gaps than the first.
            Some(WallState::Up { .. }) => {
                return RaisedWall { stands: true, all: WallStatus::default() };
            }
            None => {}
        }
        let wall = make_wall(places, settings, through);
        let cache = self.broker_cache(places, &wall);
        let cached = cache.is_some();
        let again = through.settings_again.then(|| places.config_path());
        let told =
            BrokerSetup { settings: again, ..broker_setup(places, settings, through, cache) };
        let broker = match Broker::start_broker(told) {
            Ok(broker) => broker,
            Err(error) => {
                let why = format!("what has to run outside it cannot be started: {error}");
                return RaisedWall { stands: false, all: WallStatus::not_raised(why) };
            }
        };
        let reach = wall.present_reach();
        let all = wall.raise_wall();
        let _ = STATE.set(WallState::Up { broker, cached, reach });
        RaisedWall { stands: all.landlock.is_some() && all.seccomp, all }
    }

    /// The cache's directory, if the broker can store compiled components there: no process behind the OS
    /// sandbox may write it.
    fn broker_cache(&self, places: &HomePaths, wall: &Wall) -> Option<PathBuf> {
        let path = &places.cache;
        let made = create_private(path).map_err(|error| error.to_string());
        let ready = made.and_then(|()| {
            if wall.writes_around(path) {
                return Err("it lies in a directory that agents may write".to_owned());
            }
            belljar_sandbox::prepare_cache(path).map_err(|error| match error {
                SandboxError::Cache { why, .. } => why,
                other => other.to_string(),
            })
        });
        match ready {
            Ok(()) => Some(path.clone()),
            Err(why) => {
                self.out.print_warning(format_args!(
                    "the cache `{}` cannot be used, so components are compiled each time: {why}",
                    path.to_shown()
                ));
                None
            }
        }
    }
}

/// The result of raising the OS sandbox.
struct RaisedWall {
    /// True if both files and system calls are restricted.
    stands: bool,
    all: WallStatus,
}

/// Runs this process as a broker, until its parent ends.
pub(crate) fn be_broker() -> ExitCode {
    let (compiler, describer) = (vec![COMPILE_CHILD.into()], vec![DESCRIBE_CHILD.into()]);
    let vault = ComponentVault::new(PathBuf::from("/proc/self/exe"), compiler, describer);
    let keepers = KeeperArguments { hook: &[KEEPER.into()], program: &[PROGRAM_KEEPER.into()] };
    belljar_os_sandbox::serve_broker(keepers, &OutsideVault(vault, FileDigests::default()))
}

/// What a broker stores and reads for its parent: compiled components, the operator's settings, and digests
/// of programs.
struct OutsideVault(ComponentVault, FileDigests);

impl belljar_os_sandbox::BrokerVault for OutsideVault {
    fn open_cache(&self, directory: Option<&Path>) {
        self.0.open_cache(directory);
    }

    fn find_derived(&self, made: DerivedFile, digest: &str) -> Option<Vec<u8>> {
        self.0.find_derived(made, digest)
    }

    fn make_derived<'a>(&'a self, made: DerivedFile, component: Vec<u8>) -> Making<'a> {
        self.0.make_derived(made, component)
    }

    /// The owner is checked here, on the open file, because the answer is a text without an owner.
    fn read_settings(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        let text = read_own_config(path).map_err(|failure| failure.with_hints())?;
        Ok(text.map(String::into_bytes))
    }

    fn identify_program(&self, program: &Program) -> Result<String, String> {
        self.1.identify_program(program)
    }
}

/// The files that this process can open behind its OS sandbox; `None` = there is none.
pub(crate) fn wall_reach() -> Option<&'static WallReach> {
    match STATE.get() {
        Some(WallState::Up { reach, .. }) => Some(reach),
        Some(WallState::Off) | None => None,
    }
}

/// The broker, which starts programs outside of the OS sandbox; `None` = there is no OS sandbox.
pub(crate) fn outside_broker() -> Option<&'static Broker> {
    match STATE.get() {
        Some(WallState::Up { broker, .. }) => Some(broker),
        Some(WallState::Off) | None => None,
    }
}

/// Returns whether the broker stores compiled components; `None` = there is no broker.
pub(crate) fn keeps_cache() -> Option<bool> {
    match STATE.get() {
        Some(WallState::Up { cached, .. }) => Some(*cached),
        Some(WallState::Off) | None => None,
    }
}

/// Makes the compiler of components: a child process with its own OS sandbox.
pub(crate) fn make_compiler() -> Result<Compiler, Failure> {
    if let Some(broker) = outside_broker() {
        return Ok(Compiler::Broker(broker.clone()));
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(format!(
            "failed to find the running program, which compiles components: {error}"
        ))
    })?;
    let mut args = vec![OsString::from(COMPILE_CHILD)];
    if matches!(STATE.get(), Some(WallState::Off)) {
        args.push(NO_WALL.into());
    }
    Ok(Compiler::Child { program, args })
}

/// The broker's fixed list of hooks and programs, with their environments, and its cache.
fn broker_setup(
    places: &HomePaths,
    settings: &Settings,
    through: &WallGaps,
    cache: Option<PathBuf>,
) -> BrokerSetup {
    let values = |key: &KeySetting| secrets::read_value(key, places);
    let commands = settings.hooks.iter().filter_map(|hook| match &hook.action {
        HookAction::Command(command) => Some(command.clone()),
        HookAction::Component { .. } => None,
    });
    let data = through.data.as_deref();
    // The workspace is writable because a person applies changes there; agents do not write it.
    let written = through.write.iter().filter(|path| **path != places.workspace);
    let written: Vec<PathBuf> = written.cloned().collect();
    BrokerSetup {
        broker: vec![BROKER.into()],
        hooks: commands.collect(),
        programs: programs::known_programs(settings, places, data, &written, &values),
        workspace: places.workspace.clone(),
        cache,
        settings: None,
    }
}

/// The OS sandbox's gaps: the union of the operator's grants, belljar's own files, and the command's
/// `through`.
fn make_wall(places: &HomePaths, settings: &Settings, through: &WallGaps) -> Wall {
    let mut wall = Wall::default().with_system();
    wall.allow_read(&places.home);
    add_link_targets(&places.home, 0, &mut 0, &mut wall);
    wall.exclude_directory(&places.cache);
    add_configured_files(places, settings, &mut wall);
    wall.allow_read(&places.workspace);
    for mount in settings.possible_mounts(&places.workspace) {
        match mount.access {
            MountAccess::Read | MountAccess::Overlay => wall.allow_read(&mount.host),
            MountAccess::ReadWrite => wall.allow_write(&mount.host),
        }
    }
    if places.tokens_directory().is_dir() {
        // Renewing a token may replace the refresh token too, so the files are writable.
        wall.allow_write(&places.tokens_directory());
    }
    through.read.iter().for_each(|path| wall.allow_read(path));
    through.write.iter().for_each(|path| wall.allow_write(path));
    through.temporary.iter().for_each(|path| wall.allow_remove_empty(path));
    wall
}

/// Lets the process read files named in `belljar.toml` that are read at their first use.
fn add_configured_files(places: &HomePaths, settings: &Settings, wall: &mut Wall) {
    let keys = settings.models.values().map(|model| &model.key);
    for key in keys.chain(settings.secrets.values().map(|secret| &secret.value)) {
        match key {
            KeySetting::File(path) => wall.allow_read(&places.home.join(path)),
            KeySetting::None | KeySetting::Env(_) => {}
        }
    }
    for model in settings.models.values().filter(|model| model.kind == ModelKind::Scripted) {
        wall.allow_read(&places.home.join(&model.model));
    }
    for hook in &settings.hooks {
        if let HookAction::Component { path, .. } = &hook.action {
            wall.allow_read(path);
        }
    }
}

/// Lets the process read the targets of links in the home, for example agents that a person stores elsewhere.
/// Only the present content of the home is searched; every link there is the operator's.
fn add_link_targets(directory: &Path, depth: usize, entries: &mut usize, wall: &mut Wall) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        *entries += 1;
        if *entries > MAX_ENTRIES {
            return;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => wall.allow_read(&entry.path()),
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH && !is_kept(&entry.path()) => {
                add_link_targets(&entry.path(), depth + 1, entries, wall);
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// Returns whether belljar itself fills this folder with many files and no links, so that it is not searched.
fn is_kept(path: &Path) -> bool {
    ["cache", "libraries", "sessions"].iter().any(|name| path.ends_with(name))
}
