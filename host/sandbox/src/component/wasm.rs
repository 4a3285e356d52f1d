//! The bytes of a component, and the digest that names them everywhere.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};

/// SHA-256 of a component's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// The bytes of a component. Cloning shares them; the digest is computed once, on first use.
#[derive(Clone)]
pub struct Wasm(Arc<Inner>);

struct Inner {
    bytes: Cow<'static, [u8]>,
    digest: OnceLock<Digest>,
}

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads what [`Digest`] displays: 64 hexadecimal digits in lower case.
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

    /// A digest that was computed before.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Wasm {
    /// Bytes embedded in the program.
    pub fn from_static(bytes: &'static [u8]) -> Self {
        Self::of(Cow::Borrowed(bytes))
    }

    /// The same, where the build has computed the digest, so that no process has to.
    pub fn known(bytes: &'static [u8], digest: Digest) -> Self {
        let wasm = Self::from_static(bytes);
        // An error: there is one, which there is not.
        let _ = wasm.0.digest.set(digest);
        wasm
    }

    /// Bytes read from somewhere.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self::of(Cow::Owned(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The digest.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| Digest::of(&self.0.bytes))
    }

    fn of(bytes: Cow<'static, [u8]>) -> Self {
        Self(Arc::new(Inner { bytes, digest: OnceLock::new() }))
    }
}

/// Lower-case hexadecimal, 64 characters.
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

impl fmt::Debug for Wasm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wasm({} bytes)", self.bytes().len())
    }
}
