//! The requests that a peer reads.

use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use crate::Connection;

/// A request as the peer received it.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// The method of HTTP, for example `POST`.
    pub verb: String,
    /// The path with its query.
    pub path: String,
    /// The request line and the headers, up to the empty line.
    pub head: String,
    /// The body as JSON; null for any other body.
    pub body: Value,
    /// The body's bytes, as many as the client sent.
    pub raw: Vec<u8>,
    /// The body as text.
    pub text: String,
}

impl HttpRequest {
    /// Reads a request; `None` when the client closes the connection before the head ends.
    pub(crate) fn read(connection: &mut dyn Connection) -> Option<Self> {
        let mut reader = BufReader::new(connection);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if reader.read_until(b'\n', &mut head).ok()? == 0 {
                return None;
            }
        }
        let head = String::from_utf8(head).ok()?;
        let mut words = head.split(' ').map(str::to_owned);
        let (verb, path) = (words.next()?, words.next()?);
        let (raw, text) = (Vec::new(), String::new());
        let mut request = Self { verb, path, head, body: Value::Null, raw, text };
        if request.header("transfer-encoding").is_some() {
            request.raw = read_chunks(&mut reader);
        } else if let Some(length) = request.header("content-length") {
            let _ = reader.take(length.parse().ok()?).read_to_end(&mut request.raw);
        }
        request.body = serde_json::from_slice(&request.raw).unwrap_or_default();
        request.text = String::from_utf8_lossy(&request.raw).into_owned();
        Some(request)
    }

    /// The value of a header, whose name is compared without case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut named = headers.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value)
    }

    /// The JSON-RPC method of the body; empty when there is none.
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// A parameter of the path's query, with the escapes of an address decoded.
    pub fn parameter(&self, name: &str) -> String {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let mut named = pairs.filter(|(known, _)| *known == name);
        let value = named.next().map_or("", |(_, value)| value);
        value.replace("%3A", ":").replace("%2F", "/")
    }
}

/// The chunks of a body until the last one, or until the client leaves.
fn read_chunks(reader: &mut impl BufRead) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line);
        let size = u64::from_str_radix(line.trim(), 16).unwrap_or_default();
        let _ = reader.by_ref().take(size).read_to_end(&mut whole);
        let ended = reader.read_line(&mut String::new());
        if size == 0 || read.is_err() || ended.is_err() {
            return whole;
        }
    }
}
