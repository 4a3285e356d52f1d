//! The paths of the operator's home and of the workspace, and bounded reads of files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use belljar_mcp::ServerTokens;
use belljar_policy::ShownPath as _;
use rustix::fs::{Mode, OFlags};

use crate::setup::below::{self, DirectoryHandle, FileAudience};
use crate::setup::exit::Failure;
use crate::setup::ours;

/// Most bytes of a `belljar.toml`. Handwritten files have a few kilobytes, and hundreds of grants still fit.
pub(crate) const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Most bytes of a tool component. The largest useful ones, for example a Python runtime, have about 20 MB.
pub(crate) const MAX_COMPONENT_BYTES: u64 = 128 << 20;

/// Most bytes of a `tool.toml`.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 64 << 10;

/// The environment variable with the home's path.
const HOME: &str = "BELLJAR_HOME";

/// The environment variable with the cache's path.
const CACHE: &str = "BELLJAR_CACHE";

/// The name of the home, below the person's own home directory.
const DIRECTORY: &str = ".belljar";

/// The paths at which this process reads and writes its files.
#[derive(Debug, Clone)]
pub(crate) struct HomePaths {
    /// The operator's home: `~/.belljar`, or the value of `BELLJAR_HOME`.
    pub(crate) home: PathBuf,
    /// The directory of compiled components: `cache` in the home, or the value of `BELLJAR_CACHE`.
    pub(crate) cache: PathBuf,
    /// The workspace with links resolved: `--workspace`, or the current directory.
    pub(crate) workspace: PathBuf,
    /// The person's own home directory, for `~` in paths. Found at the start, because the list of users is
    /// unreadable behind the OS sandbox.
    pub(crate) user_home: Option<PathBuf>,
}

impl HomePaths {
    /// Finds the paths. Creates nothing. `workspace` = the option of the command line.
    pub(crate) fn find_paths(workspace: Option<&Path>) -> Result<Self, Failure> {
        let user_home = std::env::home_dir();
        let home = match path_variable(HOME) {
            Some(home) => to_absolute(home)?,
            None => user_home
                .as_ref()
                .filter(|home| home.is_absolute())
                .map(|home| home.join(DIRECTORY))
                .ok_or_else(|| {
                    Failure::usage("there is no home directory")
                        .with_hint("set `HOME` or `BELLJAR_HOME`")
                })?,
        };
        let cache = match path_variable(CACHE) {
            Some(cache) => to_absolute(cache)?,
            None => home.join("cache"),
        };
        let workspace = find_workspace(workspace)?;
        Ok(Self { home, cache, workspace, user_home })
    }

    /// The environment variables that give a child process the same paths.
    pub(crate) fn path_variables(&self) -> Vec<(&'static str, &Path)> {
        let usual = self.user_home.as_ref().map(|home| home.join(DIRECTORY));
        let mut variables = Vec::new();
        if usual.as_ref() != Some(&self.home) {
            variables.push((HOME, self.home.as_path()));
        }
        if self.cache != self.home.join("cache") {
            variables.push((CACHE, self.cache.as_path()));
        }
        variables
    }

    /// The operator's `belljar.toml`.
    pub(crate) fn config_path(&self) -> PathBuf {
        self.home.join("belljar.toml")
    }

    /// The workspace's `belljar.toml`, which can restrict rights and never add any.
    pub(crate) fn workspace_config(&self) -> PathBuf {
        self.workspace.join(".belljar").join("belljar.toml")
    }

    /// Returns whether the workspace's own `.belljar` is the home, as for a person who works in their home
    /// directory. Such files are the operator's and not a workspace's.
    pub(crate) fn is_around_home(&self) -> bool {
        let at = self.workspace.join(DIRECTORY);
        if at == self.home {
            return true;
        }
        // A home that is a link to other settings counts at the link's path.
        let called = self.home.parent().zip(self.home.file_name());
        let called = called.and_then(|(parent, name)| Some(parent.canonicalize().ok()?.join(name)));
        called.as_ref() == Some(&at) || self.home.canonicalize().is_ok_and(|home| home == at)
    }

    /// The directory of the operator's agents.
    pub(crate) fn agents_directory(&self) -> PathBuf {
        self.home.join("agents")
    }

    /// The directory of installed libraries of agents, with their lock file.
    pub(crate) fn libraries_directory(&self) -> PathBuf {
        self.home.join("libraries")
    }

    /// The directory of agents, teams and skills that wait for the operator to activate them.
    pub(crate) fn drafts_directory(&self) -> PathBuf {
        self.home.join("drafts")
    }

