//! A minimal HTTP/1 client for attacks: it sends exactly the given bytes.
//!
//! Every answer of the server passes a [`PathWitness`], which searches for paths of the host.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::witness::PathWitness;

/// The time limit of every answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 << 20;

/// A client: the server's address, the client's own address, and its key.
#[derive(Clone)]
pub(crate) struct ServerClient {
    pub(crate) at: SocketAddr,
    pub(crate) from: Option<IpAddr>,
    pub(crate) key: Option<String>,
    pub(crate) witness: Arc<PathWitness>,
}

/// A request that is being built.
#[derive(Debug, Clone)]
pub(crate) struct CallerRequest {
    method: String,
    target: String,
    lines: Vec<String>,
    host: Option<String>,
    body: Vec<u8>,
}

/// An answer of the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerAnswer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A connection to the server that stays open between requests.
pub(crate) struct ClientConnection {
    stream: TcpStream,
    witness: Arc<PathWitness>,
    taken: Vec<u8>,
}

pub(crate) fn new_request(method: &str, target: &str) -> CallerRequest {
    let (method, target) = (method.to_owned(), target.to_owned());
    CallerRequest { method, target, lines: Vec::new(), host: None, body: Vec::new() }
}

pub(crate) fn get_request(target: &str) -> CallerRequest {
    new_request("GET", target)
}

impl CallerRequest {
    /// Adds a line to the request's head.
    pub(crate) fn with_line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Sets the header `Host`, in place of the server's own name.
    pub(crate) fn with_host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    pub(crate) fn with_json(self, body: &Value) -> Self {
        self.with_json_text(&body.to_string())
    }

    /// Sets a body with the content type of JSON.
    pub(crate) fn with_json_text(mut self, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        let length = body.len();
        self.with_line("content-type: application/json")
            .with_line(format!("content-length: {length}"))
    }

    /// Leaves out the last byte of the body when the request is sent.
    pub(crate) fn without_last_byte(mut self) -> Self {
        self.body.pop();
        self
    }

    /// The bytes of the request.
    pub(crate) fn to_bytes(&self, client: &ServerClient) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let host = self.host.clone().unwrap_or_else(|| client.at.to_string());
        head.push_str(&format!("host: {host}\r\n"));
        if let Some(key) = &client.key {
            head.push_str(&format!("authorization: Bearer {key}\r\n"));
        }
        for line in &self.lines {
            head.push_str(line);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }
}

impl ServerClient {
    /// Opens a connection, from the client's own address if it has one.
    pub(crate) async fn connect(&self) -> Result<ClientConnection> {
        let socket = TcpSocket::new_v4()?;
        if let Some(from) = self.from {
            socket.bind(SocketAddr::new(from, 0)).context("no address to call from")?;
        }
        let connecting = tokio::time::timeout(PATIENCE, socket.connect(self.at));
        let stream = connecting.await.context("no connection in time")??;
        Ok(ClientConnection { stream, witness: Arc::clone(&self.witness), taken: Vec::new() })
    }

    /// Sends a request on a new connection, and waits for the whole answer.
    pub(crate) async fn send(&self, ask: &CallerRequest) -> Result<ServerAnswer> {
        self.send_raw(&ask.clone().with_line("connection: close").to_bytes(self)).await
    }

    /// Sends these bytes on a new connection, and reads until the server closes it.
    pub(crate) async fn send_raw(&self, bytes: &[u8]) -> Result<ServerAnswer> {
        let mut wire = self.connect().await?;
        wire.write(bytes).await?;
        wire.read_answer().await
    }

    /// Sends a request on a new connection, and leaves the connection open.
    pub(crate) async fn send_open(&self, ask: &CallerRequest) -> Result<ClientConnection> {
        let mut wire = self.connect().await?;
        wire.write(&ask.to_bytes(self)).await?;
        Ok(wire)
    }

