//! A scripted server: plain TCP, so no library corrects the attacker's replies.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::interval;

/// The most bytes of a request that the server reads before it answers.
const MAX_REQUEST: usize = 1 << 20;

/// A request that the server received.
#[derive(Debug, Clone)]
pub struct PeerRequest {
    /// The request line and the headers, with their line ends.
    pub head: String,
    /// The body, of the length that `content-length` stated.
    pub body: Vec<u8>,
}

/// One act of the server on a connection.
#[derive(Debug, Clone)]
pub enum PeerAct {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again until the client closes the connection.
    Flood(Vec<u8>),
    /// Sends these bytes one at a time, with this pause between them.
    Drip(Vec<u8>, Duration),
    /// Does nothing, and keeps the connection open until the client closes it.
    Hold,
}

/// A function from a request to the server's acts. After the last act the server closes the connection.
pub type Script = Arc<dyn Fn(&PeerRequest) -> Vec<PeerAct> + Send + Sync>;

/// A scripted server on a loopback address, until it is dropped.
#[derive(Debug)]
pub struct LoopbackPeer {
    at: SocketAddr,
    asked: Arc<Mutex<Vec<PeerRequest>>>,
    task: JoinHandle<()>,
}

impl LoopbackPeer {
    /// Starts to listen on a free port, and answers each connection by the script.
    pub(crate) async fn start(script: Script) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no loopback address")?;
        let (at, asked) = (listener.local_addr()?, Arc::<Mutex<Vec<PeerRequest>>>::default());
        let kept = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            // All connections are closed when this task is dropped.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answer_connection(
                    stream,
                    Arc::clone(&script),
                    Arc::clone(&kept),
                ));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { at, asked, task })
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.at
    }

    /// The rule that grants this server, which is also its URL without a path.
    pub fn grant_rule(&self) -> String {
        format!("http://{}", self.at)
    }

    /// The requests received so far.
    pub fn received_requests(&self) -> Vec<PeerRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for LoopbackPeer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A script that answers every request with a page of plain text.
pub fn page_script(body: impl Into<Vec<u8>>) -> Script {
    reply_script("200 OK", &[("content-type", "text/plain")], body)
}

/// A script that answers every request with the given status, headers and body.
pub fn reply_script(status: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Script {
    let body = body.into();
    let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        bytes += &format!("{name}: {value}\r\n");
    }
    let mut bytes = bytes.into_bytes();
    bytes.extend(b"connection: close\r\n\r\n");
    bytes.extend(body);
    Arc::new(move |_| vec![PeerAct::Send(bytes.clone())])
}

/// Reads one request, records it, performs the script's acts, and closes the connection.
async fn answer_connection(
    mut stream: TcpStream,
    script: Script,
    kept: Arc<Mutex<Vec<PeerRequest>>>,
) {
    let Some(asked) = read_request(&mut stream).await else { return };
    let acts = script(&asked);
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    for act in acts {
        if perform_act(&mut stream, act).await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

/// Performs one act; an error means: the client has closed the connection.
async fn perform_act(stream: &mut TcpStream, act: PeerAct) -> std::io::Result<()> {
    match act {
        PeerAct::Send(bytes) => stream.write_all(&bytes).await,
        PeerAct::Flood(bytes) => loop {
            stream.write_all(&bytes).await?;
        },
        PeerAct::Drip(bytes, apart) => {
            let mut pace = interval(apart);
            for byte in bytes {
                pace.tick().await;
                stream.write_all(&[byte]).await?;
                stream.flush().await?;
            }
            Ok(())
        }
        PeerAct::Hold => {
            let mut rest = [0; 1024];
            while stream.read(&mut rest).await? > 0 {}
            Ok(())
        }
    }
}

/// Reads a request; `None` if the client sends none.
async fn read_request(stream: &mut TcpStream) -> Option<PeerRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if bytes.len() > MAX_REQUEST || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut body = bytes.split_off(end);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let length: usize = length.unwrap_or(0).min(MAX_REQUEST);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            break;
        }
    }
    Some(PeerRequest { head, body })
}
