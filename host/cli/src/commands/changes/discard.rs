//! `belljar discard`: deletes a run's changes in the overlay.

use belljar_session::SessionReview;
use belljar_store::{Store, StoredSession};
use serde_json::json;

use super::find::{self, FoundSession, TypedPaths};
use super::{look, show};
use crate::args::changes::DiscardArgs;
use crate::commands::inspect::sessions::confirm_deletion;
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::HomePaths;
use crate::term::out::TerminalOutput;

/// Runs the command: finds the session, discards the selection, and writes a line of the audit log.
pub(crate) fn run(
    args: &DiscardArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let of = &args.changed.of;
    let (session, gone) = find::with_store(of, places, async |store: &Store| {
        let FoundSession { session, review, paths } =
            find::find_session(&args.changed.which, of, places, store).await?;
        let gone = discard_selection(&session, &review, &paths, args.yes, out)?;
        Ok((session.id, gone))
    })?;
    // INV-413: a discard that changed nothing has no line in the audit log.
    if gone > 0 {
        let line = (session, json!({ "files": gone }));
        of.audit_action(places, ("changes_discarded", "it is thrown away"), vec![line])?;
    }
    Ok(CommandExit::Completed)
}

/// Asks the person, and discards the selected changes; returns the number of files.
pub(crate) fn discard_selection(
    session: &StoredSession,
    review: &SessionReview,
    paths: &TypedPaths,
    yes: bool,
    out: &TerminalOutput,
) -> Result<usize, Failure> {
    let mut all = look::select_changes(review, paths)?;
    if all.is_empty() {
        out.print_line(format_args!("nothing is changed by session {}", session.id));
        return Ok(0);
    }
    if !yes {
        look::count_lines(&mut all)?;
    }
    let stat = show::total_stat(all.iter().map(|(_, changes)| changes.change_stat()));
    confirm_deletion(yes, &format!("throw away {stat} of session {}?", session.id), out)?;
    let mut gone = 0;
    for (place, _) in &all {
        let Some(selection) = paths.select_or_all(place)? else { continue };
        let discarded = place.review.discard_changes(&selection);
        gone += discarded.map_err(|error| Failure::new(format_error_chain(&error)))?.len();
    }
    out.note(format_args!("thrown away: {stat}; the workspace stays as it is"));
    Ok(gone)
}
