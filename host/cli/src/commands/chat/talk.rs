//! The chat loop: reads a line, executes it, shows the outcome.

use std::sync::Arc;

use belljar_agent::{Host, Outcome, RunStatus, TeamSpec, resolve_team};
use belljar_changes::Stat;
use belljar_policy::{LimitsRequest, Shown};
use belljar_session::{
    Conversation, Open, Saved, SavedSession, SessionError, Turn, run_saved, run_team_saved,
};
use belljar_store::StoreError;
use tokio_util::sync::CancellationToken;

use super::background::{Background, Ended};
use super::input::{Heard, Interrupts, Lines};
use super::lists;
use super::overlay;
use super::slash::{self, Action, Input};
use crate::commands::catalogue::agents;
use crate::commands::inspect::receipts;
use crate::commands::run::team as teams_run;
use crate::commands::run::{attachments, refused, runner, saving};
use crate::setup::data::failed;
use crate::setup::exit::{Exit, Failure, chain};
use crate::setup::home::Places;
use crate::term::out::{Out, Style};
use crate::term::progress::Progress;

/// Characters of a message that a note repeats.
const MAX_ASKED: usize = 200;

/// A chat under way.
pub(super) struct Chat<'a> {
    host: &'a Host,
    places: &'a Places,
    out: &'a Out,
    progress: &'a Progress,
    conversation: Conversation,
    session: SavedSession,
    interrupts: Interrupts,
    background: Background,
    /// The worst ending of a turn: the exit code where nobody looked on.
    worst: Exit,
    /// How much is changed in the overlay, as it was said last.
    changed: Stat,
    /// The person's words, the last of them.
    words: String,
}

/// Kept bytes of a person's words: more than anybody types in one conversation.
const MAX_WORDS: usize = 1 << 20;

/// The step after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    Leave,
}

impl<'a> Chat<'a> {
    pub(super) fn new(
        host: &'a Host,
        places: &'a Places,
        out: &'a Out,
        progress: &'a Progress,
        conversation: Conversation,
        session: SavedSession,
        interrupts: Interrupts,
    ) -> Self {
        let background = Background::default();
        Self {
            host,
            places,
            out,
            progress,
            conversation,
            session,
            interrupts,
            background,
            worst: Exit::Completed,
            changed: Stat::default(),
            words: String::new(),
        }
    }

    /// Notes the person's words, for advice about hosts named in them.
    fn hear(&mut self, text: &str) {
        if self.words.len() > MAX_WORDS {
            self.words.clear();
        }
        self.words.push_str(text);
        self.words.push('\n');
    }

    /// Resumes a turn that the program ended in.
    pub(super) async fn resume(&mut self, turn: Turn<Open>) {
        let asked = Shown::clipped(turn.text().trim(), MAX_ASKED).to_string();
        self.out.note(format_args!("resumes the turn that the program ended in: {asked}"));
        self.hear(turn.text());
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let events = self.progress.sink();
        let (talk, host) = (&mut self.conversation, self.host);
        let turn = self.session.perform(turn, talk, host, events, cancel.clone());
        let saved = until_done(turn, &mut self.interrupts, &cancel, self.progress).await;
        self.conclude_turn(saved).await;
    }

    /// Talks until the person leaves. Where lines are not edited, the exit code is that of
    /// the worst turn, for scripts.
    pub(super) async fn run(mut self, mut lines: Lines) -> Result<Exit, Failure> {
        let exit = self.lines(&mut lines).await;
        for ended in self.background.stop_all().await {
            self.announce(ended).await;
        }
        if let Some(session) = self.session.id() {
            self.out.note(format_args!("`belljar chat --resume {session}` resumes this"));
        }
        let exit = exit?;
        Ok(if lines.edited() { exit } else { exit.worst(self.worst) })
    }

