//! JSON answers, and the parts of requests: path, query and body, each with a limit, and each failure
//! as a [`Problem`].

use std::borrow::Cow;
use std::future::Future;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_policy::ShownText;
use belljar_received::json::{from_slice_with_wholes, mend_bytes};
use belljar_received::whole::normalize_integers;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::http::in_flight::InFlight;
use crate::http::outward::PlaceHider;
use crate::http::problem::{Problem, ProblemKind};

/// The most bytes of a request's body: enough for a long task with its context. Larger material belongs
/// in files of the workspace.
pub const MAX_BODY: usize = 4 << 20;

/// The time within which a request's body must arrive.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// The most characters of a JSON parser's message that a problem repeats.
const MAX_MESSAGE: usize = 300;

/// A successful answer with a JSON body.
pub(crate) struct JsonAnswer<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for JsonAnswer<T> {
    fn into_response(self) -> Response {
        json_as(StatusCode::OK, "application/json", &self.0)
    }
}

/// A mark on the answer to a call that changed nothing. INV-413: such a call gets no line in the audit
/// log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnchangedMark;

/// A JSON answer with a statement whether the call changed anything.
pub(crate) struct ChangeAnswer<T> {
    pub(crate) body: T,
    pub(crate) changed: bool,
}

impl<T: Serialize> IntoResponse for ChangeAnswer<T> {
    /// Marks the response if nothing was changed.
    fn into_response(self) -> Response {
        let mut response = JsonAnswer(self.body).into_response();
        if !self.changed {
            response.extensions_mut().insert(UnchangedMark);
        }
        response
    }
}

/// JSON attached to a response that has no body yet: [`hide_places`] masks the host's paths in it and
/// sets the body.
#[derive(Clone)]
struct UnhiddenJson(String);

/// Sets the body of a JSON answer, with the host's paths masked (INV-93).
pub(crate) fn hide_places(outward: &PlaceHider, response: &mut Response) {
    let Some(UnhiddenJson(json)) = response.extensions_mut().remove::<UnhiddenJson>() else {
        return;
    };
    let body = outward.hide_in_json(json).into_string();
    let length = HeaderValue::from(body.len());
    response.headers_mut().insert(header::CONTENT_LENGTH, length);
    *response.body_mut() = Body::from(body);
}

/// Replaces the JSON body of an answer.
pub(crate) fn say_instead(response: &mut Response, value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(json) => {
            response.headers_mut().remove(header::CONTENT_LENGTH);
            response.extensions_mut().insert(UnhiddenJson(json));
        }
        Err(error) => tracing::error!(%error, "an answer cannot be written as JSON"),
    }
}

/// A JSON answer with the given status and media type.
pub(crate) fn json_as(
    status: StatusCode,
    media_type: &'static str,
    value: &impl Serialize,
) -> Response {
    let json = match serde_json::to_string(value) {
        Ok(json) => json,
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(UnhiddenJson(json));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A request's JSON body: at most [`MAX_BODY`] bytes, arriving within [`BODY_TIMEOUT`].
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    /// Parses the body; a problem if it is no JSON or does not have the form of `T`.
    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        match serde_json::from_slice(&json_bytes(request).await?) {
            Ok(value) => Ok(Self(value)),
            Err(error) => {
                // The parser's message may repeat a name or a value from the body, so it is escaped and
                // cut.
                let why = error.to_string();
                let why = ShownText::clip_line(&why, MAX_MESSAGE);
                Err(Problem::invalid(format!("the body does not fit: {why}")))
            }
        }
    }
}

/// Reads a body with a JSON content type, within the limits of [`JsonBody`]. The bytes are unchanged,
/// except that half a surrogate pair becomes U+FFFD (INV-471), and a whole number in float notation
/// becomes an integer (INV-500).
pub(crate) async fn json_bytes(request: Request) -> Result<Vec<u8>, Problem> {
    if !is_json(request.headers()) {
        let detail = "the body has to be `application/json`";
        return Err(Problem::new(ProblemKind::MediaType, detail));
    }
    let flight = request.extensions().get::<InFlight>().cloned();
    let flight = flight.ok_or_else(|| Problem::bug("a body is read without a gate before"))?;
    let reading = collect_body(request.into_body(), &flight);
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Err(_) => {
            let detail = format!("the body did not arrive within {BODY_TIMEOUT:?}");
            Err(Problem::new(ProblemKind::Timeout, detail))
        }
        Ok(read) => {
            read.map(|bytes| change_body(change_body(bytes, mend_bytes), normalize_integers))
        }
    }
}

