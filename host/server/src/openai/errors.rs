//! Errors in the form of OpenAI's API, made of the same problems as in all other answers.

use axum::http::{HeaderValue, header};
use axum::response::Response;
use belljar_session::ServiceError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::problem::{Problem, ProblemKind};
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
    /// Converts a problem to this form.
    pub(crate) fn from_problem(problem: &Problem) -> Self {
        let body = problem.to_body();
        let message = match body.hint() {
            Some(hint) => format!("{}; {hint}", body.detail()),
            None => body.detail().to_owned(),
        };
        let (kind, code) = type_and_code(problem.kind());
        let (param, own) = problem.param_and_code();
        let param = param.map(str::to_owned);
        Self { error: ErrorDetail { message, kind, param, code: own.or(code) } }
    }
}

/// The `type` and `code` in OpenAI's form for a kind of problem.
fn type_and_code(kind: ProblemKind) -> (&'static str, Option<&'static str>) {
    const INVALID: &str = "invalid_request_error";
    const SERVER: &str = "server_error";
    match kind {
        ProblemKind::Invalid
        | ProblemKind::MediaType
        | ProblemKind::Method
        | ProblemKind::NoCondition => (INVALID, None),
        ProblemKind::NoKey => (INVALID, Some("invalid_api_key")),
        ProblemKind::Scope | ProblemKind::Origin => (INVALID, Some("permission_denied")),
        ProblemKind::NotFound => (INVALID, Some("not_found")),
        ProblemKind::Timeout => (INVALID, Some("timeout")),
        ProblemKind::Busy | ProblemKind::Taken | ProblemKind::Changed => {
            (INVALID, Some("conflict"))
        }
        ProblemKind::TooLarge => (INVALID, Some("request_too_large")),
        ProblemKind::WrongHost => (INVALID, Some("wrong_host")),
        ProblemKind::Agent => (INVALID, Some("agent_unusable")),
        ProblemKind::TooMany => ("rate_limit_error", Some("rate_limit_exceeded")),
        ProblemKind::DayUsed => ("insufficient_quota", Some("insufficient_quota")),
        ProblemKind::Storage => ("insufficient_quota", Some("storage_full")),
        ProblemKind::Bug => (SERVER, None),
        ProblemKind::Unavailable => (SERVER, Some("unavailable")),
    }
}

/// INV-285: replaces a problem in an answer by OpenAI's form; other answers are unchanged.
pub(crate) fn reshape_problem(response: &mut Response) {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return };
    respond::say_instead(response, &ErrorBody::from_problem(&problem));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
}

/// The problem of a failed call of the service, with an unknown agent reported as an unknown model.
pub(crate) fn problem_from_service(error: ServiceError, model: &str) -> Problem {
    match error {
        ServiceError::NoAgent(_) => no_model(model),
        ServiceError::Caller(why) => {
            Problem::from(ServiceError::Caller(why)).with_param("tools").with_code("invalid_value")
        }
        other => other.into(),
    }
}

/// The problem of an agent that does not exist or is internal.
pub(crate) fn no_model(model: &str) -> Problem {
    Problem::not_found("model", model)
        .with_hint("`GET /v1/models` lists them")
        .with_param("model")
        .with_code("model_not_found")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_problem_has_the_type_and_code_that_clients_act_on() {
        let error = |problem: Problem| ErrorBody::from_problem(&problem).error;
        let limit = error(Problem::too_many("slowly", Duration::from_secs(1)));
        assert_eq!((limit.kind, limit.code), ("rate_limit_error", Some("rate_limit_exceeded")));
        let quota = error(Problem::new(ProblemKind::DayUsed, "used up"));
        assert_eq!((quota.kind, quota.code), ("insufficient_quota", Some("insufficient_quota")));
        let named = error(
            Problem::invalid("no").with_hint("say yes").with_param("n").with_code("unsupported"),
        );
        assert_eq!(named.message, "no; say yes");
        assert_eq!((named.param.as_deref(), named.code), (Some("n"), Some("unsupported")));
    }
}
