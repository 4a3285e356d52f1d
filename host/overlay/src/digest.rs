//! The digest that identifies a content: a component, a file of an overlay, an installed library.
//!
//! For example, `Digest::hash_bytes(b"")` is shown as `e3b0c442...b855`, 64 hexadecimal digits.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of a file's content, read piece by piece; more than `most` bytes are an error.
    pub fn hash_file(file: File, most: u64) -> io::Result<Self> {
        let (mut hasher, mut piece) = (Sha256::new(), vec![0; 64 << 10]);
        let (mut file, mut read) = (file.take(most.saturating_add(1)), 0_u64);
        loop {
            let count = file.read(&mut piece)?;
            if count == 0 {
                return Ok(Self(hasher.finalize().into()));
            }
            read = read.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            if read > most {
                return Err(io::Error::other("it is too large"));
            }
            hasher.update(piece.get(..count).unwrap_or_default());
        }
    }

    /// Parses the displayed form of a [`Digest`]: 64 hexadecimal digits in lower case.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let value = |digit: &u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = value(high)? << 4 | value(low)?;
        }
        Some(Self(bytes))
    }

    /// A digest that was computed earlier.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'?');
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        let text = std::str::from_utf8(&text).map_err(|_| fmt::Error)?;
        f.write_str(text)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{self}")
    }
}
