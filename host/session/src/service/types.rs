//! Requests to the service, and its errors.

use std::time::Duration;

use belljar_agent::{BlockedAgent, BroughtError, CallerInput, TextRetention, UnfitInput};
use belljar_definition::NotFound;
use belljar_overlay::ChangesError;
use belljar_policy::LimitsRequest;
use belljar_store::StoreError;
use belljar_work::{WorkError, WorkKind};
use jiff::Timestamp;
use serde_json::Value;

use crate::record::rows::HistoryMode;
use crate::record::saved_session::SessionError;
use crate::record::turn::Turn;
use crate::review::ReviewError;

/// The deadline of looking at a session's changes. Includes the wait for a thread, and is below the deadline
/// of an HTTP request.
pub(crate) const LOOK: WorkKind =
    WorkKind { name: "looking at the changes of a session", time: Duration::from_secs(20) };

/// The limits of one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Most turns that run at a time.
    pub concurrent_turns: usize,
    /// Most turns that wait for a running one to end; a further turn is refused.
    pub queued_turns: usize,
    /// Tokens of all turns of a day, in UTC; `None` = no limit.
    pub tokens_per_day: Option<u64>,
    /// Fuel of all turns of a day, in UTC; `None` = no limit.
    pub fuel_per_day: Option<u64>,
    /// Bytes that the tenant may have stored when a turn begins or an agent is stored
    /// ([`belljar_store::Store::stored_bytes`]); `None` = no limit. Running turns are stored to their end.
    pub storage_bytes: Option<u64>,
}

/// What a turn is: part of a conversation, or a run of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TurnKind {
    /// A turn of a conversation.
    #[default]
    Conversation,
    /// A run of an agent beside conversations: a session of one turn with the id of the run.
    Run,
    /// A run of a team beside conversations.
    Team,
}

/// A request to begin a turn with a person's message, or to preview the turn.
#[derive(Debug, Clone, Default)]
pub struct TurnRequest {
    /// The kind of the turn. Default: a turn of a conversation; the other kinds begin a new session.
    pub kind: TurnKind,
    /// The session in which the turn begins, by id; `None` = a new session.
    pub session: Option<String>,
    /// The agent or the team of a new session, by name; `None` = `general-purpose`. Must be `None` for an
    /// existing session, which keeps its agent.
    pub agent: Option<String>,
    /// The model of a new session, by name or alias; `None` = the agent's own.
    pub model: Option<String>,
    /// The person's text.
    pub text: String,
    /// Context for the model beside the text; blank = none.
    pub context: Option<String>,
    /// The caller's input besides text. Its results belong to the calls that ended the turn `after`.
    pub brought: CallerInput,
    /// The turn that the caller believes to be the session's last one, by the id of the agent's message. If
    /// another turn is last, the request is refused. `None` = any turn may be last.
    pub after: Option<String>,
    /// True if the session is deleted when its turn has ended. Default: no.
    pub forget: bool,
    /// A note that the entrance stores with the turn, readable with
    /// [`Service::stored_turn`](super::Service::stored_turn).
    pub entrance: Option<Value>,
    /// Which agents' texts the entrance shows at once, and cannot withdraw later.
    pub kept: TextRetention,
    /// The caller's limits of this turn; the grants' limits hold as well.
    pub limits: LimitsRequest,
    /// The part of the session's past that is sent.
    pub history: HistoryMode,
    /// The sender, for the audit log: `key:<id>` or `local`.
    pub actor: String,
    /// The entrance, for the audit log, for example `http`.
    pub door: &'static str,
}

/// A change of a session's title, agent or model; `None` = unchanged.
#[derive(Debug, Clone, Default)]
pub struct HeadEdit {
    /// The title.
    pub title: Option<String>,
    /// The agent, by name.
    pub agent: Option<String>,
    /// The model, by name or alias; empty = the agent's own.
    pub model: Option<String>,
}

/// A turn from the store, found by its message.
#[derive(Debug, Clone)]
pub struct StoredTurnOf {
    /// The turn. An unfinished turn has the known part of the outcome.
    pub turn: Turn,
    /// True if this is the last turn of the session.
    pub is_last: bool,
}

