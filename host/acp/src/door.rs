//! The state of the connection to one editor.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{SessionNotification, SessionUpdate};
use agent_client_protocol::{Client as ClientRole, Error};
use belljar_session::{Service, ServiceError};
use belljar_store::StoredSession;
use tokio::sync::Semaphore;

use crate::client::EditorCapabilities;
use crate::errors::{error_from_service, invalid_parameter, no_session};
use crate::limits::{MAX_PATH_BYTES, MAX_PROMPTS};
use crate::open::OpenSessions;
use crate::results::StepChannel;
use crate::wire::WireRoom;

/// The connection to the editor.
pub(crate) type Connection = ConnectionTo<ClientRole>;

/// The name in the audit log: the person at this machine.
pub(crate) const ACTOR: &str = "local";

/// The state of the connection to one editor.
pub(crate) struct AcpDoor {
    pub(crate) service: Service,
    pub(crate) results: StepChannel,
    pub(crate) open: OpenSessions,
    /// Limits the prompts that are answered at a time, in all sessions.
    pub(crate) prompts: Semaphore,
    /// The agent of new sessions; `None` = the usual one. The next field is their model.
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    client: OnceLock<EditorCapabilities>,
    room: WireRoom,
    numbers: AtomicU64,
}

impl AcpDoor {
    /// The state of a new connection, without open sessions.
    pub(crate) fn new(
        service: Service,
        results: StepChannel,
        agent: Option<String>,
        model: Option<String>,
        room: WireRoom,
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

    /// Stores the editor's capabilities; only the first call has an effect.
    pub(crate) fn is_for(&self, client: EditorCapabilities) {
        let _ = self.client.set(client);
    }

    /// The capabilities of the editor.
    pub(crate) fn editor_capabilities(&self) -> EditorCapabilities {
        self.client.get().copied().unwrap_or_default()
    }

    /// The workspace of all sessions of this connection.
    pub(crate) fn workspace(&self) -> &Path {
        self.service.workspace()
    }

    /// An id for an entry that this door itself shows among the tool calls, for example
    /// `changes.1732826276000.1`. No tool call of a model has such an id.
    pub(crate) fn own_call(&self, what: &str) -> String {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        format!("{what}.{}.{number}", self.service.current_host().clock.now().as_millisecond())
    }

    /// Sends an update when there is room; returns false if the editor has disconnected.
    pub(crate) async fn send_update(
        &self,
        to: &Connection,
        session: &str,
        update: SessionUpdate,
    ) -> bool {
        self.room.for_update().await
            && to.send_notification(SessionNotification::new(session.to_owned(), update)).is_ok()
    }

    /// INV-300: the editor's directory must be the workspace of this process, after resolving links, because
    /// the OS sandbox lets the process reach no other.
    pub(crate) fn check_directory(&self, cwd: &Path, more: &[PathBuf]) -> Result<(), Error> {
        if !cwd.is_absolute() || cwd.as_os_str().len() > MAX_PATH_BYTES {
            return Err(invalid_parameter("`cwd` has to be an absolute path"));
        }
        if !more.is_empty() {
            return Err(invalid_parameter(
                "a session has one directory; leave `additionalDirectories` out",
            ));
        }
        let found = cwd.canonicalize().ok();
        if found.as_deref() == Some(self.workspace()) {
            return Ok(());
        }
        Err(invalid_parameter(
            "`cwd` is not the workspace that `belljar acp` was started for; start one in that \
             directory, or with `--workspace` and its path",
        ))
    }

    /// Finds a session that this editor may open: a conversation in this workspace. Other sessions are
    /// reported as missing.
    pub(crate) async fn find_session(&self, id: &str) -> Result<StoredSession, Error> {
        // INV-301: other characters are refused, so the id can be neither a path nor a pattern of the store.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if id.is_empty() || id.len() > 64 || !id.bytes().all(plain) {
            return Err(no_session(id));
        }
        let found = self.service.store().read_session(id).await.map_err(ServiceError::from);
        let session = found.map_err(|error| error_from_service(&error))?;
        let here = Path::new(&session.workspace) == self.workspace() && !session.kind.is_run();
        here.then_some(session).ok_or_else(|| no_session(id))
    }
}
