//! A call that makes others: where those stand, and what was recorded of them.

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
    /// Its id, which those of the calls in it begin with.
    id: String,
    /// The address of those in the journal.
    address: Arc<str>,
    /// Their journal from before the process died.
    past: Option<Arc<AgentPast>>,
    /// How many there are.
    made: AtomicUsize,
    /// The forms of their answers, until they are told.
    forms: Mutex<HashMap<usize, AnswerForm>>,
    /// The places of those that were made as they are recorded, or are not recorded at all.
    followed: Mutex<HashSet<usize>>,
    /// How it went another way than recorded.
    diverged: OnceLock<String>,
    /// The room that their receipts have, with those of all calls below one of the model.
    room: Arc<Room>,
    /// Nobody answered a question about one of those calls.
    alone: Arc<AtomicBool>,
}

/// The place of a call that a tool makes.
#[derive(Clone, Copy)]
pub(crate) struct Nested<'a> {
    /// The call that makes it.
    pub(crate) outer: &'a Outer,
    /// The bounds that the jar holds it to; `None` = the call that made it has ended, and only what it
    /// had started resumes.
    pub(crate) within: Option<&'a Within>,
    /// The name that the tool called, which may be an alias.
    pub(crate) asked: &'a str,
    /// The digest of the call as it was made, before any hook.
    pub(crate) called: &'a str,
}

impl Outer {
    /// `nested`: its own place, where a tool makes it.
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

    /// The journal of its calls; `None` = it runs for the first time.
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

    /// Whether the call at a place was made, and is not another one than the recorded one.
    pub(crate) fn has_made(&self, place: usize) -> bool {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner).contains(&place)
    }

    /// INV-251: it has ended. Says how it went another way than recorded, which it also did where it
    /// did not make all the calls that are.
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

    /// The room that the receipts of its calls share.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// INV-259: nobody answered in time, and no call waits for a person again below that of the model.
    /// A thousand such waits would be a week.
    pub(crate) fn nobody_came(&self) {
        self.alone.store(true, Ordering::Relaxed);
    }

    /// Whether nobody is there to be asked.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
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

/// The address in the journal of the calls that a call makes. No subagent has it: in the id of a call that
/// started one there is no `@`.
pub(crate) fn address_within(caller: &str, step: u64, position: usize) -> Arc<str> {
    format!("{caller}@{step}.{position}").into()
}

/// Whether an address is that of calls which a call makes.
pub(crate) fn is_within(address: &str) -> bool {
    address.contains('@')
}
