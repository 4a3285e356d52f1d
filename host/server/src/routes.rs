//! The only table of routes, of which the router, callers' rights, the OpenAPI document and tests are made.

mod lookup;

use belljar_store::MAX_ATTACHMENT_BYTES;

use crate::http::in_flight::PAGE_BYTES;
use crate::mcp::metadata;
use crate::openai;

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The operation that the route performs.
    pub op: RouteOp,
    /// The HTTP method.
    pub verb: HttpVerb,
    /// The path; `{name}` is a parameter, for example `/v1/sessions/{id}`.
    pub path: &'static str,
    /// The least scope that the caller needs.
    pub needs: RequiredScope,
    /// The object in the path, which must belong to the caller's tenant.
    pub object: PathObject,
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the methods' own names")]
pub enum HttpVerb {
    Get,
    Post,
    Put,
    Delete,
}

/// The least scope of a caller. Each level includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredScope {
    /// No credential at all.
    Nothing,
    /// A key that may only read.
    ReadOnly,
    /// A key that may also run turns.
    Member,
    /// A key that may also change its tenant's objects, for example agents.
    Admin,
    /// An admin's key of the operator's own tenant, because the answer shows all tenants.
    Operator,
}

/// The object that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathObject {
    /// None.
    None,
    /// A session.
    Session,
    /// A session with one of its attachments.
    Attachment,
    /// A session with one of its open questions.
    Question,
    /// An agent of the tenant.
    Agent,
    /// A turn, named as a response of OpenAI's API.
    Response,
    /// An agent, named as a model of OpenAI's API.
    Model,
}

/// The operation of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "the table says it, and the OpenAPI document explains it")]
pub enum RouteOp {
    Chat,
    ListSessions,
    DeleteSessions,
    ReadSession,
    DeleteSession,
    ListMessages,
    WatchEvents,
    ListSubagents,
    ListReceipts,
    ReadContents,
    Resume,
    ListAttachments,
    ReadAttachment,
    ReadChanges,
    ApplyChanges,
    DiscardChanges,
    UndoApply,
    Cancel,
    ListSessionQuestions,
    Answer,
    ListQuestions,
    ListRunning,
    ListAgents,
    CreateAgent,
    ReadAgent,
    ReplaceAgent,
    DeleteAgent,
    ValidateAgent,
    Preview,
    ListTools,
    ListRoles,
    ReadGrants,
    Explain,
    ReadRights,
    ListLibraries,
    ReadUsage,
    ReadAudit,
    #[strum(to_string = "openapi")]
    OpenApi,
    Login,
    Logout,
    Me,
    #[strum(to_string = "websocket")]
    WebSocket,
    CompleteChat,
    CreateResponse,
    ReadResponse,
    DeleteResponse,
    CancelResponse,
    ListInputItems,
    ListModels,
    ReadModel,
    McpSend,
    McpListen,
    McpEnd,
    McpMetadata,
    Health,
    Ready,
    Metrics,
}

const fn new_route(
    op: RouteOp,
    verb: HttpVerb,
    path: &'static str,
    needs: RequiredScope,
    object: PathObject,
) -> Route {
    Route { op, verb, path, needs, object }
}

