//! The store during a run: opened before the first request to a model, and closed after the outcome is stored
//! and old runs are deleted.

use std::path::Path;

use belljar_agent::Outcome;
use belljar_overlay::ChangeStat;
use belljar_policy::ShownPath as _;
use belljar_session::{KEEP_RUNS, SessionError, note_files, prune_runs};
use belljar_store::{Store, StoreError};

use crate::setup::exit::{Failure, format_error_chain};
use crate::setup::home::{FULL, HomePaths, create_private, not_written};
use crate::setup::once::remove_left;
use crate::term::out::TerminalOutput;

/// The hint about runs without a store.
const WITHOUT: &str = "`--no-save` runs without keeping anything of it";

/// Makes the directory of the store, because it cannot be made behind the OS sandbox. With `no_save`, nothing
/// is needed.
pub(crate) fn make_ready(places: &HomePaths, no_save: bool) -> Result<(), Failure> {
    let made = create_private(&places.sessions_directory()).and_then(|()| places.gather_sessions());
    match made {
        // Files that agents hand over are written there too; writing one reports the fault.
        Ok(()) => Ok(()),
        Err(_) if no_save => Ok(()),
        Err(error) => {
            let path = places.sessions_directory();
            Err(not_written("create", &path, &error).with_hint(WITHOUT))
        }
    }
}

/// Makes the directory of the store, for a command that needs one.
pub(crate) fn make_sessions(places: &HomePaths) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(format!("failed to create `{}`: {error}", path.to_shown()))
    };
    let sessions = places.sessions_directory();
    create_private(&sessions).map_err(|error| failed(&sessions, error))?;
    places.gather_sessions().map_err(|error| failed(&places.store_path(), error))
}

pub(crate) async fn open_store(places: &HomePaths) -> Result<Store, Failure> {
    remove_left(&places.store_directory());
    let opened = Store::open(&places.store_path()).await;
    opened.map_err(|error| not_run(&error))
}

/// The failure of a run that could not be stored before its beginning.
pub(crate) fn not_begun(error: SessionError) -> Failure {
    not_run(&error)
}

/// The failure of a run that could not be stored, with hints.
fn not_run(error: &dyn std::error::Error) -> Failure {
    let why = format_error_chain(error);
    let failure = Failure::new(format!("nothing was run: {why}"));
    let failure = if why.contains(DISK_IS_FULL) { failure.with_hint(FULL) } else { failure };
    failure.with_hint(WITHOUT)
}

/// The words in SQLite's error for a full disk.
const DISK_IS_FULL: &str = "disk is full";

/// A run that is over, and its store, which is still to be closed.
pub(crate) struct SavedRun {
    store: Store,
    /// Whether the outcome is stored.
    ended: bool,
    /// The amount of the run's changes in overlays.
    changed: Option<ChangeStat>,
}

impl SavedRun {
    /// `unsaved`: the error if the outcome could not be stored; it is printed.
    pub(crate) fn new(
        store: Store,
        unsaved: Option<StoreError>,
        changed: Option<ChangeStat>,
        out: &TerminalOutput,
    ) -> Self {
        if let Some(error) = &unsaved {
            // Printed even with `--quiet`, because the printed outcome is the only copy.
            let why = format_error_chain(error);
            let hint = if why.contains(DISK_IS_FULL) { format!("; {FULL}") } else { String::new() };
            out.print_alarm(format_args!("the outcome of the run is not saved: {why}{hint}"));
        }
        Self { store, ended: unsaved.is_none(), changed }
    }

    /// The amount of the run's changes in overlays.
    pub(crate) fn change_stat(&self) -> Option<ChangeStat> {
        self.changed
    }

    /// Stores the paths of the run's files, deletes the oldest runs until `keep` are left (`None` = the
    /// default number), and closes the store.
    pub(crate) async fn close_run(
        self,
        outcome: &Outcome,
        keep: Option<u64>,
        out: &TerminalOutput,
    ) {
        if self.ended {
            conclude_session(&self.store, outcome.run.as_str(), outcome, keep, out).await;
        }
        self.store.close().await;
    }
}

/// Stores the paths of an ended run's files, and deletes the oldest runs until `keep` are left.
pub(crate) async fn conclude_session(
    store: &Store,
    session: &str,
    outcome: &Outcome,
    keep: Option<u64>,
    out: &TerminalOutput,
) {
    if let Err(error) = note_files(store, session, outcome).await {
        out.print_warning(format_args!(
            "where the files are is not saved: {}",
            format_error_chain(&error)
        ));
    }
    if let Err(error) = prune_runs(store, keep.unwrap_or(KEEP_RUNS)).await {
        out.print_warning(format_args!(
            "older runs are not removed: {}",
            format_error_chain(&error)
        ));
    }
}
