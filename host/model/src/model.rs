//! The trait of models, and the context of a call.

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
    /// Provider and model, for example `openai:gpt-x`; for people and for records.
    fn id(&self) -> &str;

    /// Returns whether the model accepts images. Default: no.
    fn takes_images(&self) -> bool {
        false
    }

    /// Sends `request` and waits for the whole answer; streamed parts go to `events`.
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

/// The caller, the time limits, and the means to cancel the call.
#[derive(Clone, Debug)]
pub struct CallContext<'a> {
    /// The agent's name. The scripted model and the recorder distinguish calls by this name, which is not
    /// sent to a provider.
    pub agent: &'a str,
    /// The number of earlier subagents of this name in the run.
    pub spawn_index: u32,
    /// The number of this call among the agent's calls, from 1.
    pub step: u64,
    /// How long to wait.
    pub timeouts: ModelTimeouts,
    /// True if the caller can withdraw shown text. An answer that breaks off is then requested again, and
    /// text before [`StreamEvent::Retrying`] is void. Default: false.
    pub takes_back: bool,
    /// Cancelled to end the call at once.
    pub cancel: CancellationToken,
}

impl<'a> CallContext<'a> {
    /// The context of a call of the first subagent named `agent`, with default timeouts and a new token.
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

/// How long to wait for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelTimeouts {
    /// The limit from sending one attempt's request to the first token of its answer. Default 120 s, because
    /// a small machine needs that long for a long prompt.
    pub first_token: Duration,
    /// The limit between two later tokens. Default 60 s.
    pub between_tokens: Duration,
    /// The limit of the whole call with all retries and waits. Default: no limit, because the agent loop has
    /// a time limit of its own.
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

/// An event during a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The first token of an answer is about to follow. Sent at most once for each attempt.
    Started,
    /// A piece of the answer's text.
    TextDelta(String),
    /// A piece of the model's thinking; not part of [`ModelReply::text`].
    ThinkingDelta(String),
    /// The model has begun to write a tool call. The complete call is in the reply.
    CallStarted {
        /// The tool's name, unchecked, for example `file_read`.
        name: String,
    },
    /// An attempt failed and another follows. Everything sent of the answer before is void.
    Retrying {
        /// Number of the attempt that will follow; the first retry is attempt 2.
        attempt: u32,
        /// The wait before the attempt.
        after: Duration,
        /// The reason why the last attempt failed; safe to show.
        reason: String,
    },
}
