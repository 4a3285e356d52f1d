//! Inputs and outputs of each operation, for the OpenAPI document.

use utoipa::ToSchema;

use crate::api::{
    agents, attachments, audit, changes, contents, explain, grants, health, libraries, login,
    preview, questions, rights, roles, running, sessions, tools, turn, usage,
};
use crate::http::page::MOST;
use crate::http::problem::Kind;
use crate::openai;
use crate::routes::{Op, Route, Verb};

/// Adds schemas of a type, and returns the type's name.
type Named = fn(&mut crate::openapi::document::Schemas) -> String;

/// The inputs and outputs of an operation.
pub(crate) struct Doc {
    /// The effect of the operation, in a line.
    pub(crate) summary: &'static str,
    /// The group.
    pub(crate) tag: &'static str,
    /// The body, if any.
    pub(crate) body: Option<Named>,
    /// The answer.
    pub(crate) gives: Gives,
    /// The parameters of the query.
    pub(crate) query: &'static [Query],
    /// Problems besides those of all routes.
    pub(crate) problems: &'static [Kind],
}

/// An answer.
pub(crate) enum Gives {
    /// An object.
    Json(Named),
    /// An object, with another status than 200.
    JsonAs(u16, Named),
    /// An object or a stream of events, as the caller likes.
    JsonOrEvents(Named),
    /// An object, or a table as a file, as the caller likes.
    JsonOrTable(Named),
    /// A stream of events.
    Events,
    /// Text.
    Text,
    /// The bytes of a file.
    Bytes,
    /// Any JSON.
    Any,
    /// No body, with the status 204.
    Nothing,
    /// Another protocol.
    Upgrade,
}

/// A parameter of the query.
pub(crate) struct Query {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// The allowed values of a query parameter: exactly these.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Takes {
    /// Any text.
    Text,
    /// A text that matches the pattern.
    Form(&'static str),
    /// A text with a largest number of characters.
    Short(usize),
    /// One of these words; for example, a scope.
    Word(&'static [&'static str]),
    /// A day, `YYYY-MM-DD`.
    Day,
    /// `true` or `false`.
    Flag,
    /// A whole number within these bounds.
    Number(usize, usize),
}

const fn query(name: &'static str, takes: Takes, about: &'static str) -> Query {
    Query { name, takes, required: false, about }
}

const LIMIT: Query = query("limit", Takes::Number(1, 200), "how many rows; 50 where it is absent");
const BEFORE: Query = query("before", Takes::Text, "`next` of the page before");
const MESSAGE: Query = query("message", Takes::Text, "only those of this turn");
const KINDS: &[&str] = &["api", "chat", "run", "team"];
const SESSIONS: &[Query] = &[
    LIMIT,
    BEFORE,
    query("q", Takes::Short(200), "only those whose title has this text, in either case"),
    query("kind", Takes::Word(KINDS), "only those of this kind"),
    query("running", Takes::Flag, "`true`: only those with a turn that runs"),
];
const RUNNING: &[Query] =
    &[query("all", Takes::Flag, "`true`: of every tenant, for the operator of the server")];
