//! `belljar replay`: runs a stored run again on separate overlays, and lists the calls whose results differ.
//!
//! Nothing is kept, and the workspace does not change: the layers of the overlays are in a temporary
//! directory beside the store, removed at the end.

use std::path::Path;
use std::sync::Arc;

use belljar_agent::{
    CallComparison, Host, Outcome, ReplayedCall, ReplayedRun, RunSpec, StepEntry, resolve_agent,
};
use belljar_model::{ModelRegistry, Recording, ScriptedModel};
use belljar_policy::{ShownPath as _, ShownText};
use belljar_session::{RecordedState, Turn, find_run, stored_steps};
use belljar_store::{MessageStatus, SessionKind, Store};
use tokio_util::sync::CancellationToken;

use crate::args::replay::ReplayArgs;
use crate::commands::catalogue::agents;
use crate::commands::inspect::replay_shown;
use crate::commands::run::runner;
use crate::commands::run::transcript::TranscriptFile;
use crate::setup::data::store_failure;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, create_private};
use crate::setup::host;
use crate::setup::once::layers_for_once;
use crate::setup::walls::{WallGaps, WallRaiser};
use crate::setup::whose::{AgentOwner, tenant_by_name};
use crate::term::out::TerminalOutput;
use crate::term::progress::{LineTarget, RunProgress};

/// The word on the command line for the model of the stored run.
const LIVE: &str = "live";

/// A finished replay.
pub(crate) struct EndedReplay {
    pub(crate) run: Turn,
    pub(crate) calls: Vec<ReplayedCall>,
    /// The agents whose stored answers ended before they had concluded.
    pub(crate) ended_early: Vec<String>,
    pub(crate) outcome: Outcome,
    /// Notes for a person about how the replay differs from the run, for example that hooks did not run.
    pub(crate) notes: Vec<String>,
}

impl EndedReplay {
    /// The number of calls with this result of the comparison.
    pub(crate) fn count_results(&self, of: CallComparison) -> usize {
        self.calls.iter().filter(|call| call.result == of).count()
    }

    /// The first call whose result differs, in the order of the results.
    pub(crate) fn first_difference(&self) -> Option<&ReplayedCall> {
        self.calls.iter().find(|call| call.result.is_difference())
    }
}

/// Runs the command: finds the stored run, raises the OS sandbox, replays the run, and shows the comparison.
pub(crate) fn run(
    args: &ReplayArgs,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let (directory, store) = match args.of.is_named() {
        true => {
            let data = args.of.data_root(places)?;
            (data.store_directory(), data.store_path())
        }
        false => (places.store_directory(), places.store_path()),
    };
    if !store.exists() {
        if args.of.other_tenant().is_some() {
            AgentOwner::look_up(&args.of, places)?;
        }
        return Err(unknown_run(&args.run));
    }
    let transcript_file = args.record.as_deref();
    let transcript_file = transcript_file
        .map(|path| TranscriptFile::create_file(path, &places.workspace))
        .transpose()?;
    if !args.of.is_named() {
        create_private(&places.sessions_directory())
            .and_then(|()| places.gather_sessions())
            .map_err(|error| Failure::new(format!("failed to open the sessions: {error}")))?;
    }
    let through = WallGaps { write: vec![directory.clone()], ..WallGaps::default() };
    let whose = AgentOwner::behind_wall(&args.of, places, walls, through)?;
    let mut host = whose.build_host(out)?;
    if args.model.is_none() {
        host.models = Arc::new(no_models()?);
    }
    let progress = RunProgress::new(out, LineTarget::Notes);
    let runtime = host::make_runtime()?;
    let replayed = runtime.block_on(async {
        let all = Store::open(&store).await.map_err(store_failure)?;
        let done = async {
            let own = match args.of.other_tenant() {
                None => all.clone(),
                Some(name) => {
                    let tenant = tenant_by_name(name, &all).await?;
                    all.for_tenant_id(&tenant.name, &tenant.id)
                }
            };
            let recording =
                transcript_file.as_ref().map(|transcript_file| transcript_file.recording.clone());
            ReplayWork { args, host: &host, places: &whose.places, directory: &directory, out }
                .replay_run(&own, recording, &progress)
                .await
        };
        let done = done.await;
        all.close().await;
        done
    });
    runtime.shutdown_background();
    progress.clear_moving_line();
    let replayed = replayed?;
    if let Some(transcript_file) = transcript_file {
        transcript_file.write_recording(out)?;
    }
    replay_shown::show_replay(&replayed, args.json, out)?;
    Ok(match replayed.first_difference() {
        Some(_) => CommandExit::Differs,
        None => CommandExit::Completed,
    })
}

/// What a replay needs.
struct ReplayWork<'a> {
    args: &'a ReplayArgs,
    host: &'a Host,
    places: &'a HomePaths,
    /// The directory in which a temporary directory for the overlays is made.
    directory: &'a Path,
    out: &'a TerminalOutput,
}

