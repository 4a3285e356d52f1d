//! A page's commands, run one after the other in a home and a workspace of their own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::page::{Act, Command, Page, matches};

/// The port of the server as the pages write it. Each story has one of its own.
const PORT: &str = "7411";

/// How long a command in the background may take to print what the page shows.
const TIME_TO_START: Duration = Duration::from_secs(60);

/// How a command of a clone begins; it is the binary's own once it is built.
const FROM_SOURCE: &str = "cargo run -- ";

/// Programs that a machine may lack; their commands are left out there.
const MAY_BE_MISSING: &[&str] = &["curl"];

/// Where a page is told.
pub(super) struct Story {
    root: PathBuf,
    dir: TempDir,
    /// Where its commands are typed.
    folder: PathBuf,
    /// Whether guests can be built here.
    toolchain: bool,
    port: String,
    running: Vec<Child>,
    ran: usize,
}

impl Story {
    /// A fresh home, with the repository at `~/belljar`, as in a clone there.
    pub(super) fn new(root: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        std::os::unix::fs::symlink(root, dir.path().join("belljar")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (running, ran) = (Vec::new(), 0);
        let folder = dir.path().join("project");
        let (root, port) = (root.to_owned(), port.to_string());
        Self { root, dir, folder, toolchain: false, port, running, ran }
    }

    /// The same beside the page: in a copy of its project, where it is one.
    pub(super) fn beside(root: &Path, page: &Page) -> Self {
        let mut story = Self::new(root);
        if page.path.starts_with("guest-sdk/template/") {
            let (code, printed) = story.sh("belljar tools new word_count");
            assert_eq!(code, 0, "{printed}");
            story.folder.push("word_count");
        } else if page.builds {
            let copy = story.dir.path().join("guest-sdk");
            copy_sources(&root.join("guest-sdk"), &copy);
            let below = Path::new(&page.path).strip_prefix("guest-sdk").unwrap();
            story.folder = copy.join(below.parent().unwrap());
        }
        story
    }

    /// Where guests can be built: commands that build some are run too.
    #[allow(dead_code, reason = "of the suite that has a toolchain")]
    pub(super) fn with_toolchain(mut self) -> Self {
        self.toolchain = true;
        self
    }

    /// Does all that the page shows; returns what is wrong and how many commands were run.
    pub(super) fn tell(mut self, page: &Page) -> (Vec<String>, usize) {
        let mut problems = Vec::new();
        for (line, act) in &page.acts {
            let found = match act {
                Act::Run { commands, .. } if page.builds && !self.toolchain => {
                    commands.iter().flat_map(|it| self.parse(it)).collect()
                }
                act => self.act(act),
            };
            problems.extend(found.into_iter().map(|(at, what)| page.problem(at.max(*line), &what)));
        }
        (problems, self.ran)
    }

    fn act(&mut self, act: &Act) -> Vec<(usize, String)> {
        match act {
            Act::Run { commands, exits } => {
                let last = commands.len().saturating_sub(1);
                let codes = (0..).map(|index| if index == last { *exits } else { 0 });
                commands.iter().zip(codes).filter_map(|(it, code)| self.run(it, code)).collect()
            }
            Act::Background(command) => self.begin(command).into_iter().collect(),
            Act::Parse(commands) => commands.iter().flat_map(|it| self.parse(it)).collect(),
            Act::File { path, text, append } => self.file(path, text, *append),
            Act::Files(name) => {
                let folder = self.root.join("tests/e2e/guide/files").join(name);
                self.lay(&folder, Path::new("~"));
                Vec::new()
            }
            Act::Settings(text) => {
                let alone = Self::new(&self.root);
                alone.write("~/.belljar/belljar.toml", text, false);
                alone.settings()
            }
        }
    }

    fn run(&mut self, command: &Command, exits: i32) -> Option<(usize, String)> {
        let program = command.text.split(' ').next().unwrap_or_default();
        if MAY_BE_MISSING.contains(&program) && self.sh(&format!("command -v {program}")).0 != 0 {
            return None;
        }
        self.ran += 1;
        let (code, printed) = self.sh(&command.text);
        let wrong = if code != exits {
            format!("exited with {code}, not {exits}")
        } else if !command.printed.is_empty() && !matches(&command.printed, &printed) {
            "printed something else".to_owned()
        } else {
            return None;
        };
        Some((command.line, format!("$ {}\n{wrong}:\n{printed}", command.text)))
    }

    /// Starts a command and waits until it has printed what the page shows.
    fn begin(&mut self, command: &Command) -> Option<(usize, String)> {
        self.ran += 1;
        let mut child = self.process(&format!("exec {}", command.text)).spawn().unwrap();
        let lines = lines_of(&mut child);
        self.running.push(child);
        let (until, mut printed) = (Instant::now() + TIME_TO_START, String::new());
        while !matches(&command.printed, &printed) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = lines.recv_timeout(left) else {
                let what = format!("$ {}\ndid not print this:\n{printed}", command.text);
                return Some((command.line, what));
            };
            printed = format!("{printed}{}\n", self.shown(&line));
        }
        None
    }

