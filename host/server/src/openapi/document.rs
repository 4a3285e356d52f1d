//! `GET /v1/openapi.json`: the API as an OpenAPI document, made of the table of routes and of the types of
//! requests and answers.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use utoipa::ToSchema;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Content, InfoBuilder, OpenApi, OpenApiBuilder, Paths, Ref, RefOr, Required,
    Response as Documented, ResponseBuilder,
};

use crate::api::turn::Answered;
use crate::http::problem::{PROBLEM_JSON, Problem, ProblemBody, ProblemKind};
use crate::openai::errors::ErrorBody;
use crate::openapi::events;
use crate::openapi::operations::{
    AnswerKind, ParameterValues, QueryParameter, common_problems, operation_doc,
};
use crate::routes::{HttpVerb, ROUTES, RequiredScope, Route, RouteOp};
use crate::stream::message::{ClientMessage, ServerMessage};

/// The name of the document's only security scheme.
const KEY: &str = "key";

/// The status with which hyper refuses a request whose head is too large, before any route sees the
/// request. Every operation may answer with this status.
const LARGE_HEAD: (&str, &str) =
    ("431", "the head of the request is larger than the server reads; the body is empty");

/// The document's schemas by name.
#[derive(Default)]
pub(crate) struct SchemaMap(pub(super) BTreeMap<String, RefOr<Schema>>);

/// `GET /v1/openapi.json`: returns the document.
pub(crate) async fn read_document() -> Response {
    static TEXT: OnceLock<Option<Bytes>> = OnceLock::new();
    let text = TEXT.get_or_init(|| serde_json::to_vec(&build_document()).ok().map(Bytes::from));
    match text {
        Some(text) => {
            let kind = HeaderValue::from_static("application/json");
            ([(header::CONTENT_TYPE, kind)], text.clone()).into_response()
        }
        None => Problem::bug("the OpenAPI document is no JSON").into_response(),
    }
}

/// Builds the document: schemas, operations of all routes, and the security scheme.
pub(crate) fn build_document() -> OpenApi {
    let mut schemas = SchemaMap::default();
    // No route names the schemas of WebSocket messages and problems, so they are added here.
    schemas.add_type::<ClientMessage>();
    schemas.add_type::<ServerMessage>();
    schemas.add_type::<ProblemBody>();
    schemas.add_type::<ErrorBody>();
    events::add_event_schemas(&mut schemas);
    let mut paths = Paths::new();
    for route in ROUTES.iter().filter(|route| route.is_described()) {
        let operation = build_operation(route, &mut schemas);
        let item = PathItem::new(http_method(route.verb), operation);
        match paths.paths.get_mut(route.path) {
            Some(known) => known.merge_operations(item),
            None => {
                paths.paths.insert(route.path.to_owned(), item);
            }
        }
    }
    let key = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "a key: `bj_…`, which the operator of the server makes. A browser may log in with it, \
             and sends the cookie that it is given then",
        ))
        .build();
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas.0)
        .security_scheme(KEY, SecurityScheme::Http(key))
        .build();
    let info = InfoBuilder::new()
        .title("belljar")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("AI subagents that nobody has to trust: sessions, turns, agents."))
        .build();
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components)).build()
}

/// The documentation of one route: parameters, body, answer and problems.
fn build_operation(route: &Route, schemas: &mut SchemaMap) -> Operation {
    let doc = operation_doc(route.op);
    let mut operation = OperationBuilder::new()
        .operation_id(Some(route.name()))
        .summary(Some(doc.summary))
        .description(Some(scope_sentence(route.needs)))
        .tag(doc.tag);
    for name in path_parameters(route.path) {
        operation = operation.parameter(in_path(name));
    }
    for query in doc.query {
        operation = operation.parameter(in_query(query));
    }
    if let Some(body) = doc.body {
        let content = schema_reference(&body(schemas));
        let body = RequestBodyBuilder::new()
            .content("application/json", content)
            .required(Some(match route.op {
                // The body of these operations may be missing, because all its fields have defaults.
                RouteOp::Cancel => Required::False,
                _ => Required::True,
            }))
            .build();
        operation = operation.request_body(Some(body));
    }
    let (status, given) = documented_answer(&doc.gives, schemas);
    operation = operation.response(status.to_string(), given);
    if route.op == RouteOp::Chat {
        let about = "`in_flight`: a person is asked, and the turn waits for the answer; or the \
                     server stopped before its end, and it is resumed when that starts again";
        let content = schema_reference(&schemas.add_type::<Answered>());
        let stopped =
            ResponseBuilder::new().description(about).content("application/json", content);
        operation = operation.response("202", stopped.build());
    }
    let mut kinds = common_problems(route, doc.body.is_some());
    kinds.extend(doc.problems);
    kinds.sort();
    kinds.dedup();
    for (status, text) in by_status(&kinds) {
        let (kind, shape) = match route.is_openai() {
            true => ("application/json", ErrorBody::name()),
            false => (PROBLEM_JSON, ProblemBody::name()),
        };
        let problem = ResponseBuilder::new()
            .description(text)
            .content(kind, schema_reference(&shape))
            .build();
        operation = operation.response(status.to_string(), problem);
    }
    let (status, about) = LARGE_HEAD;
    operation = operation.response(status, ResponseBuilder::new().description(about).build());
    if route.needs > RequiredScope::Nothing {
        operation = operation.security(SecurityRequirement::new(KEY, Vec::<String>::new()));
    }
    operation.build()
}

