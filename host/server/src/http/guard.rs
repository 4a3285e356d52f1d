//! Checks of the host name and the page that a request states. A stranger's page can reach a server on
//! this machine through the person's own browser, but that page can choose neither the host name nor
//! the origin that its browser sends.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use belljar_policy::ShownText;
use tower_http::cors::CorsLayer;

use crate::http::cors;
use crate::http::problem::{Problem, ProblemKind};

/// The most characters of a name that an error text repeats.
const MAX_SHOWN: usize = 100;

/// The names under which this server may be called, and the origins of pages that may call it.
#[derive(Debug, Clone, Default)]
pub struct ServerNames {
    hosts: Vec<HostName>,
    origins: Vec<String>,
}

/// A host name with an optional port; without a port, it matches every port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostName {
    host: String,
    port: Option<u16>,
}

/// The error of a host name or an origin in the configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wants}")]
pub struct NameError {
    text: String,
    wants: &'static str,
}

impl ServerNames {
    /// The names of this machine itself, for example `localhost`, with the listening port.
    pub fn loopback(port: u16) -> Self {
        let name = |host: &str| HostName { host: host.to_owned(), port: Some(port) };
        let hosts = ["localhost", "127.0.0.1", "[::1]"].map(name).into();
        Self { hosts, origins: Vec::new() }
    }

    /// Adds a name: `example.org` for every port, or `example.org:8443` for that port alone.
    ///
    /// # Errors
    /// When the text is no host name.
    pub fn with_host(mut self, text: &str) -> Result<Self, NameError> {
        let wants = "the name of a host, such as `belljar.example.org`";
        let error = || NameError { text: ShownText::clip_line(text, MAX_SHOWN).to_string(), wants };
        self.hosts.push(HostName::parse(text).ok_or_else(error)?);
        Ok(self)
    }

    /// Adds an origin whose pages may call, for example `https://app.example.org`.
    ///
    /// # Errors
    ///
    /// When the text is no origin.
    pub fn with_origin(mut self, text: &str) -> Result<Self, NameError> {
        let wants = "an origin, such as `https://app.example.org`";
        let error = || NameError { text: ShownText::clip_line(text, MAX_SHOWN).to_string(), wants };
        let origin = parse_origin(text.trim_end_matches('/')).ok_or_else(error)?;
        self.origins.push(origin);
        Ok(self)
    }

    /// The CORS layer for the allowed origins; `None` if only the server's own pages may call.
    pub(crate) fn cors_for_origins(&self) -> Option<CorsLayer> {
        (!self.origins.is_empty()).then(|| cors::cors_layer(self.origins.clone()))
    }

    /// Checks that a request names this server as its host, and that the page that sent it has an
    /// allowed origin.
    pub(crate) fn check_request(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let called = self.check_host(uri, headers)?;
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let text = origin.to_str().unwrap_or("null");
        let allowed = origins.next().is_none()
            && parse_origin(text)
                .is_some_and(|origin| self.origins.contains(&origin) || is_same(&origin, &called));
        if allowed {
            return Ok(());
        }
        let text = ShownText::clip_line(text, MAX_SHOWN);
        Err(Problem::new(
            ProblemKind::Origin,
            format!("pages of `{text}` may not call this server"),
        )
        .with_hint("the operator of this server names the origins that may"))
    }

    /// INV-262: checks that a request with a login cookie comes from a page of this server, not even
    /// from another page that may call with a key. `told` = the request must state its origin, because
    /// it may change data.
    pub(crate) fn check_own(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        told: bool,
    ) -> Result<(), Problem> {
        let called = self.check_host(uri, headers)?;
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let own = match (origins.next(), origins.next()) {
            (None, _) => !told,
            (Some(origin), None) => origin
                .to_str()
                .ok()
                .and_then(parse_origin)
                .is_some_and(|origin| is_same(&origin, &called)),
            (Some(_), Some(_)) => false,
        };
        // A page on another port of this machine counts as the same site, so its requests have the cookie
        // too.
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if own && site.is_none_or(|site| matches!(site, b"same-origin" | b"none")) {
            return Ok(());
        }
        let why =
            "a login is for pages of this server alone, and this request does not come from one";
        Err(Problem::new(ProblemKind::Origin, why)
            .with_hint("a program sends its key: `Authorization: Bearer bj_…`"))
    }

    /// INV-271: checks that a request without a key does not come from a page of another site. Such a
    /// page could not read the answer, but could cause work. A program states no site, and a page with
    /// an allowed origin has passed an earlier check.
    pub(crate) fn check_nobodys(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        let own = site.is_none_or(|site| matches!(site, b"same-origin" | b"none"));
        if own || headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let why = "pages of other sites may not call this server";
        Err(Problem::new(ProblemKind::Origin, why)
            .with_hint("the operator of this server names the origins that may"))
    }

    /// Checks that a request states exactly one host name, and that it is one of this server's.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<HostName, Problem> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let text = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        let known = |text: &str| {
            let name = HostName::parse(text)?;
            self.hosts.iter().any(|own| own.matches_host(&name)).then_some(name)
        };
        // A request with two host names is refused, because a proxy may have read the other one.
        let alone = hosts.next().is_none();
        let same = uri.authority().is_none_or(|authority| known(authority.as_str()).is_some());
        match known(text).filter(|_| alone && same) {
            Some(name) => Ok(name),
            None => {
                let text = ShownText::clip_line(text, MAX_SHOWN);
                let detail = format!("this server does not go by the name `{text}`");
                Err(Problem::new(ProblemKind::WrongHost, detail)
                    .with_hint("the operator of this server can give it more names"))
            }
        }
    }
}

