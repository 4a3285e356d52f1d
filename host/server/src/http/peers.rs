//! Limits on open connections: each address may have a number of them at a time, and all addresses
//! together no more than there are file descriptors for.
//!
//! Addresses of this machine are no exception, because every user of the machine may connect. Behind a
//! proxy all callers come from one address, so its operator raises the limits; a proxy's header with
//! the caller's address is ignored, because any client can send such a header.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Connections that are being closed may exceed the total by this fraction: an eighth, which the
/// reserved file descriptors allow.
const CLOSING_SHARE: usize = 8;

/// A client's address, as used for limits: of an IPv6 address only the first 64 bits, because their
/// holder can use all the addresses below them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerAddress(IpAddr);

/// The bits of an IPv6 address that identify its holder: the first 64.
const NETWORK: u128 = u128::MAX << 64;

impl From<IpAddr> for PeerAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
            v4 => v4,
        })
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// All connections of the server by address, including WebSockets.
///
/// An idle connection stays until another one needs its place. If all places are used, one idle
/// connection is closed, of the address with the most connections: the one without an accepted caller
/// that is idle longest, otherwise the one that is idle longest.
#[derive(Debug)]
pub(crate) struct PeerConnections {
    /// The most connections of one address.
    most: usize,
    /// The most connections of all addresses.
    total: usize,
    state: Mutex<PeersState>,
}

#[derive(Debug, Default)]
struct PeersState {
    open: HashMap<PeerAddress, Vec<Arc<ConnectionSlot>>>,
    /// The number of open connections, including those that are being closed.
    count: usize,
    /// A counter of how often any connection became idle, which numbers them in that order.
    idled: u64,
}

/// One connection, with what decides whether it is closed to make room.
#[derive(Debug)]
struct ConnectionSlot {
    cut: CancellationToken,
    work: Mutex<ConnectionWork>,
}

/// The state of one connection, which decides whether it may be closed to admit another one.
#[derive(Debug, Clone, Copy)]
struct ConnectionWork {
    /// The number of requests that are being answered; 1 for a WebSocket.
    busy: u32,
    /// The value of the counter when this connection became idle: a lower number is idle longer.
    since: u64,
    /// True if a caller was authenticated on this connection. A stranger's connection never displaces
    /// such a connection, even from the same address, for example behind a proxy.
    let_in: bool,
}

/// The place that a connection of an address occupies until dropped. A WebSocket keeps its request's
/// place.
#[derive(Debug)]
pub(crate) struct PeerPlace {
    peers: Arc<PeerConnections>,
    peer: PeerAddress,
    line: Arc<ConnectionSlot>,
}

/// A request in progress: while it exists, its connection is not closed to make room.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<PeerPlace>);

/// The reason why a new connection gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeersFull {
    /// The address has its maximum of connections, and none is idle.
    Address,
    /// The server has its maximum of connections, and none is idle.
    Server,
}

impl PeerConnections {
    /// Creates the limits: `most` connections of one address, `total` of all.
    pub(crate) fn new(most: usize, total: usize) -> Arc<Self> {
        Arc::new(Self { most: most.min(total), total, state: Mutex::default() })
    }

    /// Adds a connection of an address, and closes an idle one if necessary. Cancelling `cut` closes
    /// the new connection.
    pub(crate) fn enter_connection(
        self: &Arc<Self>,
        peer: PeerAddress,
        cut: CancellationToken,
    ) -> Result<PeerPlace, PeersFull> {
        let mut state = self.lock_state();
        if state.count_connections(peer) >= self.most && !state.make_room(peer) {
            return Err(PeersFull::Address);
        }
        // A connection that is being closed still has its file descriptor for a moment.
        let most = self.total.saturating_add(self.total / CLOSING_SHARE);
        let full = state.count >= self.total && !state.make_room_of_most();
        if full || state.count >= most {
            return Err(PeersFull::Server);
        }
        let work =
            Mutex::new(ConnectionWork { busy: 0, since: state.next_idle_number(), let_in: false });
        let line = Arc::new(ConnectionSlot { cut, work });
        state.open.entry(peer).or_default().push(Arc::clone(&line));
        state.count += 1;
        drop(state);
        Ok(PeerPlace { peers: Arc::clone(self), peer, line })
    }

