//! Answers the requests of an editor, one handler for each.
//!
//! A handler blocks reading further requests, so slow work is done in a separate task.

use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthenticateRequest, AuthenticateResponse, CancelNotification,
    CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, NewSessionRequest,
    NewSessionResponse, Notice, NoticeSeverity, PromptCapabilities, PromptRequest,
    ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities,
    SessionDeleteCapabilities, SessionInfo, SessionListCapabilities, SessionResumeCapabilities,
    SessionUpdate, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::{Agent, Error, Lines, on_receive_notification, on_receive_request};
use belljar_policy::ShownText;
use belljar_session::{HeadEdit, Service};
use belljar_store::{MAX_LISTED, StoredSession};
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::EditorCapabilities;
use crate::door::{ACTOR, AcpDoor, Connection};
use crate::errors::{error_from_service, internal_failure, invalid_parameter, no_session};
use crate::limits::{LAST_WAIT, PAGE};
use crate::open::OpenSession;
use crate::results::StepChannel;
use crate::wire::{self, WireRoom};
use crate::{children, commands, history, modes, turn, words};

/// Everything that serving one editor needs.
#[derive(Debug)]
pub struct EditorEntrance {
    /// The service that runs the turns; all sessions use its workspace.
    pub service: Service,
    /// The channel with the journal steps of the service's turns.
    pub results: StepChannel,
    /// The agent of new sessions; `None` = the usual one.
    pub agent: Option<String>,
    /// The model of new sessions; `None` = the agent's own.
    pub model: Option<String>,
}

impl EditorEntrance {
    /// Serves an editor until the connection is closed. Turns that are running then are stopped, and resumed
    /// when their session is opened again.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn serve_editor(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), String> {
        let room = WireRoom::new();
        let lines = Lines::new(
            Box::pin(wire::outgoing_lines(writer, room.clone())),
            Box::pin(wire::incoming_lines(reader, room.clone())),
        );
        let Self { service, results, agent, model } = self;
        let door = AcpDoor::new(service.clone(), results, agent, model, room);
        let served = answer_requests(door, lines).await;
        service.drain_turns(LAST_WAIT).await;
        served.map_err(|error| error.message)
    }
}

