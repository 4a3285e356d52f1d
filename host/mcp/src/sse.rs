//! Server-sent events, as far as the protocol needs: the data of each event, and the point from which an
//! ended stream is resumed.

use std::time::Duration;

use http::HeaderValue;

use crate::limits::{MAX_MESSAGE, MAX_RETRY, MAX_SESSION};

/// The mark of a text in UTF-8, which a stream may begin with.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads events from pieces of a stream. Holds the unfinished line and the unfinished event.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    other: bool,
    after_return: bool,
    /// True after the first line: from then on no byte order mark is skipped.
    begun: bool,
    last: Option<HeaderValue>,
    retry: Option<Duration>,
}

/// An event exceeds the largest size of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Events {
    /// The id of the last event that has one, and the wait before the stream is resumed.
    pub(crate) fn resumed_from(&self) -> Option<(HeaderValue, Duration)> {
        let wait = self.retry.unwrap_or(MAX_RETRY).min(MAX_RETRY);
        self.last.clone().map(|last| (last, wait))
    }

    /// Begins a stream that replaces an ended one: half an event is dropped.
    pub(crate) fn begin_anew(&mut self) {
        self.line.clear();
        self.data.clear();
        self.other = false;
        self.after_return = false;
        self.begun = false;
    }

    /// Adds a piece; returns the data of events that are complete now.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut ended = Vec::new();
        for byte in piece {
            let second = std::mem::take(&mut self.after_return) && *byte == b'\n';
            match byte {
                b'\n' if second => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    ended.extend(self.end_line());
                }
                byte => self.line.push(*byte),
            }
            if self.line.len().saturating_add(self.data.len()) > MAX_MESSAGE {
                return Err(TooLong);
            }
        }
        Ok(ended)
    }

    /// An empty line ends an event. Its data is returned, unless it is empty or the event has another name than
    /// `message`: servers send `event: ping` to keep a stream open.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        if line.is_empty() {
            let mut data = std::mem::take(&mut self.data);
            // Each line of data has added a line feed.
            data.pop();
            let other = std::mem::take(&mut self.other);
            return (!data.is_empty() && !other).then_some(data);
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.data.push(b'\n');
        } else if let Some(name) = line.strip_prefix(b"event:") {
            self.other = !matches!(name.trim_ascii(), b"message" | b"");
        } else if let Some(id) = line.strip_prefix(b"id:") {
            let id = id.strip_prefix(b" ").unwrap_or(id);
            let fits = !id.is_empty() && id.len() <= MAX_SESSION;
            self.last = HeaderValue::from_bytes(id).ok().filter(|_| fits);
        } else if let Some(retry) = line.strip_prefix(b"retry:") {
            let millis = std::str::from_utf8(retry).ok().and_then(|text| text.trim().parse().ok());
            self.retry = millis.map(Duration::from_millis);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let text = b": hello\nevent: message\ndata: {\"a\":\ndata: 1}\n\r\ndata:x\r\rid: 1\n\n";
        let want = [b"{\"a\":\n1}".to_vec(), b"x".to_vec()];
        for size in 1..text.len() {
            let mut events = Events::default();
            let pieces = text.chunks(size).map(|piece| events.push(piece).unwrap());
            let found: Vec<_> = pieces.flatten().collect();
            assert_eq!(found, want, "{size}");
        }
    }

    #[test]
    fn a_mark_of_the_encoding_is_no_part_of_the_first_line() {
        let mut events = Events::default();
        assert_eq!(events.push(b"\xef\xbb\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n").unwrap(), [b"1"]);
        events.begin_anew();
        assert_eq!(events.push(b"\xef\xbb\xbfdata: 3\n\n").unwrap(), [b"3"]);
    }

    #[test]
    fn an_event_of_another_name_is_passed_over() {
        let mut events = Events::default();
        let text = b"event: ping\ndata: {}\n\nevent:heartbeat\ndata: x\n\nevent: message\ndata: 1\n\ndata: 2\n\n";
        assert_eq!(events.push(text).unwrap(), [b"1", b"2"]);
        events.push(b"event: ping\n").unwrap();
        events.begin_anew();
        assert_eq!(events.push(b"data: 3\n\n").unwrap(), [b"3"]);
    }

    #[test]
    fn a_stream_is_resumed_from_its_last_event_and_waits_no_longer_than_it_may() {
        let mut events = Events::default();
        assert_eq!(events.resumed_from(), None);
        events.push(b"id: 7\nretry: 5\ndata:\n\n").unwrap();
        let (last, wait) = events.resumed_from().unwrap();
        assert_eq!((last.as_bytes(), wait), (&b"7"[..], Duration::from_millis(5)));
        events.push(b"id: 8\nretry: 999999999\n\ndata: half").unwrap();
        assert_eq!(events.resumed_from().unwrap().1, MAX_RETRY);
        events.begin_anew();
        assert_eq!(events.push(b"data: whole\n\n").unwrap(), [b"whole"]);
        events.push(format!("id: {}\n", "x".repeat(600)).as_bytes()).unwrap();
        assert_eq!(events.resumed_from(), None, "an id that is none is forgotten");
    }

    #[test]
    fn an_event_without_an_end_is_not_held_without_one() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        assert!((0..=8).any(|_| events.push(&piece).is_err()));
        let mut events = Events::default();
        let line = [b"data: ".to_vec(), vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
        assert!((0..=8).any(|_| events.push(&line).is_err()));
    }
}
