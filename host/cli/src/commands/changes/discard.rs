//! `belljar discard`: discards a run's changes in the overlay.

use belljar_session::SessionReview;
use belljar_store::{Store, StoredSession};
use serde_json::json;

use super::find::{self, Found, Paths};
use super::{look, show};
use crate::args::changes::DiscardArgs;
use crate::commands::inspect::sessions::sure;
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::Places;
use crate::term::out::Out;

pub(crate) fn run(args: &DiscardArgs, places: &Places, out: &Out) -> Result<Exit, Failure> {
    let of = &args.changed.of;
    let (session, gone) = find::with_store(of, places, async |store: &Store| {
        let Found { session, review, paths } =
            find::find(&args.changed.which, of, places, store).await?;
        let gone = discard(&session, &review, &paths, args.yes, out)?;
        Ok((session.id, gone))
    })?;
    // INV-413: what changed nothing has no line in the audit log.
    if gone > 0 {
        let line = (session, json!({ "files": gone }));
        of.audit(places, ("changes_discarded", "it is thrown away"), vec![line])?;
    }
    Ok(Exit::Completed)
}

/// Discards the selection; returns the number of files.
pub(crate) fn discard(
    session: &StoredSession,
    review: &SessionReview,
    paths: &Paths,
    yes: bool,
    out: &Out,
) -> Result<usize, Failure> {
    let mut all = look::selected(review, paths)?;
    if all.is_empty() {
        out.line(format_args!("nothing is changed by session {}", session.id));
        return Ok(0);
    }
    if !yes {
        look::count(&mut all)?;
    }
    let stat = show::total(all.iter().map(|(_, changes)| changes.stat()));
    sure(yes, &format!("throw away {stat} of session {}?", session.id), out)?;
    let mut gone = 0;
    for (place, _) in &all {
        let Some(selection) = paths.of(place)? else { continue };
        let discarded = place.review.discard(&selection);
        gone += discarded.map_err(|error| Failure::new(chain(&error)))?.len();
    }
    out.note(format_args!("thrown away: {stat}; the workspace stays as it is"));
    Ok(gone)
}
