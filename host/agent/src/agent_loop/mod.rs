//! One agent, step by step: a machine without effects decides, its driver performs.

pub(crate) mod agent;
pub(crate) mod current_jar;
pub(crate) mod driver;
pub(crate) mod ended;
pub(crate) mod images;
pub(crate) mod job;
pub(crate) mod ledger;
pub(crate) mod live;
pub(crate) mod machine;
pub(crate) mod prepare;
mod remedy;
pub(crate) mod stops;
