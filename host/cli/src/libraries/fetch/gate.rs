//! A proxy on this machine to one host: git's only way out.
//!
//! INV-616: a request for any other host, or for another port of the same one, is answered with a refusal,
//! and its name is reported. So a redirection of a server leads nowhere.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use belljar_policy::{RequestTarget, ShownText, UrlScheme};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use super::news::{HelperNews, send_news};
use super::scope::FetchScope;

/// Bytes of the head of a request. git's have a few hundred.
const MAX_HEAD: usize = 16 << 10;

/// Connections at the same time. git opens two.
const MAX_CONNECTIONS: usize = 16;

/// How long a client may take for its head, and a host to accept a connection.
const MAX_OPENING: Duration = Duration::from_secs(30);

/// Bytes between two messages about the progress.
const REPORTED: u64 = 64 << 10;

/// A gate to one host.
pub(super) struct HostGate {
    scope: FetchScope,
    most: u64,
    received: Cell<u64>,
    reported: Cell<u64>,
    open: Cell<usize>,
}

impl HostGate {
    /// A gate that lets `most` bytes of answers through.
    pub(super) fn new(scope: FetchScope, most: u64) -> Self {
        let (received, reported, open) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Self { scope, most, received, reported, open }
    }

    /// Serves until this process ends.
    pub(super) async fn serve(self, listener: std::net::TcpListener) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        let port = listener.local_addr().map_err(text)?.port();
        let listener = TcpListener::from_std(listener).map_err(text)?;
        send_news(&HelperNews::Listening(port));
        let gate = Rc::new(self);
        LocalSet::new()
            .run_until(async move {
                loop {
                    let (client, _) = listener.accept().await.map_err(text)?;
                    if gate.open.get() >= MAX_CONNECTIONS {
                        continue;
                    }
                    gate.open.set(gate.open.get() + 1);
                    let gate = Rc::clone(&gate);
                    tokio::task::spawn_local(async move {
                        if let Err(why) = gate.pass_connection(client).await {
                            send_news(&HelperNews::Fault(why));
                        }
                        gate.open.set(gate.open.get().saturating_sub(1));
                    });
                }
            })
            .await
    }

    async fn pass_connection(&self, mut client: TcpStream) -> Result<(), String> {
        // A client that goes away is no fault of the host's.
        let Ok(Ok(Some(head))) = tokio::time::timeout(MAX_OPENING, read_head(&mut client)).await
        else {
            return Ok(());
        };
        let opened = match parse_request(&head) {
            Some((target, tunnel)) => self.open_host(&target).await.map(|host| (host, tunnel)),
            None => Err("git asks in a form that is not understood".to_owned()),
        };
        let (mut host, tunnel) = match opened {
            Ok(opened) => opened,
            Err(why) => {
                let _ =
                    client.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
                return Err(why);
            }
        };
        let first = match tunnel {
            true => client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await,
            // One request a connection: the next one could be for another host.
            false => host.write_all(&close_after(&head)).await,
        };
        if first.is_err() {
            return Ok(());
        }
        let (from_client, to_client) = client.split();
        let (from_host, to_host) = host.split();
        let up = copy_bytes(from_client, to_host, |_| Ok(()));
        let down = copy_bytes(from_host, to_client, |bytes| self.count_received(bytes));
        tokio::select! {
            _ = up => Ok(()),
            done = down => done,
        }
    }

    async fn open_host(&self, target: &RequestTarget) -> Result<TcpStream, String> {
        let addresses: Vec<SocketAddr> = self.scope.resolve_target(target).await?;
        let opening = tokio::time::timeout(MAX_OPENING, TcpStream::connect(addresses.as_slice()));
        match opening.await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(format!("`{target}` cannot be reached: {error}")),
            Err(_) => Err(format!("`{target}` does not answer")),
        }
    }

    fn count_received(&self, bytes: usize) -> Result<(), String> {
        let received = self.received.get().saturating_add(bytes as u64);
        self.received.set(received);
        if received > self.most {
            return Err(format!("it has more than {} bytes", self.most));
        }
        if received - self.reported.get() >= REPORTED {
            self.reported.set(received);
            send_news(&HelperNews::Received(received));
        }
        Ok(())
    }
}

/// Copies until the end of `from`; `count` ends it earlier.
async fn copy_bytes(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: impl Fn(usize) -> Result<(), String>,
) -> Result<(), String> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        // A connection that breaks is git's to report.
        let Ok(read) = from.read(&mut buffer).await else { return Ok(()) };
        if read == 0 {
            let _ = to.shutdown().await;
            return Ok(());
        }
        count(read)?;
        if to.write_all(buffer.get(..read).unwrap_or_default()).await.is_err() {
            return Ok(());
        }
    }
}

