//! Finds the session, and the selected changes.

use std::path::{Path, PathBuf};

use belljar_agent::LayersError;
use belljar_changes::{Changes, Selection};
use belljar_policy::{GuestPath, Shown, ShownPath as _, WORKSPACE, typed_path};
use belljar_session::{
    DirectoryReview, ReviewError, SessionReview, find_run, has_layers, newest_with_layers,
};
use belljar_store::{Store, StoreError, StoredSession};
use belljar_work::StopSignal;

use crate::args::server::TenantArg;
use crate::setup::data::{failed, in_store};
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::Places;
use crate::setup::whose::{Whose, part_of};

/// The paths named by a person, by directory.
pub(crate) struct Paths(Vec<(GuestPath, PathBuf)>);

/// A session with the selection of its changes.
pub(crate) struct Found {
    pub(crate) session: StoredSession,
    pub(crate) review: SessionReview,
    pub(crate) paths: Paths,
}

impl Paths {
    /// Parses typed paths: below the workspace, or as agents see them, for example `/workspace/src`.
    pub(crate) fn read(typed: &[String], review: &SessionReview) -> Result<Self, Failure> {
        let paths = typed.iter().map(|typed| path(typed, review.places()));
        Ok(Self(paths.collect::<Result<_, _>>()?))
    }

    /// The selection of a directory; `None` = nothing of it. No path at all is everything.
    pub(crate) fn of(&self, place: &DirectoryReview) -> Result<Option<Selection>, Failure> {
        if self.0.is_empty() {
            return Ok(Some(Selection::all()));
        }
        self.named(place)
    }

