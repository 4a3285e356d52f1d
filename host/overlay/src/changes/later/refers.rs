//! Finds changed files that are named in a file which a program runs by itself, for example `tools/check.sh`
//! in a Makefile, `scripts/t.js` in a `package.json`. Texts are searched for words that are paths; only JSON
//! is parsed, and nothing is run. Reading is bounded, and beyond the bounds nothing is marked.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::Overlay;
use belljar_work::{StopSignal, WorkStopped};

use super::name::{fold_name, name_ending};
use super::table::{LaterTables, ProgramRow};
use super::{folded_names, walk};
use crate::changes::workspace::Workspace;
use crate::changes::{FileChange, FileDifference, NodeKind};

/// The most bytes read of one file.
const MAX_TEXT: u64 = 256 << 10;
/// The most bytes read of all files.
const MAX_TEXTS: u64 = 4 << 20;
/// The most files that are opened because another file names them.
const MAX_NAMED: usize = 512;
/// The deepest chain of files that name other files.
const MAX_DEPTH: usize = 4;
/// The longest word that may be a path, in bytes, for example `scripts/test.sh`.
const MAX_WORD: usize = 512;
/// The most directories in which the commands of one file may run.
const MAX_BASES: usize = 8;

/// Marks the changed files that are named in a file which a program runs by itself, in the workspace or in
/// the changes.
pub(super) fn mark_referred(
    table: &'static LaterTables,
    files: &mut [FileChange],
    overlay: &Overlay,
    workspace: &Workspace,
    stop: &StopSignal,
) -> Result<(), WorkStopped> {
    let is_there =
        |file: &&FileChange| file.kind != FileDifference::Deleted && file.node == NodeKind::File;
    let mut changed: HashMap<String, Vec<usize>> = HashMap::new();
    let mut stems = HashSet::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| is_there(file)) {
        let names = folded_names(&file.path);
        // Only the directory may be named: `node scripts` runs `scripts/index.js`.
        stems.extend(names.iter().rev().take(2).map(|name| name_stem(name).to_owned()));
        changed.entry(names.join("/")).or_default().push(at);
    }
    if files.iter().filter(is_there).all(|file| file.runs_later.is_some()) {
        return Ok(());
    }
    let mut search = ReferenceSearch {
        table,
        changed: &changed,
        stems,
        workspace,
        found: HashMap::new(),
        seen: HashSet::new(),
        open: VecDeque::new(),
        probes: MAX_NAMED,
        bytes: MAX_TEXTS,
        stop,
    };
    search.read_all(files, overlay);
    let found = search.found;
    // An interrupted search has not found everything.
    stop.check_raised()?;
    for (at, reason) in found {
        if let Some(file) = files.get_mut(at) {
            file.runs_later.get_or_insert(reason);
        }
    }
    Ok(())
}

