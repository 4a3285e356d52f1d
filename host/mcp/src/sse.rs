//! Reads the messages in a stream of server-sent events, and the position from which a stream that ended can
//! be resumed.

use std::time::Duration;

use belljar_received::sse::{EventDecoder, EventTooLong};
use http::HeaderValue;

use crate::limits::{MAX_MESSAGE, MAX_RETRY, MAX_SESSION};

/// The state of reading between two pieces of a stream.
#[derive(Debug)]
pub(crate) struct EventReader {
    decoder: EventDecoder,
    last: Option<HeaderValue>,
    retry: Option<Duration>,
}

impl Default for EventReader {
    fn default() -> Self {
        Self { decoder: EventDecoder::new(MAX_MESSAGE), last: None, retry: None }
    }
}

impl EventReader {
    /// The id of the last event that has one, and the wait before the stream is resumed after it.
    pub(crate) fn resumed_from(&self) -> Option<(HeaderValue, Duration)> {
        let wait = self.retry.unwrap_or(MAX_RETRY).min(MAX_RETRY);
        self.last.clone().map(|last| (last, wait))
    }

    /// Begins a stream that continues an ended one; a partial event is dropped.
    pub(crate) fn begin_anew(&mut self) {
        self.decoder = EventDecoder::new(MAX_MESSAGE);
    }

    /// Reads bytes from `piece`, and returns the data of the next event. Skips events without data, and
    /// events with another name than `message`, for example `ping`, which servers send to keep a stream open.
    pub(crate) fn next_data(&mut self, piece: &mut &[u8]) -> Result<Option<Vec<u8>>, EventTooLong> {
        while let Some(event) = self.decoder.next_event(piece)? {
            if let Some(id) = event.id {
                let fits = !id.is_empty() && id.len() <= MAX_SESSION;
                self.last = HeaderValue::from_bytes(&id).ok().filter(|_| fits);
            }
            if let Some(retry) = event.retry {
                let millis =
                    std::str::from_utf8(&retry).ok().and_then(|text| text.trim().parse().ok());
                self.retry = millis.map(Duration::from_millis);
            }
            let is_message = matches!(event.name.trim_ascii(), b"message" | b"");
            if let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(events: &mut EventReader, mut piece: &[u8]) -> Result<Vec<Vec<u8>>, EventTooLong> {
        let mut all = Vec::new();
        while let Some(data) = events.next_data(&mut piece)? {
            all.push(data);
        }
        Ok(all)
    }

    #[test]
    fn an_event_of_another_name_is_passed_over() {
        let mut events = EventReader::default();
        let text = b"event: ping\ndata: {}\n\nevent:heartbeat\ndata: x\n\nevent: message\ndata: 1\n\ndata: 2\n\n";
        assert_eq!(push(&mut events, text).unwrap(), [b"1", b"2"]);
        push(&mut events, b"event: ping\n").unwrap();
        events.begin_anew();
        assert_eq!(push(&mut events, b"data: 3\n\n").unwrap(), [b"3"]);
    }

    #[test]
    fn a_stream_is_resumed_from_its_last_event_and_waits_no_longer_than_it_may() {
        let mut events = EventReader::default();
        assert_eq!(events.resumed_from(), None);
        push(&mut events, b"id: 7\nretry: 5\ndata:\n\n").unwrap();
        let (last, wait) = events.resumed_from().unwrap();
        assert_eq!((last.as_bytes(), wait), (&b"7"[..], Duration::from_millis(5)));
        push(&mut events, b"id: 8\nretry: 999999999\n\nid: 9\ndata: half").unwrap();
        let (last, wait) = events.resumed_from().unwrap();
        assert_eq!(
            (last.as_bytes(), wait),
            (&b"8"[..], MAX_RETRY),
            "half an event is asked for again"
        );
        events.begin_anew();
        assert_eq!(push(&mut events, b"data: whole\n\n").unwrap(), [b"whole"]);
        push(&mut events, format!("id: {}\n\n", "x".repeat(600)).as_bytes()).unwrap();
        assert_eq!(events.resumed_from(), None, "an id that is none is forgotten");
    }

    #[test]
    fn an_event_without_an_end_is_not_held_without_one() {
        let mut events = EventReader::default();
        let piece = vec![b'x'; 1 << 20];
        assert!((0..=8).any(|_| push(&mut events, &piece).is_err()));
        let mut events = EventReader::default();
        let line = [b"data: ".to_vec(), vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
        assert!((0..=8).any(|_| push(&mut events, &line).is_err()));
    }
}
