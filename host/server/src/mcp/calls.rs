//! A call of a tool, in the client's own jar.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_agent::{
    Approval, ApprovalQuestion, Asker, ClarificationAnswer, DirectCall, DirectProgress, DirectTool,
};
use belljar_policy::ShownText;
use belljar_session::{DirectDone, QuestionKind};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequestParams, InputRequests,
    InputRequiredResult, InputResponses, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::client::{ProtocolClient, refusal_error};
use super::flow::WaitingRequests;
use super::logs::LogForwarder;
use super::state::{StateSubject, bound_to};
use super::{ask, content};

/// The name of the one question about a call.
const PERMISSION: &str = "permission";

/// Reports of a tool waiting for its client.
const MAX_REPORTS: usize = 64;

/// The way in which the person behind a client is asked.
#[derive(Clone)]
pub(super) enum AskingWay {
    /// While the call waits.
    Now(Peer<RoleServer>),
    /// By an answer that requires input: the client makes the call again.
    Later,
    /// The client has no way.
    Nobody,
}

impl AskingWay {
    pub(super) fn from_context(cx: &RequestContext<RoleServer>) -> Self {
        let capable = cx.client_capabilities().and_then(|can| can.elicitation);
        let newer = cx.protocol_version().is_some_and(|version| is_stateless(&version));
        match capable {
            Some(_) if newer => Self::Later,
            Some(_) => Self::Now(cx.peer.clone()),
            None => Self::Nobody,
        }
    }
}

/// Returns whether a revision has no requests from the server to its client.
pub(super) fn is_stateless(version: &ProtocolVersion) -> bool {
    version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()
}

/// A tool in the protocol's form.
pub(super) fn to_tool(tool: &DirectTool) -> Tool {
    let schema = match tool.spec.schema.clone() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let mut schema = schema;
    schema.entry("type").or_insert_with(|| json!("object"));
    let hints = tool.hints;
    let annotations = ToolAnnotations::new()
        .read_only(hints.read_only)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    Tool::new(tool.spec.name.clone(), tool.spec.description.clone(), Arc::new(schema))
        .with_annotations(annotations)
}

/// Makes a call.
pub(super) async fn call_tool(
    client: &ProtocolClient,
    request: CallToolRequestParams,
    cx: RequestContext<RoleServer>,
    logs: &LogForwarder,
) -> Result<CallToolResponse, ErrorData> {
    let name = request.name.into_owned();
    let arguments = text_of(request.arguments);
    let way = AskingWay::from_context(&cx);
    // The text to which a state is bound, if a state exists or is possible. Contains all arguments.
    let has_state = request.request_state.is_some() || matches!(way, AskingWay::Later);
    let bound = match has_state {
        true => bound_to(&client.bound_to(), &name, &arguments),
        false => String::new(),
    };
    let allowed = match request.request_state {
        Some(state) => {
            Some(brought_approval(client, &state, &bound, request.input_responses.as_ref())?)
        }
        None => None,
    };
    let asker = Arc::new(CallAsker {
        tool: name.clone(),
        allowed: Mutex::new(allowed),
        way,
        waits: Arc::clone(&client.waits),
        asked: Mutex::new(None),
    });
    let (reports, reported) = mpsc::channel(MAX_REPORTS);
    let call = DirectCall {
        id: client.next_call(),
        tool: name.clone(),
        arguments,
        progress: cx.meta.get_progress_token().map(|_| {
            let report: DirectProgress = Arc::new(move |done, total, text: &str| {
                // A slow client misses this report and gets the next one.
                let _ = reports.try_send((done, total, text.to_owned()));
            });
            report
        }),
        asker: Some(Arc::clone(&asker) as Arc<dyn Asker>),
        cancel: cx.ct.clone(),
        // INV-350: revisions without sessions know no state of one either.
        fresh: cx.protocol_version().is_some_and(|version| is_stateless(&version)),
    };
    let direct = client.direct_session().await.map_err(|error| refusal_error(&error))?;
    let done = report_progress(direct.call_tool(call), reported, &cx).await;
    let done = done.map_err(|error| refusal_error(&error))?;
    if done.result.unknown {
        let name = ShownText::clip_line(&name, 64);
        return Err(ErrorData::invalid_params(format!("unknown tool `{name}`"), None));
    }
    if let Some(form) = asker.remove_form() {
        let state = client.states.seal_state(StateSubject::Call, &bound)?;
        let asked = InputRequests::from([(PERMISSION.to_owned(), ask::input_request(form))]);
        return Ok(InputRequiredResult::new(Some(asked), Some(state)).into());
    }
    client.touched.note_call(&done);
    logs.send_lines(&cx, &done).await;
    Ok(content::call_result(direct.session_id(), done).into())
}

