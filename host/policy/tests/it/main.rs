//! Properties of rights and budgets over arbitrary trees, of paths and of URLs, and the decision
//! table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attenuation;
mod budget_tree;
mod decision_table;
mod paths;
mod urls;
mod worlds;
