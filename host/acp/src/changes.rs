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
use belljar_session::{Place, ReviewError, has_layers};
use serde_json::json;

use crate::ask::{Choice, choose};
use crate::door::{ACTOR, Connection, Door};
use crate::errors::{invalid, of_service};
use crate::limits::{MAX_DIFF, MAX_DIFFS, MAX_DIFFS_BYTES, MAX_OFFERED, MAX_PATH_BYTES};
use crate::open::OpenSession;
use crate::tool_call;

/// The changes of all directories of a session.
#[derive(Default)]
struct Seen {
    stat: Stat,
    content: Vec<ToolCallContent>,
    locations: Vec<ToolCallLocation>,
    bytes: usize,
}

/// Shows the changes, if they are others than those that were shown last.
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

/// `/changes`: shows them in any case.
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

/// `/apply`: puts changes into the workspace, once the person has seen them and agreed.
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
    let run_later = seen.stat.run_later;
    let id = door.own_call("apply");
    let choice = |word: &str, name: &str, kind| Choice {
        id: format!("{id}.{word}"),
        name: name.to_owned(),
        kind,
    };
    let mut choices =
        vec![choice("apply", "Apply to the workspace", PermissionOptionKind::AllowOnce)];
    if run_later > 0 {
        let name = format!("Apply, also {run_later} that would run later by themselves");
        choices.push(choice("all", &name, PermissionOptionKind::AllowOnce));
    }
    choices.push(choice("no", "Leave them in the overlay", PermissionOptionKind::RejectOnce));
    let fields = ToolCallUpdateFields::new()
        .title(format!("apply {}", seen.stat))
        .kind(ToolKind::Edit)
        .status(ToolCallStatus::Pending)
        .content(seen.content)
        .locations(seen.locations);
    // INV-305: only a person's yes to these changes applies any.
    let chosen = choose(to, &session.id, ToolCallUpdate::new(id, fields), choices).await;
    let also_what_runs = match chosen.as_deref().and_then(|id| id.rsplit('.').next()) {
        Some("apply") => false,
        Some("all") => true,
        Some(_) | None => return Ok("Nothing is applied.".to_owned()),
    };
    let options = ApplyOptions { also_what_runs, ..ApplyOptions::default() };
    let done = each(door, &session.id, paths, move |place, selection| {
        Ok(report(&place.guest, &place.review.apply(selection, &options)?))
    });
    let lines = done.await?;
    door.service.audit(ACTOR, "changes_applied", session.id.clone(), json!({"by": "acp"}));
    let _ = session.shows(Stat::default());
    Ok(lines.join("\n"))
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
    let id = door.own_call("discard");
    let choice = |word: &str, name: &str, kind| Choice {
        id: format!("{id}.{word}"),
        name: name.to_owned(),
        kind,
    };
    let choices = vec![
        choice("discard", "Throw them away", PermissionOptionKind::AllowOnce),
        choice("no", "Leave them in the overlay", PermissionOptionKind::RejectOnce),
    ];
    let fields = ToolCallUpdateFields::new()
        .title(format!("throw away {}", seen.stat))
        .kind(ToolKind::Delete)
        .status(ToolCallStatus::Pending)
        .content(seen.content);
    let chosen = choose(to, &session.id, ToolCallUpdate::new(id, fields), choices).await;
    if !chosen.is_some_and(|id| id.ends_with(".discard")) {
        return Ok("Nothing is thrown away.".to_owned());
    }
    let done = each(door, &session.id, paths, |place, selection| {
        let gone = place.review.discard(selection)?.len();
        Ok(format!("{gone} thrown away in {}; the workspace stays as it is.", place.guest))
    });
    let lines = done.await?;
    door.service.audit(ACTOR, "changes_discarded", session.id.clone(), json!({"by": "acp"}));
    let _ = session.shows(Stat::default());
    Ok(lines.join("\n"))
}

/// `/undo`: takes the last apply back.
pub(crate) async fn undo(door: &Arc<Door>, session: &OpenSession) -> Result<String, Error> {
    let done = each(door, &session.id, Vec::new(), |place, _| {
        Ok(match place.review.undo()? {
            Undone::Nothing => String::new(),
            Undone::TakenBack { restored } => format!(
                "{} of {} as before; the changes are in the overlay again.",
                restored.len(),
                place.guest
            ),
            Undone::Refused { changed } => {
                let named = changed.iter().take(MAX_OFFERED).map(|path| shown_path(path));
                let named: Vec<String> = named.collect();
                format!("Nothing is taken back: changed since are {}.", named.join(", "))
            }
        })
    });
    let lines: Vec<String> = done.await?.into_iter().filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Ok("Nothing was applied that could be taken back.".to_owned());
    }
    door.service.audit(ACTOR, "apply_undone", session.id.clone(), json!({"by": "acp"}));
    Ok(lines.join("\n"))
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
    let looked = door.service.review(session, None, move |review| {
        let mut seen = Seen::default();
        for (place, changes) in review.changes()? {
            seen.take(place, &changes.only(&selection), &workspace)?;
        }
        Ok(seen)
    });
    looked.await.map_err(|error| of_service(&error))
}

/// Does something with each directory in which something is changed, or was.
async fn each(
    door: &Arc<Door>,
    session: &str,
    paths: Vec<String>,
    work: impl Fn(&Place, &Selection) -> Result<String, ReviewError> + Send + 'static,
) -> Result<Vec<String>, Error> {
    let selection = selection(&paths)?;
    let done = door.service.review(session, None, move |review| {
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
    let count = applied.applied.len().saturating_add(applied.merged.len());
    let mut text = format!("{count} applied to {guest}; `/undo` takes it back.");
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
        place: &Place,
        changes: &Changes,
        workspace: &Path,
    ) -> Result<(), ReviewError> {
        let stat = changes.stat();
        self.stat.files = self.stat.files.saturating_add(stat.files);
        self.stat.added = self.stat.added.saturating_add(stat.added);
        self.stat.removed = self.stat.removed.saturating_add(stat.removed);
        self.stat.run_later = self.stat.run_later.saturating_add(stat.run_later);
        self.stat.conflicts = self.stat.conflicts.saturating_add(stat.conflicts);
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
        let texts = match self.content.len() < MAX_DIFFS && self.bytes < MAX_DIFFS_BYTES {
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
            None if self.content.len() < MAX_DIFFS => {
                words.push("changed, and not shown".to_owned())
            }
            None => {}
        }
        words.extend(file.runs_later.map(|why| format!("would run later: {why}")));
        words.extend(file.conflict.as_ref().map(ToString::to_string));
        if !words.is_empty() {
            let line = format!("{}: {}", shown_path(&file.path), words.join("; "));
            self.content.push(tool_call::text(&line));
        }
        Ok(())
    }
}