fn name_stem(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

struct ReferenceSearch<'a> {
    table: &'static LaterTables,
    /// The changed files by their normalized paths.
    changed: &'a HashMap<String, Vec<usize>>,
    /// The beginnings of the searched names, by which most words are skipped.
    stems: HashSet<String>,
    workspace: &'a Workspace,
    found: HashMap<usize, &'static str>,
    /// Files of the workspace that were read already.
    seen: HashSet<PathBuf>,
    open: VecDeque<(PathBuf, &'static ProgramRow, usize)>,
    probes: usize,
    bytes: u64,
    /// Once raised, the searches end one after another.
    stop: &'a StopSignal,
}

impl ReferenceSearch<'_> {
    /// Reads the changed files and the workspace's own files that may name other files to run.
    fn read_all(&mut self, files: &[FileChange], overlay: &Overlay) {
        for path in walk::find_referring(self.table, files, self.workspace, self.stop) {
            let row = self.referring_row(&path);
            if let (Some(row), Ok((file, _))) = (row, self.workspace.open_file(&path)) {
                self.scan_text(&path, file, row, 0);
                self.seen.insert(path);
            }
        }
        self.follow_scripts();
        // The workspace's own files come first, so that no change can use up their share of bytes.
        self.bytes = self.bytes.max(MAX_TEXTS / 2);
        let there = files
            .iter()
            .filter(|file| file.kind != FileDifference::Deleted && file.node == NodeKind::File);
        for file in there {
            if self.stop.is_raised() {
                return;
            }
            if let Some(row) = self.referring_row(&file.path)
                && self.bytes > 0
                && let Ok(open) = overlay.open_file(&file.path)
            {
                self.scan_text(&file.path, open, row, 0);
            }
        }
        self.follow_changed(files, overlay);
    }

    fn referring_row(&self, path: &Path) -> Option<&'static ProgramRow> {
        self.table.find_row(&folded_names(path), false, |row| row.refers)
    }

    /// Reads the named scripts of the workspace.
    fn follow_scripts(&mut self) {
        while let Some((path, row, depth)) = self.open.pop_front() {
            if self.probes == 0 || !self.seen.insert(path.clone()) {
                continue;
            }
            self.probes -= 1;
            if let Ok((file, _)) = self.workspace.open_file(&path) {
                self.scan_text(&path, file, row, depth);
            }
        }
    }

    /// Reads the named changed scripts, in their new version.
    fn follow_changed(&mut self, files: &[FileChange], overlay: &Overlay) {
        let mut done = HashSet::new();
        loop {
            self.follow_scripts();
            let next = self.found.iter().map(|(at, reason)| (*at, *reason));
            let next: Vec<_> = next.filter(|(at, _)| done.insert(*at)).collect();
            if next.is_empty() || self.bytes == 0 || self.stop.is_raised() {
                return;
            }
            for (at, reason) in next {
                let row = self.table.rows.iter().find(|row| row.turn == reason);
                let Some((row, file)) = row.zip(files.get(at)) else { continue };
                if self.is_shell(&file.path)
                    && let Ok(open) = overlay.open_file(&file.path)
                {
                    self.scan_text(&file.path, open, row, MAX_DEPTH - 1);
                }
            }
        }
    }

    /// Whether a script's own text is searched: a shell's, or one without a suffix.
    fn is_shell(&self, path: &Path) -> bool {
        let name =
            path.file_name().map(|name| fold_name(&name.to_string_lossy())).unwrap_or_default();
        name_ending(&name)
            .is_none_or(|ending| self.table.words.shells.iter().any(|it| it == ending))
    }

    /// Searches one text for names of files that a program would run.
    fn scan_text(&mut self, path: &Path, file: File, row: &'static ProgramRow, depth: usize) {
        if self.stop.is_raised() {
            return;
        }
        let mut bytes = Vec::new();
        let most = MAX_TEXT.min(self.bytes);
        if file.take(most).read_to_end(&mut bytes).is_err() || bytes.contains(&0) {
            return;
        }
        self.bytes -= bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes);
        let text = run_values(path, &text, row).unwrap_or_else(|| text.into_owned());
        let above = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut bases = vec![above.clone()];
        if !above.as_os_str().is_empty() {
            bases.push(PathBuf::new());
        }
        let words: Vec<&str> = path_words(&text).collect();
        for pair in words.windows(2) {
            if let [word, dir] = pair
                && self.table.words.enters.iter().any(|it| it == word)
                && bases.len() < MAX_BASES
            {
                let dirs = [join_path(&above, dir), join_path(Path::new(""), dir)];
                bases.extend(dirs.into_iter().flatten().filter(|dir| !dir.as_os_str().is_empty()));
            }
        }
        let mut before = "";
        for word in words {
            self.handle_word(word, before, &bases, row, depth);
            // Options may come between a program and its file.
            if !word.starts_with('-') || self.table.words.modules.iter().any(|it| it == word) {
                before = word;
            }
        }
    }

    /// Treats one word of a text as a path.
    fn handle_word(
        &mut self,
        word: &str,
        before: &str,
        bases: &[PathBuf],
        row: &'static ProgramRow,
        depth: usize,
    ) {
        let words = &self.table.words;
        let program = before.rsplit('/').next().unwrap_or(before).to_lowercase();
        let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is = |list: &[String], word: &str| list.iter().any(|it| it == word);
        let opened = before == "." || is(&words.openers, program) || is(&row.openers, program);
        let module = is(&words.modules, before) && !word.contains('/');
        let path = if module { word.replace('.', "/") } else { word.replace('\\', "/") };
        let last = fold_name(path.trim_end_matches('/').rsplit('/').next().unwrap_or(&path));
        let asked = self.stems.contains(name_stem(&last));
        let own = name_ending(&last);
        let script = own.is_some_and(|ending| is(&words.scripts, ending));
        let bare = own.is_none() && path.contains('/');
        let runs = opened || module || script || bare;
        let shell = own.is_none_or(|own| is(&words.shells, own)) && !module;
        if !runs || !(asked || (shell && (script || bare || opened))) {
            return;
        }
        for base in bases {
            let Some(path) = join_path(base, &path) else { continue };
            let key = folded_names(&path).join("/");
            let mut hit = asked && !module && self.mark_found(&key, row);
            if asked && (own.is_none() || module) {
                let rest = ["index", "__main__", "__init__", "mod", "init"];
                for ending in &words.scripts {
                    hit |= self.mark_found(&format!("{key}.{ending}"), row);
                    for name in rest {
                        hit |= self.mark_found(&format!("{key}/{name}.{ending}"), row);
                    }
                }
            }
            if !hit && shell && depth + 1 < MAX_DEPTH && !path.as_os_str().is_empty() {
                self.open.push_back((path, row, depth + 1));
            }
        }
    }

    /// Marks a changed file as named by a program; returns whether the file is among the changes.
    fn mark_found(&mut self, key: &str, row: &'static ProgramRow) -> bool {
        let Some(all) = self.changed.get(key) else { return false };
        for at in all {
            self.found.entry(*at).or_insert(&row.turn);
        }
        true
    }
}

