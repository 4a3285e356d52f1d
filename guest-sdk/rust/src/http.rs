//! A small blocking HTTP client over `wasi:http/outgoing-handler`.
//!
//! Every request passes the host's gate; a host that was not granted answers with
//! [`ToolError::Denied`]. Redirects are not followed: each hop is a request of its own, so
//! that the gate sees it. Bodies are not decompressed, and none is asked for.
//!
//! Natively (in unit tests) sending always fails.

#[cfg(target_family = "wasm")]
mod send;
mod url;

use crate::ToolError;
use std::time::Duration;
pub use url::{Url, encode_query};

/// Time for a whole exchange, when the request sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of body read, when the request sets no cap.
const DEFAULT_MAX_BODY: usize = 1024 * 1024;

/// A request to be sent.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    timeout: Duration,
    max_body: usize,
}

impl Request {
    /// A request with any method.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Request {
        Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout: DEFAULT_TIMEOUT,
            max_body: DEFAULT_MAX_BODY,
        }
    }

    /// A GET request.
    pub fn get(url: impl Into<String>) -> Request {
        Request::new("GET", url)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Request {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends a body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self
    }

    /// Time for the whole exchange, body included. Default: 30 seconds. The host may allow less.
    pub fn timeout(mut self, timeout: Duration) -> Request {
        self.timeout = timeout;
        self
    }

    /// Bytes of the response's body to read; what follows is left unread and
    /// [`Response::truncated`] says so. Default: 1 MiB.
    pub fn max_body(mut self, bytes: usize) -> Request {
        self.max_body = bytes;
        self
    }

    /// Sends the request and reads the response up to the cap.
    ///
    /// # Errors
    ///
    /// [`ToolError::InvalidArguments`] for a URL that is not `http` or `https`,
    /// [`ToolError::Denied`] when the host's gate refuses, [`ToolError::TooLarge`] when the
    /// host cuts the body off, [`ToolError::Failed`] for anything else. A response with an
    /// error status is a response.
    pub fn send(&self) -> Result<Response, ToolError> {
        let url = Url::parse(&self.url)?;
        #[cfg(target_family = "wasm")]
        return send::send(self, &url);
        #[cfg(not(target_family = "wasm"))]
        Err(ToolError::Failed(format!(
            "`{} {}` cannot be sent from a native build",
            self.method,
            url.host()
        )))
    }
}

/// A response. Any status.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers in the order received, names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, up to the request's cap.
    pub body: Vec<u8>,
    /// Whether the body went on past the cap or the time.
    pub truncated: bool,
}

impl Response {
    /// The first header of this name (in lower case) that is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = self.headers.iter().find(|(have, _)| have == name);
        named.and_then(|(_, value)| std::str::from_utf8(value).ok())
    }
}
