//! Tests of the store as its callers use it, on real files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod audit;
mod belongings;
mod cascade;
mod commit;
mod events;
mod index;
mod keys;
mod listed;
mod logins;
mod migration;
mod packed;
mod pages;
mod runs;
mod sessions;
mod storage;
mod support;
mod survival;
mod tenants;
mod turns;
