//! Builds the outcome of an agent, whether it ran or could not start.

use std::any::Any;

use jiff::Timestamp;

use crate::agent_loop::job::{AgentJob, RunState};
use crate::agent_loop::ledger::Ledger;
use crate::agent_loop::machine::{AgentEnding, ConversationTranscript};
use crate::outcome::{Outcome, RunError, RunStatus, Usage};
use crate::prompt::findings::Findings;
use crate::rights::resolve::ResolvedAgent;

/// The outcome of an agent that ran: the ledger's records and the conversation.
pub(crate) fn build_outcome(
    job: &AgentJob,
    ledger: &Ledger,
    ending: AgentEnding,
    transcript: ConversationTranscript,
    started: Timestamp,
) -> Outcome {
    let entries = ledger.take_entries();
    let mut total = entries.usage;
    for (_, child) in &entries.children {
        total += child.outcome.total;
    }
    let children = entries.children.into_iter().map(|(_, child)| child);
    let mut unfinished = entries.unfinished;
    let children: Vec<_> = children.collect();
    unfinished.extend(children.iter().flat_map(|child| child.outcome.unfinished.iter().cloned()));
    let definition = &job.agent.definition;
    // Only a child has the contract that asks for findings; neither a top agent nor a fork has it.
    let asked = job.depth.is_child() && job.fork.is_none();
    let findings = (asked && definition.emit_structured_findings)
        .then(|| Findings::from_text(&transcript.output));
    Outcome {
        status: ending.status,
        merged: Vec::new(),
        findings,
        output: transcript.output,
        messages: transcript.messages,
        calls: transcript.calls,
        error: ending.error,
        attachments: entries.attachments.into_iter().map(|(_, _, file)| file).collect(),
        usage: entries.usage,
        total,
        receipts: entries.receipts.into_iter().map(|(_, receipt)| receipt).collect(),
        children,
        warnings: entries.warnings,
        unfinished,
        run: job.shared.run.clone(),
        agent: job.agent.id.to_string(),
        model: job.model.model.id().to_owned(),
        started,
        ended: job.shared.host.clock.now(),
    }
}

/// The outcome of an agent that could not start.
pub(crate) fn not_started(
    shared: &RunState,
    agent: &ResolvedAgent,
    model: String,
    status: RunStatus,
    error: RunError,
) -> Outcome {
    let now = shared.host.clock.now();
    Outcome {
        status,
        output: String::new(),
        merged: Vec::new(),
        findings: None,
        messages: Vec::new(),
        calls: Vec::new(),
        error: Some(error),
        attachments: Vec::new(),
        usage: Usage::default(),
        total: Usage::default(),
        receipts: Vec::new(),
        children: Vec::new(),
        warnings: Vec::new(),
        unfinished: Vec::new(),
        run: shared.run.clone(),
        agent: agent.id.to_string(),
        model,
        started: now,
        ended: now,
    }
}

/// The text of a panic, cut and escaped.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "a panic without a message".to_owned());
    belljar_policy::ShownText::clip_line(&text, 200).to_string()
}
