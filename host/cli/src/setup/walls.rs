//! The OS sandbox of this process: its gaps, and messages about it.
//!
//! The wall goes up once, before there is a runtime or any other thread, in every command that runs a tool.
//! The gaps are the union of all agents' grants, because a process has one wall for all agents. Outside work
//! is started by the broker.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use belljar_definition::{HookAction, KeySetting, ModelKind, Settings};
use belljar_os_sandbox::{
    Broker, BrokerSetup, Keepers, Made, Making, Program, Raised, Wall, WallReach,
};
use belljar_policy::{Access, ShownPath as _};
use belljar_sandbox::{Compiler, SandboxError, Vault};

use crate::setup::exit::Failure;
use crate::setup::home::{Places, create_private, read_own_config};
use crate::setup::host;
use crate::setup::programs::{self, Digests};
use crate::setup::secrets;
use crate::term::out::Out;

/// The hidden first argument for a compiling child.
pub(crate) const COMPILE_CHILD: &str = "compile-component";

/// The hidden first argument for a broker.
pub(crate) const BROKER: &str = "start-outside-the-wall";

/// The hidden first argument for a describing child.
pub(crate) const DESCRIBE_CHILD: &str = "describe-component";

/// The hidden first argument for the keeper of a hook command.
pub(crate) const KEEPER: &str = "keep-hook-command";

/// The hidden first argument for the keeper of a program.
pub(crate) const PROGRAM_KEEPER: &str = "keep-program";

/// The hidden first argument for becoming a confined program.
pub(crate) const PROGRAM: &str = "become-program";

/// The hidden first argument for attacking the OS sandbox from inside.
pub(crate) const ATTACK: &str = "attack-the-wall";

/// The hidden first argument for the process beside such an attack.
pub(crate) const VICTIM: &str = "be-attacked";

/// The option, also as the word that a compiling child understands.
pub(crate) const NO_WALL: &str = "--no-os-sandbox";

/// Entries of the home's folders searched for links; further ones are ignored.
const MAX_ENTRIES: usize = 10_000;

/// Folders below the home's that are looked into.
const MAX_DEPTH: usize = 8;

/// The process's only wall.
static STATE: OnceLock<State> = OnceLock::new();

enum State {
    /// By the operator's word.
    Off,
    Up {
        broker: Broker,
        /// Whether the broker keeps what is compiled.
        cached: bool,
        /// Where this process reaches.
        reach: WallReach,
    },
}

/// Puts the wall up when a command asks for it.
#[derive(Clone, Copy)]
pub(crate) struct Walls<'a> {
    out: &'a Out,
}

/// The gaps of a command in the wall, beside the common ones.
#[derive(Debug, Default)]
pub(crate) struct Through {
    /// Directories and files to read, for example the workspace.
    pub(crate) read: Vec<PathBuf>,
    /// Directories and files to write, for example the store's.
    pub(crate) write: Vec<PathBuf>,
    /// Directories for a temporary one, which is removed at the end.
    pub(crate) temporary: Vec<PathBuf>,
    /// Nothing is done without the OS sandbox, unless `belljar.toml` says otherwise.
    pub(crate) required: bool,
    /// The operator's `belljar.toml` is read again later.
    pub(crate) settings_again: bool,
    /// The data root, for a command that may have another than `belljar.toml` says.
    pub(crate) data: Option<PathBuf>,
}

impl<'a> Walls<'a> {
    /// With `off`, no wall ever goes up in this process.
    pub(crate) fn new(off: bool, out: &'a Out) -> Self {
        if off {
            let _ = STATE.set(State::Off);
        }
        Self { out }
    }

    /// Raises the wall for a command in these places. An invalid `belljar.toml` grants nothing here; the
    /// command itself reports the fault.
    ///
    /// # Errors
    ///
    /// When the OS sandbox is required and does not stand. If not required, a warning lists the missing
    /// parts, even with `--quiet`.
    pub(crate) fn up(&self, places: &Places, through: &Through) -> Result<Raised, Failure> {
        let settings = host::settings(places).unwrap_or_default();
        let required = settings.require_os_sandbox.unwrap_or(through.required);
        let raised = self.raise(places, &settings, through);
        if !matches!(STATE.get(), Some(State::Off)) && !raised.stands {
            let missing = raised.all.missing.join("; ");
            if required {
                return Err(Failure::new(format!("the OS sandbox does not stand: {missing}"))
                    .hint("`require_os_sandbox` in belljar.toml, or what this command is, asks for it")
                    .hint(format!("`{NO_WALL}` runs without it: wasmtime alone holds the tools then")));
            }
            self.out.alarm(format_args!("the OS sandbox does not stand: {missing}"));
        } else if !raised.all.is_whole() && !matches!(STATE.get(), Some(State::Off)) {
            let missing = raised.all.missing.join("; ");
            self.out.alarm(format_args!("the OS sandbox is not whole: {missing}"));
        }
        Ok(raised.all)
    }

