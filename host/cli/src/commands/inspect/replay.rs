//! `belljar replay`: repeats a stored run on separate overlays, and lists the different calls.
//!
//! Nothing is kept, and the workspace does not change: the layers of the overlays are in a temporary
//! directory beside the store, removed at the end.

use std::path::Path;
use std::sync::Arc;

use belljar_agent::{Comparison, Host, Outcome, ReplayedCall, Rerun, RunSpec, StepEntry, resolve};
use belljar_model::{Models, Recording, ScriptedModel};
use belljar_policy::{Shown, ShownPath as _};
use belljar_session::{Recorded, Turn, find_run, stored_steps};
use belljar_store::{MessageStatus, SessionKind, Store};
use tokio_util::sync::CancellationToken;

use crate::args::replay::ReplayArgs;
use crate::commands::catalogue::agents;
use crate::commands::inspect::replay_shown;
use crate::commands::run::runner;
use crate::commands::run::transcript::TranscriptFile;
use crate::setup::data::failed;
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{Places, create_private};
use crate::setup::host;
use crate::setup::once::layers_for_once;
use crate::setup::walls::{Through, Walls};
use crate::setup::whose::{Whose, tenant};
use crate::term::out::Out;
use crate::term::progress::{Progress, To};

/// The word for the model that the run had.
const LIVE: &str = "live";

/// A replay that has ended.
pub(crate) struct Replayed {
    pub(crate) run: Turn,
    pub(crate) calls: Vec<ReplayedCall>,
    /// The agents without further stored answers.
    pub(crate) ended_early: Vec<String>,
    pub(crate) outcome: Outcome,
    /// For a person: how the replay is another than the run.
    pub(crate) notes: Vec<String>,
}

impl Replayed {
    /// How many calls compare so.
    pub(crate) fn count(&self, of: Comparison) -> usize {
        self.calls.iter().filter(|call| call.result == of).count()
    }

    /// The first call by which the two differ, in the order of the results.
    pub(crate) fn first(&self) -> Option<&ReplayedCall> {
        self.calls.iter().find(|call| call.result.is_difference())
    }
}

pub(crate) fn run(
    args: &ReplayArgs,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let (directory, store) = match args.of.is_named() {
        true => {
            let data = args.of.root(places)?;
            (data.store_directory(), data.store())
        }
        false => (places.store_directory(), places.store()),
    };
    if !store.exists() {
        if args.of.other().is_some() {
            Whose::find(&args.of, places)?;
        }
        return Err(unknown(&args.run));
    }
    let transcript_file = args.record.as_deref();
    let transcript_file =
        transcript_file.map(|path| TranscriptFile::create(path, &places.workspace)).transpose()?;
    if !args.of.is_named() {
        create_private(&places.sessions())
            .and_then(|()| places.gather_sessions())
            .map_err(|error| Failure::new(format!("failed to open the sessions: {error}")))?;
    }
    let through = Through { write: vec![directory.clone()], ..Through::default() };
    let whose = Whose::behind(&args.of, places, walls, through)?;
    let mut host = whose.host(out)?;
    if args.model.is_none() {
        host.models = Arc::new(nobody()?);
    }
    let progress = Progress::new(out, To::Notes);
    let runtime = host::runtime()?;
    let replayed = runtime.block_on(async {
        let all = Store::open(&store).await.map_err(failed)?;
        let done = async {
            let own = match args.of.other() {
                None => all.clone(),
                Some(name) => {
                    let tenant = tenant(name, &all).await?;
                    all.of(&tenant.name, &tenant.id)
                }
            };
            let recording =
                transcript_file.as_ref().map(|transcript_file| transcript_file.recording.clone());
            Work { args, host: &host, places: &whose.places, directory: &directory, out }
                .replay(&own, recording, &progress)
                .await
        };
        let done = done.await;
        all.close().await;
        done
    });
    runtime.shutdown_background();
    progress.finish();
    let replayed = replayed?;
    if let Some(transcript_file) = transcript_file {
        transcript_file.write(out)?;
    }
    replay_shown::show(&replayed, args.json, out)?;
    Ok(match replayed.first() {
        Some(_) => Exit::Differs,
        None => Exit::Completed,
    })
}

/// All that a replay needs.
struct Work<'a> {
    args: &'a ReplayArgs,
    host: &'a Host,
    places: &'a Places,
    /// Where the layers of its overlays may lie.
    directory: &'a Path,
    out: &'a Out,
}

