//! A conversation in memory: one agent, the messages so far, and a budget above all its turns.
//! `record::saved_session` stores conversations.

use std::path::PathBuf;
use std::sync::Arc;

use belljar_model::ChatMessage;
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, LimitsRequest, Meter};
use tokio_util::sync::CancellationToken;

use crate::conversation::compaction::CompactionResult;
use crate::record::rows::{HistoryMode, PersonMetadata};
use belljar_agent::CallerInput;
use belljar_agent::Host;
use belljar_agent::ResolvedAgent;
use belljar_agent::events::EventSink;
use belljar_agent::frame;
use belljar_agent::{Outcome, RunStatus, Usage};
use belljar_agent::{RunSpec, caps_of_run, run};

/// An agent with the messages so far.
///
/// The request of one turn begins, byte for byte, with the request of the
/// turn before, so that a provider's prompt cache matches. The exceptions are a turn that ran out of steps,
/// because the last request had no tools, and a turn after a new summary.
#[derive(Debug, Clone)]
pub struct Conversation {
    agent: Arc<ResolvedAgent>,
    model: Option<String>,
    workspace: PathBuf,
    limits: LimitsRequest,
    partial: bool,
    budget: Budget,
    history: HistoryMode,
    messages: Vec<ChatMessage>,
    used: Usage,
}

impl Conversation {
    /// A new conversation. `caps` bounds the sum of all its turns, subagents included.
    pub fn new(agent: Arc<ResolvedAgent>, workspace: PathBuf, caps: BudgetCaps) -> Self {
        Self {
            agent,
            model: None,
            workspace,
            limits: LimitsRequest::default(),
            partial: false,
            budget: Budget::new_root(BudgetLevel::Session, caps),
            history: HistoryMode::default(),
            messages: Vec::new(),
            used: Usage::default(),
        }
    }

    /// Like [`Conversation::new`], with a budget below `above`, for example below a tenant's budget of the
    /// day.
    pub(crate) fn below_budget(
        above: &Budget,
        agent: Arc<ResolvedAgent>,
        workspace: PathBuf,
        caps: BudgetCaps,
    ) -> Self {
        Self {
            budget: above.new_child(BudgetLevel::Session, caps),
            ..Self::new(agent, workspace, caps)
        }
    }

    /// As [`Conversation::resume_from`], but the usage is not charged to the budget, because it is counted elsewhere.
    pub(crate) fn with_messages(mut self, messages: Vec<ChatMessage>, used: Usage) -> Self {
        self.messages = messages;
        self.used = used;
        self
    }

    /// The conversation of a single run. Its budget is the run's parent budget, or a new one with the run's
    /// limits.
    pub(crate) fn for_run(spec: &RunSpec) -> Self {
        let rights = spec.agent.rights.clone().with_smaller_limits(&spec.limits);
        let caps = caps_of_run(rights.limits());
        let conversation = Self::new(Arc::clone(&spec.agent), spec.workspace.clone(), caps)
            .with_model(spec.model.clone())
            .with_limits(spec.limits)
            .with_partial(spec.partial);
        match &spec.budget {
            Some(budget) => Self { budget: budget.clone(), ..conversation },
            None => conversation,
        }
    }

    /// The parameters of each turn.
    pub(crate) fn turn_metadata(&self) -> PersonMetadata {
        PersonMetadata {
            actor: None,
            limits: Some(self.limits),
            partial: Some(self.partial),
            history: Some(self.history),
            ..PersonMetadata::default()
        }
    }

    /// Sets the model to use instead of the agent's own; `None` = the agent's own.
    #[must_use]
    pub fn with_model(mut self, model: Option<String>) -> Self {
        self.model = model;
        self
    }

    /// Sets limits of each turn, below the grants' limits.
    #[must_use]
    pub fn with_limits(mut self, limits: LimitsRequest) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether a blocked agent runs with its remaining tools.
    #[must_use]
    pub fn with_partial(mut self, partial: bool) -> Self {
        self.partial = partial;
        self
    }

    /// The part of the past that each turn sends. Default: [`HistoryMode::Compacted`], for which a
    /// [`crate::SavedSession`] makes the summaries.
    #[must_use]
    pub fn with_history(mut self, history: HistoryMode) -> Self {
        self.history = history;
        self
    }

    /// Resumes from earlier messages, whose usage counts against the budget.
    #[must_use]
    pub fn resume_from(mut self, messages: Vec<ChatMessage>, used: Usage) -> Self {
        for (meter, amount) in [
            (Meter::Steps, used.steps),
            (Meter::Tokens, used.input_tokens.saturating_add(used.output_tokens)),
            (Meter::Fuel, used.fuel),
        ] {
            // If this exceeds the limit, the error appears when the next turn begins.
            let _ = self.budget.bill(meter, amount);
        }
        self.messages = messages;
        self.used = used;
        self
    }

