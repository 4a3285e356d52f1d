//! The agent loop as a state machine: [`AgentLoop::handle_input`] accepts an event and returns the next effects. The
//! machine calls no model and no tool, and has no clock; its driver has all of these.
//!
//! ```text
//! Begin -> AskModel -> Replied -> Call -> Answered -> AskModel -> ... -> Finish
//!                      Replied -> Check -> Checked -> Call or Finish
//! ```
//!
//! When an agent's own steps are used up, the model is asked once more, without tools. When an ancestor's
//! steps, or tokens, fuel or time are used up, the loop ends at once with a partial result. For example, an
//! agent with one step calls a tool in that step, and answers without tools in an extra step of its parent's.

mod counting;
mod loading;
mod shortening;
mod skill_use;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use belljar_model::{
    ChatMessage, ChatRequest, ModelReply, Reasoning, StopReason, ToolCall, ToolResult, ToolSpec,
};
use belljar_policy::{BudgetLevel, ExhaustedLimit, Meter};

use crate::limits::{
    MAX_BYTES_PER_TOKEN, MAX_FORM_TRIES, MAX_NAME_BYTES, MAX_REPLY_BYTES, truncate_string,
};
use crate::outcome::{RunError, RunStatus};
use crate::prompt::frame::{self, INTERRUPTED, LAST_STEP};
use crate::schema::{CompiledSchema, SchemaCheck, Verdict};
use crate::tools::answer::CallAnswer;
use crate::tools::dispatch::{CallDecision, Dispatcher};

pub(crate) use self::counting::least_tokens;
pub use self::counting::{
    PartialAnswer, count_usage, cut_off, hold_tokens, message_bytes, prompt_bytes,
};

/// An event for the loop.
#[derive(Debug)]
pub(crate) enum LoopInput {
    /// The first event: the agent begins.
    Begin,
    /// The model answered.
    Replied(ModelReply),
    /// The verdicts on the texts of a [`LoopEffect::Check`], in the same order.
    Checked(Vec<Verdict>),
    /// The answers to all calls of the step, in the order of the calls.
    Answered(Vec<CallAnswer>),
    /// The agent was interrupted, for example by a failed model, a deadline or a cancellation.
    Interrupted {
        /// The text of a model answer that broke off.
        partial: String,
        /// The answers of the step's calls; `None` = the call has no answer yet.
        answers: Vec<Option<CallAnswer>>,
        /// How the agent ends.
        ending: AgentEnding,
    },
}

/// The amounts that the budgets have left after an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BudgetGauge {
    /// The used-up budget of tokens or fuel, the agent's or an ancestor's.
    pub(crate) halt: Option<ExhaustedLimit>,
    /// Whether the next model call has a step.
    pub(crate) next: NextStep,
    pub(crate) tokens_left: u64,
}

/// Whether the budgets have a step left for the next model call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NextStep {
    /// A step was charged to the agent's budget and to every budget above.
    Whole,
    /// The agent's own steps are used up, and a step of an ancestor was charged for the last answer.
    Last(ExhaustedLimit),
    /// No step is left; this budget is used up.
    None(ExhaustedLimit),
}

/// The next effect.
#[derive(Debug)]
pub(crate) enum LoopEffect {
    /// Send [`AgentLoop::request`] to the model.
    AskModel {
        /// True for the last step, in which the model gets no tools.
        last: bool,
    },
    /// Check these texts against JSON Schemas, perhaps for seconds, then send [`LoopInput::Checked`].
    Check(Vec<SchemaCheck>),
    /// Execute or answer the calls in [`AgentLoop::calls`], one decision for each.
    Call(Vec<CallDecision>),
    /// Warn the person with this text.
    Warn(String),
    /// The agent has ended.
    Finish(AgentEnding),
}

/// How an agent ended: its status, with the error unless completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentEnding {
    pub(crate) status: RunStatus,
    pub(crate) error: Option<RunError>,
}

/// The conversation of an ended agent.
#[derive(Debug, Default)]
pub(crate) struct ConversationTranscript {
    /// The last text of the model that is not blank.
    pub(crate) output: String,
    /// The conversation, in which each call has a result.
    pub(crate) messages: Vec<ChatMessage>,
    /// The calls of the last step that the caller, not belljar, executes.
    pub(crate) calls: Vec<ToolCall>,
}

