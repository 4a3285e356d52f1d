//! The state of the server, and what a handler works with.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use belljar_agent::{Clock, SystemClock};
use belljar_session::{Admission, Look, Service};
use belljar_store::{Store, StoredSession, TENANT};
use rmcp::ServerHandler;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::metrics::Metrics;
use crate::http::auth::{Caller, Gatekeeper};
use crate::http::guard::Names;
use crate::http::ids::is_id;
use crate::http::in_flight::Flights;
use crate::http::last_check::LastCheck;
use crate::http::links::Links;
use crate::http::outward::{HiddenPlace, Outward};
use crate::http::peers::Peers;
use crate::http::problem::Problem;
use crate::http::rate::{LOGINS_PER_MINUTE, Rates};
use crate::http::strangers::{Counts, LINES_PER_MINUTE};
use crate::http::tokens::{Issuers, Tokens};
use crate::mcp::McpHandler;
use crate::mcp::door::Door;
use crate::routes::Route;
use crate::stream::pump::Bounded;
use crate::tenants::{OpenError, Services, Tenants};

/// How the server behaves.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The names that it goes by.
    pub names: Names,
    /// Whether callers without a key are let in as the operator, as long as there never was a key:
    /// on a loopback address alone. [`crate::may_listen`] says whether an address is one.
    pub open: bool,
    /// Requests a second of one key. Default: [`DEFAULT_RATE`].
    pub requests_per_second: u32,
    /// How long running turns get to end when the server stops, watched, answered and cancelled as
    /// before; the rest is journalled. Default: [`DEFAULT_DRAIN`].
    pub drain: Duration,
    /// Connections of all addresses at a time, WebSockets included. Default: what
    /// [`connections_within`] the descriptors of the process.
    pub connections: u32,
    /// Connections of one address at a time, WebSockets included; of IPv6, of its first 64 bits.
    /// Default: [`DEFAULT_ADDRESS_CONNECTIONS`], and at most a quarter of all.
    pub address_connections: u32,
    /// Bytes of requests and answers of all tenants that are held at a time. Default:
    /// [`crate::DEFAULT_BYTES_IN_FLIGHT`].
    pub bytes_in_flight: u64,
    /// The same of one tenant. Default: [`crate::DEFAULT_TENANT_BYTES_IN_FLIGHT`].
    pub tenant_bytes_in_flight: u64,
    /// Keys a minute that one address may present and that do not open; then its requests are
    /// refused for a while without a look at their key. Default: [`DEFAULT_ADDRESS_FAILURES`].
    pub address_failures: u32,
    /// How often an open stream or WebSocket looks whether its key still opens. Default:
    /// [`DEFAULT_KEY_CHECK`].
    pub key_check: Duration,
    /// For how long what the operator says of issuers counts before it is looked at again, whoever sends
    /// tokens. Default: [`DEFAULT_ISSUER_CHECK`].
    pub issuer_check: Duration,
    /// How long a stream or WebSocket may be open, whatever opened it. Default: [`DEFAULT_STREAM_LIFE`].
    pub stream_life: Duration,
    /// How often it is looked whether tenants were deleted. Default: [`DEFAULT_TENANT_CHECK`].
    pub tenant_check: Duration,
    /// How often the audit log gets a line with what strangers did meanwhile. Default:
    /// [`crate::DEFAULT_STRANGER_NOTES`].
    pub stranger_notes: Duration,
    /// Places of the host that no answer names, beside those of its tenants.
    pub hidden: Vec<HiddenPlace>,
    /// Days for which lines of the audit log are kept. Default: [`crate::DEFAULT_AUDIT_DAYS`].
    pub audit_days: u32,
    /// Whether a turn on OpenAI's wires that is not to be stored goes on when its caller is gone.
    /// Default: it is cancelled.
    pub finish_left_turns: bool,
}

/// Requests a second of one key where nothing is said: more than a person's tools make, less than
/// what keeps others from being answered.
pub const DEFAULT_RATE: u32 = 1_000;

/// Connections of one address where nothing is said: with the other bounds of a connection, half a
/// gibibyte of buffers.
pub const DEFAULT_ADDRESS_CONNECTIONS: u32 = 2_048;

/// Most connections of all addresses, however many descriptors there are.
const MAX_CONNECTIONS: u64 = 16_384;

/// Descriptors that are kept for what else a server opens: the store and its connections, files and
/// connections of tools, child processes. A quarter of them, within these bounds.
const RESERVE: std::ops::RangeInclusive<u64> = 64..=2_048;

/// Connections of all addresses that a process may have with so many descriptors, and leave itself
/// enough to work with.
pub fn connections_within(descriptors: u64) -> u32 {
    let reserve = (descriptors / 4).clamp(*RESERVE.start(), *RESERVE.end());
    let left = descriptors.saturating_sub(reserve).clamp(1, MAX_CONNECTIONS);
    u32::try_from(left).unwrap_or(u32::MAX)
}

