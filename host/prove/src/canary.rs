//! An address on this machine that no attack may reach.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A listener on a loopback address that counts connections until it is dropped.
pub(crate) struct ForbiddenListener {
    at: SocketAddr,
    peers: Arc<Mutex<Vec<SocketAddr>>>,
    task: JoinHandle<()>,
}

impl ForbiddenListener {
    /// Starts to listen on a free port, and notes each client.
    pub(crate) async fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no loopback address")?;
        let (at, peers) = (listener.local_addr()?, Arc::<Mutex<Vec<SocketAddr>>>::default());
        let kept = Arc::clone(&peers);
        let task = tokio::spawn(async move {
            while let Ok((_, peer)) = listener.accept().await {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
            }
        });
        Ok(Self { at, peers, task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.at
    }

    /// The number of connections so far, including those that wait to be accepted: they are accepted in
    /// order, so all earlier ones are known once a connection of our own is.
    pub(crate) async fn count_connections(&self) -> Result<usize> {
        let own = TcpStream::connect(self.at).await?.local_addr()?;
        loop {
            {
                let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(at) = peers.iter().position(|peer| *peer == own) {
                    peers.remove(at);
                    return Ok(peers.len());
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for ForbiddenListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_is_counted_and_ones_own_is_not() {
        let forbidden = ForbiddenListener::listen().await.unwrap();
        assert_eq!(forbidden.count_connections().await.unwrap(), 0);
        let _stranger = TcpStream::connect(forbidden.address()).await.unwrap();
        assert_eq!(forbidden.count_connections().await.unwrap(), 1);
    }
}