    /// The agent.
    pub fn agent(&self) -> &Arc<ResolvedAgent> {
        &self.agent
    }

    /// The model that was chosen instead of the agent's own.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The workspace.
    pub fn workspace(&self) -> &std::path::Path {
        &self.workspace
    }

    /// The messages so far. Each tool call has a result, and the last message is the agent's.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// The part of the past that each turn sends.
    pub fn history_mode(&self) -> HistoryMode {
        self.history
    }

    /// Appends the caller's input for the next turn: earlier messages, and results for the calls that ended
    /// the last turn.
    pub(crate) fn append_caller_input(&mut self, brought: &CallerInput) {
        self.messages = brought.after(std::mem::take(&mut self.messages));
    }

    /// Uses the summary of older messages instead of these, and counts its usage.
    pub(crate) fn take_over(&mut self, done: CompactionResult) {
        self.used += done.used;
        if let Some(messages) = done.messages {
            self.messages = messages;
        }
    }

    /// The budget above all turns.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The usage of all turns, subagents included.
    pub fn total_usage(&self) -> Usage {
        self.used
    }

    /// The parameters of another agent's run, within the conversation's budget and without its history.
    pub fn spec_side_run(&self, agent: Arc<ResolvedAgent>, task: String) -> RunSpec {
        RunSpec {
            model: self.model.clone(),
            limits: self.limits,
            partial: self.partial,
            budget: Some(self.budget.clone()),
            ..RunSpec::new(agent, task, self.workspace.clone())
        }
    }

    /// Counts the usage of a run beside the conversation.
    pub fn count_usage(&mut self, outcome: &Outcome) {
        self.used += outcome.total;
    }

    /// Sends `text` to the agent and waits for the answer.
    ///
    /// The conversation stays valid for a provider in any case: interrupted calls get a result with a note,
    /// and a cancelled turn keeps its messages so far. A turn that never reached the model does not change
    /// [`Conversation::messages`].
    pub async fn run_message(
        &mut self,
        host: &Host,
        text: &str,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Outcome {
        let spec = self.run_spec(text.to_owned());
        self.run_turn(host, spec, events, cancel).await
    }

    /// The parameters of the next turn's run, without the history.
    pub(crate) fn run_spec(&self, text: String) -> RunSpec {
        self.spec_side_run(Arc::clone(&self.agent), text)
    }

    /// Runs a turn of this conversation.
    pub(crate) async fn run_turn(
        &mut self,
        host: &Host,
        spec: RunSpec,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Outcome {
        let outcome = self.run_behind(host, spec, events, cancel).await;
        self.take_over_turn(&outcome);
        outcome
    }

    /// Runs a turn after the messages so far. The conversation itself does not change.
    pub(crate) async fn run_behind(
        &self,
        host: &Host,
        spec: RunSpec,
        events: EventSink,
        cancel: CancellationToken,
    ) -> Outcome {
        let spec = RunSpec { history: self.messages.clone(), ..spec };
        run(host, spec, events, cancel).await
    }

    /// Counts the usage of a turn that has ended, and appends its messages.
    pub(crate) fn take_over_turn(&mut self, outcome: &Outcome) {
        self.count_usage(outcome);
        self.take_over_run(outcome);
    }

    /// Adds a separate run to the conversation, without a request to the model. Returns the added messages.
    pub(crate) fn add_run(&mut self, spec: &RunSpec, outcome: &Outcome) -> Vec<ChatMessage> {
        let text = frame::side_run_message(spec.agent.id.slug.as_str(), &spec.task, outcome);
        let noted = ChatMessage::from_assistant(frame::NOTED);
        let added = vec![ChatMessage::from_user(text), noted];
        self.messages.extend(added.iter().cloned());
        added
    }

    /// Appends the messages that a turn added.
    fn take_over_run(&mut self, outcome: &Outcome) {
        // A run that failed before its start has no messages.
        let new = outcome.messages.strip_prefix(self.messages.as_slice()).unwrap_or_default();
        let Some(last) = new.last() else { return };
        // Some models refuse two messages of a person in a row, so a missing answer gets a placeholder. Calls
        // of the caller's own tools are answered by the next turn.
        let ends = matches!(last, ChatMessage::Assistant { .. }) || !outcome.calls.is_empty();
        let missing = (!ends).then(|| answer_placeholder(outcome.status));
        self.messages.extend(new.iter().cloned().chain(missing));
    }
}

/// The message that replaces a missing answer of the agent.
fn answer_placeholder(status: RunStatus) -> ChatMessage {
    let text = match status {
        RunStatus::Cancelled => frame::STOPPED,
        RunStatus::Partial => frame::LIMITED,
        RunStatus::Failed | RunStatus::Completed => frame::BROKEN,
    };
    ChatMessage::from_assistant(text)
}
