//! Errors as an editor reads them: the fault and a remedy.

use agent_client_protocol::Error;
use belljar_policy::ShownText;
use belljar_session::ServiceError;

/// The error code of a missing session, for example a deleted one.
const NOT_FOUND: i32 = -32002;

/// The error code of a request that cannot be answered now.
const INVALID_REQUEST: i32 = -32600;

/// The error code of an invalid parameter, for example an unknown mode.
const INVALID_PARAMS: i32 = -32602;

/// The error code of an internal failure, for example of the store.
const INTERNAL: i32 = -32603;

/// The error for a session that does not exist, or that this editor has not opened.
pub(crate) fn no_session(id: &str) -> Error {
    let id = ShownText::clip_line(id, 80);
    Error::new(
        NOT_FOUND,
        format!("there is no session `{id}` here; `session/list` names those that can be loaded"),
    )
}

/// The error for an invalid parameter.
pub(crate) fn invalid_parameter(why: impl Into<String>) -> Error {
    Error::new(INVALID_PARAMS, why.into())
}

/// The error for a request that cannot be answered now.
pub(crate) fn not_now(why: impl Into<String>) -> Error {
    Error::new(INVALID_REQUEST, why.into())
}

/// The error for an internal failure.
pub(crate) fn internal_failure(why: impl Into<String>) -> Error {
    Error::new(INTERNAL, why.into())
}

/// Converts an error of the service.
pub(crate) fn error_from_service(error: &ServiceError) -> Error {
    let text = ShownText::multiline(&error.to_string()).to_string();
    match error {
        ServiceError::NoSession(id) => no_session(id),
        ServiceError::NoAgent(_) => {
            invalid_parameter(format!("{text}; `belljar agents` lists the agents"))
        }
        ServiceError::Unfit(_)
        | ServiceError::Caller(_)
        | ServiceError::Images(_)
        | ServiceError::Unanswered(_)
        | ServiceError::NoQuestion(_)
        | ServiceError::Invalid(_) => invalid_parameter(text),
        ServiceError::NoModel => internal_failure(format!(
            "{text}; `belljar init` finds one, and writes it into belljar.toml"
        )),
        ServiceError::Blocked { agent, .. } => {
            let agent = ShownText::clip_line(agent, 80);
            internal_failure(format!("{text}; `belljar explain {agent}` says which grant it needs"))
        }
        ServiceError::Busy(_)
        | ServiceError::GoneOn(_)
        | ServiceError::TenantFull { .. }
        | ServiceError::HostFull { .. }
        | ServiceError::Draining
        | ServiceError::DayUsed { .. }
        | ServiceError::Work(_)
        | ServiceError::StorageFull { .. } => not_now(text),
        ServiceError::Agent(_)
        | ServiceError::Store(_)
        | ServiceError::Review(_)
        | ServiceError::Session(_) => internal_failure(text),
    }
}
