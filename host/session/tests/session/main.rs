//! Tests of turns that outlive their process, with a store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod code;
mod compaction;
mod conversations;
mod direct;
mod finding;
mod fitting;
mod left_in_background;
mod looks;
mod nested;
mod resume;
mod runs_in_store;
mod service;
mod versions;

use belljar_kit::world::World;
use belljar_store::Store;

/// Opens a store in the world's directory.
async fn store(world: &World) -> Store {
    Store::open(&world.home.path().join("belljar.db")).await.unwrap()
}
