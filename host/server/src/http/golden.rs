//! Golden tests of the answers to failed requests: as problem details, and in the form of OpenAI's API.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use axum::response::IntoResponse as _;
use belljar_agent::UnfitInput;
use belljar_definition::{AgentDefinition, CatalogItem as _, NotFound};
use belljar_session::{ReviewError, ServiceError, SessionError};
use belljar_store::StoreError;
use belljar_work::WorkError;

use super::problem::{KINDS, Problem};
use crate::openai::errors::{ErrorBody, problem_from_service};
use crate::routes::ROUTES;

const KIND: &str = "compiling JSON Schemas";
const SOON: Duration = Duration::from_millis(1_500);

/// A name as a hostile stranger would choose it, with control characters.
fn foreign_name() -> String {
    "a\u{1b}[2J\u{202e}`b".to_owned()
}

fn snake_words(text: &str) -> String {
    text.to_owned()
}

fn damaged_file() -> io::Error {
    io::Error::other("the disk is gone")
}

/// One of each error of a piece of work.
fn work_errors() -> Vec<WorkError> {
    belljar_kit::one_of_each!(WorkError {
        WorkError::TimedOut { .. } => [WorkError::TimedOut { kind: KIND, limit: SOON * 4 }],
        WorkError::Busy { .. } => [WorkError::Busy { kind: KIND }],
        WorkError::Panicked { .. } => [WorkError::Panicked { kind: KIND }],
    })
}

/// An example of each error of the store.
fn store_errors() -> Vec<StoreError> {
    let path = || "/srv/private/belljar.db".into();
    belljar_kit::one_of_each!(StoreError {
        StoreError::Io { .. } => [StoreError::Io { what: "open", path: path(), source: damaged_file() }],
        StoreError::Unusable { .. } => [
            StoreError::Unusable { path: path(), why: snake_words("is damaged") },
        ],
        StoreError::NotOurs { .. } => [
            StoreError::NotOurs { path: path(), why: snake_words("is root's") },
        ],
        StoreError::Newer { .. } => [StoreError::Newer { path: path(), found: 99 }],
        StoreError::Busy { .. } => [StoreError::Busy { path: path() }],
        StoreError::Database { .. } => [
            StoreError::Database { what: "read a row", path: path(), why: snake_words("no such table") },
        ],
        StoreError::Row { .. } => [
            StoreError::Row { what: snake_words("row `1`"), path: path(), why: snake_words("it is no JSON") },
        ],
        StoreError::NotFound { .. } => [StoreError::NotFound { what: "key", id: snake_words("1") }],
        StoreError::Ambiguous { .. } => [
            StoreError::Ambiguous { what: "sessions", prefix: snake_words("1"), ids: snake_words("`11`, `12`") },
        ],
        StoreError::Finished { .. } => [StoreError::Finished { id: snake_words("1") }],
        StoreError::TooLarge { .. } => [
            StoreError::TooLarge { what: "a message", bytes: 12, limit: 10 },
        ],
        StoreError::Invalid { .. } => [
            StoreError::Invalid { what: "a name", why: snake_words("is empty") },
        ],
        StoreError::Taken { .. } => [StoreError::Taken { what: "create a key" }],
        StoreError::Conflict { .. } => [StoreError::Conflict { what: "agent", id: snake_words("scout") }],
        StoreError::TooMany { .. } => [StoreError::TooMany { what: "logins", limit: 10 }],
        StoreError::OutOfOrder { .. } => [StoreError::OutOfOrder { session: snake_words("1"), first: 7 }],
        StoreError::Overloaded { .. } => [StoreError::Overloaded { path: path() }],
        StoreError::Closed { .. } => [StoreError::Closed { path: path() }],
    })
}

/// The error of a request for an agent that does not exist.
fn missing_agent(suggestions: &[&str], ambiguous: bool, broken: bool) -> ServiceError {
    ServiceError::NoAgent(NotFound {
        kind: AgentDefinition::KIND,
        name: snake_words("scout"),
        suggestions: suggestions.iter().map(|name| snake_words(name)).collect(),
        ambiguous,
        broken: broken.then(|| "/srv/private/scout.md".into()),
    })
}

