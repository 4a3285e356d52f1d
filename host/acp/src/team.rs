//! A team that a prompt runs beside the conversation: a session of its own, whose agents are shown in
//! this one.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    PermissionOptionKind, StopReason, ToolCallUpdate, ToolCallUpdateFields,
};
use async_trait::async_trait;
use belljar_agent::{Approval, Asker, Event, EventSink, Host, Question, TeamSpec, resolve_team};
use belljar_policy::{LimitsRequest, Shown};
use belljar_session::run_team_saved;
use tokio::sync::mpsc;

use crate::ask::{Choice, choose};
use crate::door::{Connection, Door};
use crate::errors::{failed, invalid};
use crate::follow::emit;
use crate::limits::{MAX_RESULTS, MAX_TITLE};
use crate::open::Prompting;
use crate::told::Told;
use crate::tool_call;
use crate::updates::{Out, Updates};
use crate::words;

/// Runs a team with this task, and shows what its agents do.
pub(crate) async fn run(
    door: &Arc<Door>,
    to: &Connection,
    prompting: &Prompting,
    name: &str,
    task: String,
) -> Result<StopReason, Error> {
    let session = &prompting.session.id;
    if task.is_empty() {
        let name = Shown::clipped(name, MAX_TITLE);
        return Err(invalid(format!("say what the team is to do: `/team:{name} TASK`")));
    }
    let mut host = Host::clone(&door.service.host());
    host.asker = Arc::new(Person::new(to, door, session));
    let spec = spec(door, &host, name, task).await?;
    let (sender, receiver) = mpsc::channel(MAX_RESULTS);
    let sink = EventSink::to(move |event: &Event| {
        // An error: the editor reads too slowly, or no more. The store has the event all the same.
        let _ = sender.try_send(serde_json::to_string(event).unwrap_or_default());
    });
    let showing = show(door, to, session, receiver);
    let store = door.service.store();
    let running = run_team_saved(store, &host, spec, sink, prompting.cancel.clone());
    let (saved, ()) = tokio::join!(running, showing);
    let outcome = saved.map_err(|error| failed(Shown::new(&error.to_string()).to_string()))?;
    let outcome = outcome.outcome.to_outcome();
    if !outcome.output.trim().is_empty() {
        door.send(to, session, words::remark(&outcome.output)).await;
    }
    let run = &outcome.run;
    let note = format!(
        "\n\n`belljar receipts {run}` has what the team did, `belljar changes {run}` what it changed."
    );
    door.send(to, session, words::remark(&note)).await;
    words::reason(&outcome)
}

async fn spec(door: &Door, host: &Host, name: &str, task: String) -> Result<TeamSpec, Error> {
    let (looked, workspace, named) =
        (host.clone(), door.workspace().to_path_buf(), name.to_owned());
    // It reads files.
    let found =
        tokio::task::spawn_blocking(move || resolve_team(&looked, &named, &workspace)).await;
    let found = found.map_err(|error| failed(error.to_string()))?;
    let team = found.map_err(|error| invalid(Shown::multiline(&error.to_string()).to_string()))?;
    if let Some(problem) = team.problems.first() {
        let problem = Shown::multiline(&problem.to_string()).to_string();
        return Err(failed(format!("team `{}` cannot run: {problem}", team.id)));
    }
    Ok(TeamSpec {
        team: Arc::new(team),
        task,
        model: None,
        workspace: door.workspace().to_path_buf(),
        limits: LimitsRequest::default(),
        budget: None,
        layers: None,
    })
}

/// Shows the events of a run beside the conversation.
pub(crate) async fn show(
    door: &Arc<Door>,
    to: &Connection,
    session: &str,
    mut events: mpsc::Receiver<String>,
) {
    let mut updates: Option<(String, Updates)> = None;
    while let Some(json) = events.recv().await {
        let Ok(told) = serde_json::from_str::<Told>(&json) else { continue };
        let (run, updates) = updates.get_or_insert_with(|| {
            let run = run_of(&json);
            let workspace = door.workspace().to_path_buf();
            let updates = Updates::new(door.client(), session, &run, workspace);
            (run, updates)
        });
        let mut out = updates.of(told);
        // The asker of the team puts them.
        out.retain(|out| matches!(out, Out::Update(..)));
        if emit(door, to, run, out).await.is_none() {
            return;
        }
    }
}

fn run_of(json: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Run {
        run: String,
    }
    serde_json::from_str::<Run>(json).map(|it| it.run).unwrap_or_default()
}

/// The person in the editor, for agents beside the conversation.
pub(crate) struct Person {
    to: Connection,
    door: Arc<Door>,
    session: String,
}

impl Person {
    pub(crate) fn new(to: &Connection, door: &Arc<Door>, session: &str) -> Self {
        Self { to: to.clone(), door: Arc::clone(door), session: session.to_owned() }
    }
}

#[async_trait]
impl Asker for Person {
    async fn ask(&self, question: Question<'_>) -> Approval {
        let input = tool_call::arguments(question.arguments);
        let id = self.door.own_call("question");
        let choice = |word: &str, name: &str, kind| Choice {
            id: format!("{id}.{word}"),
            name: name.to_owned(),
            kind,
        };
        let choices = vec![
            choice("yes", "Allow once", PermissionOptionKind::AllowOnce),
            choice("for_run", "Allow for this run", PermissionOptionKind::AllowAlways),
            choice("no", "No", PermissionOptionKind::RejectOnce),
        ];
        let tool = question.tool.as_str();
        let fields = ToolCallUpdateFields::new()
            .title(tool_call::title(tool, &input))
            .kind(tool_call::kind(tool))
            .content(tool_call::diffs(tool, &input, self.door.workspace()))
            .raw_input(input);
        let call = ToolCallUpdate::new(id, fields);
        match choose(&self.to, &self.session, call, choices).await.as_deref() {
            Some(id) if id.ends_with(".yes") => Approval::Yes,
            Some(id) if id.ends_with(".for_run") => Approval::ForRun,
            Some(_) | None => Approval::No,
        }
    }
}
