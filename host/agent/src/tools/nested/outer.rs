//! A call with nested calls: their places, and their records.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use belljar_model::ToolCall;
use belljar_sandbox::{Digest, Within};

use crate::replay::log::AgentPast;
use crate::tools::nested::reply::AnswerForm;
use crate::tools::nested::room::Room;

/// A call that makes others.
pub(crate) struct Outer {
    /// The id, which begins the ids of nested calls.
    id: String,
    /// The address of the nested calls in the journal.
    address: Arc<str>,
    /// The journal of the nested calls, from before the process died.
    past: Option<Arc<AgentPast>>,
    /// The number of nested calls so far.
    made: AtomicUsize,
    /// The forms of the answers to nested calls, until returned.
    forms: Mutex<HashMap<usize, AnswerForm>>,
    /// The places of nested calls that match the record, or have none.
    followed: Mutex<HashSet<usize>>,
    /// The difference to the record.
    diverged: OnceLock<String>,
    /// The room for receipts, shared by all calls below one model call.
    room: Arc<Room>,
    /// True after a question about a nested call went unanswered.
    alone: Arc<AtomicBool>,
}

/// The place of a call that a tool makes.
#[derive(Clone, Copy)]
pub(crate) struct Nested<'a> {
    /// The outer call.
    pub(crate) outer: &'a Outer,
    /// The jar's bounds for the call; `None` = the outer call has ended, and only its subagents resume.
    pub(crate) within: Option<&'a Within>,
    /// The name as called, perhaps an alias, for example `Read`.
    pub(crate) asked: &'a str,
    /// The digest of the call before any hook.
    pub(crate) called: &'a str,
}

impl Outer {
    /// Creates the record of a call. `nested` = the call's own place, if a tool made the call.
    pub(crate) fn new(
        id: &str,
        address: Arc<str>,
        past: Option<Arc<AgentPast>>,
        nested: Option<Nested<'_>>,
    ) -> Self {
        Self {
            id: id.to_owned(),
            address,
            past,
            made: AtomicUsize::new(0),
            forms: Mutex::default(),
            followed: Mutex::default(),
            diverged: OnceLock::new(),
            room: nested.map_or_else(Arc::default, |nested| Arc::clone(&nested.outer.room)),
            alone: nested.map_or_else(Arc::default, |nested| Arc::clone(&nested.outer.alone)),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// The journal of the nested calls; `None` = running for the first time.
    pub(crate) fn past(&self) -> Option<&Arc<AgentPast>> {
        self.past.as_ref()
    }

    /// Reserves places for `calls` further calls; returns the first place.
    pub(crate) fn take(&self, calls: usize) -> usize {
        self.made.fetch_add(calls, Ordering::Relaxed)
    }

    /// The id of the call at a place.
    pub(crate) fn id_of(&self, place: usize) -> String {
        format!("{}.{}", self.id, place + 1)
    }

    /// Stores the form of an answer until the tool gets the answer.
    pub(crate) fn keep(&self, place: usize, form: AnswerForm) {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner).insert(place, form);
    }

    /// The form of an answer, for the journal.
    pub(crate) fn form(&self, place: usize) -> AnswerForm {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.get(&place).cloned().unwrap_or_default()
    }

    /// Removes and returns the form of an answer.
    pub(crate) fn told(&self, place: usize) -> AnswerForm {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.remove(&place).unwrap_or_default()
    }

    /// INV-235: compares a call with the recorded one at the place. Returns whether they match, or nothing is
    /// recorded.
    pub(crate) fn follows(&self, place: usize, step: u64, called: &str) -> bool {
        if self.diverged.get().is_some() {
            return false;
        }
        let then = self.past.as_ref().and_then(|past| past.called(step, place));
        if then.is_none_or(|then| then == called) {
            self.followed.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
            return true;
        }
        let _ = self.diverged.set(format!(
            "it was interrupted, and went another way when it ran again: call {} is another one than \
             the recorded one. Nothing was done since; what it did before is in its receipts",
            place + 1
        ));
        false
    }

    /// Returns whether the call at a place was made, and matches the record.
    pub(crate) fn has_made(&self, place: usize) -> bool {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).contains(&place)
    }

    /// INV-251: ends the call. Returns the difference from the record, including recorded calls that were not
    /// made.
    pub(crate) fn ends(&self, past: &AgentPast) -> Option<String> {
        let unmade = past.places().iter().filter(|(_, place)| !self.has_made(*place)).count();
        match self.diverged() {
            None if unmade > 0 => Some(format!(
                "it was interrupted, and went another way when it ran again: it ended without {unmade} of \
                 its calls that are recorded. What those did was not undone; it is in their receipts"
            )),
            diverged => diverged.map(str::to_owned),
        }
    }

    /// The shared room for receipts of nested calls.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// INV-259: notes an unanswered question, so that no further nested call waits for a person. Without
    /// this, a thousand waits would last a week.
    pub(crate) fn nobody_came(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }

    /// Returns whether questions about nested calls are no longer asked, because one went unanswered.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
    }

    /// The difference to the record, if any.
    pub(crate) fn diverged(&self) -> Option<&str> {
        self.diverged.get().map(String::as_str)
    }
}

/// A digest of a call, for recognition.
pub(crate) fn called(call: &ToolCall) -> String {
    let ToolCall { name, arguments, .. } = call;
    Digest::of(format!("{}:{name}{arguments}", name.len()).as_bytes()).to_string()
}

/// The address in the journal of a call's nested calls. Subagents' addresses differ: an id of a starting call
/// has no `@`.
pub(crate) fn address_within(caller: &str, step: u64, position: usize) -> Arc<str> {
    format!("{caller}@{step}.{position}").into()
}

/// Returns whether an address belongs to nested calls.
pub(crate) fn is_within(address: &str) -> bool {
    address.contains('@')
}
