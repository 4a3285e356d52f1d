//! Listening: the allowed addresses, the bounds on connections, and the shutdown.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use belljar_policy::ShownText;
use belljar_session::LookDepth;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::app::App;
use crate::http::held::HoldingBody;
use crate::http::meter::{MeteredStream, SocketMeter};
use crate::http::peers::{PeerPlace, PeersFull};
use crate::http::problem::{PROBLEM_JSON, Problem};

/// The time within which the head of a request must arrive; also the time after which an idle
/// connection is closed.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of a request's head, including the request line.
const MAX_HEAD: usize = 32 << 10;

/// The most headers of a request.
const MAX_HEADERS: usize = 64;

/// The time that connections get to end after all turns have ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The pause after the system has refused to accept a connection, for example because no file
/// descriptors are left.
const PAUSE: Duration = Duration::from_millis(100);

/// The time for which a client may read nothing of an answer or event stream. After that the connection
/// is closed, and the handler of the answer ends.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The most refused connections that are told the reason at a time; further ones are closed without an
/// answer. They do not count as open connections, so 32 extra file descriptors are needed.
const MAX_TOLD: usize = 32;

/// The most bytes read from a refused connection before it is closed.
const MAX_UNREAD: u64 = 64 << 10;

/// The time after which a refused caller should try again.
const FULL_WAIT: Duration = Duration::from_secs(5);
const FULL_TIMEOUT: Duration = Duration::from_secs(1);

/// The error for an address that other machines can reach, on a server without keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no key, so anybody who reaches `{address}` could do anything")]
pub struct NoKeys {
    /// The address on which the server was to listen.
    pub address: SocketAddr,
}

/// Checks that a server may listen on this address: on any address if keys exist, otherwise only on a
/// loopback one. Returns whether callers without a key are accepted as the operator until the first key
/// is made.
///
/// # Errors
/// When other machines can reach the address, and there is no key.
pub fn may_listen(address: SocketAddr, has_keys: bool) -> Result<bool, NoKeys> {
    let loopback = address.ip().to_canonical().is_loopback();
    if loopback || has_keys { Ok(loopback) } else { Err(NoKeys { address }) }
}

