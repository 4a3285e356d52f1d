//! Calls of tools by an MCP client, in the client's own jar.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use belljar_agent::{
    Approval, ApprovalQuestion, Asker, ClarificationAnswer, ClarificationQuestion, DirectCall,
    DirectProgress, DirectTool,
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

/// The key of the only question that belongs to a call: whether the call is allowed.
const PERMISSION: &str = "permission";

/// The most progress reports that wait for a slow client.
const MAX_REPORTS: usize = 64;

/// How the person who uses a client can be asked.
#[derive(Clone)]
pub(super) enum AskingWay {
    /// By a request to the client while the call waits.
    Now(Peer<RoleServer>),
    /// By an answer that requires input, after which the client makes the call again.
    Later,
    /// Not at all, because the client supports neither.
    Nobody,
}

impl AskingWay {
    /// How the person of this client can be asked, from the client's capabilities and revision.
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

/// Returns whether a protocol revision has no requests from the server to its client.
pub(super) fn is_stateless(version: &ProtocolVersion) -> bool {
    version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()
}

/// A tool in the form of the protocol's list.
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

/// Calls a tool; asks the client's person first if the grant requires it.
pub(super) async fn call_tool(
    client: &ProtocolClient,
    request: CallToolRequestParams,
    cx: RequestContext<RoleServer>,
    logs: &LogForwarder,
) -> Result<CallToolResponse, ErrorData> {
    let name = request.name.into_owned();
    let arguments = text_of(request.arguments);
    let way = AskingWay::from_context(&cx);
    // The text that a sealed state is bound to, with all arguments; needed only if the client sent a
    // state or may get one.
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
                // If the client is slow, this report is dropped, and the client gets the next one.
                let _ = reports.try_send((done, total, text.to_owned()));
            });
            report
        }),
        asker: Some(Arc::clone(&asker) as Arc<dyn Asker>),
        cancel: cx.ct.clone(),
        // INV-350: in a revision without sessions, each call gets a fresh state of its own.
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

/// The person's decision that a client sends together with its sealed state.
fn brought_approval(
    client: &ProtocolClient,
    state: &str,
    bound: &str,
    answers: Option<&InputResponses>,
) -> Result<Approval, ErrorData> {
    let StateSubject::Call = client.states.open_state(state, bound, client.tenant_id())? else {
        return Err(ErrorData::invalid_params("`requestState` is not of a call", None));
    };
    // A state without the person's answer is no decision, because the person did not refuse either.
    let brought = answers.and_then(|answers| answers.get(PERMISSION));
    Ok(ask::read_permission(brought.unwrap_or(&Value::Null)))
}

/// Waits for a call, and meanwhile sends its progress reports to the client.
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

/// The progress numbers of one request, which only ever grow.
pub(super) struct ProgressReporter {
    token: ProgressToken,
    last: Option<u64>,
}

impl ProgressReporter {
    pub(super) fn new(token: ProgressToken) -> Self {
        Self { token, last: None }
    }

    /// Sends a progress report. A number that is not above the last one is raised to one more than
    /// that.
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
        // An error means: the client has disconnected, and its request ends anyway.
        let _ = peer.notify_progress(report).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "the protocol counts so")]
fn progress_number(count: u64) -> f64 {
    count as f64
}

/// The arguments as JSON text for the tool.
pub(super) fn text_of(arguments: Option<Map<String, Value>>) -> String {
    arguments.map_or_else(|| "{}".to_owned(), |arguments| Value::Object(arguments).to_string())
}

/// Asks the person who uses the client about one call.
struct CallAsker {
    tool: String,
    /// The person's decision that the client sent with the call, until it is used.
    allowed: Mutex<Option<Approval>>,
    way: AskingWay,
    waits: Arc<WaitingRequests>,
    /// The question for the person, to be answered before the client makes the call again.
    asked: Mutex<Option<ElicitRequestParams>>,
}

impl CallAsker {
    fn remove_form(&self) -> Option<ElicitRequestParams> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[async_trait]
impl Asker for CallAsker {
    /// Asks whether a call is allowed. A decision that came with the call counts once, and only for this
    /// call, not for calls that it makes.
    async fn ask_approval(&self, question: ApprovalQuestion<'_>) -> Approval {
        // A nested call cannot be repeated, because the effects before it would happen twice.
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
    async fn ask_clarification(&self, asked: ClarificationQuestion<'_>) -> ClarificationAnswer {
        let kind = QuestionKind::from(&asked);
        let form = ask::question_form(asked.agent, &kind);
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
