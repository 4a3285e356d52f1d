//! The scripted model: plays a transcript, and fails loudly on a request that differs from the transcript.
//!
//! # The transcript format
//!
//! A YAML file with one ordered list of turns per agent name and spawn index. Unknown fields
//! are errors. All fields but `transcript`, `agents`, `agent` and `turns` are optional.
//!
//! ```yaml
//! transcript: 1                 # version of the format
//! each_run: false               # true: every run plays the lists from the start, so that one
//!                               # transcript serves any number of runs, also after a restart
//! text_only: false              # true: the model reads no images
//! agents:
//!   - agent: scout              # the agent's name, as it stands in its definition
//!     spawn: 0                  # which `scout` of the run, from 0 (the default);
//!                               # `any` serves every one without an entry of its own, each
//!                               # from the first turn on
//!     turns:
//!       - expect:               # what must be true of the request; no field = not checked
//!           system_contains: [sandbox, "read only"]   # all of them, in any system block
//!           last_user_contains: "Task:"               # in the last user message
//!           last_message_contains: "Task:"            # in the last message of any kind
//!           tools: [file_read, file_find]             # exactly these names, in any order
//!           no_tools: false                           # true: no tool is advertised
//!           images: [image/png]                       # the media types of exactly all images
//!         think: The file may be long.                # reasoning, before it says anything
//!         say: Let me look.
//!         calls:
//!           - name: file_read
//!             arguments: {path: README.md}            # any YAML value, sent as compact JSON
//!           - name: file_read
//!             raw_arguments: '{"path": '              # sent as it is, here malformed
//!             id: call-7                              # default: `call_TURN_NUMBER`
//!         reasoning: {model: m}                       # kept with the answer and sent back, as a
//!                                                     # recording has it
//!         usage: {input: 100, cached: 40, output: 5}  # default: estimated, a token for every
//!                                                     # four bytes
//!       - expect:
//!           results:            # the tool results since the last turn, all of them, in order
//!             - {name: file_read, contains: "# belljar", is_error: false}
//!             - {name: file_read, is_error: true}
//!         say: Done.
//!         stop: end-turn        # default: `tool-use` with calls, else `end-turn`
//!   - agent: critic
//!     spawn: any
//!     turns:
//!       - fail: {status: 429, message: slow down, retry_after: 2}
//!       - fail: {kind: cut}     # or `context`, `network`, `protocol`; `say` is streamed first
//!       - say: It be
//!         hang: true            # says this, then nothing until cancelled or timed out
//! ```
//!
//! A field for one text (`..._contains`, `contains`) may have a list, and then all texts must occur. Case
//! matters. A turn without `say`, `calls`, `fail` or `hang` is an error, and so are two entries for one agent
//! and spawn index.
//!
//! The model never sleeps. A `fail` is returned at once, without retries, because retries belong to the wire
//! clients. A failed match does not use up the turn.

mod check;
mod file;
mod record;
mod transcript;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

pub use check::ScriptMismatch;
pub use record::{Recording, RecordingError, RecordingModel};
pub use transcript::{ScriptError, Transcript};

use crate::{
    CallContext, ChatMessage, ChatModel, ChatRequest, ModelError, ModelReply, StreamEvent,
    TimeoutPhase, TokenUsage,
};
use transcript::{AgentScript, ScriptedTurn, TurnEnding};

/// The bytes that count as one token if the transcript states no usage, a usual approximation for English.
const BYTES_PER_TOKEN: usize = 4;

/// A model that plays a [`Transcript`]. Each value plays it once, from the start. The parsed transcript is
/// shared, so another model costs little.
pub struct ScriptedModel {
    transcript: Arc<Transcript>,
    /// The number of turns that each script with a fixed spawn index has played.
    played: Vec<AtomicUsize>,
    /// The number of turns that scripts with `spawn: any` have played, by script and spawn index.
    played_any: Mutex<HashMap<(usize, u32), usize>>,
    images: bool,
}

