//! The port for messages that replace earlier turns, if a model cannot read the whole request.

use std::fmt;

use async_trait::async_trait;
use belljar_model::ChatMessage;
use tokio_util::sync::CancellationToken;

use crate::events::EventEmitter;

/// Shortens the earlier turns of a conversation while a turn runs.
#[async_trait]
pub trait ShorterPast: fmt::Debug + Send + Sync {
    /// The messages that replace all earlier turns from now on; `None` = they cannot be shorter. Called again
    /// if a later request of the same turn is too long too.
    async fn shorten_past(
        &self,
        events: &EventEmitter,
        cancel: &CancellationToken,
    ) -> Option<Vec<ChatMessage>>;
}