    /// The directory of tools that the operator added: `NAME/tool.wasm` with `NAME/tool.toml`.
    pub(crate) fn tools_directory(&self) -> PathBuf {
        self.home.join("tools")
    }

    /// The directory of the accepted tools of MCP servers, a file for each server, for example `work.json`.
    pub(crate) fn mcp_directory(&self) -> PathBuf {
        self.home.join("mcp")
    }

    /// The directory of the tokens for MCP servers: `NAME.json`, renewed by processes that run agents.
    pub(crate) fn tokens_directory(&self) -> PathBuf {
        self.mcp_directory().join(ServerTokens::DIRECTORY)
    }

    /// The directory of sessions and runs, and by default of the server's tenants.
    pub(crate) fn sessions_directory(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// The directory of the store. Separate, because the OS sandbox cannot let a process write only some
    /// files of a directory.
    pub(crate) fn store_directory(&self) -> PathBuf {
        self.sessions_directory().join(STORE)
    }

    /// The store's file, with all sessions and runs.
    pub(crate) fn store_path(&self) -> PathBuf {
        self.store_directory().join(STORE_FILE)
    }

    /// The file of lines typed in `chat`.
    pub(crate) fn chat_history(&self) -> PathBuf {
        self.store_directory().join("chat_history")
    }

    /// Makes the directories of sessions and runs, and moves files there from where older versions of belljar
    /// had them.
    pub(crate) fn gather_sessions(&self) -> io::Result<()> {
        below::in_home(&self.sessions_directory(), &self.files_directory())?;
        gather_store(&[&self.sessions_directory(), &self.home], &self.store_directory())
    }

    /// The directory of files that agents handed over, with a directory for each run.
    pub(crate) fn files_directory(&self) -> PathBuf {
        self.sessions_directory().join("files")
    }

    /// The directory of files that the agents of one run handed over.
    pub(crate) fn files_of(&self, run: &str) -> PathBuf {
        self.files_directory().join(run)
    }
}

/// The name of the store's directory.
pub(crate) const STORE: &str = "store";

/// The name of the store's file, in its directory.
pub(crate) const STORE_FILE: &str = "belljar.db";

/// Makes the directory of a store, and moves a store there from the first of `places` that has one. The
/// store's file is moved last, so that an interrupted move is repeated. Files that others can read are made
/// private now, because no mode can be changed behind the OS sandbox.
pub(crate) fn gather_store(places: &[&Path], directory: &Path) -> io::Result<()> {
    const OTHERS: [&str; 4] = ["chat_history", "belljar.locks", "belljar.db-shm", "belljar.db-wal"];
    // INV-487: the root may be a link of the person's; nothing below it may be a link.
    let open = below::in_home(directory.parent().unwrap_or(directory), directory)?;
    for file in [STORE_FILE, "belljar.db-shm", "belljar.db-wal"] {
        open.is_free(Path::new(file))?;
    }
    for made in ["belljar.locks", "belljar.overlays"] {
        open.check_reachable(Path::new(made))?;
    }
    let store = directory.join(STORE_FILE);
    let old = places.iter().find(|place| place.join(STORE_FILE).is_file());
    if let Some(old) = old.filter(|_| !store.exists()) {
        for name in OTHERS.iter().chain([&STORE_FILE]) {
            match fs::rename(old.join(name), directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::symlink_metadata(&store).map(|found| (found.is_file(), found.permissions()));
        if let Ok((true, mode)) = mode
            && mode.mode() & 0o077 != 0
        {
            // If this fails, opening the store reports the fault.
            let _ = fs::set_permissions(&store, fs::Permissions::from_mode(0o600));
        }
    }
    Ok(())
}

/// The failure of writing a file or directory of belljar's, with advice.
pub(crate) fn not_written(what: &str, path: &Path, error: &io::Error) -> Failure {
    let why = error.to_string();
    // Some errors begin with the path already, so it is not repeated.
    let why = why.strip_prefix(&format!("`{}`: ", path.to_shown())).unwrap_or(&why);
    let failure = Failure::new(format!("failed to {what} `{}`: {why}", path.to_shown()));
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => failure.with_hint(FULL),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => failure.with_hint(
            "it has to be a place that you may write to: `BELLJAR_HOME=DIR` names another home",
        ),
        _ => failure,
    }
}

/// The advice for a full disk.
pub(crate) const FULL: &str = "make room there, or name another home with `BELLJAR_HOME=DIR`";

/// Makes a directory and its missing parents, which only their owner may enter.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Reads a whole regular file; an error if it has more than `limit` bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_open(open_file(path)?, limit)
}

/// Opens a regular file for reading. Any other file type is an error.
fn open_file(path: &Path) -> io::Result<File> {
    // `NONBLOCK`, so that opening a FIFO does not wait for its writer. The type is checked on the open file,
    // which cannot be replaced.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// Reads an open file to its end; an error if it has more than `limit` bytes.
fn read_open(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!("larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a workspace's configuration, through no link (INV-433); `None` = missing.
pub(crate) fn read_workspace_config(places: &HomePaths) -> Result<Option<String>, Failure> {
    if places.is_around_home() {
        return Ok(None);
    }
    let path = places.workspace_config();
    let below = path.strip_prefix(&places.workspace).unwrap_or(&path);
    let bytes = DirectoryHandle::open(&places.workspace)
        .and_then(|it| it.read_file(below, MAX_CONFIG_BYTES));
    match bytes.transpose() {
        Some(bytes) => text_of(&path, bytes),
        None => Ok(None),
    }
}

/// Reads the operator's configuration; an error if other users could have written it; `None` = missing.
pub(crate) fn read_own_config(path: &Path) -> Result<Option<String>, Failure> {
    let opened = open_file(path);
    if let Ok(file) = &opened {
        // The owner and mode are checked on the open file, so the parsed text is the checked one.
        ours::check_ownership(file, path)?;
    }
    text_of(path, opened.and_then(|file| read_open(file, MAX_CONFIG_BYTES)))
}

/// The text of a configuration file that was read; `None` = the file is missing.
fn text_of(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<Option<String>, Failure> {
    let failure =
        |why: String| Failure::usage(format!("failed to read `{}`: {why}", path.to_shown()));
    match bytes {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                Err(failure(format!("not valid UTF-8 from byte {at} on")))
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(failure(error.to_string())
                .with_hint("whoever runs belljar has to be able to read it"))
        }
        Err(error) => Err(failure(error.to_string())),
    }
}

/// Replaces a `belljar.toml` in one step: a reader gets the old text or the new one.
pub(crate) fn replace_config(path: &Path, text: &str) -> Result<(), Failure> {
    if text.len() as u64 > MAX_CONFIG_BYTES {
        return Err(Failure::new(format!(
            "`{}` would have more than {MAX_CONFIG_BYTES} bytes, and would not be read",
            path.to_shown()
        ))
        .with_hint("nothing is written; take grants out that no agent needs"));
    }
    // If the file is a link, its target is replaced. A link to a missing file is refused.
    let put = DirectoryHandle::parent_in_home(path).and_then(|(directory, name)| {
        directory.replace_file(&name, text.as_bytes(), FileAudience::Owner)
    });
    put.map_err(|error| not_written("write", path, &error))
}

/// The workspace with links resolved: the given directory, or the current one.
fn find_workspace(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = given.unwrap_or(Path::new("."));
    let failure = |why: String| {
        Failure::usage(format!("the workspace `{}` cannot be used: {why}", path.to_shown()))
    };
    let path = path.canonicalize().map_err(|error| failure(error.to_string()))?;
    if path.is_dir() { Ok(path) } else { Err(failure("not a directory".to_owned())) }
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn to_absolute(path: PathBuf) -> Result<PathBuf, Failure> {
    std::path::absolute(&path).map_err(|error| {
        Failure::usage(format!("`{}` is not a usable path: {error}", path.to_shown()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_past_the_bound_is_refused_and_one_at_the_bound_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
        assert_eq!(read_bounded(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(read_bounded(dir.path(), 5).is_err());
    }

    #[test]
    fn sessions_of_before_are_moved_once_and_never_over_others() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_path_buf();
        let (cache, workspace) = (home.join("cache"), home.clone());
        let places = HomePaths { home, cache, workspace, user_home: None };
        for name in ["belljar.db", "belljar.db-wal"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        places.gather_sessions().unwrap();
        assert_eq!(fs::read_to_string(places.store_path()).unwrap(), "belljar.db");
        assert!(places.store_directory().join("belljar.db-wal").exists());
        fs::write(dir.path().join("belljar.db"), "another").unwrap();
        places.gather_sessions().unwrap();
        assert_eq!(fs::read_to_string(places.store_path()).unwrap(), "belljar.db");
        assert!(dir.path().join("belljar.db").exists(), "left where it was");
        fs::remove_file(places.store_path()).unwrap();
        fs::write(places.sessions_directory().join("belljar.db"), "a later one").unwrap();
        places.gather_sessions().unwrap();
        assert_eq!(fs::read_to_string(places.store_path()).unwrap(), "a later one");
    }

    #[cfg(unix)]
    #[test]
    fn a_private_directory_is_closed_to_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        create_private(&path).unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
