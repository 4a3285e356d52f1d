//! The gate before every handler: names, caller, scope and rate; and the notes afterwards.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use belljar_policy::{GUEST_MARK, Shown};
use futures::FutureExt as _;
use serde_json::json;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::app::{App, Matched};
use crate::http::auth::Caller;
use crate::http::cookie;
use crate::http::peers::{Peer, PeerPlace};
use crate::http::problem::{Kind, Problem};
use crate::http::rate::Taken;
use crate::http::respond::{self, Unchanged};
use crate::http::turned_away::{Claim, Proven, Stranger};
use crate::mcp::metadata;
use crate::openai;
use crate::routes::{Needs, Op, Route, Verb};
use crate::trace;

/// How long a call without a turn may last. A minute, because the first description of a tool compiles the
/// tool, for some seconds on a slow machine.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Characters of a path in the audit log.
const MAX_OBJECT: usize = 200;

/// The paths that need neither a key nor a known host name, because their callers know the machine by its
/// address.
const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// How long a browser that came by https uses only https: half a year after its last visit.
const STAY_WITH_HTTPS: &str = "max-age=15552000";

/// Outermost layer: security headers for browsers, an answer even after a handler's bug, and hidden places.
pub(crate) async fn protect(State(app): State<App>, request: Request, next: Next) -> Response {
    let shaped = openai::speaks(request.uri().path());
    let mut response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => Problem::bug("a handler panicked").into_response(),
    };
    if shaped {
        openai::errors::shape(&mut response);
    }
    respond::say(app.outward(), &mut response);
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

/// Then the checks of host name and origin; counts the answers.
pub(crate) async fn check_names(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let named = match HEALTH.contains(&request.uri().path()) {
        // INV-114: a guest's request is refused, for any path and by any address.
        _ if request.headers().contains_key(GUEST_MARK) => {
            Err(Problem::new(Kind::Scope, "this server is not for the tools of agents"))
        }
        true => Ok(()),
        false => app.config().names.check(request.uri(), request.headers()),
    };
    let object = object_of(&request);
    let stays = named.is_ok() && cookie::is_to_stay_with_https(request.headers());
    let mut response = match named {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            app.stranger(None, problem.kind());
            problem.into_response()
        }
    };
    let route = response.extensions().get::<Matched>().map(|matched| matched.0.op);
    let status = response.status().as_u16();
    let took = started.elapsed();
    app.metrics().answered(route, status, took);
    access_log(&object, &response, took);
    if stays {
        let value = HeaderValue::from_static(STAY_WITH_HTTPS);
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    response
}

/// The log line of a request, if wanted: query and headers may hold secrets, and are left out.
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

