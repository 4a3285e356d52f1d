//! A response's body, decoded as it comes where the server compressed it without being asked.

use belljar_received::coding::{Coding, CodingError, Decoded, Decoder};
use bytes::Bytes;
use reqwest::header::CONTENT_ENCODING;

use crate::ModelError;
use crate::limits::MAX_RESPONSE_BYTES;

/// Bytes that are decoded at once.
const STEP: usize = 16 << 10;

/// Why a body breaks off.
pub(crate) enum Broken {
    /// The connection does.
    Network(reqwest::Error),
    /// The body is none that can be read.
    Body(ModelError),
}

/// A body. INV-475: what comes out of it is bounded by [`MAX_RESPONSE_BYTES`].
pub(crate) struct Body {
    response: reqwest::Response,
    decoder: Option<Decoder>,
}

impl Body {
    /// The body of a response.
    ///
    /// # Errors
    ///
    /// When it is in a coding that is not decoded.
    pub(crate) fn of(response: reqwest::Response) -> Result<Self, ModelError> {
        let values = response.headers().get_all(CONTENT_ENCODING).iter();
        let codings = Coding::named(values.map(|value| value.as_bytes())).map_err(unreadable)?;
        let limit = u64::try_from(MAX_RESPONSE_BYTES).unwrap_or(u64::MAX);
        let decoder = (!codings.is_empty()).then(|| Decoder::new(&codings, limit));
        Ok(Self { response, decoder })
    }

    /// The next bytes, none of them when the body is over. Nothing is lost when the future is dropped.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        let Some(decoder) = &mut self.decoder else {
            return self.response.chunk().await.map_err(Broken::Network);
        };
        let mut out = vec![0; STEP];
        loop {
            match decoder.read(&mut out).map_err(|error| Broken::Body(unreadable(error)))? {
                Decoded::Bytes(count) => {
                    out.truncate(count);
                    return Ok(Some(out.into()));
                }
                Decoded::Over => return Ok(None),
                Decoded::Wanting => match self.response.chunk().await.map_err(Broken::Network)? {
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
