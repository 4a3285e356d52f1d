//! The store during runs: opened before anything is paid for, and closed when the outcome is stored and old
//! runs are deleted.

use std::path::Path;

use belljar_agent::Outcome;
use belljar_changes::Stat;
use belljar_policy::ShownPath as _;
use belljar_session::{KEEP_RUNS, SessionError, note_files, prune_runs};
use belljar_store::{Store, StoreError};

use crate::setup::exit::{Failure, chain};
use crate::setup::home::{FULL, Places, create_private, not_written};
use crate::setup::once::remove_left;
use crate::term::out::Out;

/// How a run is made that needs no store.
const WITHOUT: &str = "`--no-save` runs without keeping anything of it";

/// Makes the directory of the store. Behind the wall it could not be made.
pub(crate) fn make_ready(places: &Places, no_save: bool) -> Result<(), Failure> {
    let made = create_private(&places.sessions()).and_then(|()| places.gather_sessions());
    match made {
        // Files from agents go there too; writing one reports the fault.
        Ok(()) => Ok(()),
        Err(_) if no_save => Ok(()),
        Err(error) => {
            let path = places.sessions();
            Err(not_written("create", &path, &error).hint(WITHOUT))
        }
    }
}

/// The same where nothing goes without a store.
pub(crate) fn make_sessions(places: &Places) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(format!("failed to create `{}`: {error}", path.shown()))
    };
    let sessions = places.sessions();
    create_private(&sessions).map_err(|error| failed(&sessions, error))?;
    places.gather_sessions().map_err(|error| failed(&places.store(), error))
}

pub(crate) async fn open(places: &Places) -> Result<Store, Failure> {
    remove_left(&places.store_directory());
    let opened = Store::open(&places.store()).await;
    opened.map_err(|error| not_run(&error))
}

/// The failure of a run that could not be stored before its beginning.
pub(crate) fn not_begun(error: SessionError) -> Failure {
    not_run(&error)
}

fn not_run(error: &dyn std::error::Error) -> Failure {
    let why = chain(error);
    let failure = Failure::new(format!("nothing was run: {why}"));
    let failure = if why.contains(DISK_IS_FULL) { failure.hint(FULL) } else { failure };
    failure.hint(WITHOUT)
}

/// How SQLite says it.
const DISK_IS_FULL: &str = "disk is full";

/// An ended run, with its store.
pub(crate) struct Saved {
    store: Store,
    ended: bool,
    changed: Option<Stat>,
}

impl Saved {
    /// `unsaved`: why its outcome is not in the store.
    pub(crate) fn new(
        store: Store,
        unsaved: Option<StoreError>,
        changed: Option<Stat>,
        out: &Out,
    ) -> Self {
        if let Some(error) = &unsaved {
            // Even with `--quiet`, because the printed outcome is the only copy.
            let why = chain(error);
            let hint = if why.contains(DISK_IS_FULL) { format!("; {FULL}") } else { String::new() };
            out.alarm(format_args!("the outcome of the run is not saved: {why}{hint}"));
        }
        Self { store, ended: unsaved.is_none(), changed }
    }

    /// How much it changed in overlays.
    pub(crate) fn changed(&self) -> Option<Stat> {
        self.changed
    }

    /// Notes where its files are, removes the oldest runs past `keep` (absent = the default), and
    /// closes the store.
    pub(crate) async fn close(self, outcome: &Outcome, keep: Option<u64>, out: &Out) {
        if self.ended {
            conclude(&self.store, outcome.run.as_str(), outcome, keep, out).await;
        }
        self.store.close().await;
    }
}

/// Notes where the files of a run are that has ended, and removes the oldest runs past `keep`.
pub(crate) async fn conclude(
    store: &Store,
    session: &str,
    outcome: &Outcome,
    keep: Option<u64>,
    out: &Out,
) {
    if let Err(error) = note_files(store, session, outcome).await {
        out.warning(format_args!("where the files are is not saved: {}", chain(&error)));
    }
    if let Err(error) = prune_runs(store, keep.unwrap_or(KEEP_RUNS)).await {
        out.warning(format_args!("older runs are not removed: {}", chain(&error)));
    }
}
