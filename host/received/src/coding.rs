//! Decodes compressed bodies (`Content-Encoding`), piece by piece.
//!
//! A kilobyte of gzip can decode to a megabyte, so the limit is on the output of each layer of coding.
//! [`BodyDecoder::read`] fills the caller's buffer and no more, so the caller decides how much is decoded at
//! a time.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use bytes::Bytes;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// The most codings of a body; a server behind a proxy may apply two by mistake.
pub const MAX_LAYERS: usize = 3;

/// The bytes passed from a layer to the next at a time.
const STEP: usize = 16 << 10;

/// The most characters of a coding's name that an error shows.
const MAX_NAME: usize = 40;

/// A coding that the decoder knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentCoding {
    /// `gzip`, also called `x-gzip`.
    Gzip,
    /// `deflate`: with zlib's header, as the standard demands, or without, as some servers send.
    Deflate,
}

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// The body has a coding that the decoder does not know.
    #[error(
        "the body is encoded as `{0}`, which was not asked for and is not decoded (gzip and deflate are)"
    )]
    Unknown(String),
    /// The body has more codings than [`MAX_LAYERS`].
    #[error("the body is encoded more than {MAX_LAYERS} times over")]
    Layers,
    /// The bytes are not valid in this coding.
    #[error("the body is not the `{0}` that it says it is")]
    Broken(&'static str),
    /// The output exceeds this limit in bytes.
    #[error("the body has more than {0} bytes when it is decoded")]
    TooLarge(u64),
}

impl ContentCoding {
    /// The name of the coding in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    /// Parses the values of `Content-Encoding`. Returns the codings in the order in which the server applied
    /// them; `identity` is left out.
    ///
    /// # Errors
    ///
    /// A coding is not known, or there are too many.
    pub fn parse_values<'v>(
        values: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<Vec<Self>, CodingError> {
        let mut all = Vec::new();
        for value in values {
            for name in value.split(|byte| *byte == b',') {
                let name = String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase();
                match name.as_str() {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => all.push(Self::Gzip),
                    "deflate" => all.push(Self::Deflate),
                    other => return Err(CodingError::Unknown(escape_name(other))),
                }
                if all.len() > MAX_LAYERS {
                    return Err(CodingError::Layers);
                }
            }
        }
        Ok(all)
    }
}

/// Makes a coding's name safe for an error: other characters become `?`.
fn escape_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() && c != '`' { c } else { '?' };
    name.chars().take(MAX_NAME).map(plain).collect()
}

/// Decodes a body that arrives in pieces.
pub struct BodyDecoder {
    /// The layers of coding; the first is the coding that was applied last.
    layers: Vec<CodingLayer>,
    limit: u64,
}

/// What reading decoded bytes into a buffer yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeProgress {
    /// The number of bytes written to the buffer, at least 1.
    Bytes(usize),
    /// No bytes, until more of the body arrives.
    Wanting,
    /// The end of the body.
    Over,
}

/// What reading the next decoded bytes yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodedPiece {
    /// The bytes, at least 1.
    Bytes(Bytes),
    /// No bytes, until more of the body arrives.
    Wanting,
    /// The end of the body.
    Over,
}

impl BodyDecoder {
    /// Makes a decoder for a body with these codings. `limit`: the most output bytes of each layer.
    pub fn new(codings: &[ContentCoding], limit: u64) -> Self {
        Self {
            layers: codings.iter().rev().map(|coding| CodingLayer::new(*coding)).collect(),
            limit,
        }
    }

    /// Adds the next bytes of the body as received.
    pub fn push(&mut self, bytes: Bytes) {
        if let Some(first) = self.layers.first_mut() {
            first.feed_mut().push(bytes);
        }
    }

    /// Says that the body is complete.
    pub fn end(&mut self) {
        if let Some(first) = self.layers.first_mut() {
            first.feed_mut().ended = true;
        }
    }