    /// Opens a WebSocket, and reads the head of the answer.
    pub(crate) async fn open_socket(&self) -> Result<ClientConnection> {
        let mut wire = self.send_open(&upgrade_request()).await?;
        wire.read_until("\r\n\r\n").await?;
        Ok(wire)
    }

    /// Opens a WebSocket, sends a message, and returns the server's first answer.
    pub(crate) async fn on_socket(&self, message: &Value) -> Result<String> {
        let mut wire = self.open_socket().await?;
        wire.send_text(&message.to_string()).await?;
        wire.next_text().await
    }
}

/// The request that opens a WebSocket.
pub(crate) fn upgrade_request() -> CallerRequest {
    get_request("/v1/ws")
        .with_line("connection: upgrade")
        .with_line("upgrade: websocket")
        .with_line("sec-websocket-version: 13")
        .with_line("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==")
}

impl ClientConnection {
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let writing = tokio::time::timeout(PATIENCE, self.stream.write_all(bytes));
        match writing.await.context("nothing is taken")? {
            // The server refused before it had read everything; its answer is what matters.
            Err(error) if is_end(&error) => Ok(()),
            written => written.context("the connection broke off"),
        }
    }

    /// Reads some bytes; returns false if the server has closed the connection.
    async fn read_some(&mut self) -> Result<bool> {
        let mut part = vec![0; 64 << 10];
        let reading = tokio::time::timeout(PATIENCE, self.stream.read(&mut part));
        let taken = match reading.await.context("no answer in time")? {
            Ok(taken) => taken,
            Err(error) if is_end(&error) => 0,
            Err(error) => return Err(error).context("the connection broke off"),
        };
        self.taken.extend_from_slice(part.get(..taken).unwrap_or_default());
        if self.taken.len() > MAX_ANSWER {
            bail!("the answer has more than {MAX_ANSWER} bytes");
        }
        self.witness.inspect_bytes(&self.taken);
        Ok(taken > 0)
    }

    /// Reads until the received bytes contain `word`; returns all of them.
    pub(crate) async fn read_until(&mut self, word: &str) -> Result<String> {
        let waiting = async {
            loop {
                let text = String::from_utf8_lossy(&self.taken).into_owned();
                if text.contains(word) {
                    return Ok(text);
                }
                if !self.read_some().await? {
                    bail!("it closed and never said `{word}`: {text}");
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.with_context(|| format!("no `{word}`"))?
    }

    /// Reads until the server closes the connection.
    pub(crate) async fn read_rest(&mut self) -> Result<String> {
        while self.read_some().await? {}
        Ok(String::from_utf8_lossy(&self.taken).into_owned())
    }

    /// Reads an answer to the end of the connection, and splits its head and body.
    async fn read_answer(&mut self) -> Result<ServerAnswer> {
        let text = self.read_rest().await?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            bail!("it closed without an answer");
        };
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("no answer: {head}"))?;
        Ok(ServerAnswer { status, head: head.to_owned(), body: body.to_owned() })
    }

    /// Sends a text on a WebSocket.
    pub(crate) async fn send_text(&mut self, text: &str) -> Result<()> {
        let mut frame = vec![0x81];
        match text.len() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short)?),
            long => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(long)?.to_be_bytes());
            }
        }
        // A mask of zeros leaves the text unchanged.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.taken.clear();
        self.write(&frame).await
    }

    /// The next bytes on a WebSocket, with their frames; empty if it was closed.
    pub(crate) async fn next_text(&mut self) -> Result<String> {
        self.read_some().await?;
        Ok(String::from_utf8_lossy(&self.taken).into_owned())
    }
}

fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe)
}

impl ServerAnswer {
    /// The answer's body as JSON.
    pub(crate) fn json_body(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("no JSON: {}", self.body))
    }

    /// The text of one field of the answer's JSON body.
    pub(crate) fn json_field(&self, name: &str) -> Result<String> {
        let value = self.json_body()?;
        let text = value.get(name).and_then(Value::as_str).map(str::to_owned);
        text.with_context(|| format!("no `{name}` in {}", self.body))
    }
}
