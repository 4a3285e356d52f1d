//! The changes of a session's overlay, as differences that the editor shows and the person decides about.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    Diff, PermissionOptionKind, SessionUpdate, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use belljar_changes::{ApplyOptions, Changes, FileChange, Node, Selection, Stat, Undone};
use belljar_policy::{GuestPath, Shown};
use belljar_session::{DirectoryReview, ReviewError, has_layers};
use serde_json::json;

use crate::ask::{Choice, choose};
use crate::door::{ACTOR, Connection, Door};
use crate::errors::{invalid, not_now, of_service};
use crate::limits::{MAX_DIFF, MAX_DIFFS, MAX_DIFFS_BYTES, MAX_NAMED, MAX_OFFERED, MAX_PATH_BYTES};
use crate::open::OpenSession;
use crate::tool_call;

/// The changes of all directories of a session.
#[derive(Default)]
struct Seen {
    stat: Stat,
    content: Vec<ToolCallContent>,
    locations: Vec<ToolCallLocation>,
    bytes: usize,
    /// The session's last event at that time.
    as_of: i64,
    /// Lines about files, after the differences.
    named: Vec<String>,
    /// The number of files that are not even named.
    unnamed: usize,
}

/// Shows the changes, if different from the last shown ones.
pub(crate) async fn show_new(door: &Arc<Door>, to: &Connection, session: &OpenSession) {
    if !has_layers(door.service.store(), &session.id) {
        return;
    }
    let seen = match look(door, &session.id, Vec::new()).await {
        Ok(seen) => seen,
        Err(error) => {
            tracing::warn!(target: "belljar::acp", "changes cannot be shown: {}", error.message);
            return;
        }
    };
    if session.shows(seen.stat) && !seen.content.is_empty() {
        door.send(to, &session.id, shown(door, seen)).await;
    }
}

/// `/changes`: shows the changes, also those that were shown before.
pub(crate) async fn show(
    door: &Arc<Door>,
    to: &Connection,
    session: &OpenSession,
    paths: Vec<String>,
) -> Result<String, Error> {
    let seen = look(door, &session.id, paths).await?;
    if seen.content.is_empty() {
        return Ok("Nothing is changed.".to_owned());
    }
    let text = format!("{}; `/apply` or `/discard` decides about it.", seen.stat);
    door.send(to, &session.id, shown(door, seen)).await;
    Ok(text)
}

/// `/apply`: applies changes to the workspace, once the person has seen them and agreed.
pub(crate) async fn apply(
    door: &Arc<Door>,
    to: &Connection,
    session: &OpenSession,
    paths: Vec<String>,
) -> Result<String, Error> {
    let seen = look(door, &session.id, paths.clone()).await?;
    if seen.content.is_empty() {
        return Ok("Nothing is changed.".to_owned());
    }
    let (as_of, run_later) = (seen.as_of, seen.stat.run_later);
    let also = format!("Apply, also {run_later} that would run later by themselves");
    let mut options = vec![("apply", "Apply to the workspace", PermissionOptionKind::AllowOnce)];
    if run_later > 0 {
        options.push(("all", &also, PermissionOptionKind::AllowOnce));
    }
    // INV-305: only a person's yes to these changes applies any.
    let chosen = decide(door, to, session, seen, ("apply", ToolKind::Edit), options).await?;
    let also_what_runs = match chosen.as_deref() {
        Some("apply") => false,
        Some("all") => true,
        Some(_) | None => return Ok("Nothing is applied.".to_owned()),
    };
    let options = ApplyOptions { also_what_runs, ..ApplyOptions::default() };
    let done = each(door, &session.id, Some(as_of), paths, move |place, selection| {
        let applied = place.review.apply(selection, &options)?;
        let done = [&applied.applied, &applied.merged, &applied.dropped];
        let changed = done.iter().any(|paths| !paths.is_empty());
        Ok(Done { changed, told: report(&place.guest, &applied) })
    });
    let done = done.await?;
    note(door, session, "changes_applied", &done);
    let _ = session.shows(Stat::default());
    Ok(told(done).join("\n"))
}

/// `/discard`: throws changes away, once the person has agreed.
pub(crate) async fn discard(
    door: &Arc<Door>,
    to: &Connection,
    session: &OpenSession,
    paths: Vec<String>,
) -> Result<String, Error> {
    let seen = look(door, &session.id, paths.clone()).await?;
    if seen.content.is_empty() {
        return Ok("Nothing is changed.".to_owned());
    }
    let as_of = seen.as_of;
    let options = vec![("discard", "Throw them away", PermissionOptionKind::AllowOnce)];
    let chosen = decide(door, to, session, seen, ("throw away", ToolKind::Delete), options).await?;
    if chosen.as_deref() != Some("discard") {
        return Ok("Nothing is thrown away.".to_owned());
    }
    let done = each(door, &session.id, Some(as_of), paths, |place, selection| {
        let gone = place.review.discard(selection)?.len();
        let told = format!("{gone} thrown away in {}; the workspace stays as it is.", place.guest);
        Ok(Done { changed: gone > 0, told })
    });
    let done = done.await?;
    note(door, session, "changes_discarded", &done);
    let _ = session.shows(Stat::default());
    Ok(told(done).join("\n"))
}

