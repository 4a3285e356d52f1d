//! Agents as MCP tools: a call of `agent_NAME {task, context}` runs a turn in a new session.

use std::sync::Arc;
use std::time::Duration;

use belljar_agent::{Event, EventKind, ResolvedAgent, resolve_all_until};
use belljar_definition::{AgentReadiness, Visibility};
use belljar_policy::ShownText;
use belljar_session::{
    OpenQuestion, PersonAnswer, QuestionKind, RunningTurn, ServiceError, StoredTurnOf, TurnRequest,
    parse_event,
};
use belljar_store::MessageStatus;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult,
    InputRequests, InputRequiredResult, MetaObject, Resource, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::calls::{AskingWay, ProgressReporter, text_of};
use super::client::{MCP_IDENTITY, ProtocolClient, refusal_error};
use super::state::{StateSubject, bound_to};
use super::{ask, tasks, uri};
use crate::http::ids::is_id;

/// The prefix of a tool that is an agent, for example `agent_scout`.
const PREFIX: &str = "agent_";

/// The most characters of an agent's description in the list of tools.
const MAX_DESCRIPTION: usize = 1_000;

/// The interval in which the server looks for a question whose event has already arrived.
const QUESTION_LOOK: Duration = Duration::from_millis(20);

/// A note stored with each turn that began by MCP, so a later request about the task finds the turn.
#[derive(Serialize, Deserialize)]
struct TurnNote {
    wire: NoteWire,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NoteWire {
    Mcp,
}

/// An agent that the client may call as a tool.
struct AgentTool {
    name: String,
    /// The agent's scope and slug, for example `home/scout`.
    id: String,
    description: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentArguments {
    task: String,
    context: Option<String>,
}

/// Returns whether a tool's name stands for an agent.
pub(super) fn is_agent(tool: &str) -> bool {
    tool.starts_with(PREFIX)
}

/// Lists the callable agents in the form of MCP tools.
pub(super) async fn list_agents(client: &ProtocolClient) -> Result<Vec<Tool>, ServiceError> {
    Ok(runnable_agents(client).await?.into_iter().map(|agent| agent.into_tool()).collect())
}

/// The agents for people that are ready to run; none unless the client's grants include subagents and a
/// model is set. Agents of equal slug are listed by scope and slug.
async fn runnable_agents(client: &ProtocolClient) -> Result<Vec<AgentTool>, ServiceError> {
    let host = client.service.current_host();
    if host.models.is_empty() || !client.direct_session().await?.may_spawn().await? {
        return Ok(Vec::new());
    }
    let workspace = client.service.workspace().to_owned();
    let all =
        client.service.look_up(move |stop| resolve_all_until(&host, &workspace, stop)).await?;
    let all: Vec<ResolvedAgent> = all.map_err(|error| ServiceError::Agent(error.to_string()))?;
    let open = all.iter().filter(|agent| {
        agent.definition.visibility == Visibility::UserFacing
            && !matches!(agent.status, AgentReadiness::Blocked { .. })
            && agent.id.slug.as_str() != MCP_IDENTITY
    });
    let tool = |agent: &ResolvedAgent| {
        let same = all.iter().filter(|other| other.id.slug == agent.id.slug).count();
        let id = agent.id.to_string();
        let slug = if same > 1 { id.as_str() } else { agent.id.slug.as_str() };
        AgentTool {
            name: name_of(slug),
            description: ShownText::clip_line(&agent.definition.description, MAX_DESCRIPTION)
                .to_string(),
            id,
        }
    };
    Ok(open.map(tool).collect())
}

/// The name of an agent as a tool, in the characters that MCP allows. Any other letter becomes its code
/// point, so no two agents have the same name. For example, `é` becomes `.e9`.
fn name_of(agent: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let letter = |c: char| match c {
        c if fits(c) => c.to_string(),
        c if c.is_ascii() => "_".to_owned(),
        c => format!(".{:x}", u32::from(c)),
    };
    let name: String = agent.chars().map(letter).collect();
    let name: String = name.chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{PREFIX}{name}")
}

impl AgentTool {
    /// The tool with its schema of two parameters: `task` and `context`.
    fn into_tool(self) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {
                "task": {"type": "string", "description": "the task, whole: the agent sees nothing else"},
                "context": {"type": "string", "description": "facts that it would have to find out"},
            },
            "required": ["task"],
            "additionalProperties": false,
        });
        let schema = match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        };
        Tool::new(self.name, self.description, Arc::new(schema))
    }
}

