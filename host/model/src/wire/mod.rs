//! Models that are reached over HTTP: one driver for retries, time limits and streaming, and one dialect for
//! each API.

mod answer;
mod anthropic;
mod body;
mod context;
mod endpoint;
mod events;
mod failure;
mod form;
mod history;
mod lenient;
mod masked;
mod openai;
mod reason;
mod sse;
mod thoughts;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backon::BackoffBuilder as _;
use belljar_received::json::mend_text;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use tokio::time::Instant;

pub(crate) use answer::{AttemptSink, StreamedAnswer};
pub(crate) use endpoint::Endpoint;
pub use endpoint::{EndpointError, http_client, http_client_builder};

use crate::limits::{
    AFTER_FINISH_WAIT, MAX_ATTEMPTS, MAX_ERROR_BODY_BYTES, MAX_EVENT_BYTES, MAX_RETRY_AFTER,
    RETRY_MAX_DELAY, RETRY_MIN_DELAY,
};
use crate::text::quote_text;
use crate::wire::body::{BodyError, WireBody};
use crate::wire::form::{ReasoningScope, RequestForm};
use crate::wire::masked::KeyMask;
use crate::{
    CallContext, ChatModel, ChatRequest, Effort, ModelError, ModelReply, ModelTimeouts,
    StreamEvent, TimeoutPhase,
};

/// A model behind an HTTP API, built by [`crate::ModelConfig::build_model`].
#[derive(Debug)]
pub struct WireModel {
    id: String,
    dialect: WireDialect,
    settings: RequestSettings,
    endpoint: Endpoint,
    retries: RetryPolicy,
    images: bool,
    /// The optional fields of the last request that the server accepted.
    form: Mutex<RequestForm>,
}

/// How often a failed call is attempted again, and after which delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts, including the first; 1 = no retries. Default:
    /// [`MAX_ATTEMPTS`](crate::limits::MAX_ATTEMPTS).
    pub attempts: u32,
    /// The delay before the first retry. It doubles each time, and a random time of up to the same length is
    /// added. Default: [`RETRY_MIN_DELAY`](crate::limits::RETRY_MIN_DELAY).
    pub min_delay: Duration,
    /// The largest delay before the random part is added. Default:
    /// [`RETRY_MAX_DELAY`](crate::limits::RETRY_MAX_DELAY).
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: MAX_ATTEMPTS, min_delay: RETRY_MIN_DELAY, max_delay: RETRY_MAX_DELAY }
    }
}

/// The API that a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireDialect {
    OpenAi(MaxTokensField),
    Anthropic,
}

/// The field of a request with the output limit, for OpenAI-compatible servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokensField {
    /// The older name, which every compatible server knows.
    MaxTokens,
    /// The newer name, which OpenAI's own reasoning models require.
    MaxCompletionTokens,
}

/// The configured part of every request of a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestSettings {
    pub(crate) model: String,
    /// The kind of API, name and host of the model, for example `openai:kimi-k2@api.moonshot.ai`; its
    /// reasoning is labelled with it.
    pub(crate) identity: String,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) temperature: Option<f64>,
    pub(crate) effort: Option<Effort>,
    /// Fields that only this server knows, see [`crate::ModelConfig::extra_body`].
    pub(crate) extra: serde_json::Map<String, serde_json::Value>,
}

impl RequestSettings {
    /// The additional fields of this request. INV-363: a request with a stranger's text has none.
    pub(crate) fn extra_fields(
        &self,
        request: &ChatRequest,
    ) -> impl Iterator<Item = (&str, &serde_json::Value)> {
        // A field that the request sets itself is not taken from the configuration.
        let (chooses, foreign) = (leaves_choice(request), request.foreign);
        let fields = self.extra.iter().map(|(name, value)| (name.as_str(), value));
        // Servers refuse `tool_choice` in a request without tools.
        fields.filter(move |(name, _)| {
            !foreign && (chooses || *name != "tool_choice") && !request.sampling.sets_field(name)
        })
    }
}

/// Returns whether the request has tools, and leaves the choice to the model or the configuration.
fn leaves_choice(request: &ChatRequest) -> bool {
    !request.tools.is_empty() && request.choice.is_none()
}