/// The head of a request with its empty line, and not a byte behind it; `None` = the client is gone.
async fn read_head(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEAD || client.read(&mut byte).await? == 0 {
            return Ok(None);
        }
        head.extend_from_slice(&byte);
    }
    Ok(Some(head))
}

/// The head of a request whose connection ends with its answer.
fn close_after(head: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(head);
    let kept = text.split("\r\n").filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !name.eq_ignore_ascii_case("connection") && !name.eq_ignore_ascii_case("proxy-connection")
    });
    let mut lines: Vec<&str> = kept.collect();
    // Behind the last header are two empty pieces, of the empty line.
    lines.insert(lines.len().saturating_sub(2), "Connection: close");
    lines.join("\r\n").into_bytes()
}

/// The target of a request to a proxy, and whether it asks for a tunnel.
fn parse_request(head: &[u8]) -> Option<(RequestTarget, bool)> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }
    let tunnel = method == "CONNECT";
    let url = match tunnel {
        true => format!("https://{target}"),
        false => target.to_owned(),
    };
    let target = RequestTarget::parse(&url).ok()?;
    // Unencrypted requests are for this machine alone, which the scope decides; a tunnel is for TLS.
    let fits = tunnel || target.scheme() == UrlScheme::Http;
    (fits && !url.chars().any(ShownText::is_hidden)).then_some((target, tunnel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_a_proxy_name_their_host() {
        let parsed = |head: &str| {
            parse_request(head.as_bytes()).map(|(target, tunnel)| (target.to_string(), tunnel))
        };
        let tunnel = parsed("CONNECT git.test:443 HTTP/1.1\r\n\r\n");
        assert_eq!(tunnel, Some(("https://git.test".to_owned(), true)));
        let plain = parsed("GET http://127.0.0.1:8080/x.git/info/refs?service=x HTTP/1.1\r\n\r\n");
        assert_eq!(plain, Some(("http://127.0.0.1:8080".to_owned(), false)));
        for other in [
            "GET /x HTTP/1.1\r\n\r\n",
            "CONNECT git.test:443\r\n\r\n",
            "CONNECT u@git.test:443 HTTP/1.1\r\n\r\n",
            "GET https://git.test/ HTTP/1.1\r\n\r\n",
            "GET ftp://git.test/ HTTP/1.1\r\n\r\n",
            "CONNECT a b HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    #[test]
    fn a_connection_ends_with_its_answer() {
        let head = b"GET http://a/ HTTP/1.1\r\nHost: a\r\nProxy-Connection: Keep-Alive\r\n\r\n";
        let closed = String::from_utf8(close_after(head)).unwrap();
        assert_eq!(closed, "GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    }

    #[tokio::test]
    async fn another_host_is_refused_and_the_neighbour_passes() {
        let host = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (host_port, other_port) =
            (host.local_addr().unwrap().port(), other.local_addr().unwrap().port());
        host.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        let url = format!("http://127.0.0.1:{host_port}/x.git");
        let gate = HostGate::new(FetchScope::for_url(&url).unwrap(), 1 << 20);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let host = TcpListener::from_std(host).unwrap();
        let ask = |target: u16| async move {
            let mut client = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let head = format!("GET http://127.0.0.1:{target}/ HTTP/1.1\r\n\r\n");
            client.write_all(head.as_bytes()).await.unwrap();
            let mut answer = vec![0; 12];
            client.read_exact(&mut answer).await.unwrap();
            String::from_utf8(answer).unwrap()
        };
        let served = async {
            let (mut peer, _) = host.accept().await.unwrap();
            let head = read_head(&mut peer).await.unwrap().unwrap();
            assert!(head.starts_with(b"GET http://127.0.0.1:"));
            peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        };
        let checks = async {
            assert_eq!(ask(other_port).await, "HTTP/1.1 403");
            let (answer, ()) = tokio::join!(ask(host_port), served);
            assert_eq!(answer, "HTTP/1.1 204");
            assert!(TcpListener::from_std(other).unwrap().accept_now().is_none());
        };
        tokio::select! {
            done = gate.serve(listener) => panic!("{done:?}"),
            () = checks => {}
        }
    }

    /// A look at the connections that wait.
    trait AcceptNow {
        fn accept_now(&self) -> Option<()>;
    }

    impl AcceptNow for TcpListener {
        fn accept_now(&self) -> Option<()> {
            use std::task::{Context, Poll, Waker};
            let mut context = Context::from_waker(Waker::noop());
            match self.poll_accept(&mut context) {
                Poll::Ready(_) => Some(()),
                Poll::Pending => None,
            }
        }
    }
}
