//! Saved runs: one versioned JSON file each in `~/.belljar/runs/`, readable by their owner
//! only, until there is a store.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_CHILDREN_PER_RUN, MAX_RECORD_BYTES};
use crate::clock::RunId;
use crate::journal::Journal;
use crate::outcome::{ChildSummary, Outcome};
use crate::run::RunSpec;
use crate::steps::StepEntry;
use crate::toolfiles::{ReadError, read_bounded};

/// The name of the next part of a run that has not ended.
static NEXT_PART: AtomicUsize = AtomicUsize::new(0);

/// The version of the file's form.
pub const RECORD_VERSION: u32 = 1;

/// How many saved runs are kept unless the settings say otherwise (`keep_runs`): weeks of
/// work, in some megabytes.
pub const KEEP_RUNS: u64 = 200;

/// A run as it is saved: a session of one turn. Holds no secrets: the sandbox keeps their
/// values out of outputs and receipts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// The run.
    pub id: RunId,
    /// The task, as it was given.
    pub task: String,
    /// The context, as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The workspace.
    pub workspace: PathBuf,
    /// All that came of it: agent, model, output, receipts, subagents.
    pub outcome: Outcome,
}

/// The directory of saved runs.
#[derive(Debug, Clone)]
pub struct RunStore {
    dir: PathBuf,
}

/// Why a run cannot be saved or read.
#[derive(Debug, thiserror::Error)]
pub enum RunStoreError {
    /// The file or directory cannot be used.
    #[error("failed to {what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The file is not a saved run.
    #[error("`{}` is not a saved run: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file was written by a newer program.
    #[error("`{}` has version {found}; this program reads version {RECORD_VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// No run fits.
    #[error("no saved run {0}")]
    NotFound(String),
    /// It was begun and never ended, as when the process was killed.
    #[error("run `{id}` did not end; the outcomes of {kept} of its subagents are in `{}`", dir.display())]
    Unfinished {
        /// The run.
        id: String,
        /// Where what there is lies.
        dir: PathBuf,
        /// How many outcomes.
        kept: usize,
    },
    /// Several runs fit.
    #[error("several saved runs begin with `{prefix}`: {ids}")]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// The first few of them.
        ids: String,
    },
}

impl RunRecord {
    /// The record of a run that has ended. Take `task`, `context` and `workspace` from the
    /// spec before it is run.
    pub fn new(spec: &RunSpec, outcome: Outcome) -> Self {
        Self {
            version: RECORD_VERSION,
            id: outcome.run.clone(),
            task: spec.task.clone(),
            context: spec.context.clone(),
            workspace: spec.workspace.clone(),
            outcome,
        }
    }
}

