//! The stream of a chat completion: chunks, the usage if requested, `[DONE]`.

use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::answer::{CompletionUsage, finish_reason};
use crate::openai::errors::ErrorBody;
use crate::openai::finished::Finished;
use crate::openai::ids;
use crate::openai::live::Wire;
use crate::stream::sse::Frames;

/// The state of a stream.
pub(crate) struct ChatStream {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) created: i64,
    /// True if a last chunk has the usage.
    pub(crate) usage: bool,
    /// True after a step with text.
    pub(crate) said: bool,
}

impl ChatStream {
    async fn chunk(&self, frames: &Frames, choices: Value, usage: Value) -> bool {
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
        frames.data(None, chunk.to_string()).await
    }

    async fn delta(&self, frames: &Frames, delta: Value, finish: Option<&str>) -> bool {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        self.chunk(frames, json!([choice]), Value::Null).await
    }

    async fn calls(&self, frames: &Frames, finished: &Finished) -> bool {
        for (place, call) in finished.calls.iter().enumerate() {
            let id = ids::call(&finished.message, place);
            let begun = json!({"tool_calls": [{
                "index": place, "id": id, "type": "function",
                "function": {"name": call.name, "arguments": ""},
            }]});
            let rest = json!({"tool_calls": [{
                "index": place, "function": {"arguments": call.arguments},
            }]});
            if !self.delta(frames, begun, None).await || !self.delta(frames, rest, None).await {
                return false;
            }
        }
        true
    }
}

impl Wire for ChatStream {
    async fn begin(&mut self, frames: &Frames) -> bool {
        self.delta(frames, json!({"role": "assistant", "content": "", "refusal": null}), None).await
    }

    async fn text(&mut self, frames: &Frames, new: bool, text: &str) -> bool {
        let between = if new && self.said { "\n\n" } else { "" };
        self.said = true;
        self.delta(frames, json!({"content": format!("{between}{text}")}), None).await
    }

    async fn end(&mut self, frames: &Frames, finished: &Finished) -> bool {
        if let Some(problem) = finished.problem() {
            return self.broken(frames, &problem).await;
        }
        let usage = serde_json::to_value(CompletionUsage::of(&finished.usage)).unwrap_or_default();
        self.calls(frames, finished).await
            && self.delta(frames, json!({}), Some(finish_reason(finished))).await
            && (!self.usage || self.chunk(frames, json!([]), usage).await)
            && frames.done().await
    }

    async fn broken(&mut self, frames: &Frames, problem: &Problem) -> bool {
        let error = serde_json::to_string(&ErrorBody::of(problem)).unwrap_or_default();
        frames.data(None, error).await && frames.done().await
    }
}
