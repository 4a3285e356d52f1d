//! Tests with servers and issuers of tokens that are reached through the gate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod gate;
mod keys;
mod waiting;

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use async_trait::async_trait;
use belljar_sandbox::http::NameResolver;

/// A resolver in which every name leads to this machine.
struct Here;

#[async_trait]
impl NameResolver for Here {
    async fn resolve_name(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
    }
}
