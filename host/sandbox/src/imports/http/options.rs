//! The options of the network gate, and the limit of connections.

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

/// The most open connections of one jar, whatever its limits.
const MAX_CONNECTIONS: usize = 256;

/// Options of the network gate, with state shared by clones. Default: the system's resolver and the trusted
/// roots of this machine.
#[derive(Clone)]
pub struct HttpOptions {
    resolver: Arc<dyn NameResolver>,
    /// The addresses on which this process listens.
    pub(crate) own: OwnListeners,
    tls: Option<Arc<ClientConfig>>,
    /// Made when first needed, because reading the machine's root certificates takes longer than a whole
    /// call.
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
    /// Sets another resolver.
    #[must_use]
    pub fn with_resolver(mut self, resolver: impl NameResolver) -> Self {
        self.resolver = Arc::new(resolver);
        self
    }

    /// Sets another TLS configuration, for example for a private certificate authority. The gate sets its
    /// protocol (HTTP/1.1) and switches session resumption off.
    #[must_use]
    pub fn with_tls(mut self, config: ClientConfig) -> Self {
        self.tls = Some(Arc::new(connect::prepare_tls(config)));
        self
    }

    /// INV-114: sets the listening addresses of this process. No guest can connect to a listener, by any
    /// address of this machine, whatever the grants. Default: none.
    #[must_use]
    pub fn with_own_listeners(mut self, listeners: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.own = OwnListeners::new(listeners);
        self
    }

    pub(crate) fn resolver(&self) -> &dyn NameResolver {
        &*self.resolver
    }

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

/// Work of the operator, because the certificates are the machine's, and are read once.
const CERTIFICATES: WorkKind =
    WorkKind { name: "reading the system's certificates", time: Duration::from_secs(60) };

/// The free slots for open connections.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit(pub(crate) Arc<Semaphore>);

impl ConnectionLimit {
    /// Makes the slots for connections within these limits, all of them free.
    pub(crate) fn from_limits(limits: &Limits) -> Self {
        let connections = usize::try_from(limits.connections).unwrap_or(usize::MAX);
        Self(Arc::new(Semaphore::new(connections.min(MAX_CONNECTIONS))))
    }
}
