//! The changes of a session in its overlays: show, apply, discard, undo.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use belljar_overlay::{ApplyOptions, Changes, ChangesError, FileChange, FileDifference, NodeKind};
use belljar_overlay::{ChangeStat, PathSelection, UndoOutcome};
use belljar_policy::spelling::{parse_spelled, spell_name};
use belljar_policy::{GuestPath, ShownText};
use belljar_session::{DirectoryLook, DirectoryReview, ReviewError, ServiceError, SessionReview};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::HandlerContext;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::respond::{ChangeAnswer, JsonAnswer, JsonBody, PathOf, QueryOf};

/// The most changes in one answer. A decision about more of them must state their number.
const MAX_FILES: usize = 5_000;

/// The most bytes of a patch in an answer: 2 MiB.
const MAX_PATCH: usize = 2 << 20;

/// The most paths in the request of a decision.
const MAX_PATHS: usize = 5_000;

/// The query of `GET /v1/sessions/{id}/changes`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesQuery {
    path: Option<String>,
    patch: Option<bool>,
    skip: Option<usize>,
}

/// The changes of a session, by directory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionChanges {
    /// The id of the session's last event by now: whoever decides about what is shown here sends it as
    /// `as_of`.
    as_of: i64,
    places: Vec<PlaceBody>,
    /// The directories whose last apply `undo` may take back, as agents see them. One that has no
    /// changes any more is among them too.
    undoable: Vec<String>,
}

/// The changes to one directory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlaceBody {
    /// Where agents see the directory, like `/workspace`.
    path: String,
    /// Files that are changed.
    of: u64,
    /// Changes that there are, directories among them. `files` has at most 5,000: `skip` lists the
    /// others, and who decides about more than 5,000 at once says how many they are.
    entries: u64,
    /// Lines that are new, of the files whose lines were counted.
    added: u64,
    /// Lines that are gone, of the same.
    removed: u64,
    /// Files whose lines were not counted: those that are not in `files`, and those that were left after
    /// 10 seconds.
    uncounted: u64,
    /// An apply was interrupted, and a part of these changes may stand in the workspace by now. The next
    /// `apply`, `discard` or `undo` finishes it or takes it back; a look writes nothing.
    interrupted: bool,
    /// How many would run later by themselves.
    run_later: u64,
    /// How many changed in the workspace too, in a way that does not merge.
    conflicts: u64,
    /// First what would run later, then what is in conflict, then the others; each by path.
    files: Vec<ChangeBody>,
    /// With `patch=true`: what `git apply` takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    /// With `patch=true`: the same of files below `.git`, which `git apply` refuses. To be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_patch: Option<String>,
}

/// A file or directory that is not as in the workspace. Foreign text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangeBody {
    /// Below the directory.
    path: String,
    /// `added`, `modified`, `deleted`, `renamed` or `mode`.
    kind: &'static str,
    /// Where it was, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// Whether it is a directory.
    directory: bool,
    /// Whether lines cannot be counted: it is not text, or too large.
    binary: bool,
    /// Whether its lines were counted.
    counted: bool,
    /// Whether all lines between the first and the last difference count as replaced, because comparing
    /// them would take too long.
    replaced: bool,
    /// Lines that are new.
    added: u64,
    /// Lines that are gone.
    removed: u64,
    /// Why it would run later by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs_later: Option<&'static str>,
    /// Why it cannot be applied as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    conflict: Option<String>,
    /// Whether the workspace changed too, and both merge.
    merges: bool,
}

/// Which changes are put into the workspace.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyBody {
    /// Paths below `place`, each with all that is below it; absent or empty = all.
    paths: Option<Vec<String>>,
    /// The directory, as agents see it; absent = `/workspace`.
    place: Option<String>,
    /// Paths of which the agent's version counts where both changed.
    theirs: Option<Vec<String>>,
    /// Paths of which the workspace's version counts where both changed.
    mine: Option<Vec<String>>,
    /// Also what would run later by itself; absent = no.
    also_what_runs: Option<bool>,
    /// `as_of` of the changes that were looked at: where a turn has changed something since, nothing
    /// is done. Absent = whatever is there.
    as_of: Option<i64>,
    /// How many changes are meant, as `entries` of the list says; where there are others, nothing is
    /// done. Needed for more than 5,000, together with `as_of`.
    entries: Option<u64>,
}