/// Applies `how` to the bytes of a body. A borrowed result means: unchanged.
fn change_body(bytes: Vec<u8>, how: impl Fn(&[u8]) -> Cow<'_, [u8]>) -> Vec<u8> {
    match how(&bytes) {
        Cow::Borrowed(_) => bytes,
        Cow::Owned(changed) => changed,
    }
}

/// Reads a small JSON body of a caller who may be a stranger: at most `most` bytes, arriving within
/// [`BODY_TIMEOUT`]. The parser's message is left out of a problem, because it may repeat a secret.
pub(crate) async fn small_body<T: DeserializeOwned>(
    request: Request,
    most: usize,
) -> Result<T, Problem> {
    if !is_json(request.headers()) {
        let detail = "the body has to be `application/json`";
        return Err(Problem::new(ProblemKind::MediaType, detail));
    }
    let reading = axum::body::to_bytes(request.into_body(), most);
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Err(_) => {
            let detail = format!("the body did not arrive within {BODY_TIMEOUT:?}");
            return Err(Problem::new(ProblemKind::Timeout, detail));
        }
        Ok(read) => read.map_err(|_| {
            let detail = format!("the body broke off, or has more than {most} bytes");
            Problem::new(ProblemKind::TooLarge, detail)
        })?,
    };
    from_slice_with_wholes(&bytes).map_err(|_| Problem::invalid("the body does not fit"))
}

/// A request's JSON body; the type's default value if the request has no body.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    /// Reads the body; the default value if it is empty.
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if request.body().size_hint().exact() == Some(0) {
            return Ok(Self(T::default()));
        }
        JsonBody::from_request(request, state).await.map(|JsonBody(body)| Self(body))
    }
}

/// Returns whether the request's content type is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// Reads a whole body. The request holds the bytes received, and as many again for the parsed form.
async fn collect_body(mut body: Body, flight: &InFlight) -> Result<Vec<u8>, Problem> {
    let too_long = || {
        Problem::new(ProblemKind::TooLarge, format!("the body has more than {MAX_BODY} bytes"))
            .with_hint(
                "put what is long into a file of the workspace, and name the file; of images send \
                 smaller ones, or fewer",
            )
    };
    let stated = body.size_hint().lower();
    if usize::try_from(stated).map_or(true, |stated| stated > MAX_BODY) {
        return Err(too_long());
    }
    let mut pieces: Vec<Bytes> = Vec::new();
    let mut bytes = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::invalid("the body broke off"))?;
        let Ok(piece) = frame.into_data() else { continue };
        bytes = bytes.saturating_add(piece.len());
        if bytes > MAX_BODY {
            return Err(too_long());
        }
        flight.try_hold(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(2))?;
        pieces.push(piece);
    }
    Ok(pieces.concat())
}

/// The parsed query of a request.
pub(crate) struct QueryOf<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for QueryOf<T> {
    type Rejection = Problem;

    /// Parses the query; a problem if it does not have the form of `T`.
    fn from_request_parts(
        parts: &mut Parts,
        _state: &S,
    ) -> impl Future<Output = Result<Self, Problem>> + Send {
        let read = Query::<T>::try_from_uri(&parts.uri);
        std::future::ready(match read {
            Ok(Query(value)) => Ok(Self(value)),
            Err(error) => {
                let why = error.body_text();
                let why = ShownText::clip_line(&why, MAX_MESSAGE);
                Err(Problem::invalid(format!("the query does not fit: {why}")))
            }
        })
    }
}

/// The parsed parameters of a request's path.
pub(crate) struct PathOf<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathOf<T> {
    type Rejection = Problem;

    /// Parses the path's parameters; a parameter of the wrong form is answered as not found.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            // No object's name is unreadable as text or number, so the answer is that nothing was
            // found.
            Err(_) => Err(Problem::not_found("such thing", parts.uri.path())),
        }
    }
}