/// The turns of one script that were not played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnplayedTurns {
    /// The agent's name, for example `scout`.
    pub agent: String,
    /// The spawn index; `None` for an entry with `spawn: any` that was not used at all.
    pub spawn: Option<u32>,
    /// The number of turns that were played.
    pub played: usize,
    /// The number of the script's turns.
    pub turns: usize,
}

impl ScriptedModel {
    /// Parses a transcript; `origin` is its file, for error messages.
    ///
    /// # Errors
    /// [`ScriptError`] if the text is no transcript.
    pub fn from_yaml(text: &str, origin: &Path) -> Result<Self, ScriptError> {
        Ok(Self::new(Arc::new(Transcript::parse(text, origin)?)))
    }

    /// A model that plays `transcript` from its start.
    #[must_use]
    pub fn new(transcript: Arc<Transcript>) -> Self {
        let played = transcript.scripts.iter().map(|_| AtomicUsize::new(0));
        let (played, played_any) = (played.collect(), Mutex::default());
        Self { played, played_any, images: !transcript.text_only, transcript }
    }

    /// Returns this model with or without image support. Default: as the transcript states.
    #[must_use]
    pub fn with_images(self, images: bool) -> Self {
        Self { images, ..self }
    }

    /// The unplayed turns in the order of the file; empty after a run that used the whole transcript. With
    /// `each_run: true`, all turns count as unplayed.
    #[must_use]
    pub fn unplayed_turns(&self) -> Vec<UnplayedTurns> {
        let any = self.played_any.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = Vec::new();
        for (index, script) in self.transcript.scripts.iter().enumerate() {
            let mut note = |spawn, played| {
                if played < script.turns.len() {
                    left.push(UnplayedTurns {
                        agent: script.agent.clone(),
                        spawn,
                        played,
                        turns: script.turns.len(),
                    });
                }
            };
            if let Some(spawn) = script.spawn {
                let played = self.played.get(index);
                note(Some(spawn), played.map_or(0, |n| n.load(Ordering::Acquire)));
                continue;
            }
            let mut users: Vec<(u32, usize)> = any
                .iter()
                .filter(|((script, _), _)| *script == index)
                .map(|((_, spawn), played)| (*spawn, *played))
                .collect();
            users.sort_unstable();
            if users.is_empty() {
                note(None, 0);
            }
            for (spawn, played) in users {
                note(Some(spawn), played);
            }
        }
        left
    }

    /// The number of turns of a script that this subagent has played.
    fn script_position(&self, index: usize, script: &AgentScript, spawn: u32) -> usize {
        if script.spawn.is_some() {
            let played = self.played.get(index);
            return played.map_or(0, |n| n.load(Ordering::Acquire));
        }
        let any = self.played_any.lock().unwrap_or_else(PoisonError::into_inner);
        any.get(&(index, spawn)).copied().unwrap_or(0)
    }

    /// Sets the number of turns of a script that this subagent has played.
    fn advance_script(&self, index: usize, script: &AgentScript, spawn: u32, to: usize) {
        if script.spawn.is_some() {
            if let Some(played) = self.played.get(index) {
                played.store(to, Ordering::Release);
            }
            return;
        }
        let mut any = self.played_any.lock().unwrap_or_else(PoisonError::into_inner);
        any.insert((index, spawn), to);
    }

