//! The bytes of requests and answers that are held at a time: of the whole server, and of each
//! tenant, so that one tenant's unfinished bodies and slow readers take nothing from another.
//!
//! A request holds what its body has brought so far; an answer what it is made of, until its client
//! has taken it. What reads much of the store holds a page's worth before it reads. All of it comes
//! back when the answer is sent or given up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::held::Holding;
use crate::http::problem::Problem;

/// Bytes in flight of the whole server where nothing is said.
pub const DEFAULT_BYTES_IN_FLIGHT: u64 = 512 << 20;

/// Bytes in flight of one tenant where nothing is said: a quarter.
pub const DEFAULT_TENANT_BYTES_IN_FLIGHT: u64 = 128 << 20;

/// The bytes of a stream of events: those that wait between the store and its client. As many of
/// one tenant at a time as its bytes hold, a thousand by default.
pub(crate) const STREAM_BYTES: u64 = 128 << 10;

/// The bytes of a WebSocket: its buffers, and what belongs to it.
pub(crate) const SOCKET_BYTES: u64 = 32 << 10;

/// The bytes of a route that reads much before it answers: a page of rows as they are read, as they
/// are parsed and as they are written.
pub(crate) const PAGE_BYTES: u64 = 16 << 20;

/// How long such a route waits for others to be done.
const WAIT: Duration = Duration::from_secs(5);

/// When it is worth another try.
const RETRY: Duration = Duration::from_secs(2);

/// The bytes behind one permit of the semaphores.
const UNIT: u64 = 1 << 10;

/// The bytes of all.
#[derive(Debug)]
pub(crate) struct Flights {
    all: Arc<Semaphore>,
    /// Units of one tenant.
    most: u32,
    /// As long as the list of tenants: who comes here has a key.
    tenants: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

/// The bytes of one request and its answer. Clones share them; the last one gives them back.
#[derive(Debug, Clone)]
pub(crate) struct InFlight(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
    most: u32,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    units: u32,
    permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl Flights {
    /// So many bytes of all tenants, and of one of them.
    pub(crate) fn new(all: u64, of_one: u64) -> Self {
        let (all, most) = (units(all).max(1), units(of_one).max(1));
        let all = Arc::new(Semaphore::new(whole(all)));
        Self { most: most.min(units_of(&all)), all, tenants: Mutex::default() }
    }

    /// A request of a tenant, which holds nothing yet.
    pub(crate) fn of(&self, tenant: &Arc<str>) -> InFlight {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let own = tenants.entry(Arc::clone(tenant));
        let own = Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(whole(self.most)))));
        let all = Arc::clone(&self.all);
        InFlight(Arc::new(Inner { all, own, most: self.most, held: Mutex::default() }))
    }
}

impl InFlight {
    /// Holds at least so many bytes, if they are there. More than a tenant may have at all counts
    /// as all that it may have.
    pub(crate) fn try_hold(&self, bytes: u64) -> Result<(), Problem> {
        let more = self.missing(bytes);
        if more == 0 {
            return Ok(());
        }
        let own =
            Arc::clone(&self.0.own).try_acquire_many_owned(more).map_err(|_| tenant_full())?;
        let all = Arc::clone(&self.0.all).try_acquire_many_owned(more).map_err(|_| all_full())?;
        self.keep(more, own, all);
        Ok(())
    }

    /// The same, after a wait for others where it has to be.
    pub(crate) async fn hold(&self, bytes: u64) -> Result<(), Problem> {
        let more = self.missing(bytes);
        if more == 0 {
            return Ok(());
        }
        let own = Arc::clone(&self.0.own).acquire_many_owned(more);
        let Ok(Ok(own)) = tokio::time::timeout(WAIT, own).await else { return Err(tenant_full()) };
        let all = Arc::clone(&self.0.all).acquire_many_owned(more);
        let Ok(Ok(all)) = tokio::time::timeout(WAIT, all).await else { return Err(all_full()) };
        self.keep(more, own, all);
        Ok(())
    }

    /// Gives back what is held beyond so many bytes.
    pub(crate) fn settle(&self, bytes: u64) {
        let mut held = self.held();
        let less = held.units.saturating_sub(units(bytes));
        if let Some((own, all)) = &mut held.permits {
            // Dropped, and so given back.
            drop((own.split(whole(less)), all.split(whole(less))));
            held.units -= less;
        }
    }

