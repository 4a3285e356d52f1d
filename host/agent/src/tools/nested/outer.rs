//! A call that makes others: where those stand, and what was recorded of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use belljar_model::ToolCall;
use belljar_sandbox::{Digest, Within};

use crate::replay::log::AgentPast;
use crate::tools::nested::reply::AnswerForm;

/// A call that makes others.
pub(crate) struct Outer {
    /// Its id, which those of the calls in it begin with.
    id: String,
    /// The address of those in the log.
    address: Arc<str>,
    /// Their log from before the process died.
    past: Option<Arc<AgentPast>>,
    /// How many there are.
    made: AtomicUsize,
    /// The forms of their answers, until they are told.
    forms: Mutex<HashMap<usize, AnswerForm>>,
    /// How it went another way than recorded.
    diverged: OnceLock<String>,
}

/// The place of a call that a tool makes.
#[derive(Clone, Copy)]
pub(crate) struct Nested<'a> {
    /// The call that makes it.
    pub(crate) outer: &'a Outer,
    /// The bounds that the jar holds it to.
    pub(crate) within: &'a Within,
    /// The name that the tool called, which may be an alias.
    pub(crate) asked: &'a str,
    /// The digest of the call as it was made, before any hook.
    pub(crate) called: &'a str,
}

impl Outer {
    pub(crate) fn new(id: &str, address: Arc<str>, past: Option<Arc<AgentPast>>) -> Self {
        Self {
            id: id.to_owned(),
            address,
            past,
            made: AtomicUsize::new(0),
            forms: Mutex::default(),
            diverged: OnceLock::new(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// The log of its calls; `None` = it runs for the first time.
    pub(crate) fn past(&self) -> Option<&Arc<AgentPast>> {
        self.past.as_ref()
    }

    /// The place of the first of so many more calls.
    pub(crate) fn take(&self, calls: usize) -> usize {
        self.made.fetch_add(calls, Ordering::Relaxed)
    }

    /// The id of the call at a place.
    pub(crate) fn id_of(&self, place: usize) -> String {
        format!("{}.{}", self.id, place + 1)
    }

    /// Keeps the form of an answer until it is told.
    pub(crate) fn keep(&self, place: usize, form: AnswerForm) {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner).insert(place, form);
    }

    /// The same, to be persisted.
    pub(crate) fn form(&self, place: usize) -> AnswerForm {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.get(&place).cloned().unwrap_or_default()
    }

    /// The form of an answer that is told now.
    pub(crate) fn told(&self, place: usize) -> AnswerForm {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.remove(&place).unwrap_or_default()
    }

    /// INV-235: compares a call with the one that is recorded at its place. Says whether it is that one,
    /// or there is none.
    pub(crate) fn follows(&self, place: usize, step: u64, called: &str) -> bool {
        if self.diverged.get().is_some() {
            return false;
        }
        let Some(then) = self.past.as_ref().and_then(|past| past.called(step, place)) else {
            return true;
        };
        if then == called {
            return true;
        }
        let _ = self.diverged.set(format!(
            "it was interrupted, and went another way when it ran again: call {} is another one than \
             the recorded one. Nothing was done since; what it did before is in its receipts",
            place + 1
        ));
        false
    }

    /// How it went another way than recorded.
    pub(crate) fn diverged(&self) -> Option<&str> {
        self.diverged.get().map(String::as_str)
    }
}

/// A digest of a call, by which it is known again.
pub(crate) fn called(call: &ToolCall) -> String {
    let ToolCall { name, arguments, .. } = call;
    Digest::of(format!("{}:{name}{arguments}", name.len()).as_bytes()).to_string()
}

/// The address in the log of the calls that a call makes. No subagent has it: in the id of a call that
/// started one there is no `@`.
pub(crate) fn address_within(caller: &str, step: u64, position: usize) -> Arc<str> {
    format!("{caller}@{step}.{position}").into()
}

/// Whether an address is that of calls which a call makes.
pub(crate) fn is_within(address: &str) -> bool {
    address.contains('@')
}
