//! The part `wall`: attacks on the OS sandbox, from inside a process that was taken over.
//!
//! Each is made by a child of its own: this program again, which puts up the same wall as `belljar
//! serve` does, around a home, tenants and files that were made for it, and then makes one system
//! call or a few, past every library. Three proofs for each: the call is refused by an error that is
//! the wall's own, or ends the child; of the files outside, the settings, the cache, shared memory and a daemon's sockets
//! nothing has changed; a process beside is as it was and answers, and what the child was granted
//! still works.
//!
//! A fourth one shows that it was the wall, and not an argument that is wrong: the same call with
//! the same arguments works in a child without a wall, on a stage of its own. Where that takes a
//! right that not everybody has, or would harm the machine, the row says so.

#[cfg(target_os = "linux")]
mod acts;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod part;
#[cfg(target_os = "linux")]
mod raw;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod told;
#[cfg(target_os = "linux")]
mod victim;

#[cfg(target_os = "linux")]
pub use child::{be_victim, run_attack};
#[cfg(target_os = "linux")]
pub use part::WallPart;