    async fn lines(&mut self, lines: &mut Lines) -> Result<Exit, Failure> {
        let mut armed = false;
        loop {
            let heard = tokio::select! {
                biased;
                () = self.interrupts.next() => return Ok(Exit::Cancelled),
                ended = self.background.next() => {
                    if lines.stands() {
                        self.out.piece("\n");
                    }
                    self.announce(ended).await;
                    lines.redraw();
                    continue;
                }
                heard = lines.next() => heard,
            };
            if let Heard::Ahead(line) = &heard {
                self.out.note(format_args!("> {}", Shown::clipped(line, MAX_ASKED)));
            }
            match heard {
                Heard::Line(line) | Heard::Ahead(line) => {
                    armed = false;
                    if self.line(&line).await? == Next::Leave {
                        return Ok(Exit::Completed);
                    }
                }
                Heard::Interrupted if armed => return Ok(Exit::Completed),
                Heard::Interrupted => {
                    armed = true;
                    self.out.note("press Ctrl-C again, or Ctrl-D, to leave");
                }
                Heard::Unfit(why) => {
                    self.complain(&Failure::usage(why).hint("it was passed over"));
                }
                Heard::End => return Ok(Exit::Completed),
                Heard::Failed(why) => return Err(Failure::new(why)),
            }
        }
    }

    async fn line(&mut self, line: &str) -> Result<Next, Failure> {
        self.hear(line);
        match slash::read(line) {
            Input::Blank => {}
            Input::Say(text) => self.say(text).await?,
            Input::Unknown(why) => self.complain(&Failure::usage(why)),
            Input::Command(action, rest) => {
                let done = match action {
                    Action::Quit => return Ok(Next::Leave),
                    Action::Help => {
                        lists::help(self.out);
                        Ok(())
                    }
                    Action::Agents => lists::agents(self.host, self.places, self.out),
                    Action::Tools => {
                        lists::tools(self.conversation.agent(), self.host, self.out);
                        Ok(())
                    }
                    Action::Changes | Action::Apply | Action::Discard | Action::Undo => {
                        self.decide(action, rest).await
                    }
                    Action::Budget => {
                        lists::budget(&self.conversation, self.out);
                        Ok(())
                    }
                    Action::Compact => self.compact().await,
                    Action::Agent => self.agent(rest).await,
                    Action::Teams => lists::teams(self.host, self.places, self.out),
                    Action::Team => self.team(rest).await,
                    Action::Skills => {
                        lists::skills(self.host, self.out);
                        Ok(())
                    }
                    Action::Cancel => self.cancel(rest).await,
                };
                if let Err(failure) = done {
                    self.complain(&failure);
                }
            }
        }
        Ok(Next::Line)
    }

    /// One turn of the conversation.
    async fn say(&mut self, text: &str) -> Result<(), Failure> {
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let turn = self.session.turn(
            &mut self.conversation,
            self.host,
            text,
            self.progress.sink(),
            cancel.clone(),
        );
        let saved = until_done(turn, &mut self.interrupts, &cancel, self.progress).await;
        match saved {
            Err(error) => {
                self.progress.end_turn();
                self.complain(&Failure::new(chain(&error)));
            }
            Ok(saved) => self.conclude_turn(saved).await,
        }
        Ok(())
    }

    async fn conclude_turn(&mut self, saved: Saved) {
        let spoke = self.progress.end_turn();
        let session = self.session.id().unwrap_or_default().to_owned();
        self.conclude_run(&session, saved, spoke).await;
        self.say_changes().await;
    }

