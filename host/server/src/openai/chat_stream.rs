//! The stream of a chat completion: chunks, then the usage if requested, then `[DONE]`.

use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::answer::{CompletionUsage, finish_reason};
use crate::openai::errors::ErrorBody;
use crate::openai::finished::FinishedTurn;
use crate::openai::ids;
use crate::openai::live::WireStream;
use crate::stream::sse::FrameSender;

/// The state of the stream of one chat completion.
pub(crate) struct ChatStream {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) created: i64,
    /// True if the caller requested a last chunk with the usage.
    pub(crate) usage: bool,
    /// True after a step with text was sent, so the next one needs a separator.
    pub(crate) said: bool,
}

impl ChatStream {
    /// Sends one chunk with the fields that all chunks have.
    async fn send_chunk(&self, frames: &FrameSender, choices: Value, usage: Value) -> bool {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "service_tier": "default",
            "system_fingerprint": null,
            "choices": choices,
        });
        if self.usage {
            chunk["usage"] = usage;
        }
        frames.send_data(None, chunk.to_string()).await
    }

    async fn send_delta(&self, frames: &FrameSender, delta: Value, finish: Option<&str>) -> bool {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        self.send_chunk(frames, json!([choice]), Value::Null).await
    }

    /// Sends each call of the caller's tools in two chunks: its name, then its arguments.
    async fn send_calls(&self, frames: &FrameSender, finished: &FinishedTurn) -> bool {
        for (place, call) in finished.calls.iter().enumerate() {
            let id = ids::call_id(&finished.message, place);
            let begun = json!({"tool_calls": [{
                "index": place, "id": id, "type": "function",
                "function": {"name": call.name, "arguments": ""},
            }]});
            let rest = json!({"tool_calls": [{
                "index": place, "function": {"arguments": call.arguments},
            }]});
            if !self.send_delta(frames, begun, None).await
                || !self.send_delta(frames, rest, None).await
            {
                return false;
            }
        }
        true
    }
}

impl WireStream for ChatStream {
    async fn begin_stream(&mut self, frames: &FrameSender) -> bool {
        self.send_delta(frames, json!({"role": "assistant", "content": "", "refusal": null}), None)
            .await
    }

    async fn send_text(&mut self, frames: &FrameSender, new: bool, text: &str) -> bool {
        let between = if new && self.said { "\n\n" } else { "" };
        self.said = true;
        self.send_delta(frames, json!({"content": format!("{between}{text}")}), None).await
    }

    /// Sends the calls, the reason of the end, the usage if requested, and `[DONE]`; or an error if the turn
    /// has no answer.
    async fn end_stream(&mut self, frames: &FrameSender, finished: &FinishedTurn) -> bool {
        if let Some(problem) = finished.to_problem() {
            return self.end_broken(frames, &problem).await;
        }
        let usage =
            serde_json::to_value(CompletionUsage::from_usage(&finished.usage)).unwrap_or_default();
        self.send_calls(frames, finished).await
            && self.send_delta(frames, json!({}), Some(finish_reason(finished))).await
            && (!self.usage || self.send_chunk(frames, json!([]), usage).await)
            && frames.send_done().await
    }

    async fn end_broken(&mut self, frames: &FrameSender, problem: &Problem) -> bool {
        let error = serde_json::to_string(&ErrorBody::from_problem(problem)).unwrap_or_default();
        frames.send_data(None, error).await && frames.send_done().await
    }
}
