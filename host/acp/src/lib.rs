//! belljar as an agent of editors: the Agent Client Protocol (ACP), version 1, over any two streams.
//!
//! ```text
//! editor ──lines──> wire ──> serve ──> turn ──> Service (session)
//!    ^                                   │ events, results ──> updates ──┐
//!    └──────────── updates, questions <──┴───────────────────────────────┘
//! ```
//! A session of the editor is a session of the store, and a prompt is a turn of that session, with the
//! rights, budgets, events and audit log of every entrance. An editor's messages are data: no path in them is
//! opened, no command in them is started, and an answer reaches only a question that this editor was asked.
//! The crate is separate, because it has no HTTP, and programs that embed the server do not need ACP.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod aside;
mod ask;
mod beside;
mod changes;
mod children;
mod client;
mod commands;
mod door;
mod errors;
mod follow;
mod history;
mod limits;
mod modes;
mod open;
mod places;
mod prompt;
mod results;
mod serve;
mod terminal;
mod tool_call;
mod turn;
mod updates;
mod wire;
mod words;

pub use results::StepChannel;
pub use serve::EditorEntrance;