/// Registers the handlers of all requests, and answers them until the connection is closed.
async fn answer_requests(
    door: Arc<AcpDoor>,
    transport: impl agent_client_protocol::ConnectTo<Agent> + 'static,
) -> Result<(), Error> {
    let doors = std::array::from_fn::<_, 11, _>(|_| Arc::clone(&door));
    let [initialize, new, load, resume, list, close, delete, prompt, cancel, mode, option] = doors;
    Agent
        .v1()
        .name("belljar")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _to: Connection| {
                responder.respond(initialize_response(&initialize, &request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_request: AuthenticateRequest, responder, _to: Connection| {
                responder.respond(AuthenticateResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, to: Connection| {
                let (door, way) = (Arc::clone(&new), to.clone());
                to.spawn(async move {
                    let made = new_session(&door, request).await;
                    let opened = made.as_ref().ok().map(|(opened, _)| opened.clone());
                    responder.respond_with_result(made.map(|(_, response)| response))?;
                    after_opening(&door, &way, opened).await;
                    Ok(())
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, to: Connection| {
                let (door, way) = (Arc::clone(&load), to.clone());
                to.spawn(async move {
                    let loaded = load_session(&door, &way, request).await;
                    let opened = loaded.as_ref().ok().map(|(opened, _)| opened.clone());
                    responder.respond_with_result(loaded.map(|(_, response)| response))?;
                    after_opening(&door, &way, opened).await;
                    Ok(())
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest, responder, to: Connection| {
                let (door, way) = (Arc::clone(&resume), to.clone());
                to.spawn(async move {
                    let resumed = resume_session(&door, request).await;
                    let opened = resumed.as_ref().ok().map(|(opened, _)| opened.clone());
                    responder.respond_with_result(resumed.map(|(_, response)| response))?;
                    after_opening(&door, &way, opened).await;
                    Ok(())
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ListSessionsRequest, responder, to: Connection| {
                let door = Arc::clone(&list);
                to.spawn(async move {
                    let asked = responder.cancellation();
                    let listing = list_sessions(&door, &request);
                    responder.respond_with_result(asked.run_until_cancelled(listing).await)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest, responder, _to: Connection| {
                let id = request.session_id.0.to_string();
                responder.respond_with_result(close_session(&close, &id))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: DeleteSessionRequest, responder, to: Connection| {
                let door = Arc::clone(&delete);
                to.spawn(async move {
                    let id = request.session_id.0.to_string();
                    responder.respond_with_result(delete_session(&door, &id).await)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, to: Connection| {
                // Begun in the order of the requests, because a session answers one prompt at a time.
                let session = prompt.open.find_session(&request.session_id.0);
                let prompting = session.and_then(|session| session.begin_prompt());
                let (door, way) = (Arc::clone(&prompt), to.clone());
                match prompting {
                    Err(error) => responder.respond_with_error(error),
                    Ok(prompting) => to.spawn(async move {
                        let (asked, cancel) = (responder.cancellation(), prompting.cancel.clone());
                        let answering = turn::answer_prompt(&door, &way, prompting, request);
                        tokio::pin!(answering);
                        let answered = tokio::select! {
                            biased;
                            answered = &mut answering => answered,
                            // As with `session/cancel`, the turn is cancelled, and its answer states the
                            // reason.
                            () = asked.cancelled() => {
                                cancel.cancel();
                                answering.await
                            }
                        };
                        responder.respond_with_result(answered)
                    }),
                }
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest, responder, to: Connection| {
                let door = Arc::clone(&mode);
                to.spawn(async move {
                    let set = set_mode(&door, &request).await;
                    responder.respond_with_result(set)
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionConfigOptionRequest, responder, to: Connection| {
                let door = Arc::clone(&option);
                to.spawn(async move {
                    let set = set_option(&door, &request).await;
                    responder.respond_with_result(set)
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |cancelled: CancelNotification, _to: Connection| {
                cancel_session(&cancel, &cancelled.session_id.0);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await
}

/// Stores the editor's capabilities, and answers with those of belljar.
fn initialize_response(door: &AcpDoor, request: &InitializeRequest) -> InitializeResponse {
    door.is_for(EditorCapabilities::from_stated(&request.client_capabilities));
    let session = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().embedded_context(true).image(true))
        .session_capabilities(session);
    InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities).agent_info(
        Implementation::new("belljar", env!("CARGO_PKG_VERSION")).title("belljar".to_owned()),
    )
}

/// A session that was opened, with what remains to be done.
#[derive(Clone)]
struct OpenedSession {
    session: Arc<OpenSession>,
    /// The number of the last event that was sent; `None` for a new session.
    told: Option<i64>,
    /// The number of MCP servers that the editor wanted to have started.
    servers: usize,
}

/// Makes a new session, and opens it.
async fn new_session(
    door: &Arc<AcpDoor>,
    request: NewSessionRequest,
) -> Result<(OpenedSession, NewSessionResponse), Error> {
    door.check_directory(&request.cwd, &request.additional_directories)?;
    let head = HeadEdit { title: None, agent: door.agent.clone(), model: door.model.clone() };
    let stored =
        door.service.create_session(head).await.map_err(|error| error_from_service(&error))?;
    let session = match door.open.open_session(&stored.id) {
        Ok(session) => session,
        Err(error) => {
            // The editor does not have the session's id yet, so the session is deleted.
            let _ = door.service.delete_session(&stored.id).await;
            return Err(error);
        }
    };
    let response = NewSessionResponse::new(stored.id.clone())
        .modes(modes::session_modes(door, &stored).await?)
        .config_options(offered_options(door, &stored));
    let servers = request.mcp_servers.len();
    Ok((OpenedSession { session, told: None, servers }, response))
}

/// Opens a stored session, and sends its past.
async fn load_session(
    door: &Arc<AcpDoor>,
    to: &Connection,
    request: LoadSessionRequest,
) -> Result<(OpenedSession, LoadSessionResponse), Error> {
    door.check_directory(&request.cwd, &request.additional_directories)?;
    let stored = door.find_session(&request.session_id.0).await?;
    let session = door.open.open_session(&stored.id)?;
    // Held so that no turn begins in the session meanwhile.
    let prompting = session.begin_prompt()?;
    let told = history::replay_history(door, to, &stored.id).await?;
    drop(prompting);
    let response = LoadSessionResponse::new()
        .modes(modes::session_modes(door, &stored).await?)
        .config_options(offered_options(door, &stored));
    let servers = request.mcp_servers.len();
    Ok((OpenedSession { session, told: Some(told), servers }, response))
}

/// Opens a stored session without sending its past.
async fn resume_session(
    door: &Arc<AcpDoor>,
    request: ResumeSessionRequest,
) -> Result<(OpenedSession, ResumeSessionResponse), Error> {
    door.check_directory(&request.cwd, &request.additional_directories)?;
    let stored = door.find_session(&request.session_id.0).await?;
    let session = door.open.open_session(&stored.id)?;
    let told = door.service.store().last_event(&stored.id).await;
    let told =
        told.map_err(|error| internal_failure(ShownText::new(&error.to_string()).to_string()))?;
    let response = ResumeSessionResponse::new()
        .modes(modes::session_modes(door, &stored).await?)
        .config_options(offered_options(door, &stored));
    let servers = request.mcp_servers.len();
    Ok((OpenedSession { session, told: Some(told), servers }, response))
}

/// The options of a session; `None` if it has none.
fn offered_options(
    door: &AcpDoor,
    session: &StoredSession,
) -> Option<Vec<agent_client_protocol::v1::schema::SessionConfigOption>> {
    Some(modes::session_options(door, session)).filter(|options| !options.is_empty())
}

/// Sends the list of commands, and resumes a turn that an earlier process left unfinished.
async fn after_opening(door: &Arc<AcpDoor>, to: &Connection, opened: Option<OpenedSession>) {
    let Some(OpenedSession { session, told, servers }) = opened else { return };
    door.send_update(to, &session.id, commands::list_commands(door)).await;
    if servers > 0 {
        // INV-307: the editor's MCP servers are not started.
        let text = format!(
            "the editor's MCP servers are not used ({servers}): belljar starts nothing that an editor \
             names. Name them in your own belljar.toml as `[mcp.NAME]`, then `belljar mcp review NAME`"
        );
        tracing::warn!(target: "belljar::acp", "{text}");
        let update = match door.editor_capabilities().notices {
            true => SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, text)),
            false => words::remark_update(&format!("{text}\n\n")),
        };
        door.send_update(to, &session.id, update).await;
    }
    let Some(told) = told else { return };
    // Locked before the editor can send a prompt in this session, so its next prompt waits for the resumed
    // turn.
    if let Ok(floor) = Arc::clone(&session.floor).try_lock_owned() {
        tokio::spawn(turn::go_on(Arc::clone(door), to.clone(), session, floor, told));
    }
}

/// Lists the sessions of this workspace, one page at a time; the cursor is the number of sessions before the
/// page.
async fn list_sessions(
    door: &AcpDoor,
    request: &ListSessionsRequest,
) -> Result<ListSessionsResponse, Error> {
    let from = match &request.cursor {
        None => 0,
        Some(cursor) => cursor
            .parse::<usize>()
            .map_err(|_| invalid_parameter("`cursor` is none of this list"))?,
    };
    if request.cwd.as_ref().is_some_and(|cwd| door.check_directory(cwd, &[]).is_err()) {
        return Ok(ListSessionsResponse::new(Vec::new()));
    }
    let all = door.service.store().latest_sessions(MAX_LISTED).await;
    let all =
        all.map_err(|error| internal_failure(ShownText::new(&error.to_string()).to_string()))?;
    let here = door.workspace().to_string_lossy();
    // INV-301: only sessions of this workspace. A session without messages is not listed.
    let own = all.into_iter().filter(|session| {
        session.workspace == here && !session.kind.is_run() && !session.title.is_empty()
    });
    let mut page: Vec<_> = own.skip(from).take(PAGE + 1).collect();
    let more = page.len() > PAGE;
    page.truncate(PAGE);
    let info = |session: StoredSession| {
        let updated = Timestamp::from_millisecond(session.updated).unwrap_or_default();
        SessionInfo::new(session.id, door.workspace())
            .title(ShownText::new(&session.title).to_string())
            .updated_at(updated.to_string())
    };
    let next = more.then(|| from.saturating_add(PAGE).to_string());
    Ok(ListSessionsResponse::new(page.into_iter().map(info).collect()).next_cursor(next))
}

/// Closes a session, and cancels its turn.
fn close_session(door: &AcpDoor, id: &str) -> Result<CloseSessionResponse, Error> {
    let session = door.open.close_session(id).ok_or_else(|| no_session(id))?;
    session.cancel_prompt();
    door.service.cancel_turn(id, ACTOR);
    Ok(CloseSessionResponse::new())
}

/// Deletes a session, and writes that to the audit log.
async fn delete_session(door: &AcpDoor, id: &str) -> Result<DeleteSessionResponse, Error> {
    door.find_session(id).await?;
    let deleted =
        door.service.delete_session(id).await.map_err(|error| error_from_service(&error))?;
    door.open.close_session(id);
    // INV-413: deleting a session that was missing leaves no line in the audit log.
    if deleted {
        let detail = serde_json::json!({"by": "acp"});
        door.service.record_audit(ACTOR, "session_deleted", id.to_owned(), detail);
    }
    Ok(DeleteSessionResponse::new())
}

/// Makes another agent answer in a session.
async fn set_mode(
    door: &AcpDoor,
    request: &SetSessionModeRequest,
) -> Result<SetSessionModeResponse, Error> {
    let session = door.open.find_session(&request.session_id.0)?;
    modes::set_agent(door, &session.id, &request.mode_id).await?;
    Ok(SetSessionModeResponse::new())
}

/// Sets an option of a session, for example its model.
async fn set_option(
    door: &AcpDoor,
    request: &SetSessionConfigOptionRequest,
) -> Result<SetSessionConfigOptionResponse, Error> {
    let session = door.open.find_session(&request.session_id.0)?;
    let set = modes::set_option(door, &session.id, &request.config_id, &request.value).await?;
    Ok(SetSessionConfigOptionResponse::new(set))
}

/// Cancels the prompt of a session, or one subagent. INV-301: only in a session that this editor has opened.
fn cancel_session(door: &AcpDoor, id: &str) {
    if let Ok(session) = door.open.find_session(id) {
        session.cancel_prompt();
        door.service.cancel_turn(id, ACTOR);
        return;
    }
    let Some((message, path)) = children::parse_child_id(id) else { return };
    let turns = door.service.running_turns();
    let turn = turns.iter().find(|turn| turn.message == message);
    if let Some(turn) = turn.filter(|turn| door.open.find_session(&turn.session).is_ok()) {
        door.service.cancel_subagent(&turn.session, path, ACTOR);
    }
}