/// Builds an answer from the events of one response, for one API.
trait ReplyDecoder: Send {
    /// Parses the next event.
    fn decode_event(
        &mut self,
        event: &str,
        data: &str,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError>;

    /// Parses an answer that is not a stream.
    fn decode_whole(&mut self, body: &str, sink: &mut AttemptSink<'_>) -> Result<(), ModelError>;

    /// How far the answer has arrived.
    fn progress(&self) -> AnswerProgress;

    /// The answer. Called only when it is complete.
    fn into_reply(self: Box<Self>) -> ModelReply;
}

/// How far an answer has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerProgress {
    /// A part of the answer is still missing.
    Partial,
    /// The answer is complete, but the usage may still follow.
    Complete,
    /// The server has ended the stream.
    Over,
}

/// The error of one attempt of a call, and the form of the request to try instead.
struct FailedAttempt {
    error: ModelError,
    /// The optional fields that the server may accept instead, if it has refused one of them.
    other: Option<RequestForm>,
}

impl FailedAttempt {
    /// Masks the key in the error, because the server may have repeated it.
    fn without_key(self, endpoint: &Endpoint) -> Self {
        Self { error: self.error.clean_words(&|text| endpoint.redact(text).into_owned()), ..self }
    }
}

impl From<ModelError> for FailedAttempt {
    fn from(error: ModelError) -> Self {
        Self { error, other: None }
    }
}

/// How a response contains its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseCarrier {
    Stream,
    Json,
    /// Not at all: it is an error or a web page.
    Refusal,
}

impl WireModel {
    /// A model with default retries, without images, and with all optional fields in its requests.
    pub(crate) fn new(
        dialect: WireDialect,
        mut settings: RequestSettings,
        endpoint: Endpoint,
    ) -> Self {
        let provider = match dialect {
            WireDialect::OpenAi(_) => "openai",
            WireDialect::Anthropic => "anthropic",
        };
        let id = format!("{provider}:{}", quote_text(&settings.model));
        settings.identity = format!("{id}@{}", endpoint.host());
        Self {
            id,
            dialect,
            settings,
            endpoint,
            retries: RetryPolicy::default(),
            images: false,
            form: Mutex::new(RequestForm {
                stream: true,
                usage: true,
                stop: true,
                reasoning: ReasoningScope::All,
            }),
        }
    }

    pub(crate) fn with_images(self, images: bool) -> Self {
        Self { images, ..self }
    }

    /// Sets whether requests have `stream_options`, until a server refuses the field.
    pub(crate) fn with_stream_options(self, usage: bool) -> Self {
        self.set_form(RequestForm { usage, ..self.current_form() });
        self
    }

    /// Sets another retry policy.
    #[must_use]
    pub fn with_retries(mut self, retries: RetryPolicy) -> Self {
        self.retries = retries;
        self
    }

    fn current_form(&self) -> RequestForm {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_form(&self, form: RequestForm) {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner) = form;
    }

    /// Attempts the call until it succeeds or may not be retried. If the server refuses a field, the request
    /// is repeated without it.
    async fn with_retrying(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        sink: &mut AttemptSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        let mut form = self.current_form();
        let mut body = self.build_body(request, form)?;
        let mut delays = backon::ExponentialBuilder::new()
            .with_min_delay(self.retries.min_delay)
            .with_max_delay(self.retries.max_delay)
            .with_max_times(usize::try_from(self.retries.attempts.saturating_sub(1)).unwrap_or(0))
            .with_jitter()
            .build();
        let mut attempt = 1;
        loop {
            let FailedAttempt { error, other } =
                match self.attempt_request(request, &body, cx, sink).await {
                    Ok(reply) => {
                        self.set_form(form);
                        return Ok(reply);
                    }
                    Err(failed) => failed.without_key(&self.endpoint),
                };
            if let Some((simpler, without)) = self.simplify_request(request, &body, other)? {
                tracing::debug!(model = %self.id, form = ?simpler, %error, "asking in another form");
                (form, body) = (simpler, without);
                continue;
            }
            // Text that was passed on is final, unless the caller can withdraw it.
            let may_retry = error.is_retryable() && (!sink.has_text() || cx.takes_back);
            let after = match may_retry {
                true => delays.next().and_then(|delay| retry_pause(delay, error.retry_after())),
                false => None,
            };
            let Some(after) = after else {
                return Err(error);
            };
            attempt += 1;
            tracing::debug!(model = %self.id, attempt, ?after, %error, "retrying a model call");
            let reason = error.to_string();
            sink.begin_retry(StreamEvent::Retrying { attempt, after, reason });
            tokio::time::sleep(after).await;
        }
    }

    /// The request without the field that the server has refused; `None` if the body would be the same. The
    /// retries end, because each has fewer fields than the one before.
    fn simplify_request(
        &self,
        request: &ChatRequest,
        body: &Bytes,
        mut other: Option<RequestForm>,
    ) -> Result<Option<(RequestForm, Bytes)>, ModelError> {
        while let Some(form) = other {
            let without = self.build_body(request, form)?;
            if without != *body {
                return Ok(Some((form, without)));
            }
            let next = RequestForm { reasoning: ReasoningScope::Nowhere, ..form };
            other = (next != form).then_some(next);
        }
        Ok(None)
    }

