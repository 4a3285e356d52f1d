//! Images in a person's messages.
//!
//! An image is stored once, as a file of its session. A stored message has only the image's format, size and
//! digest; the bytes are loaded when a model needs them.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits::MAX_IMAGE_BYTES;

/// The image formats that every provider with image support accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ImageFormat {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/gif")]
    Gif,
    #[serde(rename = "image/webp")]
    Webp,
}

/// An image. Its serialized form contains no bytes, and equality ignores the bytes.
#[derive(Clone, Serialize, Deserialize)]
pub struct Image {
    media_type: ImageFormat,
    size: usize,
    sha256: String,
    /// The bytes with that digest; empty if they are not loaded.
    #[serde(skip)]
    data: Bytes,
}

/// The reason why bytes are refused as an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The image has too many bytes.
    #[error("an image has at most {MAX_IMAGE_BYTES} bytes; make it smaller")]
    TooLarge,
    /// The first bytes match no known format.
    #[error("an image is a PNG, JPEG, GIF or WebP file; these bytes begin like none of them")]
    Unknown,
    /// The first bytes match another format than the stated media type.
    #[error("an image is `{found}` by its first bytes, and something else by its media type")]
    Mislabelled {
        /// The media type by the first bytes.
        found: &'static str,
    },
    /// The text is not base64.
    #[error("the bytes of an image have to be in base64")]
    NotBase64,
}

impl ImageFormat {
    /// INV-345: the format according to the first bytes; a stated media type does not count.
    fn from_bytes(data: &[u8]) -> Option<Self> {
        match data {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    /// The media type of this format.
    fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

impl Image {
    /// Makes an image of these bytes; `said` is the media type that came with the bytes, if there was one.
    ///
    /// # Errors
    /// [`ImageError`]: too many bytes, an unknown format, or another format than stated.
    pub fn new(data: Bytes, said: Option<&str>) -> Result<Self, ImageError> {
        if data.len() > MAX_IMAGE_BYTES {
            return Err(ImageError::TooLarge);
        }
        let media_type = ImageFormat::from_bytes(&data).ok_or(ImageError::Unknown)?;
        let found = media_type.media_type();
        if said.is_some_and(|said| !is_media_type(said, found)) {
            return Err(ImageError::Mislabelled { found });
        }
        Ok(Self { media_type, size: data.len(), sha256: hex_digest(&data), data })
    }

    /// Makes an image of bytes in base64.
    ///
    /// # Errors
    ///
    /// As [`Image::new`], and when the text is not base64.
    pub fn from_base64(text: &str, said: Option<&str>) -> Result<Self, ImageError> {
        // The size is checked before decoding: four letters of base64 stand for three bytes.
        if text.len() / 4 * 3 > MAX_IMAGE_BYTES + 3 {
            return Err(ImageError::TooLarge);
        }
        let data = STANDARD.decode(text).map_err(|_| ImageError::NotBase64)?;
        Self::new(Bytes::from(data), said)
    }

    /// The media type, for example `image/png`.
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        self.media_type.media_type()
    }

    /// The number of bytes, also if they are not loaded.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        self.size
    }

    /// The name of the image's file in the store, which contains the digest.
    #[must_use]
    pub fn file_name(&self) -> String {
        let ending = self.media_type().rsplit('/').next().unwrap_or_default();
        format!("image-{}.{ending}", self.sha256)
    }

    /// The bytes; empty if they were not loaded from the store.
    #[must_use]
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// Sets the bytes that were loaded from the store. Bytes with another digest are ignored.
    pub fn restore_bytes(&mut self, data: Bytes) {
        if hex_digest(&data) == self.sha256 {
            self.data = data;
        }
    }

    /// The bytes in base64; `None` if they were not loaded from the store.
    #[must_use]
    pub fn to_base64(&self) -> Option<String> {
        (!self.data.is_empty()).then(|| STANDARD.encode(&self.data))
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        (self.media_type, self.size, &self.sha256) == (other.media_type, other.size, &other.sha256)
    }
}

impl Eq for Image {}

fn is_media_type(said: &str, found: &str) -> bool {
    let said = said.split(';').next().unwrap_or_default().trim();
    said.eq_ignore_ascii_case(found)
        || (found == "image/jpeg" && said.eq_ignore_ascii_case("image/jpg"))
}

/// The SHA-256 digest of the bytes in hexadecimal digits.
fn hex_digest(data: &[u8]) -> String {
    use fmt::Write as _;
    Sha256::digest(data).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("media_type", &self.media_type())
            .field("size", &self.size)
            .field("sha256", &self.sha256)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    #[test]
    fn the_first_bytes_say_what_an_image_is() {
        for (data, media_type) in [
            (PNG, "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a..", "image/gif"),
            (b"RIFF....WEBP", "image/webp"),
        ] {
            let image = Image::new(Bytes::from_static(data), Some(media_type)).unwrap();
            assert_eq!((image.media_type(), image.byte_count()), (media_type, data.len()));
        }
        let said = |data: &'static [u8], said| Image::new(Bytes::from_static(data), said);
        let found = "image/png";
        assert_eq!(said(PNG, Some("image/gif")), Err(ImageError::Mislabelled { found }));
        assert_eq!(said(PNG, Some("text/html")), Err(ImageError::Mislabelled { found }));
        for data in [b"".as_slice(), b"<svg onload=x>", b"%PDF-1.7", b"\x89PNG", b"RIFF....WAVE"] {
            assert_eq!(said(data, None), Err(ImageError::Unknown), "{data:?}");
        }
        let large = [PNG, &vec![0; MAX_IMAGE_BYTES]].concat();
        assert_eq!(Image::new(large.into(), None), Err(ImageError::TooLarge));
        assert_eq!(Image::from_base64("iVBO*", None), Err(ImageError::NotBase64));
        let long = "A".repeat(MAX_IMAGE_BYTES * 2);
        assert_eq!(Image::from_base64(&long, None), Err(ImageError::TooLarge));
    }

    #[test]
    fn an_image_is_written_without_its_bytes_and_takes_no_others_back() {
        let image = Image::new(Bytes::from_static(PNG), None).unwrap();
        let text = serde_json::to_string(&image).unwrap();
        assert!(text.len() < 140 && !format!("{image:?}").contains("rest"), "{text}");
        let mut read: Image = serde_json::from_str(&text).unwrap();
        assert_eq!((read.to_base64(), read.file_name()), (None, image.file_name()));
        read.restore_bytes(Bytes::from_static(b"\x89PNG\r\n\x1a\nforged"));
        assert!(read.data().is_empty());
        read.restore_bytes(Bytes::from_static(PNG));
        assert_eq!((read.data(), &read), (image.data(), &image));
    }
}
