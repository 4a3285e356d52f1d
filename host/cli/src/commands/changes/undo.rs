//! `belljar undo`: reverts the last apply of a run.

use belljar_overlay::UndoOutcome;
use belljar_policy::ShownPath as _;
use belljar_session::SessionReview;
use belljar_store::Store;
use serde_json::json;

use super::find::{self, FoundSession};
use crate::args::changes::UndoArgs;
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::HomePaths;
use crate::term::out::TerminalOutput;
use crate::term::table;

/// The most paths that are named if files have changed since the apply.
const MAX_NAMED: usize = 20;

/// Runs the command: finds the session, reverts its last apply, and writes a line of the audit log.
pub(crate) fn run(
    args: &UndoArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let which: Vec<String> = args.run.iter().cloned().collect();
    let (session, restored) = find::with_store(&args.of, places, async |store: &Store| {
        let FoundSession { session, review, paths } =
            find::find_session(&which, &args.of, places, store).await?;
        if !paths.is_everything() {
            return Err(Failure::usage("there is no such run or session")
                .with_hint("`belljar receipts` lists the runs"));
        }
        Ok((session.id, undo_apply(&review, out)?))
    })?;
    let line = (session, json!({ "files": restored }));
    args.of.audit_action(places, ("apply_undone", "it is taken back"), vec![line])?;
    Ok(CommandExit::Completed)
}

/// Reverts the last apply; returns the number of restored files.
pub(crate) fn undo_apply(review: &SessionReview, out: &TerminalOutput) -> Result<usize, Failure> {
    let mut restored = 0;
    let mut any = false;
    for place in review.changed_directories() {
        match place.review.undo_apply().map_err(|error| Failure::new(format_error_chain(&error)))? {
            UndoOutcome::Nothing => {}
            UndoOutcome::TakenBack { restored: _, files } => {
                any = true;
                restored += files;
                out.note(format_args!(
                    "taken back: {} of {}; the changes are in the overlay again",
                    table::format_quantity(files as u64, "file"),
                    find::format_directory(place)
                ));
            }
            UndoOutcome::Refused { changed } => {
                let failure = Failure::new(format!(
                    "nothing is taken back in {}: files have changed since",
                    find::format_directory(place)
                ));
                let failure = failure.with_hint(
                    "make these files again what was applied, and repeat; or keep them as they are",
                );
                let named = changed.iter().take(MAX_NAMED);
                return Err(named.fold(failure, |failure, path| {
                    failure.with_hint(format!("changed since: `{}`", path.to_shown()))
                }));
            }
        }
    }
    if any {
        return Ok(restored);
    }
    Err(Failure::usage("nothing was applied that could be taken back")
        .with_hint("`belljar receipts` lists the runs; `belljar undo RUN` takes back what was applied of that one"))
}