    /// Each `belljar` of a command line, with `--help` at its end: what comes before has to parse.
    fn parse(&mut self, command: &Command) -> Vec<(usize, String)> {
        let line = command.text.split(" #").next().unwrap_or_default();
        let parts = line.split(['|', ';', '<', '>']).flat_map(|part| part.split("&&"));
        let ours = |part: &str| part.starts_with("belljar") || part.starts_with(FROM_SOURCE);
        let mut found = Vec::new();
        for part in parts.map(|part| part.trim().trim_end_matches(" -")).filter(|part| ours(part)) {
            let (code, printed) = self.sh(&format!("{part} --help"));
            if code != 0 {
                found.push((command.line, format!("`{part}` does not parse:\n{printed}")));
            }
        }
        found
    }

    fn file(&self, path: &str, text: &str, append: bool) -> Vec<(usize, String)> {
        self.write(path, text, append);
        if path.ends_with("belljar.toml") { self.settings() } else { Vec::new() }
    }

    /// Puts the files of a folder where they belong.
    fn lay(&self, folder: &Path, to: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let (from, to) = {
                let entry = entry.unwrap();
                (entry.path(), to.join(entry.file_name()))
            };
            if from.is_dir() {
                self.lay(&from, &to);
                continue;
            }
            let (path, append) = match to.to_str().unwrap().strip_suffix(".append") {
                Some(path) => (path.to_owned(), true),
                None => (to.display().to_string(), false),
            };
            self.write(&path, &fs::read_to_string(&from).unwrap(), append);
        }
    }

    fn write(&self, path: &str, text: &str, append: bool) {
        let path = match path.strip_prefix("~/") {
            Some(path) => self.dir.path().join(path),
            None => self.folder.join(path),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let before =
            if append { fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        fs::write(path, format!("{before}{}", text.replace(PORT, &self.port))).unwrap();
    }

    /// The binary's complaints about the settings.
    fn settings(&self) -> Vec<(usize, String)> {
        match self.sh("belljar agents list") {
            (0, printed) if !printed.lines().any(is_about_settings) => Vec::new(),
            (_, printed) => vec![(0, format!("the settings are not valid:\n{printed}"))],
        }
    }

    /// The exit code of a command, and what it printed to both streams, as pages write it.
    fn sh(&self, command: &str) -> (i32, String) {
        let output = self.process(&format!("{{ {command}\n}} 2>&1")).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        (output.status.code().unwrap_or(-1), self.shown(&printed))
    }

    fn shown(&self, printed: &str) -> String {
        let home = self.dir.path().display().to_string();
        printed.replace(&home, "~").replace(&self.port, PORT)
    }

    fn process(&self, command: &str) -> Process {
        let binary = Path::new(env!("CARGO_BIN_EXE_belljar")).parent().unwrap();
        let system = std::env::var("PATH").unwrap_or_default();
        let command = command.replace(PORT, &self.port).replace(FROM_SOURCE, "belljar ");
        let mut process = Process::new("sh");
        process
            .args(["-c", &command])
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", format!("{}:{system}", binary.display()))
            .env("HOME", self.dir.path())
            .env("BELLJAR_CACHE", crate::kit::cache())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.toolchain {
            process.envs(crate::kit::toolchain());
        }
        process
    }
}

/// Copies a folder without what was built in it.
fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if !path.is_dir() {
            fs::copy(&path, &to).unwrap();
        } else if entry.file_name() != "target" {
            copy_sources(&path, &to);
        }
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        for child in &mut self.running {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn is_about_settings(line: &str) -> bool {
    line.contains("warning") && line.contains("belljar.toml")
}

/// The lines of both streams as they come, until both end.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let (send, lines) = channel();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let streams: [Box<dyn std::io::Read + Send>; 2] = [Box::new(stdout), Box::new(stderr)];
    for stream in streams {
        let send = send.clone();
        std::thread::spawn(move || {
            // Read to its end also when nobody listens any more: a full pipe would stop it.
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                drop(send.send(line));
            }
        });
    }
    lines
}
