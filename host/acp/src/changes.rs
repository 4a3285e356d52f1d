//! The changes in a session's overlay: shown to the editor as differences, and decided about by the person.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    Diff, PermissionOptionKind, SessionUpdate, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use belljar_overlay::{
    ApplyOptions, ChangeStat, Changes, FileChange, NodeKind, PathSelection, UndoOutcome,
};
use belljar_policy::{GuestPath, ShownText};
use belljar_session::{DirectoryReview, ReviewError, has_layers};
use serde_json::json;

use crate::ask::{QuestionOption, ask_choice};
use crate::door::{ACTOR, AcpDoor, Connection};
use crate::errors::{error_from_service, invalid_parameter, not_now};
use crate::limits::{MAX_DIFF, MAX_DIFFS, MAX_DIFFS_BYTES, MAX_NAMED, MAX_OFFERED, MAX_PATH_BYTES};
use crate::open::OpenSession;
use crate::tool_call;

/// The changes in all directories of a session, as they are shown.
#[derive(Default)]
struct SeenChanges {
    stat: ChangeStat,
    content: Vec<ToolCallContent>,
    locations: Vec<ToolCallLocation>,
    bytes: usize,
    /// The number of the session's last event when the changes were read.
    as_of: i64,
    /// Lines about files whose differences are not shown.
    named: Vec<String>,
    /// The number of files that are not even named.
    unnamed: usize,
}

/// Shows the changes, if they differ from those shown last.
pub(crate) async fn show_new(door: &Arc<AcpDoor>, to: &Connection, session: &OpenSession) {
    if !has_layers(door.service.store(), &session.id) {
        return;
    }
    let seen = match read_changes(door, &session.id, Vec::new()).await {
        Ok(seen) => seen,
        Err(error) => {
            tracing::warn!(target: "belljar::acp", "changes cannot be shown: {}", error.message);
            return;
        }
    };
    if session.record_shown(seen.stat) && !seen.content.is_empty() {
        door.send_update(to, &session.id, changes_update(door, seen)).await;
    }
}

/// The command `/changes`: shows the changes, even if they were shown before.
pub(crate) async fn show_changes(
    door: &Arc<AcpDoor>,
    to: &Connection,
    session: &OpenSession,
    paths: Vec<String>,
) -> Result<String, Error> {
    let seen = read_changes(door, &session.id, paths).await?;
    if seen.content.is_empty() {
        return Ok("Nothing is changed.".to_owned());
    }
    let text = format!("{}; `/apply` or `/discard` decides about it.", seen.stat);
    door.send_update(to, &session.id, changes_update(door, seen)).await;
    Ok(text)
}

/// The command `/apply`: applies changes to the workspace, after the person has seen them and agreed.
pub(crate) async fn apply_changes(
    door: &Arc<AcpDoor>,
    to: &Connection,
    session: &OpenSession,
    paths: Vec<String>,
) -> Result<String, Error> {
    let seen = read_changes(door, &session.id, paths.clone()).await?;
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
    let chosen = ask_decision(door, to, session, seen, ("apply", ToolKind::Edit), options).await?;
    let also_what_runs = match chosen.as_deref() {
        Some("apply") => false,
        Some("all") => true,
        Some(_) | None => return Ok("Nothing is applied.".to_owned()),
    };
    let options = ApplyOptions { also_what_runs, ..ApplyOptions::default() };
    let done = decide_each(door, &session.id, Some(as_of), paths, move |place, selection| {
        let applied = place.review.apply_changes(selection, &options)?;
        let done = [&applied.applied, &applied.merged, &applied.dropped];
        let changed = done.iter().any(|paths| !paths.is_empty());
        Ok(DecisionResult { changed, told: format_report(&place.guest, &applied) })
    });
    let done = done.await?;
    note_decision(door, session, "changes_applied", &done);
    let _ = session.record_shown(ChangeStat::default());
    Ok(result_lines(done).join("\n"))
}

