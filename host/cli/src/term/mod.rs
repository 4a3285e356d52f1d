//! What a person sees at the terminal: text, tables, progress and questions.

pub(crate) mod ahead;
pub(crate) mod asker;
pub(crate) mod diff;
pub(crate) mod out;
pub(crate) mod progress;
pub(crate) mod snippets;
pub(crate) mod table;
pub(crate) mod visible;
pub(crate) mod wrap;
