//! Tests of what the parsers say, as a person reads it: each is text in, diagnostics out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// A check of what the module's own `shown` says about the given text.
macro_rules! check {
    ($($given:expr),+, @$expected:literal) => {
        insta::assert_snapshot!(shown($($given),+), @$expected)
    };
}

/// A check of how an agent with this field is shown.
macro_rules! check_field {
    ($field:expr, @$expected:literal) => {
        insta::assert_snapshot!(crate::show::of_field($field), @$expected)
    };
}

mod agents;
mod canonical;
mod catalog;
mod commands;
mod foreign;
mod grants;
mod hostile;
mod limits;
mod manifest;
mod mcp;
mod named;
mod never_panics;
mod one_narrowing;
mod quotes;
mod recovery;
mod revoke;
mod server;
mod settings;
mod shapes;
mod show;
mod skills;
mod subagents;
mod teams;