    /// The JSON body of a request, in the form of the model's API.
    fn build_body(&self, request: &ChatRequest, form: RequestForm) -> Result<Bytes, ModelError> {
        let body = match self.dialect {
            WireDialect::OpenAi(field) => {
                openai::request_body(request, &self.settings, field, form)
            }
            WireDialect::Anthropic => anthropic::request_body(request, &self.settings, form),
        };
        body.map(Bytes::from).map_err(|error| ModelError::Protocol {
            message: format!("the request cannot be written as JSON: {error}"),
        })
    }

    /// A decoder for the stream of this server's API.
    fn new_decoder(&self, request: &ChatRequest) -> Box<dyn ReplyDecoder> {
        let model = &self.settings.identity;
        match self.dialect {
            WireDialect::OpenAi(_) => Box::new(openai::OpenAiStream::new(request, model)),
            WireDialect::Anthropic => Box::new(anthropic::AnthropicStream::new(request, model)),
        }
    }

    /// Makes one attempt: sends the body, waits for the response, and reads it as a stream, as JSON or as a
    /// refusal, all within the limit for the first token.
    async fn attempt_request(
        &self,
        request: &ChatRequest,
        body: &Bytes,
        cx: &CallContext<'_>,
        sink: &mut AttemptSink<'_>,
    ) -> Result<ModelReply, FailedAttempt> {
        let form = self.current_form();
        let limit = cx.timeouts.first_token;
        let deadline = Instant::now() + limit;
        let late = |_| ModelError::Timeout { phase: TimeoutPhase::FirstToken, after: limit };
        let response = tokio::time::timeout_at(deadline, self.endpoint.post_body(body.clone()))
            .await
            .map_err(late)?
            .map_err(failure::network_error)?;
        let mut decoder = self.new_decoder(request);
        match detect_carrier(&response) {
            ResponseCarrier::Stream => {
                self.read_stream(response, decoder.as_mut(), deadline, cx.timeouts, sink).await?;
            }
            ResponseCarrier::Json => {
                let body = tokio::time::timeout_at(deadline, read_body(response, MAX_EVENT_BYTES));
                let body = body.await.map_err(late)??;
                decoder.decode_whole(&body, sink)?;
                if decoder.progress() != AnswerProgress::Over {
                    return Err(no_stream().into());
                }
            }
            ResponseCarrier::Refusal => {
                let refusal = self.read_refusal(response, form);
                return Err(tokio::time::timeout_at(deadline, refusal)
                    .await
                    .unwrap_or_else(|elapsed| late(elapsed).into()));
            }
        }
        Ok(decoder.into_reply())
    }

    /// Reads the events of a stream until the answer is complete.
    async fn read_stream(
        &self,
        response: reqwest::Response,
        decoder: &mut dyn ReplyDecoder,
        mut deadline: Instant,
        timeouts: ModelTimeouts,
        sink: &mut AttemptSink<'_>,
    ) -> Result<(), ModelError> {
        let mut body = WireBody::from_response(response)?;
        let mut sse = sse::SseDecoder::default();
        loop {
            let next = tokio::time::timeout_at(deadline, body.next_chunk()).await;
            match next {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => {
                    let ended =
                        sse.end_stream(&mut |event, data| decoder.decode_event(event, data, sink));
                    // An event that was cut off is ignored.
                    if let Err(error) = ended
                        && !matches!(error, ModelError::Protocol { .. })
                    {
                        return Err(error);
                    }
                }
                Ok(Err(_)) | Err(_) => {
                    sse.release_event(&mut |event, data| decoder.decode_event(event, data, sink))?;
                }
            }
            let complete = decoder.progress() != AnswerProgress::Partial;
            let chunk = match next {
                Ok(Ok(Some(chunk))) => chunk,
                // A complete answer is returned, whatever happens afterwards.
                _ if complete => return Ok(()),
                Ok(Ok(None)) => return Err(ModelError::Cut),
                Ok(Err(BodyError::Body(error))) => return Err(error),
                Ok(Err(BodyError::Network(_))) if sink.has_started() => {
                    return Err(ModelError::Cut);
                }
                Ok(Err(BodyError::Network(error))) => return Err(failure::network_error(error)),
                Err(_) => return Err(silence_error(sink.has_started(), timeouts)),
            };
            let mut events = 0_usize;
            let pushed = sse.push(&chunk, &mut |event, data| {
                events += 1;
                decoder.decode_event(event, data, sink)
            });
            match decoder.progress() {
                AnswerProgress::Over => return Ok(()),
                // An error after a complete answer does not affect the answer.
                AnswerProgress::Complete if pushed.is_err() => return Ok(()),
                AnswerProgress::Complete => deadline = Instant::now() + AFTER_FINISH_WAIT,
                AnswerProgress::Partial => pushed?,
            }
            // Any event, including pings, shows that the server is alive; comments do not.
            if decoder.progress() == AnswerProgress::Partial && sink.has_started() && events > 0 {
                deadline = Instant::now() + timeouts.between_tokens;
            }
        }
    }

