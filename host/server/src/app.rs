//! The state of the server, and the context of a handler.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use belljar_agent::{Clock, SystemClock};
use belljar_session::{Admission, LookDepth, Service};
use belljar_store::{Store, StoredSession, TENANT};
use belljar_work::StopSignal;
use rmcp::ServerHandler;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::metrics::ServerMetrics;
use crate::http::auth::{Caller, Gatekeeper};
use crate::http::guard::ServerNames;
use crate::http::ids::is_id;
use crate::http::in_flight::ByteBounds;
use crate::http::last_check::LastCheck;
use crate::http::links::LoginLinks;
use crate::http::outward::{HiddenPlace, PlaceHider};
use crate::http::peers::PeerConnections;
use crate::http::problem::Problem;
use crate::http::rate::{LOGINS_PER_MINUTE, RateLimiter};
use crate::http::strangers::{LINES_PER_MINUTE, RefusalCounts};
use crate::http::tokens::{IssuerSource, TokenGate};
use crate::mcp::McpHandler;
use crate::mcp::door::McpDoor;
use crate::routes::Route;
use crate::stream::pump::BoundedCounter;
use crate::tenants::{OpenError, TenantOpener, TenantServices};

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The host names by which the server may be called, and the origins of pages that may call it.
    pub names: ServerNames,
    /// True if callers without a key are admitted as the operator until the first key is made. Allowed on a
    /// loopback address only; see [`crate::may_listen`].
    pub open: bool,
    /// The most requests per second of one key. Default: [`DEFAULT_RATE`].
    pub requests_per_second: u32,
    /// The time that running turns get to end when the server stops. Meanwhile they can be watched,
    /// answered and cancelled as before; turns that do not end in time are resumed from their journal
    /// at the next start. Default: [`DEFAULT_DRAIN`].
    pub drain: Duration,
    /// The most simultaneous connections of all addresses, including WebSockets. Default:
    /// [`connections_within`] for the number of file descriptors of the process.
    pub connections: u32,
    /// The most simultaneous connections of one address, including WebSockets; an IPv6 address counts
    /// by its first 64 bits. Default: [`DEFAULT_ADDRESS_CONNECTIONS`], and at most a quarter of all
    /// connections.
    pub address_connections: u32,
    /// The most bytes of requests and answers that the server holds at a time, for all tenants.
    /// Default: [`crate::DEFAULT_BYTES_IN_FLIGHT`].
    pub bytes_in_flight: u64,
    /// The most bytes of requests and answers held at a time for one tenant. Default:
    /// [`crate::DEFAULT_TENANT_BYTES_IN_FLIGHT`].
    pub tenant_bytes_in_flight: u64,
    /// The most invalid keys that one address may send in a minute. After that, requests of the address
    /// are refused for a while without a check of their key. Default: [`DEFAULT_ADDRESS_FAILURES`].
    pub address_failures: u32,
    /// The interval in which an open stream or WebSocket checks whether its key is still valid.
    /// Default: [`DEFAULT_KEY_CHECK`].
    pub key_check: Duration,
    /// The time for which the operator's settings of issuers are used before they are read again,
    /// however many tokens arrive. Default: [`DEFAULT_ISSUER_CHECK`].
    pub issuer_check: Duration,
    /// The time after which an open stream or WebSocket is closed, whatever the caller's credential.
    /// Default: [`DEFAULT_STREAM_LIFE`].
    pub stream_life: Duration,
    /// The interval in which the server looks for deleted tenants. Default: [`DEFAULT_TENANT_CHECK`].
    pub tenant_check: Duration,
    /// The interval in which the audit log gets a line about refused callers without a valid key.
    /// Default: [`crate::DEFAULT_STRANGER_NOTES`].
    pub stranger_notes: Duration,
    /// Directories of the host that are masked in every answer, besides the tenants' own.
    pub hidden: Vec<HiddenPlace>,
    /// The number of days for which lines of the audit log are kept. Default:
    /// [`crate::DEFAULT_AUDIT_DAYS`].
    pub audit_days: u32,
    /// True if a turn of OpenAI's API that is not to be stored continues after its caller has
    /// disconnected. Default: the turn is cancelled.
    pub finish_left_turns: bool,
}

