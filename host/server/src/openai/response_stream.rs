//! The stream of a response: numbered events, each with its item.

use belljar_store::MessageStatus;
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::errors::ErrorBody;
use crate::openai::finished::Finished;
use crate::openai::ids;
use crate::openai::live::Wire;
use crate::openai::resource::{Echo, ResponseBody, call_item, part, text_item};
use crate::stream::sse::Frames;

/// Bytes of a call's arguments in one event.
const ARGUMENTS: usize = 4 << 10;

/// The state of a stream.
pub(crate) struct ResponseStream {
    message: String,
    echo: Echo,
    /// The response at the beginning of the turn.
    begun: Value,
    /// The number of the next event.
    number: u64,
    /// The number of the first that is sent.
    from: u64,
    /// Texts that have been begun.
    texts: usize,
    /// The id of the unfinished text.
    open: Option<String>,
}

impl ResponseStream {
    /// A stream of a turn that runs.
    pub(crate) fn new(running: &Finished, echo: Echo) -> Self {
        let begun = ResponseBody::of(running, &echo);
        let begun = serde_json::to_value(begun).unwrap_or_default();
        let message = running.message.clone();
        Self { message, echo, begun, number: 0, from: 0, texts: 0, open: None }
    }

    /// Skips the events up to this number, which the reader has.
    pub(crate) fn after(self, number: Option<u64>) -> Self {
        Self { from: number.map_or(0, |number| number.saturating_add(1)), ..self }
    }

    async fn event(&mut self, frames: &Frames, kind: &str, mut event: Value) -> bool {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.number);
        self.number += 1;
        if self.number <= self.from {
            return true;
        }
        frames.data(Some(kind), event.to_string()).await
    }

    /// The place and the id of the present text.
    fn place(&self) -> (usize, String) {
        let place = self.texts.saturating_sub(1);
        (place, ids::item("msg", &self.message, place))
    }

    async fn open(&mut self, frames: &Frames) -> bool {
        self.texts += 1;
        self.open = Some(String::new());
        let (place, id) = self.place();
        let item = text_item(&self.message, place, None);
        let added = json!({"output_index": place, "item": item});
        let begun = json!({
            "item_id": id, "output_index": place, "content_index": 0, "part": part(""),
        });
        self.event(frames, "response.output_item.added", added).await
            && self.event(frames, "response.content_part.added", begun).await
    }

    /// Ends the unfinished text, if any.
    async fn close(&mut self, frames: &Frames) -> bool {
        let Some(text) = self.open.take() else { return true };
        let (place, id) = self.place();
        let said = json!({
            "item_id": id, "output_index": place, "content_index": 0,
            "text": text, "logprobs": [],
        });
        let whole = json!({
            "item_id": id, "output_index": place, "content_index": 0, "part": part(&text),
        });
        let item = text_item(&self.message, place, Some(&text));
        let done = json!({"output_index": place, "item": item});
        self.event(frames, "response.output_text.done", said).await
            && self.event(frames, "response.content_part.done", whole).await
            && self.event(frames, "response.output_item.done", done).await
    }

    async fn call(&mut self, frames: &Frames, finished: &Finished, place: usize) -> bool {
        let Some(call) = finished.calls.get(place) else { return true };
        let from = finished.texts.len();
        let (at, id) = (from + place, ids::item("fc", &self.message, from + place));
        let item = call_item(finished, from, place, false);
        let added = json!({"output_index": at, "item": item});
        if !self.event(frames, "response.output_item.added", added).await {
            return false;
        }
        for piece in pieces(&call.arguments, ARGUMENTS) {
            let delta = json!({"item_id": id, "output_index": at, "delta": piece});
            if !self.event(frames, "response.function_call_arguments.delta", delta).await {
                return false;
            }
        }
        let said = json!({
            "item_id": id, "output_index": at, "name": call.name, "arguments": call.arguments,
        });
        let done = json!({"output_index": at, "item": call_item(finished, from, place, true)});
        self.event(frames, "response.function_call_arguments.done", said).await
            && self.event(frames, "response.output_item.done", done).await
    }
}

impl Wire for ResponseStream {
    async fn begin(&mut self, frames: &Frames) -> bool {
        let response = || json!({"response": self.begun});
        let (created, running) = (response(), response());
        self.event(frames, "response.created", created).await
            && self.event(frames, "response.in_progress", running).await
    }

    async fn text(&mut self, frames: &Frames, new: bool, text: &str) -> bool {
        if new && !(self.close(frames).await && self.open(frames).await) {
            return false;
        }
        if let Some(open) = &mut self.open {
            open.push_str(text);
        }
        let (place, id) = self.place();
        let delta = json!({
            "item_id": id, "output_index": place, "content_index": 0,
            "delta": text, "logprobs": [],
        });
        self.event(frames, "response.output_text.delta", delta).await
    }

    async fn end(&mut self, frames: &Frames, finished: &Finished) -> bool {
        if !self.close(frames).await {
            return false;
        }
        let kind = match finished.status {
            MessageStatus::InFlight => {
                return match finished.problem() {
                    Some(problem) => self.broken(frames, &problem).await,
                    None => false,
                };
            }
            MessageStatus::Completed => "response.completed",
            MessageStatus::Partial => "response.incomplete",
            MessageStatus::Failed | MessageStatus::Interrupted | MessageStatus::Cancelled => {
                "response.failed"
            }
        };
        for place in 0..finished.calls.len() {
            if !self.call(frames, finished, place).await {
                return false;
            }
        }
        let response = ResponseBody::of(finished, &self.echo);
        self.event(frames, kind, json!({"response": response})).await && frames.done().await
    }

    async fn broken(&mut self, frames: &Frames, problem: &Problem) -> bool {
        let error = ErrorBody::of(problem).error;
        let event = json!({"code": error.code, "message": error.message, "param": error.param});
        self.event(frames, "error", event).await && frames.done().await
    }
}

/// Splits a text into pieces of at most `most` bytes, between characters.
fn pieces(text: &str, most: usize) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let mut end = most.min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, after) = rest.split_at(end.max(1).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_and_none_is_too_large() {
        let text = "é{\"a\": 1}".repeat(100);
        let pieces = pieces(&text, 7);
        assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= 7));
        assert_eq!(pieces.concat(), text);
    }
}
