//! The OS sandbox: what the operating system itself refuses this process, whatever becomes of the
//! first wall.
//!
//! The first wall is the sandbox: wasmtime, and a check of every operation. Should a fault in it
//! ever let a guest act as the host process, that process can still do little: on Linux,
//! landlock confines its access to files, and seccomp leaves it the system calls that a host of
//! tools makes. Neither can be undone, and every thread made later is behind it too.
//!
//! ```text
//! Broker::start ──> a process outside the wall, which starts only what it was told of at first
//! Wall::raise   ──> this process, from here on: its files, its system calls, no new program
//! ```
//!
//! Work that has to happen outside (compiling, the cache, the operator's hook commands and MCP servers,
//! reading the operator's settings again) is done by the [`Broker`], a process that was made before the
//! wall went up. It takes six requests and no more: none names a program or a path. An MCP server is a
//! [`Program`], which has a wall of its own.
//!
//! # What the wall cannot tell
//!
//! - One agent from another: it holds for the process, so it lets through the union of what all
//!   of them are granted.
//! - Addresses: seccomp does not see them. Which host is reached is the network gate's to say;
//!   here only the families of IP are left.
//! - Names inside a directory that may be written, such as `.belljar` in a workspace.
//!
//! # Needs
//!
//! Linux: 5.13 for landlock, 6.12 for all that is asked of it. On an older kernel, or elsewhere,
//! [`Wall::raise`] does what is possible and says what is missing.

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
    Broker, BrokerSetup, BrokerVault, Keepers, Made, Making, keep, keep_program, serve,
};
pub use process::conceal;
pub use program::{Environment, Known, Program, become_program};
pub use running::Running;
pub use wall::{Raised, Wall, WallReach};
