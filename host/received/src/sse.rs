//! Decodes server-sent events from a stream of bytes.
//!
//! The crate `eventsource-stream` would not do: a peer can make it panic with a byte order mark, and take
//! quadratic time with many short lines. This decoder does bounded work per byte, and stores at most one
//! event, whose size the caller limits.

use std::mem::take;

/// The byte order mark of UTF-8, with which a stream may begin.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// An event, with its fields as the peer wrote them; `None`: the event lacks the field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The type of the event, for example `ping`; empty if the event names none.
    pub name: Vec<u8>,
    /// The data, with a line feed between two lines.
    pub data: Option<Vec<u8>>,
    /// The id from which a broken stream can be resumed.
    pub id: Option<Vec<u8>>,
    /// How long to wait before a broken stream is resumed, in milliseconds, as text.
    pub retry: Option<Vec<u8>>,
}

/// An event has more bytes than the caller allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is too long")]
pub struct EventTooLong;

/// Decodes events from a stream that arrives in pieces.
///
/// ```
/// use belljar_received::sse::EventDecoder;
///
/// let mut decoder = EventDecoder::new(1 << 20);
/// let mut piece = &b"event: greeting\ndata: hello\n\ndata: unfin"[..];
/// let event = decoder.next_event(&mut piece)?.unwrap();
/// assert_eq!((&event.name[..], event.data.as_deref()), (&b"greeting"[..], Some(&b"hello"[..])));
/// assert_eq!(decoder.next_event(&mut piece)?, None);
/// # Ok::<_, belljar_received::sse::EventTooLong>(())
/// ```
#[derive(Debug, Default)]
pub struct EventDecoder {
    /// The line that is being received.
    line: Vec<u8>,
    /// The event that is being received.
    event: SseEvent,
    /// The bytes of the event's complete lines.
    event_bytes: usize,
    most: usize,
    /// Whether the last byte was a carriage return, so that a line feed right after does not end another
    /// line.
    after_return: bool,
    /// Whether the first line is complete, so that a byte order mark is no longer skipped.
    begun: bool,
    takes_bare: bool,
}

impl EventDecoder {
    /// Makes a decoder for the start of a stream. `most`: the most bytes of an event, names of fields
    /// included.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Returns this decoder for streams that do not keep to the format: it also accepts a line of bare JSON
    /// as data, and the field `error`, as llama.cpp writes, which then names the event.
    #[must_use]
    pub fn taking_bare_json(self) -> Self {
        Self { takes_bare: true, ..self }
    }

