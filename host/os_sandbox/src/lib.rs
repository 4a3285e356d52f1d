//! The OS sandbox: limits that the operating system enforces on this process even if the first wall fails.
//!
//! The first wall is the sandbox: wasmtime, and a check of every operation. Even if a fault in the first wall
//! lets a guest act as the host process, the process can do little: on Linux, landlock confines its access to
//! files, and seccomp restricts its system calls to those of a host of tools. Neither can be undone, and both
//! apply to every thread made later.
//!
//! ```text
//! Broker::start_broker ──> a process outside the wall, which starts only what it was told of at first
//! Wall::raise_wall     ──> this process, from here on: its files, its system calls, no new program
//! ```
//!
//! Work that has to happen outside (compiling, the cache, the operator's hook commands and MCP servers,
//! reading the operator's settings again) is done by the [`Broker`], a process made before the wall is
//! raised. The broker accepts only six kinds of requests, without names of programs or paths. An MCP server
//! is a [`Program`] behind a separate wall.
//!
//! # What the wall cannot distinguish
//!
//! - Agents from each other: the wall is the process's, so the union of all agents' grants is let through.
//! - Addresses: seccomp does not see them. The network gate decides about hosts; the wall only restricts the
//!   socket families to IP.
//! - Names inside a writable directory, for example `.belljar` in a workspace.
//!
//! # Needs
//!
//! Linux: 5.13 for landlock, 6.12 for every requested right. On an older kernel, or elsewhere,
//! [`Wall::raise_wall`] does the possible part and lists the missing ones.

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
