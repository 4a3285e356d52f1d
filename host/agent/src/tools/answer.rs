//! The answer to a call.

/// The result of a call, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallAnswer {
    pub(crate) content: String,
    pub(crate) is_error: bool,
}
