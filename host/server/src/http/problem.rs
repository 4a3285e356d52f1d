//! Every failure of a request as problem details (RFC 9457).
//!
//! The table [`KINDS`] has the type, status and title of each kind. Details are for people: texts of
//! strangers in them are escaped. Internal facts are only logged.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use belljar_agent::ResolveError;
use belljar_definition::NotFound;
use belljar_policy::ShownText;
use belljar_session::ServiceError;
use belljar_store::StoreError;
use belljar_work::WorkError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::respond::json_as;

/// The media type of problem details.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// The most characters of a stranger's text that a detail repeats.
const MAX_SHOWN: usize = 200;

/// The longest time that `Retry-After` names.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// The kind of a problem: a row of the table `KINDS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the table says it")]
pub enum ProblemKind {
    Invalid,
    NoKey,
    Scope,
    Origin,
    NotFound,
    Method,
    Timeout,
    Busy,
    Taken,
    Changed,
    TooLarge,
    MediaType,
    WrongHost,
    Agent,
    NoCondition,
    TooMany,
    DayUsed,
    Bug,
    Unavailable,
    Storage,
}

/// A row of the table of kinds, which is also part of the documentation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KindRow {
    /// The kind.
    pub(crate) kind: ProblemKind,
    /// The last part of the problem's type, `/problems/NAME`.
    pub(crate) name: &'static str,
    /// The HTTP status.
    pub(crate) status: u16,
    /// The problem's title: what went wrong, without details of the request.
    pub(crate) title: &'static str,
}

/// Makes a row of the table [`KINDS`].
const fn kind_row(
    kind: ProblemKind,
    name: &'static str,
    status: u16,
    title: &'static str,
) -> KindRow {
    KindRow { kind, name, status, title }
}

/// Every kind of problem.
pub(crate) const KINDS: &[KindRow] = &[
    kind_row(ProblemKind::Invalid, "invalid-request", 400, "the request cannot be understood"),
    kind_row(ProblemKind::NoKey, "no-key", 401, "a valid key is needed"),
    kind_row(ProblemKind::Scope, "scope", 403, "the key does not allow this"),
    kind_row(ProblemKind::Origin, "origin", 403, "pages of this origin may not call"),
    kind_row(ProblemKind::NotFound, "not-found", 404, "there is no such thing"),
    kind_row(ProblemKind::Method, "method", 405, "the method does not fit the path"),
    kind_row(ProblemKind::Timeout, "timeout", 408, "the request took too long to arrive"),
    kind_row(ProblemKind::Busy, "busy", 409, "a turn is running"),
    kind_row(ProblemKind::Taken, "taken", 409, "the name is taken"),
    kind_row(ProblemKind::Changed, "changed", 412, "somebody else has changed it"),
    kind_row(ProblemKind::TooLarge, "too-large", 413, "the request is too large"),
    kind_row(ProblemKind::MediaType, "media-type", 415, "the body has to be JSON"),
    kind_row(ProblemKind::WrongHost, "wrong-host", 421, "this server does not go by that name"),
    kind_row(ProblemKind::Agent, "agent", 422, "the agent cannot be used"),
    kind_row(
        ProblemKind::NoCondition,
        "no-condition",
        428,
        "the request has to say what it replaces",
    ),
    kind_row(ProblemKind::TooMany, "too-many", 429, "too many requests"),
    kind_row(ProblemKind::DayUsed, "day-limit", 429, "what may be used in a day is used up"),
    kind_row(ProblemKind::Bug, "internal", 500, "the server failed"),
    kind_row(ProblemKind::Unavailable, "unavailable", 503, "the server cannot do this now"),
    kind_row(ProblemKind::Storage, "storage-full", 507, "as much is stored as may be"),
];

/// A failure of one request, as the caller reads it.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    kind: ProblemKind,
    detail: String,
    hint: Option<String>,
    retry_after: Option<Duration>,
    limit: Option<Box<ReachedLimit>>,
    /// For APIs that have such fields: the name of the invalid parameter, and a code for programs.
    at: Option<Box<(Option<String>, Option<&'static str>)>>,
}

/// Problem details as they are sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// Which kind of problem: a stable path below this server.
    #[serde(rename = "type")]
    #[schema(example = "/problems/not-found")]
    kind: String,
    /// The meaning of the kind.
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// The fault of this request. Escaped for a person's eyes.
    detail: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Of `day-limit`: which limit it is, and when there is as much again.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<ReachedLimit>,
}

