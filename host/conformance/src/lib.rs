//! The conformance suite of tool components: cases as data, and a runner that tries a component with them.
//!
//! A conformance component offers the tools that `tests/conformance/README.md` lists. The author of an SDK,
//! in any language, builds such a component and runs `belljar tools test` on it. A tool that the component
//! does not offer is no failure: its cases are *not offered*, with the reason, if the component's
//! description gives a reason.
//!
//! ```no_run
//! # async fn f(sandbox: &belljar_sandbox::Sandbox, wasm: &belljar_sandbox::Wasm) -> Result<(), Box<dyn std::error::Error>> {
//! let stage = belljar_conformance::SuiteStage::new()?;
//! for verdict in belljar_conformance::run_cases(sandbox, wasm, &stage).await? {
//!     println!("{}: {:?}", verdict.case, verdict.result);
//! }
//! # Ok(()) }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod called;
mod cases;
mod described;
mod expect;
mod peer;
mod run;
mod stage;

pub use run::{CaseResult, CaseVerdict, ConformanceError, run_cases};
pub use stage::SuiteStage;
