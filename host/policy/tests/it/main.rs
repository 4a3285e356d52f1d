//! Properties of rights and budgets over arbitrary trees, and of paths and URLs; the decision table; and the
//! table of limits.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attenuation;
mod budget_tree;
mod decision_table;
mod limits_table;
mod paths;
mod urls;
mod worlds;