/// A limit of a day that a request would pass.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ReachedLimit {
    /// The operator's setting: `tenant_tokens_per_day` or `tenant_fuel_per_day`.
    name: &'static str,
    /// How much may be used in a day.
    most: u64,
    /// The rest of it.
    left: u64,
    /// When there is as much again, in RFC 3339.
    resets: String,
}

impl ProblemBody {
    /// The text about the failure of this one request.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// How the caller can solve the problem.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl ProblemKind {
    /// The row of the given kind in the table.
    pub(crate) fn table_row(self) -> &'static KindRow {
        // A test checks that the table has every kind.
        KINDS.iter().find(|row| row.kind == self).unwrap_or(&KINDS[0])
    }
}

impl Problem {
    /// A problem of the given kind; `detail` is for people.
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { kind, detail, hint: None, retry_after: None, limit: None, at: None }
    }

    /// The problem of a malformed request.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ProblemKind::Invalid, detail)
    }

    /// The problem of an object that does not exist. Another tenant's object has the same problem.
    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        let id = ShownText::clip_line(id, MAX_SHOWN);
        Self::new(ProblemKind::NotFound, format!("there is no {what} `{id}`"))
    }

    /// The problem of a bug in the server. `what` is only logged; the caller does not see it.
    pub(crate) fn bug(what: &str) -> Self {
        tracing::error!(what, "a request failed");
        Self::new(ProblemKind::Bug, "something went wrong in the server; its log says more")
    }

    /// The problem of a request that may succeed after the wait `after`.
    pub(crate) fn unavailable(detail: impl Into<String>, after: Duration) -> Self {
        Self { retry_after: Some(after), ..Self::new(ProblemKind::Unavailable, detail) }
    }

    /// The problem of too many requests or objects; a retry may succeed after `after`.
    pub(crate) fn too_many(detail: impl Into<String>, after: Duration) -> Self {
        Self { retry_after: Some(after), ..Self::new(ProblemKind::TooMany, detail) }
    }

    /// Adds a hint: how the caller can solve the problem.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the name of the invalid parameter, for example `model`.
    #[must_use]
    pub(crate) fn with_param(mut self, param: impl Into<String>) -> Self {
        self.at.get_or_insert_default().0 = Some(param.into());
        self
    }

    /// Sets the code of the problem for programs, for example `model_not_found`.
    #[must_use]
    pub(crate) fn with_code(mut self, code: &'static str) -> Self {
        self.at.get_or_insert_default().1 = Some(code);
        self
    }

    /// The name of the invalid parameter, and the code of the problem, if known.
    pub(crate) fn param_and_code(&self) -> (Option<&str>, Option<&'static str>) {
        match self.at.as_deref() {
            Some((param, code)) => (param.as_deref(), *code),
            None => (None, None),
        }
    }

    /// The kind of this problem.
    pub(crate) fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// The JSON body of the answer.
    pub(crate) fn to_body(&self) -> ProblemBody {
        let row = self.kind.table_row();
        ProblemBody {
            kind: format!("/problems/{}", row.name),
            title: row.title,
            status: row.status,
            detail: self.detail.clone(),
            hint: self.hint.clone(),
            limit: self.limit.as_deref().cloned(),
        }
    }
}

impl IntoResponse for Problem {
    /// The HTTP answer: the problem as JSON, with the wait in `Retry-After` and, for a missing key, the
    /// header `WWW-Authenticate`.
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.kind.table_row().status)
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json_as(status, PROBLEM_JSON, &self.to_body());
        if let Some(after) = self.retry_after {
            // Whole seconds, at least 1, because with 0 a caller would return at once. The wait until a
            // day's limit resets is not cut, because an earlier attempt is refused again.
            let most = if self.limit.is_some() { Duration::MAX } else { MAX_WAIT };
            let seconds = after.min(most).as_secs_f64().ceil().max(1.0);
            if let Ok(value) = HeaderValue::from_str(&format!("{seconds:.0}")) {
                response.headers_mut().insert(header::RETRY_AFTER, value);
            }
        }
        if self.kind == ProblemKind::NoKey {
            let value = HeaderValue::from_static("Bearer realm=\"belljar\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
        response.extensions_mut().insert(self.kind);
        // Attached for the layer that rewrites a problem in the form of OpenAI's API.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { what, id } => {
                Self::new(ProblemKind::NotFound, format!("there is no {what} `{id}`"))
            }
            StoreError::TooLarge { .. } => Self::new(ProblemKind::TooLarge, error.to_string()),
            StoreError::Busy { .. } => {
                tracing::warn!(%error, "the store is busy");
                Self::unavailable("the store is busy", Duration::from_secs(1))
            }
            StoreError::Overloaded { .. } => {
                tracing::warn!(%error, "the store is behind");
                Self::unavailable("the store is behind", Duration::from_secs(1))
            }
            StoreError::Taken { .. } => Self::new(ProblemKind::Taken, "that name is taken already"),
            StoreError::Conflict { what, id } => {
                Self::new(ProblemKind::Changed, format!("{what} `{id}` is not what it was"))
                    .with_hint("read it again, and send its `updated` as `If-Match`")
            }
            StoreError::TooMany { .. } | StoreError::Invalid { .. } => {
                Self::invalid(error.to_string())
            }
            // The other errors name files of the host, which remote callers must not see.
            other => Self::bug(&other.to_string()),
        }
    }
}

