//! placeholder: replaced by the sandbox engineer
pub mod receipt;
mod record;