    /// Decodes into `out`, as much as fits.
    ///
    /// # Errors
    ///
    /// The body is malformed or too large; nothing can be read after that.
    pub fn read(&mut self, out: &mut [u8]) -> Result<DecodeProgress, CodingError> {
        read_layers(&mut self.layers, self.limit, out)
    }
}

impl BodyDecoder {
    /// Returns the next decoded bytes, at most some kilobytes.
    ///
    /// # Errors
    ///
    /// The errors of [`BodyDecoder::read`].
    pub fn next_piece(&mut self) -> Result<DecodedPiece, CodingError> {
        let mut out = vec![0; STEP];
        Ok(match self.read(&mut out)? {
            DecodeProgress::Bytes(count) => {
                out.truncate(count);
                DecodedPiece::Bytes(out.into())
            }
            DecodeProgress::Wanting => DecodedPiece::Wanting,
            DecodeProgress::Over => DecodedPiece::Over,
        })
    }
}

/// Reads decoded bytes from the last layer. If the last layer needs input, decodes some bytes of the layers
/// before it, recursively.
fn read_layers(
    layers: &mut [CodingLayer],
    limit: u64,
    out: &mut [u8],
) -> Result<DecodeProgress, CodingError> {
    let Some((last, before)) = layers.split_last_mut() else { return Ok(DecodeProgress::Over) };
    loop {
        match last.read_layer(limit, out)? {
            DecodeProgress::Wanting if !before.is_empty() && !last.feed_mut().ended => {
                let mut step = vec![0; STEP];
                match read_layers(before, limit, &mut step)? {
                    DecodeProgress::Bytes(count) => {
                        step.truncate(count);
                        last.feed_mut().push(step.into());
                    }
                    DecodeProgress::Wanting => return Ok(DecodeProgress::Wanting),
                    DecodeProgress::Over => last.feed_mut().ended = true,
                }
            }
            decoded => return Ok(decoded),
        }
    }
}

/// The decoder of one coding.
struct CodingLayer {
    inflate: LayerDecoder,
    coding: ContentCoding,
    /// The number of decoded bytes returned so far.
    given: u64,
}

enum LayerDecoder {
    /// Waits for the first bytes, which decide the form.
    Waiting(ContentCoding, InputFeed),
    Gzip(MultiGzDecoder<InputFeed>),
    Zlib(ZlibDecoder<InputFeed>),
    Bare(DeflateDecoder<InputFeed>),
}

impl CodingLayer {
    fn new(coding: ContentCoding) -> Self {
        Self { inflate: LayerDecoder::Waiting(coding, InputFeed::default()), coding, given: 0 }
    }

    fn feed_mut(&mut self) -> &mut InputFeed {
        match &mut self.inflate {
            LayerDecoder::Waiting(_, feed) => feed,
            LayerDecoder::Gzip(it) => it.get_mut(),
            LayerDecoder::Zlib(it) => it.get_mut(),
            LayerDecoder::Bare(it) => it.get_mut(),
        }
    }