/// The default for the requests per second of one key: more than a person's programs send, and less
/// than a load that slows others down.
pub const DEFAULT_RATE: u32 = 1_000;

/// The default for the connections of one address. With the other bounds of a connection, that is half
/// a gibibyte of buffers.
pub const DEFAULT_ADDRESS_CONNECTIONS: u32 = 2_048;

/// The most connections of all addresses, even if the process has more file descriptors.
const MAX_CONNECTIONS: u64 = 16_384;

/// The file descriptors kept free for other uses, for example the store, files and connections of
/// tools, and child processes: a quarter of all descriptors, within this range.
const RESERVE: std::ops::RangeInclusive<u64> = 64..=2_048;

/// The most connections for which a process has enough file descriptors, after the reserve for its
/// other work. For example, 1,024 descriptors allow 768 connections.
pub fn connections_within(descriptors: u64) -> u32 {
    let reserve = (descriptors / 4).clamp(*RESERVE.start(), *RESERVE.end());
    let left = descriptors.saturating_sub(reserve).clamp(1, MAX_CONNECTIONS);
    u32::try_from(left).unwrap_or(u32::MAX)
}

/// The default for invalid keys of one address in a minute: one a second, for example from a program
/// with an old key.
pub const DEFAULT_ADDRESS_FAILURES: u32 = 60;

/// The default interval in which an open stream checks its key. The streams of a revoked key end within
/// two intervals, because all streams of one key share a read of the store.
pub const DEFAULT_KEY_CHECK: Duration = Duration::from_secs(1);

/// The default time for which issuers' settings are used. After the operator removes a rule, its tokens
/// are accepted for this time and the time of the next read.
pub const DEFAULT_ISSUER_CHECK: Duration = Duration::from_secs(1);

/// The default time after which a stream is closed: a day, so a token without an expiry must be sent again
/// once a day.
pub const DEFAULT_STREAM_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// The default interval between two searches for deleted tenants.
pub const DEFAULT_TENANT_CHECK: Duration = Duration::from_secs(5);

/// The longest time for which an answer may show a tenant's old settings. Turns read the settings
/// themselves.
const LOOKED_AT: Duration = Duration::from_secs(1);

/// The default time that running turns get to end when the server stops.
pub const DEFAULT_DRAIN: Duration = Duration::from_secs(30);

/// The server. Clones share one state.
#[derive(Clone)]
pub struct App(Arc<AppInner>);

struct AppInner {
    config: ServerConfig,
    store: Store,
    services: TenantServices,
    gatekeeper: Gatekeeper,
    links: LoginLinks,
    admission: Arc<Admission>,
    clock: Arc<dyn Clock>,
    rates: RateLimiter,
    /// Limits each address's requests for files of the page. Separate from `rates`, so addresses of strangers
    /// cannot displace a key from that limiter's memory.
    page_rates: RateLimiter,
    /// Limits the audit log's lines about refusals, for each key. Refusals beyond the limit are only
    /// counted, in `counts`.
    refusals: RateLimiter,
    counts: RefusalCounts,
    outward: Arc<PlaceHider>,
    /// Limits the invalid keys that each address may send.
    tried: RateLimiter,
    /// Limits the logins of each key.
    logins: RateLimiter,
    peers: Arc<PeerConnections>,
    flights: ByteBounds,
    metrics: ServerMetrics,
    mcp: OnceLock<McpDoor>,
    checked: LastCheck,
    /// Cancelled when the server accepts no more turns.
    stopping: CancellationToken,
    /// Cancelled when no turn runs any more, so open streams end.
    stopped: CancellationToken,
    /// The tasks of connections and WebSockets, awaited at the stop.
    tasks: TaskTracker,
    /// The number of open WebSockets.
    sockets: BoundedCounter,
}

/// The context of a handler: the authenticated caller, and the service with the sessions of the
/// caller's tenant.
pub(crate) struct HandlerContext {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    pub(crate) service: Service,
}

