//! Listening: which address is allowed, how many connections there are, and how it ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// Open connections of the whole server, WebSockets apart.
const MAX_CONNECTIONS: usize = 8_192;

/// How long the head of a request may take to arrive; also how long an idle connection is kept.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Most bytes of a request's head.
const MAX_HEAD: usize = 32 << 10;

/// Most headers of a request.
const MAX_HEADERS: usize = 64;

/// How long connections get to end after all turns have.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The pause after the system has refused a connection, for example for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// What a connection too many is told, and how long it may take to hear it.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\n\
    content-type: application/problem+json\r\ncontent-length: 142\r\n\r\n\
    {\"type\":\"/problems/unavailable\",\"title\":\"the server cannot do this now\",\"status\":503,\
    \"detail\":\"there are as many connections as there may be\"}";
const FULL_TIMEOUT: Duration = Duration::from_secs(1);

/// An address that would let in everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no key, so anybody who reaches `{address}` could do anything")]
pub struct NoKeys {
    /// The address.
    pub address: SocketAddr,
}

/// Whether this address may be listened on: any where there are keys, else a loopback one alone.
/// Gives whether callers without a key may be let in as the operator as long as there is none.
///
/// # Errors
///
/// When others than this machine reach the address, and there is no key.
pub fn may_listen(address: SocketAddr, has_keys: bool) -> Result<bool, NoKeys> {
    let loopback = address.ip().to_canonical().is_loopback();
    if loopback || has_keys { Ok(loopback) } else { Err(NoKeys { address }) }
}

impl App {
    /// Answers until `stop` is cancelled. Then takes no more connections and no more turns, lets
    /// those that run end (up to [`crate::ServerConfig::drain`]; the rest is journalled and goes
    /// on at the next start), and returns when all connections are closed.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        let router = self.router();
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let cut = CancellationToken::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.take(stream, &router, &places, &cut),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "connections are refused by the system");
                    // Ends early when the server stops.
                    let _ = tokio::time::timeout(PAUSE, stop.cancelled()).await;
                }
            }
        }
        drop(listener);
        self.stopping().cancel();
        self.services().drain(self.config().drain).await;
        self.stopped().cancel();
        self.tasks().close();
        if tokio::time::timeout(LAST_WORDS, self.tasks().wait()).await.is_err() {
            cut.cancel();
            let _ = tokio::time::timeout(LAST_WORDS, self.tasks().wait()).await;
        }
    }

    fn take(
        &self,
        stream: TcpStream,
        router: &Router,
        places: &Arc<Semaphore>,
        cut: &CancellationToken,
    ) {
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            self.metrics().refused.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(tokio::time::timeout(FULL_TIMEOUT, turn_away(stream)));
            return;
        };
        let (app, router, cut) = (self.clone(), router.clone(), cut.clone());
        self.tasks().spawn(async move {
            let _place = place;
            let _counted = app.metrics().connections.one();
            cut.run_until_cancelled(app.talk(stream, router)).await;
        });
    }

    /// One connection, to its end.
    async fn talk(&self, stream: TcpStream, router: Router) {
        // Events are small and wanted at once.
        let _ = stream.set_nodelay(true);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
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
                () = self.stopping().cancelled(), if !asked => {
                    asked = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

async fn turn_away(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(FULL).await?;
    stream.shutdown().await
}

/// Whether an error is about the connection that was to be taken, and not about all.
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
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
