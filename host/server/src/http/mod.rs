//! The layers that every connection and every request passes through, from the listener to the
//! handlers.

pub(crate) mod auth;
pub(crate) mod cookie;
pub(crate) mod cors;
pub(crate) mod gate;
#[cfg(test)]
mod golden;
pub(crate) mod guard;
pub(crate) mod held;
pub(crate) mod ids;
pub(crate) mod in_flight;
pub(crate) mod keys;
pub(crate) mod last_check;
pub(crate) mod links;
pub(crate) mod listen;
pub(crate) mod meter;
pub(crate) mod outward;
pub(crate) mod pace;
pub(crate) mod page;
pub(crate) mod peers;
pub(crate) mod problem;
pub(crate) mod rate;
pub(crate) mod respond;
pub(crate) mod strangers;
pub(crate) mod tokens;
pub(crate) mod turned_away;
