//! Builds the request for a turn from a request of OpenAI's API: in a new session, or as the next turn of a
//! stored one.

use std::collections::{HashMap, HashSet};

use belljar_agent::{CallerInput, ChatMessage, ToolResult};
use belljar_session::{ServiceError, StoredTurnOf, TurnRequest};
use belljar_store::MessageStatus;

use crate::app::HandlerContext;
use crate::http::problem::{Problem, ProblemKind};
use crate::openai::entries::{SortedEntries, no_call, no_result};
use crate::openai::ids;
use crate::openai::params::invalid_value;

/// The turn for a request without a previous response, which contains the whole conversation. If the tool
/// results at its end answer the open calls of a stored session with the same agent, the turn is the next one
/// of that session, so the agent knows its own earlier work. Otherwise the turn begins a new session.
pub(crate) async fn turn_from_conversation(
    ctx: &HandlerContext,
    model: &str,
    parts: SortedEntries,
    brought: CallerInput,
    param: &str,
) -> Result<TurnRequest, Problem> {
    if let Some(turn) = find_waiting_turn(ctx, model, &parts).await? {
        let (results, task) = (results_of(&turn, &parts.results, param)?, parts.task);
        let brought = CallerInput { results, images: parts.images, ..brought };
        return Ok(next_turn(ctx, &turn, task, None, brought));
    }
    let SortedEntries { context, history, task, images, .. } = parts.close_results(param)?;
    Ok(new_session(ctx, model, task, context, CallerInput { history, images, ..brought }))
}

/// Finds the last turn of a session that waits for exactly these results. INV-281: searches in the caller's
/// own tenant only; another tenant's id is treated like an unknown one.
async fn find_waiting_turn(
    ctx: &HandlerContext,
    model: &str,
    parts: &SortedEntries,
) -> Result<Option<StoredTurnOf>, Problem> {
    let mut messages =
        parts.results.iter().map(|(id, _)| ids::parse_call_id(id).map(|call| call.0));
    let Some(Some(message)) = messages.next() else { return Ok(None) };
    if messages.any(|other| other != Some(message)) {
        return Ok(None);
    }
    let turn = match ctx.service.stored_turn(message).await {
        Ok(turn) => turn,
        Err(ServiceError::NoSession(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let same = turn.is_last
        && turn.turn.state.outcome.calls.len() == parts.results.len()
        && turn.turn.state.status != MessageStatus::InFlight
        && is_of_agent(&turn, model);
    Ok(same.then_some(turn))
}

/// Returns whether a turn belongs to the agent that `model` names, with its scope or without.
fn is_of_agent(turn: &StoredTurnOf, model: &str) -> bool {
    let agent = turn.turn.state.session.agent.as_str();
    agent == model || agent.rsplit('/').next() == Some(model)
}

/// The turn for a request that names a previous response. INV-282: after a session's last response, the
/// session continues; after an earlier response, a new session gets the conversation up to that response.
pub(crate) async fn turn_after_response(
    ctx: &HandlerContext,
    model: &str,
    turn: &StoredTurnOf,
    parts: SortedEntries,
    brought: CallerInput,
) -> Result<TurnRequest, Problem> {
    if turn.turn.state.status == MessageStatus::InFlight {
        let detail = "the response that this would go on from is still in progress";
        return Err(Problem::new(ProblemKind::Busy, detail).with_param("previous_response_id"));
    }
    if !is_of_agent(turn, model) {
        let detail = "a conversation stays with its agent: `model` is another one";
        return Err(
            invalid_value("model", detail).with_hint("begin anew without `previous_response_id`")
        );
    }
    if !parts.history.is_empty() {
        let detail = "with `previous_response_id`, `input` has the user's words and results alone";
        return Err(invalid_value("input", detail));
    }
    let results = results_of(turn, &parts.results, "input")?;
    let SortedEntries { context, task, images, .. } = parts;
    let brought = CallerInput { images, ..brought };
    if turn.is_last {
        return Ok(next_turn(ctx, turn, task, context, CallerInput { results, ..brought }));
    }
    let session = &turn.turn.state.session.id;
    let history = ctx.service.conversation_until(session, &turn.turn.message).await?;
    let history = answer_in_history(results, history);
    Ok(new_session(ctx, model, task, context, CallerInput { history, ..brought }))
}

fn answer_in_history(results: Vec<ToolResult>, mut history: Vec<ChatMessage>) -> Vec<ChatMessage> {
    CallerInput { results, ..CallerInput::default() }.answer(&mut history);
    history
}

/// A request for the turn after `turn`, in the same session.
fn next_turn(
    ctx: &HandlerContext,
    turn: &StoredTurnOf,
    text: String,
    context: Option<String>,
    brought: CallerInput,
) -> TurnRequest {
    TurnRequest {
        session: Some(turn.turn.state.session.id.clone()),
        after: Some(turn.turn.message.clone()),
        actor: ctx.caller.actor.to_string(),
        text,
        context,
        brought,
        ..TurnRequest::default()
    }
}

/// A request for a turn in a new session with the agent `model`.
fn new_session(
    ctx: &HandlerContext,
    model: &str,
    text: String,
    context: Option<String>,
    brought: CallerInput,
) -> TurnRequest {
    TurnRequest {
        agent: Some(model.to_owned()),
        actor: ctx.caller.actor.to_string(),
        text,
        context,
        brought,
        ..TurnRequest::default()
    }
}

/// The caller's results for all open calls at the end of the turn, by the agent's own ids of the calls.
fn results_of(
    turn: &StoredTurnOf,
    results: &[(String, String)],
    param: &str,
) -> Result<Vec<ToolResult>, Problem> {
    let (message, calls) = (&turn.turn.message, &turn.turn.state.outcome.calls);
    let ids: Vec<String> = (0..calls.len()).map(|place| ids::call_id(message, place)).collect();
    let known: HashSet<&str> = ids.iter().map(String::as_str).collect();
    if let Some((id, _)) = results.iter().find(|(id, _)| !known.contains(id.as_str())) {
        return Err(no_call(id, param));
    }
    let (mut by_call, mut twice) = (HashMap::new(), HashSet::new());
    for (id, content) in results {
        if by_call.insert(id.as_str(), content).is_some() {
            twice.insert(id.as_str());
        }
    }
    let mut found = Vec::with_capacity(calls.len());
    for (id, call) in ids.iter().zip(calls) {
        let Some(content) = by_call.get(id.as_str()) else { return Err(no_result(id, param)) };
        if twice.contains(id.as_str()) {
            return Err(invalid_value(param, format!("there are two results for the call `{id}`")));
        }
        found.push(ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            content: (*content).clone(),
            is_error: false,
        });
    }
    Ok(found)
}