/// Runs an agent: as an MCP task if the client supports tasks, otherwise the call waits for the turn's
/// end.
pub(super) async fn call_agent(
    client: &ProtocolClient,
    request: CallToolRequestParams,
    cx: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let name = request.name.into_owned();
    let arguments = text_of(request.arguments);
    let bound = bound_to(&client.bound_to(), &name, &arguments);
    let turn = match request.request_state {
        Some(state) => {
            let StateSubject::Question { session, message, question } =
                client.states.open_state(&state, &bound, client.tenant_id())?
            else {
                return Err(ErrorData::invalid_params("`requestState` is not of an agent", None));
            };
            let brought = request.input_responses.unwrap_or_default();
            let brought = brought.get(&key_of(question)).cloned().unwrap_or_default();
            answer_question(client, &session, question, &brought)?;
            let running = client.service.running_turns().into_iter();
            match running.into_iter().find(|turn| turn.message == message) {
                Some(turn) => turn,
                None => return ended_response(client, &message).await,
            }
        }
        None => begin_turn(client, &name, &arguments).await?,
    };
    if cx.client_capabilities().is_some_and(|can| can.supports_tasks()) {
        let stored = find_task(client, &turn.message).await?;
        return Ok(CreateTaskResult::new(tasks::running_task(&stored)).into());
    }
    follow_turn(client, turn, &cx, &bound).await
}

/// Finds the agent, parses the arguments, and begins a turn in a new session.
async fn begin_turn(
    client: &ProtocolClient,
    name: &str,
    arguments: &str,
) -> Result<RunningTurn, ErrorData> {
    let agents = runnable_agents(client).await.map_err(|error| refusal_error(&error))?;
    let agent = agents.into_iter().find(|agent| agent.name == name).ok_or_else(|| {
        let name = ShownText::clip_line(name, 64);
        ErrorData::invalid_params(format!("unknown tool `{name}`"), None)
    })?;
    let AgentArguments { task, context } = serde_json::from_str(arguments).map_err(|error| {
        let why = error.to_string();
        ErrorData::invalid_params(format!("`arguments`: {}", ShownText::clip_line(&why, 200)), None)
    })?;
    let request = TurnRequest {
        agent: Some(agent.id),
        text: task,
        context,
        entrance: serde_json::to_value(TurnNote { wire: NoteWire::Mcp }).ok(),
        actor: client.actor.to_string(),
        door: "mcp",
        ..TurnRequest::default()
    };
    client.service.begin_turn(request).await.map_err(|error| refusal_error(&error))
}

/// Waits for the end of a turn; meanwhile sends progress to the client, and the agent's questions to
/// its person.
async fn follow_turn(
    client: &ProtocolClient,
    turn: RunningTurn,
    cx: &RequestContext<RoleServer>,
    bound: &str,
) -> Result<CallToolResponse, ErrorData> {
    let _waiting = client.waits.begin_waiting();
    let mut progress = cx.meta.get_progress_token().map(ProgressReporter::new);
    let (mut watch, mut watching, mut asks) = (turn.watch_events(), true, false);
    let mut looks = tokio::time::interval(QUESTION_LOOK);
    loop {
        tokio::select! {
            biased;
            () = cx.ct.cancelled() => {
                client.service.cancel_turn(&turn.session, &client.actor);
                turn.wait_for_end().await;
                break;
            }
            _ = turn.wait_for_end() => break,
            event = watch.next_event(), if watching => match event {
                Some(event) if *event.message == *turn.message => {
                    let Some(event) = parse_event(&event) else { continue };
                    match &event.kind {
                        EventKind::PermissionAsked { .. } | EventKind::QuestionAsked { .. } => {
                            asks = true;
                        }
                        EventKind::PermissionAnswered { .. } | EventKind::QuestionAnswered { .. } => {
                            asks = !client.service.open_questions(Some(&turn.session)).is_empty();
                        }
                        _ => {}
                    }
                    if let (Some(progress), Some(text)) = (&mut progress, progress_text(&event)) {
                        progress.send_report(&cx.peer, 0, None, text).await;
                    }
                }
                Some(_) => {}
                None => watching = false,
            },
            _ = looks.tick(), if asks => {
                let open = client.service.open_questions(Some(&turn.session));
                // The question is about to be listed, or was answered already, as the next event will
                // show.
                let Some((_, question)) = open.into_iter().next() else { continue };
                match ask_question(client, &turn, &question, cx, bound).await? {
                    Some(asked) => return Ok(asked),
                    None => asks = client.alone || !matches!(AskingWay::from_context(cx), AskingWay::Nobody),
                }
            }
        }
    }
    ended_response(client, &turn.message).await
}

