//! `POST /v1/chat/completions`: a turn whose request contains the whole conversation.

use std::sync::Arc;

use axum::extract::{FromRequest as _, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use belljar_agent::{CallerInput, TextRetention};
use belljar_session::{RunningTurn, TurnRequest};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::turn::check_name;
use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonBody, json_as};
use crate::openai::answer::Completion;
use crate::openai::begin::{BegunTurn, ToBegin};
use crate::openai::chat_stream::ChatStream;
use crate::openai::errors::no_model;
use crate::openai::finished::FinishedTurn;
use crate::openai::left_out::IgnoredParts;
use crate::openai::params::{self, check_parameters};
use crate::openai::{
    add_turn_headers, asked, begin, entries, forbid_retry, form, ids, live, messages, tools,
};
use crate::stream::sse::FrameSender;

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

/// `POST /v1/chat/completions`: runs a turn, and answers at its end or with a stream.
pub(crate) async fn create_completion(
    ctx: HandlerContext,
    request: Request,
) -> Result<Response, Problem> {
    let JsonBody(body) = JsonBody::<CompletionBody>::from_request(request, &()).await?;
    let (stream, model) = (body.stream.unwrap_or_default(), body.model.clone());
    let usage = body.stream_options.clone().unwrap_or_default().include_usage;
    // Text that a stream has sent cannot be withdrawn.
    let stays = if stream { TextRetention::Top } else { TextRetention::Nothing };
    let goes_on = body.store == Some(true);
    let mut left = IgnoredParts::default();
    let turn = match body.into_turn(&ctx, &mut left).await {
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
    let BegunTurn { ctx, turn, awaited } = begin::begin_turn(ctx, to_begin).await?;
    let run = turn.message.clone();
    if stream {
        let (frames, response) = FrameSender::new(ctx.app.place_hider());
        let created = turn.started / 1000;
        let id = ids::completion_id(&run);
        let wire = ChatStream { id, model, created, usage, said: false };
        let response = add_turn_headers(&turn, kept, &left, response);
        let source = live::TurnSource::Running(Box::new(turn), awaited);
        tokio::spawn(live::stream_turn(ctx, source, frames, whole, wire));
        return Ok(response);
    }
    let answer = completion_answer(&ctx, &turn, &model).await;
    awaited.end_waiting();
    Ok(add_turn_headers(&turn, kept, &left, answer))
}

/// The answer after the end of a turn.
async fn completion_answer(ctx: &HandlerContext, turn: &RunningTurn, model: &str) -> Response {
    tokio::select! {
        biased;
        _ = turn.wait_for_end() => {}
        () = ctx.app.stopped_token().cancelled() => {}
    }
    let finished = match ctx.service.stored_turn(&turn.message).await {
        Ok(stored) => FinishedTurn::from_stored(&stored),
        Err(error) => return forbid_retry(Problem::from(error).into_response()),
    };
    match finished.to_problem() {
        Some(problem) => forbid_retry(problem.into_response()),
        None => json_as(
            StatusCode::OK,
            "application/json",
            &Completion::from_finished(&finished, model),
        ),
    }
}

impl CompletionBody {
    /// Parses the messages and parameters into the turn to begin.
    async fn into_turn(
        self,
        ctx: &HandlerContext,
        left: &mut IgnoredParts,
    ) -> Result<TurnRequest, Problem> {
        check_parameters(params::CHAT, &self.others, left)?;
        form::parse_metadata(self.metadata.as_ref())?;
        let model =
            check_name("model", Some(self.model.clone())).map_err(|_| no_model(&self.model))?;
        let model = model.unwrap_or_default();
        let max = self.max_completion_tokens.or(self.max_tokens);
        let given = self.tools.as_deref().unwrap_or_default();
        let chosen = tools::choose_tools(given, self.tool_choice.as_ref(), left)?;
        let brought = CallerInput {
            tools: chosen.tools,
            choice: chosen.must,
            several: self.parallel_tool_calls.unwrap_or(true),
            form: form::parse_schema(self.response_format.as_ref(), "response_format")?,
            max_output_tokens: form::check_tokens(max, "max_completion_tokens")?,
            temperature: form::check_temperature(self.temperature)?,
            effort: form::parse_effort(self.reasoning_effort.as_deref(), "reasoning_effort")?,
            sampling: form::parse_sampling(form::SamplingRequest {
                top_p: self.top_p,
                presence_penalty: self.presence_penalty,
                frequency_penalty: self.frequency_penalty,
                seed: self.seed,
                stop: self.stop.as_ref(),
            })?,
            ..CallerInput::default()
        };
        let parts = entries::sort_entries(
            messages::entries_from_messages(&self.messages, left)?,
            "messages",
        )?;
        let request =
            asked::turn_from_conversation(ctx, &model, parts, brought, "messages").await?;
        Ok(TurnRequest { forget: self.store == Some(false), ..request })
    }
}
