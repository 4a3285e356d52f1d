//! Lines for the operator's log. Never shown to the model; the host keeps a bounded number.
//!
//! Natively (in unit tests) these do nothing.

use std::fmt::Display;

macro_rules! levels {
    ($($(#[$doc:meta])* $name:ident => $level:ident;)+) => {$(
        $(#[$doc])*
        pub fn $name(message: impl Display) {
            write(Level::$level, &message.to_string());
        }
    )+};
}

levels! {
    /// For following the tool's steps.
    trace => Trace;
    /// For finding a fault in the tool.
    debug => Debug;
    /// What an operator may want to know.
    info => Info;
    /// Something is off, and the call went on.
    warn => Warn;
    /// The call failed for a reason that an operator can mend.
    error => Error;
}

#[cfg(target_family = "wasm")]
use crate::bindings::belljar::tool::log::{Level, log as write};

#[cfg(not(target_family = "wasm"))]
enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

#[cfg(not(target_family = "wasm"))]
fn write(_level: Level, _message: &str) {}
