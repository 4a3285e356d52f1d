//! Connects to the target of a request that the policy permits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::{AddressPermit, DenyCode, TargetHost, UrlPermit, UrlScheme};
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use wasmtime_wasi_http::{Error, RequestOptions};

use super::metered::ConnectionStream;
use super::options::HttpOptions;
use super::own::stays_here;
use crate::receipt::record::CallRecord;

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 16;

/// The most time to resolve a name, connect, and negotiate TLS.
const MAX_CONNECT: Duration = Duration::from_secs(30);
/// The most time until a reply's head is there, with the sending of the request. The time limit of the
/// tool's call may be shorter.
const MAX_FIRST_BYTE: Duration = Duration::from_secs(600);
/// The longest silence of the peer during a reply's body.
const MAX_BETWEEN_BYTES: Duration = Duration::from_secs(60);
/// The timeout for a guest that sets it to zero.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// The timeouts of a request, as the guest set them, within the bounds above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HttpTimeouts {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) between_bytes: Duration,
}

impl HttpTimeouts {
    /// Reads the timeouts a guest set; one that it did not set is the longest.
    pub(crate) fn from_options(options: Option<RequestOptions>) -> Self {
        let options = options.unwrap_or_default();
        let clamp = |asked: Option<Duration>, most: Duration| {
            asked.map_or(most, |asked| asked.clamp(MIN_TIMEOUT, most))
        };
        Self {
            connect: clamp(options.connect_timeout, MAX_CONNECT),
            first_byte: clamp(options.first_byte_timeout, MAX_FIRST_BYTE),
            between_bytes: clamp(options.between_bytes_timeout, MAX_BETWEEN_BYTES),
        }
    }
}

/// A connection to a checked address.
pub(crate) struct CheckedConnection {
    pub(crate) stream: Box<dyn ConnectionStream>,
    /// Whether the peer is on this machine.
    pub(crate) here: bool,
}

/// Resolves the target's name, checks every address, connects to a checked one, and negotiates TLS.
pub(crate) async fn open_connection(
    options: &HttpOptions,
    permit: &UrlPermit,
    record: &CallRecord,
    limit: Duration,
) -> Result<CheckedConnection, Error> {
    let deadline = Instant::now() + limit;
    let resolved = timeout_at(deadline, permitted_addresses(options, permit, record));
    let permits = resolved.await.map_err(|_| Error::DnsTimeout)??;
    let (tcp, target) = dial_addresses(&permits, deadline).await?;
    let here = stays_here(tcp.local_addr(), tcp.peer_addr());
    // INV-114: checked before a byte is sent.
    if here && options.own.hold_here(target) {
        return Err(own_listener(permit, record));
    }
    // Send at once: requests are small, and the guest waits for the reply.
    let _ = tcp.set_nodelay(true);
    let stream: Box<dyn ConnectionStream> = match permit.target().scheme() {
        UrlScheme::Http => Box::new(tcp),
        UrlScheme::Https => {
            let agreed = timeout_at(deadline, negotiate_tls(options, permit, tcp));
            agreed.await.map_err(|_| Error::ConnectionTimeout)??
        }
    };
    Ok(CheckedConnection { stream, here })
}

/// The target's addresses that the policy permits.
async fn permitted_addresses(
    options: &HttpOptions,
    permit: &UrlPermit,
    record: &CallRecord,
) -> Result<Vec<AddressPermit>, Error> {
    let found = match permit.target().host() {
        TargetHost::Ip(ip) => vec![*ip],
        TargetHost::Name(name) => options.resolver().resolve_name(name).await.map_err(|error| {
            tracing::debug!(%error, "name resolution failed");
            Error::DnsError { rcode: None, info_code: None }
        })?,
    };
    let mut permits: Vec<AddressPermit> = Vec::new();
    let mut refusal = None;
    for ip in found.into_iter().take(MAX_ADDRESSES) {
        match permit.check_address(ip) {
            // INV-114: if one address leads to a listener of the current process, the whole request is
            // refused.
            Ok(address) if options.own.contains_address(address.socket_address()) => {
                return Err(own_listener(permit, record));
            }
            Ok(address) if !permits.contains(&address) => permits.push(address),
            Ok(_) => {}
            Err(denied) => refusal = Some(denied),
        }
    }
    match refusal {
        Some(denied) if permits.is_empty() => {
            record.denied_request(permit.target(), &denied);
            Err(Error::DestinationIpProhibited)
        }
        None if permits.is_empty() => Err(Error::DestinationNotFound),
        Some(_) | None => Ok(permits),
    }
}

fn own_listener(permit: &UrlPermit, record: &CallRecord) -> Error {
    let facts = format!("`{}` leads to a listener of belljar's own", permit.target());
    super::refusal::deny_request(record, DenyCode::AddressNotAllowed, facts);
    Error::DestinationIpProhibited
}

/// Connects to the first address that accepts. Each try gets an equal share of the remaining time, so that
/// the first cannot use up all of it.
async fn dial_addresses(
    permits: &[AddressPermit],
    deadline: Instant,
) -> Result<(TcpStream, SocketAddr), Error> {
    let mut last = Error::DestinationNotFound;
    for (tried, permit) in permits.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let shares = u32::try_from(permits.len() - tried).unwrap_or(1);
        let until = Instant::now() + left / shares.max(1);
        match timeout_at(until, TcpStream::connect(permit.socket_address())).await {
            Ok(Ok(tcp)) => return Ok((tcp, permit.socket_address())),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                last = Error::ConnectionRefused;
            }
            Ok(Err(_)) => last = Error::DestinationUnavailable,
            Err(_) => last = Error::ConnectionTimeout,
        }
    }
    Err(last)
}

/// Makes a TLS connection over a TCP connection. The certificate has to be for the target's host.
async fn negotiate_tls(
    options: &HttpOptions,
    permit: &UrlPermit,
    tcp: TcpStream,
) -> Result<Box<dyn ConnectionStream>, Error> {
    let name = match permit.target().host() {
        TargetHost::Ip(ip) => ServerName::from(*ip),
        TargetHost::Name(name) => {
            ServerName::try_from(name.clone()).map_err(|_| Error::HttpRequestUriInvalid)?
        }
    };
    let config = options.tls_config().await.map_err(|error| {
        tracing::error!(%error, "TLS cannot be set up");
        Error::ConfigurationError
    })?;
    match TlsConnector::from(config).connect(name, tcp).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(tls_error(&error)),
    }
}

fn tls_error(error: &io::Error) -> Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => {
            tracing::info!(?why, "a server's certificate is refused");
            Error::TlsCertificateError
        }
        _ => Error::TlsProtocolError,
    }
}

/// Makes the TLS settings with the trusted root certificates of the local machine.
pub(crate) fn system_tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(prepare_tls(config))
}

/// Restricts TLS settings to HTTP/1.1, the gate's protocol, and without resumed sessions, because subagents
/// must not share sessions.
pub(crate) fn prepare_tls(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    config
}
