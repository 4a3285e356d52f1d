//! A tool's author: a world with a project in its workspace.

use crate::kit::{Done, World, toolchain};

/// The author of a tool `word_count`.
pub(crate) struct Author(World);

impl Author {
    /// With a new project, and a file of three words.
    pub(crate) fn new() -> Self {
        let author = Self(World::new());
        author.run(&["tools", "new", "word_count"]).exits(0);
        author.file("three.txt", "one two three\n");
        author
    }

    /// Writes a file into the workspace.
    pub(crate) fn file(&self, path: &str, text: &str) {
        self.0.file(path, text);
    }

    /// Writes the tool's source.
    pub(crate) fn source(&self, text: &str) {
        self.file("word_count/src/lib.rs", text);
    }

    /// Writes its manifest.
    pub(crate) fn manifest(&self, text: &str) {
        self.file("word_count/tool.toml", text);
    }

    /// The operator's settings.
    pub(crate) fn config(&self) -> String {
        std::fs::read_to_string(self.0.home().join("belljar.toml")).unwrap_or_default()
    }

    /// The installed component and its manifest.
    pub(crate) fn installed(&self) -> (Vec<u8>, Vec<u8>) {
        let dir = self.0.home().join("tools/word_count");
        let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
        (read("tool.wasm"), read("tool.toml"))
    }

    /// A tenant's settings, and the component and the manifest that it has of the tool.
    pub(crate) fn state_of(&self, tenant: &str) -> (String, Vec<u8>, Vec<u8>) {
        let listed = self.run(&["tenants", "list", "--json"]).exits(0).json();
        let own = listed.as_array().unwrap().iter().find(|one| one["name"] == tenant).unwrap();
        let tenants = self.0.home().join("sessions/tenants");
        let home = tenants.join(own["id"].as_str().unwrap()).join("home");
        let read = |name: &str| std::fs::read(home.join(name)).unwrap_or_default();
        let config = String::from_utf8(read("belljar.toml")).unwrap();
        (config, read("tools/word_count/tool.wasm"), read("tools/word_count/tool.toml"))
    }

    /// Whether the store, which holds the audit log, has this word in it.
    pub(crate) fn is_stored(&self, word: &str) -> bool {
        let files = std::fs::read_dir(self.0.home().join("sessions/store")).unwrap();
        let holds = |bytes: Vec<u8>| bytes.windows(word.len()).any(|it| it == word.as_bytes());
        files.filter_map(|file| std::fs::read(file.unwrap().path()).ok()).any(holds)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        let mut command = self.0.command(arguments);
        command.envs(toolchain());
        // The tests are about what a tool does, not about how small it is.
        for (key, value) in [("OPT_LEVEL", "0"), ("LTO", "off"), ("CODEGEN_UNITS", "16")] {
            command.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
        }
        Done::of(command.output().unwrap())
    }
}
