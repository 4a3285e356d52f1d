//! MCP tasks: a turn of an agent is a task, and the turn's id is the task's. The state is in the store, so it
//! outlives client and host.

use belljar_session::{StoredTurnOf, is_at_work};
use belljar_store::MessageStatus;
use jiff::Timestamp;
use rmcp::ErrorData;
use rmcp::model::{
    DetailedTask, GetTaskResult, InputRequests, InputResponses, JsonObject, Task, TaskPayload,
    TaskStatus,
};
use serde_json::Value;

use super::agents::{answer_question, find_task, key_of, turn_result};
use super::ask;
use super::client::{ProtocolClient, refusal_error};

/// The milliseconds after which a client should ask again for a task's state.
const POLL_MS: u64 = 500;

/// A running turn as a task.
pub(super) fn running_task(stored: &StoredTurnOf) -> Task {
    let outcome = &stored.turn.state.outcome;
    let running = stored.turn.state.status == MessageStatus::InFlight;
    let updated = if running { outcome.started } else { outcome.ended };
    let at = |time: Timestamp| time.to_string();
    let (began, updated) = (at(outcome.started), at(updated));
    Task::new(stored.turn.message.clone(), TaskStatus::Working, began, updated)
        .with_poll_interval_ms(POLL_MS)
}

/// The state of a task. If the host stopped during the turn, the first query resumes it.
pub(super) async fn get_task(
    client: &ProtocolClient,
    id: &str,
) -> Result<GetTaskResult, ErrorData> {
    let turn = find_task(client, id).await?;
    let payload = match turn.turn.state.status {
        MessageStatus::InFlight => {
            resume_turn(client, &turn).await;
            asked_payload(client, &turn)
        }
        MessageStatus::Cancelled => TaskPayload::Cancelled,
        MessageStatus::Completed
        | MessageStatus::Partial
        | MessageStatus::Failed
        | MessageStatus::Interrupted => {
            let result = turn_result(client, &turn).await;
            match serde_json::to_value(result) {
                Ok(Value::Object(result)) => TaskPayload::Completed { result },
                Ok(_) | Err(_) => TaskPayload::Failed { error: JsonObject::new() },
            }
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(running_task(&turn), payload)))
}

/// Passes the person's answers, which the client sends, to the questions of a task.
pub(super) async fn update_task(
    client: &ProtocolClient,
    id: &str,
    answers: &InputResponses,
) -> Result<(), ErrorData> {
    let turn = find_task(client, id).await?;
    let session = &turn.turn.state.session.id;
    for (_, question) in client.service.open_questions(Some(session)) {
        if question.message != turn.turn.message {
            continue;
        }
        if let Some(brought) = answers.get(&key_of(question.id)) {
            answer_question(client, session, question.id, brought)?;
        }
    }
    Ok(())
}

/// Cancels the turn of a task.
pub(super) async fn cancel_task(client: &ProtocolClient, id: &str) -> Result<(), ErrorData> {
    let turn = find_task(client, id).await?;
    if turn.turn.state.status != MessageStatus::InFlight {
        return Ok(());
    }
    resume_turn(client, &turn).await;
    client.service.cancel_turn(&turn.turn.state.session.id, &client.actor);
    Ok(())
}

/// The payload of a running task: the forms for its open questions, or only that it is working.
fn asked_payload(client: &ProtocolClient, turn: &StoredTurnOf) -> TaskPayload {
    let open = client.service.open_questions(Some(&turn.turn.state.session.id));
    let forms = open.iter().filter(|(_, question)| question.message == turn.turn.message);
    let forms = forms.filter_map(|(_, question)| {
        let form = ask::question_form(&question.agent, &question.kind)?;
        Some((key_of(question.id), ask::input_request(form)))
    });
    let input_requests: InputRequests = forms.collect();
    if input_requests.is_empty() {
        return TaskPayload::Working;
    }
    TaskPayload::InputRequired { input_requests }
}

/// Resumes a turn that was interrupted by the end of its host, unless it runs again already.
async fn resume_turn(client: &ProtocolClient, turn: &StoredTurnOf) {
    let session = &turn.turn.state.session.id;
    let runs = client.service.running_turns().iter().any(|running| running.session == *session);
    if runs || is_at_work(client.service.store(), session) {
        return;
    }
    if let Err(error) = client.service.resume_session(session).await {
        let error = refusal_error(&error);
        tracing::debug!(target: "belljar::mcp", %session, "not resumed: {}", error.message);
    }
}
