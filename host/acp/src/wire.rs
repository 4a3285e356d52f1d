//! Reads and writes the lines of the connection, within limits: on a line's length, on unanswered requests,
//! and on updates that wait for a slow editor.

use std::io;
use std::sync::Arc;

use belljar_received::json::mend_bytes;
use belljar_received::whole::normalize_integers;
use futures::{Sink, Stream};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Semaphore;

use crate::limits::{MAX_LINE, MAX_UNANSWERED, MAX_UNWRITTEN};

/// The text in place of a line that is too long: valid JSON that is no message.
const TOO_LONG: &str = "\"a line is too long\"";

/// The room left for unanswered requests and unwritten updates.
#[derive(Clone)]
pub(crate) struct WireRoom {
    /// A permit for each request that may still be read. Reading a request uses up a permit, and writing its
    /// answer returns it.
    unanswered: Arc<Semaphore>,
    /// A permit for each update that may still be sent. Sending an update uses up a permit, and
    /// [`outgoing_lines`] returns it when the line is written.
    unwritten: Arc<Semaphore>,
}

/// The kind of message that a line contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// The request `initialize`, which must be the first.
    Initialize,
    Request,
    Update,
    Answer,
    Other,
}

impl WireRoom {
    pub(crate) fn new() -> Self {
        let (unanswered, unwritten) =
            (Semaphore::new(MAX_UNANSWERED), Semaphore::new(MAX_UNWRITTEN));
        Self { unanswered: Arc::new(unanswered), unwritten: Arc::new(unwritten) }
    }

    /// Waits for room for one more update; returns false if the editor has disconnected.
    pub(crate) async fn for_update(&self) -> bool {
        // `release_written` returns the permit when the update is written.
        self.unwritten.acquire().await.map(tokio::sync::SemaphorePermit::forget).is_ok()
    }

    /// Returns the permit of a line that was just written: of an update, or of the request that it answers.
    fn release_written(&self, line: &str) {
        match line_kind(line) {
            LineKind::Update => self.unwritten.add_permits(1),
            LineKind::Answer => self.unanswered.add_permits(1),
            LineKind::Initialize | LineKind::Request | LineKind::Other => {}
        }
    }

    /// Waits until every request is answered; returns false if the connection is closed, so no answer is
    /// written any more.
    async fn all_answered(&self) -> bool {
        let all = u32::try_from(MAX_UNANSWERED).unwrap_or(u32::MAX);
        self.unanswered.acquire_many(all).await.is_ok()
    }

    fn close_room(&self) {
        self.unwritten.close();
        self.unanswered.close();
    }
}

/// The lines that an editor sends. The line after `initialize` is read only after `initialize` was answered,
/// because the library for ACP refuses every earlier request.
pub(crate) fn incoming_lines(
    reader: impl AsyncRead + Send + Unpin + 'static,
    room: WireRoom,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let state = (BufReader::new(reader), room, false);
    futures::stream::unfold(
        state,
        |(mut reader, room, begins): (BufReader<_>, WireRoom, bool)| async move {
            if begins && !room.all_answered().await {
                return None;
            }
            let line = match read_line(&mut reader).await {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(error) => return Some((Err(error), (reader, room, false))),
            };
            let kind = line_kind(&line);
            if matches!(kind, LineKind::Initialize | LineKind::Request) {
                // `release_written` returns the permit when the answer is written. An error means: the
                // connection is closed, so no request is answered any more.
                match room.unanswered.acquire().await {
                    Ok(permit) => permit.forget(),
                    Err(_) => return None,
                }
            }
            Some((Ok(line), (reader, room, kind == LineKind::Initialize)))
        },
    )
}

/// The sink that writes each line at once.
pub(crate) fn outgoing_lines(
    writer: impl AsyncWrite + Send + Unpin + 'static,
    room: WireRoom,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    futures::sink::unfold((writer, room), |(mut writer, room), line: String| async move {
        let room: WireRoom = room;
        let mut bytes = line.into_bytes();
        bytes.push(b'\n');
        let written = match writer.write_all(&bytes).await {
            Ok(()) => writer.flush().await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            room.close_room();
            return Err(error);
        }
        bytes.pop();
        room.release_written(&String::from_utf8_lossy(&bytes));
        Ok((writer, room))
    })
}

