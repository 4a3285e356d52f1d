//! Response bodies that keep a resource until they are sent, for example the bytes in flight, or the
//! place of a connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The most bytes passed to the connection at once. The connection requests the next piece when most of
/// this one is sent, so the answer's bytes are freed only when the client has read them.
const PIECE: usize = 16 << 10;

/// A body sent in pieces of at most [`PIECE`] bytes, with a resource that is dropped after the last
/// one.
pub(crate) struct HoldingBody<T> {
    body: Body,
    /// The bytes of the present frame that are not passed on yet.
    rest: Bytes,
    held: Option<T>,
}

impl<T: Send + Unpin + 'static> HoldingBody<T> {
    /// Wraps `body`, and drops `held` at the body's end.
    pub(crate) fn wrap_body(body: Body, held: T) -> Body {
        Body::new(Self { body, rest: Bytes::new(), held: Some(held) })
    }
}

impl<T: Unpin> HttpBody for HoldingBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => {
                    self.held = None;
                    return Poll::Ready(end);
                }
            }
        }
        let most = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(most);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let mut hint = self.body.size_hint();
        // The upper bound is set first, because the lower bound may never exceed it.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_body_comes_in_pieces_and_keeps_what_it_holds_to_its_last_one() {
        let held = Arc::new(());
        let long = PIECE * 3 + 1;
        let mut body = HoldingBody::wrap_body(Body::from(vec![b'x'; long]), Arc::clone(&held));
        assert_eq!(body.size_hint().exact(), Some(long as u64));
        let mut sizes = Vec::new();
        while let Some(frame) = body.frame().await {
            sizes.push(frame.unwrap().into_data().unwrap().len());
            let left = long - sizes.iter().sum::<usize>();
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            assert_eq!(Arc::strong_count(&held), 2);
        }
        assert_eq!(sizes, [PIECE, PIECE, PIECE, 1]);
        assert_eq!(Arc::strong_count(&held), 1);
        let body = HoldingBody::wrap_body(Body::from("given up"), Arc::clone(&held));
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
