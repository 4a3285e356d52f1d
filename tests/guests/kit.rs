//! A tool's author: a home, a workspace with a project in it, and the binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The author of a tool `word_count`.
pub(crate) struct Author {
    home: TempDir,
    folder: TempDir,
}

/// What a command did.
pub(crate) struct Done {
    code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Author {
    /// With a new project, and a file of three words.
    pub(crate) fn new() -> Self {
        let author =
            Self { home: tempfile::tempdir().unwrap(), folder: tempfile::tempdir().unwrap() };
        author.run(&["tools", "new", "word_count"]).succeeds();
        std::fs::write(author.folder.path().join("three.txt"), "one two three\n").unwrap();
        author
    }

    /// Writes the tool's source.
    pub(crate) fn source(&self, text: &str) {
        std::fs::write(self.project("src/lib.rs"), text).unwrap();
    }

    /// Writes its manifest.
    pub(crate) fn manifest(&self, text: &str) {
        std::fs::write(self.project("tool.toml"), text).unwrap();
    }

    /// The operator's settings.
    pub(crate) fn config(&self) -> String {
        std::fs::read_to_string(self.home.path().join("belljar.toml")).unwrap_or_default()
    }

    /// The installed component and its manifest.
    pub(crate) fn installed(&self) -> (Vec<u8>, Vec<u8>) {
        let dir = self.home.path().join("tools/word_count");
        let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
        (read("tool.wasm"), read("tool.toml"))
    }

    /// A tenant's settings, and the component and the manifest that it has of the tool.
    pub(crate) fn state_of(&self, tenant: &str) -> (String, Vec<u8>, Vec<u8>) {
        let listed = self.run(&["tenants", "list", "--json"]).succeeds().out;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let own = listed.as_array().unwrap().iter().find(|one| one["name"] == tenant).unwrap();
        let tenants = self.home.path().join("sessions/tenants");
        let home = tenants.join(own["id"].as_str().unwrap()).join("home");
        let read = |name: &str| std::fs::read(home.join(name)).unwrap_or_default();
        let config = String::from_utf8(read("belljar.toml")).unwrap();
        (config, read("tools/word_count/tool.wasm"), read("tools/word_count/tool.toml"))
    }

    /// Whether the store, which holds the audit log, has this word in it.
    pub(crate) fn is_stored(&self, word: &str) -> bool {
        let files = std::fs::read_dir(self.home.path().join("sessions/store")).unwrap();
        let holds = |bytes: Vec<u8>| bytes.windows(word.len()).any(|it| it == word.as_bytes());
        files.map(|file| file.unwrap().path()).any(|path| holds(std::fs::read(path).unwrap()))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        let mut command = command(self.home.path(), self.folder.path(), arguments);
        // What a tool does is looked at here, not how small it is.
        for (key, value) in [("OPT_LEVEL", "0"), ("LTO", "off"), ("CODEGEN_UNITS", "16")] {
            command.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
        }
        done(command)
    }

    fn project(&self, path: &str) -> PathBuf {
        self.folder.path().join("word_count").join(path)
    }
}

/// What a command is given that builds guests, and has a home of its own: the compiler, and where
/// the dependencies of all projects are compiled once.
pub(crate) fn toolchain() -> Vec<(String, PathBuf)> {
    let own = std::env::home_dir().unwrap_or_default();
    let of = |name: &str, below: &str| {
        let set = std::env::var_os(name).map(PathBuf::from);
        (name.to_owned(), set.unwrap_or_else(|| own.join(below)))
    };
    let mut given = vec![of("RUSTUP_HOME", ".rustup"), of("CARGO_HOME", ".cargo")];
    given.push(("CARGO_BUILD_BUILD_DIR".to_owned(), build_directory()));
    if let Some(chosen) = std::env::var_os("RUSTUP_TOOLCHAIN") {
        given.push(("RUSTUP_TOOLCHAIN".to_owned(), chosen.into()));
    }
    given
}

/// One cache of components for all tests.
pub(crate) fn cache() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest-components");
    std::fs::create_dir_all(&path).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
    path
}

fn build_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools")
}

/// Runs the binary in a folder.
pub(crate) fn belljar(home: &Path, folder: &Path, arguments: &[&str]) -> Done {
    done(command(home, folder, arguments))
}

fn command(home: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_belljar"));
    command
        .args(arguments)
        .env("BELLJAR_HOME", home)
        // Dependencies of all projects are compiled once.
        .env("CARGO_BUILD_BUILD_DIR", build_directory())
        .stdin(std::process::Stdio::null())
        .current_dir(folder);
    command
}

fn done(mut command: Command) -> Done {
    let output = command.output().unwrap();
    Done {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Done {
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        self.fails(0)
    }

    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        assert!(self.out.contains(text), "no `{text}` in\n{}", self.out);
    }

    #[track_caller]
    pub(crate) fn complains(&self, text: &str) {
        assert!(self.err.contains(text), "no `{text}` in\n{}", self.err);
    }
}
