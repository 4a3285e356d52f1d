//! The ports on which the current process listens. No guest may connect to them, whatever its grants.
//!
//! A grant of `http://127.0.0.1:*` means the operator's other services, not the server that runs the guest.
//! That server would take a guest's request for one of the operator's, because both come from the local
//! machine; or for one of a user's, if the guest knows the user's key.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The ports on which the current process listens. A port is closed on all addresses of the local machine,
/// because routes and interfaces decide which addresses lead to a listener, and they change.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnListeners(Arc<[u16]>);

impl OwnListeners {
    pub(crate) fn new(listeners: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self(listeners.into_iter().map(|address| address.port()).collect())
    }

    /// Whether the address leads to a listener of the current process, as far as the address itself tells.
    pub(crate) fn contains_address(&self, target: SocketAddr) -> bool {
        self.contains_port(target.port()) && is_this_machine(target.ip())
    }

    /// Whether a connection leads to a listener, if it stays on the local machine ([`stays_here`]).
    pub(crate) fn hold_here(&self, target: SocketAddr) -> bool {
        self.contains_port(target.port())
    }

    fn contains_port(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}

/// Whether a new connection ends on the local machine, whatever address it was made to.
pub(crate) fn stays_here(
    local: std::io::Result<SocketAddr>,
    peer: std::io::Result<SocketAddr>,
) -> bool {
    match (local, peer) {
        (Ok(local), Ok(peer)) => {
            is_this_machine(peer.ip()) || local.ip().to_canonical() == peer.ip().to_canonical()
        }
        // The connection has failed, so its peer is unknown.
        (Err(_), _) | (_, Err(_)) => true,
    }
}

/// Whether every machine takes this address for its own, for example loopback and unspecified addresses.
fn is_this_machine(ip: IpAddr) -> bool {
    let embedded = match ip {
        // `::a.b.c.d`, which some systems still take for the IPv4 address.
        IpAddr::V6(v6) => v6.to_ipv4().map(IpAddr::from),
        IpAddr::V4(_) => None,
    };
    [Some(ip.to_canonical()), embedded]
        .into_iter()
        .flatten()
        .any(|ip| ip.is_loopback() || ip.is_unspecified() || zero_net(ip))
}

/// Whether an address is in `0.0.0.0/8`, which leads to the local machine on some systems.
fn zero_net(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(v4) if v4.octets()[0] == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_own_listener_is_known_by_every_form_of_this_machines_address() {
        for listener in ["127.0.0.1:7411", "0.0.0.0:7411", "[::]:7411", "192.0.2.7:7411"] {
            let own = OwnListeners::new([at(listener)]);
            for form in [
                "127.0.0.1:7411",
                "127.9.9.9:7411",
                "0.0.0.0:7411",
                "0.1.2.3:7411",
                "[::1]:7411",
                "[::]:7411",
                "[::ffff:127.0.0.1]:7411",
                "[::ffff:0.0.0.0]:7411",
                "[::127.0.0.1]:7411",
            ] {
                assert!(own.contains_address(at(form)), "{listener} {form}");
            }
            for other in ["127.0.0.1:7412", "[::1]:80", "192.0.2.8:7411", "1.1.1.1:7411"] {
                assert!(!own.contains_address(at(other)), "{listener} {other}");
            }
        }
        assert!(!OwnListeners::default().contains_address(at("127.0.0.1:7411")));
    }

    #[test]
    fn an_own_listener_is_known_by_the_address_of_an_interface() {
        let own = OwnListeners::new([at("0.0.0.0:7411")]);
        let holds = |local: &str, peer: &str| {
            stays_here(Ok(at(local)), Ok(at(peer))) && own.hold_here(at(peer))
        };
        assert!(holds("192.0.2.7:50000", "192.0.2.7:7411"));
        assert!(holds("[2001:db8::7]:50000", "[2001:db8::7]:7411"));
        assert!(!holds("192.0.2.7:50000", "192.0.2.8:7411"), "another machine's");
        assert!(!holds("192.0.2.7:50000", "192.0.2.7:7412"), "another service's");
    }
}