/// Then the caller of a route.
pub(crate) async fn check_caller(
    State((app, route)): State<(App, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    let object = object_of(&request);
    let place = request.extensions().get::<Arc<PeerPlace>>().cloned();
    let peer = place.as_ref().map(|place| place.peer());
    let mut response =
        match admitted(&app, route, (request.uri(), request.headers()), peer, &object).await {
            Err(problem) => refused(problem, &request),
            Ok(None) => call(route, request, next).await,
            Ok(Some(caller)) => {
                if let Some(place) = place {
                    place.let_in();
                }
                let span = trace::request(route, &caller, request.headers());
                let called = caller.clone();
                request.extensions_mut().insert(caller.clone());
                // INV-115: the held bytes are freed at the end of the answer.
                let flight = app.flights().of(&caller.tenant, caller.bounded_as());
                request.extensions_mut().insert(flight.clone());
                let outward = Arc::clone(app.outward());
                let answering = async {
                    if let Err(problem) = flight.hold(route.holds()).await {
                        problem.into_response()
                    } else if route.is_audited() && ends_something(route, &caller) {
                        audited(app, route, caller, object, request, next).await
                    } else {
                        call(route, request, next).await
                    }
                };
                let mut response = answering.instrument(span.clone()).await;
                // Masked first, because the masked body is the one to count.
                respond::say(&outward, &mut response);
                let mut response = flight.carry(response);
                trace::answered(&span, response.status());
                response.extensions_mut().insert(called);
                response
            }
        };
    response.extensions_mut().insert(Matched(route));
    response
}

/// Returns whether a logout has an effect: without a login, nothing ends, and no line is written.
fn ends_something(route: &Route, caller: &Caller) -> bool {
    route.op != Op::Logout || caller.login.is_some()
}

/// The answer to a refused caller. The browser drops an ended login, because repeated use would count as
/// guessing.
fn refused(problem: Problem, request: &Request) -> Response {
    let over = problem.kind() == Kind::NoKey && cookie::is_sent(request.headers());
    let challenge = metadata::challenge(&problem, request);
    let mut response = problem.into_response();
    if over {
        for forget in cookie::forget(request.headers()) {
            response.headers_mut().append(header::SET_COOKIE, forget);
        }
    }
    if let Some(challenge) = challenge {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Performs a changing call, with its line in the audit log. Continues after the caller has disconnected, so
/// that a begun change is always logged.
async fn audited(
    app: App,
    route: &'static Route,
    caller: Caller,
    object: String,
    request: Request,
    next: Next,
) -> Response {
    let called = async move {
        let response = call(route, request, next).await;
        let status = response.status();
        // Logged after a server error too, because after a timeout the change may have happened.
        let changed = response.extensions().get::<Unchanged>().is_none();
        if changed && (status.is_success() || status.is_server_error()) {
            let detail = json!({ "status": status.as_u16() });
            app.audit(&caller, route.name(), object, detail).await;
        }
        response
    };
    match tokio::spawn(called.in_current_span()).await {
        Ok(response) => response,
        Err(error) => Problem::bug(&format!("a handler ended early: {error}")).into_response(),
    }
}

/// The caller, if admitted to this route; `None` for a public route.
async fn admitted(
    app: &App,
    route: &Route,
    (uri, headers): (&Uri, &HeaderMap),
    peer: Option<Peer>,
    object: &str,
) -> Result<Option<Caller>, Problem> {
    if route.needs == Needs::Nothing {
        return Ok(None);
    }
    let address = peer.map(|peer| peer.to_string()).unwrap_or_default();
    slow_down(app, &address)?;
    let caller = match app.gatekeeper().caller(headers).await {
        Ok(caller) => caller,
        Err(stranger) => return Err(turn_away(app, stranger, &address, object).await),
    };
    let told = route.verb != Verb::Get || route.op == Op::WebSocket;
    let names = &app.config().names;
    let from_here = if caller.login.is_some() {
        names.check_own(uri, headers, told)
    } else if caller.is_anybody() {
        names.check_nobodys(headers)
    } else {
        Ok(())
    };
    if let Err(problem) = from_here {
        app.refused(caller.proven(), object, problem.kind()).await;
        return Err(problem);
    }
    spend(app, &caller)?;
    if !caller.may(route.needs) {
        app.refused(caller.proven(), object, Kind::Scope).await;
        return Err(out_of_scope(&caller, route.needs));
    }
    Ok(Some(caller))
}

/// INV-99: an address with too many invalid keys waits before the next look-up, which makes guessing slow.
pub(crate) fn slow_down(app: &App, address: &str) -> Result<(), Problem> {
    let Some(wait) = app.tried().wait(address, Instant::now()) else { return Ok(()) };
    app.stranger(None, Kind::TooMany);
    Err(Problem::too_many("too many keys that do not open came from this address", wait))
}

/// Notes a refused caller; returns the answer.
pub(crate) async fn turn_away(
    app: &App,
    stranger: Stranger,
    address: &str,
    object: &str,
) -> Problem {
    let Stranger { problem, claimed, tried, issuer } = stranger;
    if tried {
        app.tried().take(address, Instant::now());
    }
    // INV-380: an issuer may have any number of subjects, so their refusals are bounded together.
    let issuer = issuer.map(|issuer| format!("token:{issuer}"));
    if let Some(issuer) = &issuer
        && let Taken::After(wait) = app.rates().take(issuer, Instant::now())
    {
        app.stranger(None, Kind::TooMany);
        return Problem::too_many("too many tokens of this issuer come that let nobody in", wait);
    }
    match &claimed {
        Some(Claim { tenant, proven: Some(actor) }) => {
            let proven = tenant.proven(actor);
            let bounded_as = issuer.as_deref().unwrap_or(actor);
            app.refused(Proven { bounded_as, ..proven }, object, problem.kind()).await;
        }
        Some(Claim { tenant, proven: None }) => app.stranger(Some(tenant.clone()), problem.kind()),
        None => app.stranger(None, problem.kind()),
    }
    problem
}

/// Subtracts a request from the caller's rate, and notes the key's use now and then.
pub(crate) fn spend(app: &App, caller: &Caller) -> Result<(), Problem> {
    match app.rates().take(&caller.actor, Instant::now()) {
        Taken::After(wait) => Err(Problem::too_many("too many requests with this key", wait)),
        Taken::Yes { note } => {
            if let Some(key) = caller.key.clone().filter(|_| note) {
                let (registry, now) = (app.store().registry(), app.now());
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

/// The problem of a caller whose key has too small a scope.
pub(crate) fn out_of_scope(caller: &Caller, needs: Needs) -> Problem {
    let needed = match needs {
        Needs::Nothing | Needs::ReadOnly => "a key",
        Needs::Member => "a key of the scope `member` or `admin`",
        Needs::Admin => "a key of the scope `admin`",
        Needs::Operator => "a key of the scope `admin` of the operator's own tenant",
    };
    let (scope, tenant) = (caller.scope(), &caller.tenant);
    let yours = format!("yours has the scope `{scope}`, of tenant `{tenant}`");
    Problem::new(Kind::Scope, format!("this needs {needed}; {yours}"))
}

async fn call(route: &Route, request: Request, next: Next) -> Response {
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

/// The object of a request in the audit log: its method and path, escaped and cut. The query is left out,
/// because it may contain any text.
fn object_of(request: &Request) -> String {
    let text = format!("{} {}", request.method(), request.uri().path());
    Shown::clipped(&text, MAX_OBJECT).to_string()
}
