//! One agent, step by step: `machine.rs` decides without effects, `driver.rs` performs the effects.

pub(crate) mod agent;
mod command;
pub(crate) mod current_jar;
pub(crate) mod driver;
pub(crate) mod ended;
pub(crate) mod images;
pub(crate) mod job;
pub(crate) mod ledger;
pub(crate) mod library;
pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod prepare;
mod remedy;
pub(crate) mod stops;