/// The next line, without its end; `None` at the end of the input.
async fn read_line(
    reader: &mut (impl tokio::io::AsyncBufRead + Unpin),
) -> io::Result<Option<String>> {
    let (mut line, mut too_long) = (Vec::new(), false);
    loop {
        let there = reader.fill_buf().await?;
        if there.is_empty() {
            let ended = line.is_empty() && !too_long;
            return Ok((!ended).then(|| line_text(line, too_long)));
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let part = there.get(..end.unwrap_or(there.len())).unwrap_or_default();
        too_long |= line.len().saturating_add(part.len()) > MAX_LINE;
        match too_long {
            true => line = Vec::new(),
            false => line.extend_from_slice(part),
        }
        let taken = end.map_or(there.len(), |end| end + 1);
        reader.consume(taken);
        if end.is_some() {
            return Ok(Some(line_text(line, too_long)));
        }
    }
}

/// The text of a line that was read; a line that is too long is replaced.
fn line_text(line: Vec<u8>, too_long: bool) -> String {
    match too_long {
        true => TOO_LONG.to_owned(),
        // INV-471, INV-500: the library's parser is strict, and does not answer unreadable lines, so they are
        // repaired first.
        false => String::from_utf8_lossy(&normalize_integers(&mend_bytes(&line))).into_owned(),
    }
}

/// The kind of a line, from the fields `id` and `method` of its JSON.
fn line_kind(line: &str) -> LineKind {
    #[derive(Deserialize)]
    struct LineHead<'a> {
        #[serde(default)]
        id: Option<IgnoredAny>,
        #[serde(default, borrow)]
        method: Option<std::borrow::Cow<'a, str>>,
    }
    match serde_json::from_str::<LineHead<'_>>(line) {
        Ok(LineHead { id: Some(_), method: Some(method) }) if method == "initialize" => {
            LineKind::Initialize
        }
        Ok(LineHead { id: Some(_), method: Some(_) }) => LineKind::Request,
        Ok(LineHead { id: None, method: Some(method) }) if method == "session/update" => {
            LineKind::Update
        }
        Ok(LineHead { id: Some(_), method: None }) => LineKind::Answer,
        Ok(_) | Err(_) => LineKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use futures::{SinkExt as _, StreamExt as _};

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
        let long = vec![b'x'; MAX_LINE + 1];
        let bytes = [b"{}\n".as_slice(), &long, b"\n\xff\nend"].concat();
        let lines = incoming_lines(io::Cursor::new(bytes), WireRoom::new());
        let lines: Vec<String> = lines.map(Result::unwrap).collect().await;
        assert_eq!(lines, ["{}", TOO_LONG, "\u{fffd}", "end"]);
    }

    #[tokio::test]
    async fn half_a_surrogate_pair_leaves_a_line_json() {
        let bytes = b"{\"id\":1,\"method\":\"cut \\ud83d\"}\n{\"a\":\"\xed\xa0\xbd\"}\n";
        let lines = incoming_lines(io::Cursor::new(bytes), WireRoom::new());
        let lines: Vec<String> = lines.map(Result::unwrap).collect().await;
        assert_eq!(line_kind(&lines[0]), LineKind::Request);
        let read: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(read["method"], "cut \u{fffd}");
        assert_eq!(lines[1], "{\"a\":\"\u{fffd}\"}");
    }

    #[tokio::test]
    async fn a_whole_number_in_a_line_is_an_integer() {
        let bytes =
            b"{\"id\":1.0,\"method\":\"x\",\"params\":{\"protocolVersion\":1e0}}\n{\"id\":1.5}\n";
        let lines = incoming_lines(io::Cursor::new(bytes), WireRoom::new());
        let lines: Vec<String> = lines.map(Result::unwrap).collect().await;
        assert_eq!(
            lines,
            [r#"{"id":1,"method":"x","params":{"protocolVersion":1}}"#, r#"{"id":1.5}"#]
        );
    }

    #[tokio::test]
    async fn no_more_requests_are_read_than_may_wait_for_their_answers() {
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;
        let bytes = format!("{request}\n").repeat(MAX_UNANSWERED + 1).into_bytes();
        let room = WireRoom::new();
        let mut lines = Box::pin(incoming_lines(io::Cursor::new(bytes), room.clone()));
        for _ in 0..MAX_UNANSWERED {
            lines.next().await.unwrap().unwrap();
        }
        assert!(futures::poll!(lines.next()).is_pending());
        let mut out = Box::pin(outgoing_lines(Vec::<u8>::new(), room));
        out.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned()).await.unwrap();
        assert!(lines.next().await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn what_is_sent_behind_initialize_waits_for_its_answer() {
        let bytes =
            b"{\"id\":1,\"method\":\"initialize\"}\n{\"id\":2,\"method\":\"session/new\"}\n";
        let room = WireRoom::new();
        let mut lines = Box::pin(incoming_lines(io::Cursor::new(bytes.to_vec()), room.clone()));
        assert_eq!(line_kind(&lines.next().await.unwrap().unwrap()), LineKind::Initialize);
        assert!(futures::poll!(lines.next()).is_pending());
        let mut out = Box::pin(outgoing_lines(Vec::<u8>::new(), room));
        out.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned()).await.unwrap();
        assert!(lines.next().await.unwrap().unwrap().contains("session/new"));
    }

    #[tokio::test]
    async fn updates_wait_for_an_editor_that_does_not_read() {
        let room = WireRoom::new();
        for _ in 0..MAX_UNWRITTEN {
            assert!(room.for_update().await);
        }
        assert!(futures::poll!(Box::pin(room.for_update())).is_pending());
        let mut out = Box::pin(outgoing_lines(Vec::<u8>::new(), room.clone()));
        out.send(r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#.to_owned())
            .await
            .unwrap();
        assert!(room.for_update().await);
    }
}