    /// Finds the turn that answers `request`, with its number from 0, and marks it as played.
    fn next_turn(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
    ) -> Result<(usize, &ScriptedTurn), Box<ScriptMismatch>> {
        let mismatch = |turn: usize, expected: String, got: String| {
            Box::new(ScriptMismatch {
                origin: self.transcript.origin.clone(),
                agent: cx.agent.to_owned(),
                spawn: cx.spawn_index,
                turn: turn + 1,
                expected,
                got,
            })
        };
        let Some((index, script)) = self.transcript.find_script(cx.agent, cx.spawn_index) else {
            let known = self.transcript.known_agents();
            return Err(mismatch(
                0,
                format!("one of the agents {known}"),
                "a call of another".into(),
            ));
        };
        let number = if self.transcript.each_run {
            usize::try_from(cx.step.saturating_sub(1)).unwrap_or(usize::MAX)
        } else {
            self.script_position(index, script, cx.spawn_index)
        };
        let Some(turn) = script.turns.get(number) else {
            let expected = format!("no call after turn {}", script.turns.len());
            return Err(mismatch(number, expected, check::describe_last(request)));
        };
        check::check_request(&turn.expect, request)
            .map_err(|difference| mismatch(number, difference.expected, difference.got))?;
        if !self.transcript.each_run {
            self.advance_script(index, script, cx.spawn_index, number + 1);
        }
        Ok((number, turn))
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    fn id(&self) -> &str {
        &self.transcript.id
    }

    fn takes_images(&self) -> bool {
        self.images
    }

    /// Sends the turn's reasoning, text and calls as events, and ends as the turn states: with an answer, a
    /// failure, or silence.
    async fn chat(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        events: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<ModelReply, ModelError> {
        if cx.cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let (number, turn) = self.next_turn(request, cx)?;
        let silent = turn.think.is_empty() && turn.say.is_empty() && turn.calls.is_empty();
        if !silent {
            events(StreamEvent::Started);
        }
        if !turn.think.is_empty() {
            events(StreamEvent::ThinkingDelta(turn.think.clone()));
        }
        if !turn.say.is_empty() {
            events(StreamEvent::TextDelta(turn.say.clone()));
        }
        match &turn.ending {
            TurnEnding::Reply(stop) => {
                for call in &turn.calls {
                    let name = call.name.clone();
                    events(StreamEvent::CallStarted { name });
                }
                Ok(ModelReply {
                    text: turn.say.clone(),
                    calls: turn.calls_of(number),
                    reasoning: turn.reasoning.clone(),
                    usage: turn.usage.unwrap_or_else(|| estimate_usage(request, turn)),
                    stop: stop.clone(),
                })
            }
            TurnEnding::Fail(error) => Err(error.clone()),
            TurnEnding::Hang => Err(hang_silently(cx, silent).await),
        }
    }
}

/// Waits as if the server sent nothing, until the call is cancelled or a time limit is reached.
async fn hang_silently(cx: &CallContext<'_>, silent: bool) -> ModelError {
    let (phase, after) = if silent {
        (TimeoutPhase::FirstToken, cx.timeouts.first_token)
    } else {
        (TimeoutPhase::BetweenTokens, cx.timeouts.between_tokens)
    };
    let (phase, after) = match cx.timeouts.total {
        Some(total) if total < after => (TimeoutPhase::Total, total),
        _ => (phase, after),
    };
    match cx.cancel.run_until_cancelled(tokio::time::sleep(after)).await {
        Some(()) => ModelError::Timeout { phase, after },
        None => ModelError::Cancelled,
    }
}

/// An estimated usage, which depends only on the request and the turn.
fn estimate_usage(request: &ChatRequest, turn: &ScriptedTurn) -> TokenUsage {
    let system: usize = request.system.iter().map(String::len).sum();
    let tools: usize =
        request.tools.iter().map(|tool| tool.name.len() + tool.description.len()).sum();
    let messages: usize = request.messages.iter().map(message_bytes).sum();
    TokenUsage {
        input_tokens: tokens_for_bytes(system + tools + messages),
        cached_tokens: 0,
        output_tokens: tokens_for_bytes(turn.say.len() + turn.call_bytes),
    }
}

/// The bytes of a message's text, calls and results.
fn message_bytes(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::User { text, .. } => text.len(),
        ChatMessage::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| call.name.len() + call.arguments.len());
            text.len() + calls.sum::<usize>()
        }
        ChatMessage::Tool { results } => results.iter().map(|result| result.content.len()).sum(),
    }
}

fn tokens_for_bytes(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

impl std::fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedModel").field("id", &self.transcript.id).finish_non_exhaustive()
    }
}
