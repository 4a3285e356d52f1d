//! Finds the agent files for `agents check`, and judges them on several threads.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use belljar_catalogue::limits;
use belljar_definition::{MAX_DEFINITION, may_hold_agent};
use belljar_policy::ShownPath as _;

use super::verdict::{FileJudge, JudgedFile};
use crate::setup::exit::Failure;
use crate::setup::home::read_bounded;

/// The deepest folder that `check` searches. A cloned repository has its agents deeper than the folder of
/// agents does.
const MAX_DEPTH: usize = 2 * limits::MAX_AGENT_DEPTH;

/// The most threads that read files; more do not make a disk faster.
const MAX_THREADS: usize = 8;

/// The number of files for each further thread.
const FILES_FOR_A_THREAD: usize = 64;

/// The folder with git's own files, which has no agents.
const GIT: &str = ".git";

/// The files to check: the file itself, or the files below a directory that may hold an agent, sorted by path.
pub(crate) fn find_agent_files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    let mut left = vec![(path.to_path_buf(), 0)];
    while let Some((directory, depth)) = left.pop() {
        let entries = std::fs::read_dir(&directory).map_err(|error| {
            Failure::new(format!("failed to list `{}`: {error}", directory.to_shown()))
        })?;
        for entry in entries.flatten() {
            let path = entry.path();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && depth < MAX_DEPTH && entry.file_name() != GIT {
                left.push((path, depth + 1));
            } else if !is_dir && (is_markdown(&path) || holds_other_form(&path)) {
                files.push(path);
            }
            if files.len() > limits::MAX_AGENT_FILES {
                return Err(Failure::usage(format!(
                    "more than {} agent files below `{}`",
                    limits::MAX_AGENT_FILES,
                    directory.to_shown()
                )));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file in another form than markdown may hold an agent; most of them hold something else.
fn holds_other_form(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_form =
        ["toml", "json", "yaml", "yml"].iter().any(|form| ending.eq_ignore_ascii_case(form));
    is_form
        && read_bounded(path, MAX_DEFINITION as u64).is_ok_and(|bytes| may_hold_agent(path, &bytes))
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// Judges all files, and returns the verdicts in the files' order.
pub(crate) fn judge_files(files: &[PathBuf], judge: &FileJudge<'_>) -> Vec<JudgedFile> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (files.len() / FILES_FOR_A_THREAD).clamp(1, cores.min(MAX_THREADS));
    if threads == 1 {
        return files.iter().map(|file| judge.judge_file(file)).collect();
    }
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(files.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(at) else { break };
                    own.push((at, judge.judge_file(file)));
                }
                found.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, verdict)| verdict).collect()
}
