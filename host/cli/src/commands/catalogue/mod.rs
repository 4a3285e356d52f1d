//! The catalogue on the command line: agents, teams, skills, drafts, and what each may do.

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