/// Which changes are thrown away.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiscardBody {
    /// Paths below `place`, each with all that is below it; absent or empty = all.
    paths: Option<Vec<String>>,
    /// The directory, as agents see it; absent = `/workspace`.
    place: Option<String>,
    /// `as_of` of the changes that were looked at: where a turn has changed something since, nothing
    /// is done. Absent = whatever is there.
    as_of: Option<i64>,
    /// How many changes are meant, as `entries` of the list says; where there are others, nothing is
    /// done. Needed for more than 5,000, together with `as_of`.
    entries: Option<u64>,
}

/// The directory whose last apply is taken back.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoBody {
    /// The directory, as agents see it; absent = `/workspace`.
    place: Option<String>,
}

/// The result of an apply, by path.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct AppliedBody {
    /// In the workspace as the agent had them.
    applied: Vec<String>,
    /// In the workspace, merged with what had changed there.
    merged: Vec<String>,
    /// How many of both are files and links: the others are directories.
    files: u64,
    /// Kept as the workspace had them.
    dropped: Vec<String>,
    /// Those of them that an undo does not bring back.
    lost: Vec<String>,
    /// Left, because both changed.
    conflicts: Vec<LeftBody>,
    /// Left, because they would run later by themselves.
    held_back: Vec<LeftBody>,
}

/// A path that was left, and why.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeftBody {
    path: String,
    why: String,
}

/// Paths that were thrown away.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiscardedBody {
    discarded: Vec<String>,
}

/// Paths that are as they were before the last apply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UndoneBody {
    restored: Vec<String>,
    /// How many files and links that is, with those in directories that are back.
    files: u64,
}

/// `GET /v1/sessions/{id}/changes`: lists the files that agents changed in the session's overlays.
pub(crate) async fn read_changes(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    QueryOf(query): QueryOf<ChangesQuery>,
) -> Result<JsonAnswer<SessionChanges>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let paths: Vec<String> = query.path.into_iter().collect();
    let selection = parse_selection(&paths, "path")?.unwrap_or_else(PathSelection::all);
    let (with_patch, skip) = (query.patch == Some(true), query.skip.unwrap_or(0));
    // The event number is read before the changes: if a turn runs in between, the number is too old,
    // and a decision that states it is refused.
    let as_of = ctx.store().last_event(&session).await?;
    let places = ctx.service.look_at(&session, move |look| {
        let (mut places, mut undoable) = (Vec::new(), Vec::new());
        for mut place in look.list_changes()? {
            if place.has_applied {
                undoable.push(place.guest.to_string());
            }
            place.changes = place.changes.select_changes(&selection);
            if !place.changes.is_empty() {
                places.push(place_body(place, with_patch, skip)?);
            }
        }
        Ok((places, undoable))
    });
    let (places, undoable) = places.await?;
    let places = places.into_iter().collect::<Result<_, Problem>>()?;
    Ok(JsonAnswer(SessionChanges { as_of, places, undoable }))
}

