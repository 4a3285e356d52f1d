//! MCP servers that are commands: one that is honest, then the same script as it should not be.

mod hostile;
mod started;

use std::fs;
use std::path::{Path, PathBuf};

use crate::kit::{Done, World};
use crate::mcp::client::{Client, Revision};

/// The script of the server.
const SCRIPT: &str = include_str!("server.py");

/// A world whose server is a script, with its tools accepted and granted.
struct Stage {
    world: World,
    python: PathBuf,
}

impl Stage {
    fn new() -> Self {
        Self::with("")
    }

    /// With more lines for the server.
    fn with(more: &str) -> Self {
        let stage = Self::unseen(more, "");
        stage.accept();
        stage
    }

    /// Nothing of the server is accepted yet. `sections` stand behind it in `belljar.toml`.
    fn unseen(more: &str, sections: &str) -> Self {
        let world = World::new();
        world.file("note.txt", "the tide turns at six\n");
        world.other("read/server.py", SCRIPT.as_bytes());
        world.other("read/mode", b"honest");
        world.other("write/seen", b"");
        world.other(".ssh/id_ed25519", b"key-canary-of-a-person");
        let stage = Self { world, python: python() };
        let section = stage.section("peer", more);
        stage.world.home_file(
            "belljar.toml",
            &format!(
                "[grants.mcp]\ntools = ['file_read', 'mcp__peer__echo', 'mcp__peer__other']\n\n\
                 {section}{sections}"
            ),
        );
        stage
    }

    fn section(&self, name: &str, more: &str) -> String {
        let [script, read, write] = ["read/server.py", "read", "write"].map(|path| self.path(path));
        let python = self.python.to_str().unwrap();
        format!(
            "[mcp.{name}]\ncommand = '{python}'\nargs = ['{script}', '{read}', '{write}']\n\
             directories = {{ '{read}' = 'read', '{write}' = 'read-write' }}\n{more}"
        )
    }

    /// A path beside home and workspace.
    fn path(&self, path: &str) -> String {
        let home = self.world.home();
        home.parent().unwrap().join(path).to_str().unwrap().to_owned()
    }

    /// Its doings with calls from now on.
    fn mode(&self, mode: &str) {
        fs::write(self.path("read/mode"), mode).unwrap();
    }

    /// The lines that it has noted.
    fn seen(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("write/seen")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The processes that it was, the first one first.
    fn processes(&self) -> Vec<u32> {
        let seen = self.seen();
        let numbers = seen.iter().filter_map(|line| line.strip_prefix("started ")?.parse().ok());
        numbers.collect()
    }

    fn review(&self) -> Done {
        self.world.run(&["mcp", "review", "peer"])
    }

    /// Accepts what it offers, as it was shown. Nothing of it is left.
    fn accept(&self) {
        let digest = accepting(&self.review().exits(4));
        self.world.run(&["mcp", "review", "peer", "--accept", &digest]).exits(0).says("accepted");
        fs::write(self.path("write/seen"), "").unwrap();
    }

    fn client(&self) -> Client {
        Client::start(&self.world, &[], Revision::Older)
    }
}

/// The digest that a review asks to be repeated.
fn accepting(done: &Done) -> String {
    done.stderr.split("--accept ").nth(1).unwrap().get(..64).unwrap().to_owned()
}

/// Whether a process is there.
fn lives(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// The interpreter, below the directories of the system's own programs.
fn python() -> PathBuf {
    let found = ["/usr/bin/python3", "/usr/local/bin/python3", "/bin/python3"];
    let found = found.iter().map(PathBuf::from).find(|path| path.is_file());
    found.expect("these tests want a python3 of the system")
}
