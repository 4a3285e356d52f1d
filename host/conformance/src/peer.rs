//! The suite's two network hosts, on loopback addresses: an allowed one, which answers, and another, which
//! the component must never reach.

use std::io;
use std::net::TcpListener as StdListener;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The most bytes of a request; the suite's own requests are far smaller.
const MAX_REQUEST: usize = 64 << 10;

/// The bytes of the reply's body for `/large`.
const LARGE: usize = 256 << 10;

/// The secret that the host adds to requests for the allowed network host.
pub(crate) const SECRET: &str = "conformance-suite-secret";

/// A port on which the suite listens. Whether somebody connected can be asked without answering.
pub(crate) struct PeerListener(StdListener);

impl PeerListener {
    /// Listens on a free port.
    pub(crate) fn new() -> io::Result<Self> {
        let listener = StdListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    /// The address as `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}", self.0.local_addr()?))
    }

    /// Whether somebody connected since the last call of this method.
    pub(crate) fn was_reached(&self) -> bool {
        self.0.accept().is_ok()
    }

    /// Answers requests until the future is dropped.
    pub(crate) async fn serve_requests(&self) -> io::Result<()> {
        let listener = TcpListener::from_std(self.0.try_clone()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(answer_request(stream));
        }
    }
}

/// Answers the single request of a connection. A request that cannot be read gets no answer.
async fn answer_request(mut stream: TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    let mut chunk = vec![0; 8 << 10];
    let end = loop {
        if let Some(end) = body_start(&request) {
            break end;
        }
        let read = stream.read(&mut chunk).await?;
        if read == 0 || request.len() > MAX_REQUEST {
            return Ok(());
        }
        request.extend_from_slice(chunk.get(..read).unwrap_or_default());
    };
    let head = String::from_utf8_lossy(request.get(..end).unwrap_or_default()).into_owned();
    let body = request.get(end..).unwrap_or_default();
    let (status, body) = make_reply(&head, body);
    let mut response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    response.extend(body);
    stream.write_all(&response).await?;
    stream.shutdown().await
}

/// The position of the body, if the request is complete.
fn body_start(request: &[u8]) -> Option<usize> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(request.get(..end)?).to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        return request.ends_with(b"0\r\n\r\n").then_some(end);
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or_default();
    (request.len() >= end.checked_add(length)?).then_some(end)
}

/// The status and body of the reply to a request, by the request's path.
fn make_reply(head: &str, body: &[u8]) -> (&'static str, Vec<u8>) {
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path {
        "/hello" => ("200 OK", "hello ☃".into()),
        "/echo" if head.to_ascii_lowercase().contains("transfer-encoding: chunked") => {
            ("200 OK", decode_chunks(body))
        }
        "/echo" => ("200 OK", body.to_vec()),
        "/large" => ("200 OK", vec![b'x'; LARGE]),
        "/secret" if head.contains(SECRET) => ("200 OK", "joined".into()),
        "/secret" => ("200 OK", "not joined".into()),
        _ => ("404 Not Found", "absent".into()),
    }
}

/// Decodes a body in HTTP's chunked coding. Stops at a chunk of length 0, or at the first mistake.
fn decode_chunks(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(body.get(..end).unwrap_or_default()).into_owned();
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or_default();
        let Some(chunk) = body.get(end + 2..).and_then(|rest| rest.get(..size)) else { break };
        whole.extend_from_slice(chunk);
        body = body.get(end + 2 + size + 2..).unwrap_or_default();
        if size == 0 {
            break;
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_with_its_whole_body() {
        let head = b"POST /echo HTTP/1.1\r\nContent-Length: 4\r\n\r\n".to_vec();
        assert_eq!(body_start(&head), None);
        let whole = [head.as_slice(), b"ping"].concat();
        assert_eq!(body_start(&whole), Some(head.len()));
        assert_eq!(make_reply("POST /echo HTTP/1.1", b"ping"), ("200 OK", b"ping".to_vec()));
    }

    #[test]
    fn chunks_are_put_together() {
        assert_eq!(decode_chunks(b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"), b"abc");
        assert_eq!(decode_chunks(b"ff\r\nab"), b"");
    }
}
