//! Finds the session of a `changes`, `apply`, `discard` or `undo` command, and the changes selected by paths.

use std::path::{Path, PathBuf};

use belljar_overlay::{Changes, LayersError, PathSelection};
use belljar_policy::{GuestPath, ShownPath as _, ShownText, WORKSPACE, typed_path};
use belljar_session::{
    DirectoryReview, ReviewError, SessionReview, find_run, has_layers, newest_with_layers,
};
use belljar_store::{Store, StoreError, StoredSession};
use belljar_work::StopSignal;

use crate::args::server::TenantArg;
use crate::setup::data::{in_store, store_failure};
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::HomePaths;
use crate::setup::whose::{AgentOwner, part_of};

/// The paths that a person named, each as a mount and the path below it.
pub(crate) struct TypedPaths(Vec<(GuestPath, PathBuf)>);

/// A session, and the paths that a person named in it.
pub(crate) struct FoundSession {
    pub(crate) session: StoredSession,
    pub(crate) review: SessionReview,
    pub(crate) paths: TypedPaths,
}

impl TypedPaths {
    /// Parses paths: relative to the workspace, or as agents see them, for example `/workspace/src`.
    pub(crate) fn parse_paths(typed: &[String], review: &SessionReview) -> Result<Self, Failure> {
        let paths = typed.iter().map(|typed| parse_path(typed, review.changed_directories()));
        Ok(Self(paths.collect::<Result<_, _>>()?))
    }

    /// The selected paths in a directory; `None` = nothing in it is selected. Without any named path,
    /// everything is selected.
    pub(crate) fn select_or_all(
        &self,
        place: &DirectoryReview,
    ) -> Result<Option<PathSelection>, Failure> {
        if self.0.is_empty() {
            return Ok(Some(PathSelection::all()));
        }
        self.select_named(place)
    }

