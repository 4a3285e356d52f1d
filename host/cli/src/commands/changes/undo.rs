//! `belljar undo`: the last apply of a run is taken back.

use belljar_changes::Undone;
use belljar_policy::ShownPath as _;
use belljar_session::SessionReview;
use belljar_store::Store;
use serde_json::json;

use super::find::{self, Found};
use crate::args::changes::UndoArgs;
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::Places;
use crate::term::out::Out;
use crate::term::table;

/// Paths that are named where a file has changed since.
const MAX_NAMED: usize = 20;

pub(crate) fn run(args: &UndoArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let which: Vec<String> = args.run.iter().cloned().collect();
    let (session, restored) = find::with_store(&args.of, places, async |store: &Store| {
        let Found { session, review, paths } = find::find(&which, &args.of, places, store).await?;
        if !paths.is_everything() {
            return Err(Failure::usage("there is no such run or session")
                .hint("`belljar receipts` lists the runs"));
        }
        Ok((session.id, undo(&review, out)?))
    })?;
    let line = (session, json!({ "files": restored }));
    args.of.audit(places, ("apply_undone", "it is taken back"), vec![line])?;
    Ok(Exit::Completed)
}

/// Takes the last apply back; gives how many files were restored.
pub(crate) fn undo(review: &SessionReview, out: &Out) -> Result<usize, Failure> {
    let mut restored = 0;
    let mut any = false;
    for place in review.places() {
        match place.review.undo().map_err(|error| Failure::new(chain(&error)))? {
            Undone::Nothing => {}
            Undone::TakenBack { restored: _, files } => {
                any = true;
                restored += files;
                out.note(format_args!(
                    "taken back: {} of {}; the changes are in the overlay again",
                    table::some(files as u64, "file"),
                    find::shown(place)
                ));
            }
            Undone::Refused { changed } => {
                let failure = Failure::new(format!(
                    "nothing is taken back in {}: files have changed since",
                    find::shown(place)
                ));
                let failure = failure.hint(
                    "make these files again what was applied, and repeat; or keep them as they are",
                );
                let named = changed.iter().take(MAX_NAMED);
                return Err(named.fold(failure, |failure, path| {
                    failure.hint(format!("changed since: `{}`", path.shown()))
                }));
            }
        }
    }
    if any {
        return Ok(restored);
    }
    Err(Failure::usage("nothing was applied that could be taken back")
        .hint("`belljar receipts` lists the runs; `belljar undo RUN` takes back what was applied of that one"))
}
