//! Files that other programs run or act on by themselves, with the reason that a person reads. Such a file is
//! only marked, not refused. The names are data: `table/*.toml`, `shadows.toml`, `words.toml`.
//!
//! For example `Package@swift-5.9.swift` is in the table; a new `json.py` at the top shadows a module of
//! Python; and `tools/check.sh` is marked because a Makefile contains its name.

mod name;
mod refers;
mod shadow;
mod table;
#[cfg(test)]
mod tests;
mod walk;

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::Overlay;
use belljar_work::{StopSignal, WorkStopped};

use crate::changes::workspace::Workspace;
use crate::changes::{FileChange, FileDifference, NodeKind};
use name::fold_name;
use table::later_tables;

/// Dotted names that only list files for a program to skip, or describe formatting. All other dotted names
/// count as settings, because the programs that run commands from their settings cannot all be listed.
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
/// The reason for a short name of another file system, which may be the short form of any name in the table.
const SHORT: &str = "the short form of another name, as some file systems have it";
/// The reason for an executable file.
const EXECUTABLE: &str = "it can be started as a program";
const LINK: &str = "a link: whoever follows it works elsewhere";
/// The reason for a path with a part that is not a name, for example `..`.
const NO_NAME: &str = "its path has a part that is no name: nobody knows which program acts on it";
/// The reason if this program's tables are broken: then every name is marked.
const NO_TABLE: &str = "the table of files that run later cannot be read";

/// Why a program would run or read a changed file later, by name and kind; `above` is the workspace's
/// directory.
pub(crate) fn by_change(file: &FileChange, above: &Path) -> Option<&'static str> {
    let is_dir = file.node == NodeKind::Directory;
    let named = by_place(above, &file.path, is_dir);
    let executable = |mode: Option<u32>| mode.is_some_and(|mode| mode & 0o111 != 0);
    let named = match &file.kind {
        // A deleted file runs no more. But a deleted setting may have restricted a program, and
        // damage to a repository must be visible.
        FileDifference::Deleted => {
            let told = is_repository(&file.path) || is_dotted(&file.path);
            return named.filter(|_| told);
        }
        FileDifference::Renamed { from, .. } => named.or_else(|| by_place(above, from, is_dir)),
        FileDifference::Added | FileDifference::Modified | FileDifference::Mode => named,
    };
    // An executable file stays executable, whether the workspace or the agent made it so.
    let program = file.node == NodeKind::File
        && (executable(file.mode_after) || executable(file.mode_before));
    match file.node {
        NodeKind::Link => Some(LINK),
        NodeKind::File | NodeKind::Directory | NodeKind::Special => {
            named.or(program.then_some(EXECUTABLE))
        }
    }
}

/// Also marks changes that run because of other files: replacements of a module, and files that, for example,
/// a Makefile names.
pub(crate) fn mark_later(
    files: &mut [FileChange],
    overlay: &Overlay,
    workspace: &Workspace,
    stop: &StopSignal,
) -> Result<(), WorkStopped> {
    let Some(table) = later_tables() else { return Ok(()) };
    shadow::mark_shadowing(table, files, workspace, stop)?;
    refers::mark_referred(table, files, overlay, workspace, stop)
}

/// Whether a file is source code by its suffix: a build or a test run executes such a file under any name.
pub(crate) fn is_code(path: &Path) -> bool {
    let name = path.file_name().map(|name| fold_name(&name.to_string_lossy()));
    let ending = name.as_deref().and_then(name::name_ending);
    later_tables()
        .zip(ending)
        .is_some_and(|(table, ending)| table.words.code.iter().any(|it| it == ending))
}