const EXPLAIN: &[Query] = &[
    Query { name: "agent", takes: Takes::Text, required: true, about: "the agent's name" },
    Query { name: "tool", takes: Takes::Text, required: true, about: "the tool's name" },
    query(
        "target",
        Takes::Short(4_096),
        "a path as the agent sees it, or a URL; absent = the call itself",
    ),
    query("write", Takes::Flag, "`true`: whether it may write there"),
];
const MESSAGES: &[Query] = &[
    query(
        "limit",
        Takes::Number(1, 200),
        "how many rows, at most 20 with `full`; a page ends behind 2 MiB, with fewer",
    ),
    query("before", Takes::Number(0, MOST), "`next` of the page before"),
    query("full", Takes::Flag, "with all that each turn added to the conversation"),
];
const EVENTS: &[Query] = &[
    query(
        "after",
        Takes::Number(0, MOST),
        "the id of the event that was seen last; 0 or absent = from the first",
    ),
    query("follow", Takes::Flag, "`false`: end after what is stored"),
];
const AFTER: Query = query("after", Takes::Text, "`next` of the page before");
const BYTES: Query = query(
    "limit",
    Takes::Number(1, 200),
    "how many rows; 50 where it is absent. A page ends behind 2 MiB, with fewer",
);
const AUDIT: &[Query] = &[
    BYTES,
    BEFORE,
    query("actor", Takes::Text, "only lines of this one"),
    query("action", Takes::Text, "only lines of this action"),
];
const RECEIPTS: &[Query] = &[
    MESSAGE,
    BYTES,
    BEFORE,
    query("format", Takes::Word(&["json", "csv"]), "`csv`: one table, without `limit`"),
];
const SUBAGENTS: &[Query] = &[MESSAGE, BYTES, AFTER];
const CHANGES: &[Query] = &[
    query("path", Takes::Text, "a path below the workspace, with all below it; absent = all"),
    query("patch", Takes::Flag, "also the patch, up to 2 MiB"),
    query(
        "skip",
        Takes::Number(0, MOST),
        "so many changes of each directory, the first, are left out",
    ),
];
const STREAM: &[Query] = &[
    query("stream", Takes::Flag, "`true`: event by event, as it was streamed first"),
    query(
        "starting_after",
        Takes::Number(0, MOST),
        "with `stream`: the number of the last event of it that is known",
    ),
];
const ITEMS: &[Query] = &[
    query("limit", Takes::Number(1, 100), "how many items; 20 where it is absent"),
    query("order", Takes::Word(&["desc", "asc"]), "`desc`: the last first"),
    query("after", Takes::Text, "the id of the last item of the page before"),
];
const AFTER_ALONE: &[Query] = &[AFTER];
const SCOPES: &str = "^(home|workspace|library|library/[a-z0-9]+(-[a-z0-9]+)*)$";
const SCOPE: Query = query(
    "scope",
    Takes::Form(SCOPES),
    "only those of `home`, `workspace`, `library` (all of them) or `library/NAME`",
);
const AGENTS: &[Query] = &[AFTER, SCOPE];
const SINCE: &[Query] = &[
    query("since", Takes::Day, "the first day; absent = 30 days ago"),
    query(
        "by",
        Takes::Form("^(day|agent|model)(,(day|agent|model))*$"),
        "a list of `day`, `agent`, `model`: the sums of each, as `rows`",
    ),
];
const TOOLS: &[Query] = &[query(
    "agent",
    Takes::Text,
    "only those that this agent may use; `mcp` is a client that calls them itself",
)];
const AGENT: &[Query] =
    &[Query { name: "agent", takes: Takes::Text, required: true, about: "the agent's name" }];

/// Problems of a turn on the wires of OpenAI.
const TURN: &[Kind] = &[
    Kind::NotFound,
    Kind::Busy,
    Kind::Taken,
    Kind::Changed,
    Kind::Agent,
    Kind::DayUsed,
    Kind::Storage,
];

