//! `belljar apply`: writes a run's changes from the overlay into the workspace, after a person's decision.

use std::collections::HashSet;
use std::path::PathBuf;

use belljar_overlay::{AppliedChanges, ApplyOptions, Changes, FileChange, NodeKind};
use belljar_policy::ShownPath as _;
use belljar_session::{DirectoryReview, SessionReview};
use belljar_store::{Store, StoredSession};
use serde_json::json;

use super::find::{self, FoundSession, TypedPaths};
use super::{look, show};
use crate::args::changes::ApplyArgs;
use crate::setup::agreed::ask_agreement;
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::HomePaths;
use crate::term::out::{TerminalOutput, TextStyle};

/// The most paths of one kind that are named after an apply.
const MAX_NAMED: usize = 20;

/// The decisions of a person, besides the selected paths.
#[derive(Debug, Default)]
pub(crate) struct ApplyDecision {
    pub(crate) theirs: Vec<String>,
    pub(crate) mine: Vec<String>,
    pub(crate) also_what_runs: bool,
    /// True if the person is not asked.
    pub(crate) yes: bool,
    /// True in a chat, whose commands have other names.
    pub(crate) in_chat: bool,
}

impl ApplyDecision {
    /// The beginning of a suggested command: `belljar apply`, or `/apply` in a chat.
    fn command_start(&self, name: &str) -> String {
        if self.in_chat { format!("/{name}") } else { format!("belljar {name}") }
    }
}

/// For each directory, its path and what was applied there.
pub(crate) struct ApplyOutcome(Vec<(String, AppliedChanges)>);

/// Runs the command: finds the session, applies the selection, and writes a line of the audit log.
pub(crate) fn run(
    args: &ApplyArgs,
    places: &HomePaths,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let decision = ApplyDecision {
        theirs: args.theirs.clone(),
        mine: args.mine.clone(),
        also_what_runs: args.also_what_runs,
        yes: args.yes || args.json,
        in_chat: false,
    };
    if args.json && !args.yes {
        return Err(Failure::usage("`--json` asks nobody").with_hint("add `--yes`"));
    }
    let of = &args.changed.of;
    let done = find::with_store(of, places, async |store: &Store| {
        let FoundSession { session, review, paths } =
            find::find_session(&args.changed.which, of, places, store).await?;
        let done = apply_selection(&session, &review, &paths, &decision, args.json, out)?;
        Ok(done.map(|done| (session.id, done)))
    })?;
    let Some((session, done)) = done else { return Ok(CommandExit::Cancelled) };
    // INV-413: an apply that changed nothing has no line in the audit log.
    if done.has_changes() {
        let line = (session.clone(), done.audit_detail());
        of.audit_action(places, ("changes_applied", "it is applied"), vec![line])?;
    }
    if args.json {
        out.print_json(
            &json!({ "session": session, "places": done.0.iter().map(|(guest, applied)| {
            json!({ "path": guest, "applied": applied })
        }).collect::<Vec<_>>() }),
        )?;
    }
    Ok(done.exit_code())
}

/// Shows the selected changes, asks the person, and applies them; `None` = the person declined.
pub(crate) fn apply_selection(
    session: &StoredSession,
    review: &SessionReview,
    paths: &TypedPaths,
    decision: &ApplyDecision,
    quiet: bool,
    out: &TerminalOutput,
) -> Result<Option<ApplyOutcome>, Failure> {
    let mut all = look::select_changes(review, paths)?;
    if all.is_empty() {
        return Err(Failure::usage(format!("nothing is changed by session {}", session.id))
            .with_hint("`belljar receipts` lists the runs; `belljar changes RUN` shows what another one changed"));
    }
    let mut also_what_runs = decision.also_what_runs;
    if !decision.yes {
        look::count_lines(&mut all)?;
        look::show_changes(session, &all, false, out)?;
        let stat = show::total_stat(all.iter().map(|(_, changes)| changes.change_stat()));
        if !ask_agreement(&format!("apply {stat}?"), false, "applied", out)? {
            return Ok(None);
        }
        if stat.run_later > 0 && !also_what_runs {
            also_what_runs = also_later(stat.run_later, out);
        }
    }
    let theirs = TypedPaths::parse_paths(&decision.theirs, review)?;
    let mine = TypedPaths::parse_paths(&decision.mine, review)?;
    theirs.all_changed(&all)?;
    mine.all_changed(&all)?;
    let mut done = Vec::new();
    for (place, changes) in &all {
        let options = ApplyOptions {
            also_what_runs,
            theirs: theirs.select_named(place)?,
            mine: mine.select_named(place)?,
        };
        let Some(selection) = paths.select_or_all(place)? else { continue };
        let applied = place.review.apply_changes(&selection, &options);
        let applied = applied.map_err(|error| Failure::new(format_error_chain(&error)))?;
        if !quiet {
            report_applied(place, changes, &applied, decision, out);
        }
        done.push((place.guest.to_string(), applied));
    }
    Ok(Some(ApplyOutcome(done)))
}

