//! Properties of rights and budgets over arbitrary trees, and the decision table.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attenuation;
mod budget_tree;
mod decision_table;
mod worlds;
