//! `POST /v1/responses`: runs one turn, which later requests can continue.

use std::sync::Arc;

use axum::extract::{FromRequest as _, Request};
use axum::response::{IntoResponse as _, Response};
use belljar_agent::{CallerInput, TextRetention};
use belljar_session::TurnRequest;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::api::turn::check_name;
use crate::app::HandlerContext;
use crate::http::problem::Problem;
use crate::http::respond::{JsonAnswer, JsonBody};
use crate::openai::begin::{BegunTurn, ToBegin};
use crate::openai::errors::no_model;
use crate::openai::left_out::IgnoredParts;
use crate::openai::params::{self, check_parameters};
use crate::openai::resource::{EchoWire, RequestEcho};
use crate::openai::response_stream::ResponseStream;
use crate::openai::stored::{find_finished, find_response};
use crate::openai::{
    add_turn_headers, asked, begin, content, entries, form, items, live, references, tools,
};
use crate::stream::sse::FrameSender;

/// A response to be made. Other parameters are left out, and named in the header `X-Belljar-Ignored`; the
/// guide lists those that are taken without an effect, and the two that are refused.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct NewResponseBody {
    /// The agent.
    model: String,
    /// A text, or items.
    input: Value,
    /// The response whose conversation this one continues.
    previous_response_id: Option<String>,
    /// Words beside the input, for this response alone. The agent's own prompt stays.
    instructions: Option<String>,
    /// Tools that the caller executes: functions.
    tools: Option<Vec<Value>>,
    /// `auto`, `none`, `required`, or a function of `tools`.
    tool_choice: Option<Value>,
    /// Whether a step may call several of them. Default: yes.
    parallel_tool_calls: Option<bool>,
    /// `format`: `text`, `json_object` or `json_schema`.
    text: Option<Value>,
    /// Most tokens of each answer of the model.
    #[schema(minimum = 1)]
    max_output_tokens: Option<u64>,
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
    /// Words before which the answer ends, as chat completions have them: one, or up to four.
    stop: Option<Value>,
    /// `effort`: how much the model should think.
    reasoning: Option<Value>,
    /// `false`: the session is deleted when it has answered, and the turn is cancelled when the connection
    /// is closed before.
    store: Option<bool>,
    /// Whether it is answered at once, and read later.
    background: Option<bool>,
    /// Whether it comes event by event.
    stream: Option<bool>,
    /// Notes of the caller's.
    metadata: Option<Value>,
    #[serde(flatten)]
    #[schema(ignore)]
    others: Map<String, Value>,
}

/// `POST /v1/responses`: begins a turn, and answers at its end, with a stream, or at once for a turn in the
/// background.
pub(crate) async fn create_response(
    ctx: HandlerContext,
    request: Request,
) -> Result<Response, Problem> {
    let JsonBody(body) = JsonBody::<NewResponseBody>::from_request(request, &()).await?;
    let (stream, background) =
        (body.stream.unwrap_or_default(), body.background.unwrap_or_default());
    let model = body.model.clone();
    // Text that a stream has sent cannot be withdrawn; a background turn may be streamed later.
    let stays = if stream || background { TextRetention::Top } else { TextRetention::Nothing };
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
        model,
        by: begin::RESPONSES,
        left: Arc::clone(&left),
        stays: kept || background,
    };
    let BegunTurn { ctx, turn, awaited } = begin::begin_turn(ctx, to_begin).await?;
    let run = turn.message.clone();
    if stream {
        let (running, echo) = find_finished(&ctx, &run).await?;
        let (frames, response) = FrameSender::new(ctx.app.place_hider());
        let wire = ResponseStream::new(&running.to_running(), echo);
        let response = add_turn_headers(&turn, kept, &left, response);
        let source = live::TurnSource::Running(Box::new(turn), awaited);
        tokio::spawn(live::stream_turn(ctx, source, frames, whole, wire));
        return Ok(response);
    }
    if !background {
        tokio::select! {
            biased;
            _ = turn.wait_for_end() => {}
            // The server stops: the turn is answered as in progress, and resumed at the next start.
            () = ctx.app.stopped_token().cancelled() => {}
        }
    }
    let answer = match find_response(&ctx, &run).await {
        Ok(response) => JsonAnswer(response).into_response(),
        Err(problem) => problem.into_response(),
    };
    awaited.end_waiting();
    Ok(add_turn_headers(&turn, kept, &left, answer))
}

