//! `belljar changes`: shows a run's changes in its overlays.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use belljar_overlay::{ChangeStat, Changes};
use belljar_session::{DirectoryReview, SessionReview};
use belljar_store::{Store, StoredSession};
use belljar_work::{OPERATOR, StopSignal, WorkKind};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::find::{self, FoundSession, TypedPaths};
use super::{repository, show};
use crate::args::changes::ChangesArgs;
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::HomePaths;
use crate::term::diff;
use crate::term::out::{TerminalOutput, TextStyle};

/// Runs the command: finds the session, and prints its changes.
pub(crate) fn run(
    args: &ChangesArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    find::with_store(&args.changed.of, places, async |store: &Store| {
        let found =
            find::find_session(&args.changed.which, &args.changed.of, places, store).await?;
        print_changes(args, &found, out)
    })
}

/// Prints the selected changes as JSON, as a patch, or for a person.
fn print_changes(
    args: &ChangesArgs,
    found: &FoundSession,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let mut all = select_changes(&found.review, &found.paths)?;
    if !args.patch {
        count_lines(&mut all)?;
    }
    if args.json {
        let places: Vec<_> = all
            .iter()
            .map(|(place, changes)| {
                json!({
                    "path": place.guest,
                    "directory": place.directory.to_string_lossy(),
                    "stat": changes.change_stat(),
                    "files": changes.files(),
                })
            })
            .collect();
        out.print_json(
            &json!({ "session": found.session.id, "agent": found.session.agent, "places": places }),
        )?;
        return Ok(CommandExit::Completed);
    }
    if args.patch {
        for (place, changes) in &all {
            write_raw_patch(changes, &repository::repository_prefix(&place.directory), out)?;
            let left_out = changes.not_in_patch();
            if left_out > 0 {
                out.print_warning(format_args!(
                    "{left_out} changes below `.git` are not in the patch: `git apply` takes none"
                ));
            }
        }
        return Ok(CommandExit::Completed);
    }
    show_changes(&found.session, &all, !args.stat, out)?;
    Ok(CommandExit::Completed)
}

/// The selected changes of each directory, without directories that have no change.
pub(crate) fn select_changes<'a>(
    review: &'a SessionReview,
    paths: &TypedPaths,
) -> Result<Vec<(&'a DirectoryReview, Changes)>, Failure> {
    let mut all = Vec::new();
    for (place, changes) in review.list_changes().map_err(find::review_failure)? {
        if let Some(selection) = paths.select_or_all(place)? {
            let changes = changes.select_changes(&selection);
            if !changes.is_empty() {
                all.push((place, changes));
            }
        }
    }
    paths.all_found(&all)?;
    Ok(all)
}

/// Counts the added and removed lines of changes that are about to be shown.
pub(crate) fn count_lines(all: &mut [(&DirectoryReview, Changes)]) -> Result<(), Failure> {
    for (_, changes) in all {
        changes.count_lines(|_| true).map_err(|error| Failure::new(format_error_chain(&error)))?;
    }
    Ok(())
}

/// Shows changes to a person; `with_lines` = with the changed lines.
pub(crate) fn show_changes(
    session: &StoredSession,
    all: &[(&DirectoryReview, Changes)],
    with_lines: bool,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    if all.is_empty() {
        out.print_line(format_args!("nothing is changed by session {}", session.id));
        return Ok(());
    }
    for (place, changes) in all {
        let stat = changes.change_stat();
        out.print_line(format_args!(
            "{} in an overlay of {}",
            out.paint(TextStyle::Bold, stat),
            find::format_directory(place)
        ));
        show::print_files(changes, out);
        if with_lines {
            out.print_line("");
            show::print_patch(changes, out)?;
        }
    }
    Ok(())
}

/// Writes the patch unchanged; on a terminal, escaped.
fn write_raw_patch(changes: &Changes, prefix: &Path, out: &TerminalOutput) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    changes.patch_in(prefix, &mut bytes).map_err(|error| Failure::new(error.to_string()))?;
    if out.is_live() {
        let text = String::from_utf8_lossy(&bytes);
        text.lines().for_each(|line| diff::show_line(line, out));
        return Ok(());
    }
    let written = std::io::stdout().lock().write_all(&bytes);
    written.map_err(|error| Failure::new(format!("failed to write to stdout: {error}")))
}

/// Prints one line with the amount of a session's changes, if there are any. `how` = the commands that decide
/// about them.
pub(crate) fn say_stat(stat: &ChangeStat, how: &str, out: &TerminalOutput) {
    if stat.files == 0 {
        return;
    }
    let later = match stat.run_later {
        0 => String::new(),
        1 => "; 1 would run later by itself".to_owned(),
        n => format!("; {n} would run later by themselves"),
    };
    out.note(format_args!("{stat} in an overlay{later}: {how}"));
}

/// The kind of host work that counts the changes at the end of a run or a turn.
const LAST_LOOK: WorkKind =
    WorkKind { name: "counting what was changed", time: Duration::from_secs(15) };

/// The amount of changes in a session of the command line; `None` = no overlay, or the count was stopped.
pub(crate) async fn changed_by(
    store: &Store,
    session: &str,
    cancel: &CancellationToken,
    out: &TerminalOutput,
) -> Option<ChangeStat> {
    if !belljar_session::has_layers(store, session) {
        return None;
    }
    let (store, session) = (store.clone(), session.to_owned());
    let counting = last_look(move |stop| find::open_until(&store, &session, stop));
    let counted = if cancel.is_cancelled() {
        counting.await
    } else {
        tokio::select! {
            counted = counting => counted,
            () = cancel.cancelled() => {
                out.note("what was changed is not counted; `belljar changes --stat` does");
                return None;
            }
        }
    };
    counted.map_err(|failure| out.print_warning(failure.message)).ok().filter(|stat| stat.files > 0)
}

/// Counts a session's changes on a separate thread, with a deadline.
pub(crate) async fn last_look(
    open: impl FnOnce(&StopSignal) -> Result<SessionReview, Failure> + Send + 'static,
) -> Result<ChangeStat, Failure> {
    let job = move |stop: &StopSignal| {
        let review = open(stop)?;
        let mut changes = review.list_changes().map_err(find::review_failure)?;
        count_lines(&mut changes)?;
        Ok(show::total_stat(changes.iter().map(|(_, changes)| changes.change_stat())))
    };
    let ended = belljar_work::run_job(&LAST_LOOK, OPERATOR, job).await;
    ended.map_err(|error| {
        Failure::new(error.to_string())
            .with_hint("`belljar changes --stat` looks for as long as it takes")
    })?
}
