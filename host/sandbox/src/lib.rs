//! Runs tools of strangers: WebAssembly components in stores of their own, with only the
//! files and hosts that were granted.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod compile;
mod config;
mod error;
mod files;
pub mod http;
mod inspect;
mod jar;
mod output;
mod receipt;
mod record;
mod sandbox;
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
