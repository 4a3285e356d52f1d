//! Reads and deletes stored turns and sessions, for entrances.

use std::sync::Arc;

use belljar_model::ChatMessage;
use belljar_store::{SessionKind, StoreError};

use super::Service;
use super::types::{ServiceError, StoredTurnOf};
use crate::conversation::history;
use crate::record::past::load_past;
use crate::record::rows::parse_row;
use crate::record::turn::Turn;

impl Service {
    /// The turn of an agent's message, found by the message's whole id. Another tenant's turn, a run of the
    /// command line and a missing turn return the same error.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NoSession`] if missing.
    pub async fn stored_turn(&self, message: &str) -> Result<StoredTurnOf, ServiceError> {
        let store = &self.0.store;
        let none = || ServiceError::NoSession(message.to_owned());
        let found = match store.find_turn(message).await {
            Ok(found) if found.answer.id == message => found,
            Ok(_) | Err(StoreError::NotFound { .. } | StoreError::Ambiguous { .. }) => {
                return Err(none());
            }
            Err(error) => return Err(error.into()),
        };
        if found.session.kind != SessionKind::Api {
            return Err(none());
        }
        let session = Arc::new(found.session);
        let latest = store.latest_turn(&session.id).await?;
        let is_last = latest.is_some_and(|latest| latest.answer.id == message);
        let subagents = store.list_subagents(&session.id).await?;
        let of_turn: Vec<_> =
            subagents.iter().filter(|one| one.parent_message_id == message).collect();
        let known = parse_row(store, message, &found.answer.metadata)?;
        let asked = found.asked.as_ref();
        let turn = Turn::from_rows(store, &session, asked, &found.answer, known, &of_turn)?;
        Ok(StoredTurnOf { turn, is_last })
    }

    /// The messages of a session up to the end of the turn `message`, inclusive.
    ///
    /// # Errors
    ///
    /// When the turn has not ended, or is missing.
    pub async fn conversation_until(
        &self,
        session: &str,
        message: &str,
    ) -> Result<Vec<ChatMessage>, ServiceError> {
        let store = &self.0.store;
        let past = load_past(store, store.read_session(session).await?).await?;
        let at = past.turns.iter().position(|turn| turn.message == message);
        let turns = at.and_then(|at| past.turns.get(..=at));
        let turns = turns.ok_or_else(|| ServiceError::NoSession(message.to_owned()))?;
        Ok(history::join_turns(turns))
    }

    /// Deletes a session with all its rows and files. Returns false if there is no such session.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Busy`] while a turn of the session runs.
    pub async fn delete_session(&self, session: &str) -> Result<bool, ServiceError> {
        if self.0.running.list_turns().iter().any(|turn| turn.session == session) {
            return Err(ServiceError::Busy(session.to_owned()));
        }
        let deleted = self.0.store.delete_session(session).await?;
        self.end_reviews(session).await;
        self.0.hub.end_session(session);
        self.remove_stale_layers().await;
        Ok(deleted)
    }

    /// Deletes all sessions with all their rows and files; returns the number of deleted sessions.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn delete_all(&self) -> Result<u64, ServiceError> {
        let deleted = self.0.store.delete_all_sessions().await?;
        self.0.running.end_reviews();
        self.0.hub.end_all();
        self.remove_stale_layers().await;
        Ok(deleted)
    }
}