/// Shows the changes to decide about and asks for an option; a further option leaves all changes undecided.
/// `None` = no option was chosen.
async fn decide(
    door: &Door,
    to: &Connection,
    session: &OpenSession,
    seen: Seen,
    (what, kind): (&str, ToolKind),
    mut options: Vec<(&str, &str, PermissionOptionKind)>,
) -> Result<Option<String>, Error> {
    // INV-305: what was not shown was not agreed to.
    if seen.unnamed > 0 {
        return Err(not_now(format!(
            "{}, more than can be shown here: name some of them, like `/changes src`, or decide about \
             all of them by `belljar changes` and `belljar apply`",
            seen.stat
        )));
    }
    options.push(("no", "Leave them in the overlay", PermissionOptionKind::RejectOnce));
    let id = door.own_call(&what.replace(' ', "-"));
    let choice = |(word, name, kind): (&str, &str, _)| Choice {
        id: format!("{id}.{word}"),
        name: name.to_owned(),
        kind,
    };
    let choices = options.into_iter().map(choice).collect();
    let fields = ToolCallUpdateFields::new()
        .title(format!("{what} {}", seen.stat))
        .kind(kind)
        .status(ToolCallStatus::Pending)
        .content(seen.content)
        .locations(seen.locations);
    let chosen = choose(to, &session.id, ToolCallUpdate::new(id, fields), choices).await;
    Ok(chosen.ending().map(str::to_owned))
}

/// `/undo`: undoes the last apply.
pub(crate) async fn undo(door: &Arc<Door>, session: &OpenSession) -> Result<String, Error> {
    let done = each(door, &session.id, None, Vec::new(), |place, _| {
        Ok(match place.review.undo()? {
            Undone::Nothing => Done { changed: false, told: String::new() },
            Undone::TakenBack { restored: _, files } => {
                let noun = if files == 1 { "file" } else { "files" };
                let told = format!(
                    "Taken back: {files} {noun} of {}; the changes are in the overlay again.",
                    place.guest
                );
                Done { changed: true, told }
            }
            Undone::Refused { changed } => {
                let named = changed.iter().take(MAX_OFFERED).map(|path| shown_path(path));
                let named: Vec<String> = named.collect();
                let told =
                    format!("Nothing is taken back: changed since are {}.", named.join(", "));
                Done { changed: false, told }
            }
        })
    });
    let done = done.await?;
    note(door, session, "apply_undone", &done);
    let lines = told(done);
    if lines.is_empty() {
        return Ok("Nothing was applied that could be taken back.".to_owned());
    }
    Ok(lines.join("\n"))
}

/// A decision as carried out in one directory.
struct Done {
    /// True if the workspace or the changes differ from before.
    changed: bool,
    /// A line for the person; empty = none.
    told: String,
}

/// Writes the audit line of a decision. INV-413: a decision without an effect has no line.
fn note(door: &Door, session: &OpenSession, action: &str, done: &[Done]) {
    if done.iter().any(|done| done.changed) {
        door.service.audit(ACTOR, action, session.id.clone(), json!({"by": "acp"}));
    }
}

fn told(done: Vec<Done>) -> Vec<String> {
    done.into_iter().map(|done| done.told).filter(|told| !told.is_empty()).collect()
}

fn shown(door: &Door, seen: Seen) -> SessionUpdate {
    let title = format!("{} in the overlay; /apply puts them into the workspace", seen.stat);
    SessionUpdate::ToolCall(
        ToolCall::new(door.own_call("changes"), title)
            .kind(ToolKind::Edit)
            .status(ToolCallStatus::Completed)
            .content(seen.content)
            .locations(seen.locations),
    )
}

async fn look(door: &Arc<Door>, session: &str, paths: Vec<String>) -> Result<Seen, Error> {
    let selection = selection(&paths)?;
    let workspace = door.workspace().to_path_buf();
    // Read before the changes: if a turn runs in between, this number is too old, and a decision is refused.
    let as_of = door.service.store().last_event(session).await;
    let as_of = as_of.map_err(|error| of_service(&error.into()))?;
    let looked = door.service.review(session, None, move |review| {
        let mut seen = Seen { as_of, ..Seen::default() };
        for (place, changes) in review.changes()? {
            seen.take(place, &changes.only(&selection).counted()?, &workspace)?;
        }
        Ok(seen.whole())
    });
    looked.await.map_err(|error| of_service(&error))
}