/// The inputs and outputs of an operation.
pub(crate) fn doc(op: Op) -> Doc {
    use Gives::{Any, Bytes, Events, Json, JsonAs, JsonOrEvents, JsonOrTable, Text, Upgrade};
    const NONE: &[Kind] = &[];
    let read =
        |tag, summary, gives| Doc { summary, tag, body: None, gives, query: &[], problems: NONE };
    let paged = |query, doc| Doc { query, ..doc };
    let taking = |body: Named, problems, doc| Doc { body: Some(body), problems, ..doc };
    match op {
        Op::Chat => taking(
            of::<turn::ChatBody>,
            &[Kind::NotFound, Kind::Busy, Kind::Agent, Kind::DayUsed, Kind::Storage],
            read("turns", "send a message to an agent", JsonOrEvents(of::<turn::Answered>)),
        ),
        Op::ListSessions => {
            paged(SESSIONS, read("sessions", "list sessions", Json(of::<sessions::Sessions>)))
        }
        Op::DeleteSessions => Doc {
            problems: &[Kind::Busy],
            ..read("sessions", "delete all sessions", Json(of::<sessions::Deleted>))
        },
        Op::ReadSession => read("sessions", "read a session", Json(of::<sessions::SessionBody>)),
        Op::DeleteSession => Doc {
            problems: &[Kind::Busy],
            ..read("sessions", "delete a session", Json(of::<sessions::Deleted>))
        },
        Op::ListMessages => paged(
            MESSAGES,
            read("sessions", "list the messages of a session", Json(of::<sessions::Messages>)),
        ),
        Op::WatchEvents => paged(EVENTS, read("turns", "watch what happens in a session", Events)),
        Op::ListSubagents => paged(
            SUBAGENTS,
            read("sessions", "list the subagents of a session", Json(of::<sessions::Subagents>)),
        ),
        Op::ListReceipts => paged(
            RECEIPTS,
            read("sessions", "list what tool calls did", JsonOrTable(of::<sessions::Receipts>)),
        ),
        Op::ReadContents => read(
            "sessions",
            "count what is deleted with a session",
            Json(of::<contents::ContentsBody>),
        ),
        Op::Resume => Doc {
            problems: &[Kind::Busy],
            ..read("turns", "resume an interrupted turn", Json(of::<contents::Resumed>))
        },
        Op::ListAttachments => {
            read("sessions", "list files of a session", Json(of::<attachments::Attachments>))
        }
        Op::ReadAttachment => read("sessions", "read a file of a session", Bytes),
        Op::ReadChanges => Doc {
            problems: &[Kind::Busy],
            ..paged(
                CHANGES,
                read(
                    "changes",
                    "show what a session changed in its overlays",
                    Json(of::<changes::SessionChanges>),
                ),
            )
        },
        Op::ApplyChanges => taking(
            of::<changes::ApplyBody>,
            &[Kind::Busy, Kind::Taken, Kind::Changed],
            read(
                "changes",
                "put changes of a session into the workspace",
                Json(of::<changes::AppliedBody>),
            ),
        ),
        Op::DiscardChanges => taking(
            of::<changes::DiscardBody>,
            &[Kind::Busy, Kind::Changed],
            read("changes", "throw changes of a session away", Json(of::<changes::DiscardedBody>)),
        ),
        Op::UndoApply => taking(
            of::<changes::UndoBody>,
            &[Kind::Busy, Kind::Taken],
            read("changes", "take the last apply back", Json(of::<changes::UndoneBody>)),
        ),
        Op::Cancel => taking(
            of::<running::CancelBody>,
            NONE,
            read("turns", "end a turn, or one subagent", Json(of::<running::Cancelled>)),
        ),
        Op::ListSessionQuestions => read(
            "questions",
            "list the open questions of a session",
            Json(of::<questions::Questions>),
        ),
        Op::Answer => taking(
            of::<questions::AnswerWords>,
            NONE,
            read("questions", "answer a question", Json(of::<questions::Accepted>)),
        ),
        Op::ListQuestions => {
            read("questions", "list all open questions", Json(of::<questions::Questions>))
        }
        Op::ListRunning => {
            paged(RUNNING, read("turns", "list the turns that run", Json(of::<running::Running>)))
        }
        Op::ListAgents => paged(AGENTS, read("agents", "list agents", Json(of::<agents::Agents>))),
        Op::CreateAgent => taking(
            of::<agents::NewAgentBody>,
            &[Kind::Taken, Kind::Agent],
            read("agents", "keep a new agent", JsonAs(201, of::<agents::AgentBody>)),
        ),
        Op::ReadAgent => {
            paged(&[SCOPE], read("agents", "read an agent", Json(of::<agents::AgentBody>)))
        }
        Op::ReplaceAgent => taking(
            of::<agents::AgentTextBody>,
            &[Kind::Changed, Kind::Agent, Kind::NoCondition],
            read("agents", "keep the next version of an agent", Json(of::<agents::AgentBody>)),
        ),
        Op::DeleteAgent => {
            read("agents", "delete an agent that is kept here", Json(of::<agents::AgentDeleted>))
        }
        Op::ValidateAgent => taking(
            of::<agents::ValidateBody>,
            &[Kind::NotFound],
            read("agents", "check the text of an agent", Json(of::<agents::Validated>)),
        ),
        Op::Preview => taking(
            of::<preview::PreviewWords>,
            &[Kind::NotFound, Kind::Agent],
            read("turns", "show what a model would be sent", Json(of::<preview::Previewed>)),
        ),
        Op::ListTools => Doc {
            query: TOOLS,
            problems: &[Kind::NotFound],
            ..read("agents", "list tools", Json(of::<tools::Tools>))
        },
        Op::ListRoles => read("agents", "list models and their roles", Json(of::<roles::Roles>)),
        Op::ReadGrants => Doc {
            query: AGENT,
            problems: &[Kind::NotFound],
            ..read("agents", "say what an agent may do", Json(of::<grants::GrantsBody>))
        },
        Op::Explain => Doc {
            query: EXPLAIN,
            problems: &[Kind::NotFound],
            ..read(
                "agents",
                "say whether an agent may use a tool, and who decides",
                Json(of::<explain::Explained>),
            )
        },
        Op::ReadRights => paged(
            AFTER_ALONE,
            read("agents", "say which agents may use which tools", Json(of::<rights::RightsBody>)),
        ),
        Op::ListLibraries => paged(
            AFTER_ALONE,
            read("agents", "list installed libraries", Json(of::<libraries::Libraries>)),
        ),
        Op::ReadUsage => paged(
            SINCE,
            read("operations", "what was used, by day, agent and model", Json(of::<usage::Usage>)),
        ),
        Op::ReadAudit => {
            paged(AUDIT, read("operations", "read the audit log", Json(of::<audit::AuditPage>)))
        }
        Op::OpenApi => read("operations", "this document", Any),
        Op::Login => taking(
            of::<login::LoginWords>,
            &[
                Kind::Invalid,
                Kind::NoKey,
                Kind::Origin,
                Kind::WrongHost,
                Kind::TooMany,
                Kind::Bug,
                Kind::Unavailable,
            ],
            read("login", "log a browser in, by a cookie", Gives::Nothing),
        ),
        Op::Logout => read("login", "end a login", Gives::Nothing),
        Op::Me => read("login", "say who calls", Json(of::<login::Me>)),
        Op::WebSocket => read("turns", "turns and events on one connection", Upgrade),
        Op::CompleteChat => taking(
            of::<openai::chat::CompletionBody>,
            TURN,
            read(
                "openai",
                "a chat completion, as OpenAI has it",
                JsonOrEvents(of::<openai::answer::Completion>),
            ),
        ),
        Op::CreateResponse => taking(
            of::<openai::responses::NewResponseBody>,
            TURN,
            read(
                "openai",
                "a response, as OpenAI and Open Responses have it",
                JsonOrEvents(of::<openai::resource::ResponseBody>),
            ),
        ),
        Op::ReadResponse => Doc {
            query: STREAM,
            ..read("openai", "read a response", JsonOrEvents(of::<openai::resource::ResponseBody>))
        },
        Op::DeleteResponse => Doc {
            problems: &[Kind::Busy, Kind::Changed],
            ..read(
                "openai",
                "delete a response with its session",
                Json(of::<openai::stored::ResponseDeleted>),
            )
        },
        Op::CancelResponse => read(
            "openai",
            "end a response in the background",
            Json(of::<openai::resource::ResponseBody>),
        ),
        Op::ListInputItems => Doc {
            query: ITEMS,
            ..read("openai", "list what was asked", Json(of::<openai::stored::InputItems>))
        },
        Op::ListModels => {
            read("openai", "list agents as models", Json(of::<openai::models::Models>))
        }
        Op::ReadModel => {
            read("openai", "read an agent as a model", Json(of::<openai::models::Model>))
        }
        // The protocol describes itself.
        Op::McpSend | Op::McpListen | Op::McpEnd | Op::McpMetadata => {
            read("mcp", "the Model Context Protocol", Text)
        }
        Op::Health => read("operations", "whether the process answers", Json(of::<health::Health>)),
        Op::Ready => read("operations", "whether it takes turns", Json(of::<health::Readiness>)),
        Op::Metrics => read("operations", "counters for Prometheus", Text),
    }
}

/// The common problems of every route with these properties.
pub(crate) fn common(route: &Route, has_body: bool) -> Vec<Kind> {
    use crate::routes::{Needs, Object};
    let mut kinds = Vec::new();
    if route.needs > Needs::Nothing {
        kinds.extend([Kind::Invalid, Kind::NoKey, Kind::Scope, Kind::WrongHost, Kind::TooMany]);
        kinds.extend([Kind::Bug, Kind::Unavailable]);
    } else if route.op == Op::Ready {
        kinds.push(Kind::Unavailable);
    }
    if route.object != Object::None {
        kinds.push(Kind::NotFound);
    }
    if has_body {
        kinds.extend([Kind::Timeout, Kind::TooLarge, Kind::MediaType]);
    }
    debug_assert!(!has_body || route.verb != Verb::Get, "a body belongs to what changes something");
    kinds
}

fn of<T: ToSchema>(schemas: &mut crate::openapi::document::Schemas) -> String {
    schemas.add::<T>()
}