/// The state of an agent's conversation.
#[derive(Debug)]
pub(crate) struct AgentLoop {
    /// The next request, shared with forks that wait for a slot and copied on a change.
    request: Arc<ChatRequest>,
    /// The number of messages at the start of `request` from earlier turns.
    past: usize,
    dispatcher: Dispatcher,
    state: LoopState,
    /// Bytes of the whole prompt, updated with each message.
    bytes: u64,
    ids: HashSet<String>,
    step: u64,
    output: String,
    last_step: Option<ExhaustedLimit>,
    /// The present step's calls under belljar's names; `None` = the model used belljar's name.
    translated: Vec<Option<ToolCall>>,
    /// Of the present or last step, the calls that the caller executes.
    handed: Vec<ToolCall>,
    /// The JSON Schema that the final answer must fit; `None` = any text.
    form: Option<CompiledSchema>,
    /// Specifications by the model's tool name, loaded when an answer of `find_tool` names the tool.
    deferred: BTreeMap<String, ToolSpec>,
    /// The model's answer that waits for its schema checks.
    unchecked: Option<ModelReply>,
    /// Why the last answer lacked the required form, with the note that asks the model again.
    unfit: Option<(String, String)>,
    /// The number of answers so far without the required form.
    tries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopState {
    Ready,
    Asking,
    Checking,
    Calling,
    Ended,
}

impl AgentEnding {
    pub(crate) fn completed() -> Self {
        Self { status: RunStatus::Completed, error: None }
    }

    pub(crate) fn partial(error: RunError) -> Self {
        Self { status: RunStatus::Partial, error: Some(error) }
    }

    pub(crate) fn failed(error: RunError) -> Self {
        Self { status: RunStatus::Failed, error: Some(error) }
    }

    pub(crate) fn cancelled() -> Self {
        Self { status: RunStatus::Cancelled, error: Some(RunError::Cancelled) }
    }
}

impl AgentLoop {
    /// Creates a conversation that starts with `request`; the dispatcher has the request's tools.
    pub(crate) fn new(request: ChatRequest, dispatcher: Dispatcher) -> Self {
        let bytes = prompt_bytes(&request);
        let ids = request.messages.iter().flat_map(calls_of).map(|call| call.id.clone()).collect();
        Self {
            request: Arc::new(request),
            past: 0,
            dispatcher,
            state: LoopState::Ready,
            bytes,
            ids,
            step: 0,
            output: String::new(),
            last_step: None,
            translated: Vec::new(),
            handed: Vec::new(),
            form: None,
            deferred: BTreeMap::new(),
            unchecked: None,
            unfit: None,
            tries: 0,
        }
    }

    /// Requires the final answer to fit a schema; `None` = any text is accepted.
    pub(crate) fn held_to(self, form: Option<CompiledSchema>) -> Self {
        Self { form, ..self }
    }

    /// Returns whether the loop ends because the caller has to execute calls.
    pub(crate) fn hands_over(&self) -> bool {
        !self.handed.is_empty()
    }

    /// Why the last answer was rejected, with the note for another attempt, if one is left.
    pub(crate) fn unfit_reason(&self) -> Option<(&str, Option<&str>)> {
        let again = self.tries < MAX_FORM_TRIES;
        let (why, note) = self.unfit.as_ref()?;
        Some((why, again.then_some(note.as_str())))
    }

    /// The next request to the model.
    pub(crate) fn request(&self) -> &Arc<ChatRequest> {
        &self.request
    }

    /// Bytes of the request that a model reads.
    pub(crate) fn request_bytes(&self) -> u64 {
        self.bytes
    }

    /// The calls of the present step under the names that the model used.
    pub(crate) fn asked_calls(&self) -> &[ToolCall] {
        self.request.messages.last().map_or(&[], calls_of)
    }

    /// The calls of the last answer under belljar's names.
    pub(crate) fn calls(&self) -> Vec<&ToolCall> {
        let own = self.translated.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        self.asked_calls().iter().zip(own).map(|(asked, own)| own.unwrap_or(asked)).collect()
    }

    /// The number of the current step, from 1.
    pub(crate) fn current_step(&self) -> u64 {
        self.step
    }

    /// The last text of the model that is not blank.
    pub(crate) fn last_output(&self) -> &str {
        &self.output
    }

    /// The dispatcher, which decides about calls.
    pub(crate) fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// The conversation at the end. Interrupted calls get a note as result: providers require results.
    pub(crate) fn into_transcript(mut self) -> ConversationTranscript {
        self.push_results(Vec::new());
        let messages = Arc::unwrap_or_clone(self.request).messages;
        ConversationTranscript { output: self.output, messages, calls: self.handed }
    }

    /// Adds a note of the host to the conversation. Call this before the model is asked.
    pub(crate) fn add_note(&mut self, text: String) {
        self.push_message(ChatMessage::from_user(text));
    }

