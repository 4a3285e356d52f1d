//! The part `wall` of `belljar prove`: attacks on the OS sandbox (the wall), from within a process that an
//! attacker has taken over.
//!
//! Each attack is made by a child process of its own: this program again, which sets up the same wall as
//! `belljar serve` does, around a home, tenants and files that were made for it, and then makes one or a few
//! system calls, past every library. Each attack has three proofs: the call fails with an error of the wall
//! itself, or the wall ends the child; the files outside, the settings, the cache, shared memory and a
//! daemon's sockets are unchanged; and another process is unchanged and answers, and what the child was
//! granted still works.
//!
//! A fourth proof shows that the wall was the reason, and not a wrong argument: the same call with the same
//! arguments succeeds in a child without a wall, on a separate stage. Where that needs a right that not
//! everybody has, or would harm the machine, the attack's row states it.

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
