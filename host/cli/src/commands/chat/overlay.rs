//! `/changes`, `/apply`, `/discard` and `/undo` in a chat: the same code as the commands of these names, for
//! the overlay of the conversation.

use belljar_overlay::{ChangeStat, SessionLayers};
use belljar_policy::ShownText;
use belljar_session::SessionReview;
use belljar_store::StoredSession;
use belljar_work::StopSignal;

use super::slash::SlashAction;
use crate::commands::changes::apply::{ApplyDecision, apply_selection};
use crate::commands::changes::discard::discard_selection;
use crate::commands::changes::find::{TypedPaths, review_failure};
use crate::commands::changes::{look, undo};
use crate::setup::exit::Failure;
use crate::term::out::TerminalOutput;

/// The commands with which a person decides about changes in a chat, for a note.
const HOW: &str = "`/changes`, `/apply` or `/discard`";

/// Executes one of these commands. `rest` = the paths after the command.
pub(super) fn run_action(
    action: SlashAction,
    rest: &str,
    session: &StoredSession,
    layers: SessionLayers,
    out: &TerminalOutput,
) -> Result<(), Failure> {
    let review =
        SessionReview::for_layers(layers, &StopSignal::never_raised()).map_err(review_failure)?;
    let (words, paths): (Vec<_>, Vec<_>) =
        rest.split_whitespace().map(str::to_owned).partition(|word| word.starts_with("--"));
    let has = |word: &str| words.iter().any(|it| it == word);
    let (yes, also_what_runs) = (has("--yes"), has("--also-what-runs"));
    let known: &[&str] = match action {
        SlashAction::Apply => &["--yes", "--also-what-runs"],
        SlashAction::Discard => &["--yes"],
        _ => &[],
    };
    if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
        let failure =
            Failure::usage(format!("`{}` has no place here", ShownText::clip_line(word, 40)));
        return Err(failure.with_hint(
            "`/apply` takes `--yes` and `--also-what-runs`, `/discard` takes `--yes`; `belljar apply` \
             decides about conflicts, by `--theirs` and `--mine`",
        ));
    }
    let paths = TypedPaths::parse_paths(&paths, &review)?;
    match action {
        SlashAction::Apply => {
            let decision =
                ApplyDecision { also_what_runs, yes, in_chat: true, ..ApplyDecision::default() };
            apply_selection(session, &review, &paths, &decision, false, out).map(drop)
        }
        SlashAction::Discard => discard_selection(session, &review, &paths, yes, out).map(drop),
        SlashAction::Undo => undo::undo_apply(&review, out).map(drop),
        _ => {
            let mut all = look::select_changes(&review, &paths)?;
            look::count_lines(&mut all)?;
            look::show_changes(session, &all, true, out)
        }
    }
}

/// The amount of changes in the overlay.
pub(super) async fn change_stat(layers: SessionLayers) -> Result<ChangeStat, Failure> {
    look::last_look(move |stop| SessionReview::for_layers(layers, stop).map_err(review_failure))
        .await
}

/// Prints the amount of changes in one line.
pub(super) fn print_stat(stat: &ChangeStat, out: &TerminalOutput) {
    look::say_stat(stat, HOW, out);
}
