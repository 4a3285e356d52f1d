//! The replies of a peer: whole ones, and ones that trickle, never end or fall silent.

use std::io::{Read, Write};
use std::thread;

use serde_json::Value;

/// The peer's end of a connection, for example a TCP stream.
pub trait Connection: Read + Write + Send {}

impl<T: Read + Write + Send> Connection for T {}

/// The bytes of a reply, in the order in which the peer writes them; then the peer closes the
/// connection.
#[derive(Debug, Clone, Default)]
pub struct Reply(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    Send(Vec<u8>),
    Repeat(Vec<u8>),
    Stall,
}

impl Reply {
    /// A reply with this status, these headers and this body. Each header ends with `\r\n`.
    pub fn new(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        Self::bytes([head.as_bytes(), body].concat())
    }

    /// Bytes that the peer writes without a head, for example a broken reply.
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self::default().then(bytes)
    }

    /// An empty body with this status, for example `404 Not Found`.
    pub fn status(status: &str) -> Self {
        Self::new(status, "", "")
    }

    /// A plain text.
    pub fn text(text: &str) -> Self {
        Self::new("200 OK", "content-type: text/plain\r\n", text)
    }

    /// A JSON document.
    pub fn json(value: &Value) -> Self {
        Self::new("200 OK", "content-type: application/json\r\n", value.to_string())
    }

    /// A redirect to this address.
    pub fn redirect(status: &str, location: &str) -> Self {
        Self::new(status, &format!("location: {location}\r\n"), "")
    }

    /// A stream with these events, each the data of one; more may follow by [`Reply::then`].
    pub fn events(events: &[&str]) -> Self {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let events = events.iter().map(|event| format!("data: {event}\n\n"));
        Self::bytes(head.to_owned() + &events.collect::<String>())
    }

    /// No bytes, and no end until the client leaves.
    pub fn silence() -> Self {
        Self::default().then_stall()
    }

    /// These bytes after the others, in a write of their own.
    #[must_use]
    pub fn then(self, bytes: impl AsRef<[u8]>) -> Self {
        self.with(Step::Send(bytes.as_ref().to_vec()))
    }

    /// The same bytes, each in a write of its own.
    #[must_use]
    pub fn trickled(self) -> Self {
        let bytes = self.0.iter().filter_map(|step| match step {
            Step::Send(bytes) => Some(&bytes[..]),
            Step::Repeat(_) | Step::Stall => None,
        });
        let bytes = bytes.collect::<Vec<_>>().concat();
        Self(bytes.into_iter().map(|byte| Step::Send(vec![byte])).collect())
    }

    /// These bytes again and again, until the client leaves.
    #[must_use]
    pub fn then_repeat(self, bytes: impl AsRef<[u8]>) -> Self {
        self.with(Step::Repeat(bytes.as_ref().to_vec()))
    }

    /// Silence after the other bytes, until the client leaves.
    #[must_use]
    pub fn then_stall(self) -> Self {
        self.with(Step::Stall)
    }

    fn with(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// Writes the reply, and returns whether the client stayed until the end.
    pub fn write_to(&self, connection: &mut dyn Connection) -> bool {
        self.0.iter().all(|step| match step {
            Step::Send(bytes) => write_part(connection, bytes),
            Step::Repeat(bytes) => {
                while write_part(connection, bytes) {}
                false
            }
            Step::Stall => {
                wait_for_end(connection);
                false
            }
        })
    }
}

fn write_part(connection: &mut dyn Connection, bytes: &[u8]) -> bool {
    let written = connection.write_all(bytes).and_then(|()| connection.flush());
    // The client takes the part by itself.
    thread::yield_now();
    written.is_ok()
}

/// Reads until the client closes the connection.
pub(crate) fn wait_for_end(connection: &mut dyn Connection) {
    while connection.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
}