impl From<WorkError> for Problem {
    fn from(error: WorkError) -> Self {
        match &error {
            WorkError::TimedOut { .. } => Self::new(ProblemKind::Unavailable, error.to_string())
                .with_hint("ask for less at a time, for example for one `path` of a list, or bring fewer schemas"),
            WorkError::Busy { .. } => Self::too_many(error.to_string(), Duration::from_secs(1)),
            WorkError::Panicked { .. } => Self::bug(&error.to_string()),
        }
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::NoSession(id) => Self::not_found("session", &id),
            ServiceError::Busy(id) => Self::session_busy(&id),
            ServiceError::Review(error) => error.into(),
            ServiceError::NoAgent(found) => no_agent(&found),
            ServiceError::Blocked { agent, reasons } => {
                let agent = ShownText::clip_line(&agent, MAX_SHOWN);
                let why = reasons.join("; ");
                let why = ShownText::multiline(&why);
                Self::new(ProblemKind::Agent, format!("agent `{agent}` is blocked: {why}")).with_hint(format!(
                    "`GET /v1/grants?agent={agent}` shows what it has and what it is denied; the \
                     operator of this server can grant more"
                ))
            }
            ServiceError::NoModel => Self::new(ProblemKind::Agent, "this tenant has no model")
                .with_hint("the operator of this server can configure one"),
            ServiceError::Agent(why) => {
                Self::new(ProblemKind::Agent, ShownText::multiline(&why).to_string()).with_hint(
                    "choose another `agent` (`GET /v1/agents`) or `model`, or ask the operator of \
                     this server",
                )
            }
            ServiceError::Unfit(unfit) => Self::invalid(unfit.to_string()),
            ServiceError::Caller(why) | ServiceError::Images(why) => {
                Self::invalid(ShownText::multiline(&why).to_string())
            }
            ServiceError::GoneOn(id) => {
                let id = ShownText::clip_line(&id, MAX_SHOWN);
                Self::new(ProblemKind::Changed, format!("session `{id}` has gone on since"))
                    .with_hint("go on from its last turn")
            }
            ServiceError::Unanswered(calls) => {
                let calls = calls.join("`, `");
                let calls = ShownText::clip_line(&calls, MAX_SHOWN);
                Self::invalid(format!("the calls `{calls}` wait for their results"))
            }
            ServiceError::Invalid(why) => Self::invalid(ShownText::multiline(&why).to_string()),
            ServiceError::TenantFull { retry_after } => {
                Self::too_many("as many turns run and wait as this tenant may have", retry_after)
            }
            ServiceError::HostFull { retry_after } => {
                Self::unavailable("the host is busy", retry_after)
            }
            ServiceError::StorageFull { used, limit } => {
                let detail = format!(
                    "this tenant has stored {used} of the {limit} bytes that it may, \
                     `tenant_storage_mib`"
                );
                Self::new(ProblemKind::Storage, detail).with_hint(
                    "delete sessions (`DELETE /v1/sessions/{id}`) or agents, or ask the operator \
                     for more",
                )
            }
            ServiceError::DayUsed { limit, most, left, needed, resets, retry_after } => {
                let detail = format!(
                    "`{limit}` of this tenant is {most}, and {left} of it is left; this turn needs \
                     at least {needed}"
                );
                let hint = format!(
                    "it is whole again at {resets}; until then `GET /v1/usage` says what was \
                     used, or ask the operator for more"
                );
                let limit = ReachedLimit { name: limit, most, left, resets: resets.to_string() };
                let problem = Self::new(ProblemKind::DayUsed, detail).with_hint(hint);
                Self { retry_after: Some(retry_after), limit: Some(Box::new(limit)), ..problem }
            }
            ServiceError::Draining => {
                let detail = "the server is draining: it takes no new turns, and then stops";
                Self::unavailable(detail, Duration::from_secs(5)).with_hint(
                    "turns that run are watched, answered and cancelled as before; send this one \
                     again later",
                )
            }
            ServiceError::NoQuestion(id) => Self::not_found("open question", &id.to_string()),
            ServiceError::Store(error) => error.into(),
            // This error names files of the host, so only the log has its text.
            ServiceError::Session(error) => Self::bug(&error.to_string()),
            ServiceError::Work(error) => error.into(),
        }
    }
}