/// INV-510: asks whether to apply files that other programs would run later, for example git hooks. Other
/// files are applied in any case.
fn also_later(count: usize, out: &TerminalOutput) -> bool {
    let yes = out.ask(&format!("also the {count} that would run later?")) == Some(true);
    if !yes {
        out.note("what would run later stays in the overlay");
    }
    yes
}

/// Prints what was applied in a directory and what was not, with the command for the rest.
fn report_applied(
    place: &DirectoryReview,
    changes: &Changes,
    applied: &AppliedChanges,
    decision: &ApplyDecision,
    out: &TerminalOutput,
) {
    let files = |paths: &[PathBuf]| {
        let paths: HashSet<&PathBuf> = paths.iter().collect();
        let is_file = |file: &&FileChange| file.node != NodeKind::Directory;
        changes.files().iter().filter(is_file).filter(|file| paths.contains(&file.path)).count()
    };
    let merged = match files(&applied.merged) {
        0 => String::new(),
        n => format!(", {n} of them merged with what changed there"),
    };
    let of = changes.change_stat().files;
    let count = applied.files;
    out.note(format_args!("{count} of {of} applied to {}{merged}", find::format_directory(place)));
    if !applied.dropped.is_empty() {
        out.note(format_args!("{} kept as in the workspace", applied.dropped.len()));
    }
    for path in applied.lost.iter().take(MAX_NAMED) {
        out.print_warning(format_args!(
            "gone for good: the agent's change at `{}`",
            path.to_shown()
        ));
    }
    for (path, conflict) in applied.conflicts.iter().take(MAX_NAMED) {
        out.print_warning(format_args!("left: {}: {conflict}", path.to_shown()));
        let file = changes.files().iter().find(|file| file.path == *path);
        let clashes = file.map_or(Ok(Vec::new()), |file| show::clash_lines(changes, file));
        match clashes {
            Ok(lines) => lines.iter().for_each(|line| out.note(line)),
            Err(failure) => out.print_warning(failure.message),
        }
    }
    if !applied.conflicts.is_empty() {
        out.note(
            "`belljar apply PATH --theirs PATH` takes the agent's version, `--mine PATH` keeps yours",
        );
    }
    let done: HashSet<&PathBuf> = applied.applied.iter().chain(&applied.merged).collect();
    let is_code = |file: &&FileChange| file.is_code() && done.contains(&file.path);
    if let Some(code) = show::source_code_note(changes.files().iter().filter(is_code).count()) {
        out.note(code);
    }
    for (path, why) in applied.held_back.iter().take(MAX_NAMED) {
        let path = out.paint_err(TextStyle::Red, path.to_shown());
        out.print_warning(format_args!("left: {path}: {why}"));
    }
    if !applied.held_back.is_empty() {
        let apply = decision.command_start("apply");
        out.note(format_args!("`{apply} --also-what-runs` applies these too; look at them first"));
    }
    if applied.can_be_undone() {
        out.note(format_args!("`{}` takes it back", decision.command_start("undo")));
    }
}

impl ApplyOutcome {
    /// The counts of the apply, for the audit log.
    pub(crate) fn audit_detail(&self) -> serde_json::Value {
        let sum =
            |of: fn(&AppliedChanges) -> usize| self.0.iter().map(|(_, one)| of(one)).sum::<usize>();
        json!({
            "applied": sum(|one| one.applied.len()),
            "merged": sum(|one| one.merged.len()),
            "conflicts": sum(|one| one.conflicts.len()),
            "held_back": sum(|one| one.held_back.len()),
        })
    }

    /// Returns whether the apply changed a file of the workspace, or removed a change of the agent.
    pub(crate) fn has_changes(&self) -> bool {
        let of = |one: &AppliedChanges| one.applied.len() + one.merged.len() + one.dropped.len();
        self.0.iter().any(|(_, one)| of(one) > 0)
    }

    /// The exit code: partial if a conflict or a held-back file is left.
    fn exit_code(&self) -> CommandExit {
        let left = |one: &AppliedChanges| !one.conflicts.is_empty() || !one.held_back.is_empty();
        if self.0.iter().any(|(_, one)| left(one)) {
            CommandExit::Partial
        } else {
            CommandExit::Completed
        }
    }
}
