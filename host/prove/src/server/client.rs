//! A small HTTP/1 client without manners: what an attack says is what is sent.
//!
//! Everything that the server answers passes a [`Witness`], which looks for the host's own places.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::witness::Witness;

/// No answer takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Most bytes of an answer that are kept.
const MAX_ANSWER: usize = 64 << 20;

/// A caller: where it calls, from which address, and with which key.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) at: SocketAddr,
    pub(crate) from: Option<IpAddr>,
    pub(crate) key: Option<String>,
    pub(crate) witness: Arc<Witness>,
}

/// A request being written.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    method: String,
    target: String,
    lines: Vec<String>,
    host: Option<String>,
    body: Vec<u8>,
}

/// The answer that came back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A connection that stays open.
pub(crate) struct Wire {
    stream: TcpStream,
    witness: Arc<Witness>,
    taken: Vec<u8>,
}

pub(crate) fn ask(method: &str, target: &str) -> Ask {
    let (method, target) = (method.to_owned(), target.to_owned());
    Ask { method, target, lines: Vec::new(), host: None, body: Vec::new() }
}

pub(crate) fn get(target: &str) -> Ask {
    ask("GET", target)
}

impl Ask {
    /// One more line of the head.
    pub(crate) fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// The name that the server is called by, in place of its own.
    pub(crate) fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.text(&body.to_string())
    }

    /// A body that says it is JSON.
    pub(crate) fn text(mut self, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        let length = body.len();
        self.line("content-type: application/json").line(format!("content-length: {length}"))
    }

    /// Without the last byte of its body.
    pub(crate) fn unfinished(mut self) -> Self {
        self.body.pop();
        self
    }

    /// As it is sent.
    pub(crate) fn bytes(&self, client: &Client) -> Vec<u8> {
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

impl Client {
    pub(crate) async fn connect(&self) -> Result<Wire> {
        let socket = TcpSocket::new_v4()?;
        if let Some(from) = self.from {
            socket.bind(SocketAddr::new(from, 0)).context("no address to call from")?;
        }
        let connecting = tokio::time::timeout(PATIENCE, socket.connect(self.at));
        let stream = connecting.await.context("no connection in time")??;
        Ok(Wire { stream, witness: Arc::clone(&self.witness), taken: Vec::new() })
    }

    /// Asks on a connection of its own, and waits for the whole answer.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Answer> {
        self.raw(&ask.clone().line("connection: close").bytes(self)).await
    }

    /// Sends these bytes, and waits for whatever is answered until the server closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Result<Answer> {
        let mut wire = self.connect().await?;
        wire.write(bytes).await?;
        wire.answer().await
    }

    /// Asks, and leaves the connection open.
    pub(crate) async fn open(&self, ask: &Ask) -> Result<Wire> {
        let mut wire = self.connect().await?;
        wire.write(&ask.bytes(self)).await?;
        Ok(wire)
    }

    /// Opens a WebSocket; the head of the answer is taken.
    pub(crate) async fn socket(&self) -> Result<Wire> {
        let mut wire = self.open(&upgrade()).await?;
        wire.until("\r\n\r\n").await?;
        Ok(wire)
    }

    /// The server's first answer to a message on a WebSocket of its own.
    pub(crate) async fn on_socket(&self, message: &Value) -> Result<String> {
        let mut wire = self.socket().await?;
        wire.say(&message.to_string()).await?;
        wire.hear().await
    }
}

/// The request that opens a WebSocket.
pub(crate) fn upgrade() -> Ask {
    get("/v1/ws")
        .line("connection: upgrade")
        .line("upgrade: websocket")
        .line("sec-websocket-version: 13")
        .line("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==")
}

impl Wire {
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let writing = tokio::time::timeout(PATIENCE, self.stream.write_all(bytes));
        match writing.await.context("nothing is taken")? {
            // It refused before it had read all; its answer is what counts.
            Err(error) if is_end(&error) => Ok(()),
            written => written.context("the connection broke off"),
        }
    }

    /// Takes some bytes; `false` = the server has closed.
    async fn take(&mut self) -> Result<bool> {
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
        self.witness.look(&self.taken);
        Ok(taken > 0)
    }

    /// Takes until this is there, and gives all that was taken so far.
    pub(crate) async fn until(&mut self, word: &str) -> Result<String> {
        let waiting = async {
            loop {
                let text = String::from_utf8_lossy(&self.taken).into_owned();
                if text.contains(word) {
                    return Ok(text);
                }
                if !self.take().await? {
                    bail!("it closed and never said `{word}`: {text}");
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.with_context(|| format!("no `{word}`"))?
    }

    /// Takes all that comes until the server closes.
    pub(crate) async fn rest(&mut self) -> Result<String> {
        while self.take().await? {}
        Ok(String::from_utf8_lossy(&self.taken).into_owned())
    }

    async fn answer(&mut self) -> Result<Answer> {
        let text = self.rest().await?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            bail!("it closed without an answer");
        };
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("no answer: {head}"))?;
        Ok(Answer { status, head: head.to_owned(), body: body.to_owned() })
    }

    /// Says a text on a WebSocket.
    pub(crate) async fn say(&mut self, text: &str) -> Result<()> {
        let mut frame = vec![0x81];
        match text.len() {
            short @ 0..126 => frame.push(0x80 | u8::try_from(short)?),
            long => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(long)?.to_be_bytes());
            }
        }
        // A mask of zeros changes nothing.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.taken.clear();
        self.write(&frame).await
    }

    /// The next that a WebSocket says, frames and all; empty = it has closed.
    pub(crate) async fn hear(&mut self) -> Result<String> {
        self.take().await?;
        Ok(String::from_utf8_lossy(&self.taken).into_owned())
    }
}

fn is_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe)
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn value(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("no JSON: {}", self.body))
    }

    /// The value of a field of the body.
    pub(crate) fn field(&self, name: &str) -> Result<String> {
        let value = self.value()?;
        let text = value.get(name).and_then(Value::as_str).map(str::to_owned);
        text.with_context(|| format!("no `{name}` in {}", self.body))
    }
}