/// The person's answer that a client brings with its state.
fn brought_approval(
    client: &ProtocolClient,
    state: &str,
    bound: &str,
    answers: Option<&InputResponses>,
) -> Result<Approval, ErrorData> {
    let StateSubject::Call = client.states.open_state(state, bound, client.tenant_id())? else {
        return Err(ErrorData::invalid_params("`requestState` is not of a call", None));
    };
    // A state without a word of the person's is no word: whoever was asked did not say no.
    let brought = answers.and_then(|answers| answers.get(PERMISSION));
    Ok(ask::read_permission(brought.unwrap_or(&Value::Null)))
}

/// Passes on the reports of a running call.
async fn report_progress<E>(
    call: impl Future<Output = Result<DirectDone, E>>,
    mut reports: mpsc::Receiver<(u64, Option<u64>, String)>,
    cx: &RequestContext<RoleServer>,
) -> Result<DirectDone, E> {
    let Some(token) = cx.meta.get_progress_token() else { return call.await };
    let mut said = ProgressReporter::new(token);
    tokio::pin!(call);
    loop {
        let (done, total, text) = tokio::select! {
            biased;
            done = &mut call => {
                while let Ok((done, total, text)) = reports.try_recv() {
                    said.send_report(&cx.peer, done, total, text).await;
                }
                return done;
            }
            Some(report) = reports.recv() => report,
        };
        said.send_report(&cx.peer, done, total, text).await;
    }
}

/// The progress of a request, which only ever grows.
pub(super) struct ProgressReporter {
    token: ProgressToken,
    last: Option<u64>,
}

impl ProgressReporter {
    pub(super) fn new(token: ProgressToken) -> Self {
        Self { token, last: None }
    }

    /// Sends a report. Progress that does not rise above the last report is raised to one more than the last.
    pub(super) async fn send_report(
        &mut self,
        peer: &Peer<RoleServer>,
        done: u64,
        total: Option<u64>,
        text: String,
    ) {
        let least = self.last.map_or(0, |last| last.saturating_add(1));
        let done = done.max(least);
        self.last = Some(done);
        let mut report = ProgressNotificationParam::new(self.token.clone(), progress_number(done));
        report.total = total.filter(|total| *total >= done).map(progress_number);
        report.message = Some(text).filter(|text| !text.is_empty());
        // An error: the client has disconnected, and its request ends.
        let _ = peer.notify_progress(report).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "the protocol counts so")]
fn progress_number(count: u64) -> f64 {
    count as f64
}

/// The arguments as text for the tool.
pub(super) fn text_of(arguments: Option<Map<String, Value>>) -> String {
    arguments.map_or_else(|| "{}".to_owned(), |arguments| Value::Object(arguments).to_string())
}

/// Asks the person behind a client about one call.
struct CallAsker {
    tool: String,
    /// The person's decision that came with the call.
    allowed: Mutex<Option<Approval>>,
    way: AskingWay,
    waits: Arc<WaitingRequests>,
    /// The question that is to be answered before the call is made again.
    asked: Mutex<Option<ElicitRequestParams>>,
}

impl CallAsker {
    fn remove_form(&self) -> Option<ElicitRequestParams> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl Asker for CallAsker {
    async fn ask_approval(&self, question: ApprovalQuestion<'_>) -> Approval {
        // A nested call cannot be repeated: earlier effects would happen twice.
        let own = question.tool.as_str() == self.tool;
        let brought = || self.allowed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(word) = own.then(brought).flatten() {
            return word;
        }
        let form = ask::question_form(question.agent, &(&question).into());
        let Some(form) = form else { return Approval::Nobody };
        match &self.way {
            AskingWay::Now(peer) => {
                let _waiting = self.waits.begin_waiting();
                let brought = ask::show_form(peer, form).await;
                brought.map_or(Approval::Nobody, |brought| ask::read_permission(&brought))
            }
            AskingWay::Later if own => {
                *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(form);
                Approval::Nobody
            }
            AskingWay::Later | AskingWay::Nobody => Approval::Nobody,
        }
    }

    /// A question during the call, for example of an MCP server. A client that would have to repeat the call
    /// is not asked, because earlier effects would happen twice.
    async fn ask_clarification(
        &self,
        _id: u64,
        agent: &str,
        question: &str,
        options: &[String],
    ) -> ClarificationAnswer {
        let (question, options) = (question.to_owned(), options.to_vec());
        let kind = QuestionKind::Clarify { question, options };
        let form = ask::question_form(agent, &kind);
        let (Some(form), AskingWay::Now(peer)) = (form, &self.way) else {
            return ClarificationAnswer::Nobody;
        };
        let _waiting = self.waits.begin_waiting();
        let brought = ask::show_form(peer, form).await;
        brought.map_or(ClarificationAnswer::Nobody, |brought| {
            ask::parse_answer(&kind, &brought).into_spoken_answer()
        })
    }
}
