//! `diff`.

use super::diff_text::{Comparison, Ignore};
use super::options::{Options, unknown};
use super::paths::{absolute, name, reason};
use super::time;
use bashkit::{Builtin, BuiltinContext, Error, ExecResult, Metadata, Result, async_trait};
use std::collections::BTreeSet;
use std::time::SystemTime;

pub(super) struct Diff;

/// Lines around a difference where the options name no number.
const CONTEXT: usize = 3;

/// The exit code for trouble, as opposed to 1 for differences.
const TROUBLE: i32 = 2;

#[derive(Default)]
struct Mode {
    unified: Option<usize>,
    brief: bool,
    say_same: bool,
    recursive: bool,
    absent_is_empty: bool,
    ignore: Ignore,
    labels: Vec<String>,
    excluded: Vec<String>,
    /// The options as they were written, for the line above each pair of files.
    written: String,
}

impl Mode {
    fn read(given: Vec<(String, Option<String>)>) -> std::result::Result<Mode, String> {
        let mut mode = Mode::default();
        for (option, value) in given {
            match (option.as_str(), value) {
                ("u", _) => mode.unified = Some(mode.unified.unwrap_or(CONTEXT)),
                ("U" | "unified", value) => {
                    mode.unified = Some(value.and_then(|n| n.parse().ok()).unwrap_or(CONTEXT));
                }
                ("q" | "brief", _) => mode.brief = true,
                ("s" | "report-identical-files", _) => mode.say_same = true,
                ("r" | "recursive", _) => mode.recursive = true,
                ("N" | "new-file", _) => mode.absent_is_empty = true,
                ("i" | "ignore-case", _) => mode.ignore.case = true,
                ("b" | "ignore-space-change" | "Z" | "ignore-trailing-space", _) => {
                    mode.ignore.space_amount = true;
                }
                ("w" | "ignore-all-space", _) => mode.ignore.space = true,
                ("B" | "ignore-blank-lines", _) => mode.ignore.blank_lines = true,
                ("strip-trailing-cr", _) => mode.ignore.trailing_cr = true,
                ("L" | "label", Some(label)) => mode.labels.push(label),
                ("x" | "exclude", Some(pattern)) => mode.excluded.push(pattern),
                ("a" | "text" | "d" | "minimal" | "color" | "normal" | "p", _) => {}
                (other, _) => return Err(unknown("diff", other)),
            }
        }
        Ok(mode)
    }
}

#[async_trait]
impl Builtin for Diff {
    async fn execute(&self, context: BuiltinContext<'_>) -> Result<ExecResult> {
        let with_value = ["U", "L", "label", "x", "exclude"];
        let Options { given, operands } = Options::read(context.args, &with_value);
        let mut mode = match Mode::read(given) {
            Ok(mode) => mode,
            Err(text) => return Ok(ExecResult::err(text, TROUBLE)),
        };
        let written = context.args.iter().filter(|arg| arg.len() > 1 && arg.starts_with('-'));
        mode.written = written.fold(String::new(), |text, arg| format!("{text} {arg}"));
        let [old, new] = operands.as_slice() else {
            return Ok(ExecResult::err("diff: needs two files\n", TROUBLE));
        };
        let mut run = Run::start(&context, &mode);
        run.pair(old, new).await;
        let Run { stdout, stderr, code, .. } = run;
        Ok(ExecResult { stdout: stdout.into(), ..ExecResult::err(stderr, code) })
    }
}

struct Run<'a> {
    context: &'a BuiltinContext<'a>,
    mode: &'a Mode,
    stdout: String,
    stderr: String,
    code: i32,
}

/// One side of a pair.
enum Side {
    Directory,
    File(Vec<u8>, SystemTime),
}