impl App {
    /// Serves until `stop` is cancelled. Then refuses new turns and waits for the running ones, up to
    /// [`crate::ServerConfig::drain`]; turns that take longer are resumed from their journal at the
    /// next start. Meanwhile all other requests are answered, on old and new connections: a person can
    /// watch a turn, answer its questions and cancel it. At the end, closes the listener, and returns
    /// when all connections are closed.
    pub async fn serve_connections(&self, listener: TcpListener, stop: CancellationToken) {
        let router = self.router();
        let told = Arc::new(Semaphore::new(MAX_TOLD));
        let cut = CancellationToken::new();
        let _watched = AbortOnDropHandle::new(tokio::spawn(self.clone().watch_tenants()));
        let _kept = AbortOnDropHandle::new(tokio::spawn(self.clone().keep_audit()));
        let drained = async {
            stop.cancelled().await;
            self.stopping_token().cancel();
            self.services().drain_turns(self.config().drain).await;
        };
        tokio::pin!(drained);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut drained => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, from)) => {
                    self.accept_connection(stream, from.ip(), &router, &told, &cut)
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "connections are refused by the system");
                    // The pause ends early when the server stops.
                    let _ = tokio::time::timeout(PAUSE, self.stopped_token().cancelled()).await;
                }
            }
        }
        drop(listener);
        self.stopped_token().cancel();
        self.tasks().close();
        if tokio::time::timeout(LAST_WORDS, self.tasks().wait()).await.is_err() {
            cut.cancel();
            let _ = tokio::time::timeout(LAST_WORDS, self.tasks().wait()).await;
        }
        self.write_counts().await;
    }

    /// Serves a new connection in a task of its own, or refuses it if there are too many.
    fn accept_connection(
        &self,
        stream: TcpStream,
        from: IpAddr,
        router: &Router,
        told: &Arc<Semaphore>,
        cut: &CancellationToken,
    ) {
        let cut = cut.child_token();
        // INV-99, INV-111: the number of connections is bounded for each address and in total, so one address
        // cannot keep out the others.
        let peer = match self.peers().enter_connection(from.into(), cut.clone()) {
            Ok(peer) => peer,
            Err(PeersFull::Address) => {
                let detail = "there are as many connections of this address as there may be";
                return self.refuse_connection(stream, Problem::too_many(detail, FULL_WAIT), told);
            }
            Err(PeersFull::Server) => {
                let detail = "there are as many connections as there may be";
                return self.refuse_connection(
                    stream,
                    Problem::unavailable(detail, FULL_WAIT),
                    told,
                );
            }
        };
        let (app, router) = (self.clone(), router.clone());
        self.tasks().spawn(async move {
            let _counted = app.metrics().connections.count_one();
            // Events are small, and each is wanted at once, so TCP must not collect them.
            let _ = stream.set_nodelay(true);
            cut.run_until_cancelled(serve_connection(stream, router, peer, app.stopped_token()))
                .await;
        });
    }

    /// Counts a refused connection, and tells its client the reason unless too many are being told already.
    fn refuse_connection(&self, stream: TcpStream, problem: Problem, told: &Arc<Semaphore>) {
        self.metrics().refused.fetch_add(1, Ordering::Relaxed);
        let Ok(place) = Arc::clone(told).try_acquire_owned() else { return };
        tokio::spawn(async move {
            let _place = place;
            // An error means: the client was too slow to read the reason.
            let _ = tokio::time::timeout(FULL_TIMEOUT, turn_away(stream, problem)).await;
        });
    }

    /// Checks in an interval, until dropped: closes deleted tenants, opens new ones to check them, and
    /// looks for changed settings of the others.
    async fn watch_tenants(self) {
        let mut ticks = tokio::time::interval(self.config().tenant_check);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Listed before the store is read, because a tenant opened in between may be new and not
            // yet in that list.
            let open = self.services().tenant_ids();
            match self.store().tenant_registry().list_tenants().await {
                Ok(there) => {
                    self.services().close_deleted(&open, &there);
                    for (tenant, why) in self.services().check_tenants(&there).await {
                        let why = why.to_string();
                        let why = ShownText::multiline(&why);
                        tracing::error!(tenant, %why, "a tenant cannot be served");
                    }
                }
                Err(error) => tracing::error!(%error, "the tenants cannot be read"),
            }
            // Settings are read now, so a faulty file is logged before a turn begins.
            self.services().look_for_changes(LookDepth::IfChanged).await;
        }
    }
}