    fn read_layer(&mut self, limit: u64, out: &mut [u8]) -> Result<DecodeProgress, CodingError> {
        if let LayerDecoder::Waiting(coding, feed) = &mut self.inflate {
            match (feed.peek_head(), feed.ended) {
                // An empty body is valid in every coding: the reply to HEAD, or a reply without content.
                (BodyHead::Nothing, true) => return Ok(DecodeProgress::Over),
                (BodyHead::Nothing, false) | (BodyHead::One, false) => {
                    return Ok(DecodeProgress::Wanting);
                }
                (head @ (BodyHead::One | BodyHead::Two(..)), _) => {
                    let feed = std::mem::take(feed);
                    self.inflate = match (coding, head.is_zlib()) {
                        (ContentCoding::Gzip, _) => LayerDecoder::Gzip(MultiGzDecoder::new(feed)),
                        (ContentCoding::Deflate, true) => {
                            LayerDecoder::Zlib(ZlibDecoder::new(feed))
                        }
                        (ContentCoding::Deflate, false) => {
                            LayerDecoder::Bare(DeflateDecoder::new(feed))
                        }
                    };
                }
            }
        }
        let read = match &mut self.inflate {
            LayerDecoder::Waiting(..) => return Ok(DecodeProgress::Wanting),
            LayerDecoder::Gzip(it) => it.read(out),
            LayerDecoder::Zlib(it) => it.read(out),
            LayerDecoder::Bare(it) => it.read(out),
        };
        match read {
            Ok(0) => Ok(DecodeProgress::Over),
            Ok(count) => {
                self.given = self.given.saturating_add(count as u64);
                if self.given > limit {
                    return Err(CodingError::TooLarge(limit));
                }
                Ok(DecodeProgress::Bytes(count))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(DecodeProgress::Wanting),
            Err(_) => Err(CodingError::Broken(self.coding.name())),
        }
    }
}

/// The first bytes of a body, as far as received.
enum BodyHead {
    Nothing,
    One,
    Two(u8, u8),
}

impl BodyHead {
    /// Whether the bytes are a zlib header: the method is right, and so is the checksum.
    fn is_zlib(&self) -> bool {
        match self {
            Self::Two(first, second) => {
                first & 0x0f == 8 && u16::from_be_bytes([*first, *second]).is_multiple_of(31)
            }
            Self::Nothing | Self::One => false,
        }
    }
}

/// The received bytes that are not decoded yet. Reading beyond them returns `WouldBlock` until the body is
/// complete.
#[derive(Default)]
struct InputFeed {
    pieces: VecDeque<Bytes>,
    ended: bool,
}

impl InputFeed {
    fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.pieces.push_back(piece);
        }
    }

    fn peek_head(&self) -> BodyHead {
        let mut bytes = self.pieces.iter().flat_map(|piece| piece.iter().copied());
        match (bytes.next(), bytes.next()) {
            (Some(first), Some(second)) => BodyHead::Two(first, second),
            (Some(_), None) => BodyHead::One,
            (None, _) => BodyHead::Nothing,
        }
    }
}

