//! The loop of a chat: reads a line, executes it as a message or a command, and shows the outcome.

use std::sync::Arc;

use belljar_agent::{CallerInput, Host, Outcome, RunStatus, TeamSpec, resolve_team};
use belljar_overlay::ChangeStat;
use belljar_policy::{LimitsRequest, ShownText};
use belljar_session::{
    Conversation, OpenState, SavedOutcome, SavedSession, SessionError, Turn, run_saved,
    run_team_saved,
};
use belljar_store::StoreError;
use tokio_util::sync::CancellationToken;

use super::background::{BackgroundRuns, Ended};
use super::input::{InputEvent, InputLines, InterruptSignals};
use super::lists;
use super::overlay;
use super::slash::{self, ChatInput, SlashAction};
use crate::commands::catalogue::agents;
use crate::commands::inspect::receipts;
use crate::commands::run::team as teams_run;
use crate::commands::run::{attachments, refused, runner, saving};
use crate::setup::data::store_failure;
use crate::setup::exit::{CommandExit, Failure, format_error_chain};
use crate::setup::home::HomePaths;
use crate::term::out::{TerminalOutput, TextStyle};
use crate::term::progress::RunProgress;

/// The most characters of a typed message that a note repeats.
const MAX_ASKED: usize = 200;

/// A running chat with one agent.
pub(super) struct ActiveChat<'a> {
    host: &'a Host,
    places: &'a HomePaths,
    out: &'a TerminalOutput,
    progress: &'a RunProgress,
    conversation: Conversation,
    session: SavedSession,
    interrupts: InterruptSignals,
    background: BackgroundRuns,
    /// The worst ending of a turn so far: the exit code of a chat without a terminal.
    worst: CommandExit,
    /// The amount of changes in the overlay, as printed last.
    changed: ChangeStat,
    /// The latest words of the person, for advice about hosts named in them.
    words: String,
}

/// The most bytes of the person's words that are kept: more than a person types in one conversation.
const MAX_WORDS: usize = 1 << 20;

/// What the loop does after a line: reads the next line, or ends the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStep {
    Line,
    Leave,
}

impl<'a> ActiveChat<'a> {
    /// Starts a chat with this conversation and session.
    pub(super) fn new(
        host: &'a Host,
        places: &'a HomePaths,
        out: &'a TerminalOutput,
        progress: &'a RunProgress,
        conversation: Conversation,
        session: SavedSession,
        interrupts: InterruptSignals,
    ) -> Self {
        let background = BackgroundRuns::default();
        Self {
            host,
            places,
            out,
            progress,
            conversation,
            session,
            interrupts,
            background,
            worst: CommandExit::Completed,
            changed: ChangeStat::default(),
            words: String::new(),
        }
    }

    /// Keeps the person's words, for advice about hosts named in them.
    fn note_words(&mut self, text: &str) {
        if self.words.len() > MAX_WORDS {
            self.words.clear();
        }
        self.words.push_str(text);
        self.words.push('\n');
    }

    /// Resumes a turn during which an earlier process ended.
    pub(super) async fn resume_turn(&mut self, turn: Turn<OpenState>) {
        let asked = ShownText::clip_line(turn.text().trim(), MAX_ASKED).to_string();
        self.out.note(format_args!("resumes the turn that the program ended in: {asked}"));
        self.note_words(turn.text());
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let events = self.progress.event_sink();
        let (talk, host) = (&mut self.conversation, self.host);
        let turn = self.session.perform_turn(turn, talk, host, events, cancel.clone());
        let saved = until_done(turn, &mut self.interrupts, &cancel, self.progress).await;
        self.conclude_turn(saved).await;
    }

    /// Runs the chat until the person leaves. Without a terminal, the exit code is that of the worst turn,
    /// for scripts.
    pub(super) async fn run_lines(mut self, mut lines: InputLines) -> Result<CommandExit, Failure> {
        let exit = self.read_lines(&mut lines).await;
        for ended in self.background.stop_all().await {
            self.announce_run(ended).await;
        }
        if let Some(session) = self.session.session_id() {
            self.out.note(format_args!("`belljar chat --resume {session}` resumes this"));
        }
        let exit = exit?;
        Ok(if lines.is_edited() { exit } else { exit.worse_of(self.worst) })
    }