    /// Adds a note of the host to the conversation and to `notes`, the journal's list.
    pub(crate) fn record_note(&mut self, notes: &mut Vec<String>, text: String) {
        notes.push(text.clone());
        self.add_note(text);
    }

    /// Continues a conversation that had ended well, after a note to the model. Returns the next input.
    pub(crate) fn reopen(&mut self) -> LoopInput {
        if self.state == LoopState::Ended && self.last_step.is_none() {
            self.state = LoopState::Ready;
        }
        LoopInput::Begin
    }

    /// Accepts an event and returns effects. No effect follows [`LoopEffect::Finish`].
    pub(crate) fn handle_input(
        &mut self,
        input: LoopInput,
        gauge: &BudgetGauge,
    ) -> Vec<LoopEffect> {
        match (self.state, input) {
            (state, LoopInput::Interrupted { mut partial, answers, ending }) => {
                if state == LoopState::Calling {
                    self.push_results(answers);
                }
                if let Some(reply) = self.unchecked.take() {
                    partial = reply.text;
                }
                self.handed.clear();
                self.conclude_with(partial, None);
                vec![self.end_loop(ending)]
            }
            (LoopState::Ready, LoopInput::Begin) => vec![self.ask_model(gauge)],
            (LoopState::Asking, LoopInput::Replied(reply)) => self.handle_reply(reply, gauge),
            (LoopState::Checking, LoopInput::Checked(verdicts)) => {
                self.handle_verdicts(verdicts, gauge)
            }
            (LoopState::Calling, LoopInput::Answered(answers)) => {
                vec![self.handle_answers(answers, gauge)]
            }
            (state, input) => {
                let message = format!("the loop got {input:?} while {state:?}");
                let message = truncate_string(message, 200);
                vec![self.end_loop(AgentEnding::failed(RunError::Internal { message }))]
            }
        }
    }

    /// Asks the model: normally, a last time without tools, or not at all if a budget is used up.
    fn ask_model(&mut self, gauge: &BudgetGauge) -> LoopEffect {
        if let Some(exhausted) = gauge.halt {
            return self.end_loop(AgentEnding::partial(RunError::Budget { exhausted }));
        }
        if self.bytes / MAX_BYTES_PER_TOKEN > gauge.tokens_left {
            let exhausted = ExhaustedLimit {
                meter: Meter::Tokens,
                level: BudgetLevel::Subagent,
                limit: gauge.tokens_left,
            };
            return self.end_loop(AgentEnding::partial(RunError::Budget { exhausted }));
        }
        match gauge.next {
            NextStep::Whole => {}
            NextStep::Last(exhausted) if self.step > 0 => {
                self.last_step = Some(exhausted);
                let request = Arc::make_mut(&mut self.request);
                (request.tools, request.choice) = (Vec::new(), None);
                self.bytes = prompt_bytes(&self.request);
                self.push_message(ChatMessage::from_user(LAST_STEP));
            }
            // Without any step, a last answer would have no findings to report.
            NextStep::Last(exhausted) | NextStep::None(exhausted) => {
                return self.end_loop(AgentEnding::partial(RunError::Budget { exhausted }));
            }
        }
        self.state = LoopState::Asking;
        self.step += 1;
        LoopEffect::AskModel { last: self.last_step.is_some() }
    }

    /// Cuts an answer at [`MAX_REPLY_BYTES`], then requests its schema checks or decides at once.
    fn handle_reply(&mut self, mut reply: ModelReply, gauge: &BudgetGauge) -> Vec<LoopEffect> {
        let mut effects = Vec::with_capacity(1);
        if reply.text.len() > MAX_REPLY_BYTES {
            effects.push(LoopEffect::Warn(format!(
                "an answer of {} bytes was cut at {MAX_REPLY_BYTES}",
                reply.text.len()
            )));
            reply.text = truncate_string(reply.text, MAX_REPLY_BYTES);
        }
        let checks = self.collect_checks(&reply, gauge);
        if checks.is_empty() {
            effects.push(self.decide_reply(reply, &mut std::iter::empty(), gauge));
        } else {
            self.unchecked = Some(reply);
            self.state = LoopState::Checking;
            effects.push(LoopEffect::Check(checks));
        }
        effects
    }