/// `POST /v1/sessions/{id}/apply`: copies the selected changes of one directory from its overlay to the
/// workspace.
pub(crate) async fn apply_changes(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<ApplyBody>,
) -> Result<ChangeAnswer<AppliedBody>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let ApplyBody { paths, place, theirs, mine, also_what_runs, as_of, entries } = body;
    let selection =
        parse_selection(&paths.unwrap_or_default(), "paths")?.unwrap_or_else(PathSelection::all);
    let options = ApplyOptions {
        also_what_runs: also_what_runs == Some(true),
        theirs: self::parse_selection(&theirs.unwrap_or_default(), "theirs")?,
        mine: self::parse_selection(&mine.unwrap_or_default(), "mine")?,
    };
    let (place, seen) = (parse_guest_path(place)?, SeenChanges { as_of, entries });
    let applied = ctx.service.review_changes(&session, as_of, move |review| {
        let Some(place) = find_directory(review, &place) else { return Ok(None) };
        if let Err(problem) = seen.has_all(place, &selection)? {
            return Ok(Some(Err(problem)));
        }
        Ok(Some(Ok(place.review.apply_changes(&selection, &options)?)))
    });
    // The overlay of this directory has no changes, so nothing is applied.
    let Some(applied) = applied.await?.transpose()? else {
        return Ok(ChangeAnswer { body: AppliedBody::default(), changed: false });
    };
    let left = |path: &Path, why: String| LeftBody { path: format_path(path), why };
    let done = [&applied.applied, &applied.merged, &applied.dropped];
    let changed = done.iter().any(|paths| !paths.is_empty());
    let body = AppliedBody {
        applied: all_shown(&applied.applied),
        merged: all_shown(&applied.merged),
        files: applied.files as u64,
        dropped: all_shown(&applied.dropped),
        lost: all_shown(&applied.lost),
        conflicts: applied.conflicts.iter().map(|(at, why)| left(at, why.to_string())).collect(),
        held_back: applied.held_back.iter().map(|(at, why)| left(at, (*why).to_owned())).collect(),
    };
    Ok(ChangeAnswer { body, changed })
}

/// `POST /v1/sessions/{id}/discard`: drops the selected changes from the overlay.
pub(crate) async fn discard_changes(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<DiscardBody>,
) -> Result<ChangeAnswer<DiscardedBody>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let selection = parse_selection(&body.paths.unwrap_or_default(), "paths")?
        .unwrap_or_else(PathSelection::all);
    let place = parse_guest_path(body.place)?;
    let seen = SeenChanges { as_of: body.as_of, entries: body.entries };
    let discarded = ctx.service.review_changes(&session, body.as_of, move |review| {
        let Some(place) = find_directory(review, &place) else { return Ok(None) };
        if let Err(problem) = seen.has_all(place, &selection)? {
            return Ok(Some(Err(problem)));
        }
        Ok(Some(Ok(place.review.discard_changes(&selection)?)))
    });
    let discarded = discarded.await?.transpose()?.unwrap_or_default();
    let changed = !discarded.is_empty();
    Ok(ChangeAnswer { body: DiscardedBody { discarded: all_shown(&discarded) }, changed })
}

/// `POST /v1/sessions/{id}/undo`: reverses the last apply.
pub(crate) async fn undo_apply(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<UndoBody>,
) -> Result<ChangeAnswer<UndoneBody>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let place = parse_guest_path(body.place)?;
    let undone = ctx.service.review_changes(&session, None, move |review| {
        let Some(place) = find_directory(review, &place) else { return Ok(UndoOutcome::Nothing) };
        Ok(place.review.undo_apply()?)
    });
    match undone.await? {
        UndoOutcome::TakenBack { restored, files } => {
            let body = UndoneBody { restored: all_shown(&restored), files: files as u64 };
            Ok(ChangeAnswer { body, changed: true })
        }
        UndoOutcome::Nothing => {
            Ok(ChangeAnswer { body: UndoneBody { restored: Vec::new(), files: 0 }, changed: false })
        }
        UndoOutcome::Refused { changed } => {
            let first = changed.first().map_or_else(String::new, |path| format_path(path));
            let detail = format!("{} files have changed since, `{first}` first", changed.len());
            Err(Problem::new(ProblemKind::Taken, detail).with_hint("nothing was taken back"))
        }
    }
}

/// The list of changes that a person has seen before a decision, as stated in the request: the number
/// of the last event in `as_of`, and the number of changes in `entries`.
struct SeenChanges {
    as_of: Option<i64>,
    entries: Option<u64>,
}

impl SeenChanges {
    /// INV-270: a person decides only about changes that a list has shown. Returns a problem if the number of
    /// selected changes is not the stated `entries`, or if more than [`MAX_FILES`] changes, which no single
    /// list shows, are selected without both `entries` and `as_of`.
    fn has_all(
        &self,
        place: &DirectoryReview,
        selection: &PathSelection,
    ) -> Result<Result<(), Problem>, ReviewError> {
        let changes = place.review.list_names()?;
        let files = changes.files().iter();
        let there = files.filter(|file| selection.includes_path(&file.path)).count();
        let problem = match self.entries {
            Some(entries) if entries != there as u64 => Problem::new(
                ProblemKind::Changed,
                format!("there are {there} such changes, and not {entries}"),
            )
            .with_hint("nothing was done; look at them again"),
            None if there > MAX_FILES => uncounted_problem(there),
            Some(_) if there > MAX_FILES && self.as_of.is_none() => uncounted_problem(there),
            Some(_) | None => return Ok(Ok(())),
        };
        Ok(Err(problem))
    }
}

