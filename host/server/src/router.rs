//! The router: the gate before every route of the table.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use belljar_policy::Shown;

use crate::api::{
    agents, attachments, audit, changes, chat, contents, events, explain, grants, health,
    libraries, login, metrics, preview, questions, rights, roles, running, sessions, tools, usage,
};
use crate::http::gate;
use crate::http::problem::{Kind, Problem};
use crate::mcp;
use crate::openai;
use crate::openapi;
use crate::page;
use crate::routes::{Op, ROUTES, Verb};
use crate::stream::ws;

use crate::app::App;

impl App {
    /// The router of the API and of the page.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for route in ROUTES {
            let state = (self.clone(), route);
            let handler = handler(route.op, method(route.verb));
            router = router.route(
                route.path,
                handler.route_layer(from_fn_with_state(state, gate::check_caller)),
            );
        }
        let router = page::add(router).fallback(page::missing).method_not_allowed_fallback(
            async |request: axum::extract::Request| {
                let method = Shown::clipped(request.method().as_str(), 40).to_string();
                Problem::new(Kind::Method, format!("`{method}` does not fit this path"))
            },
        );
        // Runs after the check of names, which refuses requests of strangers' pages.
        let router = match self.config().names.cors() {
            Some(cors) => router.layer(cors),
            None => router,
        };
        router
            .layer(from_fn_with_state(self.clone(), gate::check_names))
            .layer(from_fn_with_state(self.clone(), gate::protect))
            .with_state(self.clone())
    }
}

fn method(verb: Verb) -> MethodFilter {
    match verb {
        Verb::Get => MethodFilter::GET,
        Verb::Post => MethodFilter::POST,
        Verb::Put => MethodFilter::PUT,
        Verb::Delete => MethodFilter::DELETE,
    }
}

/// The handler of a route.
fn handler(op: Op, method: MethodFilter) -> MethodRouter<App> {
    match op {
        Op::Chat => on(method, chat::chat),
        Op::ListSessions => on(method, sessions::list),
        Op::DeleteSessions => on(method, sessions::delete_all),
        Op::ReadSession => on(method, sessions::read),
        Op::DeleteSession => on(method, sessions::delete),
        Op::ListMessages => on(method, sessions::messages),
        Op::WatchEvents => on(method, events::watch),
        Op::ListSubagents => on(method, sessions::subagents),
        Op::ListReceipts => on(method, sessions::receipts),
        Op::ReadContents => on(method, contents::read),
        Op::Resume => on(method, contents::resume),
        Op::ListAttachments => on(method, attachments::list),
        Op::ReadAttachment => on(method, attachments::read),
        Op::ReadChanges => on(method, changes::read),
        Op::ApplyChanges => on(method, changes::apply),
        Op::DiscardChanges => on(method, changes::discard),
        Op::UndoApply => on(method, changes::undo),
        Op::Cancel => on(method, running::cancel),
        Op::ListSessionQuestions => on(method, questions::of_session),
        Op::Answer => on(method, questions::answer),
        Op::ListQuestions => on(method, questions::list),
        Op::ListRunning => on(method, running::list),
        Op::ListAgents => on(method, agents::list),
        Op::CreateAgent => on(method, agents::create),
        Op::ReadAgent => on(method, agents::read),
        Op::ReplaceAgent => on(method, agents::replace),
        Op::DeleteAgent => on(method, agents::delete),
        Op::ValidateAgent => on(method, agents::validate),
        Op::Preview => on(method, preview::preview),
        Op::ListTools => on(method, tools::list),
        Op::ListRoles => on(method, roles::list),
        Op::ReadGrants => on(method, grants::read),
        Op::Explain => on(method, explain::read),
        Op::ReadRights => on(method, rights::read),
        Op::ListLibraries => on(method, libraries::list),
        Op::ReadUsage => on(method, usage::read),
        Op::ReadAudit => on(method, audit::read),
        Op::OpenApi => on(method, openapi::document::read),
        Op::Login => on(method, login::login),
        Op::Logout => on(method, login::logout),
        Op::Me => on(method, login::me),
        Op::WebSocket => on(method, ws::upgrade),
        Op::CompleteChat => on(method, openai::chat::complete),
        Op::CreateResponse => on(method, openai::responses::create),
        Op::ReadResponse => on(method, openai::stored::read),
        Op::DeleteResponse => on(method, openai::stored::delete),
        Op::CancelResponse => on(method, openai::stored::cancel),
        Op::ListInputItems => on(method, openai::stored::input_items),
        Op::ListModels => on(method, openai::models::list),
        Op::ReadModel => on(method, openai::models::read),
        Op::McpSend | Op::McpListen | Op::McpEnd => on(method, mcp::http::answer),
        Op::McpMetadata => on(method, mcp::about::answer),
        Op::Health => on(method, health::live),
        Op::Ready => on(method, health::ready),
        Op::Metrics => on(method, metrics::read),
    }
}