/// The words of a text that may be paths, without quotes, brackets and shell syntax.
fn path_words(text: &str) -> impl Iterator<Item = &str> {
    let splits = |c: char| c.is_whitespace() || "\"'`()[]{}<>|;&,=:$#!?".contains(c);
    text.split(splits).filter(|word| !word.is_empty() && word.len() <= MAX_WORD)
}

/// The texts of a JSON file without those of the row's `skip`; `None` = not JSON, so the whole text counts.
fn run_values(path: &Path, text: &str, row: &ProgramRow) -> Option<String> {
    if row.skip.is_empty() || path.extension().is_none_or(|it| !it.eq_ignore_ascii_case("json")) {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let mut found = String::new();
    for (key, value) in value.as_object()? {
        if !row.skip.contains(key) {
            collect_texts(value, &mut found);
        }
    }
    Some(found)
}

/// Appends all texts of a value, one a line. The nesting is bounded by serde_json.
fn collect_texts(value: &serde_json::Value, found: &mut String) {
    match value {
        serde_json::Value::String(text) => {
            found.push_str(text);
            found.push('\n');
        }
        serde_json::Value::Array(values) => values.iter().for_each(|it| collect_texts(it, found)),
        serde_json::Value::Object(values) => values.iter().for_each(|(key, it)| {
            found.push_str(key);
            found.push('\n');
            collect_texts(it, found);
        }),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// A path relative to the workspace, named relative to a directory; `None` = outside.
fn join_path(base: &Path, named: &str) -> Option<PathBuf> {
    let mut path = base.to_owned();
    for name in named.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                if !path.pop() {
                    return None;
                }
            }
            name => path.push(name),
        }
    }
    Some(path)
}
