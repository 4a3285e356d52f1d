//! `POST /v1/chat/completions`: the messages that are sent are the conversation.

use std::sync::Arc;

use axum::extract::{FromRequest as _, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use belljar_agent::{Brought, Staying};
use belljar_session::{RunningTurn, TurnRequest};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::turn::named;
use crate::app::Ctx;
use crate::http::problem::Problem;
use crate::http::respond::{JsonBody, json_as};
use crate::openai::answer::Completion;
use crate::openai::begin::{Begun, ToBegin};
use crate::openai::chat_stream::ChatStream;
use crate::openai::errors::no_model;
use crate::openai::finished::Finished;
use crate::openai::left_out::Unserved;
use crate::openai::params::{self, check};
use crate::openai::{asked, begin, entries, form, ids, live, messages, not_again, of_turn, tools};
use crate::stream::sse::Frames;

/// A chat completion to be made. Other parameters are left out, and named in the header
/// `X-Belljar-Ignored`; the guide lists those that are taken without an effect.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CompletionBody {
    /// The agent.
    model: String,
    /// The whole conversation, as OpenAI has it.
    messages: Vec<Value>,
    /// Whether the answer comes in chunks.
    stream: Option<bool>,
    /// `include_usage`: whether a last chunk has the usage.
    stream_options: Option<StreamOptions>,
    /// Tools that the caller executes: functions.
    tools: Option<Vec<Value>>,
    /// `auto`, `none`, `required`, or a function of `tools`.
    tool_choice: Option<Value>,
    /// Whether a step may call several of them. Default: yes.
    parallel_tool_calls: Option<bool>,
    /// `text`, `json_object` or `json_schema`.
    response_format: Option<Value>,
    /// Most tokens of each answer of the model.
    #[schema(minimum = 1)]
    max_completion_tokens: Option<u64>,
    /// The same, by its older name.
    #[schema(minimum = 1)]
    max_tokens: Option<u64>,
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// The share of the likeliest tokens that are drawn from, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// -2 to 2.
    #[schema(minimum = -2, maximum = 2)]
    presence_penalty: Option<f64>,
    /// -2 to 2.
    #[schema(minimum = -2, maximum = 2)]
    frequency_penalty: Option<f64>,
    seed: Option<i64>,
    /// Words before which the answer ends: one, or up to four.
    stop: Option<Value>,
    /// How much the model should think.
    reasoning_effort: Option<String>,
    /// `false`: the session is deleted when it has answered. Unless it is `true`, the turn is cancelled
    /// when the connection is closed.
    store: Option<bool>,
    /// Notes of the caller's.
    metadata: Option<Value>,
    #[serde(flatten)]
    #[schema(ignore)]
    others: Map<String, Value>,
}

/// How a stream is to be.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub(crate) struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// `POST /v1/chat/completions`.
pub(crate) async fn complete(ctx: Ctx, request: Request) -> Result<Response, Problem> {
    let JsonBody(body) = JsonBody::<CompletionBody>::from_request(request, &()).await?;
    let (stream, model) = (body.stream.unwrap_or_default(), body.model.clone());
    let usage = body.stream_options.clone().unwrap_or_default().include_usage;
    // Streamed text cannot be withdrawn.
    let stays = if stream { Staying::Top } else { Staying::Nothing };
    let goes_on = body.store == Some(true);
    let mut left = Unserved::default();
    let turn = match body.turn(&ctx, &mut left).await {
        Ok(turn) => turn,
        Err(problem) => return Err(begin::first_unknown(&ctx, &model, problem).await),
    };
    let request = TurnRequest { kept: stays, ..turn };
    let (whole, kept) = (live::is_whole(&request.brought), !request.forget);
    let left = Arc::new(left);
    let to_begin = ToBegin {
        request,
        model: model.clone(),
        by: begin::CHAT,
        left: Arc::clone(&left),
        stays: goes_on,
    };
    let Begun { ctx, turn, awaited } = begin::begin(ctx, to_begin).await?;
    let run = turn.message.clone();
    if stream {
        let (frames, response) = Frames::new(ctx.app.outward());
        let created = turn.started / 1000;
        let id = ids::completion(&run);
        let wire = ChatStream { id, model, created, usage, said: false };
        let response = of_turn(&turn, kept, &left, response);
        let source = live::Source::Running(Box::new(turn), awaited);
        tokio::spawn(live::stream(ctx, source, frames, whole, wire));
        return Ok(response);
    }
    let answer = answered(&ctx, &turn, &model).await;
    awaited.over();
    Ok(of_turn(&turn, kept, &left, answer))
}

/// The answer at the end of a turn.
async fn answered(ctx: &Ctx, turn: &RunningTurn, model: &str) -> Response {
    tokio::select! {
        biased;
        _ = turn.ended() => {}
        () = ctx.app.stopped().cancelled() => {}
    }
    let finished = match ctx.service.stored_turn(&turn.message).await {
        Ok(stored) => Finished::of(&stored),
        Err(error) => return not_again(Problem::from(error).into_response()),
    };
    match finished.problem() {
        Some(problem) => not_again(problem.into_response()),
        None => json_as(StatusCode::OK, "application/json", &Completion::of(&finished, model)),
    }
}

impl CompletionBody {
    /// The requested turn.
    async fn turn(self, ctx: &Ctx, left: &mut Unserved) -> Result<TurnRequest, Problem> {
        check(params::CHAT, &self.others, left)?;
        form::metadata(self.metadata.as_ref())?;
        let model = named("model", Some(self.model.clone())).map_err(|_| no_model(&self.model))?;
        let model = model.unwrap_or_default();
        let max = self.max_completion_tokens.or(self.max_tokens);
        let given = self.tools.as_deref().unwrap_or_default();
        let chosen = tools::chosen(given, self.tool_choice.as_ref(), left)?;
        let brought = Brought {
            tools: chosen.tools,
            choice: chosen.must,
            several: self.parallel_tool_calls.unwrap_or(true),
            form: form::schema(self.response_format.as_ref(), "response_format")?,
            max_output_tokens: form::tokens(max, "max_completion_tokens")?,
            temperature: form::temperature(self.temperature)?,
            effort: form::effort(self.reasoning_effort.as_deref(), "reasoning_effort")?,
            sampling: form::sampling(form::Asked {
                top_p: self.top_p,
                presence_penalty: self.presence_penalty,
                frequency_penalty: self.frequency_penalty,
                seed: self.seed,
                stop: self.stop.as_ref(),
            })?,
            ..Brought::default()
        };
        let parts = entries::sort(messages::entries(&self.messages, left)?, "messages")?;
        let request = asked::of_conversation(ctx, &model, parts, brought, "messages").await?;
        Ok(TurnRequest { forget: self.store == Some(false), ..request })
    }
}