    /// As [`Self::select_or_all`], but without any named path nothing is selected.
    pub(crate) fn select_named(
        &self,
        place: &DirectoryReview,
    ) -> Result<Option<PathSelection>, Failure> {
        let here = self.0.iter().filter(|(guest, _)| *guest == place.guest);
        let here: Vec<&PathBuf> = here.map(|(_, path)| path).collect();
        if here.is_empty() {
            return Ok(None);
        }
        if here.iter().any(|path| path.as_os_str().is_empty()) {
            return Ok(Some(PathSelection::all()));
        }
        PathSelection::from_paths(here).map(Some).map_err(|error| Failure::usage(error.to_string()))
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The first named path without a change.
    fn unchanged_path(&self, all: &[(&DirectoryReview, Changes)]) -> Option<&Path> {
        let changed = |(guest, path): &&(GuestPath, PathBuf)| {
            let here = all.iter().filter(|(place, _)| place.guest == *guest);
            here.flat_map(|(_, changes)| changes.files()).any(|file| file.path.starts_with(path))
        };
        self.0.iter().find(|named| !changed(named)).map(|(_, path)| path.as_path())
    }

    /// Refuses a first word that matches no session, no run and no change, because the person means something
    /// else.
    pub(crate) fn all_found(&self, all: &[(&DirectoryReview, Changes)]) -> Result<(), Failure> {
        self.unchanged_path(all).map_or(Ok(()), |path| Err(no_such_change(path)))
    }

    /// Refuses a named path without a change, because the person means another one.
    pub(crate) fn all_changed(&self, all: &[(&DirectoryReview, Changes)]) -> Result<(), Failure> {
        match self.unchanged_path(all) {
            None => Ok(()),
            Some(path) => Err(Failure::usage(format!(
                "nothing that is to be applied lies at `{}`",
                path.to_shown()
            ))
            .with_hint("`belljar changes --stat` lists the changes")),
        }
    }
}

/// Parses one path into a mount and the path below it.
fn parse_path(typed: &str, places: &[DirectoryReview]) -> Result<(GuestPath, PathBuf), Failure> {
    let wrong = |why: &str| {
        Err(Failure::usage(format!("`{}` {why}", ShownText::clip_line(typed, 200)))
            .with_hint("name a path below the workspace, as `belljar changes --stat` shows it"))
    };
    // INV-560: parsed in the form in which lists show it, with escapes.
    let given = typed_path(typed);
    let mut found = (GuestPath::workspace(), given.clone());
    if given.is_absolute() {
        // An absolute path is first taken as an agent's, and otherwise as this machine's.
        let seen = places.iter().find_map(|place| {
            let below = given.strip_prefix(place.guest.as_str()).ok();
            let below = below.or_else(|| given.strip_prefix(&place.directory).ok())?;
            Some((place.guest.clone(), below.to_path_buf()))
        });
        match seen {
            Some(seen) => found = seen,
            None => return wrong("lies in no directory that this session changed"),
        }
    }
    let mut normal = PathBuf::new();
    for part in found.1.components() {
        match part {
            std::path::Component::Normal(name) => normal.push(name),
            std::path::Component::CurDir => {}
            _ => return wrong("leads out of its directory"),
        }
    }
    Ok((found.0, normal))
}

/// Opens the store of the operator or tenant, and runs `work` on it.
pub(crate) fn with_store<T>(
    of: &TenantArg,
    places: &HomePaths,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Sessions of the command line are in the home, even if a server uses another data root.
    let path = if of.is_named() { of.data_root(places)?.store_path() } else { places.store_path() };
    if !path.exists() {
        // If the tenant does not exist, the error says so first.
        AgentOwner::look_up(of, places)?;
        return Err(no_changes_failure(None));
    }
    in_store(&path, async |store| work(&part_of(of, store).await?).await)
}

/// Finds the named session, and the paths after its name. The first word is a session or a run if one
/// matches, otherwise a path.
pub(crate) async fn find_session(
    which: &[String],
    of: &TenantArg,
    places: &HomePaths,
    store: &Store,
) -> Result<FoundSession, Failure> {
    let (named, typed) = match which.split_first() {
        Some((first, rest)) => match session_by_name(first, store).await? {
            Some(session) => (Some(session), rest),
            None => (None, which),
        },
        None => (None, which),
    };
    let workspace = of.other_tenant().is_none().then_some(places.workspace.as_path());
    let session = match named {
        Some(session) => session,
        None => {
            let newest = newest_with_layers(store, workspace).await.map_err(store_failure)?;
            newest.ok_or_else(|| no_changes_failure(which.first().map(String::as_str)))?
        }
    };
    let review = open_review(store, &session.id)?;
    let paths = TypedPaths::parse_paths(typed, &review)?;
    Ok(FoundSession { session, review, paths })
}

/// Finds a session by its id, by a run's id, or by the beginning of one; `None` = there is none.
async fn session_by_name(word: &str, store: &Store) -> Result<Option<StoredSession>, Failure> {
    if word == "latest" {
        return Ok(None);
    }
    let found = match store.find_session(word).await {
        Ok(session) => Ok(Some(session)),
        Err(StoreError::NotFound { .. }) => match find_run(store, word).await {
            Ok(run) => Ok(Some((*run.state.session).clone())),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    found.map_err(store_failure)
}

/// Opens the changes of a session.
pub(crate) fn open_review(store: &Store, session: &str) -> Result<SessionReview, Failure> {
    if !has_layers(store, session) {
        return Err(Failure::new(format!("session `{session}` has changed nothing in an overlay"))
            .with_exit(CommandExit::Usage)
            .with_hint("an agent that is granted `read-write` writes to the workspace itself"));
    }
    // A signal ends this process, so nothing has to stop the work.
    open_until(store, session, &StopSignal::never_raised())
}

/// As [`open_review`], for work that ends when `stop` is raised.
pub(crate) fn open_until(
    store: &Store,
    session: &str,
    stop: &StopSignal,
) -> Result<SessionReview, Failure> {
    SessionReview::open(store, session, stop).map_err(review_failure)
}

/// The failure for a word that is neither a run nor a changed path.
fn no_such_change(path: &Path) -> Failure {
    Failure::usage(format!("there is no run, no session and no change `{}`", path.to_shown()))
        .with_hint("`belljar changes --stat` lists the changes, `belljar receipts` the runs")
}

/// The failure of opening changes, with a hint.
pub(crate) fn review_failure(error: ReviewError) -> Failure {
    let failure = Failure::new(format_error_chain(&error));
    match error {
        ReviewError::Busy(_) => failure.with_hint("wait until its turn has ended, or leave its chat"),
        ReviewError::Layers(LayersError::Moved(_)) => failure.with_hint(
            "put the directory back to its place; `belljar sessions rm` removes the session with its \
             changes",
        ),
        _ => failure,
    }
}

/// The failure if no session with changes was found.
fn no_changes_failure(word: Option<&str>) -> Failure {
    let failure = match word {
        Some(word) if word != "latest" => Failure::usage(format!(
            "there is no run or session `{}`",
            ShownText::clip_line(word, 64)
        ))
        .with_hint("and no run of this workspace changed anything in an overlay"),
        _ => Failure::usage("no run of this workspace changed anything in an overlay"),
    };
    failure.with_hint("`belljar receipts` lists the runs; `-C DIR` names another workspace")
}

/// A directory in messages: the workspace by its path on this machine, other mounts by their path for agents.
pub(crate) fn format_directory(place: &DirectoryReview) -> String {
    match place.guest.as_str() {
        WORKSPACE => format!("`{}`", place.directory.to_shown()),
        guest => format!("`{}` (seen at `{guest}`)", place.directory.to_shown()),
    }
}
