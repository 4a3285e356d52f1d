//! The tool `shell` has to do as bash and dash do: the scripts under `tools/shell/tests/scripts`,
//! each run by both of them and then by the shell under test.
//!
//! No expected output is stored. A case on which bash and dash agree is judged; one on which
//! they differ is compared with bash alone and only counted. The native test of the tool's
//! crate and the test of the component share this.
//!
//! Helpers panic where a test would: a broken fixture is a failed test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod case;
mod outcome;
mod reference;
mod report;
mod tree;

pub use case::{Case, Content, load};
pub use outcome::{Outcome, Said};
pub use reference::{Expected, Reference};
pub use report::{Build, Report};
pub use tree::Tree;

/// Where the workspace is for the shell under test.
pub const WORKSPACE: &str = "/workspace";
