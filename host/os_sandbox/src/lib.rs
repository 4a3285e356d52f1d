//! The OS sandbox: limits the operating system enforces on the current process, even if a fault in the first
//! sandbox (wasmtime) is exploited.
//!
//! The first sandbox is wasmtime, with a check of every operation. If a fault there lets a guest act as the
//! host process, that process can still do little: on Linux, landlock confines its access to files, and
//! seccomp restricts its system calls to those of a host of tools. Neither can be undone, and both apply to
//! every thread made later.
//!
//! ```text
//! Broker::start_broker ──> a process outside the wall, which starts only the commands named at its start
//! Wall::raise_wall     ──> this process, from here on: its files, its system calls, no new program
//! ```
//!
//! Work that has to happen outside (compiling, the cache, the operator's hook commands and MCP servers,
//! reading the settings again) is done by the [`Broker`], a process started before [`Wall::raise_wall`]. The
//! broker knows six kinds of requests, which contain no names of programs or paths. An MCP server is a
//! [`Program`] in an OS sandbox of its own.
//!
//! # What the wall cannot distinguish
//!
//! - Agents from each other: one wall is around the whole process, so it allows what any agent is granted.
//! - Addresses: seccomp does not see them. The network gate decides about hosts; the wall only restricts
//!   sockets to IP.
//! - Names inside a writable directory, for example `.belljar` in a workspace.
//!
//! # Needs
//!
//! Linux: 5.13 for landlock, 6.12 for every right asked for. On an older kernel, or another system,
//! [`Wall::raise_wall`] does what is possible and lists what is missing.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod broker;
mod certificates;
mod process;
mod program;
mod running;
mod wall;

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;

pub use broker::{
    Broker, BrokerSetup, BrokerVault, DerivedFile, KeeperArguments, Making, keep_hook,
    keep_program, serve_broker,
};
pub use process::conceal_process;
pub use program::{KnownProgram, Program, ProgramEnvironment, become_program};
pub use running::RunningChild;
pub use wall::{Wall, WallReach, WallStatus};
