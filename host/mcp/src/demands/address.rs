//! An address that a server wants a person to open in a browser. INV-362: an address without `https`, or
//! inside this machine or its network, is never shown, because a browser there can reach pages that a
//! stranger cannot, for example a router's.

use serde_json::Value;
use url::{Host, Url};

use super::form::UnfitRequest;

/// The most bytes of an address.
const MAX_URL: usize = 2_000;

/// Endings of host names within this machine or its network, which are not on the internet.
const LOCAL_ENDINGS: [&str; 11] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "arpa",
    // Services of a cluster, for example `api.default.svc`.
    "svc",
];

/// An address that a person is asked to open.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ElicitedAddress {
    pub(crate) message: String,
    /// The address in its normalized form, for example `https://example.com/pay`.
    pub(crate) url: String,
    pub(crate) host: String,
}

impl ElicitedAddress {
    /// Parses and checks the parameters of a request with the given message.
    pub(super) fn from_params(message: &str, params: &Value) -> Result<Self, UnfitRequest> {
        let malformed = UnfitRequest::Malformed("an address is none");
        let text = params.get("url").and_then(Value::as_str).filter(|text| text.len() <= MAX_URL);
        let url = text.and_then(|text| Url::parse(text).ok()).ok_or(malformed)?;
        let plain = url.username().is_empty() && url.password().is_none();
        if url.scheme() != "https" || !plain {
            let why = "an address is not of `https`, or has a name of somebody in it";
            return Err(UnfitRequest::Declined(why));
        }
        match url.host() {
            Some(Host::Domain(name)) if !is_local(name) => {
                let host = name.to_owned();
                Ok(Self { message: message.to_owned(), url: url.to_string(), host })
            }
            Some(_) | None => Err(UnfitRequest::Declined(
                "an address leads to this machine, its network, or a bare number",
            )),
        }
    }
}

/// Returns whether a host name belongs to this machine or its network. A name without a dot counts too,
/// because such names are resolved locally first.
fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    match name.rsplit_once('.') {
        Some((_, ending)) => LOCAL_ENDINGS.contains(&ending),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(url: &str) -> Result<ElicitedAddress, UnfitRequest> {
        ElicitedAddress::from_params("m", &json!({"message": "m", "mode": "url", "url": url}))
    }

    #[test]
    fn an_address_is_of_https_with_its_host_as_it_is() {
        let address = read("https://ex\u{430}mple.test/a?b").unwrap();
        assert!(address.host.starts_with("xn--") && address.url.contains(&address.host));
        for url in
            ["http://a.test/", "https://a.test@b.test/", "file:///etc/passwd", "javascript:x"]
        {
            assert!(matches!(read(url), Err(UnfitRequest::Declined(_))), "{url}");
        }
        assert!(matches!(read("no address"), Err(UnfitRequest::Malformed(_))));
    }

    #[test]
    fn an_address_of_this_machine_or_its_network_is_shown_to_nobody() {
        for host in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "localhost:8443",
            "router",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.0.0.1.",
            "0",
            "10.0.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "8.8.8.8",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[fe80::1]",
            "[fd00::1]",
            "[2606:4700::1]",
            "printer.local",
            "printer.local.",
            "metadata.google.internal",
            "x.home.arpa",
            "1.0.0.127.in-addr.arpa",
            "nas.lan",
            "nas.localdomain",
            "api.default.svc",
            "\u{ff4c}\u{ff4f}\u{ff43}\u{ff41}\u{ff4c}host",
            "a.\u{ff4c}ocal",
            "1\u{3002}2\u{3002}3\u{3002}4",
        ] {
            let url = format!("https://{host}/x");
            assert!(
                matches!(read(&url), Err(UnfitRequest::Declined(_))),
                "{url}: {:?}",
                read(&url)
            );
        }
        for host in
            ["auth.test", "local.test", "localhost.test", "a.b.test.", "internal.example.org:8443"]
        {
            assert!(read(&format!("https://{host}/x")).is_ok(), "{host}");
        }
    }
}
