//! Who looks at everything that an attacker, a model or a person is shown.

use std::sync::{Arc, Mutex, PoisonError};

use belljar_sandbox::{CallResult, Part};

use crate::secret::Canary;

/// Looks at everything that an attacker, a model or a person is shown.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) secret: Arc<Canary>,
    /// The path that no guest may learn.
    pub(crate) root: String,
    pub(crate) learnt: Mutex<Option<String>>,
}

impl Witness {
    /// Looks at a call's answer and receipt.
    pub(crate) fn saw(&self, result: &CallResult) {
        match &result.outcome {
            Ok(output) => {
                for part in &output.parts {
                    match part {
                        Part::Text(text) | Part::Json(text) => {
                            self.told("an answer", text.as_bytes());
                        }
                        Part::Attachment { name, media_type, data } => {
                            self.told("an attachment", data);
                            self.told("an attachment's name", name.as_bytes());
                            self.told("an attachment's type", media_type.as_bytes());
                        }
                    }
                }
            }
            Err(error) => self.told("an error", error.to_string().as_bytes()),
        }
        match serde_json::to_vec(&result.receipt) {
            Ok(receipt) => self.shown("a receipt", &receipt),
            Err(error) => self.note(format!("a receipt could not be read: {error}")),
        }
    }

    /// Looks at what a guest or a model was told: neither the secret nor a path of this machine.
    pub(crate) fn told(&self, place: &str, text: &[u8]) {
        self.shown(place, text);
        if crate::secret::contains(text, self.root.as_bytes()) {
            self.note(format!("{place} names a path of the host"));
        }
    }

    /// Looks at what a person is shown: not the secret.
    pub(crate) fn shown(&self, place: &str, text: &[u8]) {
        self.secret.look(place, text);
    }

    fn note(&self, what: String) {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }

    pub(crate) fn learnt(&self) -> Option<String> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