    /// Lists the texts of an answer that must be checked against schemas before the loop decides.
    fn collect_checks(&self, reply: &ModelReply, gauge: &BudgetGauge) -> Vec<SchemaCheck> {
        if self.last_step.is_some() {
            return Vec::new();
        }
        if reply.calls.is_empty() {
            let form = self.form.as_ref().filter(|_| self.request.choice.is_none());
            let check = |schema: &CompiledSchema| SchemaCheck {
                schema: schema.clone(),
                text: reply.text.clone(),
            };
            return form.map(check).into_iter().collect();
        }
        if gauge.halt.is_some() || makes_no_call(reply) {
            return Vec::new();
        }
        let calls = reply.calls.iter().enumerate();
        calls.filter_map(|(position, call)| self.dispatcher.check_of(call, position)).collect()
    }

    fn handle_verdicts(&mut self, verdicts: Vec<Verdict>, gauge: &BudgetGauge) -> Vec<LoopEffect> {
        match self.unchecked.take() {
            Some(reply) => vec![self.decide_reply(reply, &mut verdicts.into_iter(), gauge)],
            None => {
                let message = "no answer waits for its checks".to_owned();
                vec![self.end_loop(AgentEnding::failed(RunError::Internal { message }))]
            }
        }
    }

    /// Returns the next effect for an answer, from the verdicts of its checks.
    fn decide_reply(
        &mut self,
        reply: ModelReply,
        verdicts: &mut dyn Iterator<Item = Verdict>,
        gauge: &BudgetGauge,
    ) -> LoopEffect {
        if let Some(exhausted) = self.last_step {
            self.conclude_with(reply.text, reply.reasoning);
            return self.end_loop(AgentEnding::partial(RunError::Budget { exhausted }));
        }
        if makes_no_call(&reply) {
            let ending = self.ending_for_reply(&reply);
            if reply.calls.is_empty() {
                self.judge_reply(verdicts.next());
                self.conclude_with(reply.text, reply.reasoning);
            } else {
                self.conclude_with(reply.text, None);
            }
            return self.end_loop(ending);
        }
        if let Some(exhausted) = gauge.halt {
            self.conclude_with(reply.text, reply.reasoning);
            return self.end_loop(AgentEnding::partial(RunError::Budget { exhausted }));
        }
        self.keep_output(&reply.text);
        self.decide_calls(reply, verdicts)
    }

    /// Checks that an answer without calls is allowed and has the required form; sets `unfit` if not.
    fn judge_reply(&mut self, verdict: Option<Verdict>) {
        self.unfit = match &self.request.choice {
            // INV-348: checked here, because a provider may ignore the required call.
            Some(choice) => {
                Some((frame::uncalled_note(choice), frame::request_missing_call(choice)))
            }
            None => verdict.and_then(Result::err).map(|why| (why.clone(), frame::unfit_note(&why))),
        };
        self.tries += u32::from(self.unfit.is_some());
    }

    /// Stores a text of the model as the conclusion and as the last message, unless the text is blank.
    fn conclude_with(&mut self, text: String, reasoning: Option<Reasoning>) {
        if !text.trim().is_empty() {
            self.keep_output(&text);
            self.push_message(ChatMessage::Assistant { text, calls: Vec::new(), reasoning });
        }
    }

    /// Gives each call of an answer a unique id and decides about it. Returns the calls as an effect.
    fn decide_calls(
        &mut self,
        mut reply: ModelReply,
        verdicts: &mut dyn Iterator<Item = Verdict>,
    ) -> LoopEffect {
        for (position, call) in reply.calls.iter_mut().enumerate() {
            self.give_own_id(call, position);
        }
        let decide = |(position, call)| {
            let checked = self.dispatcher.check_of(call, position);
            let verdict = checked.and_then(|_| verdicts.next());
            match self.dispatcher.translate_call(call) {
                Ok(own) => {
                    let call = own.as_ref().unwrap_or(call);
                    let decision = self.dispatcher.decide_asked(call, position, verdict.as_ref());
                    (own, decision)
                }
                Err(refusal) => (None, CallDecision::Refuse(refusal)),
            }
        };
        let (translated, mut decisions): (_, Vec<_>) =
            reply.calls.iter().enumerate().map(decide).unzip();
        self.dispatcher.refuse_excess(&mut decisions);
        let theirs = reply.calls.iter().zip(&decisions);
        let theirs = theirs.filter(|(_, decision)| matches!(decision, CallDecision::HandOver));
        self.handed = theirs.map(|(call, _)| call.clone()).collect();
        self.translated = translated;
        let ModelReply { text, calls, reasoning, .. } = reply;
        self.push_message(ChatMessage::Assistant { text, calls, reasoning });
        self.state = LoopState::Calling;
        LoopEffect::Call(decisions)
    }