impl NewResponseBody {
    /// Parses the input and parameters into the turn to begin.
    async fn into_turn(
        mut self,
        ctx: &HandlerContext,
        left: &mut IgnoredParts,
    ) -> Result<TurnRequest, Problem> {
        check_parameters(params::RESPONSES, &self.others, left)?;
        params::leave_others("text", self.text.as_ref(), &["format", "verbosity"], left);
        params::leave_others("reasoning", self.reasoning.as_ref(), &["effort"], left);
        let model =
            check_name("model", Some(self.model.clone())).map_err(|_| no_model(&self.model))?;
        let model = model.unwrap_or_default();
        let store = self.store.unwrap_or(true);
        if !store && self.background == Some(true) {
            let detail = "a response in the background has to be stored: `store` cannot be `false`";
            return Err(params::invalid_value("background", detail));
        }
        let mut items = items::input_items(self.input.take())?;
        references::resolve_references(ctx, &mut items).await?;
        let mut parts = entries::sort_entries(items::entries_from_items(&items, left)?, "input")?;
        content::without_bytes(&mut items);
        if let Some(instructions) =
            self.instructions.as_ref().filter(|text| !text.trim().is_empty())
        {
            parts.context = Some(match parts.context {
                Some(context) => format!("{instructions}\n\n{context}"),
                None => instructions.clone(),
            });
        }
        let (brought, echo) = self.parse_brought(items, &model, store, left)?;
        let request = match &self.previous_response_id {
            Some(id) => {
                let previous = super::stored::find_previous(ctx, id).await?;
                asked::turn_after_response(ctx, &model, &previous, parts, brought).await?
            }
            None => asked::turn_from_conversation(ctx, &model, parts, brought, "input").await?,
        };
        let entrance = Some(serde_json::to_value(echo).unwrap_or_default());
        Ok(TurnRequest { forget: !store, entrance, ..request })
    }

    /// Parses the parts of the request other than its text, and those that the response repeats.
    fn parse_brought(
        &self,
        input: Vec<Value>,
        model: &str,
        store: bool,
        left: &mut IgnoredParts,
    ) -> Result<(CallerInput, RequestEcho), Problem> {
        let given = self.tools.as_deref().unwrap_or_default();
        let chosen = tools::choose_tools(given, self.tool_choice.as_ref(), left)?;
        let format = format_of(self.text.as_ref(), left);
        let effort = self.reasoning.as_ref().and_then(|it| it.get("effort"));
        let effort = effort.and_then(Value::as_str);
        let parallel = self.parallel_tool_calls.unwrap_or(true);
        let brought = CallerInput {
            tools: chosen.tools,
            choice: chosen.must,
            several: parallel,
            form: form::parse_schema(Some(&format), "text.format")?,
            max_output_tokens: form::check_tokens(self.max_output_tokens, "max_output_tokens")?,
            temperature: form::check_temperature(self.temperature)?,
            effort: form::parse_effort(effort, "reasoning.effort")?,
            sampling: form::parse_sampling(form::SamplingRequest {
                top_p: self.top_p,
                presence_penalty: self.presence_penalty,
                frequency_penalty: self.frequency_penalty,
                seed: self.seed,
                stop: self.stop.as_ref(),
            })?,
            ..CallerInput::default()
        };
        let echo = RequestEcho {
            wire: EchoWire::Responses,
            model: model.to_owned(),
            previous: self.previous_response_id.clone(),
            instructions: self.instructions.clone(),
            input,
            tools: tools::list_tools(given),
            tool_choice: chosen.choice,
            parallel,
            format,
            temperature: self.temperature,
            top_p: self.top_p,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            effort: effort.map(str::to_owned),
            max_output_tokens: self.max_output_tokens,
            store,
            background: self.background.unwrap_or_default(),
            metadata: form::parse_metadata(self.metadata.as_ref())?,
            others: repeated_parameters(&self.others),
        };
        Ok((brought, echo))
    }
}

/// The unused parameters that the response repeats; unknown ones are not stored.
fn repeated_parameters(others: &Map<String, Value>) -> Map<String, Value> {
    let names = ["truncation", "safety_identifier", "prompt_cache_key", "user"];
    let kept =
        names.iter().filter_map(|name| Some(((*name).to_owned(), others.get(*name)?.clone())));
    kept.collect()
}

/// The required format of the answer, in the form of a response.
fn format_of(text: Option<&Value>, left: &mut IgnoredParts) -> Value {
    let part = |name: &str| text.and_then(|text| text.get(name)).filter(|part| !part.is_null());
    if part("verbosity").is_some_and(|it| it != "medium") {
        left.add_part("text.verbosity");
    }
    part("format").cloned().unwrap_or_else(|| json!({"type": "text"}))
}
