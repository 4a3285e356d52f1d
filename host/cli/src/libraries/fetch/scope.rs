//! The one host that a fetch may reach. INV-616: the named host at a public address, or this machine if the
//! typed address names it; nothing in a private network, and no metadata service.

use std::net::SocketAddr;

use belljar_policy::{DecisionSource, HostRule, HostScope, RequestTarget};

use super::address::is_loopback;

/// Every host at public addresses: a list of the operator's has to let a request through too.
const ANYWHERE: &str = "https://*:*";

/// The target of a fetch, and the rules for its addresses.
#[derive(Debug, Clone)]
pub(super) struct FetchScope {
    target: RequestTarget,
    scope: HostScope,
}

impl FetchScope {
    /// The scope of an address.
    ///
    /// # Errors
    ///
    /// The address names no host that may be reached.
    pub(super) fn for_url(url: &str) -> Result<Self, String> {
        let target = RequestTarget::parse(url).map_err(|_| "it is no address".to_owned())?;
        let parse = |text: &str| {
            text.parse::<HostRule>().map_err(|_| "it names no host that can be asked".to_owned())
        };
        let own = parse(&target.to_string())?;
        let scope = match is_loopback(&target) {
            true => HostScope::from_rules(DecisionSource::Grants, vec![own]),
            false => HostScope::from_rules(DecisionSource::Grants, vec![parse(ANYWHERE)?])
                .with_rules(DecisionSource::Host, vec![own]),
        };
        Ok(Self { target, scope })
    }

    /// The named host.
    pub(super) fn target(&self) -> &RequestTarget {
        &self.target
    }

    /// The addresses of this list that may be connected to.
    ///
    /// # Errors
    ///
    /// None of them is.
    pub(super) fn permit_addresses(
        &self,
        target: &RequestTarget,
        found: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, String> {
        if *target != self.target {
            return Err(format!("it leads on to `{target}`, which was not named"));
        }
        let permit = self.scope.check_target(target).map_err(|denial| denial.facts)?;
        let (mut permitted, mut refused) = (Vec::new(), None);
        for address in found {
            match permit.check_address(address.ip()) {
                Ok(address) => permitted.push(address.socket_address()),
                Err(denial) => refused = Some(denial.facts),
            }
        }
        match (permitted.is_empty(), refused) {
            (false, _) => Ok(permitted),
            (true, Some(why)) => Err(why),
            (true, None) => Err("its name leads nowhere".to_owned()),
        }
    }

    /// Resolves the named host.
    ///
    /// # Errors
    ///
    /// The host is another one, unknown, or not at a permitted address.
    pub(super) async fn resolve_target(
        &self,
        target: &RequestTarget,
    ) -> Result<Vec<SocketAddr>, String> {
        use belljar_policy::TargetHost;
        if target != &self.target {
            return self.permit_addresses(target, std::iter::empty());
        }
        match target.host() {
            TargetHost::Ip(ip) => {
                self.permit_addresses(target, std::iter::once(SocketAddr::new(*ip, target.port())))
            }
            TargetHost::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), target.port())).await;
                let found = found.map_err(|_| {
                    format!("no host `{name}` is known here; is this machine offline?")
                })?;
                self.permit_addresses(target, found)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(url: &str, target: &str, ip: &str) -> Result<Vec<SocketAddr>, String> {
        let target = RequestTarget::parse(target).unwrap();
        let address = SocketAddr::new(ip.parse().unwrap(), target.port());
        FetchScope::for_url(url).unwrap().permit_addresses(&target, std::iter::once(address))
    }

    #[test]
    fn the_named_host_is_reached_at_public_addresses_alone() {
        let url = "https://git.test/x.git";
        assert!(permits(url, "https://git.test", "1.1.1.1").is_ok());
        for private in
            ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1"]
        {
            assert!(permits(url, "https://git.test", private).is_err(), "{private}");
        }
        for other in
            ["https://evil.test", "http://git.test", "https://git.test:8443", "https://x.git.test"]
        {
            let why = permits(url, other, "1.1.1.1").unwrap_err();
            assert!(why.contains("was not named"), "{other}: {why}");
        }
    }

    #[test]
    fn this_machine_is_reached_when_it_is_typed() {
        assert!(
            permits("http://127.0.0.1:8080/x.git", "http://127.0.0.1:8080", "127.0.0.1").is_ok()
        );
        assert!(permits("http://localhost:8080/x", "http://localhost:8080", "127.0.0.1").is_ok());
        assert!(permits("http://127.0.0.1:8080/x", "http://127.0.0.1:8081", "127.0.0.1").is_err());
        assert!(permits("https://10.0.0.5/x.git", "https://10.0.0.5", "10.0.0.5").is_err());
        assert!(
            permits("https://169.254.169.254/x.git", "https://169.254.169.254", "169.254.169.254")
                .is_err()
        );
    }
}
