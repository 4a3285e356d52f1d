//! Names of tools and secrets, checked when they are made, because they come from strangers' files.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The most bytes of a name, because interfaces of models accept at most 64 characters in a tool's name.
const MAX_NAME: usize = 64;

/// The text that is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a {what} name: use a letter, then letters, digits, `_` or `-`, at most {MAX_NAME} in all"
)]
pub struct InvalidName {
    what: &'static str,
    text: String,
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Parses a name: a letter, then letters, digits, `_` or `-`; at most 64 bytes.
            pub fn new(text: &str) -> Result<Self, InvalidName> {
                if is_name(text) {
                    return Ok(Self(text.into()));
                }
                let text = crate::ShownText::clip_line(text, MAX_NAME).to_string();
                Err(InvalidName { what: $what, text })
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::new(&text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

name! {
    /// The name of a tool, as in grants and for models.
    ToolName, "tool"
}

name! {
    /// The name of a secret. Never its value: this crate holds no values.
    SecretName, "secret"
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= MAX_NAME
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_confuse_a_log_or_a_path_are_refused() {
        for bad in ["", "1a", "a b", "a/b", "a.b", "é", "a\n", "-a", &"a".repeat(65)] {
            assert!(ToolName::new(bad).is_err(), "{bad:?}");
        }
        for good in ["file_read", "mcp__context7__get-docs", "Read", &"a".repeat(64)] {
            assert_eq!(ToolName::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn the_error_escapes_what_it_quotes() {
        let text = ToolName::new("a\u{202e}b").unwrap_err().to_string();
        assert!(!text.contains('\u{202e}'), "{text}");
    }
}
