//! The demands of a server in the midst of a call: forms for a person, texts of a model, directories.
//! INV-360: a demand is announced, and answered, only with the operator's grant.
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

/// Answers a server, on behalf of the calling agent.
#[async_trait]
pub trait ServerResponder: Send + Sync {
    /// Puts a question to the person.
    async fn ask_person(&self, asked: &ServerQuestion<'_>) -> QuestionAnswer;

    /// Lets a model write a text, within the server's grant and the agent's budget. The sample's text is the
    /// server's.
    ///
    /// # Errors
    ///
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

    /// Returns whether too many questions of this server went unanswered, so that no further wait is made in
    /// this run.
    fn is_given_up(&self, server: &str) -> bool;

    /// Notes whether a person answered a form or an address of the server.
    fn record_attendance(&self, server: &str, came: bool);
}

/// A question to the person, with escaped texts.
#[derive(Debug, Clone, Copy)]
pub struct ServerQuestion<'a> {
    /// The text that the person reads.
    pub text: &'a str,
    /// The question without any text of the server. INV-366: only this is stored of the question, and nothing
    /// of the answer.
    pub noted: &'a str,
    /// Answers to choose from.
    pub options: &'a [String],
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
    /// A text, or one of the options.
    Words(String),
    /// The person left the field blank.
    Blank,
    /// The person declined to answer.
    No,
    /// The person is absent, or did not answer in time.
    Nobody,
    /// The person closed the form: no answer, and not a skipped field.
    Closed,
}

/// A text that a model has written for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledText {
    /// The text.
    pub text: String,
    /// The name of the model in the operator's settings, for example `main`.
    pub model: String,
    /// True if the text was cut off at the limit of tokens.
    pub is_cut: bool,
}
