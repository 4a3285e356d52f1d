//! OpenAI's API: `/v1/chat/completions`, `/v1/responses` and `/v1/models`. An agent is a model there.
//!
//! ```text
//! body ──> params (what is taken, left out, refused) ──> entries ──> asked (a turn) ──> Service
//!                                                                                       │
//! answer, resource <── finished (what is stored of the turn) <──────────────────────────┤
//! stream, live     <── its events ──────────────────────────────────────────────────────┘
//! ```
//! OpenAI's API is one more entrance to the same service: keys, scopes, budgets, the audit log and resuming
//! are the same as for every route. A caller's input is data and grants no right.

pub(crate) mod answer;
pub(crate) mod asked;
pub(crate) mod begin;
pub(crate) mod chat;
pub(crate) mod chat_stream;
pub(crate) mod content;
pub(crate) mod entries;
pub(crate) mod errors;
pub(crate) mod finished;
pub(crate) mod form;
pub(crate) mod ids;
pub(crate) mod items;
pub(crate) mod leaving;
pub(crate) mod left_out;
pub(crate) mod live;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod params;
pub(crate) mod references;
pub(crate) mod resource;
pub(crate) mod response_stream;
pub(crate) mod responses;
pub(crate) mod stored;
pub(crate) mod tools;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use belljar_session::RunningTurn;

use crate::openai::left_out::IgnoredParts;

/// The answer's header with the run's id, for use with, for example, `belljar receipts`.
pub(crate) const RUN: HeaderName = HeaderName::from_static("x-belljar-run");

/// The answer's header that tells OpenAI's official clients whether to repeat a request automatically.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Returns whether a path belongs to OpenAI's API, whose errors have another form.
pub(crate) fn is_openai_path(path: &str) -> bool {
    let below = |base: &str| {
        path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    ["/v1/chat/completions", "/v1/responses", "/v1/models"].into_iter().any(below)
}

/// The answer's header with the id of a stored session, for use with `belljar sessions` and `/v1/sessions`.
const SESSION: HeaderName = HeaderName::from_static("x-belljar-session");

/// Adds headers to an answer: the run's id, the session's id if `kept` is true, and the ignored parts of the
/// request.
pub(crate) fn add_turn_headers(
    turn: &RunningTurn,
    kept: bool,
    left: &IgnoredParts,
    mut response: Response,
) -> Response {
    left.name_in_header(&mut response);
    let session = kept.then_some((SESSION, turn.session.as_str()));
    for (name, id) in std::iter::once((RUN, turn.message.as_str())).chain(session) {
        if let Ok(value) = HeaderValue::from_str(id) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Adds the header against automatic retries: a failed run has cost tokens, and a retry by the client would
/// start another one.
pub(crate) fn forbid_retry(mut response: Response) -> Response {
    response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_of_these_wires_or_of_none() {
        for path in ["/v1/models", "/v1/models/x", "/v1/responses/resp_1/cancel"] {
            assert!(is_openai_path(path), "{path}");
        }
        for path in ["/v1/chat", "/v1/modelsx", "/v1/sessions", "/v1/chat/completionsx", "/"] {
            assert!(!is_openai_path(path), "{path}");
        }
    }
}
