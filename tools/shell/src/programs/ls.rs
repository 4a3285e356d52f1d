//! `ls`.

use super::ls_line;
use super::options::{Options, unknown};
use super::paths::{absolute, reason};
use bashkit::{Builtin, BuiltinContext, ExecResult, FileSystem, Metadata, Result, async_trait};
use std::cmp::{Ordering, Reverse};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(super) struct Ls;

#[derive(Default)]
struct View {
    hidden: bool,
    dots: bool,
    long: bool,
    full_time: bool,
    human: bool,
    recursive: bool,
    itself: bool,
    reverse: bool,
    directories_first: bool,
    one_line: bool,
    mark: Mark,
    order: Order,
}

#[derive(Default, PartialEq, Eq, Clone, Copy)]
enum Mark {
    #[default]
    None,
    Directories,
    Kinds,
}

#[derive(Default, Clone, Copy)]
enum Order {
    #[default]
    Name,
    Time,
    Size,
    Ending,
    None,
}

struct Entry {
    name: String,
    path: PathBuf,
    found: Metadata,
}

impl View {
    fn read(given: Vec<(String, Option<String>)>) -> std::result::Result<View, String> {
        let mut view = View::default();
        for (option, value) in given {
            match (option.as_str(), value.as_deref()) {
                ("a" | "all", _) => (view.hidden, view.dots) = (true, true),
                ("A" | "almost-all", _) => view.hidden = true,
                ("l" | "n" | "o" | "g", _) => view.long = true,
                ("full-time", _) => (view.long, view.full_time) = (true, true),
                ("h" | "human-readable", _) => view.human = true,
                ("R" | "recursive", _) => view.recursive = true,
                ("d" | "directory", _) => view.itself = true,
                ("r" | "reverse", _) => view.reverse = true,
                ("t", _) | ("sort", Some("time")) => view.order = Order::Time,
                ("S", _) | ("sort", Some("size")) => view.order = Order::Size,
                ("X", _) | ("sort", Some("extension")) => view.order = Order::Ending,
                ("U", _) | ("sort", Some("none")) => view.order = Order::None,
                ("p", _) | ("indicator-style", Some("slash")) => view.mark = Mark::Directories,
                ("F" | "classify" | "file-type", _) => view.mark = Mark::Kinds,
                ("m", _) => view.one_line = true,
                ("group-directories-first", _) => view.directories_first = true,
                // No terminal: one name in a line, no colours, names as they are.
                ("1" | "C" | "x" | "w" | "color" | "N" | "literal" | "G" | "no-group" | "q", _) => {
                }
                (other, _) => return Err(unknown("ls", other)),
            }
        }
        Ok(view)
    }

    fn sort(&self, entries: &mut [Entry]) {
        match self.order {
            Order::Name => entries.sort_by(by_name),
            Order::Time => {
                entries.sort_by(|a, b| {
                    Reverse(a.found.modified).cmp(&Reverse(b.found.modified)).then(by_name(a, b))
                });
            }
            Order::Size => entries.sort_by(|a, b| {
                Reverse(a.found.size).cmp(&Reverse(b.found.size)).then(by_name(a, b))
            }),
            Order::Ending => entries.sort_by(|a, b| {
                let ending = |entry: &Entry| entry.path.extension().map(ToOwned::to_owned);
                ending(a).cmp(&ending(b)).then(by_name(a, b))
            }),
            Order::None => {}
        }
        if self.reverse {
            entries.reverse();
        }
        if self.directories_first {
            entries.sort_by_key(|entry| !entry.found.file_type.is_dir());
        }
    }

    fn shown(&self, entry: &Entry) -> String {
        let kind = entry.found.file_type;
        let mark = match self.mark {
            Mark::None => "",
            Mark::Directories | Mark::Kinds if kind.is_dir() => "/",
            Mark::Directories => "",
            Mark::Kinds if kind.is_symlink() => "@",
            Mark::Kinds if kind.is_fifo() => "|",
            Mark::Kinds if entry.found.mode & 0o111 != 0 => "*",
            Mark::Kinds => "",
        };
        format!("{}{mark}", entry.name)
    }
}

fn by_name(a: &Entry, b: &Entry) -> Ordering {
    a.name.cmp(&b.name)
}

#[async_trait]
impl Builtin for Ls {
    async fn execute(&self, context: BuiltinContext<'_>) -> Result<ExecResult> {
        let Options { given, mut operands } = Options::read(context.args, &["w", "sort"]);
        let view = match View::read(given) {
            Ok(view) => view,
            Err(text) => return Ok(ExecResult::err(text, 2)),
        };
        if operands.is_empty() {
            operands.push(".".to_owned());
        }
        let mut listing = Listing {
            fs: &*context.fs,
            view: &view,
            now: SystemTime::now(),
            stdout: String::new(),
            stderr: String::new(),
        };
        listing.operands(context.cwd, &operands).await;
        let Listing { stdout, stderr, .. } = listing;
        let code = if stderr.is_empty() { 0 } else { 2 };
        Ok(ExecResult { stdout: stdout.into(), ..ExecResult::err(stderr, code) })
    }
}

