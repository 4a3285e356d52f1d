//! The trait of chat models, and the context of a call.

use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{ChatRequest, ModelError, ModelReply};

/// A chat model.
///
/// Implementations hold no conversation, because a request contains all of it. One value serves any number of
/// calls at the same time.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// The provider and the model's name, for example `openai:gpt-x`, for people and records.
    fn id(&self) -> &str;

    /// Returns whether the model accepts images. Default: no.
    fn takes_images(&self) -> bool {
        false
    }

    /// Sends `request` and waits for the whole answer; the parts are passed to `events` as they arrive.
    ///
    /// Ends at once with [`ModelError::Cancelled`] when `cx.cancel` is cancelled. Dropping the future closes
    /// the connection. After a [`StreamEvent::TextDelta`] a call is retried only if
    /// [`CallContext::takes_back`] states that the text can be withdrawn.
    async fn chat(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        events: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<ModelReply, ModelError>;
}

/// The context of one call: who calls, the time limits, and a token that cancels the call.
#[derive(Clone, Debug)]
pub struct CallContext<'a> {
    /// The calling agent's name. The scripted model and the recorder distinguish callers by it; it is not
    /// sent to a provider.
    pub agent: &'a str,
    /// How many subagents with this name the run had started before this one.
    pub spawn_index: u32,
    /// The number of this call among the calls of this agent, from 1.
    pub step: u64,
    /// The time limits of the call.
    pub timeouts: ModelTimeouts,
    /// True if the caller can withdraw text that it has shown. Then an answer that breaks off is requested
    /// again, and text before [`StreamEvent::Retrying`] is void. Default: false.
    pub takes_back: bool,
    /// Cancelling this token ends the call at once.
    pub cancel: CancellationToken,
}

impl<'a> CallContext<'a> {
    /// The context for the first subagent named `agent`, with default time limits and a new cancellation
    /// token.
    #[must_use]
    pub fn new(agent: &'a str) -> Self {
        Self {
            agent,
            spawn_index: 0,
            step: 1,
            timeouts: ModelTimeouts::default(),
            takes_back: false,
            cancel: CancellationToken::new(),
        }
    }
}

/// The time limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelTimeouts {
    /// The limit from sending a request to the first token of its answer. Default: 120 s, because a small
    /// machine needs that long for a long prompt.
    pub first_token: Duration,
    /// The limit between two tokens. Default: 60 s.
    pub between_tokens: Duration,
    /// The limit of the whole call, including retries and waits. Default: none, because the agent loop has a
    /// time limit of its own.
    pub total: Option<Duration>,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self {
            first_token: Duration::from_secs(120),
            between_tokens: Duration::from_secs(60),
            total: None,
        }
    }
}

/// An event during a call of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The first token of an answer follows. Sent at most once for each attempt.
    Started,
    /// A piece of the answer's text.
    TextDelta(String),
    /// A piece of the model's reasoning, which is not part of [`ModelReply::text`].
    ThinkingDelta(String),
    /// The model has begun a tool call. The complete call is in the reply.
    CallStarted {
        /// The tool's name, unchecked, for example `file_read`.
        name: String,
    },
    /// An attempt failed, and another follows. All parts of the answer that were sent before are void.
    Retrying {
        /// The number of the attempt that will follow; the first retry has the number 2.
        attempt: u32,
        /// The wait before the attempt.
        after: Duration,
        /// The reason why the last attempt failed, safe to show to a person.
        reason: String,
    },
}
