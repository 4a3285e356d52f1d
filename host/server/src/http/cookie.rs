//! The cookie of a browser's login: reads, sets and removes it.
//!
//! A browser keeps cookies by host, not by port. So the cookie's name contains the port, and two
//! servers on one machine do not log each other's browsers out.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};

/// The cookie's name for a server address without a port. With a port, the name ends with it.
const NAME: &str = "belljar";

/// The prefix of a cookie name for which browsers require that the cookie was set by this very host,
/// over https and for every path. Neither a program on another port nor a page of a sibling domain can
/// replace such a cookie.
const HOST_ALONE: &str = "__Host-";

/// A path for which an attacker may have set a cookie of our name; a removal for the path `/` does not
/// remove that cookie.
const OTHER_PATH: &str = "/v1";

/// The login in a request's cookie. If the request has several cookies of our name, all are ignored,
/// because one may be forged.
pub(crate) fn sent_login(headers: &HeaderMap) -> Option<&str> {
    let name = cookie_name(headers);
    let alone = format!("{HOST_ALONE}{name}");
    let one = |name: &str| {
        let mut own = cookie_values(headers, name);
        own.next().filter(|_| own.next().is_none())
    };
    match cookie_values(headers, &alone).next() {
        Some(_) => one(&alone),
        None => one(&name),
    }
}

/// Returns whether a request has at least one login cookie.
pub(crate) fn is_sent(headers: &HeaderMap) -> bool {
    let name = cookie_name(headers);
    let alone = format!("{HOST_ALONE}{name}");
    cookie_values(headers, &name).chain(cookie_values(headers, &alone)).next().is_some()
}

/// The values of all cookies of one name in a request.
fn cookie_values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// The header that sets a browser's login cookie, valid for `lasts`. If the page came by https, the
/// cookie is limited to https and to this host.
pub(crate) fn set_cookie(headers: &HeaderMap, login: &str, lasts: Duration) -> Option<HeaderValue> {
    let prefix = if by_https(headers) { HOST_ALONE } else { "" };
    cookie_line(headers, prefix, login, "/", lasts.as_secs())
}

/// The headers that remove the login cookie, including a forged one for another path.
pub(crate) fn remove_cookie(headers: &HeaderMap) -> impl Iterator<Item = HeaderValue> {
    let of = [("", "/"), ("", OTHER_PATH), (HOST_ALONE, "/")];
    of.into_iter().filter_map(|(prefix, path)| cookie_line(headers, prefix, "", path, 0))
}

/// Returns whether the browser called by https. Behind a proxy with TLS, only the browser's headers
/// show this.
fn by_https(headers: &HeaderMap) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    origin.is_some_and(|origin| origin.starts_with("https://"))
}

/// INV-265: returns whether the answer should tell the browser to use only https from now on: the
/// browser called by https, and by a name other than its own machine's. The proof is the page's origin,
/// or a cookie limited to https. Over http, a browser would ignore that header.
pub(crate) fn is_to_stay_with_https(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).to_ascii_lowercase();
    let here = host.starts_with('[') || host == "localhost" || host.ends_with(".localhost");
    if host.is_empty() || here || host.parse::<std::net::Ipv4Addr>().is_ok() {
        return false;
    }
    let alone = format!("{HOST_ALONE}{}", cookie_name(headers));
    by_https(headers) || cookie_values(headers, &alone).next().is_some()
}

