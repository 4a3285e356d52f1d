//! Writes file names that are not Unicode as text, because guests and peers use texts as names.
//!
//! A byte that is not UTF-8 is written `\xHH`, with two upper-case digits: `caf\xE9.txt` is a Latin-1 name.
//! If a name has such letters itself, their backslash is written `\x5C`, so different names have different
//! spellings. Guests use the same spelling to open, change and make files. A text that is not the spelling
//! of another name is a name itself.
//!
//! `/`, NUL and `.` are never written this way. So the spelling of a path has as many parts as the path, and
//! cannot lead elsewhere.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The letters of one escape, for example `\xE9`.
pub(crate) const ESCAPE: usize = 4;

const BACKSLASH: u8 = b'\\';

/// The text of a name or path, for a guest or a peer.
pub fn spell_name(name: &OsStr) -> Cow<'_, str> {
    if let Some(text) = name.to_str().filter(|text| !text.contains("\\x")) {
        return Cow::Borrowed(text);
    }
    let bytes = name.as_bytes();
    let (mut out, mut at) = (String::with_capacity(bytes.len() + ESCAPE), 0);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            // Writing to a string cannot fail.
            let _ = match escaped_byte(bytes, at) {
                Some(_) => write!(out, "\\x{BACKSLASH:02X}"),
                None => out.write_char(c),
            };
            at += c.len_utf8();
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02X}");
            at += 1;
        }
    }
    Cow::Owned(out)
}

/// Whether the text of a name is the name itself.
pub fn is_plain(name: &OsStr) -> bool {
    matches!(spell_name(name), Cow::Borrowed(_))
}

/// The name or path for a text of a guest or a peer.
pub fn parse_spelled(text: &str) -> Cow<'_, OsStr> {
    if !text.contains("\\x") {
        return Cow::Borrowed(OsStr::new(text));
    }
    let bytes = text.as_bytes();
    let (mut name, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match escaped_byte(bytes, at) {
            Some(byte) => {
                name.push(byte);
                at += ESCAPE;
            }
            None => {
                name.push(*byte);
                at += 1;
            }
        }
    }
    let name = std::ffi::OsString::from_vec(name);
    // Accepted only if the name would be written exactly so.
    if spell_name(&name) == text { Cow::Owned(name) } else { Cow::Borrowed(OsStr::new(text)) }
}

/// The byte an escape at this position stands for: one that is not ASCII, or a backslash.
pub(crate) fn escaped_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let [BACKSLASH, b'x', high, low] = bytes.get(at..at.checked_add(ESCAPE)?)? else {
        return None;
    };
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    let byte = digit(*high)? << 4 | digit(*low)?;
    (byte >= 0x80 || byte == BACKSLASH).then_some(byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(name: &[u8], text: &str) {
        let name = OsStr::from_bytes(name);
        assert_eq!(spell_name(name), text);
        assert_eq!(parse_spelled(text), name);
    }

    #[test]
    fn a_byte_that_is_no_text_is_spelt_and_text_stays() {
        check(b"a.txt", "a.txt");
        check("Überblick.md".as_bytes(), "Überblick.md");
        check(b"caf\xe9.txt", "caf\\xE9.txt");
        check(b"\xff\xfe", "\\xFF\\xFE");
        check(b"a\\b", "a\\b");
        check(b"\\x41", "\\x41");
        check(b"\\xe9", "\\xe9");
    }

    #[test]
    fn a_text_that_looks_like_a_spelling_is_told_otherwise() {
        check(b"caf\\xE9.txt", "caf\\x5CxE9.txt");
        check(b"\\x5C", "\\x5Cx5C");
        check(b"\\\xe9", "\\\\xE9");
        check(b"\\x\xe9", "\\x\\xE9");
    }

    #[test]
    fn what_spells_no_name_means_itself() {
        for text in ["\\xC3\\xA9", "\\x5Cy", "a\\x2Fb", "\\x2E\\x2E", "\\x00", "\\x"] {
            assert_eq!(parse_spelled(text), OsStr::new(text));
        }
    }

    proptest! {
        #[test]
        fn every_name_has_a_spelling_of_its_own(
            one in prop::collection::vec(prop::sample::select(b"\\xE95C\xe9\xc3\xa9/a".to_vec()), 0..9),
            other in prop::collection::vec(prop::sample::select(b"\\xE95C\xe9\xc3\xa9/a".to_vec()), 0..9),
        ) {
            let (one, other) = (OsStr::from_bytes(&one), OsStr::from_bytes(&other));
            let told = spell_name(one);
            prop_assert_eq!(&*parse_spelled(&told), one);
            prop_assert_eq!(told == spell_name(other), one == other);
            prop_assert_eq!(spell_name(one).matches('/').count(),
                one.as_bytes().iter().filter(|byte| **byte == b'/').count());
        }

        #[test]
        fn no_text_of_a_guest_means_more_parts_or_others_above(text in any::<String>()) {
            let name = parse_spelled(&text);
            let parts = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'/').count();
            prop_assert_eq!(parts(name.as_bytes()), parts(text.as_bytes()));
            prop_assert_eq!(name.as_bytes().contains(&0), text.contains('\0'));
        }
    }
}
