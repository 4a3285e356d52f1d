//! The answer to a call.

/// The text about one call for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallAnswer {
    pub(crate) content: String,
    pub(crate) is_error: bool,
}
