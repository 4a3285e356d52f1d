//! Writes a path on one line so that a person can read it and type it back.
//!
//! An invisible character is escaped as in [`ShownText`](crate::ShownText), for example `\n` or `\u{1b}`; a
//! byte that is not text as in [`spelling`](crate::spelling), for example `\xE9`. A backslash in front of
//! text that looks like an escape is written `\x5C`. So every path has its own text, which can be typed
//! back.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::shown::{self, ShownPath as _};
use crate::spelling::{self, ESCAPE};

/// The letters of the longest `\u{..}`.
const LONGEST: usize = 10;

/// Writes a path in this form.
pub(crate) struct PathText<'a>(pub(crate) &'a OsStr);

impl fmt::Display for PathText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, mut at) = (self.0.as_bytes(), 0);
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c == '\\' && parse_escape(bytes.get(at..).unwrap_or_default()).is_some() {
                    true => f.write_str("\\x5C")?,
                    false => shown::write_shown(c, f)?,
                }
                at += c.len_utf8();
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02X}")?;
                at += 1;
            }
        }
        Ok(())
    }
}

/// Parses the text of a path. A text no path has as its form means the path it is.
pub fn typed_path(text: &str) -> PathBuf {
    if !text.contains('\\') {
        return PathBuf::from(text);
    }
    let (mut rest, mut bytes) = (text.as_bytes(), Vec::with_capacity(text.len()));
    while let Some(first) = rest.first() {
        let length = match parse_escape(rest) {
            Some((TypedEscape::Byte(byte), length)) => {
                bytes.push(byte);
                length
            }
            Some((TypedEscape::Char(c), length)) => {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                length
            }
            None => {
                bytes.push(*first);
                1
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    let meant = PathBuf::from(OsString::from_vec(bytes));
    if meant.to_shown().to_string() == text { meant } else { Path::new(text).to_owned() }
}

enum TypedEscape {
    Byte(u8),
    Char(char),
}

/// The escape at the beginning of a text, with its length.
fn parse_escape(text: &[u8]) -> Option<(TypedEscape, usize)> {
    if let Some(byte) = spelling::escaped_byte(text, 0) {
        return Some((TypedEscape::Byte(byte), ESCAPE));
    }
    let [b'\\', letter, rest @ ..] = text else { return None };
    let short = |c| Some((TypedEscape::Char(c), 2));
    match letter {
        b'n' => short('\n'),
        b't' => short('\t'),
        b'r' => short('\r'),
        b'u' => {
            let rest = rest.get(..rest.len().min(LONGEST)).unwrap_or_default();
            let digits = rest.strip_prefix(b"{")?.split(|byte| *byte == b'}').next()?;
            let closed = rest.get(digits.len() + 1) == Some(&b'}');
            let digits = std::str::from_utf8(digits).ok().filter(|_| closed)?;
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            crate::is_hidden(c).then_some((TypedEscape::Char(c), digits.len() + 4))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(path: &[u8], shown: &str) {
        let path = Path::new(OsStr::from_bytes(path));
        assert_eq!(path.to_shown().to_string(), shown);
        assert_eq!(typed_path(shown), path);
    }

    #[test]
    fn a_path_is_typed_back_as_it_is_shown() {
        check(b"src/a.rs", "src/a.rs");
        check(b"caf\xe9/\xff", "caf\\xE9/\\xFF");
        check(b"caf\\xE9", "caf\\x5CxE9");
        check(b"a\nb\tc\rd", "a\\nb\\tc\\rd");
        check(b"a\\nb", "a\\x5Cnb");
        check(b"\x1b[31m\xe2\x80\xaex", "\\u{1b}[31m\\u{202e}x");
        check(b"\\u{1b}", "\\x5Cu{1b}");
        check(b"a\\b\\", "a\\b\\");
        check(b"\\\n", "\\\\n");
        check("é/ü".as_bytes(), "é/ü");
    }

    #[test]
    fn what_shows_no_path_means_itself() {
        for text in
            ["\\u{41}", "\\u{2f}", "\\u{2e}", "\\u{001b}", "\\x2F", "\\xC3\\xA9", "\\u{", "\\"]
        {
            assert_eq!(typed_path(text), Path::new(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_two_paths_are_shown_alike_and_each_is_typed_back(
            path in prop::collection::vec(prop::sample::select(b"\\xE95Cnu{1b}/a\n\xe9\x1b\xc2\x9b".to_vec()), 0..14),
            other in prop::collection::vec(prop::sample::select(b"\\xE95Cnu{1b}/a\n\xe9\x1b\xc2\x9b".to_vec()), 0..14),
        ) {
            let (path, other) = (Path::new(OsStr::from_bytes(&path)), Path::new(OsStr::from_bytes(&other)));
            let shown = path.to_shown().to_string();
            let typed = typed_path(&shown);
            prop_assert_eq!(typed.as_os_str(), path.as_os_str());
            prop_assert_eq!(shown == other.to_shown().to_string(), path.as_os_str() == other.as_os_str());
            prop_assert!(!shown.chars().any(crate::is_hidden));
        }

        #[test]
        fn no_text_means_more_parts_or_others_above(text in any::<String>()) {
            let path = typed_path(&text);
            let slashes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'/').count();
            prop_assert_eq!(slashes(path.as_os_str().as_bytes()), slashes(text.as_bytes()));
            let dots = |bytes: &[u8]| bytes.split(|byte| *byte == b'/').filter(|part| *part == b"..").count();
            prop_assert_eq!(dots(path.as_os_str().as_bytes()), dots(text.as_bytes()));
        }
    }
}
