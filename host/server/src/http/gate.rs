//! The checks before every handler: host name, caller, scope and rate; and the notes after it in
//! counters and the audit log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use belljar_policy::{GUEST_MARK, ShownText};
use futures::FutureExt as _;
use serde_json::json;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::app::{App, MatchedRoute};
use crate::http::auth::Caller;
use crate::http::cookie;
use crate::http::peers::{PeerAddress, PeerPlace};
use crate::http::problem::{Problem, ProblemKind};
use crate::http::rate::RateVerdict;
use crate::http::respond::{self, UnchangedMark};
use crate::http::turned_away::{ClaimedKey, ProvenCaller, RefusedCaller};
use crate::mcp::metadata;
use crate::openai;
use crate::routes::{HttpVerb, RequiredScope, Route, RouteOp};
use crate::trace;

/// The time limit of a call that is no turn. A minute, because the first description of a tool compiles
/// the tool, which takes some seconds on a slow machine.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The most characters of a path in the audit log.
const MAX_OBJECT: usize = 200;

/// The paths that need neither a key nor a known host name, because a supervisor or balancer calls the
/// machine by its address.
const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// The header that makes a browser use only https for half a year after its last visit.
const STAY_WITH_HTTPS: &str = "max-age=15552000";

/// The outermost layer of the server: adds security headers for browsers, answers even if a handler
/// panics, and masks directories of the host in the answer.
pub(crate) async fn protect_answer(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let shaped = openai::is_openai_path(request.uri().path());
    let mut response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => Problem::bug("a handler panicked").into_response(),
    };
    if shaped {
        openai::errors::reshape_problem(&mut response);
    }
    respond::hide_places(app.place_hider(), &mut response);
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The second layer: checks the request's host name and origin, and counts and logs the answer.
pub(crate) async fn check_names(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let named = match HEALTH.contains(&request.uri().path()) {
        // INV-114: a request that a guest's tool sent is refused, for any path and by any address.
        _ if request.headers().contains_key(GUEST_MARK) => {
            Err(Problem::new(ProblemKind::Scope, "this server is not for the tools of agents"))
        }
        true => Ok(()),
        false => app.config().names.check_request(request.uri(), request.headers()),
    };
    let object = object_of(&request);
    let stays = named.is_ok() && cookie::is_to_stay_with_https(request.headers());
    let mut response = match named {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            app.count_stranger(None, problem.kind());
            problem.into_response()
        }
    };
    let route = response.extensions().get::<MatchedRoute>().map(|matched| matched.0.op);
    let status = response.status().as_u16();
    let took = started.elapsed();
    app.metrics().count_answer(route, status, took);
    access_log(&object, &response, took);
    if stays {
        let value = HeaderValue::from_static(STAY_WITH_HTTPS);
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    response
}

/// Writes the debug log line of an answered request. Query and headers may contain secrets, and are
/// left out.
fn access_log(request: &str, response: &Response, took: Duration) {
    let caller = response.extensions().get::<Caller>();
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    tracing::debug!(
        target: "belljar::access",
        request,
        status = response.status().as_u16(),
        micros,
        tenant = caller.map(|caller| &*caller.tenant),
        actor = caller.map(|caller| &*caller.actor),
        "answered"
    );
}