    /// Reads and handles lines. Shows background runs that end meanwhile. A second Ctrl-C at the prompt ends
    /// the chat.
    async fn read_lines(&mut self, lines: &mut InputLines) -> Result<CommandExit, Failure> {
        let mut armed = false;
        loop {
            let heard = tokio::select! {
                biased;
                () = self.interrupts.next_interrupt() => return Ok(CommandExit::Cancelled),
                ended = self.background.next_ended() => {
                    if lines.is_prompt_shown() {
                        self.out.print_piece("\n");
                    }
                    self.announce_run(ended).await;
                    lines.redraw_prompt();
                    continue;
                }
                heard = lines.next_line() => heard,
            };
            if let InputEvent::Ahead(line) = &heard {
                self.out.note(format_args!("> {}", ShownText::clip_line(line, MAX_ASKED)));
            }
            match heard {
                InputEvent::Line(line) | InputEvent::Ahead(line) => {
                    armed = false;
                    if self.handle_line(&line).await? == NextStep::Leave {
                        return Ok(CommandExit::Completed);
                    }
                }
                InputEvent::Interrupted if armed => return Ok(CommandExit::Completed),
                InputEvent::Interrupted => {
                    armed = true;
                    self.out.note("press Ctrl-C again, or Ctrl-D, to leave");
                }
                InputEvent::Unfit(why) => {
                    self.report_failure(&Failure::usage(why).with_hint("it was passed over"));
                }
                InputEvent::End => return Ok(CommandExit::Completed),
                InputEvent::Failed(why) => return Err(Failure::new(why)),
            }
        }
    }

    /// Executes one line: a message to the agent, or a command that begins with `/`.
    async fn handle_line(&mut self, line: &str) -> Result<NextStep, Failure> {
        self.note_words(line);
        match slash::parse_line(line) {
            ChatInput::Blank => {}
            ChatInput::Say(text) => self.run_turn(text, CallerInput::default()).await?,
            ChatInput::Unknown(why) => match lists::find_call(self.host, line) {
                Some(Ok((text, brought))) => self.run_turn(text, brought).await?,
                Some(Err(failure)) => self.report_failure(&failure),
                None => self.report_failure(&Failure::usage(why)),
            },
            ChatInput::Command(action, rest) => {
                let done = match action {
                    SlashAction::Quit => return Ok(NextStep::Leave),
                    SlashAction::Help => {
                        lists::print_help(self.out);
                        Ok(())
                    }
                    SlashAction::Agents => lists::list_agents(self.host, self.places, self.out),
                    SlashAction::Tools => {
                        lists::list_tools(self.conversation.agent(), self.host, self.out);
                        Ok(())
                    }
                    SlashAction::Changes
                    | SlashAction::Apply
                    | SlashAction::Discard
                    | SlashAction::Undo => self.decide_changes(action, rest).await,
                    SlashAction::Budget => {
                        lists::print_budget(&self.conversation, self.out);
                        Ok(())
                    }
                    SlashAction::Compact => self.compact_history().await,
                    SlashAction::Agent => self.start_agent(rest).await,
                    SlashAction::Teams => lists::list_teams(self.host, self.places, self.out),
                    SlashAction::Team => self.start_team(rest).await,
                    SlashAction::Skills => {
                        lists::list_skills(self.host, self.out);
                        Ok(())
                    }
                    SlashAction::Cancel => self.cancel_run(rest).await,
                };
                if let Err(failure) = done {
                    self.report_failure(&failure);
                }
            }
        }
        Ok(NextStep::Line)
    }

    /// One turn of the conversation.
    async fn run_turn(&mut self, text: &str, brought: CallerInput) -> Result<(), Failure> {
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let turn = self.session.run_turn_with(
            &mut self.conversation,
            self.host,
            (text, brought),
            self.progress.event_sink(),
            cancel.clone(),
        );
        let saved = until_done(turn, &mut self.interrupts, &cancel, self.progress).await;
        match saved {
            Err(error) => {
                self.progress.end_turn();
                self.report_failure(&Failure::new(format_error_chain(&error)));
            }
            Ok(saved) => self.conclude_turn(saved).await,
        }
        Ok(())
    }

    /// Shows the outcome of a turn, and the amount of changes.
    async fn conclude_turn(&mut self, saved: SavedOutcome) {
        let spoke = self.progress.end_turn();
        let session = self.session.session_id().unwrap_or_default().to_owned();
        self.conclude_run(&session, saved, spoke).await;
        self.say_changes().await;
    }

