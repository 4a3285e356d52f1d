//! A tool's call during which the tool makes nested calls.
//!
//! The place of a nested call is its number, from 0. If the process dies, the outer call runs again, and must
//! make the same nested calls: each is compared with the journal's call at the same place.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use belljar_model::ToolCall;
use belljar_sandbox::{Digest, NestedScope};

use crate::replay::log::AgentPast;
use crate::tools::nested::reply::AnswerForm;
use crate::tools::nested::room::ReceiptRoom;

/// A call that makes nested calls, and their state.
pub(crate) struct OuterCall {
    /// The id of this call, for example `call-1`; nested calls have `call-1.1`, `call-1.2`.
    id: String,
    /// The journal address of the nested calls.
    address: Arc<str>,
    /// The journal of the nested calls from before the process died; `None` = the call runs for the first
    /// time.
    past: Option<Arc<AgentPast>>,
    /// The number of nested calls so far, which is the place of the next one.
    made: AtomicUsize,
    /// How the answers to nested calls are divided into parts, by place, until the tool gets them.
    forms: Mutex<HashMap<usize, AnswerForm>>,
    /// The places of nested calls that were made in this process and equal the journal's, or are not in the
    /// journal.
    followed: Mutex<HashSet<usize>>,
    /// The first difference from the journal, as a sentence; unset = none.
    diverged: OnceLock<String>,
    /// The bytes left for receipts, shared by all calls below one call of the model.
    room: Arc<ReceiptRoom>,
    /// True once a question about a nested call went unanswered.
    alone: Arc<AtomicBool>,
}

/// Where a nested call belongs.
#[derive(Clone, Copy)]
pub(crate) struct NestedPlace<'a> {
    /// The call during which it was made.
    pub(crate) outer: &'a OuterCall,
    /// The jar's bounds for the nested call; `None` = the outer call has ended, and only its subagents
    /// resume.
    pub(crate) within: Option<&'a NestedScope>,
    /// The name that the tool's code used, which may be an alias, for example `Read`.
    pub(crate) asked: &'a str,
    /// The digest of the call before any hook changed it.
    pub(crate) called: &'a str,
}

impl OuterCall {
    /// The state of a call able to make nested calls. `nested` is the call's own place, if a tool made the
    /// call too.
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

    /// Reserves places for this number of nested calls, and returns the first.
    pub(crate) fn reserve_places(&self, calls: usize) -> usize {
        self.made.fetch_add(calls, Ordering::Relaxed)
    }

    /// The id of the nested call at a place, for example `call-1.2` at place 1.
    pub(crate) fn id_of(&self, place: usize) -> String {
        format!("{}.{}", self.id, place + 1)
    }

    /// Keeps the form of an answer until the tool gets the answer.
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

    /// INV-235: compares a nested call with the journal's at the same place. Returns whether they are equal;
    /// a call that the journal does not have is accepted.
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

    /// Returns whether the nested call at this place was made in this process and equals the journal's.
    pub(crate) fn has_matched_call(&self, place: usize) -> bool {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).contains(&place)
    }

    /// INV-251: what differs from the journal when the outer call ends: a different nested call, or a nested
    /// call that was not made again. `None` = nothing.
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

    /// The bytes left for receipts of nested calls.
    pub(crate) fn receipt_room(&self) -> &ReceiptRoom {
        &self.room
    }

    /// INV-259: records that a question went unanswered, so no further nested call asks a person.
    /// Otherwise a thousand waits would last a week.
    pub(crate) fn record_unanswered_question(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }

    /// Returns whether nested calls no longer ask a person, because a question went unanswered.
    pub(crate) fn is_unattended(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
    }

    /// The first difference from the journal, if any.
    pub(crate) fn divergence_reason(&self) -> Option<&str> {
        self.diverged.get().map(String::as_str)
    }
}

/// A digest of a call's name and arguments, by which the call is recognised.
pub(crate) fn call_digest(call: &ToolCall) -> String {
    let ToolCall { name, arguments, .. } = call;
    Digest::hash_bytes(format!("{}:{name}{arguments}", name.len()).as_bytes()).to_string()
}

/// The journal address of the nested calls of a call. It has an `@`, which no subagent's address has.
pub(crate) fn address_within(caller: &str, step: u64, position: usize) -> Arc<str> {
    format!("{caller}@{step}.{position}").into()
}

/// Returns whether an address belongs to nested calls.
pub(crate) fn is_within(address: &str) -> bool {
    address.contains('@')
}
