//! The one table of routes, from which the router, the rights of callers, the OpenAPI document and the tests
//! of callers' rights are made.

use belljar_store::MAX_ATTACHMENT_BYTES;

use crate::http::in_flight::PAGE_BYTES;
use crate::mcp::metadata;
use crate::openai;

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The operation.
    pub op: Op,
    /// The method.
    pub verb: Verb,
    /// The path; `{name}` is a parameter, for example `/v1/sessions/{id}`.
    pub path: &'static str,
    /// The least scope of the caller.
    pub needs: Needs,
    /// The object in the path, which must belong to the caller's tenant.
    pub object: Object,
}

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the methods' own names")]
pub enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

/// The least scope of a caller. Each level includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// No credential, not even a key.
    Nothing,
    /// A key that may look.
    ReadOnly,
    /// A key that may talk.
    Member,
    /// A key that may change its tenant's objects.
    Admin,
    /// An admin's key of the operator's own tenant: the answer shows all tenants.
    Operator,
}

/// The object that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// The path names no object.
    None,
    /// A session.
    Session,
    /// A session with one of its attachments.
    Attachment,
    /// A session with one of its open questions.
    Question,
    /// An agent of the tenant.
    Agent,
    /// A turn, as a response of OpenAI's wire.
    Response,
    /// An agent, as a model of OpenAI's wires.
    Model,
}

