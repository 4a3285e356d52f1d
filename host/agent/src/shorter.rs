//! Messages in place of earlier turns, for a model that cannot read the whole request.

use std::fmt;

use async_trait::async_trait;
use belljar_model::ChatMessage;
use tokio_util::sync::CancellationToken;

use crate::events::EventEmitter;

/// The owner of a conversation's earlier turns, who can shorten them while a turn runs.
#[async_trait]
pub trait ShorterPast: fmt::Debug + Send + Sync {
    /// The messages that replace all earlier turns from now on; `None` = no shorter form. Called again if a
    /// later request of the same turn does not fit either.
    async fn shorten_past(
        &self,
        events: &EventEmitter,
        cancel: &CancellationToken,
    ) -> Option<Vec<ChatMessage>>;
}