    fn handle_answers(&mut self, answers: Vec<CallAnswer>, gauge: &BudgetGauge) -> LoopEffect {
        if answers.len() != self.asked_calls().len() {
            let message = "a step has calls without an answer".to_owned();
            return self.end_loop(AgentEnding::failed(RunError::Internal { message }));
        }
        self.note_skills(&answers);
        self.load_tools(&answers);
        self.push_results(answers.into_iter().map(Some).collect());
        if self.hands_over() {
            return self.end_loop(AgentEnding::completed());
        }
        self.ask_model(gauge)
    }

    /// How the agent ends when an answer has no calls.
    fn ending_for_reply(&self, reply: &ModelReply) -> AgentEnding {
        // An answer may be empty if its first word may be a stop word.
        let is_whole = self.request.sampling.stop.is_empty();
        let is_silent = is_whole && self.output.is_empty() && reply.text.trim().is_empty();
        match &reply.stop {
            StopReason::MaxTokens => AgentEnding::partial(RunError::OutputCut),
            StopReason::Refusal => AgentEnding::failed(RunError::Declined),
            // An unknown stop reason does not count as success.
            StopReason::Other(reason) => {
                let error = RunError::Stopped { reason: reason.clone() };
                if is_silent { AgentEnding::failed(error) } else { AgentEnding::partial(error) }
            }
            StopReason::EndTurn | StopReason::ToolUse if is_silent => {
                AgentEnding::failed(RunError::NoAnswer)
            }
            StopReason::EndTurn | StopReason::ToolUse => AgentEnding::completed(),
        }
    }

    /// Gives a call a new id if its id is empty, used, or has the form of a nested call (INV-256: ends in a
    /// dot and a number). Ids pair calls with results, so they must be unique.
    fn give_own_id(&mut self, call: &mut ToolCall, position: usize) {
        call.id = truncate_string(std::mem::take(&mut call.id), MAX_NAME_BYTES);
        if call.id.is_empty() {
            call.id = format!("call_{}_{position}", self.step);
        }
        let mut id = call.id.clone();
        let mut copy = 2;
        while is_of_nested(&id) || !self.ids.insert(id.clone()) {
            id = format!("{}-{copy}", call.id);
            copy += 1;
        }
        call.id = id;
    }

    fn keep_output(&mut self, text: &str) {
        if !text.trim().is_empty() {
            text.clone_into(&mut self.output);
        }
    }

    /// Adds the results of a step's calls. A call without an answer counts as interrupted.
    fn push_results(&mut self, answers: Vec<Option<CallAnswer>>) {
        let mut answers = answers.into_iter();
        let mut result = |call: &ToolCall| {
            let answer = answers.next().flatten();
            let answer = answer
                .unwrap_or_else(|| CallAnswer { content: INTERRUPTED.to_owned(), is_error: true });
            ToolResult {
                id: call.id.clone(),
                name: call.name.clone(),
                content: answer.content,
                is_error: answer.is_error,
            }
        };
        let results: Vec<_> = self.asked_calls().iter().map(&mut result).collect();
        if !results.is_empty() {
            self.push_message(ChatMessage::Tool { results });
        }
    }

    /// Adds a message. Two user messages in a row become one, because some servers require alternating roles.
    fn push_message(&mut self, message: ChatMessage) {
        self.bytes = self.bytes.saturating_add(message_bytes(&message));
        let request = Arc::make_mut(&mut self.request);
        match (request.messages.last_mut(), message) {
            (
                Some(ChatMessage::User { text, images }),
                ChatMessage::User { text: more, images: others },
            ) => {
                text.push_str("\n\n");
                text.push_str(&more);
                images.extend(others);
            }
            (_, message) => request.messages.push(message),
        }
    }

    fn end_loop(&mut self, ending: AgentEnding) -> LoopEffect {
        self.state = LoopState::Ended;
        LoopEffect::Finish(ending)
    }
}

/// The tool calls in a message.
fn calls_of(message: &ChatMessage) -> &[ToolCall] {
    match message {
        ChatMessage::Assistant { calls, .. } => calls,
        ChatMessage::User { .. } | ChatMessage::Tool { .. } => &[],
    }
}

/// Returns whether an answer makes no call. Calls of a filtered answer are not the model's intent.
fn makes_no_call(reply: &ModelReply) -> bool {
    reply.calls.is_empty() || reply.stop == StopReason::Refusal
}

/// Returns whether an id has the form of a nested call's id, for example `call-1.2`.
fn is_of_nested(id: &str) -> bool {
    let number = id.rsplit_once('.').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