impl Work<'_> {
    async fn replay(
        &self,
        store: &Store,
        recording: Option<Recording>,
        progress: &Progress,
    ) -> Result<Replayed, Failure> {
        let found = find_run(store, &self.args.run).await;
        let run = found.map_err(|error| {
            let failure = failed(error);
            let usage = failure.exit == Exit::Usage;
            if usage { failure.hint("`belljar receipts` lists the runs") } else { failure }
        })?;
        self.replayable(&run)?;
        let steps = stored_steps(store, &run).await.map_err(failed)?;
        let spec = self.spec(&run, steps, recording)?;
        let place = layers_for_once(self.directory).map_err(|error| {
            let dir = self.directory.shown();
            Failure::new(format!(
                "failed to make a place for the overlays of a replay in `{dir}`: {error}"
            ))
        })?;
        let Some(rerun) = spec.rerun.clone() else { return Err(unknown(&self.args.run)) };
        let spec = RunSpec { layers: Some(place.layers.clone()), ..spec };
        let cancel = CancellationToken::new();
        host::cancel_on_interrupt(&cancel, self.out);
        let outcome = belljar_agent::run(self.host, spec, progress.sink(), cancel).await;
        place.layers.close();
        drop(place);
        Ok(Replayed {
            calls: rerun.calls(),
            ended_early: rerun.ended_early(),
            outcome,
            notes: self.notes(&run),
            run,
        })
    }

    /// Why this run cannot be replayed, for reasons other than missing data.
    fn replayable(&self, run: &Turn) -> Result<(), Failure> {
        let Recorded { session, status, .. } = &run.state;
        let id = &run.run;
        if *status == MessageStatus::InFlight {
            return Err(Failure::usage(format!("run `{id}` has not ended"))
                .hint("wait for it, or end it: what is replayed has to be whole"));
        }
        match session.kind {
            SessionKind::Run => {}
            SessionKind::Team => {
                return Err(Failure::usage(format!(
                    "`{id}` is the run of a team, which is not replayed"
                ))
                .hint(format!("`belljar receipts {id}` shows what its agents did")));
            }
            SessionKind::Chat | SessionKind::Api if self.args.model.is_some() => {
                return Err(Failure::usage(format!(
                    "`{id}` is a turn of a conversation, whose model is not asked again"
                ))
                .hint("without `--model` its calls are replayed"));
            }
            SessionKind::Chat | SessionKind::Api => {}
        }
        let workspace = Path::new(&session.workspace);
        if !workspace.is_dir() {
            return Err(Failure::usage(format!(
                "the workspace `{}` of run `{id}` is no longer there",
                workspace.shown()
            ))
            .hint("a replay works on an overlay of it: put it back to the same place"));
        }
        if workspace == self.places.workspace {
            return Ok(());
        }
        let command = format!("belljar --workspace {} replay {id}", workspace.shown());
        Err(Failure::usage(format!("run `{id}` worked in `{}`", workspace.shown()))
            .hint(format!("`{}`", self.args.of.command(&command))))
    }

    fn spec(
        &self,
        run: &Turn,
        steps: Vec<StepEntry>,
        recording: Option<Recording>,
    ) -> Result<RunSpec, Failure> {
        let Recorded { session, outcome, .. } = &run.state;
        if steps.is_empty() {
            return Err(Failure::usage(format!(
                "nothing is stored of run `{}` that could be replayed",
                run.run
            ))
            .hint("no model had answered when it ended, or an older program made it")
            .hint(format!("`belljar receipts {}` says how it ended", run.run)));
        }
        let agent = resolve(self.host, &outcome.agent, &self.places.workspace)
            .map_err(agents::not_found)?;
        let mut rerun = Rerun::of(steps);
        if self.args.network {
            rerun = rerun.with_network();
        }
        if let Some(recording) = recording {
            rerun = rerun.recorded(recording);
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
        let history = run.brought().history;
        Ok(RunSpec {
            context: run.context().map(str::to_owned),
            limits: run.limits(),
            brought: run.brought(),
            history,
            // A lost right shows up as a difference of calls.
            partial: true,
            model,
            rerun: Some(Arc::new(rerun)),
            ..RunSpec::new(Arc::new(agent), run.text(), workspace)
        })
    }

    fn notes(&self, run: &Turn) -> Vec<String> {
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

/// The models of a replay that asks none.
fn nobody() -> Result<Models, Failure> {
    let none = ScriptedModel::from_yaml("transcript: 1\nagents: []\n", Path::new("the record"))
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Models::single(Arc::new(none)))
}

fn unknown(run: &str) -> Failure {
    Failure::usage(format!("there is no run `{}`", Shown::clipped(run, 64)))
        .hint("`belljar receipts` lists the runs")
}