/// The operation of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs, reason = "the table says it, and the OpenAPI document explains it")]
pub enum Op {
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

const fn route(op: Op, verb: Verb, path: &'static str, needs: Needs, object: Object) -> Route {
    Route { op, verb, path, needs, object }
}

/// Every route.
pub const ROUTES: &[Route] = &[
    route(Op::Chat, Verb::Post, "/v1/chat", Needs::Member, Object::None),
    route(Op::ListSessions, Verb::Get, "/v1/sessions", Needs::ReadOnly, Object::None),
    route(Op::DeleteSessions, Verb::Delete, "/v1/sessions", Needs::Admin, Object::None),
    route(Op::ReadSession, Verb::Get, "/v1/sessions/{id}", Needs::ReadOnly, Object::Session),
    route(Op::DeleteSession, Verb::Delete, "/v1/sessions/{id}", Needs::Member, Object::Session),
    route(
        Op::ListMessages,
        Verb::Get,
        "/v1/sessions/{id}/messages",
        Needs::ReadOnly,
        Object::Session,
    ),
    route(Op::WatchEvents, Verb::Get, "/v1/sessions/{id}/events", Needs::ReadOnly, Object::Session),
    route(
        Op::ListSubagents,
        Verb::Get,
        "/v1/sessions/{id}/subagents",
        Needs::ReadOnly,
        Object::Session,
    ),
    route(
        Op::ListReceipts,
        Verb::Get,
        "/v1/sessions/{id}/receipts",
        Needs::ReadOnly,
        Object::Session,
    ),
    route(
        Op::ReadContents,
        Verb::Get,
        "/v1/sessions/{id}/contents",
        Needs::ReadOnly,
        Object::Session,
    ),
    route(Op::Resume, Verb::Post, "/v1/sessions/{id}/resume", Needs::Member, Object::Session),
    route(
        Op::ListAttachments,
        Verb::Get,
        "/v1/sessions/{id}/attachments",
        Needs::ReadOnly,
        Object::Session,
    ),
    route(
        Op::ReadAttachment,
        Verb::Get,
        "/v1/sessions/{id}/attachments/{attachment}",
        Needs::ReadOnly,
        Object::Attachment,
    ),
    route(
        Op::ReadChanges,
        Verb::Get,
        "/v1/sessions/{id}/changes",
        Needs::ReadOnly,
        Object::Session,
    ),
    route(Op::ApplyChanges, Verb::Post, "/v1/sessions/{id}/apply", Needs::Member, Object::Session),
    route(
        Op::DiscardChanges,
        Verb::Post,
        "/v1/sessions/{id}/discard",
        Needs::Member,
        Object::Session,
    ),
    route(Op::UndoApply, Verb::Post, "/v1/sessions/{id}/undo", Needs::Member, Object::Session),
    route(Op::Cancel, Verb::Post, "/v1/sessions/{id}/cancel", Needs::Member, Object::Session),
    route(
        Op::ListSessionQuestions,
        Verb::Get,
        "/v1/sessions/{id}/questions",
        Needs::ReadOnly,
        Object::Session,
    ),
    route(
        Op::Answer,
        Verb::Post,
        "/v1/sessions/{id}/questions/{question}",
        Needs::Member,
        Object::Question,
    ),
    route(Op::ListQuestions, Verb::Get, "/v1/questions", Needs::ReadOnly, Object::None),
    route(Op::ListRunning, Verb::Get, "/v1/running", Needs::ReadOnly, Object::None),
    route(Op::ListAgents, Verb::Get, "/v1/agents", Needs::ReadOnly, Object::None),
    route(Op::CreateAgent, Verb::Post, "/v1/agents", Needs::Admin, Object::None),
    route(Op::ReadAgent, Verb::Get, "/v1/agents/{slug}", Needs::ReadOnly, Object::Agent),
    route(Op::ReplaceAgent, Verb::Put, "/v1/agents/{slug}", Needs::Admin, Object::Agent),
    route(Op::DeleteAgent, Verb::Delete, "/v1/agents/{slug}", Needs::Admin, Object::Agent),
    route(Op::ValidateAgent, Verb::Post, "/v1/agents/validate", Needs::Member, Object::None),
    route(Op::Preview, Verb::Post, "/v1/preview", Needs::Member, Object::None),
    route(Op::ListTools, Verb::Get, "/v1/tools", Needs::ReadOnly, Object::None),
    route(Op::ListRoles, Verb::Get, "/v1/roles", Needs::ReadOnly, Object::None),
    route(Op::ReadGrants, Verb::Get, "/v1/grants", Needs::ReadOnly, Object::None),
    route(Op::Explain, Verb::Get, "/v1/explain", Needs::ReadOnly, Object::None),
    route(Op::ReadRights, Verb::Get, "/v1/rights", Needs::ReadOnly, Object::None),
    route(Op::ListLibraries, Verb::Get, "/v1/libraries", Needs::ReadOnly, Object::None),
    route(Op::ReadUsage, Verb::Get, "/v1/usage", Needs::ReadOnly, Object::None),
    route(Op::ReadAudit, Verb::Get, "/v1/audit", Needs::Admin, Object::None),
    route(Op::OpenApi, Verb::Get, "/v1/openapi.json", Needs::Nothing, Object::None),
    route(Op::Login, Verb::Post, "/v1/login", Needs::Nothing, Object::None),
    route(Op::Logout, Verb::Post, "/v1/logout", Needs::ReadOnly, Object::None),
    route(Op::Me, Verb::Get, "/v1/me", Needs::ReadOnly, Object::None),
    route(Op::WebSocket, Verb::Get, "/v1/ws", Needs::ReadOnly, Object::None),
    route(Op::CompleteChat, Verb::Post, "/v1/chat/completions", Needs::Member, Object::None),
    route(Op::CreateResponse, Verb::Post, "/v1/responses", Needs::Member, Object::None),
    route(
        Op::ReadResponse,
        Verb::Get,
        "/v1/responses/{response}",
        Needs::ReadOnly,
        Object::Response,
    ),
    route(
        Op::DeleteResponse,
        Verb::Delete,
        "/v1/responses/{response}",
        Needs::Member,
        Object::Response,
    ),
    route(
        Op::CancelResponse,
        Verb::Post,
        "/v1/responses/{response}/cancel",
        Needs::Member,
        Object::Response,
    ),
    route(
        Op::ListInputItems,
        Verb::Get,
        "/v1/responses/{response}/input_items",
        Needs::ReadOnly,
        Object::Response,
    ),
    route(Op::ListModels, Verb::Get, "/v1/models", Needs::ReadOnly, Object::None),
    route(Op::ReadModel, Verb::Get, "/v1/models/{model}", Needs::ReadOnly, Object::Model),
    route(Op::McpSend, Verb::Post, metadata::DOOR, Needs::Member, Object::None),
    route(Op::McpListen, Verb::Get, metadata::DOOR, Needs::Member, Object::None),
    route(Op::McpEnd, Verb::Delete, metadata::DOOR, Needs::Member, Object::None),
    route(Op::McpMetadata, Verb::Get, metadata::PATH, Needs::Nothing, Object::None),
    route(Op::Health, Verb::Get, "/healthz", Needs::Nothing, Object::None),
    route(Op::Ready, Verb::Get, "/readyz", Needs::Nothing, Object::None),
    route(Op::Metrics, Verb::Get, "/metrics", Needs::Operator, Object::None),
];

impl Route {
    /// Returns whether the gate writes a call to the audit log: a call that has changed data by the time of
    /// its answer.
    pub fn is_audited(&self) -> bool {
        // Most write their lines themselves: when the turn begins, when the person of a login is known, or
        // when an MCP client acts. The last two only trigger a check, and change nothing.
        let itself = matches!(
            self.op,
            Op::Chat
                | Op::CompleteChat
                | Op::CreateResponse
                | Op::Login
                | Op::McpEnd
                | Op::McpSend
                | Op::Preview
                | Op::ValidateAgent
        );
        self.verb != Verb::Get && !itself
    }

