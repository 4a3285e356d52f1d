//! Searches everything that an attacker, a model or a person is shown.

use std::sync::{Arc, Mutex, PoisonError};

use belljar_sandbox::{CallResult, OutputPart};

use crate::secret::SecretCanary;

/// Searches everything that an attacker, a model or a person is shown, for one arena.
#[derive(Debug)]
pub(crate) struct ArenaWitness {
    pub(crate) secret: Arc<SecretCanary>,
    /// The path of the arena's directory, which no guest may learn.
    pub(crate) root: String,
    pub(crate) learnt: Mutex<Option<String>>,
}

impl ArenaWitness {
    /// Searches the answer and the receipt of a call.
    pub(crate) fn inspect_result(&self, result: &CallResult) {
        match &result.outcome {
            Ok(output) => {
                for part in &output.parts {
                    match part {
                        OutputPart::Text(text) | OutputPart::Json(text) => {
                            self.inspect_told("an answer", text.as_bytes());
                        }
                        OutputPart::Attachment { name, media_type, data } => {
                            self.inspect_told("an attachment", data);
                            self.inspect_told("an attachment's name", name.as_bytes());
                            self.inspect_told("an attachment's type", media_type.as_bytes());
                        }
                    }
                }
            }
            Err(error) => self.inspect_told("an error", error.to_string().as_bytes()),
        }
        match serde_json::to_vec(&result.receipt) {
            Ok(receipt) => self.inspect_shown("a receipt", &receipt),
            Err(error) => self.note_finding(format!("a receipt could not be read: {error}")),
        }
    }

    /// Searches a text that a guest or a model was shown for the secret and for paths of this machine.
    pub(crate) fn inspect_told(&self, place: &str, text: &[u8]) {
        self.inspect_shown(place, text);
        if crate::secret::contains_bytes(text, self.root.as_bytes()) {
            self.note_finding(format!("{place} names a path of the host"));
        }
    }

    /// Searches a text that a person was shown for the secret.
    pub(crate) fn inspect_shown(&self, place: &str, text: &[u8]) {
        self.secret.search_text(place, text);
    }

    fn note_finding(&self, what: String) {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }

    pub(crate) fn first_finding(&self) -> Option<String> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
