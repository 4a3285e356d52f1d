//! The handlers of the API, one file for each kind of object.

pub(crate) mod agent_files;
pub(crate) mod agent_text;
pub(crate) mod agents;
pub(crate) mod attachments;
pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod chat;
pub(crate) mod contents;
pub(crate) mod csv;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod grants;
pub(crate) mod health;
pub(crate) mod libraries;
pub(crate) mod login;
pub(crate) mod metrics;
pub(crate) mod preview;
pub(crate) mod questions;
mod reasoning;
pub(crate) mod rights;
pub(crate) mod roles;
pub(crate) mod running;
pub(crate) mod scope;
pub(crate) mod sessions;
pub(crate) mod tools;
pub(crate) mod turn;
pub(crate) mod usage;