/// Descriptions of the problems by status: kinds with the same status share one response.
fn by_status(kinds: &[ProblemKind]) -> BTreeMap<u16, String> {
    let mut texts: BTreeMap<u16, String> = BTreeMap::new();
    for kind in kinds {
        let row = kind.table_row();
        let text = texts.entry(row.status).or_default();
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(row.title);
    }
    // The status of a missing scope is also the status of a page with a foreign origin.
    if let Some(text) = texts.get_mut(&ProblemKind::Origin.table_row().status) {
        text.push_str("; ");
        text.push_str(ProblemKind::Origin.table_row().title);
    }
    texts
}

/// The status and description of a successful answer.
fn documented_answer(gives: &AnswerKind, schemas: &mut SchemaMap) -> (u16, Documented) {
    let text = || Content::new(Some(ObjectBuilder::new().schema_type(Type::String)));
    // The schema of one event, in the form in which parsers of event streams return it.
    let event = || {
        let field = || ObjectBuilder::new().schema_type(Type::String);
        let event = ObjectBuilder::new().schema_type(Type::Object);
        let event = event.property("id", field()).property("event", field());
        Content::new(Some(event.property("data", field()).required("data")))
    };
    let response = |about: &str, kind: &str, content| {
        ResponseBuilder::new().description(about).content(kind, content).build()
    };
    match gives {
        AnswerKind::Json(named) => {
            (200, response("done", "application/json", schema_reference(&named(schemas))))
        }
        AnswerKind::JsonAs(status, named) => {
            (*status, response("done", "application/json", schema_reference(&named(schemas))))
        }
        AnswerKind::JsonOrEvents(named) => {
            let both = ResponseBuilder::new()
                .description("its outcome; with `stream`, events and at last `done` with the same")
                .content("application/json", schema_reference(&named(schemas)))
                .content("text/event-stream", event());
            (200, both.build())
        }
        AnswerKind::JsonOrTable(named) => {
            let both = ResponseBuilder::new()
                .description("done")
                .content("application/json", schema_reference(&named(schemas)))
                .content("text/csv", text());
            (200, both.build())
        }
        AnswerKind::Events => {
            (200, response("events, each with its id", "text/event-stream", event()))
        }
        AnswerKind::Text => (200, response("text", "text/plain", text())),
        AnswerKind::Bytes => {
            let any = Content::new(None::<RefOr<Schema>>);
            (200, response("the file", "*/*", any))
        }
        AnswerKind::Any => {
            let any = Content::new(Some(ObjectBuilder::new().schema_type(Type::Object)));
            (200, response("done", "application/json", any))
        }
        AnswerKind::Nothing => (204, ResponseBuilder::new().description("done").build()),
        AnswerKind::Upgrade => {
            let about = "a WebSocket: `ClientMessage` there, `ServerMessage` and events back";
            (101, ResponseBuilder::new().description(about).build())
        }
    }
}

fn schema_reference(name: &str) -> Content {
    Content::new(Some(Ref::from_schema_name(name)))
}

/// The documentation of a path parameter.
fn in_path(name: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

/// The documentation of a query parameter.
fn in_query(query: &QueryParameter) -> Parameter {
    ParameterBuilder::new()
        .name(query.name)
        .parameter_in(ParameterIn::Query)
        .required(if query.required { Required::True } else { Required::False })
        .description(Some(query.about))
        .schema(Some(parameter_schema(query.takes)))
        .build()
}

/// The schema of a query parameter's values.
fn parameter_schema(takes: ParameterValues) -> ObjectBuilder {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    match takes {
        ParameterValues::Text => text(),
        ParameterValues::Form(pattern) => text().pattern(Some(pattern)),
        ParameterValues::Short(most) => text().max_length(Some(most)),
        ParameterValues::Word(words) => text().enum_values(Some(words.iter().copied())),
        ParameterValues::Day => text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Date))),
        ParameterValues::Flag => ObjectBuilder::new().schema_type(Type::Boolean),
        ParameterValues::Number(least, most) => {
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least)).maximum(Some(most))
        }
    }
}

