//! Secrets: a tool can ask whether one is there, never what it is.
//!
//! The host joins a secret to outgoing requests itself, in the header and for the hosts that
//! the operator bound it to.

use crate::{ToolError, config};

/// Whether the operator has granted this tool a secret of this name.
///
/// # Errors
///
/// As [`config::get`].
pub fn exists(name: &str) -> Result<bool, ToolError> {
    Ok(config::get(&format!("secret.{name}"))?.is_some())
}
