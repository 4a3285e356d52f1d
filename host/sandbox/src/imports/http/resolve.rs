//! Resolves names of hosts to addresses.

use std::io;
use std::net::IpAddr;

/// Resolves names of hosts. The gate checks every address of the answer before it connects, and connects to
/// a checked one.
#[async_trait::async_trait]
pub trait NameResolver: Send + Sync + 'static {
    /// The addresses of a name, which is in lower case and ASCII, without a final dot.
    async fn resolve_name(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait::async_trait]
impl NameResolver for SystemResolver {
    async fn resolve_name(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|socket| socket.ip()).collect())
    }
}