impl HostName {
    /// Parses a host name with an optional port; `None` if the text contains anything else.
    fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        let host = authority.host();
        // After the host name only a port may follow; a user name before the host, or any other suffix,
        // is refused.
        let rest = text.strip_prefix(host)?;
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return None,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            Some(_) => return None,
        };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        (!host.is_empty()).then_some(Self { host, port })
    }

    fn matches_host(&self, called: &Self) -> bool {
        self.host == called.host
            && self.port.is_none_or(|port| called.port.unwrap_or(DEFAULT_PORT) == port)
    }
}

/// The port of a `Host` header that names none.
const DEFAULT_PORT: u16 = 80;

/// Parses an origin to lower-case scheme, host and port; `None` for `null` and for a text that is no
/// origin.
pub(crate) fn parse_origin(text: &str) -> Option<String> {
    let (scheme, host) = text.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let HostName { host, port } = HostName::parse(host)?;
    let default = if scheme == "https" { 443 } else { 80 };
    Some(match port.filter(|port| *port != default) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

/// Returns whether a page came from this server itself: by http, or by https through a proxy that kept
/// the host name.
fn is_same(origin: &str, called: &HostName) -> bool {
    let HostName { host, port } = called;
    ["http", "https"].iter().any(|scheme| {
        let own = match port {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        };
        parse_origin(&own).is_some_and(|own| own == origin)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(
        names: &ServerNames,
        lines: &[(header::HeaderName, &str)],
    ) -> Result<(), ProblemKind> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value.parse().unwrap());
        }
        names.check_request(&Uri::from_static("/"), &headers).map_err(|problem| problem.kind())
    }

    #[test]
    fn a_name_that_was_not_given_is_refused() {
        let names = ServerNames::loopback(8080).with_host("jar.example.org").unwrap();
        for good in ["localhost:8080", "LOCALHOST:8080", "[::1]:8080", "jar.example.org:1"] {
            assert_eq!(checked(&names, &[(header::HOST, good)]), Ok(()), "{good}");
        }
        for bad in
            ["", "localhost", "localhost:8081", "evil.test:8080", "a@localhost:8080", "127.0.0.1:"]
        {
            assert_eq!(
                checked(&names, &[(header::HOST, bad)]),
                Err(ProblemKind::WrongHost),
                "{bad}"
            );
        }
        assert_eq!(checked(&names, &[]), Err(ProblemKind::WrongHost));
        let twice = [(header::HOST, "localhost:8080"), (header::HOST, "evil.test")];
        assert_eq!(checked(&names, &twice), Err(ProblemKind::WrongHost));
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let names = ServerNames::loopback(8080).with_origin("https://app.example.org").unwrap();
        let from =
            |origin| checked(&names, &[(header::HOST, "localhost:8080"), (header::ORIGIN, origin)]);
        for good in ["http://localhost:8080", "https://app.example.org:443"] {
            assert_eq!(from(good), Ok(()), "{good}");
        }
        for bad in ["null", "http://localhost", "http://127.0.0.1:8080", "https://evil.test", "x"] {
            assert_eq!(from(bad), Err(ProblemKind::Origin), "{bad}");
        }
    }

    #[test]
    fn a_login_counts_for_pages_of_this_server_alone() {
        let names = ServerNames::loopback(8080).with_origin("https://app.example.org").unwrap();
        let from = |told: bool, lines: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "localhost:8080".parse().unwrap());
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            let checked = names.check_own(&Uri::from_static("/"), &headers, told);
            checked.map_err(|problem| problem.kind())
        };
        let own = ("origin", "http://localhost:8080");
        assert_eq!(from(true, &[own]), Ok(()));
        assert_eq!(from(true, &[own, ("sec-fetch-site", "same-origin")]), Ok(()));
        assert_eq!(from(false, &[("sec-fetch-site", "none")]), Ok(()));
        assert_eq!(from(false, &[]), Ok(()));
        for bad in [
            vec![],
            vec![own, own],
            vec![own, ("sec-fetch-site", "same-site")],
            vec![("origin", "https://app.example.org")],
            vec![("origin", "http://localhost:3000")],
            vec![("origin", "null")],
        ] {
            assert_eq!(from(true, &bad), Err(ProblemKind::Origin), "{bad:?}");
        }
        for site in ["same-site", "cross-site"] {
            assert_eq!(
                from(false, &[("sec-fetch-site", site)]),
                Err(ProblemKind::Origin),
                "{site}"
            );
        }
    }

    #[test]
    fn an_absolute_target_has_to_name_this_server_too() {
        let names = ServerNames::loopback(8080);
        let headers = [(header::HOST, "localhost:8080".parse().unwrap())].into_iter().collect();
        assert!(
            names.check_request(&Uri::from_static("http://localhost:8080/x"), &headers).is_ok()
        );
        assert!(names.check_request(&Uri::from_static("http://evil.test/x"), &headers).is_err());
    }

    #[test]
    fn what_is_no_name_is_refused_when_it_is_configured() {
        assert!(ServerNames::default().with_host("https://example.org").is_err());
        assert!(ServerNames::default().with_host("a b").is_err());
        assert!(ServerNames::default().with_origin("example.org").is_err());
        assert!(ServerNames::default().with_origin("ftp://example.org").is_err());
    }
}
