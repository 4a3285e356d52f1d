//! The web page, a browser's view of the API. Its files are part of the program, equal for everybody and
//! without a tenant's data, so they need no key.
//!
//! The page gets all data from the API, like any other client.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use tokio::time::Instant;

use crate::app::App;
use crate::http::peers::PeerPlace;
use crate::http::problem::Problem;
use crate::http::rate::RateVerdict;
use crate::http::respond::accepts_media_type;

/// A file of the page.
pub(crate) struct File {
    /// The path below `web/dist`.
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
    /// The content packed with gzip; `None` if packing does not make it smaller.
    packed: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The HTML file that every view begins with.
const SHELL: &str = "index.html";

/// The prefix of the API's paths, below which no page is served.
const API: &str = "/v1/";

/// The directory of files whose names contain a digest of the content, so their content never changes.
const ASSETS: &str = "assets/";

/// The first parts of the paths at which a browser gets the page, for example `/sessions/ID`.
const VIEWS: [&str; 9] =
    ["agents", "audit", "libraries", "login", "rights", "running", "sessions", "tools", "usage"];

/// INV-260: the rights of the page in a browser. The page loads nothing of another origin and runs only its
/// own script files. Text becomes markup only through the sanitiser, and no other page can frame this one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
    trusted-types dompurify";

/// Devices and features of a browser that a page could request, all switched off: the page needs none.
const PERMISSIONS: &str = "camera=(), display-capture=(), geolocation=(), microphone=(), \
    payment=(), usb=()";

/// Adds the page's files and views to the server's paths. A program that was built without the page adds
/// nothing.
pub(crate) fn add_page(mut router: Router<App>) -> Router<App> {
    let Some(shell) = FILES.iter().find(|file| file.name == SHELL) else { return router };
    let show = move |app: State<App>,
                     place: Option<Extension<Arc<PeerPlace>>>,
                     headers: HeaderMap| { serve_file(shell, app, place, headers) };
    router = router.route("/", get(show));
    for view in VIEWS {
        router = router
            .route(&format!("/{view}"), get(show))
            .route(&format!("/{view}/{{*rest}}"), get(show));
    }
    for file in FILES.iter().filter(|file| file.name != SHELL) {
        let show = move |app: State<App>, place: Option<Extension<Arc<PeerPlace>>>, headers| {
            serve_file(file, app, place, headers)
        };
        router = router.route(&format!("/{}", file.name), get(show));
    }
    router
}

/// The answer for an unknown path: a browser gets the page, which links to its views; other clients get only
/// the problem.
pub(crate) async fn missing_path(
    app: State<App>,
    place: Option<Extension<Arc<PeerPlace>>>,
    request: Request,
) -> Response {
    let path = request.uri().path();
    let by_browser =
        request.method() == Method::GET && accepts_media_type(request.headers(), "text/html");
    let shell = FILES.iter().find(|file| file.name == SHELL);
    let Some(shell) = shell.filter(|_| by_browser && !path.starts_with(API)) else {
        let mut response = Problem::not_found("path", path).into_response();
        // Clients of OpenAI's API may call operations that other providers have, and expect its form of
        // errors.
        if path == "/v1" || path.starts_with("/v1/") {
            crate::openai::errors::reshape_problem(&mut response);
        }
        return response;
    };
    let mut response = serve_file(shell, app, place, request.headers().clone()).await;
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

/// Serves a file of the page, unless its address has requested too many.
async fn serve_file(
    file: &'static File,
    State(app): State<App>,
    place: Option<Extension<Arc<PeerPlace>>>,
    headers: HeaderMap,
) -> Response {
    let address = place.map(|Extension(place)| place.peer().to_string()).unwrap_or_default();
    if let RateVerdict::After(wait) = app.page_rates().spend_one(&address, Instant::now()) {
        let detail = "too many files of the page were asked for from this address";
        return Problem::too_many(detail, wait).into_response();
    }
    file.to_response(&headers)
}

impl File {
    /// The response with this file: packed if the browser accepts it, with the headers for caching and
    /// security.
    fn to_response(&'static self, asked: &HeaderMap) -> Response {
        let packed = self.packed.filter(|_| takes_packed(asked));
        let body = Bytes::from_static(packed.unwrap_or(self.bytes));
        let mut response = Response::new(Body::from(body));
        let lasts = if self.name.starts_with(ASSETS) {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        let headers = response.headers_mut();
        if packed.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        for (name, value) in [
            ("content-type", self.media_type),
            ("cache-control", lasts),
            ("vary", "accept-encoding"),
            ("content-security-policy", POLICY),
            ("cross-origin-opener-policy", "same-origin"),
            ("permissions-policy", PERMISSIONS),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Returns whether a browser accepts gzip.
fn takes_packed(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
    let words = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    words.map(str::trim).any(|word| {
        let (name, weight) = word.split_once(';').unwrap_or((word, ""));
        let none = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !none
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_packed_for_whom_unpacks_it() {
        let takes = |value: &str| {
            let line = (header::ACCEPT_ENCODING, value.parse().unwrap());
            takes_packed(&HeaderMap::from_iter([line]))
        };
        assert!(takes("gzip") && takes("br, GZIP;q=0.5") && takes("deflate,gzip , br"));
        assert!(!takes("br") && !takes("gzip;q=0") && !takes("identity") && !takes(""));
        assert!(!takes_packed(&HeaderMap::new()));
    }

    #[test]
    fn every_script_and_style_of_the_shell_is_a_file_of_the_page() {
        let Some(shell) = FILES.iter().find(|file| file.name == SHELL) else { return };
        let text = std::str::from_utf8(shell.bytes).unwrap();
        assert!(text.contains(&format!("content=\"{DIGEST}\"")), "{text}");
        let places = text.split(['"', '\'']).filter(|part| part.starts_with('/'));
        for place in places {
            assert!(FILES.iter().any(|file| file.name == &place[1..]), "{place}");
        }
        // The page's policy would block inline styles and handlers, so there must be none.
        assert!(!text.contains("<style") && !text.contains("style=") && !text.contains("onload="));
    }
}
