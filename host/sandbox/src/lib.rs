//! Runs WebAssembly components that strangers wrote as tools of agents. Each tool runs in its own store,
//! reaches only the granted directories and network hosts, is metered, and leaves a receipt of every call.
//!
//! A [`Sandbox`] is the shared state of a process: engines, compiled components and their descriptions. A
//! [`Jar`] is the state of a subagent: a store for each tool, opened on first use, and all dropped together.
//! Rights and budgets come from `belljar-policy`; no code here can widen them.
//!
//! A program without agents makes a jar with [`Jar::builder`]; `examples/call_tool.rs` does so in thirty
//! lines.
//!
//! # What is guaranteed
//!
//! | claim | |
//! | --- | --- |
//! | a guest reads or writes outside its mounts | no |
//! | a guest writes through a read-only mount, or to a protected name | no |
//! | a guest changes the directory below an overlay, or opens a file of the layer by name | no |
//! | a guest opens a FIFO, a device or a socket | no |
//! | a guest connects to a host outside the allowlist, or to an address that was not checked | no |
//! | a guest learns the value of a secret | not from the host; a reply that shows it in a known encoding is cut |
//! | a guest sees the environment, arguments, terminal or other files of the host | no |
//! | two jars share memory, a store or an open file | no; an open *directory* is shared, read and checked per jar |
//! | a guest runs on after its fuel, its time or its budget is used up | for one yield interval at most: 100,000 units, about 10 µs; a copy within its own memory is not interrupted |
//! | a guest holds more linear memory and tables than the jar's budget | no |
//! | a guest makes the host hold more than the named constants say | no: streams, handles, one call's bytes, output, logs and stdio are bounded |
//! | a trap, a panic in a host function or a wrong answer ends more than the one call | no |
//! | the same call of a deterministic guest costs the same fuel | yes |
//! | anything the jar began still has an effect after [`Jar::close`] has named nothing | no |
//! | time is hidden from guests | no; clocks go in steps of a millisecond |
//! | side channels of the processor are closed | no |
//! | a fault in the compiler (Cranelift) or the runtime (wasmtime) is contained | no |
//!
//! # Needs
//!
//! Linux or another Unix, and a tokio runtime with I/O and time. File operations run on the
//! calling thread, because another thread would cost more than the operation.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod component;
mod config;
mod error;
mod imports;
mod jar;
mod json;
mod outgoing;
mod receipt;
mod sandbox;

/// The types of the jar builder, so that a program needs no other crate.
pub use belljar_overlay::{Digest, Overlay, OverlayQuota};
pub use belljar_policy::{Limits, MountAccess, SecretName};
pub use component::adapt::adapt_trusted_module as adapt_here;
pub use component::artifact::StockCode;
pub use component::command_form::CommandForm;
pub use component::compile::{compile_child, compiler_child};
pub use component::described::{DescribeLimits, check_words};
pub use component::functions::LeftOutFunction;
pub use component::inspect::{ComponentInspection, Import, ImportNeed, inspect_component};
pub use component::kind::ComponentKind;
pub use component::tool_info::{ToolHints, ToolInfo};
pub use component::vault::{ComponentVault, describe_child, prepare_cache};
pub use component::wasm::Wasm;
pub use config::{Compiler, PoolConfig, SandboxConfig, SlowCompile};
pub use error::{DescribeError, JarError, LoadError, SandboxError};
pub use imports::http;
pub use imports::http::{HttpOptions, SecretStore};
pub use jar::builder::{JarBuildError, JarBuilder};
pub use jar::course::CallCourse;
pub use jar::hook::{HookError, HookVerdict};
pub use jar::output::{CallError, CallResult, OutputPart, ToolErrorKind, ToolOutput};
pub use jar::peers::{NestedScope, PeerCall, PeerError, PeerPort, PeerResult, PeerTool};
pub use jar::progress::{ProgressReport, ProgressSink};
pub use jar::{CallOptions, Jar, JarSpec, JarTool};
pub use outgoing::{HttpReply, OutgoingError, OutgoingGate, OutgoingSpec};
pub use receipt::{CallBytes, CallEnding, CallTimes, Denial, LogLine, RECEIPT_VERSION, Receipt};
pub use sandbox::{Component, Sandbox};
/// The token that ends calls and runs: the argument of [`JarBuilder::cancelled_by`].
pub use tokio_util::sync::CancellationToken;
