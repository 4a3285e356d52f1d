//! Receives a reply in a run with secrets: the guest gets it only after the whole reply was received and
//! searched.
//!
//! The server may cooperate with the tool that reads the reply, and both can count bytes and measure times.
//! So no part of a reply is passed on before its last byte was searched, a match has no effect before the
//! end, and the guest gets either the whole reply, in blocks of one size, or one error (INV-103). A reply
//! that breaks off has the same error, whatever it contains.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use belljar_policy::{DenyCode, Meter};
use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use hyper::ext::ReasonPhrase;
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, WasiBody};

use super::refusal::deny_request;
use super::scan::SecretScanner;
use super::secrets::{PIECE, SecretWatch};
use crate::receipt::record::CallRecord;

/// The bytes of a block. A block is searched in one step, and is one frame for the guest.
const BLOCK: usize = PIECE;

/// A reply while it is received and searched.
struct ReplyReader<'a> {
    scanner: SecretScanner<'a>,
    record: &'a Arc<CallRecord>,
    blocks: VecDeque<ReplyBlock>,
    trailers: Option<HeaderMap>,
}

/// Up to [`BLOCK`] bytes of a reply. They count as memory of the jar, because the host must not use more
/// memory for a guest than the guest may use itself.
struct ReplyBlock {
    bytes: Vec<u8>,
    _memory: ReservedMemory,
}

/// A reservation of the jar's memory; dropping it releases the memory.
struct ReservedMemory {
    record: Arc<CallRecord>,
    bytes: u64,
}

/// The body of a reply that was searched.
struct WholeBody {
    blocks: VecDeque<ReplyBlock>,
    trailers: Option<HeaderMap>,
}

/// Receives a reply to its end and searches it. `broken` makes the error for a body that breaks off; a
/// silence of the peer for `silence` breaks it off too.
pub(crate) async fn read_reply<B>(
    reply: Response<B>,
    watch: &SecretWatch,
    record: &Arc<CallRecord>,
    silence: Duration,
    broken: impl Fn(B::Error) -> Error,
) -> Result<SearchedReply, Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (parts, mut body) = reply.into_parts();
    let (blocks, trailers) = (VecDeque::new(), None);
    let mut taking = ReplyReader { scanner: watch.to_scanner(), record, blocks, trailers };
    taking.search_head(&parts);
    loop {
        let frame = timeout(silence, body.frame()).await;
        match frame.map_err(|_| Error::ConnectionReadTimeout)? {
            None => break,
            Some(Err(error)) => return Err(broken(error)),
            Some(Ok(frame)) => taking.push_frame(frame)?,
        }
    }
    Ok(taking.finish_search(parts))
}

/// A complete reply, and whether a secret was found in it.
pub(crate) struct SearchedReply {
    reply: Response<WasiBody>,
    found: bool,
}

impl SearchedReply {
    /// Returns the reply, or refuses it if it contains a secret.
    pub(crate) fn into_reply(
        self,
        watch: &SecretWatch,
        record: &CallRecord,
    ) -> Result<Response<WasiBody>, Error> {
        if !self.found {
            return Ok(self.reply);
        }
        let facts = format!("the reply holds {}", watch.count_withheld());
        Err(deny_request(record, DenyCode::SecretInReply, facts))
    }
}

impl ReplyReader<'_> {
    fn search_head(&mut self, parts: &Parts) {
        if let Some(reason) = parts.extensions.get::<ReasonPhrase>() {
            self.scanner.search_apart(reason.as_bytes());
        }
        self.search_fields(&parts.headers);
    }

    fn search_fields(&mut self, fields: &HeaderMap) {
        for (name, value) in fields {
            self.scanner.search_apart(name.as_str().as_bytes());
            self.scanner.search_apart(value.as_bytes());
        }
    }

    fn push_frame(&mut self, frame: Frame<Bytes>) -> Result<(), Error> {
        match frame.into_data() {
            Ok(data) => self.push_data(&data),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                self.search_fields(&trailers);
                self.trailers = Some(trailers);
                Ok(())
            }
        }
    }

    /// Copies a piece of the body into blocks, so that many small pieces use no more memory than one large
    /// one.
    fn push_data(&mut self, mut piece: &[u8]) -> Result<(), Error> {
        while !piece.is_empty() {
            let free =
                self.blocks.back().map_or(0, |block| BLOCK.saturating_sub(block.bytes.len()));
            if free == 0 {
                self.search_block();
                let memory = ReservedMemory::reserve_block(self.record)?;
                self.blocks
                    .push_back(ReplyBlock { bytes: Vec::with_capacity(BLOCK), _memory: memory });
                continue;
            }
            let (now, later) = piece.split_at(free.min(piece.len()));
            if let Some(block) = self.blocks.back_mut() {
                block.bytes.extend_from_slice(now);
            }
            piece = later;
        }
        Ok(())
    }

    /// Searches the last block. Called when it is full, and at the end.
    fn search_block(&mut self) {
        if let Some(block) = self.blocks.back() {
            self.scanner.push_piece(&block.bytes);
        }
    }

    fn finish_search(mut self, parts: Parts) -> SearchedReply {
        self.search_block();
        let found = self.scanner.has_match();
        let body = WholeBody { blocks: self.blocks, trailers: self.trailers };
        SearchedReply { reply: Response::from_parts(parts, body.boxed_unsync()), found }
    }
}

impl ReservedMemory {
    fn reserve_block(record: &Arc<CallRecord>) -> Result<Self, Error> {
        let bytes = BLOCK as u64;
        match record.reserve_bytes(Meter::Memory, bytes) {
            Ok(()) => Ok(Self { record: Arc::clone(record), bytes }),
            Err(exhausted) => {
                let facts = format!("a reply is taken whole where secrets are: {exhausted}");
                deny_request(record, DenyCode::LimitReached, facts);
                Err(Error::HttpResponseBodySize(None))
            }
        }
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.record.refund_bytes(Meter::Memory, self.bytes);
    }
}

impl Body for WholeBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(block) = self.blocks.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(block.bytes.into()))));
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }
}
