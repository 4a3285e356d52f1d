//! STUB: the orchestrator's interface with trivial bodies, so that what is built on it compiles.
#![allow(missing_docs, reason = "a stub")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use belljar_policy::LimitsRequest;
use belljar_store::Store;

use crate::{Host, Word};

#[derive(Clone)]
pub struct Service {
    host: Host,
    store: Store,
    workspace: Arc<PathBuf>,
}

#[derive(Debug, Clone, Copy)]
pub struct ServiceLimits {
    pub concurrent_turns: usize,
    pub queued_turns: usize,
}

#[derive(Debug)]
pub struct Admission {
    jars: usize,
}

impl Admission {
    pub fn new(jars: usize, _queued: usize) -> Arc<Self> {
        Arc::new(Self { jars })
    }

    pub fn in_use(&self) -> usize {
        0
    }

    pub fn capacity(&self) -> usize {
        self.jars
    }

    pub fn waiting(&self) -> usize {
        0
    }
}

#[derive(Debug, Clone, Default)]
pub struct TurnRequest {
    pub session: Option<String>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub text: String,
    pub limits: LimitsRequest,
    pub actor: String,
}

pub struct TurnHandle {
    pub session: String,
    pub message: String,
    pub user_message: String,
}

impl TurnHandle {
    pub async fn ended(&mut self) {}

    pub fn watch(&mut self) -> Watch {
        Watch {}
    }
}

pub struct Watch {}

impl Watch {
    pub async fn next(&mut self) -> Option<SessionEvent> {
        None
    }
}

#[derive(Debug, Clone)]
pub struct SessionEvent {
    pub id: i64,
    pub message: Arc<str>,
    pub kind: Arc<str>,
    pub json: Arc<str>,
}

#[derive(Debug, Clone)]
pub struct OpenQuestion {
    pub id: u64,
    pub message: String,
    pub agent: String,
    pub kind: QuestionKind,
    pub asked: i64,
}

#[derive(Debug, Clone)]
pub enum QuestionKind {
    Permission { tool: String, arguments: String },
    Clarify { question: String, options: Vec<String> },
}

#[derive(Debug, Clone)]
pub enum PersonAnswer {
    Permission(Word),
    Text(Option<String>),
}

#[derive(Debug, Clone)]
pub struct RunningTurn {
    pub session: String,
    pub message: String,
    pub agent: String,
    pub started: i64,
}

#[derive(Debug, Clone, Default)]
pub struct PreviewRequest {
    pub session: Option<String>,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub text: String,
}

#[derive(Debug)]
pub struct Preview {
    pub model: String,
    pub request: belljar_model::ChatRequest,
    pub notes: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("there is no session `{0}`")]
    NoSession(String),
    #[error("session `{0}` is already answering; wait for its end or cancel it")]
    Busy(String),
    #[error("{message}")]
    Agent { message: String, hint: Option<String> },
    #[error("{0}")]
    Invalid(String),
    #[error("too many turns at a time; try again in {retry_after:?}")]
    TenantFull { retry_after: Duration },
    #[error("the host is busy; try again in {retry_after:?}")]
    HostFull { retry_after: Duration },
    #[error("the host is shutting down")]
    Draining,
    #[error("there is no open question {0}")]
    NoQuestion(u64),
    #[error(transparent)]
    Store(#[from] belljar_store::StoreError),
}

impl Service {
    pub fn new(
        host: Host,
        store: Store,
        workspace: PathBuf,
        _admission: Arc<Admission>,
        _limits: ServiceLimits,
    ) -> Self {
        Self { host, store, workspace: Arc::new(workspace) }
    }

    pub async fn begin(&self, _request: TurnRequest) -> Result<TurnHandle, ServiceError> {
        Err(ServiceError::Draining)
    }

    pub async fn watch(&self, _session: &str, _after: Option<i64>) -> Result<Watch, ServiceError> {
        Ok(Watch {})
    }

    pub fn cancel(&self, _session: &str, _actor: &str) -> bool {
        false
    }

    pub fn cancel_subagent(&self, _session: &str, _path: &str, _actor: &str) -> bool {
        false
    }

    pub fn questions(&self, _session: Option<&str>) -> Vec<(String, OpenQuestion)> {
        Vec::new()
    }

    pub fn answer(
        &self,
        _session: &str,
        question: u64,
        _answer: PersonAnswer,
        _actor: &str,
    ) -> Result<(), ServiceError> {
        Err(ServiceError::NoQuestion(question))
    }

    pub fn running(&self) -> Vec<RunningTurn> {
        Vec::new()
    }

    pub async fn preview(&self, _request: PreviewRequest) -> Result<Preview, ServiceError> {
        Err(ServiceError::Draining)
    }

    pub async fn recover(&self) -> Result<usize, ServiceError> {
        Ok(0)
    }

    pub async fn drain(&self, _limit: Duration) {}

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn workspace(&self) -> &std::path::Path {
        &self.workspace
    }
}
