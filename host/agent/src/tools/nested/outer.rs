//! A call that makes nested calls.
//!
//! A nested call's place is its number, from 0. After the process died, the outer call runs again, and has to
//! make the same nested calls as before: each is compared with the recorded call at the same place.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use belljar_model::ToolCall;
use belljar_sandbox::{Digest, NestedScope};

use crate::replay::log::AgentPast;
use crate::tools::nested::reply::AnswerForm;
use crate::tools::nested::room::ReceiptRoom;

/// A call that makes others.
pub(crate) struct OuterCall {
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
    /// The places of nested calls that were made in this process and match the recorded call, if there is
    /// one.
    followed: Mutex<HashSet<usize>>,
    /// The first difference from the record, as a sentence; unset = none.
    diverged: OnceLock<String>,
    /// The room for receipts, shared by all calls below one model call.
    room: Arc<ReceiptRoom>,
    /// True after a question about a nested call went unanswered.
    alone: Arc<AtomicBool>,
}

/// The place of a call that a tool makes.
#[derive(Clone, Copy)]
pub(crate) struct NestedPlace<'a> {
    /// The outer call.
    pub(crate) outer: &'a OuterCall,
    /// The jar's bounds for the call; `None` = the outer call has ended, and only its subagents resume.
    pub(crate) within: Option<&'a NestedScope>,
    /// The name as called, perhaps an alias, for example `Read`.
    pub(crate) asked: &'a str,
    /// The digest of the call before any hook.
    pub(crate) called: &'a str,
}

impl OuterCall {
    /// Creates the record of a call. `nested` = the call's own place, if a tool made the call.
    pub(crate) fn new(
        id: &str,
        address: Arc<str>,
        past: Option<Arc<AgentPast>>,
        nested: Option<NestedPlace<'_>>,
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
    pub(crate) fn nested_journal(&self) -> Option<&Arc<AgentPast>> {
        self.past.as_ref()
    }

    /// Reserves places for `calls` further calls; returns the first place.
    pub(crate) fn reserve_places(&self, calls: usize) -> usize {
        self.made.fetch_add(calls, Ordering::Relaxed)
    }

    /// The id of the call at a place.
    pub(crate) fn id_of(&self, place: usize) -> String {
        format!("{}.{}", self.id, place + 1)
    }

    /// Stores the form of an answer until the tool gets the answer.
    pub(crate) fn keep_form(&self, place: usize, form: AnswerForm) {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner).insert(place, form);
    }

    /// The form of an answer, for the journal.
    pub(crate) fn stored_form(&self, place: usize) -> AnswerForm {
        let forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.get(&place).cloned().unwrap_or_default()
    }

    /// Removes and returns the form of an answer.
    pub(crate) fn take_form(&self, place: usize) -> AnswerForm {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        forms.remove(&place).unwrap_or_default()
    }

    /// INV-235: compares a call with the recorded one at the place. Returns whether they match, or nothing is
    /// recorded.
    pub(crate) fn matches_record(&self, place: usize, step: u64, called: &str) -> bool {
        if self.diverged.get().is_some() {
            return false;
        }
        let then = self.past.as_ref().and_then(|past| past.call_digest(step, place));
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

    /// Returns whether the nested call at a place was made in this process, and is the recorded one.
    pub(crate) fn has_matched_call(&self, place: usize) -> bool {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).contains(&place)
    }

    /// INV-251: returns the difference from the record at the call's end: a different nested call, or
    /// recorded nested calls that were not made again.
    pub(crate) fn end_call(&self, past: &AgentPast) -> Option<String> {
        let unmade =
            past.call_places().iter().filter(|(_, place)| !self.has_matched_call(*place)).count();
        match self.divergence_reason() {
            None if unmade > 0 => Some(format!(
                "it was interrupted, and went another way when it ran again: it ended without {unmade} of \
                 its calls that are recorded. What those did was not undone; it is in their receipts"
            )),
            diverged => diverged.map(str::to_owned),
        }
    }

    /// The shared room for receipts of nested calls.
    pub(crate) fn receipt_room(&self) -> &ReceiptRoom {
        &self.room
    }

    /// INV-259: records an unanswered question, so that no further nested call waits for a person. Otherwise
    /// a thousand waits would last a week.
    pub(crate) fn record_unanswered_question(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }

    /// Returns whether questions about nested calls are no longer asked, because one went unanswered.
    pub(crate) fn is_unattended(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
    }

    /// The first difference from the record, if any.
    pub(crate) fn divergence_reason(&self) -> Option<&str> {
        self.diverged.get().map(String::as_str)
    }
}

/// A digest of a call, for recognition.
pub(crate) fn call_digest(call: &ToolCall) -> String {
    let ToolCall { name, arguments, .. } = call;
    Digest::hash_bytes(format!("{}:{name}{arguments}", name.len()).as_bytes()).to_string()
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
