//! Attacks by agents, by models, and by the messages between them.

mod budgets;
mod calls;
mod code;
mod files;
mod frames;
mod peers;
mod puppet;
mod rights;
mod siblings;

use belljar_model::{ChatMessage, ChatRequest};

use crate::attack::{Attack, Escape, Stopped, Verdict};
use crate::scene::AgentScene;

pub(super) const ATTACKS: [&[Attack<crate::Arena>]; 8] = [
    calls::ATTACKS,
    rights::ATTACKS,
    files::ATTACKS,
    frames::ATTACKS,
    siblings::ATTACKS,
    budgets::ATTACKS,
    peers::ATTACKS,
    code::ATTACKS,
];

/// The tool results at the end of a request to a model: each text, and whether it is an error.
pub(super) fn request_results(request: &ChatRequest) -> Vec<(String, bool)> {
    match request.messages.last() {
        Some(ChatMessage::Tool { results }) => {
            results.iter().map(|result| (result.content.clone(), result.is_error)).collect()
        }
        Some(ChatMessage::User { .. } | ChatMessage::Assistant { .. }) | None => Vec::new(),
    }
}

/// Checks that there are `expected` results and that each is an error.
fn all_refused(results: Vec<(String, bool)>, expected: usize) -> Stopped {
    if results.len() != expected {
        return Err(Escape::new(format!("{} results, not {expected}: {results:?}", results.len())));
    }
    if let Some((text, _)) = results.iter().find(|(_, is_error)| !is_error) {
        return Err(Escape::new(format!("one call was answered: {text}")));
    }
    let mut told: Vec<String> = results.into_iter().map(|(text, _)| text).collect();
    told.dedup();
    Ok(Verdict::with_words(told.join(", ")))
}

/// The results of the calls in an agent's first step.
fn first_step_answers(scene: &AgentScene, agent: &str) -> Result<Vec<(String, bool)>, Escape> {
    let sent = scene.sent_by(agent, 0);
    let second = sent.get(1).ok_or_else(|| Escape::new(format!("`{agent}` made no call")))?;
    Ok(request_results(second))
}
