//! Who is at the other end of a connection, as far as limits go: an address may have so many
//! connections at a time.
//!
//! Addresses of this machine are no exception: everybody on it may connect. Behind a proxy all
//! callers come from one address, so its operator raises the limits; what a proxy says of who is
//! behind it is not believed, because everybody can say it.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// An address as limits know it: of IPv6 the first 64 bits, since whoever has one has them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(IpAddr);

/// The bits of an IPv6 address that say whose it is.
const NETWORK: u128 = u128::MAX << 64;

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
            v4 => v4,
        })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The connections that each address has. The table is no longer than the server has connections
/// and WebSockets.
#[derive(Debug)]
pub(crate) struct Peers {
    most: u32,
    open: Mutex<HashMap<Peer, u32>>,
}

/// A connection of an address, until it is dropped. A WebSocket keeps that of its request.
#[derive(Debug)]
pub(crate) struct PeerPlace {
    peers: Arc<Peers>,
    peer: Peer,
}

impl Peers {
    /// At most so many connections of one address.
    pub(crate) fn new(most: u32) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// One more connection of an address; `None` = it has as many as it may.
    pub(crate) fn enter(self: &Arc<Self>, peer: Peer) -> Option<PeerPlace> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.get(&peer).copied().unwrap_or(0);
        if count >= self.most {
            return None;
        }
        open.insert(peer, count + 1);
        Some(PeerPlace { peers: Arc::clone(self), peer })
    }
}

impl PeerPlace {
    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut open = self.peers.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.peer) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(open.remove(&self.peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        Peer::from(text.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn an_ipv6_address_is_its_network_and_a_mapped_one_is_ipv4() {
        assert_eq!(peer("2001:db8:1:2::1"), peer("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(peer("2001:db8:1:2::1"), peer("2001:db8:1:3::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
        assert_eq!(peer("2001:db8:1:2::1").to_string(), "2001:db8:1:2::");
    }

    #[test]
    fn an_address_has_its_connections_and_its_neighbour_others() {
        let peers = Peers::new(2);
        let (one, other) = (peer("192.0.2.1"), peer("192.0.2.2"));
        let places = [peers.enter(one).unwrap(), peers.enter(one).unwrap()];
        assert!(peers.enter(one).is_none());
        assert!(peers.enter(other).is_some());
        let [first, second] = places;
        drop(first);
        drop(peers.enter(one).expect("its place is free again"));
        drop(second);
        assert!(peers.open.lock().unwrap().is_empty(), "nothing is kept of who left");
    }
}