/// The text of a `Set-Cookie` header. It is marked sensitive, so it is not logged.
fn cookie_line(
    headers: &HeaderMap,
    prefix: &str,
    value: &str,
    path: &str,
    seconds: u64,
) -> Option<HeaderValue> {
    let secure = if prefix == HOST_ALONE || by_https(headers) { "; Secure" } else { "" };
    let name = cookie_name(headers);
    let line = format!(
        "{prefix}{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
    let mut line = HeaderValue::from_str(&line).ok()?;
    line.set_sensitive(true);
    Some(line)
}

/// The cookie's name for the port in the request's `Host` header.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let is_port = |port: &&str| {
        (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    match port.filter(is_port) {
        Some(port) => format!("{NAME}-{port}"),
        None => NAME.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_came_by_https_to_a_name_of_its_own_is_to_stay_with_it() {
        let stays = |host: &str, more: &[(header::HeaderName, &str)]| {
            is_to_stay_with_https(&headers(&[&[(header::HOST, host)][..], more].concat()))
        };
        let page = |host: &str| format!("https://{host}");
        for host in ["jar.example.org", "jar.example.org:8443", "JAR.example.org"] {
            assert!(stays(host, &[(header::ORIGIN, &page(host))]), "{host}");
            assert!(!stays(host, &[(header::ORIGIN, &format!("http://{host}"))]), "{host}");
            assert!(!stays(host, &[]), "{host}");
        }
        let login = [(header::COOKIE, "a=b; __Host-belljar=bl_x")];
        assert!(stays("jar.example.org", &login));
        assert!(!stays("jar.example.org", &[(header::COOKIE, "belljar=bl_x")]));
        // On the browser's own machine, another program may listen under the same name without https.
        for host in ["localhost:7411", "a.localhost", "127.0.0.1:7411", "[::1]:7411", ""] {
            assert!(!stays(host, &[(header::ORIGIN, &page(host))]), "{host}");
        }
    }

    fn headers(lines: &[(header::HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_cookie_is_found_among_others_by_the_name_of_its_port() {
        let of = |host: &str, cookie: &str| {
            let headers = headers(&[(header::HOST, host), (header::COOKIE, cookie)]);
            sent_login(&headers).map(str::to_owned)
        };
        let here = "localhost:7411";
        assert_eq!(of(here, "a=b; belljar-7411=bl_x;c=d").as_deref(), Some("bl_x"));
        assert_eq!(of(here, "belljar-7412=bl_x; belljar=bl_y; xbelljar-7411=z"), None);
        assert_eq!(of("jar.example.org", "belljar=bl_x").as_deref(), Some("bl_x"));
        assert_eq!(of("[::1]", "belljar=bl_x").as_deref(), Some("bl_x"));
        assert_eq!(of("[::1]:80", "belljar-80=bl_x").as_deref(), Some("bl_x"));
        assert_eq!(of(here, "belljar-7411=a; belljar-7411=b"), None, "twice");
        let twice =
            headers(&[(header::HOST, here), (header::COOKIE, "belljar-7411=a; belljar-7411=b")]);
        assert!(is_sent(&twice));
        let planted = "belljar-7411=bl_theirs; __Host-belljar-7411=bl_own";
        assert_eq!(of(here, planted).as_deref(), Some("bl_own"));
        assert_eq!(of(here, "__Host-belljar-7411=a; __Host-belljar-7411=b; belljar-7411=c"), None);
        let lines =
            [(header::HOST, here), (header::COOKIE, "a"), (header::COOKIE, "belljar-7411=x")];
        assert_eq!(sent_login(&headers(&lines)), Some("x"));
        assert_eq!(sent_login(&headers(&[(header::HOST, here)])), None);
    }

    #[test]
    fn a_cookie_is_out_of_the_reach_of_scripts_and_other_sites() {
        let host = (header::HOST, "localhost:7411");
        let plain = headers(&[host.clone(), (header::ORIGIN, "http://localhost:7411")]);
        let line = set_cookie(&plain, "bl_x", Duration::from_secs(60)).unwrap();
        let wanted = "belljar-7411=bl_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict";
        assert_eq!(line.to_str().unwrap(), wanted);
        let safe = headers(&[host, (header::ORIGIN, "https://localhost:7411")]);
        let line = set_cookie(&safe, "bl_x", Duration::from_secs(60)).unwrap();
        let wanted =
            "__Host-belljar-7411=bl_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(line.to_str().unwrap(), wanted);
        let gone = |sent: &HeaderMap| {
            let lines = remove_cookie(sent).map(|line| line.to_str().unwrap().to_owned());
            lines.collect::<Vec<_>>()
        };
        let rest = "Max-Age=0; HttpOnly; SameSite=Strict";
        let expected = [
            format!("belljar-7411=; Path=/; {rest}"),
            format!("belljar-7411=; Path=/v1; {rest}"),
            format!("__Host-belljar-7411=; Path=/; {rest}; Secure"),
        ];
        assert_eq!(gone(&plain), expected);
        assert!(gone(&safe).iter().all(|line| line.ends_with("; Secure")));
    }
}