/// Calls `work` for each directory with present or earlier changes. INV-270: `as_of` = the session's last
/// event at the time of the look.
async fn each(
    door: &Arc<Door>,
    session: &str,
    as_of: Option<i64>,
    paths: Vec<String>,
    work: impl Fn(&DirectoryReview, &Selection) -> Result<Done, ReviewError> + Send + 'static,
) -> Result<Vec<Done>, Error> {
    let selection = selection(&paths)?;
    let done = door.service.review(session, as_of, move |review| {
        review.places().iter().map(|place| work(place, &selection)).collect()
    });
    done.await.map_err(|error| of_service(&error))
}

/// INV-302: paths below the workspace, and no others.
fn selection(paths: &[String]) -> Result<Selection, Error> {
    if paths.is_empty() {
        return Ok(Selection::all());
    }
    let elsewhere = || invalid("name files by their paths below the workspace");
    let below = |path: &String| {
        let fits = path.len() <= MAX_PATH_BYTES;
        let path = path.strip_prefix("/workspace/").unwrap_or(path);
        fits.then(|| PathBuf::from(path)).ok_or_else(elsewhere)
    };
    let paths = paths.iter().map(below).collect::<Result<Vec<_>, _>>()?;
    Selection::paths(paths).map_err(|_| elsewhere())
}

fn report(guest: &GuestPath, applied: &belljar_changes::Applied) -> String {
    let mut text = format!("{} applied to {guest}", applied.files);
    text.push_str(if applied.can_be_undone() { "; `/undo` takes it back." } else { "." });
    for (path, conflict) in applied.conflicts.iter().take(MAX_OFFERED) {
        text.push_str(&format!("\nLeft: {}: {conflict}", shown_path(path)));
    }
    for (path, why) in applied.held_back.iter().take(MAX_OFFERED) {
        text.push_str(&format!("\nLeft: {}: {why}", shown_path(path)));
    }
    text
}

fn shown_path(path: &Path) -> String {
    format!("`{}`", Shown::new(&path.to_string_lossy()))
}

impl Seen {
    fn take(
        &mut self,
        place: &DirectoryReview,
        changes: &Changes,
        workspace: &Path,
    ) -> Result<(), ReviewError> {
        let stat = changes.stat();
        self.stat.files = self.stat.files.saturating_add(stat.files);
        self.stat.added = self.stat.added.saturating_add(stat.added);
        self.stat.removed = self.stat.removed.saturating_add(stat.removed);
        self.stat.run_later = self.stat.run_later.saturating_add(stat.run_later);
        self.stat.code = self.stat.code.saturating_add(stat.code);
        self.stat.conflicts = self.stat.conflicts.saturating_add(stat.conflicts);
        self.stat.uncounted = self.stat.uncounted.saturating_add(stat.uncounted);
        let root = match place.guest == GuestPath::workspace() {
            true => workspace,
            false => place.directory.as_path(),
        };
        for file in changes.files().iter().filter(|file| file.node != Node::Directory) {
            self.file(changes, file, root)?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        changes: &Changes,
        file: &FileChange,
        root: &Path,
    ) -> Result<(), ReviewError> {
        let place = root.join(&file.path);
        if self.locations.len() < MAX_DIFFS {
            self.locations.push(ToolCallLocation::new(place.clone()));
        }
        let in_room = self.content.len() < MAX_DIFFS;
        let texts = match in_room && self.bytes < MAX_DIFFS_BYTES {
            true => changes.texts_of(file)?,
            false => None,
        };
        let size = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let fits = texts.filter(|(old, new)| size(old).saturating_add(size(new)) <= MAX_DIFF);
        let mut words = Vec::new();
        match fits {
            Some((old, new)) => {
                self.bytes = self.bytes.saturating_add(size(&old)).saturating_add(size(&new));
                words.extend((new.is_none()).then(|| "deleted".to_owned()));
                let diff = Diff::new(place, new.unwrap_or_default()).old_text(old);
                self.content.push(ToolCallContent::Diff(diff));
            }
            None => words.push("changed, and not shown".to_owned()),
        }
        words.extend(file.runs_later.map(|why| format!("would run later: {why}")));
        words.extend(file.conflict.as_ref().map(ToString::to_string));
        if words.is_empty() {
            return Ok(());
        }
        let line = format!("{}: {}", shown_path(&file.path), words.join("; "));
        match in_room {
            true => self.content.push(tool_call::text(&line)),
            false if self.named.len() < MAX_NAMED => self.named.push(line),
            false => self.unnamed = self.unnamed.saturating_add(1),
        }
        Ok(())
    }

    /// The whole text, with the files that are only named.
    fn whole(mut self) -> Self {
        if self.unnamed > 0 {
            self.named.push(format!("and {} more, which are not named here", self.unnamed));
        }
        if !self.named.is_empty() {
            self.content.push(tool_call::text(&self.named.join("\n")));
        }
        self
    }
}
