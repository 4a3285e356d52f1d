//! Decides which hosts are reached for a token. INV-334: addresses in documents are strangers' texts, so a
//! host named there is reached only over TLS and at a public address. This machine is reached if the server
//! itself is on it, and the operator's hosts wherever they are.

use std::net::IpAddr;

use belljar_policy::{
    DecisionSource, HostRule, HostScope, RequestTarget, ShownText, TargetHost, UrlScheme,
};

use super::AuthError;
use crate::limits::MAX_SHOWN;
use crate::server::Server;

/// The rule for every host over TLS. The sandbox's own lists must allow the address too.
const ANYWHERE: &str = "https://*:*";

/// The hosts that a request to this address may reach.
///
/// # Errors
/// When the address may not be reached.
pub(super) fn host_scope(server: &Server, url: &str) -> Result<HostScope, AuthError> {
    let target = parse_target(url)?;
    let rule = host_rule(&target)?;
    let own = server.target();
    let named = server.login.issuer.as_deref().and_then(|url| RequestTarget::parse(url).ok());
    if own.as_ref() == Some(&target) || named.as_ref() == Some(&target) {
        return Ok(HostScope::from_rules(DecisionSource::Grants, vec![rule]));
    }
    if is_here(&target) {
        return match own.is_some_and(|own| is_here(&own)) {
            true => Ok(HostScope::from_rules(DecisionSource::Grants, vec![rule])),
            false => Err(refused_error(url, "leads to this machine")),
        };
    }
    if target.scheme() != UrlScheme::Https {
        return Err(refused_error(url, "is not encrypted"));
    }
    let anywhere = ANYWHERE.parse().map_err(|_| AuthError::new("no rule for public addresses"))?;
    Ok(HostScope::from_rules(DecisionSource::Grants, vec![anywhere])
        .with_rules(DecisionSource::Host, vec![rule]))
}

/// Parses an address.
///
/// # Errors
/// When it is no HTTP address, or has a user name or a fragment.
pub(super) fn parse_target(url: &str) -> Result<RequestTarget, AuthError> {
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic()) && !url.contains('#');
    let target = RequestTarget::parse(url).ok().filter(|_| plain);
    target.ok_or_else(|| refused_error(url, "is no address"))
}

fn host_rule(target: &RequestTarget) -> Result<HostRule, AuthError> {
    let text = target.to_string();
    text.parse().map_err(|_| refused_error(&text, "is no host"))
}

/// True for an address of this machine: a loopback address, or `localhost`.
pub(super) fn is_here(target: &RequestTarget) -> bool {
    match target.host() {
        TargetHost::Ip(IpAddr::V4(ip)) => ip.is_loopback(),
        TargetHost::Ip(IpAddr::V6(ip)) => ip.is_loopback(),
        TargetHost::Name(name) => name == "localhost",
    }
}

/// The error for an address to which no request is sent, with the reason.
pub(super) fn refused_error(url: &str, why: &str) -> AuthError {
    AuthError(format!("`{}` {why}, so it is not asked", ShownText::clip_line(url, MAX_SHOWN)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn server(url: &str, issuer: Option<&str>) -> Server {
        let host = RequestTarget::parse(url).unwrap().to_string().parse().unwrap();
        let mut server = Server::new("s", url, host, BTreeSet::new(), None).unwrap();
        server.login.issuer = issuer.map(str::to_owned);
        server
    }

    /// Returns whether a request to `url` is allowed if its name resolves to `ip`.
    fn passes(server: &Server, url: &str, ip: &str) -> bool {
        let target = RequestTarget::parse(url).unwrap();
        host_scope(server, url).is_ok_and(|scope| {
            scope
                .check_target(&target)
                .is_ok_and(|it| it.check_address(ip.parse().unwrap()).is_ok())
        })
    }

    #[test]
    fn a_stranger_names_public_hosts_over_tls_and_no_others() {
        let public = server("https://m.test/mcp", None);
        assert!(passes(&public, "https://auth.test/token", "1.1.1.1"));
        assert!(!passes(&public, "https://auth.test/token", "127.0.0.1"));
        assert!(!passes(&public, "https://auth.test/token", "169.254.169.254"));
        assert!(!passes(&public, "https://10.0.0.5/token", "10.0.0.5"));
        for wrong in [
            "http://auth.test/token",
            "http://localhost:80/token",
            "https://localhost/token",
            "https://127.0.0.1/token",
            "https://[::1]/token",
            "http://169.254.169.254/latest",
            "file:///etc/passwd",
            "https://user@auth.test/",
            "https://auth.test/#x",
            "https://auth.test/\u{202e}",
            "javascript:alert(1)",
            "",
        ] {
            assert!(host_scope(&public, wrong).is_err(), "{wrong}");
        }
        assert!(passes(&public, "https://m.test/token", "1.1.1.1"), "its own host");
        let local = server("http://localhost:8080/mcp", None);
        assert!(passes(&local, "http://localhost:9090/token", "127.0.0.1"));
        assert!(passes(&local, "http://127.0.0.1:9090/token", "127.0.0.1"));
        let named = server("https://m.test/mcp", Some("https://10.0.0.5"));
        assert!(passes(&named, "https://10.0.0.5/token", "10.0.0.5"));
        assert!(!passes(&named, "https://10.0.0.6/token", "10.0.0.6"));
    }
}
