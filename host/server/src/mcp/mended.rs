//! Rewrites a client's bytes for the protocol's own parser, which is strict and leaves an unreadable request
//! without an answer. Half a surrogate pair becomes U+FFFD (INV-471), a whole number becomes an integer
//! (INV-500), and a line gets one of the accepted [`forms`].

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use belljar_received::json::JsonMender;
use belljar_received::whole::IntegerNormalizer;
use tokio::io::{AsyncRead, ReadBuf};

use super::forms;
use super::stdio::MAX_LINE;

/// The bytes of one read.
const STEP: usize = 8 << 10;

/// A reader that rewrites the lines of another reader, as the module describes.
pub(super) struct MendedReader<R> {
    inner: R,
    mender: JsonMender,
    wholes: IntegerNormalizer,
    /// The rewritten beginning of a line that is not complete yet. A line longer than the largest
    /// message is passed on unchanged.
    line: Vec<u8>,
    /// Rewritten bytes that the caller has not read yet, from the index `at` on.
    ready: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<R> MendedReader<R> {
    pub(super) fn new(inner: R) -> Self {
        let (mender, wholes) = (JsonMender::default(), IntegerNormalizer::without_infinite());
        let (line, ready) = (Vec::new(), Vec::new());
        Self { inner, mender, wholes, line, ready, at: 0, ended: false }
    }

    /// Makes the complete lines readable for the caller, and at the input's end the rest.
    fn hand_over(&mut self, text: &[u8]) {
        for part in text.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.line.len() > MAX_LINE {
                let line = std::mem::take(&mut self.line);
                self.ready.extend(forms::split_batch(&line).unwrap_or(line));
            }
        }
        if self.ended {
            self.ready.append(&mut self.line);
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for MendedReader<R> {
    /// Passes on rewritten bytes; when none are left, reads a step from the inner reader and rewrites
    /// it.
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        loop {
            let there = own.ready.get(own.at..).unwrap_or_default();
            if own.ended || !there.is_empty() {
                let count = there.len().min(out.remaining());
                out.put_slice(there.get(..count).unwrap_or_default());
                own.at += count;
                return Poll::Ready(Ok(()));
            }
            let mut step = [0; STEP];
            let mut read = ReadBuf::new(&mut step);
            ready!(Pin::new(&mut own.inner).poll_read(cx, &mut read))?;
            own.ready.clear();
            own.at = 0;
            own.ended = read.filled().is_empty();
            let mut mended = Vec::new();
            match own.ended {
                true => own.mender.end(&mut mended),
                false => own.mender.push(read.filled(), &mut mended),
            }
            let mut text = Vec::new();
            own.wholes.push(&mended, &mut text);
            if own.ended {
                own.wholes.end(&mut text);
            }
            own.hand_over(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_line_is_mended_and_there_before_the_next_one_comes() {
        let (mut client, read) = tokio::io::duplex(64);
        let mut read = MendedReader::new(read);
        client.write_all(b"{\"a\":\"cut \\ud8").await.unwrap();
        client.write_all(b"3d\"}\n").await.unwrap();
        let expected = b"{\"a\":\"cut \\ufffd\"}\n";
        let mut line = vec![0; expected.len()];
        read.read_exact(&mut line).await.unwrap();
        assert_eq!(line, expected);
        client.write_all(b"{\"id\":1").await.unwrap();
        client.write_all(b".0}\n").await.unwrap();
        let mut line = [0; 9];
        read.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"{\"id\":1}\n");
        client.write_all(b"{\"a\":1e400}\n").await.unwrap();
        let mut line = [0; 14];
        read.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"{\"a\":\"1e400\"}\n");
        client.write_all(b"\\ud83d").await.unwrap();
        drop(client);
        let mut rest = String::new();
        read.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "\\ufffd");
    }
}
