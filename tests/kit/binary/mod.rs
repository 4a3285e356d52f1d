//! The world of tests that run the binary: a home, a workspace, and the binary in them. Its suites
//! take it in by its path, because only they know where the binary is.
#![allow(dead_code, reason = "no suite needs all of it")]

pub(crate) mod acp;
pub(crate) mod server;
#[cfg(target_os = "linux")]
pub(crate) mod terminal;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
#[cfg(unix)]
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A person's machine, as far as belljar sees it.
pub(crate) struct World {
    dir: TempDir,
    /// The home below the person's own, where nothing names another.
    home: &'static str,
    /// Every `belljar.toml` of a home says that agents write nothing without a grant.
    no_overlays: bool,
}

/// The end of each `belljar.toml` then.
pub(crate) const NO_OVERLAYS: &str = "\n[agents]\noverlay = 'never'\n";

/// Where the home is when nothing names another.
const DEFAULT_HOME: &str = ".belljar";

/// A command that has ended.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::named("belljar")
    }

    /// The same below a directory whose name begins so.
    pub(crate) fn named(name: &str) -> Self {
        let dir = tempfile::Builder::new().prefix(name).tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        fs::create_dir(dir.path().join("workspace")).unwrap();
        Self { dir, home: "home", no_overlays: false }
    }

    /// With agents that write nothing unless it is granted.
    pub(crate) fn without_overlays() -> Self {
        let world = Self { no_overlays: true, ..Self::new() };
        world.home_file("belljar.toml", "");
        world
    }

    /// With the home where it is when nothing is configured: `~/.belljar`.
    pub(crate) fn with_default_home() -> Self {
        Self { home: DEFAULT_HOME, ..Self::new() }
    }

    /// With the home in the workspace, under a name that is not protected.
    pub(crate) fn with_home_in_workspace() -> Self {
        Self { home: "workspace/own", ..Self::new() }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join(self.home)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// A file in the home.
    pub(crate) fn home_file(&self, path: &str, text: &str) -> PathBuf {
        let end = if self.no_overlays && path.ends_with("belljar.toml") { NO_OVERLAYS } else { "" };
        write(&self.home().join(path), format!("{text}{end}").as_bytes())
    }

    /// The path of something in the directory of a tenant's `home`, from the home on.
    pub(crate) fn tenant(&self, name: &str) -> String {
        format!("sessions/tenants/{}", self.tenant_id(name))
    }

    /// The workspace of a tenant's agents, from the home on.
    pub(crate) fn workspace_of(&self, name: &str) -> String {
        format!("sessions/workspaces/{}", self.tenant_id(name))
    }

    fn tenant_id(&self, name: &str) -> String {
        let listed = self.run(&["tenants", "list", "--json"]).exits(0).json();
        let own = listed.as_array().unwrap().iter().find(|tenant| tenant["name"] == name);
        own.unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// A file in the workspace.
    pub(crate) fn file(&self, path: &str, text: &str) -> PathBuf {
        write(&self.workspace().join(path), text.as_bytes())
    }

    /// A file with any bytes beside home and workspace.
    pub(crate) fn other(&self, path: &str, bytes: &[u8]) -> PathBuf {
        write(&self.dir.path().join(path), bytes)
    }

    /// The binary, in the workspace, without anything of this machine's own settings.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_belljar"));
        command
            .args(args)
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("BELLJAR_HOME", self.home())
            .env("BELLJAR_CACHE", cache())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.home == DEFAULT_HOME {
            command.env_remove("BELLJAR_HOME");
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        Done::of(self.command(args).output().unwrap())
    }

    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: &str) -> Done {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // A program that refuses its arguments ends without reading.
        match child.stdin.take().unwrap().write_all(stdin.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
        Done::of(child.wait_with_output().unwrap())
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// The files below the home, with their content, without sessions and runs.
    pub(crate) fn home_state(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        collect(&self.home(), &mut files);
        files.retain(|(path, _)| !path.starts_with(self.home().join("sessions")));
        files.sort();
        files
    }
}

impl Done {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Fails the test with all that was printed unless the code is this one.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "no `{text}` in stdout:\n{}", self.stdout);
        self
    }

    #[track_caller]
    pub(crate) fn complains(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no `{text}` in stderr:\n{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in stdout:\n{}", self.stdout))
    }
}

/// Waits for something that takes no minute.
#[cfg(unix)]
#[track_caller]
pub(crate) fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "{what}: it never is");
    }
}

/// The environment of a command that builds guests, and has a home of its own: the compiler, and
/// where the dependencies of all projects are compiled once.
pub(crate) fn toolchain() -> Vec<(String, PathBuf)> {
    let own = std::env::home_dir().unwrap_or_default();
    let of = |name: &str, below: &str| {
        let set = std::env::var_os(name).map(PathBuf::from);
        (name.to_owned(), set.unwrap_or_else(|| own.join(below)))
    };
    let mut given = vec![of("RUSTUP_HOME", ".rustup"), of("CARGO_HOME", ".cargo")];
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools");
    given.push(("CARGO_BUILD_BUILD_DIR".to_owned(), shared));
    if let Some(chosen) = std::env::var_os("RUSTUP_TOOLCHAIN") {
        given.push(("RUSTUP_TOOLCHAIN".to_owned(), chosen.into()));
    }
    given
}

/// One cache for all tests of a build, so that each component is compiled once.
pub(crate) fn cache() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("components");
    fs::create_dir_all(&path).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    path
}

fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    path.to_path_buf()
}

fn collect(from: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let bytes = fs::read(&path).unwrap();
            files.push((path, bytes));
        }
    }
}
