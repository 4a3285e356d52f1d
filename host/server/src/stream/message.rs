//! The messages between client and server on a WebSocket: JSON, one object in each text frame.

use std::collections::BTreeMap;

use belljar_session::HistoryMode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::questions::{AnswerBody, Permission};
use crate::api::running::CancelBody;
use crate::api::turn::{Answered, ChatBody, HistoryWord};
use crate::http::problem::{Problem, ProblemBody};
use crate::routes::RouteOp;

/// A message of a client. `id` is its own and comes back in what answers it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ClientMessage {
    /// Send the events of a session: those after `after`, or from now on.
    Subscribe { id: Option<String>, session: String, after: Option<i64> },
    /// Send them no more.
    Unsubscribe { id: Option<String>, session: String },
    /// Send a message. The events of its session are sent from then on.
    Chat {
        id: Option<String>,
        session: Option<String>,
        agent: Option<String>,
        model: Option<String>,
        text: String,
        #[serde(default)]
        #[schema(value_type = HistoryWord)]
        history: HistoryMode,
        #[serde(default)]
        limits: BTreeMap<String, u64>,
    },
    /// End a turn, or one subagent of it.
    Cancel { id: Option<String>, session: String, subagent: Option<String> },
    /// Answer a question.
    Answer {
        id: Option<String>,
        session: String,
        question: u64,
        answer: Option<Permission>,
        text: Option<String>,
    },
    /// Is anybody there?
    Ping { id: Option<String> },
}

/// A message of the server. Events come as `{"type": "event", "event": …}` beside these.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ServerMessage {
    /// The events of a session are being sent.
    Subscribed {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        session: String,
    },
    /// They are sent no more: as was asked, or because the session was deleted or the server stops.
    Unsubscribed {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        session: String,
    },
    /// A turn was saved and runs.
    Accepted {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        session: String,
        message: String,
    },
    /// A turn has ended, and all its events were sent.
    Done {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(flatten)]
        answered: Answered,
    },
    /// Whether there was anything to end.
    Cancelled {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        session: String,
        cancelled: bool,
    },
    /// An answer has arrived.
    Answered {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        session: String,
        question: u64,
    },
    /// A request that cannot be met.
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        problem: ProblemBody,
    },
    /// Somebody is there.
    Pong {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
}

/// The request in a client's message, without its `id`.
pub(crate) enum SocketRequest {
    Subscribe { session: String, after: Option<i64> },
    Unsubscribe { session: String },
    Chat(ChatBody),
    Cancel { session: String, body: CancelBody },
    Answer { session: String, question: u64, body: AnswerBody },
    Ping,
}

impl ClientMessage {
    /// Splits a message into its `id` and its request.
    pub(crate) fn into_parts(self) -> (Option<String>, SocketRequest) {
        match self {
            Self::Subscribe { id, session, after } => {
                (id, SocketRequest::Subscribe { session, after })
            }
            Self::Unsubscribe { id, session } => (id, SocketRequest::Unsubscribe { session }),
            Self::Chat { id, session, agent, model, text, history, limits } => {
                let (stream, wait) = (true, true);
                let body = ChatBody { session, agent, model, text, history, limits, stream, wait };
                (id, SocketRequest::Chat(body))
            }
            Self::Cancel { id, session, subagent } => {
                (id, SocketRequest::Cancel { session, body: CancelBody { subagent } })
            }
            Self::Answer { id, session, question, answer, text } => {
                (id, SocketRequest::Answer { session, question, body: AnswerBody { answer, text } })
            }
            Self::Ping { id } => (id, SocketRequest::Ping),
        }
    }
}

impl SocketRequest {
    /// The API's operation that the request equals; `None` for a request that only the WebSocket has.
    pub(crate) fn route_op(&self) -> Option<RouteOp> {
        match self {
            Self::Chat(_) => Some(RouteOp::Chat),
            Self::Cancel { .. } => Some(RouteOp::Cancel),
            Self::Answer { .. } => Some(RouteOp::Answer),
            Self::Subscribe { .. } => Some(RouteOp::WatchEvents),
            Self::Unsubscribe { .. } | Self::Ping => None,
        }
    }
}

impl ServerMessage {
    pub(crate) fn from_problem(id: Option<String>, problem: &Problem) -> Self {
        Self::Error { id, problem: problem.to_body() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_by_its_type_and_has_no_other_fields() {
        let read = |text: &str| serde_json::from_str::<ClientMessage>(text);
        let (id, wish) = read(r#"{"type":"chat","id":"1","text":"hi"}"#).unwrap().into_parts();
        assert_eq!((id.as_deref(), wish.route_op()), (Some("1"), Some(RouteOp::Chat)));
        assert!(read(r#"{"type":"ping"}"#).is_ok());
        for bad in
            [r#"{"type":"chat"}"#, r#"{"type":"ping","x":1}"#, r#"{"type":"run"}"#, "[]", "{}"]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_has_no_id_comes_back_without_one() {
        let pong = serde_json::to_string(&ServerMessage::Pong { id: None }).unwrap();
        assert_eq!(pong, r#"{"type":"pong"}"#);
    }
}
