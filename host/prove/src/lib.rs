//! Attacks on belljar, and what they run in.
//!
//! An attack is a guest, a peer, a file or a model that tries one thing. Each has to end in
//! three findings: it was refused or bounded, it had no effect, and its neighbour (another
//! subagent in the same process) went on answering. `cargo test --test attacks` runs them all;
//! the `embedded` ones need nothing but this library, so that a command can run them on the
//! machine of whoever wants to see it.
//!
//! # How to write an attack
//!
//! 1. Pick the file of its kind under `src/attacks/` and add a row to its table:
//!
//!    ```ignore
//!    Attack {
//!        id: "cpu-endless-loop",                      // kind, then what; unique
//!        kind: Kind::Cpu,
//!        tries: "never returns from `invoke`",         // completes "the attacker ..."
//!        stopped_by: "fuel of the call (INV-17)",      // mechanism, and the invariant
//!        told: "the fuel budget of the call is used up", // must occur in what it was told
//!        embedded: true,                               // done in about a second
//!        run: |arena| Box::pin(endless_loop(arena)),
//!    },
//!    ```
//!
//! 2. Choose the attacker:
//!    - a few lines of WebAssembly text: put `guests/NAME.wat` into place (see `build.rs` for
//!      what it may leave out) and name it `guests::NAME`. A guest without an attack
//!      is dead code and fails the build.
//!    - `guests::PROBE`: a Rust tool that makes raw WASI calls as its arguments say; its steps
//!      are the enums in `guests/probe/src/`. After a change there run `cargo xtask rebuild attack-guests`.
//!    - an agent or a model: [`Arena::build_scene`] runs agents of yours with a scripted model.
//!    - a peer on the network: [`Arena::start_peer`] answers a granted address as you script it;
//!      [`Arena::forbidden_address`] must never be reached; [`Arena::set_name_answers`] says what a name resolves to.
//!
//! 3. Write the function: it makes a jar ([`Arena::jar_builder`]), calls it, and turns its outcome
//!    into a [`Stopped`]: `Ok(Verdict)` holds what the attacker was told, `Err(Escape)` says what
//!    got through. The methods of [`AttackCall`](jar::AttackCall) and [`StepResults`](jar::StepResults) do both in one
//!    word: `call.exhausted(Meter::Fuel)`, `steps.refused("read-only")`. `?` on an ordinary error
//!    makes an escape too: an attack that cannot be made proves nothing.
//!
//! 4. What it did to the rest is checked for you, after each attack: nothing outside the mounts
//!    has changed, nor in a read-only one; the forbidden address has seen no connection; the
//!    secret ([`Arena::secret_value`]) stands in no answer, receipt, event or log line; no answer names
//!    a host path; all jars close and give their memory back; the process has not grown by more
//!    than [`GROWTH_BOUND`]; the neighbour's every answer was right, during and after.
//!    Set up files before the first jar is made: that is when the picture is taken.
//!
//! Attacks on the real program are a [`ProvePart`] of their own, with a stage in place of the arena:
//! [`LibrariesPart`].
//!
//! The suite runs one attack at a time, so that times and memory are each attack's own.

#![deny(dead_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod acp;
pub mod arena;
mod attack;
mod attacks;
mod canary;
mod guests;
pub mod jar;
mod judging;
mod libraries;
mod log;
mod memory;
mod names;
mod neighbour;
mod part;
pub mod peer;
pub mod scene;
mod secret;
mod server;
mod soak;
mod suite;
mod tree;
pub mod wall;
mod witness;

pub use acp::AcpPart;
pub use arena::Arena;
pub use attack::{Attack, AttackKind, AttackReport, Escape, Stopped, Verdict};
pub use attacks::list_attacks;
pub use guests::Guest;
pub use libraries::LibrariesPart;
pub use memory::GROWTH_BOUND;
pub use part::ProvePart;
pub use server::{ServerPart, ServerSetup};
pub use soak::SoakReport;
pub use suite::{Suite, SuiteOptions};

/// Locks a mutex, also after an attack has panicked while it held the lock.
fn lock_recovered<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
