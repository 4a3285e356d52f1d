//! Failures in the form of these APIs, made of the same problems as in every other answer.

use axum::http::{HeaderValue, header};
use axum::response::Response;
use belljar_session::ServiceError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::problem::{Kind, Problem};
use crate::http::respond;

/// A failure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// The fault.
    pub(crate) error: ErrorDetail,
}

/// The fault of a request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ErrorDetail {
    /// The fault, and what to do about it. Escaped for a person's eyes.
    pub(crate) message: String,
    /// `invalid_request_error`, `rate_limit_error`, `insufficient_quota` or `server_error`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The parameter at fault, where it is one.
    pub(crate) param: Option<String>,
    /// The fault as a word.
    pub(crate) code: Option<&'static str>,
}

impl ErrorBody {
    /// A problem in this shape.
    pub(crate) fn of(problem: &Problem) -> Self {
        let body = problem.body();
        let message = match body.hint() {
            Some(hint) => format!("{}; {hint}", body.detail()),
            None => body.detail().to_owned(),
        };
        let (kind, code) = words(problem.kind());
        let (param, own) = problem.at();
        let param = param.map(str::to_owned);
        Self { error: ErrorDetail { message, kind, param, code: own.or(code) } }
    }
}

/// The type and the code of a kind of problem.
fn words(kind: Kind) -> (&'static str, Option<&'static str>) {
    const INVALID: &str = "invalid_request_error";
    const SERVER: &str = "server_error";
    match kind {
        Kind::Invalid | Kind::MediaType | Kind::Method | Kind::NoCondition => (INVALID, None),
        Kind::NoKey => (INVALID, Some("invalid_api_key")),
        Kind::Scope | Kind::Origin => (INVALID, Some("permission_denied")),
        Kind::NotFound => (INVALID, Some("not_found")),
        Kind::Timeout => (INVALID, Some("timeout")),
        Kind::Busy | Kind::Taken | Kind::Changed => (INVALID, Some("conflict")),
        Kind::TooLarge => (INVALID, Some("request_too_large")),
        Kind::WrongHost => (INVALID, Some("wrong_host")),
        Kind::Agent => (INVALID, Some("agent_unusable")),
        Kind::TooMany => ("rate_limit_error", Some("rate_limit_exceeded")),
        Kind::DayUsed => ("insufficient_quota", Some("insufficient_quota")),
        Kind::Storage => ("insufficient_quota", Some("storage_full")),
        Kind::Bug => (SERVER, None),
        Kind::Unavailable => (SERVER, Some("unavailable")),
    }
}

/// INV-285: converts a problem into the form of OpenAI's API; other answers stay.
pub(crate) fn shape(response: &mut Response) {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return };
    respond::say_instead(response, &ErrorBody::of(&problem));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
}

/// An error of the service in OpenAI's form: a missing agent is a missing model.
pub(crate) fn of_service(error: ServiceError, model: &str) -> Problem {
    match error {
        ServiceError::NoAgent(_) => no_model(model),
        ServiceError::Caller(why) => {
            Problem::from(ServiceError::Caller(why)).param("tools").code("invalid_value")
        }
        other => other.into(),
    }
}

/// The problem of a missing or internal agent.
pub(crate) fn no_model(model: &str) -> Problem {
    Problem::not_found("model", model)
        .hint("`GET /v1/models` lists them")
        .param("model")
        .code("model_not_found")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_problem_has_the_type_and_code_that_clients_act_on() {
        let error = |problem: Problem| ErrorBody::of(&problem).error;
        let limit = error(Problem::too_many("slowly", Duration::from_secs(1)));
        assert_eq!((limit.kind, limit.code), ("rate_limit_error", Some("rate_limit_exceeded")));
        let quota = error(Problem::new(Kind::DayUsed, "used up"));
        assert_eq!((quota.kind, quota.code), ("insufficient_quota", Some("insufficient_quota")));
        let named = error(Problem::invalid("no").hint("say yes").param("n").code("unsupported"));
        assert_eq!(named.message, "no; say yes");
        assert_eq!((named.param.as_deref(), named.code), (Some("n"), Some("unsupported")));
    }
}