/// The layer of each route: authenticates the caller and checks its scope, waits until the request's
/// bytes may be held, and calls the handler, with a line in the audit log if the route needs one.
pub(crate) async fn check_caller(
    State((app, route)): State<(App, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    let object = object_of(&request);
    let place = request.extensions().get::<Arc<PeerPlace>>().cloned();
    let peer = place.as_ref().map(|place| place.peer());
    let mut response =
        match admit_caller(&app, route, (request.uri(), request.headers()), peer, &object).await {
            Err(problem) => refusal_response(problem, &request),
            Ok(None) => call_in_time(route, request, next).await,
            Ok(Some(caller)) => {
                if let Some(place) = place {
                    place.let_in();
                }
                let span = trace::request_span(route, &caller, request.headers());
                let called = caller.clone();
                request.extensions_mut().insert(caller.clone());
                // INV-115: the request's bytes count as held until the end of the answer.
                let flight = app.byte_bounds().begin_request(&caller.tenant, caller.bounded_as());
                request.extensions_mut().insert(flight.clone());
                let outward = Arc::clone(app.place_hider());
                let answering = async {
                    if let Err(problem) = flight.wait_to_hold(route.bytes_to_hold()).await {
                        problem.into_response()
                    } else if route.is_audited() && ends_something(route, &caller) {
                        call_with_audit(app, route, caller, object, request, next).await
                    } else {
                        call_in_time(route, request, next).await
                    }
                };
                let mut response = answering.instrument(span.clone()).await;
                // Masked before the bytes are counted, because the masked body is the one that is sent.
                respond::hide_places(&outward, &mut response);
                let mut response = flight.wrap_response(response);
                trace::record_answer(&span, response.status());
                response.extensions_mut().insert(called);
                response
            }
        };
    response.extensions_mut().insert(MatchedRoute(route));
    response
}

/// Returns whether a call of this route ends or changes anything. A logout without a login does not,
/// and gets no line in the audit log.
fn ends_something(route: &Route, caller: &Caller) -> bool {
    route.op != RouteOp::Logout || caller.login.is_some()
}

/// The answer to a refused caller. It also removes the cookie of an ended login from the browser,
/// because repeated use would count as guessing.
fn refusal_response(problem: Problem, request: &Request) -> Response {
    let over = problem.kind() == ProblemKind::NoKey && cookie::is_sent(request.headers());
    let challenge = metadata::auth_challenge(&problem, request);
    let mut response = problem.into_response();
    if over {
        for forget in cookie::remove_cookie(request.headers()) {
            response.headers_mut().append(header::SET_COOKIE, forget);
        }
    }
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Calls the handler of a change, and writes the call's line in the audit log. Goes on after the caller has
/// disconnected, so a begun change is always logged.
async fn call_with_audit(
    app: App,
    route: &'static Route,
    caller: Caller,
    object: String,
    request: Request,
    next: Next,
) -> Response {
    let called = async move {
        let response = call_in_time(route, request, next).await;
        let status = response.status();
        // Written after a server error too, because after a timeout the change may have happened.
        let changed = response.extensions().get::<UnchangedMark>().is_none();
        if changed && (status.is_success() || status.is_server_error()) {
            let detail = json!({ "status": status.as_u16() });
            app.audit_caller(&caller, route.name(), object, detail).await;
        }
        response
    };
    match tokio::spawn(called.in_current_span()).await {
        Ok(response) => response,
        Err(error) => Problem::bug(&format!("a handler ended early: {error}")).into_response(),
    }
}

/// Authenticates the caller and checks the scope that the route needs; returns `None` for a public
/// route.
async fn admit_caller(
    app: &App,
    route: &Route,
    (uri, headers): (&Uri, &HeaderMap),
    peer: Option<PeerAddress>,
    object: &str,
) -> Result<Option<Caller>, Problem> {
    if route.needs == RequiredScope::Nothing {
        return Ok(None);
    }
    let address = peer.map(|peer| peer.to_string()).unwrap_or_default();
    slow_down(app, &address)?;
    let caller = match app.gatekeeper().identify_caller(headers).await {
        Ok(caller) => caller,
        Err(stranger) => return Err(turn_away(app, stranger, &address, object).await),
    };
    let told = route.verb != HttpVerb::Get || route.op == RouteOp::WebSocket;
    let names = &app.config().names;
    let from_here = if caller.login.is_some() {
        names.check_own(uri, headers, told)
    } else if caller.is_anybody() {
        names.check_nobodys(headers)
    } else {
        Ok(())
    };
    if let Err(problem) = from_here {
        app.record_refusal(caller.proven_name(), object, problem.kind()).await;
        return Err(problem);
    }
    spend_request(app, &caller)?;
    if !caller.has_scope(route.needs) {
        app.record_refusal(caller.proven_name(), object, ProblemKind::Scope).await;
        return Err(out_of_scope(&caller, route.needs));
    }
    Ok(Some(caller))
}

/// INV-99: an address that sent too many invalid keys must wait before its next key is looked up, which
/// makes guessing slow.
pub(crate) fn slow_down(app: &App, address: &str) -> Result<(), Problem> {
    let Some(wait) = app.guess_rates().time_to_wait(address, Instant::now()) else { return Ok(()) };
    app.count_stranger(None, ProblemKind::TooMany);
    Err(Problem::too_many("too many keys that do not open came from this address", wait))
}

/// Counts a refused caller, in the audit log if its key or login is known to the server; returns the
/// answer.
pub(crate) async fn turn_away(
    app: &App,
    stranger: RefusedCaller,
    address: &str,
    object: &str,
) -> Problem {
    let RefusedCaller { problem, claimed, tried, issuer } = stranger;
    if tried {
        app.guess_rates().spend_one(address, Instant::now());
    }
    // INV-380: the refusals of an issuer's tokens share one limit, because an issuer may have any
    // number of subjects.
    let issuer = issuer.map(|issuer| format!("token:{issuer}"));
    if let Some(issuer) = &issuer
        && let RateVerdict::After(wait) = app.request_rates().spend_one(issuer, Instant::now())
    {
        app.count_stranger(None, ProblemKind::TooMany);
        return Problem::too_many("too many tokens of this issuer come that let nobody in", wait);
    }
    match &claimed {
        Some(ClaimedKey { tenant, proven: Some(actor) }) => {
            let proven = tenant.proven_caller(actor);
            let bounded_as = issuer.as_deref().unwrap_or(actor);
            app.record_refusal(ProvenCaller { bounded_as, ..proven }, object, problem.kind()).await;
        }
        Some(ClaimedKey { tenant, proven: None }) => {
            app.count_stranger(Some(tenant.clone()), problem.kind())
        }
        None => app.count_stranger(None, problem.kind()),
    }
    problem
}

/// Counts a request against the caller's rate, and now and then stores when the key was last used.
pub(crate) fn spend_request(app: &App, caller: &Caller) -> Result<(), Problem> {
    match app.request_rates().spend_one(&caller.actor, Instant::now()) {
        RateVerdict::After(wait) => Err(Problem::too_many("too many requests with this key", wait)),
        RateVerdict::Yes { note } => {
            if let Some(key) = caller.key.clone().filter(|_| note) {
                let (registry, now) = (app.store().tenant_registry(), app.now_millis());
                tokio::spawn(async move {
                    if let Err(error) = registry.touch_key(&key, now).await {
                        tracing::warn!(%error, "the use of a key is not noted");
                    }
                });
            }
            Ok(())
        }
    }
}

/// The answer to a caller whose key has too small a scope for the route.
pub(crate) fn out_of_scope(caller: &Caller, needs: RequiredScope) -> Problem {
    let needed = match needs {
        RequiredScope::Nothing | RequiredScope::ReadOnly => "a key",
        RequiredScope::Member => "a key of the scope `member` or `admin`",
        RequiredScope::Admin => "a key of the scope `admin`",
        RequiredScope::Operator => "a key of the scope `admin` of the operator's own tenant",
    };
    let (scope, tenant) = (caller.scope_name(), &caller.tenant);
    let yours = format!("yours has the scope `{scope}`, of tenant `{tenant}`");
    Problem::new(ProblemKind::Scope, format!("this needs {needed}; {yours}"))
}

/// Calls the handler, with a time limit unless the route may take as long as a turn.
async fn call_in_time(route: &Route, request: Request, next: Next) -> Response {
    if route.is_long() {
        return next.run(request).await;
    }
    match tokio::time::timeout(CALL_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = format!("this took longer than {CALL_TIMEOUT:?}");
            Problem::unavailable(detail, Duration::from_secs(5)).into_response()
        }
    }
}

/// A request's name in the audit log: its method and path, escaped and cut. The query is left out,
/// because it may contain any text.
fn object_of(request: &Request) -> String {
    let text = format!("{} {}", request.method(), request.uri().path());
    ShownText::clip_line(&text, MAX_OBJECT).to_string()
}
