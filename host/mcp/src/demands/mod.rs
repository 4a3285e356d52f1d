//! The demands of a server in the midst of a call: forms for a person, texts of a model, directories.
//! INV-360: it is announced, and answered, where the operator has granted it and nowhere else.
//!
//! ```text
//! exchange, process, rounds ──> Talk::reply ──> form (checked) ──> dialogue ──> Answers (a person)
//!                                           ├─> sampling (bounded) ─────────> Answers (a model)
//!                                           └─> roots
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

pub use grants::{Granted, SamplingGrant};
pub use sampling::Sample;
pub(crate) use talk::Talk;
pub(crate) use waits::{Clock, Waits};

use async_trait::async_trait;

/// Whoever answers a server, on behalf of the agent that calls it.
#[async_trait]
pub trait Answers: Send + Sync {
    /// Puts a question to the person.
    async fn question(&self, asked: &ServerQuestion<'_>) -> Heard;

    /// Has a model write a text, within what is granted to this server and what the agent may use.
    /// The words are the server's.
    ///
    /// # Errors
    ///
    /// Why there is none, for the operator.
    async fn sample(
        &self,
        server: &str,
        grant: &SamplingGrant,
        sample: &Sample,
    ) -> Result<Sampled, String>;

    /// Whether the person wants to be asked nothing more for this server in this run.
    fn is_muted(&self, server: &str) -> bool;

    /// The person wants to be asked nothing more for it.
    async fn mute(&self, server: &str);

    /// Whether nobody came so often that nobody is waited for any more in this run.
    fn is_given_up(&self, server: &str) -> bool;

    /// Whether somebody came to a form or an address of it.
    fn waited(&self, server: &str, came: bool);
}

/// A question to the person. Its texts are escaped already.
#[derive(Debug, Clone, Copy)]
pub struct ServerQuestion<'a> {
    /// The words that they read.
    pub text: &'a str,
    /// The same without any word of theirs. INV-366: of the question this alone is stored, and of the
    /// answer nothing.
    pub noted: &'a str,
    /// Answers to choose from.
    pub options: &'a [String],
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// Words, or one of the options.
    Words(String),
    /// Nothing: it is left blank.
    Blank,
    /// No, they do not answer.
    No,
    /// There is nobody, or they did not come in time.
    Nobody,
    /// They closed it: no word, and no field is left out by that.
    Closed,
}

/// A text that a model has written for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// The text.
    pub text: String,
    /// The name of the model that wrote it, as the operator has it.
    pub model: String,
    /// Whether it was cut off at the most tokens that it could have.
    pub is_cut: bool,
}
