//! The callback of a login: an address on this machine, to which the person's browser returns with the
//! issuer's answer.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use belljar_mcp::PendingLogin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::setup::exit::Failure;

/// The only path that gets an answer.
const PATH: &str = "/callback";

/// The time that a person has to log in.
const PATIENCE: Duration = Duration::from_secs(600);

/// The time limit of one visitor's request.
const VISIT: Duration = Duration::from_secs(5);

/// The most visitors that get an answer, because any program of this machine and any page in a browser can be
/// one.
const MAX_VISITORS: usize = 1_000;

/// The most bytes of a visitor's request.
const MAX_REQUEST: usize = 16 << 10;

/// The listening callback address. Made before the OS sandbox is raised, because listening is refused
/// afterwards.
pub(super) struct LoginCallback {
    listener: TcpListener,
    port: u16,
}

impl LoginCallback {
    /// Listens on a free port of this machine's loopback address.
    pub(super) fn open_listener() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(format!("failed to listen on this machine for the answer: {error}"))
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    /// The address to which the issuer sends the browser with the answer.
    pub(super) fn redirect_address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the request of the browser that has the answer to this login, and returns the request's
    /// query. Other requests get a 404.
    pub(super) async fn wait_for_answer(self, login: &PendingLogin) -> Result<String, Failure> {
        let listener = tokio::net::TcpListener::from_std(self.listener);
        let listener = listener.map_err(|error| Failure::new(error.to_string()))?;
        let waiting = async {
            for _ in 0..MAX_VISITORS {
                let Ok((mut stream, _)) = listener.accept().await else { continue };
                let query = timeout(VISIT, read_query(&mut stream)).await.ok().flatten();
                let query = query.filter(|query| login.is_asked_by(query));
                let _ = timeout(VISIT, send_reply(&mut stream, query.is_some())).await;
                if let Some(query) = query {
                    return Ok(query);
                }
            }
            Err(Failure::new("too many visitors came with no answer to this login"))
        };
        match timeout(PATIENCE, waiting).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::new("nobody has said yes within ten minutes")),
        }
    }
}

/// Reads a request for `/callback`, and returns its query. `None` = another request, or a malformed one.
async fn read_query(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        if bytes.len() > MAX_REQUEST || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let target = text.strip_prefix("GET ")?.split(' ').next()?;
    target.strip_prefix(PATH)?.strip_prefix('?').map(str::to_owned)
}

/// Sends the answer to a visitor. `heard` = the visitor is the browser with the issuer's answer.
async fn send_reply(stream: &mut TcpStream, heard: bool) -> std::io::Result<()> {
    let (status, text) = match heard {
        true => ("200 OK", "belljar has your answer. You can close this page.\n"),
        false => ("404 Not Found", "nothing is here for you\n"),
    };
    let reply = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nreferrer-policy: \
         no-referrer\r\ncache-control: no-store\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await
}