    /// Executes `/changes`, `/apply`, `/discard` or `/undo` for the overlay of this conversation.
    async fn decide_changes(&mut self, action: SlashAction, rest: &str) -> Result<(), Failure> {
        let Some(id) = self.session.session_id().map(str::to_owned) else {
            return Err(Failure::usage("nothing is changed: the conversation has not begun"));
        };
        let session = self.session.store().read_session(&id).await.map_err(store_failure)?;
        let Some(layers) = self.session.session_layers(self.host) else { return Ok(()) };
        let out = self.out;
        #[expect(
            clippy::disallowed_methods,
            reason = "a person who decides at a terminal is waited for"
        )]
        tokio::task::block_in_place(|| overlay::run_action(action, rest, &session, layers, out))
    }

    /// Prints the amount of changes in the overlay, if it differs from the amount printed last.
    async fn say_changes(&mut self) {
        let store = self.session.store();
        let Some(session) = self.session.session_id() else { return };
        if !belljar_session::has_layers(store, session) {
            return;
        }
        let Some(layers) = self.session.session_layers(self.host) else { return };
        match overlay::change_stat(layers).await {
            Ok(stat) if stat == self.changed => {}
            Ok(stat) => {
                overlay::print_stat(&stat, self.out);
                self.changed = stat;
            }
            Err(failure) => self.out.print_warning(failure.message),
        }
    }

    /// Executes `/compact`: replaces the turns so far by a summary.
    async fn compact_history(&mut self) -> Result<(), Failure> {
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let events = self.progress.event_sink();
        let (talk, host) = (&mut self.conversation, self.host);
        let work = self.session.compact_history(talk, host, events, cancel.clone());
        let done = until_done(work, &mut self.interrupts, &cancel, self.progress).await;
        self.progress.end_turn();
        done.map(|_| ()).map_err(|error| {
            Failure::new(format!(
                "the conversation stays as it was: {}",
                format_error_chain(&error)
            ))
        })
    }

    /// Executes `/agent`: starts a run of another agent beside the conversation.
    async fn start_agent(&mut self, rest: &str) -> Result<(), Failure> {
        let (flag, rest) = match rest.split_once(char::is_whitespace) {
            Some((flag @ ("-b" | "-k"), rest)) => (Some(flag), rest.trim_start()),
            _ => (None, rest),
        };
        let (name, task) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() || task.trim().is_empty() {
            let usage = slash::find_command(SlashAction::Agent)
                .map(slash::format_usage)
                .unwrap_or_default();
            return Err(Failure::usage(format!("an agent needs a name and a task: `{usage}`")));
        }
        let agent = super::find_agent(self.host, name, false, self.places)?;
        let spec = self.conversation.spec_side_run(agent, task.trim().to_owned());
        if flag == Some("-b") {
            let store = self.session.store().clone();
            let number = self.background.start_run(store, self.host.clone(), spec);
            self.out.note(format_args!(
                "number {number} runs, and its result comes here; /cancel {number} stops it"
            ));
            return Ok(());
        }
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let events = self.progress.event_sink();
        let store = self.session.store();
        let run = run_saved(store, self.host, spec.clone(), events, cancel.clone());
        let saved = until_done(run, &mut self.interrupts, &cancel, self.progress).await;
        let spoke = self.progress.end_turn();
        let done = saved.map_err(not_begun)?;
        let outcome = &done.outcome;
        self.conversation.count_usage(outcome);
        if flag == Some("-k") {
            let saved = self.session.store_run(&mut self.conversation, &spec, outcome).await;
            if let Err(error) = saved {
                let why = format_error_chain(&error);
                self.out.print_warning(format_args!("the conclusion is not saved: {why}"));
            }
        }
        let session = outcome.run.to_string();
        self.conclude_run(&session, done, spoke).await;
        Ok(())
    }

    /// Executes `/team`: runs a team beside the conversation, within its budget.
    async fn start_team(&mut self, rest: &str) -> Result<(), Failure> {
        let (name, task) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let task = task.trim();
        if name.is_empty() || task.is_empty() {
            let usage =
                slash::find_command(SlashAction::Team).map(slash::format_usage).unwrap_or_default();
            return Err(Failure::usage(format!("a team needs a name and a task: `{usage}`")));
        }
        let workspace = &self.places.workspace;
        let team = resolve_team(self.host, name, workspace).map_err(agents::not_found)?;
        teams_run::check_runnable(&team)?;
        let spec = TeamSpec {
            team: Arc::new(team),
            task: task.to_owned(),
            model: self.conversation.model().map(str::to_owned),
            workspace: workspace.clone(),
            limits: LimitsRequest::default(),
            budget: Some(self.conversation.budget().clone()),
            layers: None,
        };
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let (store, events) = (self.session.store(), self.progress.event_sink());
        let run = run_team_saved(store, self.host, spec, events, cancel.clone());
        let saved = until_done(run, &mut self.interrupts, &cancel, self.progress).await;
        let spoke = self.progress.end_turn();
        let done = saved.map_err(not_begun)?;
        self.tell_if_unsaved(done.unsaved.as_ref());
        let mut outcome = done.outcome;
        for agent in outcome.agents_mut() {
            attachments::save_attachments(&mut agent.outcome, None, self.places, self.out);
        }
        let why = teams_run::failure_reason(&outcome);
        let outcome = outcome.to_outcome();
        self.conversation.count_usage(&outcome);
        let session = outcome.run.to_string();
        self.show_outcome(&session, &outcome, &why, spoke).await;
        Ok(())
    }

    /// Executes `/cancel`: lists background runs, or stops one.
    async fn cancel_run(&mut self, rest: &str) -> Result<(), Failure> {
        let running: Vec<u32> = self.background.list_running().map(|(number, _)| number).collect();
        if running.is_empty() {
            self.out.print_line("nothing runs in the background");
            return Ok(());
        }
        let ended = match rest {
            "" => {
                lists::list_background(self.background.list_running(), self.out);
                self.out.note("/cancel N stops number N, /cancel all stops all");
                return Ok(());
            }
            "all" => self.background.stop_all().await,
            _ => {
                let number = rest.parse().ok();
                let Some(number) = number.filter(|number| running.contains(number)) else {
                    let running: Vec<String> = running.iter().map(u32::to_string).collect();
                    let shown = ShownText::clip_line(rest, 40);
                    return Err(Failure::usage(format!(
                        "nothing in the background is number `{shown}`"
                    ))
                    .with_hint(format!("these run: {}", running.join(", "))));
                };
                self.background.stop_run(number).await
            }
        };
        for ended in ended {
            self.announce_run(ended).await;
        }
        Ok(())
    }

    /// Shows the outcome of a background run that has ended.
    async fn announce_run(&mut self, (number, spec, done): Ended) {
        let name = ShownText::new(spec.agent.id.slug.as_str()).to_string();
        self.out.note(format_args!("number {number} (`{name}`) has ended"));
        match done {
            Ok(done) => {
                self.conversation.count_usage(&done.outcome);
                let session = done.outcome.run.to_string();
                self.conclude_run(&session, done, false).await;
            }
            Err(error) => self.report_failure(&not_begun(error)),
        }
    }

    /// Shows the outcome of an agent's run, and saves its files for the person. `session`: the run's session.
    /// `spoke`: the agent's text was shown already.
    async fn conclude_run(&mut self, session: &str, done: SavedOutcome, spoke: bool) {
        self.tell_if_unsaved(done.unsaved.as_ref());
        let mut outcome = done.outcome;
        attachments::save_attachments(&mut outcome, None, self.places, self.out);
        let why = runner::error_reason(outcome.error.as_ref());
        self.show_outcome(session, &outcome, &why, spoke).await;
    }

    /// Warns the person if an outcome could not be stored.
    fn tell_if_unsaved(&self, unsaved: Option<&StoreError>) {
        if let Some(error) = unsaved {
            let why = format_error_chain(error);
            self.out.print_warning(format_args!("the answer is not saved: {why}"));
        }
    }

    /// Shows how a run ended. `why` = the reason if it did not complete.
    async fn show_outcome(&mut self, session: &str, outcome: &Outcome, why: &str, spoke: bool) {
        if !spoke {
            self.out.print_text(&ShownText::multiline(&outcome.output).to_string());
        }
        for operation in &outcome.unfinished {
            let operation = ShownText::new(operation);
            self.out.print_warning(format_args!("still running when it was given up: {operation}"));
        }
        match outcome.status {
            RunStatus::Completed => {}
            RunStatus::Partial => {
                self.out.print_warning(format_args!("the answer is partial: {why}"));
                runner::how_to_raise(outcome, self.out);
                self.worst = self.worst.worse_of(CommandExit::Partial);
            }
            RunStatus::Cancelled => {
                self.out.note("cancelled; what was said until then is kept");
                self.worst = self.worst.worse_of(CommandExit::Cancelled);
            }
            RunStatus::Failed => self.report_failure(&runner::run_failure(outcome, why)),
        }
        refused::print_advice(outcome, &self.words, self.host, self.places, self.out);
        let used = self.out.paint_err(TextStyle::Dim, receipts::format_usage(outcome));
        self.out.note(used);
        let keep = self.host.settings.keep_runs;
        saving::conclude_session(self.session.store(), session, outcome, keep, self.out).await;
    }

    /// Prints the failure of a line; the chat continues.
    fn report_failure(&mut self, failure: &Failure) {
        self.out.print_failure(failure);
        self.worst = self.worst.worse_of(failure.exit);
    }
}

/// The failure of a run that could not be stored before its beginning.
fn not_begun(error: SessionError) -> Failure {
    Failure::new(format!("nothing was run: {}", format_error_chain(&error)))
}

/// Waits for a run. The first interrupt cancels the run, and the second exits the process.
async fn until_done<T>(
    run: impl Future<Output = T>,
    interrupts: &mut InterruptSignals,
    cancel: &CancellationToken,
    progress: &RunProgress,
) -> T {
    let mut run = std::pin::pin!(run);
    loop {
        tokio::select! {
            biased;
            done = &mut run => return done,
            () = interrupts.next_interrupt() => {
                if cancel.is_cancelled() {
                    progress.clear_moving_line();
                    std::process::exit(i32::from(CommandExit::Cancelled.code()));
                }
                progress.show_note("cancelling; press Ctrl-C again to leave at once");
                cancel.cancel();
            }
        }
    }
}
