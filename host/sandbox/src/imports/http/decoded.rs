//! Decodes a reply the server compressed although the guest did not ask for it.
//!
//! The gate does this for tools in every language and for the host's own clients, because none of them
//! expects compression it did not ask for. A guest that asks for a coding gets the bytes unchanged. In a run
//! with secrets, compressed replies are refused instead (INV-103).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use belljar_policy::{DenyCode, Meter};
use belljar_received::coding::{BodyDecoder, CodingError, ContentCoding, DecodedPiece};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use wasmtime_wasi_http::{Error, WasiBody};

use super::metered::MAX_REPLY;
use super::refusal::deny_request;
use crate::receipt::record::CallRecord;

/// Whether a request asks for a coding other than `identity`.
pub(crate) fn has_coding_request(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter();
    values.into_iter().any(|value| {
        let names = value.as_bytes().split(|byte| *byte == b',');
        let names = names.map(|name| name.split(|byte| *byte == b';').next().unwrap_or_default());
        names
            .map(|name| name.trim_ascii())
            .any(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity"))
    })
}

/// Decodes a reply. INV-476: the decoded bytes are billed too, and no layer of coding may yield more than
/// [`MAX_REPLY`] bytes.
///
/// # Errors
///
/// The reply has a coding not supported.
pub(crate) fn decode_reply(
    mut reply: Response<WasiBody>,
    record: &Arc<CallRecord>,
) -> Result<Response<WasiBody>, Error> {
    let values = reply.headers().get_all(CONTENT_ENCODING).iter();
    let codings =
        ContentCoding::parse_values(values.map(|value| value.as_bytes())).map_err(coding_error)?;
    if codings.is_empty() {
        return Ok(reply);
    }
    reply.headers_mut().remove(CONTENT_ENCODING);
    reply.headers_mut().remove(CONTENT_LENGTH);
    let (decoder, record) = (BodyDecoder::new(&codings, MAX_REPLY), Arc::clone(record));
    Ok(reply.map(|inner| DecodedBody { inner, decoder, record, ended: false }.boxed_unsync()))
}

/// The guest's error for a coding that fails.
fn coding_error(error: CodingError) -> Error {
    match error {
        CodingError::Unknown(name) => Error::HttpResponseContentCoding(Some(name)),
        CodingError::Broken(name) => Error::HttpResponseContentCoding(Some(name.to_owned())),
        CodingError::Layers => Error::HttpResponseContentCoding(None),
        CodingError::TooLarge(limit) => Error::HttpResponseBodySize(Some(limit)),
    }
}

/// The body that [`decode_reply`] returns. Trailers are dropped, because they are about the encoded bytes.
struct DecodedBody {
    inner: WasiBody,
    decoder: BodyDecoder,
    record: Arc<CallRecord>,
    ended: bool,
}

impl DecodedBody {
    fn fail_with(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.ended = true;
        Poll::Ready(Some(Err(error)))
    }

    fn refuse_reply(&mut self, facts: String) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        deny_request(&self.record, DenyCode::LimitReached, facts);
        self.fail_with(Error::HttpResponseBodySize(None))
    }
}

impl Body for DecodedBody {
    type Data = Bytes;
    type Error = Error;

    /// Returns the next decoded piece, and reads from the compressed body while the decoder needs more
    /// input. Decoded bytes are billed too.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        loop {
            match self.decoder.next_piece() {
                Ok(DecodedPiece::Bytes(bytes)) => {
                    if let Err(exhausted) =
                        self.record.bill_bytes(Meter::Ingress, bytes.len() as u64)
                    {
                        return self.refuse_reply(format!("a reply, decoded: {exhausted}"));
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Ok(DecodedPiece::Over) => {
                    self.ended = true;
                    return Poll::Ready(None);
                }
                Ok(DecodedPiece::Wanting) => {}
                Err(CodingError::TooLarge(limit)) => {
                    return self
                        .refuse_reply(format!("the reply has more than {limit} bytes, decoded"));
                }
                Err(error) => return self.fail_with(coding_error(error)),
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                None => self.decoder.end(),
                Some(Err(error)) => return self.fail_with(error),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.decoder.push(data);
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