/// Keys that do not open where nothing is said: one a second, from a program that was not told of
/// its new key.
pub const DEFAULT_ADDRESS_FAILURES: u32 = 60;

/// How often streams look at their key where nothing is said. Those of one key share a read of the
/// store, so what a revoked key yet sees is what happens within two of these.
pub const DEFAULT_KEY_CHECK: Duration = Duration::from_secs(1);

/// How old a look at the settings of issuers may be where nothing is said: a rule that is taken away lets
/// nobody in for longer than this and the look itself.
pub const DEFAULT_ISSUER_CHECK: Duration = Duration::from_secs(1);

/// How long streams may be open where nothing is said: a day, by which a token without an end is sent anew.
pub const DEFAULT_STREAM_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// How often it is looked for deleted tenants where nothing is said.
pub const DEFAULT_TENANT_CHECK: Duration = Duration::from_secs(5);

/// How old what a request shows of its tenant's settings may be. Turns look again themselves.
const LOOKED_AT: Duration = Duration::from_secs(1);

/// How long running turns get where nothing is said.
pub const DEFAULT_DRAIN: Duration = Duration::from_secs(30);

/// The server. Clones share it.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    config: ServerConfig,
    store: Store,
    services: Services,
    gatekeeper: Gatekeeper,
    links: Links,
    admission: Arc<Admission>,
    clock: Arc<dyn Clock>,
    rates: Rates,
    /// Files of the page for each address: strangers' buckets push out nobody's key.
    page_rates: Rates,
    /// Lines of the audit log that each key may cost by being refused.
    refusals: Rates,
    counts: Counts,
    outward: Arc<Outward>,
    /// Keys that addresses tried in vain.
    tried: Rates,
    /// Logins of each key.
    logins: Rates,
    peers: Arc<Peers>,
    flights: Flights,
    metrics: Metrics,
    mcp: OnceLock<Door>,
    checked: LastCheck,
    /// No more turns are taken.
    stopping: CancellationToken,
    /// No more turns run: streams end.
    stopped: CancellationToken,
    /// Connections and WebSockets.
    tasks: TaskTracker,
    /// Places for WebSockets that are taken.
    sockets: Bounded,
}

/// The context of a handler: who calls, and the sessions of that tenant.
pub(crate) struct Ctx {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    pub(crate) service: Service,
}