/// Why a program would run or read a file later, by the file's name.
fn by_name(path: &Path, is_dir: bool) -> Option<&'static str> {
    if path.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Some(NO_NAME);
    }
    let Some(table) = later_tables() else { return Some(NO_TABLE) };
    let readings = possible_readings(path);
    let (written, dropped) = readings.split_first()?;
    // `\xE9.rs` without the byte is `.rs`, a name of only a suffix, so the reading without such
    // bytes is looked up in the table alone.
    let of_table = |names: &Vec<String>| table.find_row(names, is_dir, |_| true);
    by_names(table, written, is_dir)
        .or_else(|| Some(dropped.iter().find_map(of_table)?.reason.as_str()))
}

/// The reason by the names on a path alone; `None` = no name has a meaning.
fn by_names(
    table: &'static table::LaterTables,
    names: &[String],
    is_dir: bool,
) -> Option<&'static str> {
    let reason = table.find_row(names, is_dir, |_| true).map(|row| row.reason.as_str());
    let dotted = || names.iter().any(|it| it.starts_with('.') && !HARMLESS.contains(&it.as_str()));
    let short = || names.iter().any(|name| is_short(name));
    let own = || !is_dir && names.last().is_some_and(|name| is_own_file(name, table));
    let reason = reason.or_else(|| dotted().then_some(DOTTED));
    reason.or_else(|| short().then_some(SHORT)).or_else(|| own().then_some(OWN_FILE))
}

/// Whether a name without a dot is a tool's own file: letters and digits with a typical ending, for example
/// `Fakefile` or `bspwmrc`.
fn is_own_file(name: &str, table: &table::LaterTables) -> bool {
    let mut ends = table.words.own_files.iter();
    let ends = ends.any(|end| name.len() > end.len() && name.ends_with(end.as_str()));
    ends && name.chars().all(char::is_alphanumeric)
}

/// Why a file would be run or read later by its path in the directory `above`. The last names of `above`
/// count too: a file in a workspace `.github` may be a workflow.
fn by_place(above: &Path, path: &Path, is_dir: bool) -> Option<&'static str> {
    let last: Vec<_> = above.components().rev().take(ABOVE).collect();
    let own = last.iter().rev().filter(|part| matches!(part, Component::Normal(_)));
    let whole: PathBuf = own.collect::<PathBuf>().join(path);
    let by_row = || {
        let table = later_tables()?;
        let row = |names: &Vec<String>| table.find_row(names, is_dir, |_| true);
        possible_readings(&whole).iter().find_map(row).map(|row| row.reason.as_str())
    };
    by_name(path, is_dir).or_else(by_row)
}

/// The names of the workspace's own path that count: as many as in the longest row, without the file's name.
const ABOVE: usize = 2;

/// The names of a path, normalized like in a file system that ignores the most differences.
fn folded_names(path: &Path) -> Vec<String> {
    path.iter().map(|name| fold_name(&name.to_string_lossy())).collect()
}

/// The readings of a path's names by different programs. A name that is not UTF-8 has two readings, because
/// some file systems drop such bytes: `.g\xFFit` is also `.git`.
fn possible_readings(path: &Path) -> Vec<Vec<String>> {
    let mut readings = vec![folded_names(path)];
    if path.to_str().is_none() {
        let text = |name: &OsStr| {
            let chunks = name.as_encoded_bytes().utf8_chunks();
            fold_name(&chunks.map(|chunk| chunk.valid()).collect::<String>())
        };
        readings.push(path.iter().map(text).collect());
    }
    readings
}

/// Whether any name of the path begins with a dot.
fn is_dotted(path: &Path) -> bool {
    path.iter().any(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether a name is in the short form of FAT and NTFS, for example `GIT~1`.
fn is_short(name: &str) -> bool {
    let digits = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.split_once('~').is_some_and(|(_, rest)| digits(rest))
}

/// Whether the path is inside a repository's own directory, for example `.git`.
fn is_repository(path: &Path) -> bool {
    let own = [".git", ".hg", ".jj", ".svn"];
    possible_readings(path).iter().flatten().any(|name| own.contains(&name.as_str()))
}