impl Problem {
    /// The problem of a failed search for an agent: the time was up, or the host has a fault.
    pub(crate) fn from_resolve_error(what: &str, error: &ResolveError) -> Self {
        let detail = format!("{what}: {error}");
        if matches!(error, ResolveError::Stopped(_)) {
            return Self::new(ProblemKind::Unavailable, detail)
                .with_hint("try again a little later");
        }
        Self::bug(&detail)
    }

    /// The problem of a session that already has a running turn.
    pub(crate) fn session_busy(session: &str) -> Self {
        let id = ShownText::clip_line(session, MAX_SHOWN);
        Self::new(ProblemKind::Busy, format!("session `{id}` is already answering"))
            .with_hint("wait for its end, or cancel it")
    }
}

/// The problem of an unknown or ambiguous name of an agent. A broken file is the operator's to correct.
fn no_agent(found: &NotFound) -> Problem {
    let detail = match found.ambiguous {
        true => format!("several agents are called `{}`", found.name),
        false => format!("no agent is called `{}`", found.name),
    };
    let names = found.suggestions.join("`, `");
    let hint = match (&found.broken, names.is_empty()) {
        (Some(_), _) => "a file that may hold it could not be understood; its owner has to \
                         correct it"
            .to_owned(),
        (None, true) => "`GET /v1/agents` lists them".to_owned(),
        (None, false) if found.ambiguous => format!("write one of `{names}`"),
        (None, false) => format!("did you mean `{names}`? `GET /v1/agents` lists all"),
    };
    Problem::new(ProblemKind::Agent, detail).with_hint(ShownText::multiline(&hint).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_row_in_the_order_of_their_statuses() {
        let kinds: Vec<ProblemKind> = KINDS.iter().map(|row| row.kind).collect();
        let mut sorted = kinds.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(kinds, sorted);
        assert_eq!(kinds.last(), Some(&ProblemKind::Storage));
        assert!(KINDS.iter().zip(0..).all(|(row, at)| row.kind as usize == at));
        assert!(KINDS.is_sorted_by_key(|row| row.status));
    }

    #[test]
    fn what_a_stranger_wrote_is_escaped_and_cut() {
        let body =
            Problem::not_found("session", &format!("\u{1b}[2J{}", "a".repeat(1000))).to_body();
        assert!(body.detail.contains("\\u{1b}[2J") && body.detail.len() < 300, "{}", body.detail);
    }

    #[test]
    fn a_wait_is_in_whole_seconds_and_never_none() {
        for (after, seconds) in [(0, "1"), (1500, "2"), (10_000_000, "300")] {
            let after = Duration::from_millis(after);
            let response = Problem::too_many("x", after).into_response();
            assert_eq!(response.headers()[header::RETRY_AFTER], seconds);
        }
    }

    /// INV-480: work of the host that was refused or timed out is no fault of the request.
    #[test]
    fn work_that_was_not_done_is_no_fault_of_the_request() {
        let kind = "compiling JSON Schemas";
        let busy = Problem::from(ServiceError::from(WorkError::Busy { kind })).into_response();
        assert_eq!(busy.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(busy.headers()[header::RETRY_AFTER], "1");
        let late = WorkError::TimedOut { kind, limit: Duration::from_secs(20) };
        let late = Problem::from(ServiceError::from(late));
        assert_eq!(late.to_body().detail, "compiling JSON Schemas took longer than 20 seconds");
        assert_eq!(late.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
        let broken = Problem::from(ServiceError::from(WorkError::Panicked { kind }));
        assert_eq!(broken.into_response().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn a_failure_of_the_store_names_no_file() {
        let path = std::path::PathBuf::from("/srv/secret/belljar.db");
        let error = StoreError::Unusable { path, why: "is damaged".to_owned() };
        assert!(!Problem::from(error).to_body().detail.contains("secret"));
    }
}
