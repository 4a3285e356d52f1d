//! `/changes`, `/apply`, `/discard` and `/undo`: the agent's changes in the overlay of this conversation, by
//! the code of the equally named commands.

use belljar_agent::Layers;
use belljar_changes::Stat;
use belljar_policy::Shown;
use belljar_session::SessionReview;
use belljar_store::StoredSession;
use belljar_work::StopSignal;

use super::slash::Action;
use crate::commands::changes::apply::{Decision, apply};
use crate::commands::changes::discard::discard;
use crate::commands::changes::find::{Paths, refused};
use crate::commands::changes::{look, undo};
use crate::setup::exit::Failure;
use crate::term::out::Out;

/// How a person decides here.
const HOW: &str = "`/changes`, `/apply` or `/discard`";

/// Executes one of these commands. `rest` are the paths.
pub(super) fn decide(
    action: Action,
    rest: &str,
    session: &StoredSession,
    layers: Layers,
    out: &Out,
) -> Result<(), Failure> {
    let review = SessionReview::of(layers, &StopSignal::never()).map_err(refused)?;
    let (words, paths): (Vec<_>, Vec<_>) =
        rest.split_whitespace().map(str::to_owned).partition(|word| word.starts_with("--"));
    let has = |word: &str| words.iter().any(|it| it == word);
    let (yes, also_what_runs) = (has("--yes"), has("--also-what-runs"));
    let known: &[&str] = match action {
        Action::Apply => &["--yes", "--also-what-runs"],
        Action::Discard => &["--yes"],
        _ => &[],
    };
    if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
        let failure = Failure::usage(format!("`{}` has no place here", Shown::clipped(word, 40)));
        return Err(failure.hint(
            "`/apply` takes `--yes` and `--also-what-runs`, `/discard` takes `--yes`; `belljar apply` \
             decides about conflicts, by `--theirs` and `--mine`",
        ));
    }
    let paths = Paths::read(&paths, &review)?;
    match action {
        Action::Apply => {
            let decision = Decision { also_what_runs, yes, in_chat: true, ..Decision::default() };
            apply(session, &review, &paths, &decision, false, out).map(drop)
        }
        Action::Discard => discard(session, &review, &paths, yes, out).map(drop),
        Action::Undo => undo::undo(&review, out).map(drop),
        _ => {
            let mut all = look::selected(&review, &paths)?;
            look::count(&mut all)?;
            look::shown(session, &all, true, out)
        }
    }
}

/// How much is changed.
pub(super) async fn stat(layers: Layers) -> Result<Stat, Failure> {
    look::last_look(move |stop| SessionReview::of(layers, stop).map_err(refused)).await
}

/// Says it in a line.
pub(super) fn say(stat: &Stat, out: &Out) {
    look::say_stat(stat, HOW, out);
}