    /// Raises a wall around a command without tools that writes below these directories alone: no other file
    /// can be opened from then on, no connection or process made. Nothing runs outside of it.
    pub(crate) fn around(&self, written: &[&Path]) {
        if matches!(STATE.get(), Some(State::Off)) {
            return;
        }
        let mut wall = Wall::default();
        written.iter().for_each(|path| wall.write(path));
        let raised = wall.raise();
        if raised.landlock.is_none() || !raised.seccomp {
            let missing = raised.missing.join("; ");
            self.out.alarm(format_args!("the OS sandbox does not stand: {missing}"));
        }
    }

    /// The standing part of the wall. Prints nothing unless the wall is switched off.
    pub(crate) fn look(&self, places: &Places, through: &Through) -> Raised {
        let settings = host::settings(places).unwrap_or_default();
        self.raise(places, &settings, through).all
    }

    fn raise(&self, places: &Places, settings: &Settings, through: &Through) -> Stands {
        match STATE.get() {
            Some(State::Off) => {
                let why = format!("switched off by `{NO_WALL}`");
                self.out.warning(format_args!("the OS sandbox is {why}"));
                return Stands { stands: false, all: Raised::not(why) };
            }
            // A second one would be no wider than the first.
            Some(State::Up { .. }) => return Stands { stands: true, all: Raised::default() },
            None => {}
        }
        let wall = wall(places, settings, through);
        let cache = self.cache(places, &wall);
        let cached = cache.is_some();
        let again = through.settings_again.then(|| places.config());
        let told = BrokerSetup { settings: again, ..setup(places, settings, through, cache) };
        let broker = match Broker::start(told) {
            Ok(broker) => broker,
            Err(error) => {
                let why = format!("what has to run outside it cannot be started: {error}");
                return Stands { stands: false, all: Raised::not(why) };
            }
        };
        let reach = wall.reach();
        let all = wall.raise();
        let _ = STATE.set(State::Up { broker, cached, reach });
        Stands { stands: all.landlock.is_some() && all.seccomp, all }
    }

    /// The cache, if the broker can keep it: nothing behind the wall may write there.
    fn cache(&self, places: &Places, wall: &Wall) -> Option<PathBuf> {
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
                self.out.warning(format_args!(
                    "the cache `{}` cannot be used, so components are compiled each time: {why}",
                    path.shown()
                ));
                None
            }
        }
    }
}

/// The result of putting the wall up.
struct Stands {
    /// Files and system calls are both held.
    stands: bool,
    all: Raised,
}

/// The body of a broker.
pub(crate) fn be_broker() -> ExitCode {
    let (compiler, describer) = (vec![COMPILE_CHILD.into()], vec![DESCRIBE_CHILD.into()]);
    let vault = Vault::new(PathBuf::from("/proc/self/exe"), compiler, describer);
    let keepers = Keepers { hook: &[KEEPER.into()], program: &[PROGRAM_KEEPER.into()] };
    belljar_os_sandbox::serve(keepers, &Outside(vault, Digests::default()))
}

/// The broker's vault: compiled components, the operator's settings, and digests of programs.
struct Outside(Vault, Digests);

impl belljar_os_sandbox::BrokerVault for Outside {
    fn open(&self, directory: Option<&Path>) {
        self.0.open(directory);
    }

    fn find(&self, made: Made, digest: &str) -> Option<Vec<u8>> {
        self.0.find(made, digest)
    }

    fn make<'a>(&'a self, made: Made, component: Vec<u8>) -> Making<'a> {
        self.0.make(made, component)
    }

    /// Checked here, on the open file: the answer is text, without an owner.
    fn settings(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        let text = read_own_config(path).map_err(|failure| failure.with_hints())?;
        Ok(text.map(String::into_bytes))
    }

    fn identify(&self, program: &Program) -> Result<String, String> {
        self.1.identify(program)
    }
}

