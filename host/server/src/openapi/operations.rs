//! The inputs and outputs of each operation, for the OpenAPI document.

use utoipa::ToSchema;

use crate::api::{
    agents, attachments, audit, changes, contents, explain, grants, health, libraries, login,
    preview, questions, rights, roles, running, sessions, tools, turn, usage,
};
use crate::http::page::MOST;
use crate::http::problem::ProblemKind;
use crate::openai;
use crate::routes::{HttpVerb, Route, RouteOp};

/// A function that adds the schemas of a type to the document, and returns the type's name.
type Named = fn(&mut crate::openapi::document::SchemaMap) -> String;

/// The documentation of one operation.
pub(crate) struct OperationDoc {
    /// The effect of the operation, in one line.
    pub(crate) summary: &'static str,
    /// The group of operations to which it belongs.
    pub(crate) tag: &'static str,
    /// The type of the request's body, if it has one.
    pub(crate) body: Option<Named>,
    /// The form of a successful answer.
    pub(crate) gives: AnswerKind,
    /// The parameters of the query string.
    pub(crate) query: &'static [QueryParameter],
    /// The kinds of problems besides those that every route can answer.
    pub(crate) problems: &'static [ProblemKind],
}

/// The form of a successful answer.
pub(crate) enum AnswerKind {
    /// A JSON object.
    Json(Named),
    /// A JSON object, with another status than 200.
    JsonAs(u16, Named),
    /// A JSON object or a stream of events, as the caller's `Accept` requests.
    JsonOrEvents(Named),
    /// A JSON object or a CSV file, as the caller requests.
    JsonOrTable(Named),
    /// A stream of events.
    Events,
    /// Plain text.
    Text,
    /// The bytes of a file.
    Bytes,
    /// JSON of any form.
    Any,
    /// No body, with status 204.
    Nothing,
    /// A switch to another protocol (WebSocket).
    Upgrade,
}

