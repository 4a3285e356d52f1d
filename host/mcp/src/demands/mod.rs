//! The requests of a server during a call: forms for a person, texts of a model, directories. INV-360: such a
//! request is announced as possible, and answered, only if the operator grants it.
//!
//! ```text
//! exchange, process, rounds ──> CallTalk ──> form (checked) ──> dialogue ──> ServerResponder (a person)
//!                                        ├─> sampling (bounded) ─────────> ServerResponder (a model)
//!                                        └─> roots
//! ```

mod address;
mod dialogue;
mod field;
mod form;
mod grants;
mod respondent;
mod sampling;
mod talk;
mod waits;

pub use grants::{SamplingGrant, ServerGrants};
pub use sampling::SampleRequest;
pub(crate) use talk::CallTalk;
pub(crate) use waits::{PersonWaits, ServerCallClock};

use async_trait::async_trait;

/// Answers a server's requests on behalf of the calling agent.
#[async_trait]
pub trait ServerResponder: Send + Sync {
    /// Asks the person a question.
    async fn ask_person(&self, asked: &ServerQuestion<'_>) -> QuestionAnswer;

    /// Has a model write a text, within the server's grant and the agent's budget. The text of the sample is
    /// the server's.
    ///
    /// # Errors
    /// The reason why there is no text, for the operator.
    async fn sample_text(
        &self,
        server: &str,
        grant: &SamplingGrant,
        sample: &SampleRequest,
    ) -> Result<SampledText, String>;

    /// Returns whether the person has refused all further questions of this server in this run.
    fn is_muted(&self, server: &str) -> bool;

    /// Notes that the person refuses all further questions of this server.
    async fn mute_server(&self, server: &str);

    /// Returns whether so many questions of this server went unanswered that the run waits for no more of
    /// them.
    fn is_given_up(&self, server: &str) -> bool;

    /// Notes whether a person answered a form or an address of the server.
    fn record_attendance(&self, server: &str, came: bool);
}

/// A question to the person; a server's texts in it are escaped.
#[derive(Debug, Clone, Copy)]
pub struct ServerQuestion<'a> {
    /// The text that the person reads.
    pub text: &'a str,
    /// The question without any text of the server. INV-366: only this text is stored, and nothing of the
    /// answer.
    pub noted: &'a str,
    /// The options from which the person chooses; empty = any text.
    pub options: &'a [String],
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
    /// A text, or one of the options.
    Words(String),
    /// The person skipped the question.
    Blank,
    /// The person refused to answer.
    No,
    /// No person is present, or none answered in time.
    Nobody,
    /// The person closed the form, which is neither an answer nor a skipped field.
    Closed,
}

/// A text that a model has written for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledText {
    /// The text.
    pub text: String,
    /// The name of the model in the operator's settings, for example `main`.
    pub model: String,
    /// True if the text was cut at the limit of tokens.
    pub is_cut: bool,
}