impl ReplayWork<'_> {
    /// Replays the stored run. Steps: reads the run and its steps, makes temporary overlays, runs the agent
    /// with the stored answers, and compares each call.
    async fn replay_run(
        &self,
        store: &Store,
        recording: Option<Recording>,
        progress: &RunProgress,
    ) -> Result<EndedReplay, Failure> {
        let found = find_run(store, &self.args.run).await;
        let run = found.map_err(|error| {
            let failure = store_failure(error);
            let usage = failure.exit == CommandExit::Usage;
            if usage { failure.with_hint("`belljar receipts` lists the runs") } else { failure }
        })?;
        self.check_replayable(&run)?;
        let steps = stored_steps(store, &run).await.map_err(store_failure)?;
        let spec = self.run_spec(&run, steps, recording)?;
        let place = layers_for_once(self.directory).map_err(|error| {
            let dir = self.directory.to_shown();
            Failure::new(format!(
                "failed to make a place for the overlays of a replay in `{dir}`: {error}"
            ))
        })?;
        let Some(rerun) = spec.rerun.clone() else { return Err(unknown_run(&self.args.run)) };
        let spec = RunSpec { layers: Some(place.layers.clone()), ..spec };
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, self.out);
        let outcome = belljar_agent::run(self.host, spec, progress.event_sink(), cancel).await;
        place.layers.close();
        drop(place);
        Ok(EndedReplay {
            calls: rerun.calls(),
            ended_early: rerun.ended_early(),
            outcome,
            notes: self.replay_notes(&run),
            run,
        })
    }

    /// An error if this run cannot be replayed, for example because it was made by a team.
    fn check_replayable(&self, run: &Turn) -> Result<(), Failure> {
        let RecordedState { session, status, .. } = &run.state;
        let id = &run.run;
        if *status == MessageStatus::InFlight {
            return Err(Failure::usage(format!("run `{id}` has not ended"))
                .with_hint("wait for it, or end it: what is replayed has to be whole"));
        }
        match session.kind {
            SessionKind::Run => {}
            SessionKind::Team => {
                return Err(Failure::usage(format!(
                    "`{id}` is the run of a team, which is not replayed"
                ))
                .with_hint(format!("`belljar receipts {id}` shows what its agents did")));
            }
            SessionKind::Chat | SessionKind::Api if self.args.model.is_some() => {
                return Err(Failure::usage(format!(
                    "`{id}` is a turn of a conversation, whose model is not asked again"
                ))
                .with_hint("without `--model` its calls are replayed"));
            }
            SessionKind::Chat | SessionKind::Api => {}
        }
        let workspace = Path::new(&session.workspace);
        if !workspace.is_dir() {
            return Err(Failure::usage(format!(
                "the workspace `{}` of run `{id}` is no longer there",
                workspace.to_shown()
            ))
            .with_hint("a replay works on an overlay of it: put it back to the same place"));
        }
        if workspace == self.places.workspace {
            return Ok(());
        }
        let command = format!("belljar --workspace {} replay {id}", workspace.to_shown());
        Err(Failure::usage(format!("run `{id}` worked in `{}`", workspace.to_shown()))
            .with_hint(format!("`{}`", self.args.of.format_command(&command))))
    }

    /// The parameters of the replayed run: the task, model and rights, and the stored answers.
    fn run_spec(
        &self,
        run: &Turn,
        steps: Vec<StepEntry>,
        recording: Option<Recording>,
    ) -> Result<RunSpec, Failure> {
        let RecordedState { session, outcome, .. } = &run.state;
        if steps.is_empty() {
            return Err(Failure::usage(format!(
                "nothing is stored of run `{}` that could be replayed",
                run.run
            ))
            .with_hint("no model had answered when it ended, or an older program made it")
            .with_hint(format!("`belljar receipts {}` says how it ended", run.run)));
        }
        let agent = resolve_agent(self.host, &outcome.agent, &self.places.workspace)
            .map_err(agents::not_found)?;
        let mut rerun = ReplayedRun::from_steps(steps);
        if self.args.network {
            rerun = rerun.with_network();
        }
        if let Some(recording) = recording {
            rerun = rerun.with_recording(recording);
        }
        let model = match self.args.model.as_deref() {
            None => None,
            Some(model) => {
                if self.host.models.is_empty() {
                    return Err(runner::no_model(self.places));
                }
                rerun = rerun.asking_the_model();
                match model {
                    LIVE => Some(session.model.clone()).filter(|model| !model.is_empty()),
                    model => Some(model.to_owned()),
                }
            }
        };
        let workspace = self.places.workspace.clone();
        let history = run.brought_input().history;
        Ok(RunSpec {
            context: run.context().map(str::to_owned),
            limits: run.limits(),
            brought: run.brought_input(),
            history,
            // A right that was lost since appears as a call with another result.
            partial: true,
            model,
            rerun: Some(Arc::new(rerun)),
            ..RunSpec::new(Arc::new(agent), run.text(), workspace)
        })
    }

    /// Notes for the person about what a replay of this run lacks.
    fn replay_notes(&self, run: &Turn) -> Vec<String> {
        let mut notes = Vec::new();
        if run.state.status == MessageStatus::Interrupted {
            notes.push("the run was interrupted: what is stored of it is replayed".to_owned());
        }
        match run.state.session.kind {
            SessionKind::Chat | SessionKind::Api => notes.push(
                "a turn of a conversation: what earlier turns changed in its overlay is not there"
                    .to_owned(),
            ),
            SessionKind::Run | SessionKind::Team => {}
        }
        if !self.host.settings.hooks.is_empty() {
            notes.push("hooks do not run in a replay".to_owned());
        }
        notes
    }
}

/// The model registry of a replay in which no model is asked.
fn no_models() -> Result<ModelRegistry, Failure> {
    let none = ScriptedModel::from_yaml("transcript: 1\nagents: []\n", Path::new("the record"))
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(ModelRegistry::from_single(Arc::new(none)))
}

fn unknown_run(run: &str) -> Failure {
    Failure::usage(format!("there is no run `{}`", ShownText::clip_line(run, 64)))
        .with_hint("`belljar receipts` lists the runs")
}