impl<'a> Run<'a> {
    fn start(context: &'a BuiltinContext<'a>, mode: &'a Mode) -> Run<'a> {
        Run { context, mode, stdout: String::new(), stderr: String::new(), code: 0 }
    }

    fn differ(&mut self) {
        self.code = self.code.max(1);
    }

    async fn pair(&mut self, old: &str, new: &str) {
        let (left, right) = (self.stat(old).await, self.stat(new).await);
        let is_directory =
            |side: &Option<Metadata>| side.as_ref().is_some_and(|m| m.file_type.is_dir());
        match (is_directory(&left), is_directory(&right)) {
            (true, true) => self.directories(old, new).await,
            (true, false) => self.files(&format!("{old}/{}", name(new)), new, false).await,
            (false, true) => self.files(old, &format!("{new}/{}", name(old)), false).await,
            (false, false) => self.files(old, new, false).await,
        }
    }

    async fn stat(&self, given: &str) -> Option<Metadata> {
        if given == "-" {
            return None;
        }
        self.context.fs.stat(&absolute(self.context.cwd, given)).await.ok()
    }

    /// Walks both trees; only `-r` goes below the first level.
    async fn directories(&mut self, old: &str, new: &str) {
        let mut pending = vec![(old.to_owned(), new.to_owned())];
        while let Some((old, new)) = pending.pop() {
            let (left, right) = (self.names(&old).await, self.names(&new).await);
            let mut below = Vec::new();
            for entry in left.union(&right) {
                let (a, b) = (format!("{old}/{entry}"), format!("{new}/{entry}"));
                let (there_a, there_b) = (left.contains(entry), right.contains(entry));
                if !self.mode.absent_is_empty && there_a != there_b {
                    let folder = if there_a { &old } else { &new };
                    self.stdout.push_str(&format!("Only in {folder}: {entry}\n"));
                    self.differ();
                    continue;
                }
                let (at_a, at_b) = (self.stat(&a).await, self.stat(&b).await);
                let folder =
                    |side: &Option<Metadata>| side.as_ref().is_some_and(|m| m.file_type.is_dir());
                match (folder(&at_a), folder(&at_b)) {
                    (false, false) => self.files(&a, &b, true).await,
                    (true, true) if !self.mode.recursive => {
                        self.stdout.push_str(&format!("Common subdirectories: {a} and {b}\n"));
                    }
                    _ => below.push((a, b)),
                }
            }
            pending.extend(below.into_iter().rev());
        }
    }

    async fn names(&self, folder: &str) -> BTreeSet<String> {
        let listed = self.context.fs.read_dir(&absolute(self.context.cwd, folder)).await;
        let names = listed.unwrap_or_default().into_iter().map(|entry| entry.name);
        names.filter(|name| !self.is_excluded(name)).collect()
    }

    fn is_excluded(&self, name: &str) -> bool {
        self.mode.excluded.iter().any(|pattern| match pattern.strip_prefix('*') {
            Some(ending) => name.ends_with(ending),
            None => name == pattern,
        })
    }

    async fn read(&self, given: &str) -> Result<Side> {
        if given == "-" {
            let bytes = self.context.stdin.map(|data| data.as_bytes().to_vec());
            return Ok(Side::File(bytes.unwrap_or_default(), SystemTime::now()));
        }
        let path = absolute(self.context.cwd, given);
        match self.context.fs.stat(&path).await {
            Ok(found) if found.file_type.is_dir() => Ok(Side::Directory),
            Ok(found) => Ok(Side::File(self.context.fs.read_file(&path).await?, found.modified)),
            Err(Error::Io(_)) if self.mode.absent_is_empty => {
                Ok(Side::File(Vec::new(), SystemTime::UNIX_EPOCH))
            }
            Err(error) => Err(error),
        }
    }

    async fn files(&mut self, old: &str, new: &str, in_tree: bool) {
        let mut sides = Vec::new();
        for given in [old, new] {
            match self.read(given).await {
                Ok(Side::File(bytes, modified)) => sides.push((bytes, modified)),
                Ok(Side::Directory) => self.trouble(given, "Is a directory"),
                Err(error) => self.trouble(given, &reason(&error)),
            }
        }
        let [(a, modified_a), (b, modified_b)] = sides.as_slice() else { return };
        let is_binary = a.contains(&0) || b.contains(&0);
        let (text_a, text_b) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
        let comparison = Comparison::new(&text_a, &text_b, self.mode.ignore);
        if a == b || (!is_binary && comparison.is_same()) {
            if self.mode.say_same {
                self.stdout.push_str(&format!("Files {old} and {new} are identical\n"));
            }
            return;
        }
        self.differ();
        if self.mode.brief || is_binary {
            let kind = if self.mode.brief { "Files" } else { "Binary files" };
            self.stdout.push_str(&format!("{kind} {old} and {new} differ\n"));
            return;
        }
        if in_tree {
            self.stdout.push_str(&format!("diff{} {old} {new}\n", self.mode.written));
        }
        match self.mode.unified {
            None => self.stdout.push_str(&comparison.normal()),
            Some(context) => {
                for (at, (mark, given, modified)) in
                    [("---", old, modified_a), ("+++", new, modified_b)].into_iter().enumerate()
                {
                    let header = match self.mode.labels.get(at) {
                        Some(label) => format!("{mark} {label}\n"),
                        None => format!("{mark} {given}\t{}\n", time::long(*modified)),
                    };
                    self.stdout.push_str(&header);
                }
                self.stdout.push_str(&comparison.unified(context));
            }
        }
    }

    fn trouble(&mut self, given: &str, why: &str) {
        self.stderr.push_str(&format!("diff: {given}: {why}\n"));
        self.code = TROUBLE;
    }
}
