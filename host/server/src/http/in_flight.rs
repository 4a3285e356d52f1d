//! Limits the bytes of requests and answers in memory at a time: of the whole server, of each tenant
//! and of each key. One tenant's unfinished bodies and slow readers use no other tenant's share, and
//! one key cannot use the whole share of its tenant.
//!
//! A request holds the bytes of its body that have arrived; an answer holds its own bytes until it is
//! sent. A handler that reads much of the store reserves a page's bytes first. All bytes are freed when
//! the answer is sent or dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::held::HoldingBody;
use crate::http::problem::Problem;

/// The default for the bytes held by the whole server.
pub const DEFAULT_BYTES_IN_FLIGHT: u64 = 512 << 20;

/// The default for the bytes held for one tenant: a quarter of the server's.
pub const DEFAULT_TENANT_BYTES_IN_FLIGHT: u64 = 128 << 20;

/// The bytes that an event stream counts for, between the store and its client. By default a tenant's
/// bytes allow a thousand simultaneous streams.
pub(crate) const STREAM_BYTES: u64 = 128 << 10;

/// The bytes that a WebSocket counts for: its buffers and state.
pub(crate) const SOCKET_BYTES: u64 = 32 << 10;

/// The bytes that a route reserves which reads many rows before its answer: a page of rows in three
/// forms (read, parsed and written).
pub(crate) const PAGE_BYTES: u64 = 16 << 20;

/// The time that such a route waits until other requests have freed enough bytes.
const WAIT: Duration = Duration::from_secs(5);

/// The time after which a refused caller should try again.
const RETRY: Duration = Duration::from_secs(2);

/// The share of a tenant's bytes for one key, as a fraction (3/4): the rest is for other keys.
const OF_ONE_KEY: (u32, u32) = (3, 4);

/// The most keys remembered while they hold no bytes.
const MAX_IDLE_KEYS: usize = 1_024;

/// The bytes that one semaphore permit stands for.
const UNIT: u64 = 1 << 10;

/// The limits on held bytes, for the server, its tenants and their keys.
#[derive(Debug)]
pub(crate) struct ByteBounds {
    all: Arc<Semaphore>,
    /// The most permits of one tenant, in units of [`UNIT`] bytes.
    most: u32,
    /// The permits of each tenant. The number of entries is bounded by the number of tenants, because
    /// every caller here was authenticated.
    tenants: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    keys: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

/// The bytes held for one request and its answer. Dropping the last clone frees the bytes.
#[derive(Debug, Clone)]
pub(crate) struct InFlight(Arc<FlightInner>);

#[derive(Debug)]
struct FlightInner {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
    key: Option<Arc<Semaphore>>,
    most: u32,
    held: Mutex<HeldBytes>,
}

#[derive(Debug, Default)]
struct HeldBytes {
    units: u32,
    /// The permits taken from the semaphores of the key, the tenant and the server.
    permits: Vec<OwnedSemaphorePermit>,
}

impl ByteBounds {
    /// Creates limits: `all` bytes for the server, `of_one` bytes for each tenant.
    pub(crate) fn new(all: u64, of_one: u64) -> Self {
        let (all, most) = (byte_units(all).max(1), byte_units(of_one).max(1));
        let all = Arc::new(Semaphore::new(permit_count(all)));
        let most = most.min(units_of(&all));
        Self { most, all, tenants: Mutex::default(), keys: Mutex::default() }
    }

    /// Begins a request of a tenant, by a key if it has one. The request holds no bytes yet.
    pub(crate) fn begin_request(&self, tenant: &Arc<str>, key: Option<&Arc<str>>) -> InFlight {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let own = tenants.entry(Arc::clone(tenant));
        let own =
            Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(permit_count(self.most)))));
        drop(tenants);
        let (part, of) = OF_ONE_KEY;
        let of_key = (self.most / of).saturating_mul(part).max(1);
        let most = if key.is_some() { of_key } else { self.most };
        let (all, key) = (Arc::clone(&self.all), key.map(|key| self.key_bound(key, of_key)));
        InFlight(Arc::new(FlightInner { all, own, key, most, held: Mutex::default() }))
    }

    /// The permits of one key. If too many keys are remembered, those that hold nothing are forgotten first.
    fn key_bound(&self, key: &Arc<str>, most: u32) -> Arc<Semaphore> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.contains_key(key) && keys.len() >= MAX_IDLE_KEYS {
            keys.retain(|_, of| Arc::strong_count(of) > 1);
        }
        let own = keys.entry(Arc::clone(key));
        Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(permit_count(most)))))
    }
}

