//! Every way in which a call of a model can fail.

use std::time::Duration;

use crate::scripted::ScriptMismatch;

/// The reason why a call returned no answer.
///
/// Every text in this type is escaped, cut short and free of keys, so `Display` can be shown to a person and
/// written to a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The caller cancelled.
    #[error("the model call was cancelled")]
    Cancelled,
    /// No data arrived in time. Not retried, because the caller set the time.
    #[error("the model gave nothing for {} s ({phase})", after.as_secs_f64())]
    Timeout {
        /// The phase that timed out.
        phase: TimeoutPhase,
        /// The time limit of the phase.
        after: Duration,
    },
    /// The provider answered 429: too many requests.
    #[error("the provider limits the rate of requests: {message}")]
    RateLimited {
        /// The wait that the provider requested, if any.
        retry_after: Option<Duration>,
        /// The provider's text.
        message: String,
    },
    /// The provider does not accept the key (401, 403).
    #[error("the provider refused the key (HTTP {status}): {message}")]
    Auth {
        /// The HTTP status.
        status: u16,
        /// The provider's text.
        message: String,
    },
    /// Any other unsuccessful HTTP status.
    #[error("the provider answered HTTP {status}: {message}")]
    Http {
        /// The HTTP status.
        status: u16,
        /// The wait that the provider requested, if any.
        retry_after: Option<Duration>,
        /// The provider's text.
        message: String,
    },
    /// The request is longer than the model can read.
    #[error("the request does not fit into the model's context: {message}")]
    ContextLength {
        /// The provider's text.
        message: String,
    },
    /// The provider reported an error inside a stream that had begun well.
    #[error("the provider reported `{kind}`: {message}")]
    Provider {
        /// The provider's code word for the error.
        kind: String,
        /// The provider's text.
        message: String,
        /// True if trying again may help.
        transient: bool,
    },
    /// The connection could not be made, or broke before an answer began.
    #[error("the connection to the model failed: {message}")]
    Network {
        /// The failure, without the URL.
        message: String,
    },
    /// The stream ended without the sign that the answer is complete.
    #[error("the model's answer was cut off")]
    Cut,
    /// The provider's answer does not follow the protocol.
    #[error("the model's answer could not be understood: {message}")]
    Protocol {
        /// The violation of the protocol.
        message: String,
    },
    /// The provider sent more than is accepted.
    #[error("the model's answer is too large: more than {limit} {what}")]
    TooLarge {
        /// The unit of the limit, for example `bytes` or `tool calls`.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The scripted model received a request that differs from its transcript.
    #[error(transparent)]
    Script(#[from] Box<ScriptMismatch>),
}

/// The phases of a call that have a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutPhase {
    /// The first token of the answer.
    FirstToken,
    /// The next token of an answer that had begun.
    BetweenTokens,
    /// The whole call with all its retries.
    Total,
}

impl std::fmt::Display for TimeoutPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::FirstToken => "waiting for the first token",
            Self::BetweenTokens => "waiting for the next token",
            Self::Total => "the whole call",
        })
    }
}

impl ModelError {
    /// Returns whether another attempt may succeed after this error. A retry may still be unsafe: see
    /// [`crate::CallContext::takes_back`].
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Network { .. } | Self::Cut => true,
            Self::Http { status, .. } => matches!(status, 408 | 425 | 500..=599),
            Self::Provider { transient, .. } => *transient,
            Self::Cancelled
            | Self::Timeout { .. }
            | Self::Auth { .. }
            | Self::ContextLength { .. }
            | Self::Protocol { .. }
            | Self::TooLarge { .. }
            | Self::Script(_) => false,
        }
    }

    /// Replaces the peer's texts in the error by `clean`.
    pub(crate) fn clean_words(mut self, clean: &dyn Fn(&str) -> String) -> Self {
        match &mut self {
            Self::RateLimited { message, .. }
            | Self::Auth { message, .. }
            | Self::Http { message, .. }
            | Self::Network { message }
            | Self::ContextLength { message }
            | Self::Protocol { message } => *message = clean(message),
            Self::Provider { kind, message, .. } => {
                *kind = clean(kind);
                *message = clean(message);
            }
            Self::Cancelled
            | Self::Timeout { .. }
            | Self::Cut
            | Self::TooLarge { .. }
            | Self::Script(_) => {}
        }
        self
    }

    /// The wait before another attempt that the provider requested, if any.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Http { retry_after, .. } => *retry_after,
            Self::Cancelled
            | Self::Timeout { .. }
            | Self::Auth { .. }
            | Self::ContextLength { .. }
            | Self::Provider { .. }
            | Self::Network { .. }
            | Self::Cut
            | Self::Protocol { .. }
            | Self::TooLarge { .. }
            | Self::Script(_) => None,
        }
    }
}