impl RunStore {
    /// The store in this directory, usually `~/.belljar/runs`. Nothing is made until a run is
    /// saved.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Writes a run and gives its path. A reader sees the whole file or none.
    pub fn save(&self, record: &RunRecord) -> Result<PathBuf, RunStoreError> {
        let path = self.dir.join(format!("{}.json", record.id));
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| RunStoreError::Io { what, path, source }
        };
        private_dir(&self.dir).map_err(failed("make the directory", &self.dir))?;
        let text = serde_json::to_vec_pretty(record).map_err(|error| RunStoreError::Malformed {
            path: path.clone(),
            why: error.to_string(),
        })?;
        let temporary = self.dir.join(format!(".{}.tmp", record.id));
        let written = write_private(&temporary, &text).and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|source| {
            // A leftover is hidden from lists and harmless.
            let _ = fs::remove_file(&temporary);
            failed("write", &path)(source)
        })?;
        // The record holds all of it now.
        let _ = fs::remove_dir_all(self.parts(record.id.as_str()));
        Ok(path)
    }

    /// Keeps the outcome of one subagent of a run that has not ended yet.
    fn keep(&self, run: &RunId, child: &ChildSummary) -> io::Result<()> {
        private_dir(&self.dir)?;
        let dir = self.parts(run.as_str());
        private_dir(&dir)?;
        let bytes = serde_json::to_vec(child)?;
        // Numbers of this process; one that is taken was another's of the same run.
        for _ in 0..=MAX_CHILDREN_PER_RUN {
            let number = NEXT_PART.fetch_add(1, Ordering::Relaxed);
            let path = dir.join(format!("{number}.json"));
            match new_private(&path).and_then(|mut file| file.write_all(&bytes)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                written => return written,
            }
        }
        Err(io::Error::other("too many subagents"))
    }

    /// Where a run keeps what it has come to, until it ends.
    fn parts(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.parts"))
    }

    /// A run that was begun and of which only parts are there.
    fn unfinished(&self, prefix: &str) -> Option<RunStoreError> {
        let entries = fs::read_dir(&self.dir).ok()?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut ids = names.filter_map(|name| name.strip_suffix(".parts").map(str::to_owned));
        let id = ids.find(|id| !prefix.is_empty() && id.starts_with(prefix) && is_id(id))?;
        let dir = self.parts(&id);
        let kept = fs::read_dir(&dir).map_or(0, Iterator::count);
        Some(RunStoreError::Unfinished { id, dir, kept })
    }

    /// The ids of all saved runs, the newest first.
    pub fn list(&self) -> Result<Vec<String>, RunStoreError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                let path = self.dir.clone();
                return Err(RunStoreError::Io { what: "list", path, source });
            }
        };
        let id = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".json").filter(|id| is_id(id)).map(str::to_owned)
        };
        let mut ids: Vec<String> = entries.flatten().filter_map(id).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids)
    }

    /// Removes the oldest runs until `keep` are left; gives the number removed. Files that
    /// agents handed over stay: they are the person's.
    pub fn prune(&self, keep: u64) -> Result<usize, RunStoreError> {
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        let mut removed = 0;
        for id in self.list()?.into_iter().skip(keep) {
            let path = self.dir.join(format!("{id}.json"));
            match fs::remove_file(&path) {
                Ok(()) => removed += 1,
                // Another process prunes too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(RunStoreError::Io { what: "remove", path, source }),
            }
        }
        Ok(removed)
    }

    /// Reads a run by its id or the beginning of it; `None` or `latest` = the newest.
    pub fn load(&self, which: Option<&str>) -> Result<RunRecord, RunStoreError> {
        let ids = self.list()?;
        let id = match which {
            None | Some("latest") => {
                ids.first().ok_or_else(|| RunStoreError::NotFound("yet".to_owned()))?
            }
            Some(prefix) => match pick(&ids, prefix) {
                Err(RunStoreError::NotFound(what)) => {
                    return Err(self.unfinished(prefix).unwrap_or(RunStoreError::NotFound(what)));
                }
                found => found?,
            },
        };
        let path = self.dir.join(format!("{id}.json"));
        let bytes = read_bounded(&path, MAX_RECORD_BYTES).map_err(|error| match error {
            ReadError::Io(source) => RunStoreError::Io { what: "read", path: path.clone(), source },
            ReadError::Special | ReadError::TooLarge(_) => {
                RunStoreError::Malformed { path: path.clone(), why: error.to_string() }
            }
        })?;
        parse(&path, &bytes)
    }
}

#[async_trait]
impl Journal for RunStore {
    async fn subagent_ended(
        &self,
        run: &RunId,
        child: &ChildSummary,
        _with: Option<StepEntry>,
    ) -> io::Result<()> {
        // It writes to a disk.
        let (store, run, child) = (self.clone(), run.clone(), child.clone());
        let kept = tokio::task::spawn_blocking(move || store.keep(&run, &child)).await;
        kept.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<RunRecord, RunStoreError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let malformed = |error: serde_json::Error| RunStoreError::Malformed {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let Versioned { version: found } = serde_json::from_slice(bytes).map_err(malformed)?;
    if found != RECORD_VERSION {
        return Err(RunStoreError::Version { path: path.to_owned(), found });
    }
    serde_json::from_slice(bytes).map_err(malformed)
}

fn pick<'a>(ids: &'a [String], prefix: &str) -> Result<&'a String, RunStoreError> {
    let shown = belljar_policy::Shown::clipped(prefix, 64).to_string();
    let mut found = ids.iter().filter(|id| !prefix.is_empty() && id.starts_with(prefix));
    let first = found.next().ok_or_else(|| RunStoreError::NotFound(format!("`{shown}`")))?;
    let others: Vec<&str> = found.take(4).map(String::as_str).collect();
    if others.is_empty() || first == prefix {
        return Ok(first);
    }
    Err(RunStoreError::Ambiguous { prefix: shown, ids: format!("{first}, {}", others.join(", ")) })
}

/// What [`RunId::new`] makes: digits, letters and `-`; never a path.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(unix)]
fn private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    // It may have been there before, with more access.
    let meta = fs::metadata(dir)?;
    if meta.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn private_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = new_private(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn new_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