/// An example of each error of the service.
fn service_errors() -> Vec<ServiceError> {
    use ServiceError as E;
    let mut all = belljar_kit::one_of_each!(ServiceError {
        E::NoSession(_) => [E::NoSession(foreign_name())],
        E::Busy(_) => [E::Busy(foreign_name())],
        E::NoAgent(_) => [
            missing_agent(&[], false, false),
            missing_agent(&["scouts"], false, false),
            missing_agent(&["home/scout", "library/x/scout"], true, false),
            missing_agent(&[], false, true),
        ],
        E::Blocked { .. } => [
            E::Blocked { agent: foreign_name(), reasons: vec![snake_words("no tool"), foreign_name()] },
        ],
        E::NoModel => [E::NoModel],
        E::Agent(_) => [E::Agent(foreign_name())],
        E::Unfit(_) => [E::Unfit(UnfitInput { at: snake_words("tools[2]"), why: snake_words("it is no schema") })],
        E::Caller(_) => [E::Caller(foreign_name())],
        E::Images(_) => [E::Images(foreign_name())],
        E::GoneOn(_) => [E::GoneOn(foreign_name())],
        E::Unanswered(_) => [E::Unanswered(vec![snake_words("call_1"), foreign_name()])],
        E::Invalid(_) => [E::Invalid(foreign_name())],
        E::TenantFull { .. } => [E::TenantFull { retry_after: SOON }],
        E::HostFull { .. } => [E::HostFull { retry_after: SOON }],
        E::StorageFull { .. } => [E::StorageFull { used: 12, limit: 10 }],
        E::DayUsed { .. } => [E::DayUsed {
            limit: "tenant_tokens_per_day",
            most: 1_000,
            left: 5,
            needed: 10,
            resets: "2026-11-21T00:00:00Z".parse().unwrap(),
            retry_after: Duration::from_secs(50_000),
        }],
        E::Draining => [E::Draining],
        E::NoQuestion(_) => [E::NoQuestion(3)],
        E::Store(_) => [E::Store(StoreError::Taken { what: "create a key" })],
        E::Review(_) => [E::Review(ReviewError::Lock { session: snake_words("1"), source: damaged_file() })],
        E::Session(_) => [E::Session(SessionError::Nothing)],
        E::Work(_) => [E::Work(WorkError::Busy { kind: KIND })],
    });
    all.extend(store_errors().into_iter().map(E::Store));
    all.extend(work_errors().into_iter().map(E::Work));
    all
}

/// Writes one problem in both forms, as problem details and as OpenAI's error.
fn write_problem(into: &mut String, name: &str, problem: Problem, openai: &Problem) {
    let name: String =
        name.chars().take_while(|c| c.is_alphanumeric() || "(_".contains(*c)).collect();
    let (body, openai) = (problem.to_body(), ErrorBody::from_problem(openai));
    let response = problem.into_response();
    writeln!(into, "# {}\n{}", name.trim_end_matches('('), response.status()).unwrap();
    for (header, value) in response.headers().iter().filter(|(name, _)| *name != "content-length") {
        writeln!(into, "{header}: {}", value.to_str().unwrap()).unwrap();
    }
    writeln!(into, "{}", serde_json::to_string(&body).unwrap()).unwrap();
    writeln!(into, "{}\n", serde_json::to_string(&openai).unwrap()).unwrap();
}

/// Writes each kind of problem, and each error of the service as a problem. New ones are added by
/// `INSTA_UPDATE=always cargo test golden`.
#[test]
fn golden_problems_are_as_reviewed() {
    let mut text = String::new();
    for row in KINDS {
        let problem = Problem::new(row.kind, "the detail").with_hint("the hint");
        write_problem(&mut text, &format!("{:?}", row.kind), problem.clone(), &problem);
    }
    // Each error is made twice, because errors cannot be cloned.
    for (error, again) in service_errors().into_iter().zip(service_errors()) {
        let name = format!("{error:?}");
        write_problem(&mut text, &name, error.into(), &problem_from_service(again, "scout"));
    }
    belljar_kit::golden!("problems", text);
}

/// Writes the requests that the server logs in the audit log by itself, and the action in each line.
#[test]
fn golden_lines_of_the_gate_are_as_reviewed() {
    let audited = ROUTES.iter().filter(|route| route.is_audited());
    let line = |route: &crate::routes::Route| {
        format!("{} {} {}\n", route.verb.as_str(), route.path, route.name())
    };
    belljar_kit::golden!("audited", audited.map(line).collect::<String>());
}