/// The error of a request to the service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The session is missing or is another tenant's.
    #[error("there is no session `{0}`")]
    NoSession(String),
    /// A turn of the session is running; a session has one turn at a time.
    #[error("session `{0}` is answering; wait for the end of its turn, or cancel it")]
    Busy(String),
    /// The name belongs to no agent of the tenant, or to several.
    #[error("no agent, or more than one, is called `{}`", .0.name)]
    NoAgent(NotFound),
    /// The agent is blocked.
    #[error("agent `{agent}` is blocked: {}", reasons.join("; "))]
    Blocked {
        /// The id of the agent.
        agent: String,
        /// The reasons why the agent is blocked.
        reasons: Vec<String>,
    },
    /// No model is configured.
    #[error("no model is configured")]
    NoModel,
    /// The agent cannot be set up: its model is not known, or a tool cannot be used.
    #[error("{0}")]
    Agent(String),
    /// The caller's input is too large, or has too many parts.
    #[error(transparent)]
    Unfit(UnfitInput),
    /// An input of the caller does not fit the agent, for example a tool with the name of the agent's.
    #[error("{0}")]
    Caller(String),
    /// Images that the caller brings do not fit the agent's model.
    #[error("{0}")]
    Images(String),
    /// Another turn was added after the turn that the caller expected to be the last.
    #[error("session `{0}` has gone on since")]
    GoneOn(String),
    /// The last turn's calls wait for results that the request lacks.
    #[error("no result for the calls {}", .0.join(", "))]
    Unanswered(Vec<String>),
    /// The request is malformed or contradictory.
    #[error("{0}")]
    Invalid(String),
    /// The tenant has its maximum of turns.
    #[error("too many turns at a time; try again later")]
    TenantFull {
        /// The time after which another attempt may succeed.
        retry_after: Duration,
    },
    /// The host has its maximum of turns.
    #[error("the host is busy; try again later")]
    HostFull {
        /// The time after which another attempt may succeed.
        retry_after: Duration,
    },
    /// The tenant has its maximum of stored bytes.
    #[error("{used} of {limit} bytes are stored; delete sessions or agents first")]
    StorageFull {
        /// The stored bytes of the tenant.
        used: u64,
        /// The most bytes that the tenant may store.
        limit: u64,
    },
    /// The tenant's limit of the day is used up, or too little of it is left for one step.
    #[error("`{limit}` is {most}, and {left} of it is left until {resets}; a step needs {needed}")]
    DayUsed {
        /// The setting of the limit: `tenant_tokens_per_day` or `tenant_fuel_per_day`.
        limit: &'static str,
        /// The amount of the limit.
        most: u64,
        /// The rest of the limit, in the limit's unit.
        left: u64,
        /// The least amount that the turn needs, in the limit's unit.
        needed: u64,
        /// The time at which the limit starts anew.
        resets: Timestamp,
        /// The time from now until `resets`.
        retry_after: Duration,
    },
    /// The service is shutting down and begins no more turns.
    #[error("the host is shutting down")]
    Draining,
    /// The question is not open, or expects another kind of answer.
    #[error("there is no open question {0} that this would answer")]
    NoQuestion(u64),
    /// The store refused the request or failed.
    #[error(transparent)]
    Store(StoreError),
    /// The changes of a session cannot be looked at.
    #[error(transparent)]
    Review(ReviewError),
    /// A session cannot be resumed.
    #[error(transparent)]
    Session(SessionError),
    /// Work lasted too long, or too much work waits.
    #[error(transparent)]
    Work(WorkError),
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { what: "session", id } => Self::NoSession(id),
            error => Self::Store(error),
        }
    }
}

impl From<BlockedAgent> for ServiceError {
    fn from(blocked: BlockedAgent) -> Self {
        Self::Blocked { agent: blocked.agent.to_string(), reasons: blocked.reasons }
    }
}

impl From<BroughtError> for ServiceError {
    fn from(error: BroughtError) -> Self {
        match error {
            BroughtError::Unfit(unfit) => Self::Unfit(unfit),
            BroughtError::Work(error) => Self::Work(error),
        }
    }
}

impl From<ReviewError> for ServiceError {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Busy(session) => Self::Busy(session),
            ReviewError::Store(error) => error.into(),
            // While the caller waits, only the deadline can raise the signal.
            ReviewError::Changes(ChangesError::Stopped(_)) => {
                Self::Work(WorkError::TimedOut { kind: LOOK.name, limit: LOOK.time })
            }
            error => Self::Review(error),
        }
    }
}

impl From<SessionError> for ServiceError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => error.into(),
            SessionError::Locked(session) => Self::Busy(session),
            other @ (SessionError::Lock { .. } | SessionError::Nothing) => Self::Session(other),
        }
    }
}
