//! Requests of a helper process for one file, to the one host of its scope.

use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use belljar_policy::{RequestTarget, ShownText};
use reqwest::header::{ACCEPT, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url};
use sha2::{Digest as _, Sha256, Sha512};

use super::news::{HelperNews, send_news};
use super::scope::FetchScope;

/// Redirections within the host that are followed.
const MAX_REDIRECTIONS: usize = 5;

/// The reason where the host knows nothing of the kind.
pub(super) const NOTHING: &str = "there is nothing at this address";

/// How long the host may be silent.
const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Bytes between two messages about the progress.
const REPORTED: u64 = 256 << 10;

/// A client for one host.
pub(super) struct FileClient {
    client: Client,
    scope: FetchScope,
    most: u64,
}

impl FileClient {
    /// A client that receives at most `most` bytes for a file.
    pub(super) fn new(scope: FetchScope, most: u64) -> Result<Self, String> {
        let https = scope.target().scheme() == belljar_policy::UrlScheme::Https;
        let client = belljar_model::http_client_builder(https)
            .map_err(|error| error.to_string())?
            .dns_resolver(std::sync::Arc::new(ScopedResolver(scope.clone())))
            .read_timeout(MAX_SILENCE)
            .build()
            .map_err(|_| "the HTTPS client cannot be set up".to_owned())?;
        Ok(Self { client, scope, most })
    }

    /// Stores what `url` answers with; returns its SHA-256. With `sha512`, another content is refused.
    pub(super) async fn store_file(
        &self,
        url: &str,
        to: &Path,
        sha512: Option<&[u8]>,
    ) -> Result<String, String> {
        let mut answer = self.request(url, None).await?;
        let mut file = File::create_new(to).map_err(|error| error.to_string())?;
        let (mut short, mut long) = (Sha256::new(), Sha512::new());
        let (mut received, mut reported) = (0_u64, 0_u64);
        while let Some(piece) = answer.chunk().await.map_err(broken_answer)? {
            received = received.saturating_add(piece.len() as u64);
            if received > self.most {
                return Err(format!("it has more than {} bytes", self.most));
            }
            file.write_all(&piece).map_err(|error| error.to_string())?;
            short.update(&piece);
            long.update(&piece);
            if received - reported >= REPORTED {
                reported = received;
                send_news(&HelperNews::Received(received));
            }
        }
        if sha512.is_some_and(|wanted| long.finalize().as_slice() != wanted) {
            return Err("its content is another than the registry's SHA-512 says".to_owned());
        }
        Ok(short.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads a document whole; `None` = missing.
    pub(super) async fn read_document(
        &self,
        url: &str,
        accept: &'static str,
        most: u64,
    ) -> Result<Vec<u8>, String> {
        let mut answer = self.request(url, Some(HeaderValue::from_static(accept))).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(broken_answer)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() as u64 > most {
                return Err(format!("its description has more than {most} bytes"));
            }
        }
        Ok(bytes)
    }

    /// A successful answer. Redirections are followed within the host.
    async fn request(&self, url: &str, accept: Option<HeaderValue>) -> Result<Response, String> {
        let mut url = Url::parse(url).map_err(|_| "it is no address".to_owned())?;
        for _ in 0..=MAX_REDIRECTIONS {
            let target =
                RequestTarget::from_url(&url).map_err(|_| "it is no address".to_owned())?;
            // Addresses in numbers are not resolved, so the scope is asked here.
            let _: Vec<SocketAddr> = self.scope.resolve_target(&target).await?;
            let mut request = self.client.get(url.clone());
            if let Some(accept) = &accept {
                request = request.header(ACCEPT, accept.clone());
            }
            let answer = request.send().await.map_err(|error| {
                let error = crate::setup::exit::format_error_chain(&error.without_url());
                ShownText::clip_line(&error, 200).to_string()
            })?;
            let status = answer.status();
            if status.is_success() {
                return Ok(answer);
            }
            if !status.is_redirection() {
                return Err(match status.as_u16() {
                    404 | 410 => NOTHING.to_owned(),
                    401 | 403 => "its host wants a password or refuses".to_owned(),
                    code => format!("its host answers with status {code}"),
                });
            }
            let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            url = to.and_then(|to| url.join(to).ok()).ok_or("it leads on to nowhere")?;
        }
        Err("it leads on again and again".to_owned())
    }
}

fn broken_answer(error: reqwest::Error) -> String {
    let error = crate::setup::exit::format_error_chain(&error.without_url());
    format!("the connection broke: {}", ShownText::clip_line(&error, 200))
}

/// Resolves the host of the scope alone.
struct ScopedResolver(FetchScope);

impl reqwest::dns::Resolve for ScopedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let scope = self.0.clone();
        Box::pin(async move {
            let target = scope.target().clone();
            let is_named = matches!(target.host(), belljar_policy::TargetHost::Name(own) if own == name.as_str());
            if !is_named {
                return Err("another host was not named".into());
            }
            let found = scope.resolve_target(&target).await?;
            let found: reqwest::dns::Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}