impl App {
    /// A server over a store. `tenants` opens those who are called for; `admission` is what all of
    /// them share.
    pub fn new(
        config: ServerConfig,
        store: Store,
        tenants: Arc<dyn Tenants>,
        admission: Arc<Admission>,
    ) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (registry, check) = (store.registry(), config.key_check);
        let gatekeeper =
            Gatekeeper::new(registry, Arc::clone(&clock), config.open, check, config.stream_life);
        let outward = Arc::new(Outward::new(&config.hidden));
        Self(Arc::new(Inner {
            rates: Rates::per_second(config.requests_per_second),
            page_rates: Rates::per_second(config.requests_per_second),
            refusals: Rates::per_minute(LINES_PER_MINUTE),
            counts: Counts::default(),
            tried: Rates::per_minute(config.address_failures),
            logins: Rates::per_minute(LOGINS_PER_MINUTE),
            peers: Peers::new(places(config.address_connections), places(config.connections)),
            flights: Flights::new(config.bytes_in_flight, config.tenant_bytes_in_flight),
            config,
            services: Services::new(tenants, store.registry(), Arc::clone(&outward)),
            outward,
            store,
            gatekeeper,
            admission,
            clock,
            links: Links::default(),
            metrics: Metrics::default(),
            mcp: OnceLock::new(),
            checked: LastCheck::default(),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
            tasks: TaskTracker::new(),
            sockets: Bounded::default(),
        }))
    }

    /// Resumes the interrupted turns of every tenant. Gives how many.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn recover(&self) -> Result<usize, belljar_store::StoreError> {
        let tenants = self.0.store.registry().tenants_in_flight().await?;
        Ok(self.0.services.recover(&tenants).await)
    }

    /// Looks whether each tenant could be served, and gives those that could not, by name.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn check_tenants(
        &self,
    ) -> Result<Vec<(String, OpenError)>, belljar_store::StoreError> {
        let tenants = self.0.store.registry().tenants().await?;
        Ok(self.0.services.check(&tenants).await)
    }

    /// Opens the operator's own tenant, so that what becomes of its settings is known before
    /// anybody calls. What keeps it from being opened is in the log.
    pub async fn open_own(&self) {
        // Whoever calls it is told the same.
        let _ = self.0.services.of(TENANT, TENANT).await;
    }

    /// Reads the settings of every tenant that is open again, whether files have changed or not;
    /// the others are read when they are opened. Turns that run keep theirs.
    pub async fn reload(&self) {
        self.0.services.look(Look::Anew).await;
    }

    /// How many tenants may call, the operator's own included, and how many of them could not be
    /// served when they were looked at last.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn tenants(&self) -> Result<(usize, usize), belljar_store::StoreError> {
        let tenants = self.0.store.registry().tenants().await?;
        let enabled = tenants.iter().filter(|tenant| !tenant.disabled).count();
        Ok((enabled, self.0.services.not_served()))
    }

    /// Whether callers need a key.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn needs_keys(&self) -> Result<bool, belljar_store::StoreError> {
        Ok(!self.0.config.open || self.0.store.registry().keys_needed().await?)
    }

    /// A token for the operator, who is to follow it to the page: `/login#once=TOKEN`. It opens once,
    /// for [`crate::LINK_MINUTES`] minutes, with the rights of an admin of the operator's own tenant.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn offer_link(&self) -> Result<String, getrandom::Error> {
        self.0.links.offer(Instant::now())
    }

    /// Gives the messages at `/mcp` to a handler of the embedding program: `make` is given belljar's own,
    /// one for each session and for each message outside such, to be asked for the rest. Who calls is
    /// known before, and nothing that it does widens what belljar's own may. To be said before the
    /// server serves; later it changes nothing.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn handle_mcp<H: ServerHandler>(
        &self,
        make: impl Fn(McpHandler) -> H + Send + Sync + 'static,
    ) -> Result<(), getrandom::Error> {
        let door = Door::new(self.0.stopped.child_token(), make)?;
        self.0.mcp.get_or_init(|| door);
        Ok(())
    }

    /// Takes tokens of these issuers beside belljar's own keys, as their settings say it. To be said before
    /// the server serves; what is said first counts.
    pub fn trust(&self, issuers: Arc<dyn Issuers>) {
        self.0.gatekeeper.take_tokens(Tokens::new(issuers, self.0.config.issuer_check));
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.0.config
    }

    /// The store, as the operator's own tenant sees it.
    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn services(&self) -> &Services {
        &self.0.services
    }

    pub(crate) fn gatekeeper(&self) -> &Gatekeeper {
        &self.0.gatekeeper
    }

    pub(crate) fn links(&self) -> &Links {
        &self.0.links
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// Now, in milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.0.clock.now().as_millisecond()
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.0.rates
    }

    pub(crate) fn page_rates(&self) -> &Rates {
        &self.0.page_rates
    }

    pub(crate) fn refusals(&self) -> &Rates {
        &self.0.refusals
    }

    pub(crate) fn outward(&self) -> &Arc<Outward> {
        &self.0.outward
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    pub(crate) fn tried(&self) -> &Rates {
        &self.0.tried
    }

    pub(crate) fn logins(&self) -> &Rates {
        &self.0.logins
    }

    pub(crate) fn peers(&self) -> &Arc<Peers> {
        &self.0.peers
    }

    pub(crate) fn flights(&self) -> &Flights {
        &self.0.flights
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The door of MCP, made when somebody first comes to it.
    pub(crate) fn mcp(&self) -> Result<&Door, Problem> {
        if let Some(door) = self.0.mcp.get() {
            return Ok(door);
        }
        let door = Door::new(self.0.stopped.child_token(), |own| own);
        let door = door.map_err(|error| Problem::bug(&format!("no random bytes: {error}")))?;
        Ok(self.0.mcp.get_or_init(|| door))
    }

    pub(crate) fn last_check(&self) -> &LastCheck {
        &self.0.checked
    }

    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.is_cancelled()
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(crate) fn sockets(&self) -> &Bounded {
        &self.0.sockets
    }

    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.0.stopped
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("config", &self.0.config).finish_non_exhaustive()
    }
}

impl Ctx {
    /// A session of this tenant. One of another tenant's is not there.
    pub(crate) async fn session(&self, id: &str) -> Result<StoredSession, Problem> {
        if !is_id(id) {
            return Err(Problem::not_found("session", id));
        }
        Ok(self.service.store().session(id).await?)
    }

    pub(crate) fn store(&self) -> &Store {
        self.service.store()
    }

    /// Looks something up in the tenant's files, on a thread of the tenant's share.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        Ok(self.service.look_up(look).await?)
    }
}

impl FromRequestParts<App> for Ctx {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Problem::bug("a route has no gate before it"))?;
        let service = app.services().of(&caller.tenant, &caller.tenant_id).await?;
        service.look_within(LOOKED_AT).await;
        Ok(Self { app: app.clone(), caller, service })
    }
}

fn places(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The route of a request, for what is counted and logged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matched(pub(crate) &'static Route);
