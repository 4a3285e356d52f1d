//! The options of the network gate, and the limit of open connections.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::Limits;
use belljar_work::{OPERATOR, WorkError, WorkKind};
use rustls::ClientConfig;
use tokio::sync::{OnceCell, Semaphore};

use super::connect;
use super::own::OwnListeners;
use super::resolve::{NameResolver, SystemResolver};

/// The most open connections of a jar, whatever its limits say.
const MAX_CONNECTIONS: usize = 256;

/// The options of the network gate; clones share their state. Default: the system's resolver, and the
/// trusted root certificates of the local machine.
#[derive(Clone)]
pub struct HttpOptions {
    resolver: Arc<dyn NameResolver>,
    /// The ports on which the current process listens.
    pub(crate) own: OwnListeners,
    tls: Option<Arc<ClientConfig>>,
    /// The TLS settings with the machine's root certificates. Made when first needed, because reading those
    /// takes longer than a whole call.
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
    /// Sets another resolver of names.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl NameResolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Sets other TLS settings, for example for a private certificate authority. The gate still sets its
    /// protocol (HTTP/1.1) and switches session resumption off.
    #[must_use]
    pub fn with_tls(mut self, config: ClientConfig) -> Self {
        self.tls = Some(Arc::new(connect::prepare_tls(config)));
        self
    }

    /// INV-114: sets the addresses on which the current process listens. No guest can connect to these ports
    /// on the local machine, whatever its grants. Default: none.
    #[must_use]
    pub fn with_own_listeners(mut self, listeners: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.own = OwnListeners::new(listeners);
        self
    }

    pub(crate) fn resolver(&self) -> &dyn NameResolver {
        &*self.resolver
    }

    /// The TLS settings: the given ones, or settings with the system's certificates, which are read once.
    pub(crate) async fn tls_config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        if let Some(own) = &self.tls {
            return Ok(Arc::clone(own));
        }
        let make = || async {
            let made =
                belljar_work::run_job(&CERTIFICATES, OPERATOR, |_| connect::system_tls()).await;
            let failed = |error: WorkError| rustls::Error::General(error.to_string());
            Ok(Arc::new(made.map_err(failed)??))
        };
        self.system_tls.get_or_try_init(make).await.cloned()
    }
}

/// Counts as work of the operator, because the certificates are the machine's and are read once.
const CERTIFICATES: WorkKind =
    WorkKind { name: "reading the system's certificates", time: Duration::from_secs(60) };

/// A limit of open connections: the ones that are still free.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit(pub(crate) Arc<Semaphore>);

impl ConnectionLimit {
    /// Makes the limit, with all connections free.
    pub(crate) fn from_limits(limits: &Limits) -> Self {
        let connections = usize::try_from(limits.connections).unwrap_or(usize::MAX);
        Self(Arc::new(Semaphore::new(connections.min(MAX_CONNECTIONS))))
    }
}
