//! A server that keeps every byte that it receives, whether HTTP or not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::attack::Escape;

/// A server that answers the first bytes of each connection, and then reads until the connection is closed.
pub(in super::super) struct WireRecorder {
    pub(in super::super) at: SocketAddr,
    got: Arc<Mutex<Vec<u8>>>,
    /// The clients whose connections were closed, in the order in which they connected.
    closed: watch::Receiver<Vec<SocketAddr>>,
    task: JoinHandle<()>,
}

impl WireRecorder {
    /// Starts a server that sends `answer` on each connection.
    pub(in super::super) async fn start(answer: &'static [u8]) -> Result<Self, Escape> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (at, got) = (listener.local_addr()?, Arc::<Mutex<Vec<u8>>>::default());
        let (count, closed) = watch::channel(Vec::new());
        let kept = Arc::clone(&got);
        let task = tokio::spawn(async move {
            while let Ok((stream, from)) = listener.accept().await {
                let bytes = read_connection(stream, answer).await;
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
                count.send_modify(|closed| closed.push(from));
            }
        });
        Ok(Self { at, got, closed, task })
    }

    /// All bytes received over connections that are closed now. Connections are handled in order, so when one
    /// of our own is done, all earlier ones are.
    pub(in super::super) async fn received_bytes(&self) -> Result<Vec<u8>, Escape> {
        let own = TcpStream::connect(self.at).await?.local_addr()?;
        let mut closed = self.closed.clone();
        let waited = closed.wait_for(|closed| closed.contains(&own)).await;
        waited.map_err(|_| Escape::new("the peer is gone"))?;
        Ok(self.got.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Drop for WireRecorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a connection to its end, after answering its first bytes.
async fn read_connection(mut stream: TcpStream, answer: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // If the connection breaks off, the bytes so far are what was sent.
    if stream.read_buf(&mut bytes).await.is_ok() && stream.write_all(answer).await.is_ok() {
        let _ = stream.read_to_end(&mut bytes).await;
    }
    bytes
}