impl Read for InputFeed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let count = there.len().min(out.len());
        for (to, from) in out.iter_mut().zip(there) {
            *to = *from;
        }
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for InputFeed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.pieces.front() {
            Some(piece) => Ok(piece),
            None if self.ended => Ok(&[]),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn consume(&mut self, count: usize) {
        if let Some(piece) = self.pieces.front_mut() {
            let _ = piece.split_to(count.min(piece.len()));
            if piece.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn bare(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Everything, read through a buffer of `room` bytes, of a body that comes in pieces.
    fn decode(
        codings: &[ContentCoding],
        pieces: &[&[u8]],
        limit: u64,
        room: usize,
    ) -> Result<Vec<u8>, CodingError> {
        let (mut decoder, mut all) = (BodyDecoder::new(codings, limit), Vec::new());
        let mut pieces = pieces.iter();
        let mut out = vec![0; room];
        loop {
            match decoder.read(&mut out)? {
                DecodeProgress::Bytes(count) => all.extend_from_slice(&out[..count]),
                DecodeProgress::Over => return Ok(all),
                DecodeProgress::Wanting => match pieces.next() {
                    Some(piece) => decoder.push(Bytes::copy_from_slice(piece)),
                    None => decoder.end(),
                },
            }
        }
    }

    #[test]
    fn codings_are_read_of_headers_in_their_order() {
        let named = |values: &[&str]| {
            ContentCoding::parse_values(values.iter().map(|value| value.as_bytes()))
        };
        assert_eq!(named(&[]).unwrap(), []);
        assert_eq!(named(&["identity, ", ""]).unwrap(), []);
        let both = [ContentCoding::Deflate, ContentCoding::Gzip];
        assert_eq!(named(&["deflate,GZIP"]).unwrap(), both);
        assert_eq!(named(&["deflate", " x-gzip "]).unwrap(), both);
        for (value, shown) in [("br", "br"), ("gzip, zstd", "zstd"), ("a`\u{1b}[2J", "a??[2j")] {
            assert_eq!(named(&[value]), Err(CodingError::Unknown(shown.to_owned())));
        }
        assert_eq!(named(&["gzip,gzip,gzip,gzip"]), Err(CodingError::Layers));
    }

    #[test]
    fn each_coding_and_several_over_each_other_are_undone() {
        use ContentCoding::{Deflate, Gzip};
        let text = b"the needle is here".repeat(300);
        for (codings, body) in [
            (&[Gzip][..], gzip(&text)),
            (&[Deflate], zlib(&text)),
            (&[Deflate], bare(&text)),
            (&[Gzip, Gzip], gzip(&gzip(&text))),
            (&[Deflate, Gzip, Deflate], bare(&gzip(&zlib(&text)))),
            (&[Gzip], [gzip(&text[..99]), gzip(&text[99..])].concat()),
        ] {
            assert_eq!(decode(codings, &[&body], 1 << 20, 100).unwrap(), text, "{codings:?}");
            let bytes: Vec<&[u8]> = body.chunks(1).collect();
            assert_eq!(decode(codings, &bytes, 1 << 20, 7).unwrap(), text, "{codings:?}");
        }
    }

    #[test]
    fn what_was_flushed_is_there_before_the_body_ends() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"data: one\n\n").unwrap();
        encoder.flush().unwrap();
        let mut decoder = BodyDecoder::new(&[ContentCoding::Gzip], 1 << 20);
        decoder.push(Bytes::copy_from_slice(encoder.get_ref()));
        let mut out = [0; 64];
        assert_eq!(decoder.read(&mut out), Ok(DecodeProgress::Bytes(11)));
        assert_eq!(&out[..11], b"data: one\n\n");
        assert_eq!(decoder.read(&mut out), Ok(DecodeProgress::Wanting));
    }

    #[test]
    fn a_bomb_ends_at_the_bound_in_every_layer() {
        let zeros = vec![0; 8 << 20];
        let bomb = gzip(&zeros);
        assert!(bomb.len() < 10_000);
        let error = CodingError::TooLarge(1 << 20);
        assert_eq!(decode(&[ContentCoding::Gzip], &[&bomb], 1 << 20, 4096), Err(error.clone()));
        // The first layer alone is too large, and the second yields little.
        let hidden = gzip(&[&[0; 2 << 20][..], &bomb].concat());
        let both = [ContentCoding::Gzip, ContentCoding::Gzip];
        assert!(decode(&both, &[&hidden], 1 << 20, 4096).is_err());
        assert_eq!(decode(&both, &[&gzip(&bomb)], 1 << 20, 4096), Err(error));
    }

    #[test]
    fn what_is_not_of_the_coding_or_breaks_off_is_an_error() {
        let body = gzip(&b"text".repeat(99));
        let cut = &body[..body.len() - 3];
        for broken in [&b"plain text"[..], &[0x1f], cut, &[&body[..], b"behind"].concat()] {
            let read = decode(&[ContentCoding::Gzip], &[broken], 1 << 20, 99);
            assert_eq!(read, Err(CodingError::Broken("gzip")), "{broken:?}");
        }
        let plain = decode(&[ContentCoding::Deflate], &[b"\xff\xff\xff"], 1 << 20, 99);
        assert_eq!(plain, Err(CodingError::Broken("deflate")));
        let cut = zlib(&b"text".repeat(99));
        assert!(decode(&[ContentCoding::Deflate], &[&cut[..9]], 1 << 20, 99).is_err());
    }

    #[test]
    fn a_body_of_nothing_is_nothing() {
        assert_eq!(decode(&[ContentCoding::Gzip], &[], 9, 9).unwrap(), b"");
        assert_eq!(decode(&[ContentCoding::Deflate, ContentCoding::Gzip], &[], 9, 9).unwrap(), b"");
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            deflate in any::<bool>(),
        ) {
            let coding = if deflate { ContentCoding::Deflate } else { ContentCoding::Gzip };
            let _ = decode(&[coding], &[&bytes], 1 << 16, 50);
        }
    }
}
