//! The stream of a response: numbered events, each about one output item.

use belljar_store::MessageStatus;
use serde_json::{Value, json};

use crate::http::problem::Problem;
use crate::openai::errors::ErrorBody;
use crate::openai::finished::FinishedTurn;
use crate::openai::ids;
use crate::openai::live::WireStream;
use crate::openai::resource::{RequestEcho, ResponseBody, call_item, text_item, text_part};
use crate::stream::sse::FrameSender;

/// The most bytes of a call's arguments in one event.
const ARGUMENTS: usize = 4 << 10;

/// The state of the event stream of one response.
pub(crate) struct ResponseStream {
    message: String,
    echo: RequestEcho,
    /// The response as it was at the beginning of the turn.
    begun: Value,
    /// The number of the next event.
    number: u64,
    /// The number of the first event to send; the reader has the earlier ones.
    from: u64,
    /// The number of texts that have begun.
    texts: usize,
    /// The id of the text item that is not ended yet.
    open: Option<String>,
}

impl ResponseStream {
    /// The stream of a running turn.
    pub(crate) fn new(running: &FinishedTurn, echo: RequestEcho) -> Self {
        let begun = ResponseBody::from_finished(running, &echo);
        let begun = serde_json::to_value(begun).unwrap_or_default();
        let message = running.message.clone();
        Self { message, echo, begun, number: 0, from: 0, texts: 0, open: None }
    }

    /// Skips the events up to and including this number, because the reader has them.
    pub(crate) fn starting_after(self, number: Option<u64>) -> Self {
        Self { from: number.map_or(0, |number| number.saturating_add(1)), ..self }
    }

    /// Numbers an event and sends it, unless the reader has it already; returns false if the client has
    /// disconnected.
    async fn send_event(&mut self, frames: &FrameSender, kind: &str, mut event: Value) -> bool {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.number);
        self.number += 1;
        if self.number <= self.from {
            return true;
        }
        frames.send_data(Some(kind), event.to_string()).await
    }

    /// The index and id of the present text item.
    fn text_place(&self) -> (usize, String) {
        let place = self.texts.saturating_sub(1);
        (place, ids::item_id("msg", &self.message, place))
    }

    /// Begins the next text item.
    async fn open_text(&mut self, frames: &FrameSender) -> bool {
        self.texts += 1;
        self.open = Some(String::new());
        let (place, id) = self.text_place();
        let item = text_item(&self.message, place, None);
        let added = json!({"output_index": place, "item": item});
        let begun = json!({
            "item_id": id, "output_index": place, "content_index": 0, "part": text_part(""),
        });
        self.send_event(frames, "response.output_item.added", added).await
            && self.send_event(frames, "response.content_part.added", begun).await
    }

    /// Ends the present text item, if there is one.
    async fn close_text(&mut self, frames: &FrameSender) -> bool {
        let Some(text) = self.open.take() else { return true };
        let (place, id) = self.text_place();
        let said = json!({
            "item_id": id, "output_index": place, "content_index": 0,
            "text": text, "logprobs": [],
        });
        let whole = json!({
            "item_id": id, "output_index": place, "content_index": 0, "part": text_part(&text),
        });
        let item = text_item(&self.message, place, Some(&text));
        let done = json!({"output_index": place, "item": item});
        self.send_event(frames, "response.output_text.done", said).await
            && self.send_event(frames, "response.content_part.done", whole).await
            && self.send_event(frames, "response.output_item.done", done).await
    }

    /// Sends one call of a caller's tool: the item, its arguments in pieces, and its end.
    async fn send_call(
        &mut self,
        frames: &FrameSender,
        finished: &FinishedTurn,
        place: usize,
    ) -> bool {
        let Some(call) = finished.calls.get(place) else { return true };
        let from = finished.texts.len();
        let (at, id) = (from + place, ids::item_id("fc", &self.message, from + place));
        let item = call_item(finished, from, place, false);
        let added = json!({"output_index": at, "item": item});
        if !self.send_event(frames, "response.output_item.added", added).await {
            return false;
        }
        for piece in split_text(&call.arguments, ARGUMENTS) {
            let delta = json!({"item_id": id, "output_index": at, "delta": piece});
            if !self.send_event(frames, "response.function_call_arguments.delta", delta).await {
                return false;
            }
        }
        let said = json!({
            "item_id": id, "output_index": at, "name": call.name, "arguments": call.arguments,
        });
        let done = json!({"output_index": at, "item": call_item(finished, from, place, true)});
        self.send_event(frames, "response.function_call_arguments.done", said).await
            && self.send_event(frames, "response.output_item.done", done).await
    }
}

impl WireStream for ResponseStream {
    /// Sends the first two events of a response; false if the client is gone.
    async fn begin_stream(&mut self, frames: &FrameSender) -> bool {
        let response = || json!({"response": self.begun});
        let (created, running) = (response(), response());
        self.send_event(frames, "response.created", created).await
            && self.send_event(frames, "response.in_progress", running).await
    }

    /// Sends a piece of text; a new text first ends the present item and begins the next one.
    async fn send_text(&mut self, frames: &FrameSender, new: bool, text: &str) -> bool {
        if new && !(self.close_text(frames).await && self.open_text(frames).await) {
            return false;
        }
        if let Some(open) = &mut self.open {
            open.push_str(text);
        }
        let (place, id) = self.text_place();
        let delta = json!({
            "item_id": id, "output_index": place, "content_index": 0,
            "delta": text, "logprobs": [],
        });
        self.send_event(frames, "response.output_text.delta", delta).await
    }

    /// Sends the last events: the end of the text, all calls, and the complete response.
    async fn end_stream(&mut self, frames: &FrameSender, finished: &FinishedTurn) -> bool {
        if !self.close_text(frames).await {
            return false;
        }
        let kind = match finished.status {
            MessageStatus::InFlight => {
                return match finished.to_problem() {
                    Some(problem) => self.end_broken(frames, &problem).await,
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
            if !self.send_call(frames, finished, place).await {
                return false;
            }
        }
        let response = ResponseBody::from_finished(finished, &self.echo);
        self.send_event(frames, kind, json!({"response": response})).await
            && frames.send_done().await
    }

    async fn end_broken(&mut self, frames: &FrameSender, problem: &Problem) -> bool {
        let error = ErrorBody::from_problem(problem).error;
        let event = json!({"code": error.code, "message": error.message, "param": error.param});
        self.send_event(frames, "error", event).await && frames.send_done().await
    }
}

/// Splits a text into pieces of at most `most` bytes, between characters.
fn split_text(text: &str, most: usize) -> Vec<&str> {
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
        let pieces = split_text(&text, 7);
        assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= 7));
        assert_eq!(pieces.concat(), text);
    }
}
