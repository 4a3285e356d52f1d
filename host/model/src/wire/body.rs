//! Reads the body of a response, and decompresses it if the server compressed it without being asked.

use belljar_received::coding::{BodyDecoder, CodingError, ContentCoding, DecodedPiece};
use bytes::Bytes;
use reqwest::header::CONTENT_ENCODING;

use crate::ModelError;
use crate::limits::MAX_RESPONSE_BYTES;

/// The reason why reading a body failed.
pub(crate) enum BodyError {
    /// The connection broke.
    Network(reqwest::Error),
    /// The body cannot be decoded.
    Body(ModelError),
}

/// The body of a response. INV-475: at most [`MAX_RESPONSE_BYTES`] decoded bytes are read.
pub(crate) struct WireBody {
    response: reqwest::Response,
    decoder: Option<BodyDecoder>,
}

impl WireBody {
    /// Creates the reader of a response's body.
    ///
    /// # Errors
    /// When the body has an unknown content coding.
    pub(crate) fn from_response(response: reqwest::Response) -> Result<Self, ModelError> {
        let values = response.headers().get_all(CONTENT_ENCODING).iter();
        let codings = ContentCoding::parse_values(values.map(|value| value.as_bytes()))
            .map_err(to_model_error)?;
        let limit = u64::try_from(MAX_RESPONSE_BYTES).unwrap_or(u64::MAX);
        let decoder = (!codings.is_empty()).then(|| BodyDecoder::new(&codings, limit));
        Ok(Self { response, decoder })
    }

    /// The next bytes; `None` at the end of the body. No bytes are lost if the future is dropped.
    pub(crate) async fn next_chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        let Some(decoder) = &mut self.decoder else {
            return self.response.chunk().await.map_err(BodyError::Network);
        };
        loop {
            match decoder.next_piece().map_err(|error| BodyError::Body(to_model_error(error)))? {
                DecodedPiece::Bytes(bytes) => return Ok(Some(bytes)),
                DecodedPiece::Over => return Ok(None),
                DecodedPiece::Wanting => {
                    match self.response.chunk().await.map_err(BodyError::Network)? {
                        Some(bytes) => decoder.push(bytes),
                        None => decoder.end(),
                    }
                }
            }
        }
    }
}

/// Converts an error of decompression.
fn to_model_error(error: CodingError) -> ModelError {
    match error {
        CodingError::TooLarge(_) => {
            ModelError::TooLarge { what: "bytes", limit: MAX_RESPONSE_BYTES }
        }
        CodingError::Unknown(_) | CodingError::Layers | CodingError::Broken(_) => {
            ModelError::Protocol { message: error.to_string() }
        }
    }
}
