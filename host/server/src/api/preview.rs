//! `POST /v1/preview`: shows the exact request that would go to the model; nothing is sent.

use belljar_agent::{RequestPart, ResolvedAgent};
use belljar_policy::ShownText;
use belljar_session::{HistoryMode, TurnRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::agent_text::read_text;
use crate::api::turn::{HistoryWord, check_name};
use crate::app::HandlerContext;
use crate::http::problem::{Problem, ProblemKind};
use crate::http::respond::{JsonAnswer, JsonBody};
use crate::routes::RequiredScope;

/// The body: a message, and the session or the agent that would receive it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewBody {
    /// The session to which the message would be added; absent = a new session.
    session: Option<String>,
    /// The agent of a new session; absent = `general-purpose`.
    agent: Option<String>,
    /// The text of an unsaved agent, instead of `session` and `agent`; for admins. The text is not stored.
    definition: Option<String>,
    /// The model or role of a new session; absent = the agent's choice.
    model: Option<String>,
    /// The person's text that would be sent.
    text: String,
    /// The part of the session's past that would be sent. Default: `compacted`, as in a turn.
    #[serde(default)]
    history: HistoryMode,
}

/// The two forms of it, as they are described.
#[derive(Debug, ToSchema)]
#[schema(as = PreviewBody)]
#[serde(untagged)]
#[allow(dead_code, reason = "the schema of the body")]
pub(crate) enum PreviewWords {
    /// Of an agent, or in a session.
    #[serde(deny_unknown_fields)]
    Known {
        /// The session that the message would be added to. Absent: a new one.
        session: Option<String>,
        /// Of a new session: the agent. Absent: `general-purpose`.
        agent: Option<String>,
        /// Of a new session: a model or a role.
        model: Option<String>,
        /// The text that would be sent.
        text: String,
        /// How much of the session's past would be sent, as in a turn. Default: `compacted`.
        #[schema(required = false)]
        history: HistoryWord,
    },
    /// Of an agent as it could be kept, for admins. It is kept nowhere.
    #[serde(deny_unknown_fields)]
    Unsaved {
        /// The text of the agent.
        definition: String,
        /// A model or a role.
        model: Option<String>,
        /// The text that would be sent.
        text: String,
        /// Changes nothing: there is no past.
        #[schema(required = false)]
        history: HistoryWord,
    },
}

/// The request that the model would be sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Previewed {
    /// The model.
    model: String,
    /// The request: `system`, `messages`, `tools` and settings.
    request: Value,
    /// Notes that a person should know about it.
    notes: Vec<String>,
    /// The parts of the request in its order, with what each costs.
    blocks: Vec<BlockBody>,
}

/// A part of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BlockBody {
    /// `system`: the agent's own words; `discovery`: whom it can hand work to; `skills`: what it can load;
    /// `advice`: what else the host tells it; `message`; `matched`: what fits the message's words; `tool`.
    kind: &'static str,
    /// Of a message its role, of a tool its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Bytes of it.
    bytes: u64,
    /// Tokens, as far as bytes tell: as the host estimates them itself.
    tokens: u64,
    /// Why it is there, or what it leaves out.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// `POST /v1/preview`.
pub(crate) async fn preview_turn(
    ctx: HandlerContext,
    JsonBody(body): JsonBody<PreviewBody>,
) -> Result<JsonAnswer<Previewed>, Problem> {
    if body.definition.is_some() && (body.session.is_some() || body.agent.is_some()) {
        return Err(Problem::invalid("`definition` stands in the place of `session` and `agent`"));
    }
    let session = match &body.session {
        Some(id) => Some(ctx.find_session(id).await?.id),
        None => None,
    };
    let request = TurnRequest {
        session,
        agent: check_name("agent", body.agent)?,
        model: check_name("model", body.model)?,
        text: body.text,
        history: body.history,
        ..TurnRequest::default()
    };
    let preview = match body.definition {
        Some(text) => ctx.service.preview_of(request, resolve_unsaved(&ctx, &text).await?).await?,
        None => ctx.service.preview_turn(request).await?,
    };
    let request = serde_json::to_value(&preview.request)
        .map_err(|error| Problem::bug(&format!("a preview is no JSON: {error}")))?;
    let blocks = preview.parts.into_iter().map(BlockBody::from).collect();
    let notes = preview.notes.iter().map(|note| ShownText::multiline(note).to_string()).collect();
    Ok(JsonAnswer(Previewed { model: preview.model, request, notes, blocks }))
}

/// INV-269: resolves the text of an unsaved agent, for callers who may store agents. Nothing is stored.
async fn resolve_unsaved(ctx: &HandlerContext, text: &str) -> Result<ResolvedAgent, Problem> {
    if !ctx.caller.has_scope(RequiredScope::Admin) {
        return Err(Problem::new(ProblemKind::Scope, "only an admin's key previews a text")
            .with_hint("preview a saved agent by its name"));
    }
    let mut read = read_text(ctx, "agent", text).await?;
    read.agent.take().map(|agent| *agent).ok_or_else(|| read.to_problem())
}

impl From<RequestPart> for BlockBody {
    fn from(RequestPart { kind, name, bytes, tokens, why }: RequestPart) -> Self {
        Self { kind: kind.as_str(), name, bytes, tokens, why }
    }
}