/// The names of parameters in a path, for example `id` in `/v1/sessions/{id}`.
fn path_parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// The OpenAPI name of an HTTP method.
fn http_method(verb: HttpVerb) -> HttpMethod {
    match verb {
        HttpVerb::Get => HttpMethod::Get,
        HttpVerb::Post => HttpMethod::Post,
        HttpVerb::Put => HttpMethod::Put,
        HttpVerb::Delete => HttpMethod::Delete,
    }
}

/// A sentence about the key that an operation needs.
fn scope_sentence(needs: RequiredScope) -> &'static str {
    match needs {
        RequiredScope::Nothing => "Needs no key.",
        RequiredScope::ReadOnly => "Needs a key.",
        RequiredScope::Member => "Needs a key of the scope `member` or `admin`.",
        RequiredScope::Admin => "Needs a key of the scope `admin`.",
        RequiredScope::Operator => "Needs a key of the scope `admin` of the operator's own tenant.",
    }
}

impl SchemaMap {
    /// Adds the schema of a type and of all types in it; returns its name.
    pub(crate) fn add_type<T: ToSchema>(&mut self) -> String {
        let mut found = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut found);
        self.0.extend(found);
        T::name().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn json() -> Value {
        serde_json::to_value(build_document()).unwrap()
    }

    #[test]
    fn every_route_is_in_the_document_with_its_answers() {
        let document = json();
        // MCP describes itself, so its routes are not in the document.
        let described = || ROUTES.iter().filter(|route| route.is_described());
        for route in described() {
            let path = &document["paths"][route.path][route.verb.as_str().to_ascii_lowercase()];
            assert_eq!(path["operationId"], route.name());
            let responses = path["responses"].as_object().unwrap();
            let fine = responses.keys().filter(|status| status.as_str() < "400").count();
            let stopped = usize::from(route.op == RouteOp::Chat);
            assert_eq!(fine, 1 + stopped, "{}", route.name());
            let guarded = responses.contains_key("401") && responses.contains_key("403");
            let refuses = route.needs > RequiredScope::Nothing || route.op == RouteOp::Login;
            assert_eq!(guarded, refuses, "{}", route.name());
            let parts = path["parameters"]
                .as_array()
                .map_or(0, |all| all.iter().filter(|parameter| parameter["in"] == "path").count());
            assert_eq!(parts, route.path.matches('{').count(), "{}", route.name());
        }
        let operations = document["paths"].as_object().unwrap().values();
        let count: usize = operations.map(|path| path.as_object().unwrap().len()).sum();
        assert_eq!(count, described().count());
    }

    /// The types of the page's code are generated from a file, so no server has to run at build time.
    #[test]
    fn the_document_that_the_page_is_typed_by_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/web/openapi.json");
        let text = format!("{}\n", serde_json::to_string_pretty(&build_document()).unwrap());
        if std::env::var_os("BELLJAR_DESCRIBE").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap();
        assert!(
            kept.replace("\r\n", "\n") == text,
            "the API is not what the page was built for; run `BELLJAR_DESCRIBE=1 cargo test typed_by`, \
             then `cargo xtask rebuild page`"
        );
    }

    /// Code generators cannot read a schema whose `allOf` joins a choice with other fields.
    #[test]
    fn a_choice_stands_alone() {
        let document = json();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let question = &schemas["QuestionBody"];
        let kinds = question["oneOf"].as_array().unwrap();
        assert!(question.get("allOf").is_none() && kinds.len() == 2, "{question:#}");
        for kind in kinds {
            assert_eq!(kind["type"], "object", "{kind:#}");
            for field in ["id", "session", "message", "agent", "asked", "kind"] {
                assert!(kind["properties"].get(field).is_some(), "{field}: {kind:#}");
            }
        }
        for body in ["AnswerBody", "LoginBody", "PreviewBody"] {
            let kinds = schemas[body]["oneOf"].as_array().unwrap();
            assert!(kinds.iter().all(|kind| kind["additionalProperties"] == false), "{body}");
        }
    }

    /// The schema of each query parameter has the bounds of a number, or the list of words.
    #[test]
    fn every_number_behind_the_question_mark_has_its_bounds() {
        let document = json();
        let paths = document["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|path| path.as_object().unwrap().values());
        let mut numbers = 0;
        for parameter in operations.filter_map(|one| one["parameters"].as_array()).flatten() {
            let schema = &parameter["schema"];
            if schema["type"] == "integer" {
                numbers += 1;
                let bounds = (schema["minimum"].as_u64(), schema["maximum"].as_u64());
                assert!(matches!(bounds, (Some(_), Some(_))), "{parameter:#}");
            }
        }
        assert!(numbers >= 10, "{numbers}");
        let limits = document["components"]["schemas"]["LimitsBody"].clone();
        assert_eq!(limits["additionalProperties"], false);
        assert!(limits["properties"]["steps"].is_object(), "{limits:#}");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(list) => list.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = json();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }
}