impl InFlight {
    /// Raises the held bytes to at least `bytes`, or returns a problem if that many are not free. More
    /// than the limit of a key or tenant counts as that whole limit.
    pub(crate) fn try_hold(&self, bytes: u64) -> Result<(), Problem> {
        let more = self.missing_units(bytes);
        if more == 0 {
            return Ok(());
        }
        let mut permits = Vec::new();
        for (semaphore, full) in self.0.bounds_with_problems() {
            let permit = Arc::clone(semaphore).try_acquire_many_owned(more);
            permits.push(permit.map_err(|_| full())?);
        }
        self.keep_permits(more, permits);
        Ok(())
    }

    /// Like [`Self::try_hold`], but waits some seconds for other requests to free their bytes.
    pub(crate) async fn wait_to_hold(&self, bytes: u64) -> Result<(), Problem> {
        let more = self.missing_units(bytes);
        if more == 0 {
            return Ok(());
        }
        let mut permits = Vec::new();
        for (semaphore, full) in self.0.bounds_with_problems() {
            let permit = Arc::clone(semaphore).acquire_many_owned(more);
            match tokio::time::timeout(WAIT, permit).await {
                Ok(Ok(permit)) => permits.push(permit),
                Ok(Err(_)) | Err(_) => return Err(full()),
            }
        }
        self.keep_permits(more, permits);
        Ok(())
    }

    /// Frees all held bytes beyond `bytes`.
    pub(crate) fn shrink_to(&self, bytes: u64) {
        let mut held = self.lock_held();
        let less = held.units.saturating_sub(byte_units(bytes));
        for permit in &mut held.permits {
            // Dropping the split-off permits returns them to the semaphores.
            drop(permit.split(permit_count(less)));
        }
        held.units -= less;
    }

    /// Wraps the answer so that its bytes are held until it is sent; a body of unknown length counts as
    /// an event stream. If too few bytes are free, returns a problem instead.
    pub(crate) fn wrap_response(self, response: Response) -> Response {
        let exact = response.body().size_hint().exact();
        if let Err(problem) = self.try_hold(exact.unwrap_or(STREAM_BYTES)) {
            return problem.into_response();
        }
        if let Some(bytes) = exact {
            self.shrink_to(bytes);
        }
        response.map(|body| HoldingBody::wrap_body(body, self))
    }

    /// The number of permits still needed to hold `bytes`.
    fn missing_units(&self, bytes: u64) -> u32 {
        byte_units(bytes).min(self.0.most).saturating_sub(self.lock_held().units)
    }

    /// Adds permits to those that the request holds already.
    fn keep_permits(&self, more: u32, permits: Vec<OwnedSemaphorePermit>) {
        let mut held = self.lock_held();
        held.units = held.units.saturating_add(more);
        if held.permits.is_empty() {
            held.permits = permits;
            return;
        }
        for (permit, more) in held.permits.iter_mut().zip(permits) {
            permit.merge(more);
        }
    }

    fn lock_held(&self) -> MutexGuard<'_, HeldBytes> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlightInner {
    /// Each limit that applies to a request, with the problem if it is reached. The narrowest comes first, so
    /// a request that waits for its key's limit takes no bytes from other callers.
    fn bounds_with_problems(&self) -> impl Iterator<Item = (&Arc<Semaphore>, fn() -> Problem)> {
        let key = self.key.iter().map(|key| (key, key_full as fn() -> Problem));
        key.chain([
            (&self.own, tenant_full as fn() -> Problem),
            (&self.all, all_full as fn() -> Problem),
        ])
    }
}

fn byte_units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

