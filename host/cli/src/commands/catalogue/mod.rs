//! The commands about agents, teams, skills and drafts, and about the rights of agents.

pub(crate) mod agents;
pub(crate) mod check;
pub(crate) mod commands;
pub(crate) mod drafts;
pub(crate) mod explain;
pub(crate) mod limits;
mod listing;
pub(crate) mod noticed;
pub(crate) mod skills;
pub(crate) mod teams;
