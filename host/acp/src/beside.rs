//! Runs beside the conversation: each a separate session, shown in the asking session.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    PermissionOptionKind, ToolCallUpdate, ToolCallUpdateFields,
};
use async_trait::async_trait;
use belljar_agent::{Approval, Asker, Event, EventSink, Host, Question, RunId};
use belljar_policy::Shown;
use tokio::sync::mpsc;

use crate::ask::{Choice, choose};
use crate::client::Client;
use crate::door::{Connection, Door};
use crate::errors::{failed, invalid};
use crate::follow::emit;
use crate::limits::MAX_RESULTS;
use crate::updates::{Out, Updates};
use crate::{tool_call, words};

/// A run beside a conversation.
pub(crate) struct Beside<'a> {
    pub(crate) door: &'a Arc<Door>,
    pub(crate) to: &'a Connection,
    /// The session that shows the run.
    pub(crate) session: &'a str,
}

impl Beside<'_> {
    /// A host for the run: its questions go to the person in the editor.
    pub(crate) fn host(&self) -> Host {
        let mut host = Host::clone(&self.door.service.host());
        host.asker = Arc::new(Person {
            to: self.to.clone(),
            door: Arc::clone(self.door),
            session: self.session.to_owned(),
        });
        host
    }

    /// Looks up a name. Reads files.
    pub(crate) async fn find<T: Send + 'static, E: std::fmt::Display + Send + 'static>(
        &self,
        host: &Host,
        name: &str,
        look: fn(&Host, &str, &Path) -> Result<T, E>,
    ) -> Result<T, Error> {
        let (host, name) = (host.clone(), name.to_owned());
        let workspace = self.door.workspace().to_path_buf();
        let service = &self.door.service;
        let found = service.look_up(move |_| look(&host, &name, &workspace)).await;
        let found = found.map_err(|error| failed(error.to_string()))?;
        found.map_err(|error| invalid(Shown::multiline(&error.to_string()).to_string()))
    }

    /// Runs a future, and shows its events meanwhile.
    pub(crate) async fn shown<T, E: std::fmt::Display>(
        &self,
        run: impl AsyncFnOnce(EventSink) -> Result<T, E>,
    ) -> Result<T, Error> {
        let (sender, receiver) = mpsc::channel(MAX_RESULTS);
        let sink = EventSink::to(move |event: &Event| {
            // An error: the editor reads too slowly, or no more. The store has the event all the same.
            let _ = sender.try_send(event.clone());
        });
        let showing = show(self.door, self.to, self.session, receiver);
        let (ended, ()) = tokio::join!(run(sink), showing);
        ended.map_err(|error| failed(Shown::new(&error.to_string()).to_string()))
    }

    /// Shows a text in the session.
    pub(crate) async fn says(&self, text: &str) {
        self.door.send(self.to, self.session, words::remark(text)).await;
    }

    /// Shows the commands that print the receipts and changes of the run.
    pub(crate) async fn says_where(&self, run: &RunId, who: &str) {
        let note = format!(
            "\n\n`belljar receipts {run}` has what {who} did, `belljar changes {run}` what it changed."
        );
        self.says(&note).await;
    }
}

/// Shows the events of a run beside the conversation.
async fn show(door: &Arc<Door>, to: &Connection, session: &str, mut events: mpsc::Receiver<Event>) {
    let mut updates: Option<(String, Updates)> = None;
    while let Some(event) = events.recv().await {
        let (run, updates) = updates.get_or_insert_with(|| {
            let run = event.run.to_string();
            let workspace = door.workspace().to_path_buf();
            // Their outputs do not pass by here.
            let client = Client { terminals: false, ..door.client() };
            let updates = Updates::new(client, session, &run, workspace);
            (run, updates)
        });
        let mut out = updates.of(event.agent.to_string(), event.kind);
        // The asker of the team puts them.
        out.retain(|out| matches!(out, Out::Update(..)));
        if emit(door, to, run, out).await.is_none() {
            return;
        }
    }
}

/// The person in the editor, for agents beside the conversation.
struct Person {
    to: Connection,
    door: Arc<Door>,
    session: String,
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
        choose(&self.to, &self.session, call, choices).await.approval()
    }
}
