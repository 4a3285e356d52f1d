//! `POST /v1/login`, `POST /v1/logout` and `GET /v1/me`: a browser's login, made with a key and of the same
//! rights.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_store::NewLogin;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::auth::{BrowserLogin, Caller};
use crate::http::keys::{LOGIN, NewSecret};
use crate::http::peers::PeerPlace;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::rate::RateVerdict;
use crate::http::respond::{JsonAnswer, small_body};
use crate::http::turned_away::RefusedCaller;
use crate::http::{cookie, gate};
use crate::page;

/// The time after which a login expires, however much it is used: seven days.
const LASTS: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The most simultaneous logins of one key; a further login ends the oldest.
const MAX_LOGINS: u32 = 32;

/// The most bytes of the request's body. A key is shorter.
const MAX_BODY: usize = 1 << 10;

/// The credential to log in with: a key, or the token of a one-time link. Exactly one of the two is
/// set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginBody {
    key: Option<String>,
    once: Option<String>,
}

/// The two, as they are described.
#[derive(Debug, ToSchema)]
#[schema(as = LoginBody)]
#[serde(untagged)]
#[allow(dead_code, reason = "the schema of the body")]
pub(crate) enum LoginWords {
    #[serde(deny_unknown_fields)]
    Key {
        /// A key, `bj_…`.
        #[schema(pattern = "^[!-~]{1,200}$")]
        key: String,
    },
    #[serde(deny_unknown_fields)]
    Once {
        /// The token of a link that `belljar serve` has printed, `bo_…`. It opens once.
        #[schema(pattern = "^[!-~]{1,200}$")]
        once: String,
    },
}

/// Who calls, and the server that answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Me {
    /// The tenant.
    tenant: String,
    /// `admin`, `member` or `read-only`.
    scope: &'static str,
    /// Whether it is the operator of this server: an admin of the operator's own tenant.
    operator: bool,
    /// The name in the audit log: `key:<id>`, `login:<id>`, or `local` where there are no keys.
    actor: String,
    /// When the login ends, in milliseconds since 1970; absent where a key was sent, or none is
    /// needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    login_ends: Option<i64>,
    /// The digest of the page that this server has; another than that of the page which asks says
    /// that the page is older or newer.
    page: &'static str,
    /// The version of belljar.
    version: &'static str,
    /// Whether callers need a key.
    keys: bool,
}

/// `POST /v1/login`: exchanges a key or a one-time token for a login cookie.
pub(crate) async fn handle_login(
    State(app): State<App>,
    place: Option<Extension<Arc<PeerPlace>>>,
    request: Request,
) -> Result<Response, Problem> {
    const OBJECT: &str = "POST /v1/login";
    let address = place.map(|Extension(place)| place.peer().to_string()).unwrap_or_default();
    gate::slow_down(&app, &address)?;
    let headers = request.headers().clone();
    // INV-262: a page of another origin cannot log a browser in.
    app.config().names.check_own(request.uri(), &headers, false)?;
    let LoginBody { key, once } = small_body(request, MAX_BODY).await?;
    let caller = match (key, once) {
        (Some(key), None) => app.gatekeeper().by_key(key.trim()).await,
        (None, Some(once)) => match app.links().redeem_token(once.trim(), Instant::now()) {
            true => Ok(Caller::by_link()),
            false => Err(RefusedCaller::with_link()),
        },
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::invalid("the body has to have one of `key` and `once`"));
        }
    };
    let caller = match caller {
        Ok(caller) => caller,
        Err(stranger) => return Err(gate::turn_away(&app, stranger, &address, OBJECT).await),
    };
    gate::spend_request(&app, &caller)?;
    // INV-272: logins are limited, because each adds a row and a line of the audit log, stored for long.
    if let RateVerdict::After(wait) = app.login_rates().spend_one(&caller.actor, Instant::now()) {
        return Err(Problem::too_many("too many logins with this key", wait));
    }
    let (text, caller) = store_login(&app, caller).await?;
    let detail = json!({ "by": if caller.key.is_some() { "key" } else { "link" } });
    let id = caller.login.as_ref().map(|login| login.id.to_string()).unwrap_or_default();
    app.audit_caller(&caller, "login", format!("login {id}"), detail).await;
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = cookie::set_cookie(&headers, &text, LASTS) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Stores a login of a caller whose key was accepted; returns the cookie's text, and the caller as
/// identified by this login.
async fn store_login(app: &App, caller: Caller) -> Result<(String, Caller), Problem> {
    let secret = NewSecret::with_prefix(LOGIN)
        .map_err(|error| Problem::bug(&format!("the system gives no random bytes: {error}")))?;
    let created = app.now_millis();
    let lasts = i64::try_from(LASTS.as_millis()).unwrap_or(i64::MAX);
    let login = NewLogin {
        id: secret.id.clone(),
        key: caller.key.as_deref().map(str::to_owned),
        secret_hash: secret.hash,
        created,
        expires: created.saturating_add(lasts),
    };
    // The key may have been revoked since it was checked; the store then creates no login.
    if !app.store().tenant_registry().create_login(&login, MAX_LOGINS).await? {
        return Err(Problem::new(ProblemKind::NoKey, "the key is not valid"));
    }
    let login = BrowserLogin { id: login.id.into(), expires: login.expires };
    Ok((secret.text, caller.logged_in(login)))
}

/// `POST /v1/logout`: ends the caller's login and removes the cookie. Has no effect for a caller
/// without a login cookie.
pub(crate) async fn handle_logout(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(login) = &caller.login {
        app.store().tenant_registry().end_login(&login.id).await?;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    for cookie in cookie::remove_cookie(&headers) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// `GET /v1/me`: returns the caller's tenant, scope and name.
pub(crate) async fn read_me(Extension(caller): Extension<Caller>) -> JsonAnswer<Me> {
    JsonAnswer(Me {
        tenant: caller.tenant.to_string(),
        scope: caller.scope_name(),
        operator: caller.has_scope(crate::routes::RequiredScope::Operator),
        actor: caller.actor.to_string(),
        login_ends: caller.login.as_ref().map(|login| login.expires),
        page: page::DIGEST,
        version: env!("CARGO_PKG_VERSION"),
        keys: !caller.is_anybody(),
    })
}
