//! The URL of requests to a model, and the header with its key.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rustls_platform_verifier::BuilderVerifierExt as _;
use url::{Host, Url};

use crate::key::ApiKey;
use crate::limits::CONNECT_TIMEOUT;
use crate::text::quote_text;

/// Headers that a configuration cannot set, because they frame the request, or contain the key, which has a
/// separate setting.
const RESERVED_HEADERS: [&str; 9] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "x-api-key",
];

/// The URL of all requests to one model. Redirects are not followed and proxies are not used, so a request,
/// and above all its key, goes only to the host of this URL.
pub(crate) struct Endpoint {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    key: Option<ApiKey>,
}

/// The reason why a model's address or headers are not accepted.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// No request can be sent to the URL.
    #[error("`base_url` {0}")]
    BaseUrl(&'static str),
    /// A key would be sent to another machine without TLS.
    #[error(
        "a key or headers would be sent to `{host}` over plain http; use https, or set `allow_insecure = true`"
    )]
    Insecure {
        /// The host, for example `api.example.com`.
        host: String,
    },
    /// A header cannot be sent.
    #[error("header `{name}` {reason}")]
    Header {
        /// The name; escaped.
        name: String,
        /// The reason, which never contains the value.
        reason: &'static str,
    },
    /// The TLS library has no usable certificates or the HTTP client cannot be set up.
    #[error("the HTTPS client cannot be set up: {0}")]
    Setup(String),
}

impl Endpoint {
    /// Checks the URL and the headers; `path` is appended to `base_url`.
    pub(crate) fn new(
        base_url: &Url,
        path: &[&str],
        key: Option<(HeaderName, ApiKey)>,
        extra: &BTreeMap<String, String>,
        allow_insecure: bool,
    ) -> Result<Self, EndpointError> {
        let mut url = check_base_url(base_url)?;
        let secret = key.is_some() || !extra.is_empty();
        if url.scheme() == "http" && secret && !allow_insecure && !is_loopback(&url) {
            let host = quote_text(url.host_str().unwrap_or_default());
            return Err(EndpointError::Insecure { host });
        }
        url.path_segments_mut()
            .map_err(|()| EndpointError::BaseUrl("has no path"))?
            .pop_if_empty()
            .extend(path);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in extra {
            let (name, value) = parse_header(name, value)?;
            headers.insert(name, value);
        }
        let key = match key {
            Some((name, key)) => {
                let value = key.header_value(&name).ok_or_else(|| EndpointError::Header {
                    name: name.to_string(),
                    reason: "cannot carry the key: it has characters that no header may have",
                })?;
                headers.insert(name, value);
                Some(key)
            }
            None => None,
        };
        let client = http_client(url.scheme() == "https")?;
        Ok(Self { client, url, headers, key })
    }

    /// Adds a header, unless the configuration sets it.
    pub(crate) fn with_default_header(mut self, name: &'static str, value: &'static str) -> Self {
        let name = HeaderName::from_static(name);
        self.headers.entry(name).or_insert(HeaderValue::from_static(value));
        self
    }

    /// The host of the URL, to distinguish providers.
    pub(crate) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(crate) async fn post_body(&self, body: Bytes) -> reqwest::Result<reqwest::Response> {
        let request = self.client.post(self.url.clone());
        request.headers(self.headers.clone()).body(body).send().await
    }

    /// The key for which answers are searched, if there is one.
    pub(crate) fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }

    /// An error's text without the key, because the server may have repeated it.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.key {
            Some(key) => key.redact(text),
            None => Cow::Borrowed(text),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Endpoint")
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// Checks that the base URL is http(s), without a user name, password or fragment.
fn check_base_url(base_url: &Url) -> Result<Url, EndpointError> {
    if !matches!(base_url.scheme(), "http" | "https") {
        return Err(EndpointError::BaseUrl("must begin with `https://` or `http://`"));
    }
    if !base_url.username().is_empty() || base_url.password().is_some() {
        return Err(EndpointError::BaseUrl(
            "must not contain a user name or password; use `key` or `headers`",
        ));
    }
    if base_url.fragment().is_some() {
        return Err(EndpointError::BaseUrl("must not contain `#`"));
    }
    Ok(base_url.clone())
}

