//! The router: puts the layers of checks before the handler of every route.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use belljar_policy::ShownText;

use crate::api::{
    agents, attachments, audit, changes, chat, contents, events, explain, grants, health,
    libraries, login, metrics, preview, questions, rights, roles, running, sessions, tools, usage,
};
use crate::http::gate;
use crate::http::problem::{Problem, ProblemKind};
use crate::mcp;
use crate::openai;
use crate::openapi;
use crate::page;
use crate::routes::{HttpVerb, ROUTES, RouteOp};
use crate::stream::ws;

use crate::app::App;

impl App {
    /// The router of the API and of the page.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for route in ROUTES {
            let state = (self.clone(), route);
            let handler = route_handler(route.op, method_filter(route.verb));
            router = router.route(
                route.path,
                handler.route_layer(from_fn_with_state(state, gate::check_caller)),
            );
        }
        let router = page::add_page(router)
            .fallback(page::missing_path)
            .method_not_allowed_fallback(async |request: axum::extract::Request| {
                let method = ShownText::clip_line(request.method().as_str(), 40).to_string();
                Problem::new(ProblemKind::Method, format!("`{method}` does not fit this path"))
            });
        // This layer runs after the check of names, which refuses requests from pages of strangers.
        let router = match self.config().names.cors_for_origins() {
            Some(cors) => router.layer(cors),
            None => router,
        };
        router
            .layer(from_fn_with_state(self.clone(), gate::check_names))
            .layer(from_fn_with_state(self.clone(), gate::protect_answer))
            .with_state(self.clone())
    }
}

/// The router's filter for an HTTP method.
fn method_filter(verb: HttpVerb) -> MethodFilter {
    match verb {
        HttpVerb::Get => MethodFilter::GET,
        HttpVerb::Post => MethodFilter::POST,
        HttpVerb::Put => MethodFilter::PUT,
        HttpVerb::Delete => MethodFilter::DELETE,
    }
}

/// The handler function of an operation.
fn route_handler(op: RouteOp, method: MethodFilter) -> MethodRouter<App> {
    match op {
        RouteOp::Chat => on(method, chat::begin_chat),
        RouteOp::ListSessions => on(method, sessions::list_sessions),
        RouteOp::DeleteSessions => on(method, sessions::delete_all),
        RouteOp::ReadSession => on(method, sessions::read_session),
        RouteOp::DeleteSession => on(method, sessions::delete_session),
        RouteOp::ListMessages => on(method, sessions::list_messages),
        RouteOp::WatchEvents => on(method, events::watch_events),
        RouteOp::ListSubagents => on(method, sessions::list_subagents),
        RouteOp::ListReceipts => on(method, sessions::list_receipts),
        RouteOp::ReadContents => on(method, contents::read_contents),
        RouteOp::Resume => on(method, contents::resume_session),
        RouteOp::ListAttachments => on(method, attachments::list_attachments),
        RouteOp::ReadAttachment => on(method, attachments::read_attachment),
        RouteOp::ReadChanges => on(method, changes::read_changes),
        RouteOp::ApplyChanges => on(method, changes::apply_changes),
        RouteOp::DiscardChanges => on(method, changes::discard_changes),
        RouteOp::UndoApply => on(method, changes::undo_apply),
        RouteOp::Cancel => on(method, running::cancel_turn),
        RouteOp::ListSessionQuestions => on(method, questions::list_session_questions),
        RouteOp::Answer => on(method, questions::answer_question),
        RouteOp::ListQuestions => on(method, questions::list_questions),
        RouteOp::ListRunning => on(method, running::list_running),
        RouteOp::ListAgents => on(method, agents::list_agents),
        RouteOp::CreateAgent => on(method, agents::create_agent),
        RouteOp::ReadAgent => on(method, agents::read_agent),
        RouteOp::ReplaceAgent => on(method, agents::replace_agent),
        RouteOp::DeleteAgent => on(method, agents::delete_agent),
        RouteOp::ValidateAgent => on(method, agents::validate_agent),
        RouteOp::Preview => on(method, preview::preview_turn),
        RouteOp::ListTools => on(method, tools::list_tools),
        RouteOp::ListRoles => on(method, roles::list_roles),
        RouteOp::ReadGrants => on(method, grants::read_grants),
        RouteOp::Explain => on(method, explain::read_explanation),
        RouteOp::ReadRights => on(method, rights::read_rights),
        RouteOp::ListLibraries => on(method, libraries::list_libraries),
        RouteOp::ReadUsage => on(method, usage::read_usage),
        RouteOp::ReadAudit => on(method, audit::read_audit),
        RouteOp::OpenApi => on(method, openapi::document::read_document),
        RouteOp::Login => on(method, login::handle_login),
        RouteOp::Logout => on(method, login::handle_logout),
        RouteOp::Me => on(method, login::read_me),
        RouteOp::WebSocket => on(method, ws::upgrade_socket),
        RouteOp::CompleteChat => on(method, openai::chat::create_completion),
        RouteOp::CreateResponse => on(method, openai::responses::create_response),
        RouteOp::ReadResponse => on(method, openai::stored::read_response),
        RouteOp::DeleteResponse => on(method, openai::stored::delete_response),
        RouteOp::CancelResponse => on(method, openai::stored::cancel_response),
        RouteOp::ListInputItems => on(method, openai::stored::input_items),
        RouteOp::ListModels => on(method, openai::models::list_models),
        RouteOp::ReadModel => on(method, openai::models::read_model),
        RouteOp::McpSend | RouteOp::McpListen | RouteOp::McpEnd => {
            on(method, mcp::http::answer_request)
        }
        RouteOp::McpMetadata => on(method, mcp::about::read_metadata),
        RouteOp::Health => on(method, health::report_live),
        RouteOp::Ready => on(method, health::report_ready),
        RouteOp::Metrics => on(method, metrics::read_metrics),
    }
}