fn permit_count(units: u32) -> usize {
    usize::try_from(units).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

fn units_of(semaphore: &Semaphore) -> u32 {
    u32::try_from(semaphore.available_permits()).unwrap_or(u32::MAX)
}

/// The problem when a key's requests and answers hold as many bytes as one key may.
fn key_full() -> Problem {
    let detail =
        "as many bytes of this key's requests and answers are under way as one key may have";
    Problem::too_many(detail, RETRY)
        .with_hint("end what was begun: send bodies whole, close streams")
}

fn tenant_full() -> Problem {
    let detail = "as many bytes of this tenant's requests and answers are under way as may be";
    Problem::too_many(detail, RETRY)
        .with_hint("end what was begun: send bodies whole, read answers")
}

fn all_full() -> Problem {
    Problem::unavailable("as many bytes of requests and answers are under way as may be", RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::ProblemKind;
    use axum::body::Body;

    fn kind(held: Result<(), Problem>) -> Option<ProblemKind> {
        held.err().map(|problem| problem.kind())
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_that_has_taken_all_of_its_bytes_takes_none_of_its_neighbours() {
        let flights = ByteBounds::new(10 * UNIT, 6 * UNIT);
        let (red, blue): (Arc<str>, Arc<str>) = ("red".into(), "blue".into());
        let (first, second) =
            (flights.begin_request(&red, None), flights.begin_request(&red, None));
        first.try_hold(4 * UNIT).unwrap();
        first.try_hold(5 * UNIT).unwrap();
        second.try_hold(1).unwrap();
        assert_eq!(kind(second.try_hold(2 * UNIT)), Some(ProblemKind::TooMany));
        assert_eq!(kind(second.wait_to_hold(2 * UNIT).await), Some(ProblemKind::TooMany));
        let neighbour = flights.begin_request(&blue, None);
        neighbour.wait_to_hold(4 * UNIT).await.unwrap();
        // The server's bytes are all held now, and a failed attempt keeps none of them.
        assert_eq!(kind(neighbour.try_hold(5 * UNIT)), Some(ProblemKind::Unavailable));
        first.shrink_to(2 * UNIT);
        neighbour.try_hold(6 * UNIT).unwrap();
        drop((first, second, neighbour));
        flights.begin_request(&red, None).try_hold(6 * UNIT).unwrap();
        assert_eq!(flights.all.available_permits(), 10, "all of it came back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_has_taken_all_that_it_may_leaves_some_to_the_keys_of_its_tenant() {
        let flights = ByteBounds::new(16 * UNIT, 8 * UNIT);
        let tenant: Arc<str> = "red".into();
        let of = |key: &str| flights.begin_request(&tenant, Some(&key.into()));
        let first = of("one");
        first.try_hold(4 * UNIT).unwrap();
        let second = of("one");
        second.try_hold(2 * UNIT).unwrap();
        assert_eq!(kind(of("one").try_hold(1)), Some(ProblemKind::TooMany));
        assert_eq!(kind(of("one").wait_to_hold(1).await), Some(ProblemKind::TooMany));
        of("another").try_hold(2 * UNIT).unwrap();
        flights.begin_request(&"blue".into(), Some(&"third".into())).try_hold(6 * UNIT).unwrap();
        // A key with a larger request gets its whole limit, and no more of the tenant's bytes.
        drop((first, second));
        let large = of("one");
        large.try_hold(u64::MAX).unwrap();
        assert_eq!(flights.all.available_permits(), 10);
        large.shrink_to(UNIT);
        of("one").try_hold(5 * UNIT).unwrap();
        drop(large);
        assert_eq!(flights.all.available_permits(), 16, "all of it came back");
    }

    #[test]
    fn keys_that_hold_nothing_are_forgotten() {
        let flights = ByteBounds::new(16 * UNIT, 8 * UNIT);
        let held = flights.begin_request(&"red".into(), Some(&"held".into()));
        for number in 0..MAX_IDLE_KEYS * 3 {
            drop(flights.begin_request(&"red".into(), Some(&number.to_string().into())));
        }
        let keys = flights.keys.lock().unwrap();
        assert!(keys.len() <= MAX_IDLE_KEYS && keys.contains_key("held"), "{}", keys.len());
        drop(held);
    }

    #[tokio::test]
    async fn what_is_more_than_a_tenant_may_have_takes_all_that_it_may_have() {
        let flights = ByteBounds::new(10 * UNIT, 4 * UNIT);
        let one = flights.begin_request(&"red".into(), None);
        one.try_hold(u64::MAX).unwrap();
        assert_eq!(flights.all.available_permits(), 6);
        one.shrink_to(0);
        assert_eq!(flights.all.available_permits(), 10);
    }

    #[tokio::test]
    async fn an_answer_holds_its_bytes_until_it_is_sent() {
        let flights = ByteBounds::new(100 * UNIT, 8 * UNIT);
        let bytes = 6 * 1024;
        let of = || flights.begin_request(&"red".into(), None);
        let first = of().wrap_response(Response::new(Body::from(vec![b'x'; bytes])));
        assert_eq!(flights.all.available_permits(), 94);
        let second = of().wrap_response(Response::new(Body::from(vec![b'x'; bytes])));
        assert_eq!(second.status(), 429);
        let sent = axum::body::to_bytes(first.into_body(), bytes).await.unwrap();
        assert_eq!(sent.len(), bytes);
        let third = of().wrap_response(Response::new(Body::from(vec![b'x'; bytes])));
        assert_eq!(third.status(), 200);
        drop((second, third));
        assert_eq!(flights.all.available_permits(), 100);
    }
}