/// Shows a question to the client's person. Returns an answer that demands input if the client has to
/// repeat its call with that input.
async fn ask_question(
    client: &ProtocolClient,
    turn: &RunningTurn,
    question: &OpenQuestion,
    cx: &RequestContext<RoleServer>,
    bound: &str,
) -> Result<Option<CallToolResponse>, ErrorData> {
    let form = ask::question_form(&question.agent, &question.kind);
    let given = match (AskingWay::from_context(cx), form) {
        (AskingWay::Now(peer), Some(form)) => {
            let answer = tokio::select! {
                biased;
                () = cx.ct.cancelled() => return Ok(None),
                _ = turn.wait_for_end() => return Ok(None),
                answer = ask::show_form(&peer, form) => answer,
            };
            answer.unwrap_or_default()
        }
        (AskingWay::Later, Some(form)) => {
            let about = StateSubject::Question {
                session: turn.session.clone(),
                message: turn.message.clone(),
                question: question.id,
            };
            let state = client.states.seal_state(about, bound)?;
            let asked = InputRequests::from([(key_of(question.id), ask::input_request(form))]);
            return Ok(Some(InputRequiredResult::new(Some(asked), Some(state)).into()));
        }
        // Other people see the question too, on the page or by the API, so the turn goes on waiting.
        (AskingWay::Nobody, _) | (_, None) if !client.alone => return Ok(None),
        (AskingWay::Nobody | AskingWay::Now(_) | AskingWay::Later, _) => Value::Null,
    };
    let word = answer_from_client(&question.kind, &given);
    // An error means: another caller has answered, or that the turn has ended.
    let _ = client.service.answer_question(&turn.session, question.id, word, &client.actor);
    Ok(None)
}

/// The key under which a question is found among the input that a client brings.
pub(super) fn key_of(question: u64) -> String {
    format!("question-{question}")
}

/// Answers an open question of a turn with the client's input.
pub(super) fn answer_question(
    client: &ProtocolClient,
    session: &str,
    question: u64,
    brought: &Value,
) -> Result<(), ErrorData> {
    let open = client.service.open_questions(Some(session));
    let asked = open.into_iter().find(|(_, asked)| asked.id == question);
    // Without an open question of this id, another caller has answered meanwhile.
    let Some((_, asked)) = asked else { return Ok(()) };
    let word = answer_from_client(&asked.kind, brought);
    let answered = client.service.answer_question(session, question, word, &client.actor);
    answered.map_err(|error| refusal_error(&error))
}

/// The person's answer in what a client sent; `null` for a question about permission means that nobody was
/// asked.
fn answer_from_client(kind: &QuestionKind, brought: &Value) -> PersonAnswer {
    match (kind, brought) {
        (QuestionKind::Permission { .. }, Value::Null) => {
            PersonAnswer::Permission(belljar_agent::Approval::Nobody)
        }
        (kind, brought) => ask::parse_answer(kind, brought),
    }
}

