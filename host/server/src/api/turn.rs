//! The body of a request for a turn, and the result of a turn: the same for a blocking call, a stream
//! and a WebSocket.

use std::collections::BTreeMap;

use belljar_policy::{LIMITS, LimitsRequest, ShownText};
use belljar_session::{HistoryMode, RunningTurn, TurnRequest};
use belljar_store::{MessageStatus, Store, StoredMessage};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::api::questions::QuestionBody;
use crate::http::auth::Caller;
use crate::http::ids::is_id;
use crate::http::page::MOST;
use crate::http::problem::Problem;

/// The most characters in the name of an agent or a model.
const MAX_NAME: usize = 200;

/// A message to an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatBody {
    /// The session that the message is added to. Absent: a new one.
    pub(crate) session: Option<String>,
    /// Of a new session: the agent. Absent: `general-purpose`.
    pub(crate) agent: Option<String>,
    /// Of a new session: a model or a role. Absent: the agent's own choice.
    pub(crate) model: Option<String>,
    /// The text of the message; not blank.
    #[schema(pattern = r"\S")]
    pub(crate) text: String,
    /// How much of the session's past the model is sent: `compacted` puts a summary in the place
    /// of older turns that are too large for it, `whole` sends all of them. Default: `compacted`.
    #[serde(default)]
    #[schema(value_type = HistoryWord)]
    pub(crate) history: HistoryMode,
    /// Limits of this turn, below those that the agent has: `{"steps": 5}`.
    #[serde(default)]
    #[schema(value_type = LimitsBody)]
    pub(crate) limits: BTreeMap<String, u64>,
    /// Whether the events come as they happen. Default: no.
    #[serde(default)]
    pub(crate) stream: bool,
    /// Whether the answer comes at the end of the turn also where a person is asked something.
    /// Default: no; then it comes as soon as there is a question, with status 202 and the question.
    #[serde(default)]
    pub(crate) wait: bool,
}

/// The schema of a turn's limits, with the limits' names from the table `LIMITS`.
#[derive(Debug)]
pub(crate) struct LimitsBody;

impl PartialSchema for LimitsBody {
    /// An object with one number for each limit, and nothing else.
    fn schema() -> RefOr<Schema> {
        let limits = ObjectBuilder::new().schema_type(Type::Object);
        let limits = LIMITS.iter().fold(limits, |limits, row| {
            let number = ObjectBuilder::new().schema_type(Type::Integer);
            let number = number.minimum(Some(0_usize)).maximum(Some(MOST));
            limits.property(row.key, number.description(Some(row.why)))
        });
        let nothing_else = AdditionalProperties::FreeForm(false);
        limits.additional_properties(Some(nothing_else)).into()
    }
}

impl ToSchema for LimitsBody {}

/// The words of `history`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "the schema of the session's own type")]
pub(crate) enum HistoryWord {
    Compacted,
    Whole,
}

/// The result of a turn.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Answered {
    /// The session.
    session: String,
    /// The agent's message, to which the events, subagents and receipts of the turn belong.
    message: String,
    /// The person's message.
    user_message: String,
    /// `completed`, `partial`, `failed` or `cancelled`; `in_flight`, with status 202, where a person
    /// is asked (`questions`), or the server stopped meanwhile: then it is stored, and is resumed at
    /// the next start.
    status: String,
    /// The conclusion. Foreign text: escape it before a person sees it.
    text: String,
    /// Why it did not complete, or not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The usage of the turn, subagents included.
    usage: Used,
    /// How its subagents ended.
    subagents: Counted,
    /// The questions that the turn waits for. It goes on once they are answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<QuestionBody>,
}

/// The usage.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct Used {
    /// Steps.
    steps: u64,
    /// Input tokens, cached ones included.
    input_tokens: u64,
    /// Input tokens from the provider's cache.
    cached_tokens: u64,
    /// Output tokens.
    output_tokens: u64,
    /// Tool calls.
    tool_calls: u64,
    /// Fuel of all tool calls.
    fuel: u64,
}

/// How many subagents there are, and how they are doing.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct Counted {
    total: u64,
    queued: u64,
    running: u64,
    completed: u64,
    partial: u64,
    failed: u64,
    cancelled: u64,
}

impl ChatBody {
    /// Checks the fields, and converts the body to the service's request for a turn.
    pub(crate) fn into_request(
        self,
        caller: &Caller,
        door: &'static str,
    ) -> Result<TurnRequest, Problem> {
        if self.text.trim().is_empty() {
            return Err(
                Problem::invalid("`text` is blank").with_hint("say what the agent should do")
            );
        }
        if let Some(session) = self.session.as_deref().filter(|id| !is_id(id)) {
            return Err(Problem::not_found("session", session));
        }
        if self.session.is_some() && (self.agent.is_some() || self.model.is_some()) {
            let detail = "`agent` and `model` are those of a session from its beginning";
            return Err(
                Problem::invalid(detail).with_hint("leave them out, or begin a new session")
            );
        }
        Ok(TurnRequest {
            agent: check_name("agent", self.agent)?,
            model: check_name("model", self.model)?,
            limits: parse_limits(&self.limits)?,
            session: self.session,
            text: self.text,
            history: self.history,
            actor: caller.actor.to_string(),
            door,
            ..TurnRequest::default()
        })
    }
}