/// A parameter of the query string.
pub(crate) struct QueryParameter {
    pub(crate) name: &'static str,
    pub(crate) takes: ParameterValues,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// The values that a query parameter may have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParameterValues {
    /// Any text.
    Text,
    /// A text that matches the pattern.
    Form(&'static str),
    /// A text with a largest number of characters.
    Short(usize),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A day, `YYYY-MM-DD`.
    Day,
    /// `true` or `false`.
    Flag,
    /// A whole number within these bounds.
    Number(usize, usize),
}

/// Makes a parameter of the query that may be left out.
const fn optional_query(
    name: &'static str,
    takes: ParameterValues,
    about: &'static str,
) -> QueryParameter {
    QueryParameter { name, takes, required: false, about }
}

const LIMIT: QueryParameter = optional_query(
    "limit",
    ParameterValues::Number(1, 200),
    "how many rows; 50 where it is absent",
);
const BEFORE: QueryParameter =
    optional_query("before", ParameterValues::Text, "`next` of the page before");
const MESSAGE: QueryParameter =
    optional_query("message", ParameterValues::Text, "only those of this turn");
const KINDS: &[&str] = &["api", "chat", "run", "team"];
const SESSIONS: &[QueryParameter] = &[
    LIMIT,
    BEFORE,
    optional_query(
        "q",
        ParameterValues::Short(200),
        "only those whose title has this text, in either case",
    ),
    optional_query("kind", ParameterValues::Word(KINDS), "only those of this kind"),
    optional_query("running", ParameterValues::Flag, "`true`: only those with a turn that runs"),
];
const RUNNING: &[QueryParameter] = &[optional_query(
    "all",
    ParameterValues::Flag,
    "`true`: of every tenant, for the operator of the server",
)];
const EXPLAIN: &[QueryParameter] = &[
    QueryParameter {
        name: "agent",
        takes: ParameterValues::Text,
        required: true,
        about: "the agent's name",
    },
    QueryParameter {
        name: "tool",
        takes: ParameterValues::Text,
        required: true,
        about: "the tool's name",
    },
    optional_query(
        "target",
        ParameterValues::Short(4_096),
        "a path as the agent sees it, or a URL; absent = the call itself",
    ),
    optional_query("write", ParameterValues::Flag, "`true`: whether it may write there"),
];
const MESSAGES: &[QueryParameter] = &[
    optional_query(
        "limit",
        ParameterValues::Number(1, 200),
        "how many rows, at most 20 with `full`; a page ends behind 2 MiB, with fewer",
    ),
    optional_query("before", ParameterValues::Number(0, MOST), "`next` of the page before"),
    optional_query(
        "full",
        ParameterValues::Flag,
        "with all that each turn added to the conversation",
    ),
];
const EVENTS: &[QueryParameter] = &[
    optional_query(
        "after",
        ParameterValues::Number(0, MOST),
        "the id of the event that was seen last; 0 or absent = from the first",
    ),
    optional_query("follow", ParameterValues::Flag, "`false`: end after what is stored"),
];
const AFTER: QueryParameter =
    optional_query("after", ParameterValues::Text, "`next` of the page before");
const BYTES: QueryParameter = optional_query(
    "limit",
    ParameterValues::Number(1, 200),
    "how many rows; 50 where it is absent. A page ends behind 2 MiB, with fewer",
);
const AUDIT: &[QueryParameter] = &[
    BYTES,
    BEFORE,
    optional_query("actor", ParameterValues::Text, "only lines of this one"),
    optional_query("action", ParameterValues::Text, "only lines of this action"),
];
const RECEIPTS: &[QueryParameter] = &[
    MESSAGE,
    BYTES,
    BEFORE,
    optional_query(
        "format",
        ParameterValues::Word(&["json", "csv"]),
        "`csv`: one table, without `limit`",
    ),
];
const SUBAGENTS: &[QueryParameter] = &[MESSAGE, BYTES, AFTER];
const CHANGES: &[QueryParameter] = &[
    optional_query(
        "path",
        ParameterValues::Text,
        "a path below the workspace, with all below it; absent = all",
    ),
    optional_query("patch", ParameterValues::Flag, "also the patch, up to 2 MiB"),
    optional_query(
        "skip",
        ParameterValues::Number(0, MOST),
        "so many changes of each directory, the first, are left out",
    ),
];
const STREAM: &[QueryParameter] = &[
    optional_query(
        "stream",
        ParameterValues::Flag,
        "`true`: event by event, as it was streamed first",
    ),
    optional_query(
        "starting_after",
        ParameterValues::Number(0, MOST),
        "with `stream`: the number of the last event of it that is known",
    ),
];
const ITEMS: &[QueryParameter] = &[
    optional_query(
        "limit",
        ParameterValues::Number(1, 100),
        "how many items; 20 where it is absent",
    ),
    optional_query("order", ParameterValues::Word(&["desc", "asc"]), "`desc`: the last first"),
    optional_query("after", ParameterValues::Text, "the id of the last item of the page before"),
];
const AFTER_ALONE: &[QueryParameter] = &[AFTER];
const SCOPES: &str = "^(home|workspace|library|library/[a-z0-9]+(-[a-z0-9]+)*)$";
const SCOPE: QueryParameter = optional_query(
    "scope",
    ParameterValues::Form(SCOPES),
    "only those of `home`, `workspace`, `library` (all of them) or `library/NAME`",
);
const AGENTS: &[QueryParameter] = &[AFTER, SCOPE];
const SINCE: &[QueryParameter] = &[
    optional_query("since", ParameterValues::Day, "the first day; absent = 30 days ago"),
    optional_query(
        "by",
        ParameterValues::Form("^(day|agent|model)(,(day|agent|model))*$"),
        "a list of `day`, `agent`, `model`: the sums of each, as `rows`",
    ),
];
const TOOLS: &[QueryParameter] = &[optional_query(
    "agent",
    ParameterValues::Text,
    "only those that this agent may use; `mcp` is a client that calls them itself",
)];
const AGENT: &[QueryParameter] = &[QueryParameter {
    name: "agent",
    takes: ParameterValues::Text,
    required: true,
    about: "the agent's name",
}];

/// The problems of an operation of OpenAI's API that runs a turn.
const TURN: &[ProblemKind] = &[
    ProblemKind::NotFound,
    ProblemKind::Busy,
    ProblemKind::Taken,
    ProblemKind::Changed,
    ProblemKind::Agent,
    ProblemKind::DayUsed,
    ProblemKind::Storage,
];

/// The documentation of an operation.
pub(crate) fn operation_doc(op: RouteOp) -> OperationDoc {
    use AnswerKind::{Any, Bytes, Events, Json, JsonAs, JsonOrEvents, JsonOrTable, Text, Upgrade};
    const NONE: &[ProblemKind] = &[];
    let read = |tag, summary, gives| OperationDoc {
        summary,
        tag,
        body: None,
        gives,
        query: &[],
        problems: NONE,
    };
    let paged = |query, doc| OperationDoc { query, ..doc };
    let taking = |body: Named, problems, doc| OperationDoc { body: Some(body), problems, ..doc };
    match op {
        RouteOp::Chat => taking(
            schema_name::<turn::ChatBody>,
            &[
                ProblemKind::NotFound,
                ProblemKind::Busy,
                ProblemKind::Agent,
                ProblemKind::DayUsed,
                ProblemKind::Storage,
            ],
            read(
                "turns",
                "send a message to an agent",
                JsonOrEvents(schema_name::<turn::Answered>),
            ),
        ),
        RouteOp::ListSessions => paged(
            SESSIONS,
            read("sessions", "list sessions", Json(schema_name::<sessions::Sessions>)),
        ),
        RouteOp::DeleteSessions => OperationDoc {
            problems: &[ProblemKind::Busy],
            ..read("sessions", "delete all sessions", Json(schema_name::<sessions::Deleted>))
        },
        RouteOp::ReadSession => {
            read("sessions", "read a session", Json(schema_name::<sessions::SessionBody>))
        }
        RouteOp::DeleteSession => OperationDoc {
            problems: &[ProblemKind::Busy],
            ..read("sessions", "delete a session", Json(schema_name::<sessions::Deleted>))
        },
        RouteOp::ListMessages => paged(
            MESSAGES,
            read(
                "sessions",
                "list the messages of a session",
                Json(schema_name::<sessions::Messages>),
            ),
        ),
        RouteOp::WatchEvents => {
            paged(EVENTS, read("turns", "watch what happens in a session", Events))
        }
        RouteOp::ListSubagents => paged(
            SUBAGENTS,
            read(
                "sessions",
                "list the subagents of a session",
                Json(schema_name::<sessions::Subagents>),
            ),
        ),
        RouteOp::ListReceipts => paged(
            RECEIPTS,
            read(
                "sessions",
                "list what tool calls did",
                JsonOrTable(schema_name::<sessions::Receipts>),
            ),
        ),
        RouteOp::ReadContents => read(
            "sessions",
            "count what is deleted with a session",
            Json(schema_name::<contents::ContentsBody>),
        ),
        RouteOp::Resume => OperationDoc {
            problems: &[ProblemKind::Busy],
            ..read("turns", "resume an interrupted turn", Json(schema_name::<contents::Resumed>))
        },
        RouteOp::ListAttachments => read(
            "sessions",
            "list files of a session",
            Json(schema_name::<attachments::Attachments>),
        ),
        RouteOp::ReadAttachment => read("sessions", "read a file of a session", Bytes),
        RouteOp::ReadChanges => OperationDoc {
            problems: &[ProblemKind::Busy],
            ..paged(
                CHANGES,
                read(
                    "changes",
                    "show what a session changed in its overlays",
                    Json(schema_name::<changes::SessionChanges>),
                ),
            )
        },
        RouteOp::ApplyChanges => taking(
            schema_name::<changes::ApplyBody>,
            &[ProblemKind::Busy, ProblemKind::Taken, ProblemKind::Changed],
            read(
                "changes",
                "put changes of a session into the workspace",
                Json(schema_name::<changes::AppliedBody>),
            ),
        ),
        RouteOp::DiscardChanges => taking(
            schema_name::<changes::DiscardBody>,
            &[ProblemKind::Busy, ProblemKind::Changed],
            read(
                "changes",
                "throw changes of a session away",
                Json(schema_name::<changes::DiscardedBody>),
            ),
        ),
        RouteOp::UndoApply => taking(
            schema_name::<changes::UndoBody>,
            &[ProblemKind::Busy, ProblemKind::Taken],
            read("changes", "take the last apply back", Json(schema_name::<changes::UndoneBody>)),
        ),
        RouteOp::Cancel => taking(
            schema_name::<running::CancelBody>,
            NONE,
            read("turns", "end a turn, or one subagent", Json(schema_name::<running::Cancelled>)),
        ),
        RouteOp::ListSessionQuestions => read(
            "questions",
            "list the open questions of a session",
            Json(schema_name::<questions::Questions>),
        ),
        RouteOp::Answer => taking(
            schema_name::<questions::AnswerWords>,
            NONE,
            read("questions", "answer a question", Json(schema_name::<questions::Accepted>)),
        ),
        RouteOp::ListQuestions => {
            read("questions", "list all open questions", Json(schema_name::<questions::Questions>))
        }
        RouteOp::ListRunning => paged(
            RUNNING,
            read("turns", "list the turns that run", Json(schema_name::<running::Running>)),
        ),
        RouteOp::ListAgents => {
            paged(AGENTS, read("agents", "list agents", Json(schema_name::<agents::Agents>)))
        }
        RouteOp::CreateAgent => taking(
            schema_name::<agents::NewAgentBody>,
            &[ProblemKind::Taken, ProblemKind::Agent],
            read("agents", "keep a new agent", JsonAs(201, schema_name::<agents::AgentBody>)),
        ),
        RouteOp::ReadAgent => {
            paged(&[SCOPE], read("agents", "read an agent", Json(schema_name::<agents::AgentBody>)))
        }
        RouteOp::ReplaceAgent => taking(
            schema_name::<agents::AgentTextBody>,
            &[ProblemKind::Changed, ProblemKind::Agent, ProblemKind::NoCondition],
            read(
                "agents",
                "keep the next version of an agent",
                Json(schema_name::<agents::AgentBody>),
            ),
        ),
        RouteOp::DeleteAgent => read(
            "agents",
            "delete an agent that is kept here",
            Json(schema_name::<agents::AgentDeleted>),
        ),
        RouteOp::ValidateAgent => taking(
            schema_name::<agents::ValidateBody>,
            &[ProblemKind::NotFound],
            read("agents", "check the text of an agent", Json(schema_name::<agents::Validated>)),
        ),
        RouteOp::Preview => taking(
            schema_name::<preview::PreviewWords>,
            &[ProblemKind::NotFound, ProblemKind::Agent],
            read(
                "turns",
                "show what a model would be sent",
                Json(schema_name::<preview::Previewed>),
            ),
        ),
        RouteOp::ListTools => OperationDoc {
            query: TOOLS,
            problems: &[ProblemKind::NotFound],
            ..read("agents", "list tools", Json(schema_name::<tools::Tools>))
        },
        RouteOp::ListRoles => {
            read("agents", "list models and their roles", Json(schema_name::<roles::Roles>))
        }
        RouteOp::ReadGrants => OperationDoc {
            query: AGENT,
            problems: &[ProblemKind::NotFound],
            ..read("agents", "say what an agent may do", Json(schema_name::<grants::GrantsBody>))
        },
        RouteOp::Explain => OperationDoc {
            query: EXPLAIN,
            problems: &[ProblemKind::NotFound],
            ..read(
                "agents",
                "say whether an agent may use a tool, and who decides",
                Json(schema_name::<explain::Explained>),
            )
        },
        RouteOp::ReadRights => paged(
            AFTER_ALONE,
            read(
                "agents",
                "say which agents may use which tools",
                Json(schema_name::<rights::RightsBody>),
            ),
        ),
        RouteOp::ListLibraries => paged(
            AFTER_ALONE,
            read("agents", "list installed libraries", Json(schema_name::<libraries::Libraries>)),
        ),
        RouteOp::ReadUsage => paged(
            SINCE,
            read(
                "operations",
                "what was used, by day, agent and model",
                Json(schema_name::<usage::Usage>),
            ),
        ),
        RouteOp::ReadAudit => paged(
            AUDIT,
            read("operations", "read the audit log", Json(schema_name::<audit::AuditPage>)),
        ),
        RouteOp::OpenApi => read("operations", "this document", Any),
        RouteOp::Login => taking(
            schema_name::<login::LoginWords>,
            &[
                ProblemKind::Invalid,
                ProblemKind::NoKey,
                ProblemKind::Origin,
                ProblemKind::WrongHost,
                ProblemKind::TooMany,
                ProblemKind::Bug,
                ProblemKind::Unavailable,
            ],
            read("login", "log a browser in, by a cookie", AnswerKind::Nothing),
        ),
        RouteOp::Logout => read("login", "end a login", AnswerKind::Nothing),
        RouteOp::Me => read("login", "say who calls", Json(schema_name::<login::Me>)),
        RouteOp::WebSocket => read("turns", "turns and events on one connection", Upgrade),
        RouteOp::CompleteChat => taking(
            schema_name::<openai::chat::CompletionBody>,
            TURN,
            read(
                "openai",
                "a chat completion, as OpenAI has it",
                JsonOrEvents(schema_name::<openai::answer::Completion>),
            ),
        ),
        RouteOp::CreateResponse => taking(
            schema_name::<openai::responses::NewResponseBody>,
            TURN,
            read(
                "openai",
                "a response, as OpenAI and Open Responses have it",
                JsonOrEvents(schema_name::<openai::resource::ResponseBody>),
            ),
        ),
        RouteOp::ReadResponse => OperationDoc {
            query: STREAM,
            ..read(
                "openai",
                "read a response",
                JsonOrEvents(schema_name::<openai::resource::ResponseBody>),
            )
        },
        RouteOp::DeleteResponse => OperationDoc {
            problems: &[ProblemKind::Busy, ProblemKind::Changed],
            ..read(
                "openai",
                "delete a response with its session",
                Json(schema_name::<openai::stored::ResponseDeleted>),
            )
        },
        RouteOp::CancelResponse => read(
            "openai",
            "end a response in the background",
            Json(schema_name::<openai::resource::ResponseBody>),
        ),
        RouteOp::ListInputItems => OperationDoc {
            query: ITEMS,
            ..read("openai", "list what was asked", Json(schema_name::<openai::stored::InputItems>))
        },
        RouteOp::ListModels => {
            read("openai", "list agents as models", Json(schema_name::<openai::models::Models>))
        }
        RouteOp::ReadModel => {
            read("openai", "read an agent as a model", Json(schema_name::<openai::models::Model>))
        }
        // MCP describes its own messages.
        RouteOp::McpSend | RouteOp::McpListen | RouteOp::McpEnd | RouteOp::McpMetadata => {
            read("mcp", "the Model Context Protocol", Text)
        }
        RouteOp::Health => {
            read("operations", "whether the process answers", Json(schema_name::<health::Health>))
        }
        RouteOp::Ready => {
            read("operations", "whether it takes turns", Json(schema_name::<health::Readiness>))
        }
        RouteOp::Metrics => read("operations", "counters for Prometheus", Text),
    }
}

/// The problems that every route with these properties can answer.
pub(crate) fn common_problems(route: &Route, has_body: bool) -> Vec<ProblemKind> {
    use crate::routes::{PathObject, RequiredScope};
    let mut kinds = Vec::new();
    if route.needs > RequiredScope::Nothing {
        kinds.extend([
            ProblemKind::Invalid,
            ProblemKind::NoKey,
            ProblemKind::Scope,
            ProblemKind::WrongHost,
            ProblemKind::TooMany,
        ]);
        kinds.extend([ProblemKind::Bug, ProblemKind::Unavailable]);
    } else if route.op == RouteOp::Ready {
        kinds.push(ProblemKind::Unavailable);
    }
    if route.object != PathObject::None {
        kinds.push(ProblemKind::NotFound);
    }
    if has_body {
        kinds.extend([ProblemKind::Timeout, ProblemKind::TooLarge, ProblemKind::MediaType]);
    }
    debug_assert!(
        !has_body || route.verb != HttpVerb::Get,
        "a body belongs to what changes something"
    );
    kinds
}

fn schema_name<T: ToSchema>(schemas: &mut crate::openapi::document::SchemaMap) -> String {
    schemas.add_type::<T>()
}