/// Serves one connection to its end: answers its requests, and refuses heads that are too large or too
/// slow.
async fn serve_connection<IO>(io: IO, router: Router, peer: PeerPlace, stopped: &CancellationToken)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let meter: Arc<SocketMeter> = Arc::default();
    let mut io = TimeoutStream::new(MeteredStream::new(io, Arc::clone(&meter)));
    io.set_write_timeout(Some(WRITE_TIMEOUT));
    let (peer, router) = (Arc::new(peer), TowerToHyperService::new(router));
    let answer = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&peer));
        request.extensions_mut().insert(Arc::clone(&meter));
        let (busy, answered) = (peer.begin_request(), router.call(request));
        async move {
            Ok::<_, Infallible>(answered.await?.map(|body| HoldingBody::wrap_body(body, busy)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        // Both limits are needed: the buffer's size only stops its growth, so a slightly longer head
        // could still fit.
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(Box::pin(io)), answer)
        .with_upgrades();
    tokio::pin!(connection);
    let mut asked = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke off");
                }
                return;
            }
            () = stopped.cancelled(), if !asked => {
                asked = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Sends the reason to a connection beyond the limit, and closes it.
async fn turn_away(mut stream: TcpStream, problem: Problem) -> io::Result<()> {
    stream.write_all(&problem_bytes(&problem)).await?;
    stream.shutdown().await?;
    // If the connection were closed while a request is unread, the answer might be lost on the way to
    // the client.
    let mut request = stream.take(MAX_UNREAD);
    tokio::io::copy(&mut request, &mut tokio::io::sink()).await.map(drop)
}

/// A problem as a whole HTTP response in bytes, for a connection whose request is not read.
fn problem_bytes(problem: &Problem) -> Vec<u8> {
    let row = problem.kind().table_row();
    let reason = StatusCode::from_u16(row.status).ok().and_then(|code| code.canonical_reason());
    let body = serde_json::to_string(&problem.to_body()).unwrap_or_default();
    format!(
        "HTTP/1.1 {} {}\r\nretry-after: {}\r\nconnection: close\r\n\
         content-type: {PROBLEM_JSON}\r\ncontent-length: {}\r\n\r\n{body}",
        row.status,
        reason.unwrap_or_default(),
        FULL_WAIT.as_secs(),
        body.len()
    )
    .into_bytes()
}

/// Returns whether an error of `accept` concerns only that one connection, not the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::peers::PeerConnections;
    use axum::body::Body;
    use axum::routing::get;
    use tokio::io::DuplexStream;

    #[test]
    fn only_this_machine_is_let_in_without_keys() {
        let may = |address: &str, keys| may_listen(address.parse().unwrap(), keys).ok();
        for near in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!((may(near, false), may(near, true)), (Some(true), Some(true)), "{near}");
        }
        for far in ["0.0.0.0:1", "[::]:1", "192.168.1.2:1", "[::ffff:10.0.0.1]:1"] {
            assert_eq!((may(far, false), may(far, true)), (None, Some(false)), "{far}");
        }
    }

    #[test]
    fn a_connection_too_many_gets_a_whole_answer() {
        let text = problem_bytes(&Problem::too_many("no more", FULL_WAIT));
        let (head, body) = std::str::from_utf8(&text).unwrap().split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 429 Too Many Requests\r\nretry-after: 5\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["type"], "/problems/too-many");
    }

    /// More bytes than all buffers between server and client can hold.
    const LONG: usize = 1 << 20;

    fn long_answers() -> Router {
        let forever = || async {
            let part = bytes::Bytes::from_static(&[b'x'; 4096]);
            Body::from_stream(futures::stream::repeat(Ok::<_, std::convert::Infallible>(part)))
        };
        Router::new()
            .route("/long", get(|| async { vec![b'x'; LONG] }))
            .route("/events", get(forever))
    }

    /// Connects a client that has sent a request for `path`; returns the client and the future of its
    /// connection.
    async fn asks(path: &str) -> (DuplexStream, impl Future<Output = ()>) {
        let (mut client, server) = tokio::io::duplex(4096);
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let from = IpAddr::from([192, 0, 2, 1]).into();
        let peer =
            PeerConnections::new(1, 1).enter_connection(from, CancellationToken::new()).unwrap();
        let talked = async move {
            serve_connection(server, long_answers(), peer, &CancellationToken::new()).await;
        };
        (client, talked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut_off() {
        for path in ["/long", "/events"] {
            let begun = tokio::time::Instant::now();
            let (mut client, talked) = asks(path).await;
            talked.await;
            let took = begun.elapsed();
            assert!(took >= WRITE_TIMEOUT && took < 2 * WRITE_TIMEOUT, "{path}: {took:?}");
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.unwrap();
            assert!(rest.len() < LONG, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_slow_gets_all() {
        let (mut client, talked) = asks("/long").await;
        let reading = async {
            let (mut all, mut part) = (0, vec![0; 64 << 10]);
            loop {
                // Reads as long as the bytes in the buffers between server and client may take.
                tokio::time::advance(Duration::from_secs(1)).await;
                match client.read(&mut part).await.unwrap() {
                    0 => return all,
                    read => all += read,
                }
            }
        };
        let (_, all) = tokio::join!(talked, reading);
        assert!(all > LONG, "{all}");
    }
}