    /// The answer with what it takes, until it is sent: its bytes, or for one without a stated
    /// length those of a stream. Where they are not there the answer is a problem instead.
    pub(crate) fn carry(self, response: Response) -> Response {
        let exact = response.body().size_hint().exact();
        if let Err(problem) = self.try_hold(exact.unwrap_or(STREAM_BYTES)) {
            return problem.into_response();
        }
        if let Some(bytes) = exact {
            self.settle(bytes);
        }
        response.map(|body| Holding::wrap(body, self))
    }

    /// Units that it would take beside those that are held.
    fn missing(&self, bytes: u64) -> u32 {
        units(bytes).min(self.0.most).saturating_sub(self.held().units)
    }

    fn keep(&self, more: u32, own: OwnedSemaphorePermit, all: OwnedSemaphorePermit) {
        let mut held = self.held();
        held.units = held.units.saturating_add(more);
        match &mut held.permits {
            Some(permits) => {
                permits.0.merge(own);
                permits.1.merge(all);
            }
            None => held.permits = Some((own, all)),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

fn whole(units: u32) -> usize {
    usize::try_from(units).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

fn units_of(semaphore: &Semaphore) -> u32 {
    u32::try_from(semaphore.available_permits()).unwrap_or(u32::MAX)
}

fn tenant_full() -> Problem {
    let detail = "as many bytes of this tenant's requests and answers are under way as may be";
    Problem::too_many(detail, RETRY).hint("end what was begun: send bodies whole, read answers")
}

fn all_full() -> Problem {
    Problem::unavailable("as many bytes of requests and answers are under way as may be", RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::Kind;
    use axum::body::Body;

    fn kind(held: Result<(), Problem>) -> Option<Kind> {
        held.err().map(|problem| problem.kind())
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_that_has_taken_all_of_its_bytes_takes_none_of_its_neighbours() {
        let flights = Flights::new(10 * UNIT, 6 * UNIT);
        let (red, blue): (Arc<str>, Arc<str>) = ("red".into(), "blue".into());
        let (first, second) = (flights.of(&red), flights.of(&red));
        first.try_hold(4 * UNIT).unwrap();
        first.try_hold(5 * UNIT).unwrap();
        second.try_hold(1).unwrap();
        assert_eq!(kind(second.try_hold(2 * UNIT)), Some(Kind::TooMany));
        assert_eq!(kind(second.hold(2 * UNIT).await), Some(Kind::TooMany));
        let neighbour = flights.of(&blue);
        neighbour.hold(4 * UNIT).await.unwrap();
        // Now the server is full, and nothing of a try that failed is kept.
        assert_eq!(kind(neighbour.try_hold(5 * UNIT)), Some(Kind::Unavailable));
        first.settle(2 * UNIT);
        neighbour.try_hold(6 * UNIT).unwrap();
        drop((first, second, neighbour));
        flights.of(&red).try_hold(6 * UNIT).unwrap();
        assert_eq!(flights.all.available_permits(), 10, "all of it came back");
    }

    #[tokio::test]
    async fn what_is_more_than_a_tenant_may_have_takes_all_that_it_may_have() {
        let flights = Flights::new(10 * UNIT, 4 * UNIT);
        let one = flights.of(&"red".into());
        one.try_hold(u64::MAX).unwrap();
        assert_eq!(flights.all.available_permits(), 6);
        one.settle(0);
        assert_eq!(flights.all.available_permits(), 10);
    }

    #[tokio::test]
    async fn an_answer_holds_its_bytes_until_it_is_sent() {
        let flights = Flights::new(100 * UNIT, 8 * UNIT);
        let bytes = 6 * 1024;
        let of = || flights.of(&"red".into());
        let first = of().carry(Response::new(Body::from(vec![b'x'; bytes])));
        assert_eq!(flights.all.available_permits(), 94);
        let second = of().carry(Response::new(Body::from(vec![b'x'; bytes])));
        assert_eq!(second.status(), 429);
        let sent = axum::body::to_bytes(first.into_body(), bytes).await.unwrap();
        assert_eq!(sent.len(), bytes);
        let third = of().carry(Response::new(Body::from(vec![b'x'; bytes])));
        assert_eq!(third.status(), 200);
        drop((second, third));
        assert_eq!(flights.all.available_permits(), 100);
    }
}