    fn lock_state(&self) -> MutexGuard<'_, PeersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeersState {
    /// The number of connections of an address, without those that are being closed.
    fn count_connections(&self, peer: PeerAddress) -> usize {
        self.open.get(&peer).map_or(0, Vec::len)
    }

    fn next_idle_number(&mut self) -> u64 {
        self.idled = self.idled.wrapping_add(1);
        self.idled
    }

    /// Closes an idle connection of the address: the one without an accepted caller that is idle
    /// longest, otherwise the one that is idle longest. Returns false if the address has no idle
    /// connection.
    fn make_room(&mut self, peer: PeerAddress) -> bool {
        let Some(lines) = self.open.get_mut(&peer) else { return false };
        let idle = lines.iter().enumerate().filter_map(|(at, line)| Some((line.idle_rank()?, at)));
        let Some((_, at)) = idle.min() else { return false };
        lines.swap_remove(at).cut.cancel();
        if lines.is_empty() {
            self.open.remove(&peer);
        }
        true
    }

    /// Like [`Self::make_room`], for the address with the most connections; if none of these is idle,
    /// for the next address.
    fn make_room_of_most(&mut self) -> bool {
        let mut peers: Vec<(usize, PeerAddress)> =
            self.open.iter().map(|(peer, lines)| (lines.len(), *peer)).collect();
        peers.sort_unstable_by_key(|(count, _)| std::cmp::Reverse(*count));
        peers.into_iter().any(|(_, peer)| self.make_room(peer))
    }
}

impl ConnectionSlot {
    /// A connection's rank among the idle ones: the lowest is closed first. `None` if the connection is
    /// busy.
    fn idle_rank(&self) -> Option<(bool, u64)> {
        let work = *self.lock_work();
        (work.busy == 0).then_some((work.let_in, work.since))
    }

    fn lock_work(&self) -> MutexGuard<'_, ConnectionWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerPlace {
    pub(crate) fn peer(&self) -> PeerAddress {
        self.peer
    }

    /// Records that a caller was authenticated on this connection.
    pub(crate) fn let_in(&self) {
        self.line.lock_work().let_in = true;
    }

