//! Server-sent events out of a byte stream.
//!
//! Written here because `eventsource-stream` panics on a byte order mark and takes quadratic time
//! on many short lines, and a peer chooses both. This decoder does a bounded amount of work per
//! byte and holds at most one event.

use std::borrow::Cow;

use belljar_received::json::{Joiner, mend_bytes};

use crate::ModelError;
use crate::limits::{MAX_EVENT_BYTES, MAX_RESPONSE_BYTES};

/// The state between two chunks of a stream.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// Data lines of the unfinished event, each with a line feed.
    data: String,
    /// The value of the event's `event` field.
    event: String,
    /// Bytes of the event's lines so far, without `line`.
    event_bytes: usize,
    /// Bytes of the whole response so far.
    total_bytes: usize,
    /// The last byte was a carriage return, so that a line feed now ends no second line.
    after_cr: bool,
    /// A line has been seen, so that a byte order mark is no longer one.
    started: bool,
    /// INV-470: half a surrogate pair is joined with the other one in the next event, or mended.
    joiner: Joiner,
}

impl SseDecoder {
    /// Adds bytes, and passes every event that is now complete to `each`: its type (empty if not stated) and
    /// its data.
    pub(crate) fn push(
        &mut self,
        chunk: &[u8],
        each: &mut dyn FnMut(&str, &str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        self.total_bytes = self.total_bytes.saturating_add(chunk.len());
        if self.total_bytes > MAX_RESPONSE_BYTES {
            return Err(ModelError::TooLarge { what: "bytes", limit: MAX_RESPONSE_BYTES });
        }
        let mut rest = chunk;
        while let Some((first, tail)) = rest.split_first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = tail;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.extend(rest);
            };
            let (line, ended) = rest.split_at(end);
            self.extend(line)?;
            self.after_cr = ended.first() == Some(&b'\r');
            rest = ended.get(1..).unwrap_or_default();
            self.end_line(each)?;
        }
        Ok(())
    }

    /// Ends the stream. Passes on the last event even if the blank line after it is missing, and an event
    /// that waits for the other half of a surrogate pair.
    pub(crate) fn end(
        &mut self,
        each: &mut dyn FnMut(&str, &str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        if !self.line.is_empty() {
            self.end_line(each)?;
        }
        self.dispatch(each)?;
        self.joiner.end(each)
    }

    /// Ends a stream that broke off. Passes on only an event that waits for the other half of a surrogate
    /// pair.
    pub(crate) fn release(
        &mut self,
        each: &mut dyn FnMut(&str, &str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        self.joiner.end(each)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let size = self.event_bytes.saturating_add(self.line.len()).saturating_add(bytes.len());
        if size > MAX_EVENT_BYTES {
            return Err(ModelError::TooLarge {
                what: "bytes in one event",
                limit: MAX_EVENT_BYTES,
            });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(
        &mut self,
        each: &mut dyn FnMut(&str, &str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let bytes = std::mem::take(&mut self.line);
        let text =
            match std::str::from_utf8(&bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => Cow::Owned(String::from_utf8(mend_bytes(&bytes).into_owned()).map_err(
                    |_| ModelError::Protocol { message: "the stream is not UTF-8".to_owned() },
                )?),
            };
        let text = &*text;
        let line = if self.started { text } else { text.trim_start_matches('\u{feff}') };
        self.started = true;
        if line.is_empty() {
            self.dispatch(each)?;
        } else {
            self.event_bytes = self.event_bytes.saturating_add(line.len());
            self.field(line);
        }
        // Keeps the allocation for the next line.
        self.line = bytes;
        self.line.clear();
        Ok(())
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "event" => value.clone_into(&mut self.event),
            // Not of the protocol: llama.cpp writes errors so, others JSON without any name.
            "error" => {
                "error".clone_into(&mut self.event);
                self.data.push_str(value);
                self.data.push('\n');
            }
            _ if line.starts_with('{') => {
                self.data.push_str(line);
                self.data.push('\n');
            }
            // A comment (empty name), `id`, `retry`, or an unknown field.
            _ => {}
        }
    }

    fn dispatch(
        &mut self,
        each: &mut dyn FnMut(&str, &str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let result = match self.data.strip_suffix('\n') {
            Some(data) => self.joiner.push(&self.event, data, each),
            None => Ok(()),
        };
        self.event.clear();
        self.data.clear();
        self.event_bytes = 0;
        result
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn event(event: &str, data: &str) -> (String, String) {
        (event.to_owned(), data.to_owned())
    }

    #[test]
    fn all_line_endings_comments_and_unknown_fields_are_understood() {
        let text = "\u{feff}: hello\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\nid: 7\ndata\n\nretry: 3\n\ndata: x\r\r";
        let expected = [event("a", "1\n2"), event("", ""), event("", "x")];
        assert_eq!(decode(&[text.as_bytes()]).unwrap(), expected);
    }

    #[test]
    fn an_event_that_never_ends_is_refused_at_the_bound() {
        let chunk = vec![b'x'; 1 << 20];
        let chunks: Vec<&[u8]> = std::iter::repeat_n(chunk.as_slice(), 5).collect();
        let error = decode(&chunks).unwrap_err();
        assert!(matches!(error, ModelError::TooLarge { limit: MAX_EVENT_BYTES, .. }), "{error:?}");
    }

    #[test]
    fn many_lines_of_one_event_are_refused_at_the_same_bound() {
        let chunk = b"data: 0123456789\n".repeat(100_000);
        let chunks: Vec<&[u8]> = std::iter::repeat_n(chunk.as_slice(), 4).collect();
        let error = decode(&chunks).unwrap_err();
        assert!(matches!(error, ModelError::TooLarge { limit: MAX_EVENT_BYTES, .. }), "{error:?}");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        assert!(matches!(decode(&[b"data: \xff\n\n"]), Err(ModelError::Protocol { .. })));
    }

    proptest! {
        #[test]
        fn how_the_stream_is_cut_into_chunks_makes_no_difference(
            text in "(data: ?[a-zé:\u{feff}]{0,4}|event: b|:c|)?(\n|\r|\r\n)((data|event)(: x)?(\n|\r|\r\n)){0,6}\n\n",
            cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let whole = decode(&[text.as_bytes()]).unwrap();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| *at <= text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            prop_assert_eq!(decode(&chunks).unwrap(), whole);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&bytes]);
        }
    }
}
