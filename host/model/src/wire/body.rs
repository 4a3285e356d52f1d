//! The body of a response. A body that the server compressed unasked is decoded while it arrives.

use belljar_received::coding::{Coding, CodingError, Decoder, Piece};
use bytes::Bytes;
use reqwest::header::CONTENT_ENCODING;

use crate::ModelError;
use crate::limits::MAX_RESPONSE_BYTES;

/// The reason why a body breaks off.
pub(crate) enum Broken {
    /// The connection does.
    Network(reqwest::Error),
    /// The body cannot be decoded.
    Body(ModelError),
}

/// A body. INV-475: the decoded bytes are bounded by [`MAX_RESPONSE_BYTES`].
pub(crate) struct Body {
    response: reqwest::Response,
    decoder: Option<Decoder>,
}

impl Body {
    /// Creates the body of a response.
    ///
    /// # Errors
    ///
    /// When the body has an unknown content coding.
    pub(crate) fn of(response: reqwest::Response) -> Result<Self, ModelError> {
        let values = response.headers().get_all(CONTENT_ENCODING).iter();
        let codings = Coding::named(values.map(|value| value.as_bytes())).map_err(unreadable)?;
        let limit = u64::try_from(MAX_RESPONSE_BYTES).unwrap_or(u64::MAX);
        let decoder = (!codings.is_empty()).then(|| Decoder::new(&codings, limit));
        Ok(Self { response, decoder })
    }

    /// The next bytes; `None` at the end of the body. Dropping the future loses no bytes.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        let Some(decoder) = &mut self.decoder else {
            return self.response.chunk().await.map_err(Broken::Network);
        };
        loop {
            match decoder.piece().map_err(|error| Broken::Body(unreadable(error)))? {
                Piece::Bytes(bytes) => return Ok(Some(bytes)),
                Piece::Over => return Ok(None),
                Piece::Wanting => match self.response.chunk().await.map_err(Broken::Network)? {
                    Some(bytes) => decoder.push(bytes),
                    None => decoder.end(),
                },
            }
        }
    }
}

fn unreadable(error: CodingError) -> ModelError {
    match error {
        CodingError::TooLarge(_) => {
            ModelError::TooLarge { what: "bytes", limit: MAX_RESPONSE_BYTES }
        }
        CodingError::Unknown(_) | CodingError::Layers | CodingError::Broken(_) => {
            ModelError::Protocol { message: error.to_string() }
        }
    }
}
