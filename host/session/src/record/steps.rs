//! Reads the steps of a stored turn, to replay the turn.

use belljar_agent::{LoggedResult, StepEntry, StepKind};
use belljar_model::{ChatMessage, ModelReply, StopReason, TokenUsage};
use belljar_store::{MessageStatus, Store, StoreError};

use crate::record::rows;
use crate::record::turn::Turn;

/// A turn's model answers and call results, in the order in which they were stored. Runs also have their
/// subagents' steps, even if the process died. Turns of a conversation, and runs of an older belljar, have
/// only the top agent's. Empty if nothing is stored.
///
/// # Errors
///
/// When the store cannot be read, or a stored row is malformed.
pub async fn stored_steps(store: &Store, turn: &Turn) -> Result<Vec<StepEntry>, StoreError> {
    let rows = store.journal_of(&turn.state.session.id, &turn.message).await?;
    if !rows.is_empty() {
        return rows.into_iter().map(|row| rows::step_entry(store, &turn.message, row)).collect();
    }
    Ok(match turn.state.status {
        // An unfinished turn's messages only have a note of the loss.
        MessageStatus::InFlight | MessageStatus::Interrupted => Vec::new(),
        MessageStatus::Completed
        | MessageStatus::Partial
        | MessageStatus::Failed
        | MessageStatus::Cancelled => steps_from_messages(turn),
    })
}

/// Makes the top agent's steps from the messages of the conversation, which have no usage of single answers.
fn steps_from_messages(turn: &Turn) -> Vec<StepEntry> {
    let outcome = &turn.state.outcome;
    let slug = outcome.agent.rsplit('/').next().unwrap_or_default();
    let entry = |step, position, kind| StepEntry { agent: slug.into(), step, position, kind };
    let (mut steps, mut step) = (Vec::new(), 0);
    for message in turn.messages() {
        match message {
            ChatMessage::User { .. } => {}
            ChatMessage::Assistant { text, calls, reasoning } => {
                step += 1;
                let stop = match calls.is_empty() {
                    true => StopReason::EndTurn,
                    false => StopReason::ToolUse,
                };
                let (text, calls, usage) = (text.clone(), calls.clone(), TokenUsage::default());
                let reply = ModelReply { text, calls, reasoning: reasoning.clone(), usage, stop };
                steps.push(entry(step, 0, StepKind::Said { notes: Vec::new(), reply }));
            }
            ChatMessage::Tool { results } => {
                for (position, result) in results.iter().enumerate() {
                    let of = outcome.receipts.iter();
                    let mut of = of.filter(|call| call.step == step && call.call_id == result.id);
                    let content = result.content.clone();
                    let logged =
                        LoggedResult::from_content(content, result.is_error, of.next().cloned());
                    steps.push(entry(step, position, StepKind::Result(Box::new(logged))));
                }
            }
        }
    }
    steps
}
