//! The text of secrets: API keys `bj_<id>_<secret>`, logins (`bl_...`) and one-time links (`bo_...`),
//! made, parsed and compared. One kind is never accepted in place of another.
//!
//! The id is 16 lower-case hex digits and not secret. The secret is 32 random bytes in base64url (43
//! characters); only its SHA-256 is stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The prefix of an API key.
pub(crate) const KEY: &str = "bj_";
/// The prefix of a login, which a browser keeps in a cookie.
pub(crate) const LOGIN: &str = "bl_";
/// The prefix of the token in a one-time link.
pub(crate) const ONCE: &str = "bo_";

const ID_BYTES: usize = 8;
const ID_DIGITS: usize = 2 * ID_BYTES;
const SECRET_BYTES: usize = 32;
const SECRET_LETTERS: usize = 43;

/// A digest that no secret has. The secret of an unknown key is compared with it, so the check takes as long
/// as for a known key.
const NOBODY: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A newly made key, login or link. Its text is shown once and not stored.
pub struct NewSecret {
    /// The id by which the key is looked up.
    pub id: String,
    /// The whole key, for example `bj_<id>_<secret>`.
    pub text: String,
    /// The hash of the secret, which is stored.
    pub hash: String,
}

/// A key as sent by a caller: its form is checked, its secret is not.
pub(crate) struct PresentedKey<'a> {
    pub(crate) id: &'a str,
    secret: &'a str,
}

impl NewSecret {
    /// Makes an API key from the system's randomness.
    ///
    /// # Errors
    /// When the system returns no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        Self::with_prefix(KEY)
    }

    /// Makes a key, login or link with this prefix.
    pub(crate) fn with_prefix(prefix: &str) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; ID_BYTES + SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        let (id, secret) = bytes.split_at(ID_BYTES);
        let (id, secret) = (hex_text(id), URL_SAFE_NO_PAD.encode(secret));
        Ok(Self { text: format!("{prefix}{id}_{secret}"), hash: secret_digest(&secret), id })
    }
}

impl<'a> PresentedKey<'a> {
    /// Parses a key, login or link; `None` if the text has another form or prefix.
    pub(crate) fn parse(prefix: &str, text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(prefix)?.split_at_checked(ID_DIGITS)?;
        let secret = secret.strip_prefix('_')?;
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let fits =
            id.bytes().all(hex) && secret.len() == SECRET_LETTERS && secret.bytes().all(letter);
        fits.then_some(Self { id, secret })
    }

    /// Returns whether the secret has the stored digest; `stored` is `None` for an unknown key. Takes the
    /// same time in every case, so a caller cannot measure whether a key exists.
    pub(crate) fn matches_digest(&self, stored: Option<&str>) -> bool {
        let expected = stored.unwrap_or(NOBODY);
        let same = secret_digest(self.secret).as_bytes().ct_eq(expected.as_bytes());
        bool::from(same) && stored.is_some()
    }
}

fn secret_digest(secret: &str) -> String {
    hex_text(&Sha256::digest(secret.as_bytes()))
}

fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_opens_with_its_own_secret_alone() {
        let (one, other) = (NewSecret::generate().unwrap(), NewSecret::generate().unwrap());
        let presented = PresentedKey::parse(KEY, &one.text).unwrap();
        assert_eq!(presented.id, one.id);
        assert!(presented.matches_digest(Some(&one.hash)));
        assert!(!presented.matches_digest(Some(&other.hash)));
        assert!(!presented.matches_digest(None));
        assert!(!one.hash.contains(presented.secret));
    }

    #[test]
    fn what_is_not_of_the_form_is_no_key() {
        let key = NewSecret::generate().unwrap().text;
        assert_eq!(key.len(), 3 + 16 + 1 + 43);
        let longer = format!("{key}A");
        for text in
            ["", "bj_", &key[1..], &key[..key.len() - 1], &longer, "bj_é", &key.to_uppercase()]
        {
            assert!(PresentedKey::parse(KEY, text).is_none(), "{text}");
        }
        for prefix in [LOGIN, ONCE] {
            assert!(PresentedKey::parse(prefix, &key).is_none(), "a key is no {prefix}");
            let other = NewSecret::with_prefix(prefix).unwrap().text;
            assert!(PresentedKey::parse(KEY, &other).is_none(), "{prefix} is no key");
            assert!(PresentedKey::parse(prefix, &other).is_some());
        }
    }
}