struct Listing<'a> {
    fs: &'a dyn FileSystem,
    view: &'a View,
    now: SystemTime,
    stdout: String,
    stderr: String,
}

impl Listing<'_> {
    async fn operands(&mut self, cwd: &Path, operands: &[String]) {
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        for name in operands {
            let path = absolute(cwd, name);
            // A link to a directory is listed as the directory, unless its own line is wanted.
            let own = self.view.long || self.view.itself || self.view.mark == Mark::Kinds;
            let link = self.fs.lstat(&path).await;
            let found = match (&link, own && !name.ends_with('/')) {
                (Ok(found), true) => Ok(found.clone()),
                _ => self.fs.stat(&path).await.or(link),
            };
            match found {
                Ok(found) => {
                    let is_directory = found.file_type.is_dir() && !self.view.itself;
                    let entry = Entry { name: name.clone(), path, found };
                    if is_directory { directories.push(entry) } else { files.push(entry) }
                }
                Err(error) => {
                    let text = format!("ls: cannot access '{name}': {}\n", reason(&error));
                    self.stderr.push_str(&text);
                }
            }
        }
        self.view.sort(&mut files);
        self.view.sort(&mut directories);
        let headed = operands.len() > 1 || self.view.recursive;
        self.entries(&files).await;
        let mut first = files.is_empty();
        directories.reverse();
        while let Some(entry) = directories.pop() {
            if !std::mem::take(&mut first) {
                self.stdout.push('\n');
            }
            if headed {
                self.stdout.push_str(&format!("{}:\n", entry.name));
            }
            let mut below = self.directory(&entry).await;
            below.reverse();
            directories.extend(below);
        }
    }

    /// Prints a directory; with `-R` gives the directories in it.
    async fn directory(&mut self, directory: &Entry) -> Vec<Entry> {
        let listed = match self.fs.read_dir(&directory.path).await {
            Ok(listed) => listed,
            Err(error) => {
                let text =
                    format!("ls: cannot open directory '{}': {}\n", directory.name, reason(&error));
                self.stderr.push_str(&text);
                return Vec::new();
            }
        };
        let visible =
            listed.into_iter().filter(|entry| self.view.hidden || !entry.name.starts_with('.'));
        let mut entries: Vec<Entry> = visible
            .map(|entry| Entry {
                path: directory.path.join(&entry.name),
                name: entry.name,
                found: entry.metadata,
            })
            .collect();
        if self.view.dots {
            for (name, path) in [(".", Some(&*directory.path)), ("..", directory.path.parent())] {
                let path = path.unwrap_or(&directory.path).to_owned();
                let found = self.fs.stat(&path).await.unwrap_or_else(|_| directory.found.clone());
                entries.push(Entry { name: name.to_owned(), path, found });
            }
        }
        self.view.sort(&mut entries);
        if self.view.long {
            let blocks: u64 = entries.iter().map(|entry| entry.found.size.div_ceil(4096) * 4).sum();
            self.stdout.push_str(&format!("total {blocks}\n"));
        }
        self.entries(&entries).await;
        if !self.view.recursive {
            return Vec::new();
        }
        let inner = |entry: &Entry| {
            entry.found.file_type.is_dir() && entry.name != "." && entry.name != ".."
        };
        let below = entries.into_iter().filter(inner);
        below
            .map(|entry| Entry { name: format!("{}/{}", directory.name, entry.name), ..entry })
            .collect()
    }

    async fn entries(&mut self, entries: &[Entry]) {
        if self.view.one_line && !entries.is_empty() {
            let names: Vec<_> = entries.iter().map(|entry| self.view.shown(entry)).collect();
            self.stdout.push_str(&format!("{}\n", names.join(", ")));
            return;
        }
        let size = |entry: &Entry| ls_line::size(entry.found.size, self.view.human);
        let width = entries.iter().map(|entry| size(entry).len()).max().unwrap_or(0);
        for entry in entries {
            let mut shown = self.view.shown(entry);
            if self.view.long {
                let full = self.view.full_time;
                let line = ls_line::line(&entry.found, &size(entry), width, self.now, full);
                shown = format!("{line} {shown}");
                if entry.found.file_type.is_symlink()
                    && let Ok(target) = self.fs.read_link(&entry.path).await
                {
                    shown = format!("{} -> {}", shown.trim_end_matches('@'), target.display());
                }
            }
            self.stdout.push_str(&shown);
            self.stdout.push('\n');
        }
    }
}