/// Every route of the server.
pub const ROUTES: &[Route] = &[
    new_route(RouteOp::Chat, HttpVerb::Post, "/v1/chat", RequiredScope::Member, PathObject::None),
    new_route(
        RouteOp::ListSessions,
        HttpVerb::Get,
        "/v1/sessions",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::DeleteSessions,
        HttpVerb::Delete,
        "/v1/sessions",
        RequiredScope::Admin,
        PathObject::None,
    ),
    new_route(
        RouteOp::ReadSession,
        HttpVerb::Get,
        "/v1/sessions/{id}",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::DeleteSession,
        HttpVerb::Delete,
        "/v1/sessions/{id}",
        RequiredScope::Member,
        PathObject::Session,
    ),
    new_route(
        RouteOp::ListMessages,
        HttpVerb::Get,
        "/v1/sessions/{id}/messages",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::WatchEvents,
        HttpVerb::Get,
        "/v1/sessions/{id}/events",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::ListSubagents,
        HttpVerb::Get,
        "/v1/sessions/{id}/subagents",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::ListReceipts,
        HttpVerb::Get,
        "/v1/sessions/{id}/receipts",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::ReadContents,
        HttpVerb::Get,
        "/v1/sessions/{id}/contents",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::Resume,
        HttpVerb::Post,
        "/v1/sessions/{id}/resume",
        RequiredScope::Member,
        PathObject::Session,
    ),
    new_route(
        RouteOp::ListAttachments,
        HttpVerb::Get,
        "/v1/sessions/{id}/attachments",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::ReadAttachment,
        HttpVerb::Get,
        "/v1/sessions/{id}/attachments/{attachment}",
        RequiredScope::ReadOnly,
        PathObject::Attachment,
    ),
    new_route(
        RouteOp::ReadChanges,
        HttpVerb::Get,
        "/v1/sessions/{id}/changes",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::ApplyChanges,
        HttpVerb::Post,
        "/v1/sessions/{id}/apply",
        RequiredScope::Member,
        PathObject::Session,
    ),
    new_route(
        RouteOp::DiscardChanges,
        HttpVerb::Post,
        "/v1/sessions/{id}/discard",
        RequiredScope::Member,
        PathObject::Session,
    ),
    new_route(
        RouteOp::UndoApply,
        HttpVerb::Post,
        "/v1/sessions/{id}/undo",
        RequiredScope::Member,
        PathObject::Session,
    ),
    new_route(
        RouteOp::Cancel,
        HttpVerb::Post,
        "/v1/sessions/{id}/cancel",
        RequiredScope::Member,
        PathObject::Session,
    ),
    new_route(
        RouteOp::ListSessionQuestions,
        HttpVerb::Get,
        "/v1/sessions/{id}/questions",
        RequiredScope::ReadOnly,
        PathObject::Session,
    ),
    new_route(
        RouteOp::Answer,
        HttpVerb::Post,
        "/v1/sessions/{id}/questions/{question}",
        RequiredScope::Member,
        PathObject::Question,
    ),
    new_route(
        RouteOp::ListQuestions,
        HttpVerb::Get,
        "/v1/questions",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ListRunning,
        HttpVerb::Get,
        "/v1/running",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ListAgents,
        HttpVerb::Get,
        "/v1/agents",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::CreateAgent,
        HttpVerb::Post,
        "/v1/agents",
        RequiredScope::Admin,
        PathObject::None,
    ),
    new_route(
        RouteOp::ReadAgent,
        HttpVerb::Get,
        "/v1/agents/{slug}",
        RequiredScope::ReadOnly,
        PathObject::Agent,
    ),
    new_route(
        RouteOp::ReplaceAgent,
        HttpVerb::Put,
        "/v1/agents/{slug}",
        RequiredScope::Admin,
        PathObject::Agent,
    ),
    new_route(
        RouteOp::DeleteAgent,
        HttpVerb::Delete,
        "/v1/agents/{slug}",
        RequiredScope::Admin,
        PathObject::Agent,
    ),
    new_route(
        RouteOp::ValidateAgent,
        HttpVerb::Post,
        "/v1/agents/validate",
        RequiredScope::Member,
        PathObject::None,
    ),
    new_route(
        RouteOp::Preview,
        HttpVerb::Post,
        "/v1/preview",
        RequiredScope::Member,
        PathObject::None,
    ),
    new_route(
        RouteOp::ListTools,
        HttpVerb::Get,
        "/v1/tools",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ListRoles,
        HttpVerb::Get,
        "/v1/roles",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ReadGrants,
        HttpVerb::Get,
        "/v1/grants",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::Explain,
        HttpVerb::Get,
        "/v1/explain",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ReadRights,
        HttpVerb::Get,
        "/v1/rights",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ListLibraries,
        HttpVerb::Get,
        "/v1/libraries",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ReadUsage,
        HttpVerb::Get,
        "/v1/usage",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ReadAudit,
        HttpVerb::Get,
        "/v1/audit",
        RequiredScope::Admin,
        PathObject::None,
    ),
    new_route(
        RouteOp::OpenApi,
        HttpVerb::Get,
        "/v1/openapi.json",
        RequiredScope::Nothing,
        PathObject::None,
    ),
    new_route(
        RouteOp::Login,
        HttpVerb::Post,
        "/v1/login",
        RequiredScope::Nothing,
        PathObject::None,
    ),
    new_route(
        RouteOp::Logout,
        HttpVerb::Post,
        "/v1/logout",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(RouteOp::Me, HttpVerb::Get, "/v1/me", RequiredScope::ReadOnly, PathObject::None),
    new_route(
        RouteOp::WebSocket,
        HttpVerb::Get,
        "/v1/ws",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::CompleteChat,
        HttpVerb::Post,
        "/v1/chat/completions",
        RequiredScope::Member,
        PathObject::None,
    ),
    new_route(
        RouteOp::CreateResponse,
        HttpVerb::Post,
        "/v1/responses",
        RequiredScope::Member,
        PathObject::None,
    ),
    new_route(
        RouteOp::ReadResponse,
        HttpVerb::Get,
        "/v1/responses/{response}",
        RequiredScope::ReadOnly,
        PathObject::Response,
    ),
    new_route(
        RouteOp::DeleteResponse,
        HttpVerb::Delete,
        "/v1/responses/{response}",
        RequiredScope::Member,
        PathObject::Response,
    ),
    new_route(
        RouteOp::CancelResponse,
        HttpVerb::Post,
        "/v1/responses/{response}/cancel",
        RequiredScope::Member,
        PathObject::Response,
    ),
    new_route(
        RouteOp::ListInputItems,
        HttpVerb::Get,
        "/v1/responses/{response}/input_items",
        RequiredScope::ReadOnly,
        PathObject::Response,
    ),
    new_route(
        RouteOp::ListModels,
        HttpVerb::Get,
        "/v1/models",
        RequiredScope::ReadOnly,
        PathObject::None,
    ),
    new_route(
        RouteOp::ReadModel,
        HttpVerb::Get,
        "/v1/models/{model}",
        RequiredScope::ReadOnly,
        PathObject::Model,
    ),
    new_route(
        RouteOp::McpSend,
        HttpVerb::Post,
        metadata::DOOR,
        RequiredScope::Member,
        PathObject::None,
    ),
    new_route(
        RouteOp::McpListen,
        HttpVerb::Get,
        metadata::DOOR,
        RequiredScope::Member,
        PathObject::None,
    ),
    new_route(
        RouteOp::McpEnd,
        HttpVerb::Delete,
        metadata::DOOR,
        RequiredScope::Member,
        PathObject::None,
    ),
    new_route(
        RouteOp::McpMetadata,
        HttpVerb::Get,
        metadata::PATH,
        RequiredScope::Nothing,
        PathObject::None,
    ),
    new_route(RouteOp::Health, HttpVerb::Get, "/healthz", RequiredScope::Nothing, PathObject::None),
    new_route(RouteOp::Ready, HttpVerb::Get, "/readyz", RequiredScope::Nothing, PathObject::None),
    new_route(
        RouteOp::Metrics,
        HttpVerb::Get,
        "/metrics",
        RequiredScope::Operator,
        PathObject::None,
    ),
];

impl Route {
    /// Returns whether the check layer writes this call to the audit log: a call that has changed data when
    /// it is answered.
    pub fn is_audited(&self) -> bool {
        // These write their lines themselves: when a turn begins, when the person of a login is known, or
        // when an MCP client acts. The last two only trigger a check, and change nothing.
        let itself = matches!(
            self.op,
            RouteOp::Chat
                | RouteOp::CompleteChat
                | RouteOp::CreateResponse
                | RouteOp::Login
                | RouteOp::McpEnd
                | RouteOp::McpSend
                | RouteOp::Preview
                | RouteOp::ValidateAgent
        );
        self.verb != HttpVerb::Get && !itself
    }

    /// Returns whether the answer may take as long as a turn, so no time limit applies.
    pub fn is_long(&self) -> bool {
        matches!(
            self.op,
            RouteOp::Chat
                | RouteOp::CompleteChat
                | RouteOp::CreateResponse
                | RouteOp::McpListen
                | RouteOp::McpSend
                | RouteOp::WatchEvents
                | RouteOp::WebSocket
        )
    }

    /// The bytes that must be held before the handler begins, for handlers that read so much at once.
    pub(crate) fn bytes_to_hold(&self) -> u64 {
        match self.op {
            RouteOp::ListMessages
            | RouteOp::ListSubagents
            | RouteOp::ListReceipts
            | RouteOp::ListAgents
            | RouteOp::ReadChanges
            | RouteOp::ReadRights
            | RouteOp::ListLibraries
            | RouteOp::ReadAudit
            | RouteOp::ReadResponse
            | RouteOp::ListInputItems
            | RouteOp::Preview => PAGE_BYTES,
            // A file of the largest size counts twice: as read, and as sent.
            RouteOp::ReadAttachment => 2 * MAX_ATTACHMENT_BYTES as u64,
            _ => 0,
        }
    }

    /// The operation's name in the audit log, the metrics and the OpenAPI document.
    pub fn name(&self) -> &'static str {
        self.op.name()
    }

    /// Returns whether the route is part of the OpenAPI document. MCP is not, because it describes itself.
    pub fn is_described(&self) -> bool {
        !matches!(
            self.op,
            RouteOp::McpSend | RouteOp::McpListen | RouteOp::McpEnd | RouteOp::McpMetadata
        )
    }

    /// Returns whether the route is part of OpenAI's API, whose errors have a form of their own.
    pub fn is_openai(&self) -> bool {
        openai::is_openai_path(self.path)
    }
}

#[cfg(test)]
mod tests;