    /// Returns whether the answer may last as long as a turn.
    pub fn is_long(&self) -> bool {
        matches!(
            self.op,
            Op::Chat
                | Op::CompleteChat
                | Op::CreateResponse
                | Op::McpListen
                | Op::McpSend
                | Op::WatchEvents
                | Op::WebSocket
        )
    }

    /// Bytes held before the handler begins, for handlers that read that much at once.
    pub(crate) fn holds(&self) -> u64 {
        match self.op {
            Op::ListMessages
            | Op::ListSubagents
            | Op::ListReceipts
            | Op::ListAgents
            | Op::ReadChanges
            | Op::ReadRights
            | Op::ListLibraries
            | Op::ReadAudit
            | Op::ReadResponse
            | Op::ListInputItems
            | Op::Preview => PAGE_BYTES,
            // A file of the largest size, twice: read and sent.
            Op::ReadAttachment => 2 * MAX_ATTACHMENT_BYTES as u64,
            _ => 0,
        }
    }

    /// The name in the audit log, the metrics and the OpenAPI document.
    pub fn name(&self) -> &'static str {
        self.op.name()
    }
}

impl Route {
    /// Returns whether the route is part of the API document: MCP has its own description.
    pub fn is_described(&self) -> bool {
        !matches!(self.op, Op::McpSend | Op::McpListen | Op::McpEnd | Op::McpMetadata)
    }

    /// Returns whether the route is part of OpenAI's API, whose errors have a separate form.
    pub fn is_openai(&self) -> bool {
        openai::speaks(self.path)
    }
}

impl Op {
    /// The least scope, by any entrance.
    pub(crate) fn needs(self) -> Needs {
        // A test checks that the table has every operation.
        ROUTES.iter().find(|route| route.op == self).map_or(Needs::Operator, |route| route.needs)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Verb {
    /// The method's name in a request.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_route_has_a_name_and_a_place_of_its_own() {
        let names: BTreeSet<_> = ROUTES.iter().map(Route::name).collect();
        let places: BTreeSet<_> =
            ROUTES.iter().map(|route| (route.verb.as_str(), route.path)).collect();
        assert_eq!((names.len(), places.len()), (ROUTES.len(), ROUTES.len()));
    }

    #[test]
    fn what_changes_something_needs_more_than_a_key_that_may_look() {
        // Whoever logs in has no more than its key yet, and a login is its own to end.
        let own = |route: &&Route| !matches!(route.op, Op::Login | Op::Logout);
        for route in ROUTES.iter().filter(|route| route.verb != Verb::Get).filter(own) {
            assert!(route.needs >= Needs::Member, "{}", route.name());
        }
    }

    #[test]
    fn a_path_with_a_part_says_what_it_names() {
        for route in ROUTES {
            assert_eq!(route.path.contains('{'), route.object != Object::None, "{}", route.path);
        }
    }
}
