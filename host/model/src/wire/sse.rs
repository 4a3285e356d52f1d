//! Decodes the server-sent events of a model's stream, and joins characters that were split between events.

use std::borrow::Cow;

use belljar_received::json::{PairJoiner, mend_bytes};
use belljar_received::sse::{EventDecoder, EventTooLong, SseEvent};

use crate::ModelError;
use crate::limits::{MAX_EVENT_BYTES, MAX_RESPONSE_BYTES};

/// A function that is called for each event with its type (empty if it has none) and its data.
type ReadEvent<'a> = dyn FnMut(&str, &str) -> Result<(), ModelError> + 'a;

/// The state of decoding between two chunks of a stream.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    events: EventDecoder,
    /// The bytes of the whole response so far.
    total_bytes: usize,
    /// INV-470: joins half a surrogate pair with the other half in the next event, or replaces it.
    joiner: PairJoiner,
}

impl Default for SseDecoder {
    fn default() -> Self {
        let events = EventDecoder::new(MAX_EVENT_BYTES).taking_bare_json();
        Self { events, total_bytes: 0, joiner: PairJoiner::default() }
    }
}

impl From<EventTooLong> for ModelError {
    fn from(_: EventTooLong) -> Self {
        Self::TooLarge { what: "bytes in one event", limit: MAX_EVENT_BYTES }
    }
}

impl SseDecoder {
    /// Decodes the next bytes, and calls `each` for every event that they complete.
    pub(crate) fn push(
        &mut self,
        mut chunk: &[u8],
        each: &mut ReadEvent<'_>,
    ) -> Result<(), ModelError> {
        self.total_bytes = self.total_bytes.saturating_add(chunk.len());
        if self.total_bytes > MAX_RESPONSE_BYTES {
            return Err(ModelError::TooLarge { what: "bytes", limit: MAX_RESPONSE_BYTES });
        }
        while let Some(event) = self.events.next_event(&mut chunk)? {
            self.pass_on(&event, each)?;
        }
        Ok(())
    }

    /// Ends the stream: calls `each` for the last event, even if no blank line follows it, and for an event
    /// that waits for the other half of a pair.
    pub(crate) fn end_stream(&mut self, each: &mut ReadEvent<'_>) -> Result<(), ModelError> {
        if let Some(event) = self.events.end() {
            self.pass_on(&event, each)?;
        }
        self.joiner.end(each)
    }

    /// Ends a stream that broke off: calls `each` only for an event that waits for the other half of a pair.
    pub(crate) fn release_event(&mut self, each: &mut ReadEvent<'_>) -> Result<(), ModelError> {
        self.joiner.end(each)
    }

    fn pass_on(&mut self, event: &SseEvent, each: &mut ReadEvent<'_>) -> Result<(), ModelError> {
        let Some(data) = &event.data else { return Ok(()) };
        self.joiner.push_message(&decode_text(&event.name)?, &decode_text(data)?, each)
    }
}

/// The data of an event as text; a character that was cut in two is repaired.
fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>, ModelError> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Cow::Borrowed(text));
    }
    let text = String::from_utf8(mend_bytes(bytes).into_owned());
    let no_text = |_| ModelError::Protocol { message: "the stream is not UTF-8".to_owned() };
    text.map(Cow::Owned).map_err(no_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Result<Vec<(String, String)>, ModelError> {
        let mut events = Vec::new();
        let mut decoder = SseDecoder::default();
        for chunk in chunks {
            decoder.push(chunk, &mut |event, data| {
                events.push((event.to_owned(), data.to_owned()));
                Ok(())
            })?;
        }
        Ok(events)
    }

    #[test]
    fn an_event_without_data_is_passed_over_and_one_with_empty_data_is_not() {
        let text = b"event: a\n\nid: 7\n\nevent: b\ndata\n\n";
        assert_eq!(decode(&[text]).unwrap(), [("b".to_owned(), String::new())]);
    }

    #[test]
    fn many_lines_of_one_event_are_refused_at_the_same_bound() {
        let chunk = b"data: 0123456789\n".repeat(100_000);
        let error = decode(&[&chunk[..]; 4]).unwrap_err();
        assert!(matches!(error, ModelError::TooLarge { limit: MAX_EVENT_BYTES, .. }), "{error:?}");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        assert!(matches!(decode(&[b"data: \xff\n\n"]), Err(ModelError::Protocol { .. })));
    }
}