/// The text of an event as progress for a client; `None` for events that a client does not see.
fn progress_text(event: &Event) -> Option<String> {
    let agent = ShownText::clip_line(&event.agent, 100);
    match &event.kind {
        EventKind::StepStarted { step, .. } => Some(format!("{agent}: step {step}")),
        EventKind::ToolCallStarted { tool, .. } => {
            Some(format!("{agent}: {}", ShownText::clip_line(tool, 64)))
        }
        EventKind::SubagentBatchStart { .. } => Some(format!("{agent}: starts subagents")),
        EventKind::SubagentBatchEnd { summary, counts, .. } if counts.total > 1 => {
            let (of, summary) = (counts.total, ShownText::clip_line(summary, 200));
            Some(format!("{agent}: these {of} subagents have ended: {summary}"))
        }
        EventKind::SubagentBackground { .. } => {
            Some(format!("{agent}: a subagent goes on in the background"))
        }
        EventKind::SubagentDone { .. } => Some(format!("{agent}: a subagent has ended")),
        _ => None,
    }
}

/// Finds a turn that this key began by MCP. INV-294: a task of another key, of another tenant, and a
/// missing one get the same answer.
pub(super) async fn find_task(
    client: &ProtocolClient,
    message: &str,
) -> Result<StoredTurnOf, ErrorData> {
    let none = || ErrorData::invalid_params("there is no such task", None);
    if !is_id(message) {
        return Err(none());
    }
    let stored = match client.service.stored_turn(message).await {
        Ok(stored) => stored,
        Err(ServiceError::NoSession(_)) => return Err(none()),
        Err(error) => return Err(refusal_error(&error)),
    };
    let ours = stored.turn.entrance_note().is_some_and(|note| TurnNote::deserialize(note).is_ok());
    let own = stored.turn.actor().is_some_and(|actor| *actor == *client.actor);
    if ours && own { Ok(stored) } else { Err(none()) }
}

/// The result of the turn that has the stored message, as the answer of the call.
async fn ended_response(
    client: &ProtocolClient,
    message: &str,
) -> Result<CallToolResponse, ErrorData> {
    let stored = find_task(client, message).await?;
    Ok(turn_result(client, &stored).await.into())
}

/// The result of a turn that has ended.
pub(super) async fn turn_result(client: &ProtocolClient, stored: &StoredTurnOf) -> CallToolResult {
    let state = &stored.turn.state;
    let outcome = &state.outcome;
    let mut texts = Vec::new();
    if !outcome.output.is_empty() {
        texts.push(ContentBlock::text(outcome.output.clone()));
    }
    let error = || {
        let error = outcome.error.as_ref();
        error.map_or_else(|| "it was cancelled".to_owned(), ToString::to_string)
    };
    let why = match state.status {
        MessageStatus::InFlight => Some("the server stopped before it had ended".to_owned()),
        MessageStatus::Interrupted => Some("it was interrupted".to_owned()),
        MessageStatus::Completed => None,
        MessageStatus::Partial | MessageStatus::Failed | MessageStatus::Cancelled => Some(error()),
    };
    let failed = why.is_some() && state.status != MessageStatus::Partial;
    texts.extend(why.map(|why| ContentBlock::text(format!("[{why}]"))));
    let session = &state.session.id;
    let files = client.service.store().latest_attachments(session).await.unwrap_or_default();
    for file in files.iter().filter(|file| file.message == stored.turn.message) {
        let link = Resource::new(uri::attachment_uri(session, &file.id), file.name.clone());
        texts.push(ContentBlock::resource_link(link.with_mime_type(file.media_type.clone())));
    }
    let mut answer =
        if failed { CallToolResult::error(texts) } else { CallToolResult::success(texts) };
    let mut meta = MetaObject::new();
    meta.0.insert("belljar/session".to_owned(), json!(session));
    meta.0.insert("belljar/run".to_owned(), json!(stored.turn.run));
    answer.meta = Some(meta);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_name_is_one_that_the_protocol_takes() {
        assert_eq!(name_of("scout"), "agent_scout");
        assert_eq!(name_of("library/x/scout"), "agent_library_x_scout");
        assert_eq!(name_of("代码-x"), "agent_.4ee3.7801-x");
        assert_ne!(name_of("代码"), name_of("审查"));
        assert_eq!(name_of(&format!("workspace:/{}/scout", "long/".repeat(60))).len(), 126);
    }

    #[test]
    fn a_note_of_another_entrance_is_none_of_ours() {
        assert!(TurnNote::deserialize(&json!({"wire": "mcp"})).is_ok());
        assert!(TurnNote::deserialize(&json!({"wire": "responses", "model": "x"})).is_err());
    }
}
