//! Finds the files of a workspace that may name others, within bounds.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use belljar_work::StopSignal;

use super::folded_names;
use super::table::LaterTables;
use crate::changes::FileChange;
use crate::changes::workspace::Workspace;

/// The most directories of the workspace that are listed.
const MAX_DIRS: usize = 512;
/// The most names read from each directory.
const MAX_NAMES: usize = 4096;
/// Levels of directories that are listed without a change below.
const MAX_DEPTH: usize = 3;
/// The most files that are returned.
const MAX_FILES: usize = 256;

/// The files of the workspace that run others, by name: first in the directories above the changes, then in
/// the others from the top down. Stops early when the signal is raised.
pub(super) fn find_referring(
    table: &LaterTables,
    files: &[FileChange],
    workspace: &Workspace,
    stop: &StopSignal,
) -> Vec<PathBuf> {
    let above = files.iter().flat_map(|file| file.path.ancestors().skip(1));
    let above: BTreeSet<(usize, &Path)> =
        above.map(|dir| (dir.iter().count(), dir)).take(MAX_DIRS * 64).collect();
    let mut open: VecDeque<(PathBuf, usize)> =
        above.into_iter().take(MAX_DIRS / 2).map(|(_, dir)| (dir.to_owned(), 0)).collect();
    open.push_back((PathBuf::new(), 0));
    let mut seen: HashSet<PathBuf> = HashSet::new();
    let mut found = Vec::new();
    while let Some((dir, depth)) = open.pop_front() {
        if seen.len() >= MAX_DIRS || found.len() >= MAX_FILES || stop.is_raised() {
            break;
        }
        if !seen.insert(dir.clone()) {
            continue;
        }
        let Ok(names) = workspace.some_names(&dir, MAX_NAMES) else { continue };
        for (name, is_dir) in names {
            let path = dir.join(&name);
            let passed = || table.words.passed_over.iter().any(|it| name == it.as_str());
            if is_dir && depth < MAX_DEPTH && !passed() {
                open.push_back((path, depth + 1));
            } else if !is_dir
                && table.find_row(&folded_names(&path), false, |row| row.refers).is_some()
            {
                found.push(path);
            }
        }
    }
    found.truncate(MAX_FILES);
    found
}
