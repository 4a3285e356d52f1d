//! What the parsers say, as a person reads it: each test is text in, diagnostics out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// What the module's own `shown` says of what is given.
macro_rules! check {
    ($($given:expr),+, @$expected:literal) => {
        insta::assert_snapshot!(shown($($given),+), @$expected)
    };
}

/// What an agent with this field is shown as.
macro_rules! check_field {
    ($field:expr, @$expected:literal) => {
        insta::assert_snapshot!(crate::show::of_field($field), @$expected)
    };
}

mod agents;
mod canonical;
mod catalog;
mod foreign;
mod grants;
mod hostile;
mod limits;
mod manifest;
mod named;
mod never_panics;
mod quotes;
mod recovery;
mod revoke;
mod server;
mod settings;
mod shapes;
mod show;
mod skills;
mod teams;
