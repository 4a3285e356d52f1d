//! Files that other programs run or act on by themselves, with the reason that a person reads. Such a file is
//! only marked, not refused. The names are data: `table/*.toml`, `shadows.toml`, `words.toml`.
//!
//! For example `Package@swift-5.9.swift` is in the table; a new `json.py` at the top shadows a module
//! of Python; and `tools/check.sh` is named by a Makefile.

mod name;
mod refers;
mod shadow;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use belljar_sandbox::Overlay;
use belljar_work::{StopSignal, WorkStopped};

use crate::workspace::Workspace;
use crate::{FileChange, FileDifference, Node};
use name::folded;
use table::table;

/// Dotted names that only list files for a program to skip, or describe formatting. All other dotted names
/// count as settings: nobody knows every program that executes commands from its settings.
const HARMLESS: &[&str] = &[
    ".gitignore",
    ".gitkeep",
    ".keep",
    ".ignore",
    ".dockerignore",
    ".npmignore",
    ".prettierignore",
    ".eslintignore",
    ".editorconfig",
    ".mailmap",
];
const DOTTED: &str = "a name with a dot: programs take settings from it, often commands";
const OWN_FILE: &str = "a name as tools give to the file that they start with";
/// A short name in another file system, which may mean any of these.
const SHORT: &str = "the short form of another name, as some file systems have it";
/// It becomes executable.
const EXECUTABLE: &str = "it can be started as a program";
const LINK: &str = "a link: whoever follows it works elsewhere";
/// A part of its path is no name.
const NO_NAME: &str = "its path has a part that is no name: nobody knows which program acts on it";
/// The tables of this program are broken: then no name is taken for harmless.
const NO_TABLE: &str = "the table of files that run later cannot be read";

/// Why a change would be run or read later, by name and kind; `above` is the workspace's directory.
pub(crate) fn by_change(file: &FileChange, above: &Path) -> Option<&'static str> {
    let is_dir = file.node == Node::Directory;
    let named = by_place(above, &file.path, is_dir);
    let executable = |mode: Option<u32>| mode.is_some_and(|mode| mode & 0o111 != 0);
    let named = match &file.kind {
        // A deleted file runs nothing. But a deleted setting may have held a program back, and a
        // repository is not to be damaged unseen.
        FileDifference::Deleted => {
            let told = is_repository(&file.path) || is_dotted(&file.path);
            return named.filter(|_| told);
        }
        FileDifference::Renamed { from, .. } => named.or_else(|| by_place(above, from, is_dir)),
        FileDifference::Added | FileDifference::Modified | FileDifference::Mode => named,
    };
    // An executable file in the workspace stays executable, whoever made it.
    let program =
        file.node == Node::File && (executable(file.mode_after) || executable(file.mode_before));
    match file.node {
        Node::Link => Some(LINK),
        Node::File | Node::Directory | Node::Special => named.or(program.then_some(EXECUTABLE)),
    }
}

/// Also marks changes that run because of other files: replacements of a module, and files named, for
/// example, in a Makefile.
pub(crate) fn mark(
    files: &mut [FileChange],
    overlay: &Overlay,
    workspace: &Workspace,
    stop: &StopSignal,
) -> Result<(), WorkStopped> {
    let Some(table) = table() else { return Ok(()) };
    shadow::mark(table, files, workspace, stop)?;
    refers::mark(table, files, overlay, workspace, stop)
}

/// Whether a file is source text by its ending: a build or a test run executes such a file under any name.
pub(crate) fn is_code(path: &Path) -> bool {
    let name = path.file_name().map(|name| folded(&name.to_string_lossy()));
    let ending = name.as_deref().and_then(name::ending);
    table()
        .zip(ending)
        .is_some_and(|(table, ending)| table.words.code.iter().any(|it| it == ending))
}

/// Why a file would be run or read later by its name, by any program.
fn by_name(path: &Path, is_dir: bool) -> Option<&'static str> {
    if path.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Some(NO_NAME);
    }
    let Some(table) = table() else { return Some(NO_TABLE) };
    let readings = readings(path);
    let (written, dropped) = readings.split_first()?;
    // The rest of `\xE9.rs` is an ending: only the table tells whether a name without such bytes runs.
    let of_table = |names: &Vec<String>| table.row(names, is_dir, |_| true);
    by_names(table, written, is_dir)
        .or_else(|| Some(dropped.iter().find_map(of_table)?.reason.as_str()))
}

fn by_names(table: &'static table::Table, names: &[String], is_dir: bool) -> Option<&'static str> {
    let reason = table.row(names, is_dir, |_| true).map(|row| row.reason.as_str());
    let dotted = || names.iter().any(|it| it.starts_with('.') && !HARMLESS.contains(&it.as_str()));
    let short = || names.iter().any(|name| is_short(name));
    let own = || !is_dir && names.last().is_some_and(|name| is_own_file(name, table));
    let reason = reason.or_else(|| dotted().then_some(DOTTED));
    reason.or_else(|| short().then_some(SHORT)).or_else(|| own().then_some(OWN_FILE))
}

/// `Fakefile`, `bspwmrc`: a name of letters and digits that ends as tools' own files do.
fn is_own_file(name: &str, table: &table::Table) -> bool {
    let mut ends = table.words.own_files.iter();
    let ends = ends.any(|end| name.len() > end.len() && name.ends_with(end.as_str()));
    ends && name.chars().all(char::is_alphanumeric)
}

/// As [`by_name`], of a path in the directory `above`, whose own last names count: whoever works in
/// `.github` writes workflows too.
fn by_place(above: &Path, path: &Path, is_dir: bool) -> Option<&'static str> {
    let last: Vec<_> = above.components().rev().take(ABOVE).collect();
    let own = last.iter().rev().filter(|part| matches!(part, Component::Normal(_)));
    let whole: PathBuf = own.collect::<PathBuf>().join(path);
    let by_row = || {
        let table = table()?;
        let row = |names: &Vec<String>| table.row(names, is_dir, |_| true);
        readings(&whole).iter().find_map(row).map(|row| row.reason.as_str())
    };
    by_name(path, is_dir).or_else(by_row)
}

/// Names of the workspace's own path that count: as many as in the longest row, without the file's.
const ABOVE: usize = 2;

/// The names of a path as the most generous file system reads them.
fn folded_names(path: &Path) -> Vec<String> {
    path.iter().map(|name| folded(&name.to_string_lossy())).collect()
}

/// The names of a path as programs may read them. Where bytes are no text, a program compares them as they
/// are, and some file system drops them: `.g\xFFit` is read as `.git` too.
fn readings(path: &Path) -> Vec<Vec<String>> {
    let mut readings = vec![folded_names(path)];
    if path.to_str().is_none() {
        let text = |name: &OsStr| {
            let chunks = name.as_encoded_bytes().utf8_chunks();
            folded(&chunks.map(|chunk| chunk.valid()).collect::<String>())
        };
        readings.push(path.iter().map(text).collect());
    }
    readings
}

/// Whether a name in it begins with a dot.
fn is_dotted(path: &Path) -> bool {
    path.iter().any(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// `GIT~1`: a name in the short form of FAT and NTFS.
fn is_short(name: &str) -> bool {
    let digits = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.split_once('~').is_some_and(|(_, rest)| digits(rest))
}

/// Whether it belongs to a repository's own files.
fn is_repository(path: &Path) -> bool {
    let own = [".git", ".hg", ".jj", ".svn"];
    readings(path).iter().flatten().any(|name| own.contains(&name.as_str()))
}