    /// `/changes`, `/apply`, `/discard` and `/undo`: the overlay of this conversation.
    async fn decide(&mut self, action: Action, rest: &str) -> Result<(), Failure> {
        let Some(id) = self.session.id().map(str::to_owned) else {
            return Err(Failure::usage("nothing is changed: the conversation has not begun"));
        };
        let session = self.session.store().session(&id).await.map_err(failed)?;
        let Some(layers) = self.session.layers(self.host) else { return Ok(()) };
        let out = self.out;
        #[expect(
            clippy::disallowed_methods,
            reason = "a person who decides at a terminal is waited for"
        )]
        tokio::task::block_in_place(|| overlay::decide(action, rest, &session, layers, out))
    }

    /// Prints the amount of changes in the overlay, if different from before.
    async fn say_changes(&mut self) {
        let store = self.session.store();
        let Some(session) = self.session.id() else { return };
        if !belljar_session::has_layers(store, session) {
            return;
        }
        let Some(layers) = self.session.layers(self.host) else { return };
        match overlay::stat(layers).await {
            Ok(stat) if stat == self.changed => {}
            Ok(stat) => {
                overlay::say(&stat, self.out);
                self.changed = stat;
            }
            Err(failure) => self.out.warning(failure.message),
        }
    }

    /// `/compact`: a summary in the place of the turns so far.
    async fn compact(&mut self) -> Result<(), Failure> {
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let events = self.progress.sink();
        let (talk, host) = (&mut self.conversation, self.host);
        let work = self.session.compact(talk, host, events, cancel.clone());
        let done = until_done(work, &mut self.interrupts, &cancel, self.progress).await;
        self.progress.end_turn();
        done.map(|_| ()).map_err(|error| {
            Failure::new(format!("the conversation stays as it was: {}", chain(&error)))
        })
    }

    /// `/agent`: a run beside the conversation.
    async fn agent(&mut self, rest: &str) -> Result<(), Failure> {
        let (flag, rest) = match rest.split_once(char::is_whitespace) {
            Some((flag @ ("-b" | "-k"), rest)) => (Some(flag), rest.trim_start()),
            _ => (None, rest),
        };
        let (name, task) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if name.is_empty() || task.trim().is_empty() {
            let usage = slash::row(Action::Agent).map(slash::usage).unwrap_or_default();
            return Err(Failure::usage(format!("an agent needs a name and a task: `{usage}`")));
        }
        let agent = super::agent(self.host, name, false, self.places)?;
        let spec = self.conversation.aside(agent, task.trim().to_owned());
        if flag == Some("-b") {
            let store = self.session.store().clone();
            let number = self.background.start(store, self.host.clone(), spec);
            self.out.note(format_args!(
                "number {number} runs, and its result comes here; /cancel {number} stops it"
            ));
            return Ok(());
        }
        let cancel = CancellationToken::new();
        self.progress.begin_turn();
        let events = self.progress.sink();
        let store = self.session.store();
        let run = run_saved(store, self.host, spec.clone(), events, cancel.clone());
        let saved = until_done(run, &mut self.interrupts, &cancel, self.progress).await;
        let spoke = self.progress.end_turn();
        let done = saved.map_err(not_begun)?;
        let outcome = &done.outcome;
        self.conversation.count(outcome);
        if flag == Some("-k") {
            let saved = self.session.remember(&mut self.conversation, &spec, outcome).await;
            if let Err(error) = saved {
                let why = chain(&error);
                self.out.warning(format_args!("the conclusion is not saved: {why}"));
            }
        }
        let session = outcome.run.to_string();
        self.conclude_run(&session, done, spoke).await;
        Ok(())
    }

    /// `/team`: a team beside the conversation, below its budget.
    async fn team(&mut self, rest: &str) -> Result<(), Failure> {
        let (name, task) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let task = task.trim();
        if name.is_empty() || task.is_empty() {
            let usage = slash::row(Action::Team).map(slash::usage).unwrap_or_default();
            return Err(Failure::usage(format!("a team needs a name and a task: `{usage}`")));
        }
        let workspace = &self.places.workspace;
        let team = resolve_team(self.host, name, workspace).map_err(agents::not_found)?;
        teams_run::runnable(&team)?;
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
        let (store, events) = (self.session.store(), self.progress.sink());
        let run = run_team_saved(store, self.host, spec, events, cancel.clone());
        let saved = until_done(run, &mut self.interrupts, &cancel, self.progress).await;
        let spoke = self.progress.end_turn();
        let done = saved.map_err(not_begun)?;
        self.tell_if_unsaved(done.unsaved.as_ref());
        let mut outcome = done.outcome;
        for agent in outcome.agents_mut() {
            attachments::save(&mut agent.outcome, None, self.places, self.out);
        }
        let why = teams_run::why(&outcome);
        let outcome = outcome.to_outcome();
        self.conversation.count(&outcome);
        let session = outcome.run.to_string();
        self.conclude(&session, &outcome, &why, spoke).await;
        Ok(())
    }

    /// `/cancel`: lists background runs, or stops one.
    async fn cancel(&mut self, rest: &str) -> Result<(), Failure> {
        let running: Vec<u32> = self.background.running().map(|(number, _)| number).collect();
        if running.is_empty() {
            self.out.line("nothing runs in the background");
            return Ok(());
        }
        let ended = match rest {
            "" => {
                lists::background(self.background.running(), self.out);
                self.out.note("/cancel N stops number N, /cancel all stops all");
                return Ok(());
            }
            "all" => self.background.stop_all().await,
            _ => {
                let number = rest.parse().ok();
                let Some(number) = number.filter(|number| running.contains(number)) else {
                    let running: Vec<String> = running.iter().map(u32::to_string).collect();
                    let shown = Shown::clipped(rest, 40);
                    return Err(Failure::usage(format!(
                        "nothing in the background is number `{shown}`"
                    ))
                    .hint(format!("these run: {}", running.join(", "))));
                };
                self.background.stop(number).await
            }
        };
        for ended in ended {
            self.announce(ended).await;
        }
        Ok(())
    }

    /// Shows the outcome of a run in the background.
    async fn announce(&mut self, (number, spec, done): Ended) {
        let name = Shown::new(spec.agent.id.slug.as_str()).to_string();
        self.out.note(format_args!("number {number} (`{name}`) has ended"));
        match done {
            Ok(done) => {
                self.conversation.count(&done.outcome);
                let session = done.outcome.run.to_string();
                self.conclude_run(&session, done, false).await;
            }
            Err(error) => self.complain(&not_begun(error)),
        }
    }

    /// Shows the outcome of one agent's run, and saves its files for the person. `session`: the run's
    /// session.
    async fn conclude_run(&mut self, session: &str, done: Saved, spoke: bool) {
        self.tell_if_unsaved(done.unsaved.as_ref());
        let mut outcome = done.outcome;
        attachments::save(&mut outcome, None, self.places, self.out);
        let why = runner::reason(outcome.error.as_ref());
        self.conclude(session, &outcome, &why, spoke).await;
    }

    fn tell_if_unsaved(&self, unsaved: Option<&StoreError>) {
        if let Some(error) = unsaved {
            let why = chain(error);
            self.out.warning(format_args!("the answer is not saved: {why}"));
        }
    }

    /// Shows how a run ended.
    async fn conclude(&mut self, session: &str, outcome: &Outcome, why: &str, spoke: bool) {
        if !spoke {
            self.out.text(&Shown::multiline(&outcome.output).to_string());
        }
        for operation in &outcome.unfinished {
            let operation = Shown::new(operation);
            self.out.warning(format_args!("still running when it was given up: {operation}"));
        }
        match outcome.status {
            RunStatus::Completed => {}
            RunStatus::Partial => {
                self.out.warning(format_args!("the answer is partial: {why}"));
                runner::how_to_raise(outcome, self.out);
                self.worst = self.worst.worst(Exit::Partial);
            }
            RunStatus::Cancelled => {
                self.out.note("cancelled; what was said until then is kept");
                self.worst = self.worst.worst(Exit::Cancelled);
            }
            RunStatus::Failed => self.complain(&runner::failed(outcome, why)),
        }
        refused::advise(outcome, &self.words, self.host, self.places, self.out);
        let used = self.out.paint_err(Style::Dim, receipts::usage(outcome));
        self.out.note(used);
        let keep = self.host.settings.keep_runs;
        saving::conclude(self.session.store(), session, outcome, keep, self.out).await;
    }

    /// Says what went wrong, and goes on.
    fn complain(&mut self, failure: &Failure) {
        self.out.failure(failure);
        self.worst = self.worst.worst(failure.exit);
    }
}

/// The failure of a run that could not be stored before its beginning.
fn not_begun(error: SessionError) -> Failure {
    Failure::new(format!("nothing was run: {}", chain(&error)))
}

/// Waits for a run. The first interruption cancels it, the second leaves at once.
async fn until_done<T>(
    run: impl Future<Output = T>,
    interrupts: &mut Interrupts,
    cancel: &CancellationToken,
    progress: &Progress,
) -> T {
    let mut run = std::pin::pin!(run);
    loop {
        tokio::select! {
            biased;
            done = &mut run => return done,
            () = interrupts.next() => {
                if cancel.is_cancelled() {
                    progress.finish();
                    std::process::exit(i32::from(Exit::Cancelled.code()));
                }
                progress.note("cancelling; press Ctrl-C again to leave at once");
                cancel.cancel();
            }
        }
    }
}
