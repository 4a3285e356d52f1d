//! The commands that run one agent or one team.

pub(crate) mod agent;
pub(crate) mod attachments;
pub(crate) mod demo;
pub(crate) mod named;
pub(crate) mod refused;
pub(crate) mod runner;
pub(crate) mod saving;
pub(crate) mod task;
pub(crate) mod team;
pub(crate) mod transcript;