/// The process's reach behind its wall; absent without a wall.
pub(crate) fn reach() -> Option<&'static WallReach> {
    match STATE.get() {
        Some(State::Up { reach, .. }) => Some(reach),
        Some(State::Off) | None => None,
    }
}

/// The broker for outside work; absent without a wall.
pub(crate) fn broker() -> Option<&'static Broker> {
    match STATE.get() {
        Some(State::Up { broker, .. }) => Some(broker),
        Some(State::Off) | None => None,
    }
}

/// Whether the broker keeps what is compiled; `None` where there is no broker.
pub(crate) fn keeps_cache() -> Option<bool> {
    match STATE.get() {
        Some(State::Up { cached, .. }) => Some(*cached),
        Some(State::Off) | None => None,
    }
}

/// The way to compile components: in a child, behind a separate wall.
pub(crate) fn compiler() -> Result<Compiler, Failure> {
    if let Some(broker) = broker() {
        return Ok(Compiler::Broker(broker.clone()));
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(format!(
            "failed to find the running program, which compiles components: {error}"
        ))
    })?;
    let mut args = vec![OsString::from(COMPILE_CHILD)];
    if matches!(STATE.get(), Some(State::Off)) {
        args.push(NO_WALL.into());
    }
    Ok(Compiler::Child { program, args })
}

fn setup(
    places: &Places,
    settings: &Settings,
    through: &Through,
    cache: Option<PathBuf>,
) -> BrokerSetup {
    let values = |key: &KeySetting| secrets::value(key, places);
    let commands = settings.hooks.iter().filter_map(|hook| match &hook.action {
        HookAction::Command(command) => Some(command.clone()),
        HookAction::Component { .. } => None,
    });
    let data = through.data.as_deref();
    // To the workspace itself a person applies changes, and nobody else.
    let written = through.write.iter().filter(|path| **path != places.workspace);
    let written: Vec<PathBuf> = written.cloned().collect();
    BrokerSetup {
        broker: vec![BROKER.into()],
        hooks: commands.collect(),
        programs: programs::known(settings, places, data, &written, &values),
        workspace: places.workspace.clone(),
        cache,
        settings: None,
    }
}

/// The union of the operator's grants, belljar's own files, and a program's needs.
fn wall(places: &Places, settings: &Settings, through: &Through) -> Wall {
    let mut wall = Wall::default().with_system();
    wall.read(&places.home);
    linked(&places.home, 0, &mut 0, &mut wall);
    wall.keep_out(&places.cache);
    configured(places, settings, &mut wall);
    wall.read(&places.workspace);
    for mount in settings.mounts(&places.workspace) {
        match mount.access {
            Access::Read | Access::Overlay => wall.read(&mount.host),
            Access::ReadWrite => wall.write(&mount.host),
        }
    }
    if places.tokens().is_dir() {
        // An issuer that renews a token may also replace the refresh token.
        wall.write(&places.tokens());
    }
    through.read.iter().for_each(|path| wall.read(path));
    through.write.iter().for_each(|path| wall.write(path));
    through.temporary.iter().for_each(|path| wall.remove_empty(path));
    wall
}

/// Files named in `belljar.toml` that are read on first use.
fn configured(places: &Places, settings: &Settings, wall: &mut Wall) {
    let keys = settings.models.values().map(|model| &model.key);
    for key in keys.chain(settings.secrets.values().map(|secret| &secret.value)) {
        match key {
            KeySetting::File(path) => wall.read(&places.home.join(path)),
            KeySetting::None | KeySetting::Env(_) => {}
        }
    }
    for model in settings.models.values().filter(|model| model.kind == ModelKind::Scripted) {
        wall.read(&places.home.join(&model.model));
    }
    for hook in &settings.hooks {
        if let HookAction::Component { path, .. } = &hook.action {
            wall.read(path);
        }
    }
}

/// The targets of links in the home, for example agents that a person keeps elsewhere. A directory is
/// searched at present; other links of the home are the operator's own too.
fn linked(directory: &Path, depth: usize, entries: &mut usize, wall: &mut Wall) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        *entries += 1;
        if *entries > MAX_ENTRIES {
            return;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => wall.read(&entry.path()),
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH && !is_kept(&entry.path()) => {
                linked(&entry.path(), depth + 1, entries, wall);
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// Folders in which belljar itself writes many files and no links.
fn is_kept(path: &Path) -> bool {
    ["cache", "libraries", "sessions"].iter().any(|name| path.ends_with(name))
}
