//! Tests of the crate from outside: HTTP models against servers on loopback, scripts and recordings.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anthropic;
mod faults;
mod openai;
mod received;
mod recording;
mod scripted;
mod secrets;
mod support;
mod thoughts;
mod wild;