/// Checks the form of the name of an agent or a model; `what` is `agent` or `model`, for the error
/// text.
pub(crate) fn check_name(what: &str, name: Option<String>) -> Result<Option<String>, Problem> {
    let fits = |name: &String| {
        let name = name.trim();
        !name.is_empty()
            && name.chars().count() <= MAX_NAME
            && !name.chars().any(ShownText::is_hidden)
    };
    match name {
        Some(name) if !fits(&name) => {
            // No agent and no model can have such a name, so the answer is the same as for an unknown
            // name.
            Err(Problem::not_found(what, &name))
        }
        name => Ok(name),
    }
}

/// Converts the limits of a request; an unknown name is a problem that lists the known ones.
fn parse_limits(asked: &BTreeMap<String, u64>) -> Result<LimitsRequest, Problem> {
    let mut limits = LimitsRequest::default();
    for (key, value) in asked {
        if !limits.set(key, *value) {
            let known: Vec<_> = LIMITS.iter().map(|row| row.key).collect();
            let key = ShownText::clip_line(key, 60);
            return Err(Problem::invalid(format!("there is no limit `{key}`"))
                .with_hint(format!("the limits are {}", known.join(", "))));
        }
    }
    Ok(limits)
}

impl Answered {
    /// Reads the result of a turn, so far, from the stored row of the agent's message.
    pub(crate) async fn from_turn(turn: &RunningTurn, store: &Store) -> Result<Self, Problem> {
        let row = store.read_message(&turn.session, &turn.message).await?;
        let StoredMessage { status, mut content, mut metadata, .. } = row;
        let text = match content.get_mut("text").map(serde_json::Value::take) {
            Some(serde_json::Value::String(text)) => text,
            _ => String::new(),
        };
        let unfinished =
            (status == MessageStatus::InFlight).then(|| unfinished_notice(&turn.session));
        let mut part = |name: &str| metadata.get_mut(name).map(serde_json::Value::take);
        Ok(Self {
            session: turn.session.clone(),
            message: turn.message.clone(),
            user_message: turn.user_message.clone(),
            status: status.as_str().to_owned(),
            text,
            error: part("error").and_then(|error| error.as_str().map(str::to_owned)).or(unfinished),
            // An unfinished turn has none of the next three values.
            usage: part("total").and_then(|it| Used::deserialize(it).ok()).unwrap_or_default(),
            subagents: part("subagents")
                .and_then(|it| Counted::deserialize(it).ok())
                .unwrap_or_default(),
            questions: Vec::new(),
        })
    }

    /// Adds the open questions with which a turn waits for a person.
    pub(crate) fn with_questions(self, questions: Vec<QuestionBody>) -> Self {
        let session = &self.session;
        let error = format!(
            "a person is asked, and the turn waits for the answer: send it to `POST \
             /v1/sessions/{session}/questions/ID`; `GET /v1/sessions/{session}/messages` has the \
             conclusion at the end of the turn, and `\"wait\": true` waits for that"
        );
        Self { error: Some(error), questions, ..self }
    }

    /// Returns whether the turn is unfinished: the server stopped before the turn's end.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.status == MessageStatus::InFlight.as_str()
    }
}

/// The text for a person about a turn that the stop of the server interrupted.
fn unfinished_notice(session: &str) -> String {
    format!(
        "the server stopped before this turn had ended; it is stored, and resumed when the server \
         starts again: do not send it twice, `GET /v1/sessions/{session}/messages` has its answer \
         then"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problem(body: serde_json::Value) -> Option<u16> {
        let caller = Caller::for_tests();
        let body: ChatBody = serde_json::from_value(body).unwrap();
        body.into_request(&caller, "http").err().map(|problem| problem.kind().table_row().status)
    }

    #[test]
    fn a_request_of_another_form_is_refused_before_anything_runs() {
        assert_eq!(problem(json!({"text": "hello", "limits": {"steps": 3}})), None);
        assert_eq!(problem(json!({"text": " \n"})), Some(400));
        assert_eq!(problem(json!({"text": "x", "limits": {"stepz": 3}})), Some(400));
        assert_eq!(problem(json!({"text": "x", "session": "../x"})), Some(404));
        assert_eq!(problem(json!({"text": "x", "session": "a", "agent": "b"})), Some(400));
        assert_eq!(problem(json!({"text": "x", "agent": "a\u{202e}b"})), Some(404));
        assert!(serde_json::from_value::<ChatBody>(json!({"text": "x", "txet": 1})).is_err());
    }
}