/// The command `/discard`: drops changes, after the person has agreed.
pub(crate) async fn discard_changes(
    door: &Arc<AcpDoor>,
    to: &Connection,
    session: &OpenSession,
    paths: Vec<String>,
) -> Result<String, Error> {
    let seen = read_changes(door, &session.id, paths.clone()).await?;
    if seen.content.is_empty() {
        return Ok("Nothing is changed.".to_owned());
    }
    let as_of = seen.as_of;
    let options = vec![("discard", "Throw them away", PermissionOptionKind::AllowOnce)];
    let chosen =
        ask_decision(door, to, session, seen, ("throw away", ToolKind::Delete), options).await?;
    if chosen.as_deref() != Some("discard") {
        return Ok("Nothing is thrown away.".to_owned());
    }
    let done = decide_each(door, &session.id, Some(as_of), paths, |place, selection| {
        let gone = place.review.discard_changes(selection)?.len();
        let told = format!("{gone} thrown away in {}; the workspace stays as it is.", place.guest);
        Ok(DecisionResult { changed: gone > 0, told })
    });
    let done = done.await?;
    note_decision(door, session, "changes_discarded", &done);
    let _ = session.record_shown(ChangeStat::default());
    Ok(result_lines(done).join("\n"))
}

/// Shows the changes, and asks the person for one of the options. `None` = no option was chosen, and nothing
/// is changed.
async fn ask_decision(
    door: &AcpDoor,
    to: &Connection,
    session: &OpenSession,
    seen: SeenChanges,
    (what, kind): (&str, ToolKind),
    mut options: Vec<(&str, &str, PermissionOptionKind)>,
) -> Result<Option<String>, Error> {
    // INV-305: a person cannot agree to changes that were not shown.
    if seen.unnamed > 0 {
        return Err(not_now(format!(
            "{}, more than can be shown here: name some of them, like `/changes src`, or decide about \
             all of them by `belljar changes` and `belljar apply`",
            seen.stat
        )));
    }
    options.push(("no", "Leave them in the overlay", PermissionOptionKind::RejectOnce));
    let id = door.own_call(&what.replace(' ', "-"));
    let choice = |(word, name, kind): (&str, &str, _)| QuestionOption {
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
    let chosen = ask_choice(to, &session.id, ToolCallUpdate::new(id, fields), choices).await;
    Ok(chosen.option_word().map(str::to_owned))
}

/// The command `/undo`: reverses the last apply.
pub(crate) async fn undo_apply(
    door: &Arc<AcpDoor>,
    session: &OpenSession,
) -> Result<String, Error> {
    let done = decide_each(door, &session.id, None, Vec::new(), |place, _| {
        Ok(match place.review.undo_apply()? {
            UndoOutcome::Nothing => DecisionResult { changed: false, told: String::new() },
            UndoOutcome::TakenBack { restored: _, files } => {
                let noun = if files == 1 { "file" } else { "files" };
                let told = format!(
                    "Taken back: {files} {noun} of {}; the changes are in the overlay again.",
                    place.guest
                );
                DecisionResult { changed: true, told }
            }
            UndoOutcome::Refused { changed } => {
                let named = changed.iter().take(MAX_OFFERED).map(|path| shown_path(path));
                let named: Vec<String> = named.collect();
                let told =
                    format!("Nothing is taken back: changed since are {}.", named.join(", "));
                DecisionResult { changed: false, told }
            }
        })
    });
    let done = done.await?;
    note_decision(door, session, "apply_undone", &done);
    let lines = result_lines(done);
    if lines.is_empty() {
        return Ok("Nothing was applied that could be taken back.".to_owned());
    }
    Ok(lines.join("\n"))
}

/// The effect of a decision in one directory.
struct DecisionResult {
    /// True if the workspace or the changes differ from before.
    changed: bool,
    /// A line for the person; empty if there is nothing to tell.
    told: String,
}

/// Writes a decision to the audit log. INV-413: a decision without an effect gets no line.
fn note_decision(door: &AcpDoor, session: &OpenSession, action: &str, done: &[DecisionResult]) {
    if done.iter().any(|done| done.changed) {
        door.service.record_audit(ACTOR, action, session.id.clone(), json!({"by": "acp"}));
    }
}

fn result_lines(done: Vec<DecisionResult>) -> Vec<String> {
    done.into_iter().map(|done| done.told).filter(|told| !told.is_empty()).collect()
}

/// The update that shows the changes, as a tool call with differences.
fn changes_update(door: &AcpDoor, seen: SeenChanges) -> SessionUpdate {
    let title = format!("{} in the overlay; /apply puts them into the workspace", seen.stat);
    SessionUpdate::ToolCall(
        ToolCall::new(door.own_call("changes"), title)
            .kind(ToolKind::Edit)
            .status(ToolCallStatus::Completed)
            .content(seen.content)
            .locations(seen.locations),
    )
}

/// Reads the changes of all directories, for the selected paths.
async fn read_changes(
    door: &Arc<AcpDoor>,
    session: &str,
    paths: Vec<String>,
) -> Result<SeenChanges, Error> {
    let selection = parse_selection(&paths)?;
    let workspace = door.workspace().to_path_buf();
    // The event number is read before the changes: if a turn runs in between, the number is too old, and a
    // decision is refused.
    let as_of = door.service.store().last_event(session).await;
    let as_of = as_of.map_err(|error| error_from_service(&error.into()))?;
    let looked = door.service.review_changes(session, None, move |review| {
        let mut seen = SeenChanges { as_of, ..SeenChanges::default() };
        for (place, changes) in review.list_changes()? {
            seen.add_changes(
                place,
                &changes.select_changes(&selection).with_line_counts()?,
                &workspace,
            )?;
        }
        Ok(seen.with_named_files())
    });
    looked.await.map_err(|error| error_from_service(&error))
}

/// Calls `work` for each directory that has or had changes. INV-270: `as_of` is the number of the session's
/// last event when the person saw the changes.
async fn decide_each(
    door: &Arc<AcpDoor>,
    session: &str,
    as_of: Option<i64>,
    paths: Vec<String>,
    work: impl Fn(&DirectoryReview, &PathSelection) -> Result<DecisionResult, ReviewError>
    + Send
    + 'static,
) -> Result<Vec<DecisionResult>, Error> {
    let selection = parse_selection(&paths)?;
    let done = door.service.review_changes(session, as_of, move |review| {
        review.changed_directories().iter().map(|place| work(place, &selection)).collect()
    });
    done.await.map_err(|error| error_from_service(&error))
}

/// INV-302: parses paths, which must be below the workspace.
fn parse_selection(paths: &[String]) -> Result<PathSelection, Error> {
    if paths.is_empty() {
        return Ok(PathSelection::all());
    }
    let elsewhere = || invalid_parameter("name files by their paths below the workspace");
    let below = |path: &String| {
        let fits = path.len() <= MAX_PATH_BYTES;
        let path = path.strip_prefix("/workspace/").unwrap_or(path);
        fits.then(|| PathBuf::from(path)).ok_or_else(elsewhere)
    };
    let paths = paths.iter().map(below).collect::<Result<Vec<_>, _>>()?;
    PathSelection::from_paths(paths).map_err(|_| elsewhere())
}

fn format_report(guest: &GuestPath, applied: &belljar_overlay::AppliedChanges) -> String {
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
    format!("`{}`", ShownText::new(&path.to_string_lossy()))
}

impl SeenChanges {
    /// Adds the changes of one directory to the sums, and each changed file to what is shown.
    fn add_changes(
        &mut self,
        place: &DirectoryReview,
        changes: &Changes,
        workspace: &Path,
    ) -> Result<(), ReviewError> {
        let stat = changes.change_stat();
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
        for file in changes.files().iter().filter(|file| file.node != NodeKind::Directory) {
            self.add_file(changes, file, root)?;
        }
        Ok(())
    }

    /// Adds one file: its difference if there is room, and a line if it was not shown, would run later, or
    /// has a conflict.
    fn add_file(
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
            true => self.content.push(tool_call::text_content(&line)),
            false if self.named.len() < MAX_NAMED => self.named.push(line),
            false => self.unnamed = self.unnamed.saturating_add(1),
        }
        Ok(())
    }

    /// Adds a text with the files that are only named.
    fn with_named_files(mut self) -> Self {
        if self.unnamed > 0 {
            self.named.push(format!("and {} more, which are not named here", self.unnamed));
        }
        if !self.named.is_empty() {
            self.content.push(tool_call::text_content(&self.named.join("\n")));
        }
        self
    }
}
