//! The network gate: `wasi:http/outgoing-handler` with every request checked, every
//! connection made to an address that was checked, every byte billed, and secrets joined by
//! the host.
//!
//! The gate speaks HTTP/1.1, over TLS or in clear text. It follows no redirect (the guest
//! sees the reply and sends the next request, which is checked like the first), undoes no
//! compression and uses no proxy.
//!
//! In a run without secrets a reply reaches the guest as it comes. In a run with secrets it is
//! taken whole and searched first, so a reply that never ends is never seen.

mod body;
mod connect;
mod forbidden;
mod gate;
mod host;
mod metered;
mod own;
mod resolve;
mod scan;
mod secrets;
#[cfg(test)]
mod tests;
mod whole;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use belljar_policy::{HostScope, Limits};
use rustls::ClientConfig;
use tokio::sync::{OnceCell, Semaphore};
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types};
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks,
};

use self::gate::{Gate, Io, MAX_HEADER_BYTES};
use self::host::Held;
use self::own::OwnListeners;
use crate::record::Record;

pub use self::resolve::{Resolver, SystemResolver};
pub(crate) use self::secrets::{JarSecrets, Watch};
pub use self::secrets::{MAX_VALUE, MIN_VALUE, Secret, SecretError, SecretStore};

/// Bytes of one write to a request's body: the guest names the size, and the host holds it.
const BODY_CHUNK: usize = 64 << 10;
/// Connections that one jar may have open, whatever its limits say.
const MAX_CONNECTIONS: usize = 256;

/// How the network gate behaves. Cloning shares what it holds. The default uses the system's
/// resolver and the certificate roots that this machine trusts.
#[derive(Clone)]
pub struct HttpOptions {
    resolver: Arc<dyn Resolver>,
    /// Where this process itself listens.
    own: OwnListeners,
    tls: Option<Arc<ClientConfig>>,
    /// Made on first need: reading the machine's roots takes longer than a whole call.
    system_tls: Arc<OnceCell<Arc<ClientConfig>>>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            own: OwnListeners::default(),
            tls: None,
            system_tls: Arc::default(),
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions").field("own_tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

impl HttpOptions {
    /// Resolves names with another resolver.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl Resolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Uses another TLS configuration, as for a private certificate authority. The gate sets
    /// its protocol (HTTP/1.1) and switches session resumption off.
    #[must_use]
    pub fn with_tls(mut self, config: ClientConfig) -> Self {
        self.tls = Some(Arc::new(connect::prepared(config)));
        self
    }

    /// INV-114: where this process itself listens. No guest is connected to it, by whatever address
    /// of this machine, whatever is granted. Default: it listens nowhere.
    #[must_use]
    pub fn with_own_listeners(mut self, listeners: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.own = OwnListeners::new(listeners);
        self
    }

    fn resolver(&self) -> &dyn Resolver {
        &*self.resolver
    }

    async fn tls(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        if let Some(own) = &self.tls {
            return Ok(Arc::clone(own));
        }
        let make = || async {
            let made = tokio::task::spawn_blocking(connect::system_tls).await;
            let failed = |_| rustls::Error::General("the task was cancelled".to_owned());
            Ok(Arc::new(made.map_err(failed)??))
        };
        self.system_tls.get_or_try_init(make).await.cloned()
    }
}

/// The network of one store.
pub(crate) struct HttpCtx {
    inner: WasiHttpCtx,
    hooks: Hooks,
    held: Held,
}

/// A store's network together with its resource table.
pub(crate) struct HttpView<'a> {
    /// The network.
    pub(crate) ctx: &'a mut HttpCtx,
    /// The table of all resources of the store.
    pub(crate) table: &'a mut ResourceTable,
}

/// The data of a store that has a network.
pub(crate) trait HasHttp: Send + 'static {
    /// The network with the table.
    fn http(&mut self) -> HttpView<'_>;
}

/// Links `wasi:http/types` and `wasi:http/outgoing-handler`.
pub(crate) fn add_to_linker<T: HasHttp>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    let options = LinkOptions::default();
    types::add_to_linker::<T, Http>(linker, &(&options).into(), |data| data.http())?;
    outgoing_handler::add_to_linker::<T, Http>(linker, |data| data.http())
}

struct Http;

impl HasData for Http {
    type Data<'a> = HttpView<'a>;
}

/// The connections that may be open at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Connections(Arc<Semaphore>);

impl Connections {
    /// As many as the limits say, none of them open.
    pub(crate) fn of(limits: &Limits) -> Self {
        let connections = usize::try_from(limits.connections).unwrap_or(usize::MAX);
        Self(Arc::new(Semaphore::new(connections.min(MAX_CONNECTIONS))))
    }
}

impl HttpCtx {
    /// The network of a new store. Nothing is opened. Its connections count against its own
    /// limits and against those that the jar's stores share.
    pub(crate) fn new(
        scope: HostScope,
        secrets: JarSecrets,
        limits: &Limits,
        jar: &Connections,
        record: Arc<Record>,
        options: HttpOptions,
    ) -> Self {
        let connections = [Connections::of(limits), jar.clone()];
        let forbidden = forbidden::filter(secrets.headers());
        let gate = Gate { scope, secrets, forbidden, record, options, connections };
        let mut inner = WasiHttpCtx::new();
        inner.set_field_size_limit(MAX_HEADER_BYTES);
        Self { inner, hooks: Hooks { gate: Arc::new(gate) }, held: Held::default() }
    }
}

struct Hooks {
    gate: Arc<Gate>,
}

impl WasiHttpHooks for Hooks {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::clone(&self.gate.forbidden)
    }

    /// The gate writes `Host` itself, from the URL that it checked.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Io,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Io), Error>> + Send> {
        let operation = self.gate.record.operation("an outgoing request");
        let sending = Arc::clone(&self.gate).send(request, options);
        Box::new(async move {
            let (response, io) = sending.await?;
            // Closing the jar waits until the connection is gone.
            let io: Io = Box::new(async move {
                let _operation = operation;
                Box::into_pin(io).await
            });
            Ok((response, io))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK
    }
}