/// Returns whether the header `Accept` names this media type; `*/*` does not count.
pub(crate) fn accepts_media_type(headers: &HeaderMap, media_type: &str) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|part| {
        part.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_asked_for_among_others() {
        let accepts = |value: &str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT, value.parse().unwrap())]);
            accepts_media_type(&headers, "text/event-stream")
        };
        assert!(accepts("text/event-stream"));
        assert!(accepts("application/json, Text/Event-Stream;q=0.9"));
        assert!(!accepts("*/*"));
        assert!(!super::accepts_media_type(&HeaderMap::new(), "text/event-stream"));
    }
    use crate::http::in_flight::ByteBounds;
    use serde_json::Value;

    /// A request as it arrives at a handler, after the layer that authenticates it.
    fn request(body: Body, flights: &ByteBounds) -> Request {
        let request = Request::builder()
            .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
            .extension(flights.begin_request(&"red".into(), None));
        request.body(body).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_is_given_up() {
        let never = futures::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let flights = ByteBounds::new(u64::MAX, 1 << 20);
        let request = request(Body::from_stream(never), &flights);
        let read = JsonBody::<Value>::from_request(request, &()).await;
        assert_eq!(read.err().map(|problem| problem.kind()), Some(ProblemKind::Timeout));
    }

    #[tokio::test]
    async fn half_a_surrogate_pair_in_a_body_is_replaced() {
        let flights = ByteBounds::new(u64::MAX, 1 << 20);
        let text = r#"{"task": "cut \ud83d", "all": "\ud83d\ude00 \\ud83d"}"#;
        let body = request(Body::from(text), &flights);
        let JsonBody(read) = JsonBody::<Value>::from_request(body, &()).await.unwrap();
        assert_eq!(read, serde_json::json!({"task": "cut \u{fffd}", "all": "😀 \\ud83d"}));
        let body = request(Body::from(text), &flights);
        let small: Value = small_body(body, 1_000).await.unwrap();
        assert_eq!(small, read);
    }

    #[tokio::test]
    async fn a_whole_number_in_a_body_is_an_integer_however_it_is_written() {
        #[derive(serde::Deserialize)]
        struct Wish {
            most: u64,
            heat: f64,
        }
        let flights = ByteBounds::new(u64::MAX, 1 << 20);
        let read = async |text: &'static str| {
            let body = request(Body::from(text), &flights);
            let JsonBody(Wish { most, heat }) = JsonBody::<Wish>::from_request(body, &()).await?;
            let body = request(Body::from(text), &flights);
            let small: Wish = small_body(body, 1_000).await?;
            assert_eq!((small.most, small.heat.to_bits()), (most, heat.to_bits()));
            Ok::<_, Problem>((most, heat))
        };
        let told = async |text: &'static str| read(text).await.map_err(|problem| problem.kind());
        assert_eq!(told(r#"{"most": 5.0, "heat": 1.0}"#).await, Ok((5, 1.0)));
        assert_eq!(told(r#"{"most": 1e3, "heat": 0.7}"#).await, Ok((1_000, 0.7)));
        for wrong in [
            r#"{"most": 5.5, "heat": 1}"#,
            r#"{"most": 1e400, "heat": 1}"#,
            r#"{"most": -5.0, "heat": 1}"#,
            r#"{"most": 18446744073709551617.0, "heat": 1}"#,
        ] {
            assert_eq!(told(wrong).await, Err(ProblemKind::Invalid), "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_body_holds_what_it_brought_and_gives_it_back() {
        let flights = ByteBounds::new(1 << 20, 100 << 10);
        let another = flights.begin_request(&"red".into(), None);
        another.try_hold(10 << 10).unwrap();
        let read = async |kib: usize| {
            let body = format!("\"{}\"", "x".repeat(kib << 10));
            let request = request(Body::from(body), &flights);
            JsonBody::<Value>::from_request(request, &()).await.map(|body| body.0).err()
        };
        for _ in 0..10 {
            assert!(read(40).await.is_none());
            assert_eq!(read(60).await.map(|problem| problem.kind()), Some(ProblemKind::TooMany));
            let long = MAX_BODY >> 10;
            assert_eq!(read(long).await.map(|problem| problem.kind()), Some(ProblemKind::TooLarge));
        }
    }
}