/// Returns whether the host is written as an address or name of this machine; no name is resolved.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Parses a configured header; its value is marked sensitive, so it is not logged.
fn parse_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), EndpointError> {
    let error = |reason| EndpointError::Header { name: quote_text(name), reason };
    let parsed: HeaderName = name.parse().map_err(|_| error("is not a header name"))?;
    if RESERVED_HEADERS.contains(&parsed.as_str()) {
        return Err(error("cannot be set here; a key goes into `key`"));
    }
    let mut value =
        HeaderValue::from_str(value).map_err(|_| error("has a value that no header may have"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Creates an HTTP client for models: without redirects and proxies, and, if `https` is true, with the
/// system's certificates. Its requests have no time limit of their own.
///
/// # Errors
/// When the system's certificates cannot be read.
pub fn http_client(https: bool) -> Result<reqwest::Client, EndpointError> {
    http_client_builder(https)?
        .build()
        .map_err(|error| EndpointError::Setup(quote_text(&error.to_string())))
}

/// The builder of [`http_client`], for a client with further settings.
///
/// # Errors
///
/// When the system's certificates cannot be read.
pub fn http_client_builder(https: bool) -> Result<reqwest::ClientBuilder, EndpointError> {
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(cached_tls_config(https)?)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("belljar/", env!("CARGO_PKG_VERSION"))))
}

/// The TLS settings. Loading the system's certificates takes milliseconds, so it happens once per process,
/// and only if `trusting` is true. Otherwise no certificate is trusted.
fn cached_tls_config(trusting: bool) -> Result<rustls::ClientConfig, EndpointError> {
    static TRUSTING: OnceLock<Result<rustls::ClientConfig, String>> = OnceLock::new();
    let config = if trusting {
        TRUSTING
            .get_or_init(|| tls_config(true).map_err(|error| quote_text(&error.to_string())))
            .clone()
    } else {
        tls_config(false).map_err(|error| quote_text(&error.to_string()))
    };
    config.map_err(EndpointError::Setup)
}

/// The TLS settings; if `trusting` is false, no certificate is trusted.
fn tls_config(trusting: bool) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?;
    let mut config = if trusting {
        builder.with_platform_verifier()?.with_no_client_auth()
    } else {
        builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str, key: bool, insecure: bool) -> Result<Endpoint, EndpointError> {
        let key = key.then(|| (HeaderName::from_static("x-api-key"), ApiKey::new("k".into())));
        Endpoint::new(
            &url.parse().unwrap(),
            &["chat", "completions"],
            key,
            &BTreeMap::new(),
            insecure,
        )
    }

    #[test]
    fn a_key_is_not_sent_in_clear_text_unless_allowed() {
        assert!(matches!(
            endpoint("http://api.test/v1", true, false),
            Err(EndpointError::Insecure { .. })
        ));
        assert!(endpoint("http://127.0.0.1.api.test/v1", true, false).is_err());
        for allowed in ["http://localhost:1/v1", "http://127.0.0.9/v1", "http://[::1]/v1"] {
            assert!(endpoint(allowed, true, false).is_ok(), "{allowed}");
        }
        assert!(endpoint("http://api.test/v1", true, true).is_ok());
        assert!(endpoint("http://api.test/v1", false, false).is_ok());
    }

    #[test]
    fn the_path_is_appended_and_a_query_stays() {
        for (base, url) in [
            ("http://h/v1", "http://h/v1/chat/completions"),
            ("http://h/v1/", "http://h/v1/chat/completions"),
            ("http://h", "http://h/chat/completions"),
            ("http://h/v1?api-version=2", "http://h/v1/chat/completions?api-version=2"),
        ] {
            assert_eq!(endpoint(base, false, false).unwrap().url.as_str(), url);
        }
    }

    #[test]
    fn credentials_in_the_url_are_refused_without_repeating_them() {
        let error = endpoint("https://me:hunter2@api.test/v1", false, false).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[test]
    fn headers_that_frame_the_request_or_carry_the_key_are_refused() {
        let url = "https://api.test/v1".parse().unwrap();
        for name in ["Authorization", "Host", "Content-Length", "bad name"] {
            let extra = BTreeMap::from([(name.to_owned(), "hunter2".to_owned())]);
            let error = Endpoint::new(&url, &[], None, &extra, false).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
}