    /// The same where no path at all is nothing.
    pub(crate) fn named(&self, place: &DirectoryReview) -> Result<Option<Selection>, Failure> {
        let here = self.0.iter().filter(|(guest, _)| *guest == place.guest);
        let here: Vec<&PathBuf> = here.map(|(_, path)| path).collect();
        if here.is_empty() {
            return Ok(None);
        }
        if here.iter().any(|path| path.as_os_str().is_empty()) {
            return Ok(Some(Selection::all()));
        }
        Selection::paths(here).map(Some).map_err(|error| Failure::usage(error.to_string()))
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// The first path at which nothing is changed.
    fn unchanged(&self, all: &[(&DirectoryReview, Changes)]) -> Option<&Path> {
        let changed = |(guest, path): &&(GuestPath, PathBuf)| {
            let here = all.iter().filter(|(place, _)| place.guest == *guest);
            here.flat_map(|(_, changes)| changes.files()).any(|file| file.path.starts_with(path))
        };
        self.0.iter().find(|named| !changed(named)).map(|(_, path)| path.as_path())
    }

    /// Refuses a word that matches no change, because the person means another one.
    pub(crate) fn all_found(&self, all: &[(&DirectoryReview, Changes)]) -> Result<(), Failure> {
        self.unchanged(all).map_or(Ok(()), |path| Err(no_such_change(path)))
    }

    /// Refuses a path without a change, because the person means another one.
    pub(crate) fn all_changed(&self, all: &[(&DirectoryReview, Changes)]) -> Result<(), Failure> {
        match self.unchanged(all) {
            None => Ok(()),
            Some(path) => Err(Failure::usage(format!(
                "nothing that is to be applied lies at `{}`",
                path.shown()
            ))
            .hint("`belljar changes --stat` lists the changes")),
        }
    }
}

fn path(typed: &str, places: &[DirectoryReview]) -> Result<(GuestPath, PathBuf), Failure> {
    let wrong = |why: &str| {
        Err(Failure::usage(format!("`{}` {why}", Shown::clipped(typed, 200)))
            .hint("name a path below the workspace, as `belljar changes --stat` shows it"))
    };
    // INV-560: as the list shows it, escapes included.
    let given = typed_path(typed);
    let mut found = (GuestPath::workspace(), given.clone());
    if given.is_absolute() {
        // As an agent's path, otherwise as this machine's.
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

/// Opens the store of whoever is meant, for as long as `work` takes.
pub(crate) fn with_store<T>(
    of: &TenantArg,
    places: &Places,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Sessions of the command line are in the home, even if a server has another data root.
    let path = if of.is_named() { of.root(places)?.store() } else { places.store() };
    if !path.exists() {
        // A tenant that is not there is told first.
        Whose::find(of, places)?;
        return Err(nothing(None));
    }
    in_store(&path, async |store| work(&part_of(of, store).await?).await)
}

/// The named session, with the paths after its name. The first word is a session or a run if one matches,
/// otherwise a path.
pub(crate) async fn find(
    which: &[String],
    of: &TenantArg,
    places: &Places,
    store: &Store,
) -> Result<Found, Failure> {
    let (named, typed) = match which.split_first() {
        Some((first, rest)) => match named(first, store).await? {
            Some(session) => (Some(session), rest),
            None => (None, which),
        },
        None => (None, which),
    };
    let workspace = of.other().is_none().then_some(places.workspace.as_path());
    let session = match named {
        Some(session) => session,
        None => {
            let newest = newest_with_layers(store, workspace).await.map_err(failed)?;
            newest.ok_or_else(|| nothing(which.first().map(String::as_str)))?
        }
    };
    let review = open(store, &session.id)?;
    let paths = Paths::read(typed, &review)?;
    Ok(Found { session, review, paths })
}

async fn named(word: &str, store: &Store) -> Result<Option<StoredSession>, Failure> {
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
    found.map_err(failed)
}

/// Opens the changes of a session.
pub(crate) fn open(store: &Store, session: &str) -> Result<SessionReview, Failure> {
    if !has_layers(store, session) {
        return Err(Failure::new(format!("session `{session}` has changed nothing in an overlay"))
            .exit(Exit::Usage)
            .hint("an agent that is granted `read-write` writes to the workspace itself"));
    }
    // A signal ends the process of the command: it is caught nowhere here.
    open_until(store, session, &StopSignal::never())
}

/// As [`open`], for work that ends when the signal is raised.
pub(crate) fn open_until(
    store: &Store,
    session: &str,
    stop: &StopSignal,
) -> Result<SessionReview, Failure> {
    SessionReview::open(store, session, stop).map_err(refused)
}

/// The failure for a word that is neither a run nor a changed path.
fn no_such_change(path: &Path) -> Failure {
    Failure::usage(format!("there is no run, no session and no change `{}`", path.shown()))
        .hint("`belljar changes --stat` lists the changes, `belljar receipts` the runs")
}

/// Why changes cannot be looked at, with what to do.
pub(crate) fn refused(error: ReviewError) -> Failure {
    let failure = Failure::new(chain(&error));
    match error {
        ReviewError::Busy(_) => failure.hint("wait until its turn has ended, or leave its chat"),
        ReviewError::Layers(LayersError::Moved(_)) => failure.hint(
            "put the directory back to its place; `belljar sessions rm` removes the session with its \
             changes",
        ),
        _ => failure,
    }
}

fn nothing(word: Option<&str>) -> Failure {
    let failure = match word {
        Some(word) if word != "latest" => {
            Failure::usage(format!("there is no run or session `{}`", Shown::clipped(word, 64)))
                .hint("and no run of this workspace changed anything in an overlay")
        }
        _ => Failure::usage("no run of this workspace changed anything in an overlay"),
    };
    failure.hint("`belljar receipts` lists the runs; `-C DIR` names another workspace")
}

/// A directory, for a person: the workspace by its path here.
pub(crate) fn shown(place: &DirectoryReview) -> String {
    match place.guest.as_str() {
        WORKSPACE => format!("`{}`", place.directory.shown()),
        guest => format!("`{}` (seen at `{guest}`)", place.directory.shown()),
    }
}
