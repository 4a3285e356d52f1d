//! The cookie of a login: how it is read, set and taken away.
//!
//! A cookie is its host's and not its port's, so each port has one of a name of its own: two servers
//! on one machine do not log each other's browsers out.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};

/// The name where a server is called by no port.
const NAME: &str = "belljar";

/// The login in the cookie of a request. One that comes twice is none: only one can be this server's.
pub(crate) fn sent(headers: &HeaderMap) -> Option<&str> {
    let name = name(headers);
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut own = pairs.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    match (own.next(), own.next()) {
        (Some(one), None) => Some(one),
        (Some(_), Some(_)) => Some(""),
        (None, _) => None,
    }
}

/// Whether a request has one.
pub(crate) fn is_sent(headers: &HeaderMap) -> bool {
    sent(headers).is_some()
}

/// The header that gives a browser its login. A page that came by https has it kept for that alone.
pub(crate) fn set(headers: &HeaderMap, login: &str, lasts: Duration) -> Option<HeaderValue> {
    line(headers, login, lasts.as_secs())
}

/// The header that takes it away.
pub(crate) fn forget(headers: &HeaderMap) -> Option<HeaderValue> {
    line(headers, "", 0)
}

fn line(headers: &HeaderMap, value: &str, seconds: u64) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    // Behind a proxy with TLS: the browser says so itself, and nobody else can for it.
    let by_https = origin.is_some_and(|origin| origin.starts_with("https://"));
    let secure = if by_https { "; Secure" } else { "" };
    let name = name(headers);
    let line =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    let mut line = HeaderValue::from_str(&line).ok()?;
    line.set_sensitive(true);
    Some(line)
}

fn name(headers: &HeaderMap) -> String {
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
            sent(&headers).map(str::to_owned)
        };
        let here = "localhost:7411";
        assert_eq!(of(here, "a=b; belljar-7411=bl_x;c=d").as_deref(), Some("bl_x"));
        assert_eq!(of(here, "belljar-7412=bl_x; belljar=bl_y; xbelljar-7411=z"), None);
        assert_eq!(of("jar.example.org", "belljar=bl_x").as_deref(), Some("bl_x"));
        assert_eq!(of("[::1]", "belljar=bl_x").as_deref(), Some("bl_x"));
        assert_eq!(of("[::1]:80", "belljar-80=bl_x").as_deref(), Some("bl_x"));
        assert_eq!(of(here, "belljar-7411=a; belljar-7411=b").as_deref(), Some(""), "twice");
        let lines =
            [(header::HOST, here), (header::COOKIE, "a"), (header::COOKIE, "belljar-7411=x")];
        assert_eq!(sent(&headers(&lines)), Some("x"));
        assert_eq!(sent(&headers(&[(header::HOST, here)])), None);
    }

    #[test]
    fn a_cookie_is_out_of_the_reach_of_scripts_and_other_sites() {
        let host = (header::HOST, "localhost:7411");
        let plain = headers(&[host.clone(), (header::ORIGIN, "http://localhost:7411")]);
        let line = set(&plain, "bl_x", Duration::from_secs(60)).unwrap();
        let wanted = "belljar-7411=bl_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict";
        assert_eq!(line.to_str().unwrap(), wanted);
        let safe = headers(&[host, (header::ORIGIN, "https://localhost:7411")]);
        let line = forget(&safe).unwrap();
        let wanted = "belljar-7411=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(line.to_str().unwrap(), wanted);
    }
}
