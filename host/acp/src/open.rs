//! An editor's open sessions: one prompt at a time in each, and a bounded number of sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Error;
use belljar_changes::Stat;
use tokio_util::sync::CancellationToken;

use crate::errors::{no_session, not_now};
use crate::limits::MAX_OPEN;

/// The open sessions, by their ids.
#[derive(Debug, Default)]
pub(crate) struct OpenSessions(Mutex<HashMap<String, Arc<OpenSession>>>);

/// An open session.
#[derive(Debug)]
pub(crate) struct OpenSession {
    pub(crate) id: String,
    /// Held to begin a turn, or to show a resumed one.
    pub(crate) floor: Arc<tokio::sync::Mutex<()>>,
    /// Cancels the prompt that is being answered.
    prompt: Mutex<Option<CancellationToken>>,
    /// The size of the overlay's changes, as last shown.
    changed: Mutex<Stat>,
}

/// A prompt in progress. Dropping `Prompting` admits the next one.
#[derive(Debug)]
pub(crate) struct Prompting {
    pub(crate) session: Arc<OpenSession>,
    pub(crate) cancel: CancellationToken,
}

impl OpenSessions {
    /// Opens a session, or returns the open one.
    pub(crate) fn open(&self, id: &str) -> Result<Arc<OpenSession>, Error> {
        let mut all = self.all();
        if let Some(known) = all.get(id) {
            return Ok(Arc::clone(known));
        }
        // INV-304.
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
    pub(crate) fn find(&self, id: &str) -> Result<Arc<OpenSession>, Error> {
        self.all().get(id).map(Arc::clone).ok_or_else(|| no_session(id))
    }

    /// Closes a session and returns the session, if open.
    pub(crate) fn close(&self, id: &str) -> Option<Arc<OpenSession>> {
        self.all().remove(id)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenSession {
    /// Begins to answer a prompt.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Prompting, Error> {
        let mut prompt = self.prompt();
        if prompt.is_some() {
            return Err(not_now(
                "this session is answering a prompt; wait for its end, or cancel it",
            ));
        }
        let cancel = CancellationToken::new();
        *prompt = Some(cancel.clone());
        Ok(Prompting { session: Arc::clone(self), cancel })
    }

    /// Cancels the prompt in progress, if any.
    pub(crate) fn cancel(&self) {
        if let Some(cancel) = &*self.prompt() {
            cancel.cancel();
        }
    }

    /// Returns whether the overlay's state differs from the last shown one.
    pub(crate) fn shows(&self, stat: Stat) -> bool {
        let mut last = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let new = *last != stat;
        *last = stat;
        new
    }

    fn prompt(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.prompt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Prompting {
    fn drop(&mut self) {
        *self.session.prompt() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_answers_one_prompt_at_a_time_and_another_is_not_held_up() {
        let open = OpenSessions::default();
        let (a, b) = (open.open("a").unwrap(), open.open("b").unwrap());
        let prompting = a.begin().unwrap();
        assert!(a.begin().unwrap_err().message.contains("cancel it"));
        drop(b.begin().unwrap());
        a.cancel();
        assert!(prompting.cancel.is_cancelled());
        drop(prompting);
        assert!(a.begin().is_ok());
    }

    #[test]
    fn no_more_sessions_are_open_than_may_be() {
        let open = OpenSessions::default();
        for n in 0..MAX_OPEN {
            open.open(&n.to_string()).unwrap();
        }
        assert!(open.open("more").is_err() && open.find("more").is_err());
        assert!(open.open("1").is_ok(), "one that is open is none more");
        open.close("1");
        assert!(open.open("more").is_ok());
    }
}