    /// Reads the error of a response without an answer.
    async fn read_refusal(&self, response: reqwest::Response, form: RequestForm) -> FailedAttempt {
        let status = response.status();
        let header = response.headers().get(RETRY_AFTER);
        let retry_after = header
            .and_then(|value| value.to_str().ok())
            .and_then(|value| failure::retry_after(value, SystemTime::now()));
        let body = match read_body(response, MAX_ERROR_BODY_BYTES).await {
            Ok(body) => body,
            Err(error) if status.is_success() => return error.into(),
            Err(error) => error.to_string(),
        };
        if !status.is_success() {
            let error = failure::from_status(status.as_u16(), retry_after, &body);
            return FailedAttempt { error, other: form.after_refusal(status.as_u16(), &body) };
        }
        no_stream().into()
    }
}

/// Reads at most `most` bytes of a body as text. If the body breaks off, the part that arrived is returned,
/// because nothing explains the error better.
async fn read_body(response: reqwest::Response, most: usize) -> Result<String, ModelError> {
    let mut body = Vec::new();
    let mut reading = WireBody::from_response(response)?;
    while let Ok(Some(chunk)) = reading.next_chunk().await {
        let room = most.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if body.len() >= most {
            break;
        }
    }
    Ok(mend_text(&String::from_utf8_lossy(&body)).into_owned())
}

/// The error when a response is neither a stream nor an answer of a model.
fn no_stream() -> ModelError {
    ModelError::Protocol {
        message: "the server did not answer as a model does; is `base_url` the base of the API?"
            .to_owned(),
    }
}

#[async_trait]
impl ChatModel for WireModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn takes_images(&self) -> bool {
        self.images
    }

    /// Makes the call with retries and within the total time limit, masks the key in all events and in the
    /// answer, and ends early if the caller cancels.
    async fn chat(
        &self,
        request: &ChatRequest,
        cx: &CallContext<'_>,
        events: &mut (dyn FnMut(StreamEvent) + Send),
    ) -> Result<ModelReply, ModelError> {
        if cx.cancel.is_cancelled() {
            return Err(ModelError::Cancelled);
        }
        let mut masked = KeyMask::new(self.endpoint.key(), events);
        let mut events = |event| masked.mask_event(event);
        let mut sink = AttemptSink::new(&mut events);
        let call = async {
            let call = self.with_retrying(request, cx, &mut sink);
            match cx.timeouts.total {
                Some(after) => tokio::time::timeout(after, call)
                    .await
                    .unwrap_or(Err(ModelError::Timeout { phase: TimeoutPhase::Total, after })),
                None => call.await,
            }
        };
        let ended = cx.cancel.run_until_cancelled(call).await;
        masked.flush_all();
        ended.unwrap_or(Err(ModelError::Cancelled)).map(|reply| masked.mask_reply(reply))
    }
}

/// The wait before another attempt; `None` if the provider requests a longer wait than a run can afford.
fn retry_pause(own: Duration, asked: Option<Duration>) -> Option<Duration> {
    match asked {
        Some(asked) if asked > MAX_RETRY_AFTER => None,
        Some(asked) => Some(asked.max(own)),
        None => Some(own),
    }
}

/// The error of a server that sent nothing in time: before the first token, or between two.
fn silence_error(started: bool, timeouts: ModelTimeouts) -> ModelError {
    let (phase, after) = if started {
        (TimeoutPhase::BetweenTokens, timeouts.between_tokens)
    } else {
        (TimeoutPhase::FirstToken, timeouts.first_token)
    };
    ModelError::Timeout { phase, after }
}

/// Detects how a response contains its answer. A missing or unknown content type counts as a stream, because
/// some servers send streams in this way.
fn detect_carrier(response: &reqwest::Response) -> ResponseCarrier {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.map(|kind| String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase());
    match kind.as_deref() {
        _ if response.status() != reqwest::StatusCode::OK => ResponseCarrier::Refusal,
        Some(kind) if kind.contains("json") && !kind.contains("ndjson") => ResponseCarrier::Json,
        Some(kind) if kind.contains("html") => ResponseCarrier::Refusal,
        Some(_) | None => ResponseCarrier::Stream,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_of_the_own_and_the_asked_delay_is_taken_and_too_long_ends_the_call() {
        let second = Duration::from_secs(1);
        assert_eq!(retry_pause(second, None), Some(second));
        assert_eq!(retry_pause(second, Some(second * 9)), Some(second * 9));
        assert_eq!(retry_pause(second, Some(Duration::ZERO)), Some(second));
        assert_eq!(retry_pause(second, Some(MAX_RETRY_AFTER + second)), None);
    }
}
