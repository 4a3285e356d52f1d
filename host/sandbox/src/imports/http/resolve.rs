//! Resolves names to addresses.

use std::io;
use std::net::IpAddr;

/// Resolves names. Every address in an answer is checked before a connection, and the connection goes to a
/// checked address.
#[async_trait::async_trait]
pub trait NameResolver: Send + Sync + 'static {
    /// The addresses of a name (lower case, ASCII form, no final dot).
    async fn resolve_name(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait::async_trait]
impl NameResolver for SystemResolver {
    async fn resolve_name(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|socket| socket.ip()).collect())
    }
}
