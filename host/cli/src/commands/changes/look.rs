//! `belljar changes`: a run's changes in its overlays.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use belljar_changes::{Changes, Stat};
use belljar_session::{DirectoryReview, SessionReview};
use belljar_store::{Store, StoredSession};
use belljar_work::{OPERATOR, StopSignal, WorkKind};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::find::{self, Found, Paths};
use super::{repository, show};
use crate::args::changes::ChangesArgs;
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::Places;
use crate::term::diff;
use crate::term::out::{Out, Style};

pub(crate) fn run(args: &ChangesArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    find::with_store(&args.changed.of, places, async |store: &Store| {
        let found = find::find(&args.changed.which, &args.changed.of, places, store).await?;
        look(args, &found, out)
    })
}

fn look(args: &ChangesArgs, found: &Found, out: &Out) -> Result<Exit, Failure> {
    let mut all = selected(&found.review, &found.paths)?;
    if !args.patch {
        count(&mut all)?;
    }
    if args.json {
        let places: Vec<_> = all
            .iter()
            .map(|(place, changes)| {
                json!({
                    "path": place.guest,
                    "directory": place.directory.to_string_lossy(),
                    "stat": changes.stat(),
                    "files": changes.files(),
                })
            })
            .collect();
        out.json(
            &json!({ "session": found.session.id, "agent": found.session.agent, "places": places }),
        )?;
        return Ok(Exit::Completed);
    }
    if args.patch {
        for (place, changes) in &all {
            raw(changes, &repository::prefix(&place.directory), out)?;
            let left_out = changes.not_in_patch();
            if left_out > 0 {
                out.warning(format_args!(
                    "{left_out} changes below `.git` are not in the patch: `git apply` takes none"
                ));
            }
        }
        return Ok(Exit::Completed);
    }
    shown(&found.session, &all, !args.stat, out)?;
    Ok(Exit::Completed)
}

/// The selected changes of each directory, without directories that have none.
pub(crate) fn selected<'a>(
    review: &'a SessionReview,
    paths: &Paths,
) -> Result<Vec<(&'a DirectoryReview, Changes)>, Failure> {
    let mut all = Vec::new();
    for (place, changes) in review.changes().map_err(find::refused)? {
        if let Some(selection) = paths.of(place)? {
            let changes = changes.only(&selection);
            if !changes.is_empty() {
                all.push((place, changes));
            }
        }
    }
    paths.all_found(&all)?;
    Ok(all)
}

/// Counts the lines of what is about to be shown.
pub(crate) fn count(all: &mut [(&DirectoryReview, Changes)]) -> Result<(), Failure> {
    for (_, changes) in all {
        changes.count(|_| true).map_err(|error| Failure::new(chain(&error)))?;
    }
    Ok(())
}

/// Shows changes to a person, with the lines or without.
pub(crate) fn shown(
    session: &StoredSession,
    all: &[(&DirectoryReview, Changes)],
    with_lines: bool,
    out: &Out,
) -> Result<(), Failure> {
    if all.is_empty() {
        out.line(format_args!("nothing is changed by session {}", session.id));
        return Ok(());
    }
    for (place, changes) in all {
        let stat = changes.stat();
        out.line(format_args!(
            "{} in an overlay of {}",
            out.paint(Style::Bold, stat),
            find::shown(place)
        ));
        show::files(changes, out);
        if with_lines {
            out.line("");
            show::patch(changes, out)?;
        }
    }
    Ok(())
}

/// The patch as it is; on a terminal escaped.
fn raw(changes: &Changes, prefix: &Path, out: &Out) -> Result<(), Failure> {
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

/// Prints the amount of a session's changes in a line, if any; `how` are the deciding commands.
pub(crate) fn say_stat(stat: &Stat, how: &str, out: &Out) {
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

/// The look at the end of a run or a turn.
const LAST_LOOK: WorkKind =
    WorkKind { name: "counting what was changed", time: Duration::from_secs(15) };

/// The amount of changes of a command-line session; `None` = without an overlay, or the count was stopped.
pub(crate) async fn changed_by(
    store: &Store,
    session: &str,
    cancel: &CancellationToken,
    out: &Out,
) -> Option<Stat> {
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
    counted.map_err(|failure| out.warning(failure.message)).ok().filter(|stat| stat.files > 0)
}

/// Counts a session's changes on a thread, for a limited time.
pub(crate) async fn last_look(
    open: impl FnOnce(&StopSignal) -> Result<SessionReview, Failure> + Send + 'static,
) -> Result<Stat, Failure> {
    let job = move |stop: &StopSignal| {
        let review = open(stop)?;
        let mut changes = review.changes().map_err(find::refused)?;
        count(&mut changes)?;
        Ok(show::total(changes.iter().map(|(_, changes)| changes.stat())))
    };
    let ended = belljar_work::run(&LAST_LOOK, OPERATOR, job).await;
    ended.map_err(|error| {
        Failure::new(error.to_string())
            .hint("`belljar changes --stat` looks for as long as it takes")
    })?
}
