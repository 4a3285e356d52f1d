//! The state of one editor connection.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{SessionNotification, SessionUpdate};
use agent_client_protocol::{Client as ClientRole, Error};
use belljar_session::{Service, ServiceError};
use belljar_store::StoredSession;
use tokio::sync::Semaphore;

use crate::client::Client;
use crate::errors::{invalid, no_session, of_service};
use crate::limits::{MAX_PATH_BYTES, MAX_PROMPTS};
use crate::open::OpenSessions;
use crate::results::Results;
use crate::wire::Room;

/// The way to the editor.
pub(crate) type Connection = ConnectionTo<ClientRole>;

/// The actor for the audit log: the person at this machine.
pub(crate) const ACTOR: &str = "local";

/// The state of one connection.
pub(crate) struct Door {
    pub(crate) service: Service,
    pub(crate) results: Results,
    pub(crate) open: OpenSessions,
    /// Prompts of all sessions.
    pub(crate) prompts: Semaphore,
    /// The agent and the model of new sessions.
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    client: OnceLock<Client>,
    room: Room,
    numbers: AtomicU64,
}

impl Door {
    pub(crate) fn new(
        service: Service,
        results: Results,
        agent: Option<String>,
        model: Option<String>,
        room: Room,
    ) -> Arc<Self> {
        Arc::new(Self {
            service,
            results,
            open: OpenSessions::default(),
            prompts: Semaphore::new(MAX_PROMPTS),
            agent,
            model,
            client: OnceLock::new(),
            room,
            numbers: AtomicU64::new(1),
        })
    }

    /// Notes the editor's capabilities; only the first call counts.
    pub(crate) fn is_for(&self, client: Client) {
        let _ = self.client.set(client);
    }

    /// The capabilities of the editor.
    pub(crate) fn client(&self) -> Client {
        self.client.get().copied().unwrap_or_default()
    }

    /// The workspace of every session here.
    pub(crate) fn workspace(&self) -> &Path {
        self.service.workspace()
    }

    /// An id that no call of a model has.
    pub(crate) fn own_call(&self, what: &str) -> String {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        format!("{what}.{}.{number}", self.service.host().clock.now().as_millisecond())
    }

    /// Sends an update once there is room; `false` = the editor has disconnected.
    pub(crate) async fn send(&self, to: &Connection, session: &str, update: SessionUpdate) -> bool {
        self.room.for_update().await
            && to.send_notification(SessionNotification::new(session.to_owned(), update)).is_ok()
    }

    /// INV-300: the editor's directory has to be the workspace of this process, links resolved: the OS
    /// sandbox lets the process reach no other.
    pub(crate) fn check_directory(&self, cwd: &Path, more: &[PathBuf]) -> Result<(), Error> {
        if !cwd.is_absolute() || cwd.as_os_str().len() > MAX_PATH_BYTES {
            return Err(invalid("`cwd` has to be an absolute path"));
        }
        if !more.is_empty() {
            return Err(invalid("a session has one directory; leave `additionalDirectories` out"));
        }
        let found = cwd.canonicalize().ok();
        if found.as_deref() == Some(self.workspace()) {
            return Ok(());
        }
        Err(invalid(
            "`cwd` is not the workspace that `belljar acp` was started for; start one in that \
             directory, or with `--workspace` and its path",
        ))
    }

    /// Finds a session that can be opened here: a conversation in this workspace. Other sessions count as
    /// missing.
    pub(crate) async fn stored(&self, id: &str) -> Result<StoredSession, Error> {
        // INV-301: no path and no pattern.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if id.is_empty() || id.len() > 64 || !id.bytes().all(plain) {
            return Err(no_session(id));
        }
        let found = self.service.store().session(id).await.map_err(ServiceError::from);
        let session = found.map_err(|error| of_service(&error))?;
        let here = Path::new(&session.workspace) == self.workspace() && !session.kind.is_run();
        here.then_some(session).ok_or_else(|| no_session(id))
    }
}
