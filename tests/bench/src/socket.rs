//! A small WebSocket client: enough of RFC 6455 to talk to a server of our own.

use anyhow::{Context, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// The mask of everything that a client sends; with zeros it stays as it is.
const MASK: [u8; 4] = [0; 4];

/// The reading half of a connection.
pub(crate) struct Reader(BufReader<OwnedReadHalf>);

/// The writing half.
pub(crate) struct Writer(OwnedWriteHalf);

/// Opens `/v1/ws`.
pub(crate) async fn open(address: &str) -> anyhow::Result<(Reader, Writer)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let head = format!(
        "GET /v1/ws HTTP/1.1\r\nhost: {address}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    write.write_all(head.as_bytes()).await?;
    let mut read = BufReader::new(read);
    let mut line = String::new();
    read.read_line(&mut line).await?;
    ensure!(line.contains(" 101 "), "no WebSocket: {line}");
    while !line.trim().is_empty() {
        line.clear();
        ensure!(read.read_line(&mut line).await? > 0, "the connection was closed");
    }
    Ok((Reader(read), Writer(write)))
}

impl Reader {
    /// The next text.
    pub(crate) async fn next(&mut self) -> anyhow::Result<String> {
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head).await?;
            let length = match head[1] & 0x7f {
                126 => u64::from(self.0.read_u16().await?),
                127 => self.0.read_u64().await?,
                short => u64::from(short),
            };
            let mut text = vec![0; usize::try_from(length)?];
            self.0.read_exact(&mut text).await?;
            match head[0] & 0x0f {
                1 => return String::from_utf8(text).context("not UTF-8"),
                8 => anyhow::bail!("the server has closed"),
                // A ping: the server asks seldom, and a bench is short.
                _ => {}
            }
        }
    }
}

impl Writer {
    pub(crate) async fn send(&mut self, text: &str) -> anyhow::Result<()> {
        let mut frame = vec![0x81];
        match text.len() {
            short @ 0..126 => frame.push(0x80 | short as u8),
            long => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(long)?.to_be_bytes());
            }
        }
        frame.extend(MASK);
        frame.extend(text.as_bytes());
        Ok(self.0.write_all(&frame).await?)
    }
}