impl App {
    /// Builds a server on a store. `tenants` opens tenants on demand; all tenants share the places of
    /// `admission`.
    pub fn new(
        config: ServerConfig,
        store: Store,
        tenants: Arc<dyn TenantOpener>,
        admission: Arc<Admission>,
    ) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (registry, check) = (store.tenant_registry(), config.key_check);
        let gatekeeper =
            Gatekeeper::new(registry, Arc::clone(&clock), config.open, check, config.stream_life);
        let outward = Arc::new(PlaceHider::new(&config.hidden));
        Self(Arc::new(AppInner {
            rates: RateLimiter::per_second(config.requests_per_second),
            page_rates: RateLimiter::per_second(config.requests_per_second),
            refusals: RateLimiter::per_minute(LINES_PER_MINUTE),
            counts: RefusalCounts::default(),
            tried: RateLimiter::per_minute(config.address_failures),
            logins: RateLimiter::per_minute(LOGINS_PER_MINUTE),
            peers: PeerConnections::new(
                permit_count(config.address_connections),
                permit_count(config.connections),
            ),
            flights: ByteBounds::new(config.bytes_in_flight, config.tenant_bytes_in_flight),
            config,
            services: TenantServices::new(tenants, store.tenant_registry(), Arc::clone(&outward)),
            outward,
            store,
            gatekeeper,
            admission,
            clock,
            links: LoginLinks::default(),
            metrics: ServerMetrics::default(),
            mcp: OnceLock::new(),
            checked: LastCheck::default(),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
            tasks: TaskTracker::new(),
            sockets: BoundedCounter::default(),
        }))
    }

    /// Resumes the turns of every tenant that were interrupted when the server stopped. Returns their
    /// number.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn recover_turns(&self) -> Result<usize, belljar_store::StoreError> {
        let tenants = self.0.store.tenant_registry().tenants_in_flight().await?;
        Ok(self.0.services.recover_tenants(&tenants).await)
    }

    /// Checks for each tenant whether its settings and workspace are usable, and returns the tenants
    /// that are not, sorted by name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn check_tenants(
        &self,
    ) -> Result<Vec<(String, OpenError)>, belljar_store::StoreError> {
        let tenants = self.0.store.tenant_registry().list_tenants().await?;
        Ok(self.0.services.check_tenants(&tenants).await)
    }

    /// Opens the operator's own tenant, so faults of its settings are known before the first call. Faults are
    /// logged.
    pub async fn open_own(&self) {
        // The error is ignored here, because every later caller of this tenant gets the same error.
        let _ = self.0.services.open_service(TENANT, TENANT).await;
    }

    /// Reads the settings of every open tenant again, even if no file has changed. A tenant that is not open
    /// needs no such call, because opening reads its settings. Running turns keep their settings.
    pub async fn reload_settings(&self) {
        self.0.services.look_for_changes(LookDepth::Anew).await;
    }

    /// The number of tenants that may call, including the operator's own, and how many of them could not be
    /// served at the last check.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn count_tenants(&self) -> Result<(usize, usize), belljar_store::StoreError> {
        let tenants = self.0.store.tenant_registry().list_tenants().await?;
        let enabled = tenants.iter().filter(|tenant| !tenant.disabled).count();
        Ok((enabled, self.0.services.not_served()))
    }

    /// Returns whether callers of this server need a key.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn needs_keys(&self) -> Result<bool, belljar_store::StoreError> {
        Ok(!self.0.config.open || self.0.store.tenant_registry().keys_needed().await?)
    }

    /// Makes a one-time token with which the operator opens the page: `/login#once=TOKEN`. It is valid
    /// once, for [`crate::LINK_MINUTES`] minutes, with an admin's rights in the operator's own tenant.
    ///
    /// # Errors
    /// When the system returns no random bytes.
    pub fn offer_link(&self) -> Result<String, getrandom::Error> {
        self.0.links.offer_link(Instant::now())
    }

    /// Replaces the handler of MCP messages at `/mcp` by a handler of the embedding program. `make` is
    /// called for each session, and for each message outside of sessions; it gets belljar's own
    /// handler, to which the new handler may pass messages on. The caller is authenticated before, and
    /// the new handler cannot widen the rights of belljar's own. Must be called before serving; later
    /// it has no effect.
    ///
    /// # Errors
    /// When the system returns no random bytes.
    pub fn handle_mcp<H: ServerHandler>(
        &self,
        make: impl Fn(McpHandler) -> H + Send + Sync + 'static,
    ) -> Result<(), getrandom::Error> {
        let door = McpDoor::new(self.0.stopped.child_token(), make)?;
        self.0.mcp.get_or_init(|| door);
        Ok(())
    }

    /// Accepts tokens of external issuers besides belljar's own keys. Must be called before serving;
    /// only the first call has an effect.
    pub fn trust_issuers(&self, issuers: Arc<dyn IssuerSource>) {
        self.0.gatekeeper.take_tokens(TokenGate::new(issuers, self.0.config.issuer_check));
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.0.config
    }

    /// The store of the operator's own tenant.
    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn services(&self) -> &TenantServices {
        &self.0.services
    }

    pub(crate) fn gatekeeper(&self) -> &Gatekeeper {
        &self.0.gatekeeper
    }

    pub(crate) fn links(&self) -> &LoginLinks {
        &self.0.links
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// The present time, in milliseconds since 1970.
    pub(crate) fn now_millis(&self) -> i64 {
        self.0.clock.now().as_millisecond()
    }

    pub(crate) fn request_rates(&self) -> &RateLimiter {
        &self.0.rates
    }

    pub(crate) fn page_rates(&self) -> &RateLimiter {
        &self.0.page_rates
    }

    pub(crate) fn refusal_rates(&self) -> &RateLimiter {
        &self.0.refusals
    }

    pub(crate) fn place_hider(&self) -> &Arc<PlaceHider> {
        &self.0.outward
    }

    pub(crate) fn refusal_counts(&self) -> &RefusalCounts {
        &self.0.counts
    }

    pub(crate) fn guess_rates(&self) -> &RateLimiter {
        &self.0.tried
    }

    pub(crate) fn login_rates(&self) -> &RateLimiter {
        &self.0.logins
    }

    pub(crate) fn peers(&self) -> &Arc<PeerConnections> {
        &self.0.peers
    }

    pub(crate) fn byte_bounds(&self) -> &ByteBounds {
        &self.0.flights
    }

    pub(crate) fn metrics(&self) -> &ServerMetrics {
        &self.0.metrics
    }

    /// The MCP door, made on first use.
    pub(crate) fn mcp_door(&self) -> Result<&McpDoor, Problem> {
        if let Some(door) = self.0.mcp.get() {
            return Ok(door);
        }
        let door = McpDoor::new(self.0.stopped.child_token(), |own| own);
        let door = door.map_err(|error| Problem::bug(&format!("no random bytes: {error}")))?;
        Ok(self.0.mcp.get_or_init(|| door))
    }

    pub(crate) fn last_check(&self) -> &LastCheck {
        &self.0.checked
    }

    /// A token that is cancelled when the server accepts no more turns; running turns go on.
    pub(crate) fn stopping_token(&self) -> &CancellationToken {
        &self.0.stopping
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.is_cancelled()
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(crate) fn sockets(&self) -> &BoundedCounter {
        &self.0.sockets
    }

    /// A token that is cancelled when no turn runs any more, so streams and open answers end.
    pub(crate) fn stopped_token(&self) -> &CancellationToken {
        &self.0.stopped
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("config", &self.0.config).finish_non_exhaustive()
    }
}

impl HandlerContext {
    /// Finds a session of the caller's tenant. A session of another tenant is reported as missing.
    pub(crate) async fn find_session(&self, id: &str) -> Result<StoredSession, Problem> {
        if !is_id(id) {
            return Err(Problem::not_found("session", id));
        }
        Ok(self.service.store().read_session(id).await?)
    }

    pub(crate) fn store(&self) -> &Store {
        self.service.store()
    }

    /// Runs `read` on a thread for blocking work, for example to read the tenant's files. Each tenant
    /// has a share of these threads.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        look: impl FnOnce(&StopSignal) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        Ok(self.service.look_up(look).await?)
    }
}

impl FromRequestParts<App> for HandlerContext {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Problem::bug("a route has no gate before it"))?;
        let service = app.services().open_service(&caller.tenant, &caller.tenant_id).await?;
        service.look_within(LOOKED_AT).await;
        Ok(Self { app: app.clone(), caller, service })
    }
}

fn permit_count(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The route that a request matched, attached to its answer for counts and logs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatchedRoute(pub(crate) &'static Route);