/// The problem when more changes are selected than one list shows, and the request lacks `entries` or
/// `as_of`.
fn uncounted_problem(there: usize) -> Problem {
    let detail = format!("these are {there} changes, more than one list shows; nothing was done");
    Problem::invalid(detail).with_hint(
        "read all of them, with `skip`, and send `entries` and `as_of` as the lists say; or name \
         fewer `paths`",
    )
}

fn find_directory<'a>(review: &'a SessionReview, guest: &GuestPath) -> Option<&'a DirectoryReview> {
    review.changed_directories().iter().find(|place| place.guest == *guest)
}

/// Parses the paths that a person selected for a decision; `None` if the list is empty, which selects
/// every change.
fn parse_selection(paths: &[String], field: &str) -> Result<Option<PathSelection>, Problem> {
    if paths.is_empty() {
        return Ok(None);
    }
    if paths.len() > MAX_PATHS {
        return Err(Problem::invalid(format!("`{field}` names more than {MAX_PATHS} paths")));
    }
    let selection = PathSelection::from_paths(paths.iter().map(|path| parse_spelled(path)));
    let wrong = |_| Problem::invalid(format!("`{field}` holds a path that leads elsewhere"));
    selection.map(Some).map_err(wrong)
}

fn parse_guest_path(place: Option<String>) -> Result<GuestPath, Problem> {
    let Some(place) = place else { return Ok(GuestPath::workspace()) };
    GuestPath::new(&place).map_err(|error| Problem::invalid(error.to_string()))
}

/// The answer about one directory. INV-410: counts the added and removed lines only of files that this
/// page shows.
fn place_body(
    place: DirectoryLook,
    with_patch: bool,
    skip: usize,
) -> Result<Result<PlaceBody, Problem>, ReviewError> {
    let DirectoryLook { guest, is_interrupted, has_applied: _, mut changes } = place;
    let listed: HashSet<PathBuf> =
        rank_changes(&changes).skip(skip).take(MAX_FILES).map(|file| file.path.clone()).collect();
    changes.count_lines(|file| listed.contains(&file.path))?;
    Ok(shown_place(&guest, &changes, is_interrupted, with_patch, skip))
}

/// Sorts changes: first those to files that would run later, for example a script, then those with a
/// conflict, then the others. A cut list keeps the first ones.
fn rank_changes(changes: &Changes) -> impl Iterator<Item = &FileChange> {
    let rank = |file: &&FileChange| match (file.runs_later, &file.conflict) {
        (Some(_), _) => 0,
        (None, Some(_)) => 1,
        (None, None) => 2,
    };
    let mut all: Vec<&FileChange> = changes.files().iter().collect();
    all.sort_by_key(rank);
    all.into_iter()
}

/// Converts the changes of one directory to an answer: sums, and the page of files after `skip`, with
/// patches if `with_patch` is true.
fn shown_place(
    guest: &GuestPath,
    changes: &Changes,
    interrupted: bool,
    with_patch: bool,
    skip: usize,
) -> Result<PlaceBody, Problem> {
    let ChangeStat { files, added, removed, uncounted, run_later, code: _, conflicts } =
        changes.change_stat();
    let patch = if with_patch { Some(text_of(|out| changes.write_patch(out))?) } else { None };
    let git_patch = match with_patch && changes.not_in_patch() > 0 {
        true => Some(text_of(|out| changes.patch_of_git(out))?),
        false => None,
    };
    Ok(PlaceBody {
        path: guest.to_string(),
        of: files as u64,
        entries: changes.files().len() as u64,
        added,
        removed,
        uncounted: uncounted as u64,
        interrupted,
        run_later: run_later as u64,
        conflicts: conflicts as u64,
        files: rank_changes(changes).skip(skip).take(MAX_FILES).map(change_body).collect(),
        patch,
        git_patch,
    })
}