    /// Marks the connection as busy until the returned guard is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> ActiveRequest {
        let mut work = self.line.lock_work();
        work.busy = work.busy.saturating_add(1);
        ActiveRequest(Arc::clone(self))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        // Locked in the same order as in `make_room`, so no deadlock can occur.
        let since = self.0.peers.lock_state().next_idle_number();
        let mut work = self.0.line.lock_work();
        *work = ConnectionWork { busy: work.busy.saturating_sub(1), since, ..*work };
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut state = self.peers.lock_state();
        state.count = state.count.saturating_sub(1);
        let Some(lines) = state.open.get_mut(&self.peer) else { return };
        if let Some(at) = lines.iter().position(|line| Arc::ptr_eq(line, &self.line)) {
            lines.swap_remove(at);
        }
        if lines.is_empty() {
            state.open.remove(&self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> PeerAddress {
        PeerAddress::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn an_ipv6_address_is_its_network_and_a_mapped_one_is_ipv4() {
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("2001:db8:1:2::1").to_string(), "2001:db8:1:2::");
    }

    /// Opens a connection; returns its place, and the token that is cancelled to close it.
    fn enter(
        peers: &Arc<PeerConnections>,
        from: PeerAddress,
    ) -> (Arc<PeerPlace>, CancellationToken) {
        let cut = CancellationToken::new();
        (Arc::new(peers.enter_connection(from, cut.clone()).unwrap()), cut)
    }

    fn refused(peers: &Arc<PeerConnections>, from: PeerAddress) -> Option<PeersFull> {
        peers.enter_connection(from, CancellationToken::new()).err()
    }

    #[test]
    fn an_address_has_its_connections_and_its_neighbour_others() {
        let peers = PeerConnections::new(2, 100);
        let (one, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        let places = [enter(&peers, one).0, enter(&peers, one).0];
        let work: Vec<ActiveRequest> = places.iter().map(PeerPlace::begin_request).collect();
        assert_eq!(refused(&peers, one), Some(PeersFull::Address));
        assert_eq!(refused(&peers, other), None);
        drop(work);
        let [first, second] = places;
        drop(first);
        assert_eq!(refused(&peers, one), None, "its place is free again");
        drop(second);
        let state = peers.lock_state();
        assert!(state.open.is_empty() && state.count == 0, "nothing is kept of who left");
    }

    #[test]
    fn the_one_that_was_idle_for_longest_makes_room() {
        let peers = PeerConnections::new(3, 100);
        let from = peer("192.0.2.1");
        let lines = [enter(&peers, from), enter(&peers, from), enter(&peers, from)];
        let closed = || lines.each_ref().map(|(_, cut)| cut.is_cancelled());
        // The first connection has had a request since, so it is no longer the one that is idle
        // longest.
        drop(lines[0].0.begin_request());
        let _busy = lines[1].0.begin_request();
        let _fourth = enter(&peers, from);
        assert_eq!(closed(), [false, false, true]);
        let _fifth = enter(&peers, from);
        assert_eq!(closed(), [true, false, true]);
    }

    #[test]
    fn whoever_was_let_in_makes_room_last() {
        let peers = PeerConnections::new(3, 100);
        let from = peer("192.0.2.1");
        let member = enter(&peers, from);
        member.0.let_in();
        // Strangers send requests and are refused, again and again.
        let strangers: Vec<_> = (0..10).map(|_| enter(&peers, from)).collect();
        for (stranger, _) in &strangers {
            drop(stranger.begin_request());
        }
        assert!(!member.1.is_cancelled());
        assert_eq!(strangers.iter().filter(|(_, cut)| cut.is_cancelled()).count(), 8);
        // When all connections of strangers are busy, the authenticated caller's idle connection is
        // closed.
        let _busy: Vec<_> = strangers.iter().map(|(place, _)| place.begin_request()).collect();
        let _newcomer = enter(&peers, from);
        assert!(member.1.is_cancelled());
    }

    #[test]
    fn where_all_places_are_taken_the_address_that_has_most_makes_room() {
        let peers = PeerConnections::new(100, 8);
        let (many, few, new) = (peer("192.0.2.1"), peer("192.0.2.2"), peer("192.0.2.3"));
        let neighbour = enter(&peers, few);
        let mut silent: Vec<_> = (0..7).map(|_| enter(&peers, many)).collect();
        let newcomer = enter(&peers, new);
        assert!(silent[0].1.is_cancelled() && !neighbour.1.is_cancelled());
        // The address's silent connection is closed, and its next connection takes another silent one's
        // place.
        silent.remove(0);
        let _again = enter(&peers, many);
        assert!(silent[0].1.is_cancelled());
        assert!(!neighbour.1.is_cancelled() && !newcomer.1.is_cancelled());
        // If all connections are busy, none is closed.
        silent.remove(0);
        let all: Vec<_> = silent.iter().map(|(place, _)| place.begin_request()).collect();
        let _busy =
            (neighbour.0.begin_request(), newcomer.0.begin_request(), _again.0.begin_request());
        assert_eq!(refused(&peers, peer("192.0.2.9")), Some(PeersFull::Server));
        drop(all);
    }

    #[test]
    fn those_that_take_long_to_close_do_not_add_up() {
        let peers = PeerConnections::new(100, 16);
        let from = peer("192.0.2.1");
        // None of them closes, although each is told to.
        let open: Vec<_> = (0..18).map(|_| enter(&peers, from)).collect();
        assert_eq!(refused(&peers, from), Some(PeersFull::Server));
        drop(open);
        assert_eq!(refused(&peers, from), None);
    }
}
