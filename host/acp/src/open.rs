//! The sessions that an editor has opened: a bounded number, with one prompt at a time in each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Error;
use belljar_overlay::ChangeStat;
use tokio_util::sync::CancellationToken;

use crate::errors::{no_session, not_now};
use crate::limits::MAX_OPEN;

/// The open sessions, by id.
#[derive(Debug, Default)]
pub(crate) struct OpenSessions(Mutex<HashMap<String, Arc<OpenSession>>>);

/// A session that the editor has opened.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) id: String,
    /// A lock that is held while a turn begins, or while a resumed one is shown.
    pub(crate) floor: Arc<tokio::sync::Mutex<()>>,
    /// Cancels the prompt that is being answered, if there is one.
    prompt: Mutex<Option<CancellationToken>>,
    /// The sizes of the overlay's changes when they were shown last.
    changed: Mutex<ChangeStat>,
}

/// A prompt that is being answered. Dropping this value allows the next one.
#[derive(Debug)]
pub(crate) struct ActivePrompt {
    pub(crate) session: Arc<OpenSession>,
    pub(crate) cancel: CancellationToken,
}

impl OpenSessions {
    /// Opens a session, or returns it if it is open.
    pub(crate) fn open_session(&self, id: &str) -> Result<Arc<OpenSession>, Error> {
        let mut all = self.lock_sessions();
        if let Some(known) = all.get(id) {
            return Ok(Arc::clone(known));
        }
        // INV-304: the number of open sessions is bounded.
        if all.len() >= MAX_OPEN {
            return Err(not_now(format!("{MAX_OPEN} sessions are open; close one first")));
        }
        let session = Arc::new(OpenSession {
            id: id.to_owned(),
            floor: Arc::default(),
            prompt: Mutex::default(),
            changed: Mutex::default(),
        });
        all.insert(id.to_owned(), Arc::clone(&session));
        Ok(session)
    }

    /// INV-301: finds only sessions that this editor has opened.
    pub(crate) fn find_session(&self, id: &str) -> Result<Arc<OpenSession>, Error> {
        self.lock_sessions().get(id).map(Arc::clone).ok_or_else(|| no_session(id))
    }

    /// Closes a session; returns it if it was open.
    pub(crate) fn close_session(&self, id: &str) -> Option<Arc<OpenSession>> {
        self.lock_sessions().remove(id)
    }

    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenSession {
    /// Begins to answer a prompt; an error if another one is being answered.
    pub(crate) fn begin_prompt(self: &Arc<Self>) -> Result<ActivePrompt, Error> {
        let mut prompt = self.lock_prompt();
        if prompt.is_some() {
            return Err(not_now(
                "this session is answering a prompt; wait for its end, or cancel it",
            ));
        }
        let cancel = CancellationToken::new();
        *prompt = Some(cancel.clone());
        Ok(ActivePrompt { session: Arc::clone(self), cancel })
    }

    /// Cancels the prompt that is being answered, if there is one.
    pub(crate) fn cancel_prompt(&self) {
        if let Some(cancel) = &*self.lock_prompt() {
            cancel.cancel();
        }
    }

    /// Records the sizes of the overlay's changes; returns whether they differ from those shown last.
    pub(crate) fn record_shown(&self, stat: ChangeStat) -> bool {
        let mut last = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let new = *last != stat;
        *last = stat;
        new
    }

    fn lock_prompt(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.prompt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActivePrompt {
    fn drop(&mut self) {
        *self.session.lock_prompt() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_answers_one_prompt_at_a_time_and_another_is_not_held_up() {
        let open = OpenSessions::default();
        let (a, b) = (open.open_session("a").unwrap(), open.open_session("b").unwrap());
        let prompting = a.begin_prompt().unwrap();
        assert!(a.begin_prompt().unwrap_err().message.contains("cancel it"));
        drop(b.begin_prompt().unwrap());
        a.cancel_prompt();
        assert!(prompting.cancel.is_cancelled());
        drop(prompting);
        assert!(a.begin_prompt().is_ok());
    }

    #[test]
    fn no_more_sessions_are_open_than_may_be() {
        let open = OpenSessions::default();
        for n in 0..MAX_OPEN {
            open.open_session(&n.to_string()).unwrap();
        }
        assert!(open.open_session("more").is_err() && open.find_session("more").is_err());
        assert!(open.open_session("1").is_ok(), "one that is open is none more");
        open.close_session("1");
        assert!(open.open_session("more").is_ok());
    }
}