/// Returns the text that `write` produces, or a problem if it is longer than [`MAX_PATCH`].
fn text_of(
    write: impl FnOnce(&mut PatchBuffer) -> Result<(), ChangesError>,
) -> Result<String, Problem> {
    let mut text = PatchBuffer(Vec::new());
    match write(&mut text) {
        Ok(()) => Ok(String::from_utf8_lossy(&text.0).into_owned()),
        Err(_) if text.0.len() >= MAX_PATCH => {
            Err(Problem::invalid("the patch is too large").with_hint("name a `path` of it"))
        }
        Err(error) => Err(error.into()),
    }
}

/// A buffer of at most [`MAX_PATCH`] bytes: a write beyond them fails.
struct PatchBuffer(Vec<u8>);

impl std::io::Write for PatchBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = MAX_PATCH.saturating_sub(self.0.len());
        let taken = bytes.get(..bytes.len().min(room)).unwrap_or_default();
        self.0.extend_from_slice(taken);
        match taken.len() == bytes.len() {
            true => Ok(taken.len()),
            false => Err(std::io::ErrorKind::FileTooLarge.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Converts the change of one file to an answer's form.
fn change_body(file: &FileChange) -> ChangeBody {
    let (kind, from) = match &file.kind {
        FileDifference::Added => ("added", None),
        FileDifference::Modified => ("modified", None),
        FileDifference::Deleted => ("deleted", None),
        FileDifference::Renamed { from, .. } => ("renamed", Some(format_path(from))),
        FileDifference::Mode => ("mode", None),
    };
    ChangeBody {
        path: format_path(&file.path),
        kind,
        from,
        directory: file.node == NodeKind::Directory,
        binary: file.binary,
        counted: file.counted,
        replaced: file.replaced,
        added: file.added,
        removed: file.removed,
        runs_later: file.runs_later,
        conflict: file.conflict.as_ref().map(ToString::to_string),
        merges: file.merges,
    }
}

/// INV-560: a file's path as text. Bytes that are not UTF-8 are escaped, for example `\xFF`, and a
/// request with the escaped path selects the same file.
fn format_path(path: &Path) -> String {
    spell_name(path.as_os_str()).into_owned()
}

fn all_shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| format_path(path)).collect()
}

impl From<ChangesError> for Problem {
    fn from(error: ChangesError) -> Self {
        match &error {
            ChangesError::ChangedMeanwhile { path } => {
                let path = format_path(path);
                let path = ShownText::clip_line(&path, 200);
                Self::new(ProblemKind::Taken, format!("`{path}` changed at this very moment"))
                    .with_hint("nothing was applied; send it again")
            }
            ChangesError::Stopped(_) => ServiceError::from(ReviewError::Changes(error)).into(),
            ChangesError::NotAPath(_)
            | ChangesError::TooMany(_)
            | ChangesError::TooLarge { .. } => Self::invalid(error.to_string()),
            ChangesError::Io { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                tracing::error!(target: "belljar::server", "{error}");
                Self::new(ProblemKind::Unavailable, "this server may not write to this workspace")
                    .with_hint(
                        "the operator of this server can let it: start it again as `belljar serve \
                     --apply`; or `belljar apply SESSION` on its machine does the same now",
                    )
            }
            // These errors name files of the host, which a remote caller must not see; so the caller
            // reads only that the server failed.
            ChangesError::Io { .. } | ChangesError::Overlay(_) | ChangesError::Journal { .. } => {
                Self::bug(&error.to_string())
            }
        }
    }
}

impl From<ReviewError> for Problem {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Busy(session) => Self::session_busy(&session),
            ReviewError::Changes(error) => error.into(),
            ReviewError::Store(error) => error.into(),
            // These errors name files of the host, which a remote caller must not see.
            error @ (ReviewError::Lock { .. } | ReviewError::Layers(_)) => {
                Self::bug(&error.to_string())
            }
        }
    }
}
