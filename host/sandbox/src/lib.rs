//! Runs tools of strangers: WebAssembly components in stores of their own, with only the
//! files and hosts that were granted.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod answer;
mod artifact;
mod bindings;
mod cache;
mod clocks;
mod compile;
mod config;
mod describe;
mod engine;
mod error;
mod files;
pub mod http;
mod inspect;
mod interfaces;
mod jar;
mod limits;
mod link;
mod load;
mod meter;
mod mounts;
mod operations;
mod output;
mod queue;
mod receipt;
mod record;
mod sandbox;
mod state;
mod stdio;
mod store;
mod tool_info;
mod wasm;

pub use compile::compile_child;
pub use config::{Compiler, DescribeLimits, PoolConfig, SandboxConfig};
pub use error::{DescribeError, JarError, LoadError, SandboxError};
pub use http::{HttpOptions, SecretStore};
pub use inspect::{Import, Inspection, Need, inspect};
pub use jar::{Jar, JarSpec, JarTool, Progress, ProgressSink};
pub use output::{CallError, CallResult, Output, Part, ToolErrorKind};
pub use receipt::{Bytes, Denial, Ending, LogLine, RECEIPT_VERSION, Receipt, Times};
pub use sandbox::{Component, Sandbox};
pub use tool_info::{Hints, ToolInfo};
pub use wasm::{Digest, Wasm};
