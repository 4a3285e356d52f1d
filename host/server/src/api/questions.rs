//! Questions of agents to a person, and the person's answers.

use belljar_agent::{Approval, CallReach, ReachedMount};
use belljar_policy::ShownText;
use belljar_session::{OpenQuestion, PersonAnswer, QuestionKind, RunningTurn};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, JsonBody, PathOf};

/// The most characters of a person's answer in text.
const MAX_ANSWER: usize = 20_000;

/// The questions that wait for an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Questions {
    questions: Vec<QuestionBody>,
}

/// A question, each kind in one piece: programs that are made from the description read no other. Its
/// texts are foreign: escape them before a person sees them.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum QuestionBody {
    /// Whether a tool may be called.
    Permission {
        /// Its number in the session.
        id: u64,
        /// The session.
        session: String,
        /// The turn: the agent's message.
        message: String,
        /// The path of the agent that asks.
        agent: String,
        /// When it was asked, in milliseconds since 1970.
        asked: i64,
        /// The tool.
        tool: String,
        /// With which arguments.
        arguments: String,
        /// The directories that the call could touch, whatever its arguments say.
        mounts: Vec<ReachedBody>,
        /// Rules of the hosts that it could reach.
        hosts: Vec<String>,
        /// Names of the secrets that the host would join to its requests.
        secrets: Vec<String>,
    },
    /// Something that the agent wants to know.
    Clarify {
        /// Its number in the session.
        id: u64,
        /// The session.
        session: String,
        /// The turn: the agent's message.
        message: String,
        /// The path of the agent that asks.
        agent: String,
        /// When it was asked, in milliseconds since 1970.
        asked: i64,
        /// The question.
        question: String,
        /// Answers to choose from.
        options: Vec<String>,
    },
}

/// A directory that a call could touch.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ReachedBody {
    /// The path, as the agent sees it.
    path: String,
    /// `read`, `overlay` or `read-write`.
    access: String,
}

/// The body of an answer: `answer` for a question about permission, `text` for any other question.
/// Exactly one of the two is set.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerBody {
    pub(crate) answer: Option<Permission>,
    pub(crate) text: Option<String>,
}

/// The two answers, as they are described.
#[derive(Debug, ToSchema)]
#[schema(as = AnswerBody)]
#[serde(untagged)]
#[allow(dead_code, reason = "the schema of the body")]
pub(crate) enum AnswerWords {
    /// To a question for permission.
    #[serde(deny_unknown_fields)]
    Permission {
        /// Whether the tool may be called: this once, in the whole turn, or not.
        answer: Permission,
    },
    /// To a question in words.
    #[serde(deny_unknown_fields)]
    Words {
        /// The person's words; blank = none.
        #[schema(max_length = 20_000)]
        text: String,
    },
}

/// A word of permission.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Permission {
    /// This once.
    Yes,
    /// Now and for the rest of the turn.
    ForRun,
    /// No.
    No,
}

/// That an answer has arrived.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Accepted {
    /// `true`.
    accepted: bool,
}

/// `GET /v1/questions`: lists the open questions of all sessions of the tenant.
pub(crate) async fn list_questions(ctx: HandlerContext) -> JsonAnswer<Questions> {
    JsonAnswer(open_questions(&ctx, None))
}

/// `GET /v1/sessions/{id}/questions`: lists the open questions of one session.
pub(crate) async fn list_session_questions(
    ctx: HandlerContext,
    PathOf(id): PathOf<String>,
) -> Result<JsonAnswer<Questions>, Problem> {
    let session = ctx.find_session(&id).await?;
    Ok(JsonAnswer(open_questions(&ctx, Some(&session.id))))
}

/// `POST /v1/sessions/{id}/questions/{question}`: answers an open question.
pub(crate) async fn answer_question(
    ctx: HandlerContext,
    PathOf((id, question)): PathOf<(String, String)>,
    JsonBody(body): JsonBody<AnswerBody>,
) -> Result<JsonAnswer<Accepted>, Problem> {
    let session = ctx.find_session(&id).await?.id;
    let number = question.parse().map_err(|_| Problem::not_found("open question", &question))?;
    submit_answer(&ctx, &session, number, body)?;
    Ok(JsonAnswer(Accepted { accepted: true }))
}

/// Passes a person's answer to the turn that waits for it.
pub(crate) fn submit_answer(
    ctx: &HandlerContext,
    session: &str,
    question: u64,
    body: AnswerBody,
) -> Result<(), Problem> {
    let answer = body.into_person_answer()?;
    Ok(ctx.service.answer_question(session, question, answer, &ctx.caller.actor)?)
}

/// Lists the questions with which a turn now waits for a person.
pub(crate) fn list_turn_questions(ctx: &HandlerContext, turn: &RunningTurn) -> Vec<QuestionBody> {
    let open = ctx.service.open_questions(Some(&turn.session)).into_iter();
    let of_turn = open.filter(|(_, question)| question.message == turn.message);
    of_turn.map(|(id, question)| QuestionBody::from_open_question(id, question)).collect()
}

/// The open questions of one session, or of all sessions of the tenant.
fn open_questions(ctx: &HandlerContext, session: Option<&str>) -> Questions {
    let open = ctx.service.open_questions(session);
    Questions {
        questions: open
            .into_iter()
            .map(|(id, open)| QuestionBody::from_open_question(id, open))
            .collect(),
    }
}

impl QuestionBody {
    /// Converts an open question to the form of an answer of the API.
    fn from_open_question(session: String, open: OpenQuestion) -> Self {
        let OpenQuestion { id, message, agent, kind, asked } = open;
        match kind {
            QuestionKind::Permission { tool, arguments, reach } => {
                let CallReach { mounts, hosts, secrets } = reach;
                let mount = |ReachedMount { path, access }| ReachedBody { path, access };
                let mounts = mounts.into_iter().map(mount).collect();
                Self::Permission {
                    id,
                    session,
                    message,
                    agent,
                    asked,
                    tool,
                    arguments,
                    mounts,
                    hosts,
                    secrets,
                }
            }
            QuestionKind::Clarify { question, options } => {
                Self::Clarify { id, session, message, agent, asked, question, options }
            }
        }
    }
}

impl AnswerBody {
    /// Checks that exactly one of `answer` and `text` is set; an empty text means: the person has no answer.
    fn into_person_answer(self) -> Result<PersonAnswer, Problem> {
        match (self.answer, self.text) {
            (Some(word), None) => Ok(PersonAnswer::Permission(match word {
                Permission::Yes => Approval::Yes,
                Permission::ForRun => Approval::ForRun,
                Permission::No => Approval::No,
            })),
            (None, Some(text)) if text.chars().count() > MAX_ANSWER => {
                let begin = ShownText::clip_line(&text, 40);
                let detail = format!("`{begin}` has more than {MAX_ANSWER} characters");
                Err(Problem::invalid(detail))
            }
            (None, Some(text)) => {
                Ok(PersonAnswer::Text(Some(text).filter(|text| !text.trim().is_empty())))
            }
            (None, None) | (Some(_), Some(_)) => {
                Err(Problem::invalid("an answer is either `answer` or `text`"))
            }
        }
    }
}