    /// Returns the next event, and removes its bytes from `piece`. `None`: no event ends in `piece`, and all
    /// its bytes are stored.
    ///
    /// # Errors
    ///
    /// An event has more bytes than allowed.
    pub fn next_event(&mut self, piece: &mut &[u8]) -> Result<Option<SseEvent>, EventTooLong> {
        while let Some((first, tail)) = piece.split_first() {
            if take(&mut self.after_return) && *first == b'\n' {
                *piece = tail;
                continue;
            }
            let end = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, ended) = piece.split_at(end.unwrap_or(piece.len()));
            let size = self.event_bytes.saturating_add(self.line.len()).saturating_add(line.len());
            if size > self.most {
                return Err(EventTooLong);
            }
            self.line.extend_from_slice(line);
            let Some((last, rest)) = ended.split_first() else {
                *piece = ended;
                return Ok(None);
            };
            self.after_return = *last == b'\r';
            *piece = rest;
            if let Some(event) = self.end_line() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Ends the stream: returns the last event if the peer did not send the blank line after it.
    pub fn end(&mut self) -> Option<SseEvent> {
        let line_end = if self.line.is_empty() { None } else { self.end_line() };
        line_end.or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let held = take(&mut self.line);
        let mut line = &held[..];
        if !std::mem::replace(&mut self.begun, true) {
            while let Some(rest) = line.strip_prefix(BOM) {
                line = rest;
            }
        }
        let event = if line.is_empty() { self.end_event() } else { None };
        if !line.is_empty() {
            self.event_bytes = self.event_bytes.saturating_add(line.len());
            self.set_field(line);
        }
        // Reuse the line's allocation for the next line.
        self.line = held;
        self.line.clear();
        event
    }

    fn set_field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.add_data(value),
            b"event" => self.event.name = value.to_vec(),
            b"id" => self.event.id = Some(value.to_vec()),
            b"retry" => self.event.retry = Some(value.to_vec()),
            b"error" if self.takes_bare => {
                self.event.name = name.to_vec();
                self.add_data(value);
            }
            _ if self.takes_bare && line.starts_with(b"{") => self.add_data(line),
            // A line with an empty name is a comment; unknown fields are ignored.
            _ => {}
        }
    }

    fn add_data(&mut self, line: &[u8]) {
        match &mut self.event.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(line);
            }
            None => self.event.data = Some(line.to_vec()),
        }
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        // Cheap, because a peer may send nothing but blank lines.
        if take(&mut self.event_bytes) == 0 {
            return None;
        }
        Some(take(&mut self.event)).filter(|event| *event != SseEvent::default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<SseEvent>, EventTooLong> {
        let (mut events, mut decoder) = (Vec::new(), EventDecoder::new(4 << 20));
        for mut piece in pieces.iter().copied() {
            while let Some(event) = decoder.next_event(&mut piece)? {
                events.push(event);
            }
        }
        Ok(events)
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.into(), data: Some(data.into()), ..SseEvent::default() }
    }

    #[test]
    fn all_line_endings_comments_and_unknown_fields_are_understood() {
        let text = "\u{feff}: hello\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\nid: 7\ndata\n\nretry: 3\n\ndata: x\r\r";
        let numbered = SseEvent { id: Some(b"7".to_vec()), ..event("", "") };
        let wait = SseEvent { retry: Some(b"3".to_vec()), ..SseEvent::default() };
        let expected = [event("a", "1\n2"), numbered, wait, event("", "x")];
        assert_eq!(decode(&[text.as_bytes()]).unwrap(), expected);
    }

    #[test]
    fn a_mark_of_the_encoding_is_no_part_of_the_first_line() {
        let marked = b"\xef\xbb\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n";
        assert_eq!(decode(&[marked]).unwrap(), [event("", "1")]);
    }

    #[test]
    fn data_without_the_name_of_its_field_is_taken_where_the_reader_wants_it() {
        let text = b"{\"a\": 1}\n\nerror: no\n\n";
        assert_eq!(decode(&[text]).unwrap(), []);
        let mut decoder = EventDecoder::new(99).taking_bare_json();
        let mut piece = &text[..];
        assert_eq!(decoder.next_event(&mut piece).unwrap(), Some(event("", "{\"a\": 1}")));
        assert_eq!(decoder.next_event(&mut piece).unwrap(), Some(event("error", "no")));
    }

    #[test]
    fn an_event_without_a_blank_line_is_returned_at_the_end() {
        let mut decoder = EventDecoder::new(99);
        assert_eq!(decoder.next_event(&mut &b"data: 1\ndata: 2"[..]).unwrap(), None);
        assert_eq!(decoder.end(), Some(event("", "1\n2")));
        assert_eq!(decoder.end(), None);
    }

    #[test]
    fn an_event_that_never_ends_is_refused_at_the_bound() {
        for line in
            [vec![b'x'; 1 << 20], b"data: 0123456789\n".repeat(65_536), b"data\n".repeat(209_716)]
        {
            assert_eq!(decode(&[&line[..]; 6]), Err(EventTooLong));
        }
        assert_eq!(
            decode(&[&b"data: 0123456789\n\n".repeat(65_536)[..]; 6]).unwrap().len(),
            6 * 65_536
        );
    }

    proptest! {
        #[test]
        fn how_the_stream_is_cut_into_pieces_makes_no_difference(
            text in "(data: ?[a-zé:\u{feff}]{0,4}|event: b|:c|)?(\n|\r|\r\n)((data|event)(: x)?(\n|\r|\r\n)){0,6}\n\n",
            cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let whole = decode(&[text.as_bytes()]).unwrap();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| *at <= text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            prop_assert_eq!(decode(&pieces).unwrap(), whole);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&bytes]);
        }
    }
}
