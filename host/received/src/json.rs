//! Replaces half a surrogate pair in JSON by U+FFFD, because strict parsers refuse the whole text.
//!
//! Half a pair occurs in two forms: as an escape, for example `\ud83d` without its second half, and as three
//! bytes from encoders that do not know surrogates (`ED A0 BD`). Complete pairs stay; two halves in bytes
//! that form a pair become their character. Everything else is for the parser: invalid JSON stays invalid.
//! For example, `"a\ud83d"` becomes `"a\ufffd"`.
//!
//! The result is never longer than the original, so a limit checked before also holds after.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// U+FFFD as a JSON escape.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";

/// The bytes of a Unicode escape, for example `\ud83d`.
const ESCAPE: usize = 6;

/// The bytes of half a pair that was encoded like UTF-8.
const ENCODED: usize = 3;

/// Replaces halves of pairs in a text. Returns the borrowed text if there are none.
pub fn mend_text(text: &str) -> Cow<'_, str> {
    match mend_bytes(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // An escape was replaced by an escape, so the bytes are still UTF-8.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Replaces halves of pairs in an owned text.
pub fn mend_owned(text: String) -> String {
    match mend_text(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(mended) => mended,
    }
}

/// Replaces halves of pairs in bytes, in both forms.
pub fn mend_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = find_half(bytes, 0).map(|found| found.at) else {
        return Cow::Borrowed(bytes);
    };
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(bytes.get(..first).unwrap_or_default());
    write_mended(bytes.get(first..).unwrap_or_default(), true, &mut out);
    Cow::Owned(out)
}

/// Parses JSON text, with halves of pairs replaced by U+FFFD.
///
/// # Errors
///
/// The errors of `serde_json`.
pub fn from_str<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(&mend_text(text))
}

/// Parses JSON bytes, with halves of pairs replaced by U+FFFD.
///
/// # Errors
///
/// The errors of `serde_json`.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&mend_bytes(bytes))
}

/// Parses like [`from_str`], and reads whole numbers as integers (see [`crate::whole`]). For texts parsed
/// into Rust types.
///
/// # Errors
///
/// The errors of `serde_json`.
pub fn from_str_with_wholes<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    from_slice_with_wholes(text.as_bytes())
}

/// Parses bytes as [`from_str_with_wholes`] parses text.
///
/// # Errors
///
/// The errors of `serde_json`.
pub fn from_slice_with_wholes<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&crate::whole::normalize_integers(&mend_bytes(bytes)))
}

/// Replaces halves of pairs in a stream that arrives in pieces. Stores an incomplete escape at the end of a
/// piece, at most 11 bytes, and nothing after a complete line.
#[derive(Debug, Default)]
pub struct JsonMender {
    /// The incomplete escape at the end of the last piece.
    held: Vec<u8>,
}

impl JsonMender {
    /// Converts a piece of the stream; appends bytes to `out` as soon as they are final.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let taken = write_mended(piece, false, out);
            self.held.extend_from_slice(piece.get(taken..).unwrap_or_default());
            return;
        }
        self.held.extend_from_slice(piece);
        let taken = write_mended(&self.held, false, out);
        self.held.drain(..taken);
    }

    /// Ends the stream: appends the stored bytes.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        write_mended(&std::mem::take(&mut self.held), true, out);
    }
}

/// Joins a surrogate pair whose halves are in two consecutive messages, for example a text streamed in
/// deltas and cut in the middle of an emoji. Each message keeps its name.
///
/// ```
/// use belljar_received::json::PairJoiner;
///
/// let (mut joiner, mut out) = (PairJoiner::default(), Vec::new());
/// for message in [r#"{"text":"a\ud83d"}"#, r#"{"text":"\ude00b"}"#] {
///     joiner.push_message("delta", message, &mut |_, text| Ok::<_, ()>(out.push(text.to_owned())))?;
/// }
/// assert_eq!(out, [r#"{"text":"a"}"#, r#"{"text":"\ud83d\ude00b"}"#]);
/// # Ok::<_, ()>(())
/// ```
#[derive(Debug, Default)]
pub struct PairJoiner {
    /// The message that waits for the next one.
    held: Option<HeldMessage>,
}

/// A message that waits for the next, because a text in it ends in the first half of a pair.
#[derive(Debug)]
struct HeldMessage {
    name: String,
    message: String,
    /// The position of the half in the message.
    half: usize,
}

impl PairJoiner {
    /// Passes a message to `each`, with halves of pairs replaced. A message with a text that ends in the
    /// first half of a pair waits for the next message.
    ///
    /// # Errors
    ///
    /// The errors of `each`.
    pub fn push_message<E>(
        &mut self,
        name: &str,
        message: &str,
        each: &mut dyn FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut message = Cow::Borrowed(message);
        if let Some(mut held) = self.held.take() {
            if let Some(at) = only_lone(&message, |message, found| {
                is_low(found.unit) && begins_text(message.as_bytes(), found.at)
            }) {
                let first: String = held.message.drain(held.half..held.half + ESCAPE).collect();
                message.to_mut().insert_str(at, &first);
            }
            each(&held.name, &mend_text(&held.message))?;
        }
        let ends_in_half = only_lone(&message, |message, found| {
            is_high(found.unit) && message.as_bytes().get(found.at + ESCAPE) == Some(&b'"')
        });
        match ends_in_half {
            Some(half) => {
                let (name, message) = (name.to_owned(), message.into_owned());
                self.held = Some(HeldMessage { name, message, half });
                Ok(())
            }
            None => each(name, &mend_text(&message)),
        }
    }

    /// Ends the stream: passes a waiting message to `each`.
    ///
    /// # Errors
    ///
    /// The errors of `each`.
    pub fn end<E>(&mut self, each: &mut dyn FnMut(&str, &str) -> Result<(), E>) -> Result<(), E> {
        match self.held.take() {
            Some(held) => each(&held.name, &mend_text(&held.message)),
            None => Ok(()),
        }
    }
}

/// The position of the half in a message with exactly one half that `fits`. `None` for several halves,
/// because it would be ambiguous which belong together.
fn only_lone(message: &str, fits: impl Fn(&str, &FoundHalf) -> bool) -> Option<usize> {
    let bytes = message.as_bytes();
    let found = find_half(bytes, 0)?;
    let more = find_half(bytes, found.at + found.len).is_some();
    (!more && found.len == ESCAPE && fits(message, &found)).then_some(found.at)
}

/// Whether a JSON string begins at `at`.
fn begins_text(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(..at).unwrap_or_default();
    before.ends_with(b"\"") && !before.ends_with(b"\\\"")
}

/// Half a pair at a position; or two encoded halves that form a pair.
struct FoundHalf {
    /// The position in bytes.
    at: usize,
    len: usize,
    /// The half as a UTF-16 code unit.
    unit: u16,
    /// The character of two encoded halves that form a pair.
    whole: Option<char>,
}

/// Appends `bytes` to `out`, with halves of pairs replaced. Returns how many bytes were used: all if `last`,
/// which means that no bytes follow; otherwise all but an incomplete escape at the end.
fn write_mended(bytes: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
    let end = if last { bytes.len() } else { decided_len(bytes) };
    let bytes = bytes.get(..end).unwrap_or_default();
    let mut at = 0;
    while let Some(found) = find_half(bytes, at) {
        out.extend_from_slice(bytes.get(at..found.at).unwrap_or_default());
        match (found.whole, found.len) {
            (Some(whole), _) => out.extend_from_slice(whole.encode_utf8(&mut [0; 4]).as_bytes()),
            (None, ESCAPE) => out.extend_from_slice(REPLACEMENT),
            (None, _) => out.extend_from_slice("\u{fffd}".as_bytes()),
        }
        at = found.at + found.len;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    end
}

/// The first half of a pair at or after the position `at`.
fn find_half(bytes: &[u8], mut at: usize) -> Option<FoundHalf> {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => match parse_escape(bytes, at) {
                EscapeKind::Unit(unit) if is_high(unit) => match parse_escape(bytes, at + ESCAPE) {
                    EscapeKind::Unit(low) if is_low(low) => at += 2 * ESCAPE,
                    _ => return Some(FoundHalf { at, len: ESCAPE, unit, whole: None }),
                },
                EscapeKind::Unit(unit) if is_low(unit) => {
                    return Some(FoundHalf { at, len: ESCAPE, unit, whole: None });
                }
                EscapeKind::Unit(_) => at += ESCAPE,
                EscapeKind::Other | EscapeKind::Cut => at += 2,
            },
            0xed => match decode_surrogate(bytes, at) {
                Some(unit) => {
                    let low = decode_surrogate(bytes, at + ENCODED).filter(|low| is_low(*low));
                    let whole = low.filter(|_| is_high(unit)).and_then(|low| join_pair(unit, low));
                    let len = if whole.is_some() { 2 * ENCODED } else { ENCODED };
                    return Some(FoundHalf { at, len, unit, whole });
                }
                None => at += 1,
            },
            _ => at += 1,
        }
    }
    None
}

/// How many bytes can be converted without knowing the bytes after them.
fn decided_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => match parse_escape(bytes, at) {
                EscapeKind::Cut => return at,
                EscapeKind::Unit(unit) if is_high(unit) => match bytes.get(at + ESCAPE) {
                    None => return at,
                    Some(b'\\') => match parse_escape(bytes, at + ESCAPE) {
                        EscapeKind::Cut => return at,
                        EscapeKind::Unit(low) if is_low(low) => at += 2 * ESCAPE,
                        EscapeKind::Unit(_) | EscapeKind::Other => at += ESCAPE,
                    },
                    Some(_) => at += ESCAPE,
                },
                EscapeKind::Unit(_) => at += ESCAPE,
                EscapeKind::Other => at += 2,
            },
            0xed => {
                let rest = bytes.get(at..).unwrap_or_default();
                // The next bytes decide whether the character is complete.
                let high = decode_surrogate(bytes, at).is_some_and(is_high);
                let cut = rest.len() < ENCODED
                    && rest.get(1).is_none_or(|byte| (0xa0..=0xbf).contains(byte));
                if cut || (high && rest.len() < 2 * ENCODED && begins_low(rest)) {
                    return at;
                }
                at += if decode_surrogate(bytes, at).is_some() { ENCODED } else { 1 };
            }
            _ => at += 1,
        }
    }
    bytes.len().min(at)
}

/// Whether the bytes after an encoded half may be the start of the second half.
fn begins_low(bytes: &[u8]) -> bool {
    let behind = bytes.get(ENCODED..).unwrap_or_default();
    behind.first().is_none_or(|byte| *byte == 0xed)
        && behind.get(1).is_none_or(|byte| (0xb0..=0xbf).contains(byte))
}

/// What a backslash and the bytes after it mean.
enum EscapeKind {
    /// A Unicode escape, as a UTF-16 code unit.
    Unit(u16),
    /// Another escape, or an invalid escape.
    Other,
    /// The bytes end within the escape.
    Cut,
}

/// Parses an escape `\uXXXX` at a position. [`EscapeKind::Cut`] if the bytes end within the escape.
fn parse_escape(bytes: &[u8], at: usize) -> EscapeKind {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest {
        [b'\\', b'u', digits @ ..] => {
            let mut unit = 0_u16;
            for n in 0..4 {
                let Some(byte) = digits.get(n) else { return EscapeKind::Cut };
                let Some(digit) = char::from(*byte).to_digit(16) else { return EscapeKind::Other };
                unit = (unit << 4) | u16::try_from(digit).unwrap_or_default();
            }
            EscapeKind::Unit(unit)
        }
        [b'\\'] => EscapeKind::Cut,
        _ => EscapeKind::Other,
    }
}

/// The surrogate encoded in three bytes at this position.
fn decode_surrogate(bytes: &[u8], at: usize) -> Option<u16> {
    match bytes.get(at..at.checked_add(ENCODED)?)? {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf] => {
            Some(0xd000 | (u16::from(*second & 0x3f) << 6) | u16::from(*third & 0x3f))
        }
        _ => None,
    }
}

fn is_high(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

fn join_pair(high: u16, low: u16) -> Option<char> {
    char::decode_utf16([high, low]).next()?.ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn joined(messages: &[&str]) -> Vec<String> {
        let (mut joiner, mut out) = (PairJoiner::default(), Vec::new());
        let mut each = |_: &str, text: &str| {
            out.push(text.to_owned());
            Ok::<_, ()>(())
        };
        for message in messages {
            joiner.push_message("", message, &mut each).unwrap();
        }
        joiner.end(&mut each).unwrap();
        out
    }

    #[test]
    fn half_a_pair_is_replaced_and_all_else_stays() {
        for (text, expected) in [
            (r#""cut \ud83d""#, "cut \u{fffd}"),
            (r#""\uD83D\n""#, "\u{fffd}\n"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\ud83d\\ude00""#, "\u{fffd}\\ude00"),
            (r#""\ud83dx\ude00""#, "\u{fffd}x\u{fffd}"),
            (r#""\u0041\ud7ff\ue000""#, "A\u{d7ff}\u{e000}"),
        ] {
            assert_eq!(from_str::<String>(text).unwrap(), expected, "{text}");
        }
        assert!(matches!(mend_text(r#"{"a":"\ud83d\ude00 \\ud83d"}"#), Cow::Borrowed(_)));
        for none in [r#""\ud83"#, r#""\ud83""#, r#""\u""#, "\\", "{", ""] {
            assert!(from_str::<Value>(none).is_err(), "{none}");
        }
    }

    #[test]
    fn an_encoded_half_is_replaced_and_two_of_a_pair_are_joined() {
        let read = |bytes: &[u8]| from_slice::<String>(&[b"\"", bytes, b"\""].concat());
        assert_eq!(read(b"a\xed\xa0\xbdb").unwrap(), "a\u{fffd}b");
        assert_eq!(read(b"\xed\xa0\xbd\xed\xb8\x80").unwrap(), "😀");
        assert_eq!(read(b"\xed\xb8\x80\xed\xa0\xbd").unwrap(), "\u{fffd}\u{fffd}");
        assert_eq!(read("\u{d7ff}".as_bytes()).unwrap(), "\u{d7ff}");
        assert!(read(b"\xff").is_err() && read(b"\xed\xa0").is_err());
    }

    #[test]
    fn a_pair_that_two_messages_share_is_joined() {
        let message = |text: &str| format!(r#"{{"t":"{text}","n":1}}"#);
        let (a, b) = (message("one \\ud83d"), message("\\ude00 two"));
        assert_eq!(joined(&[&a, &b]), [message("one "), message("\\ud83d\\ude00 two")]);
        // Nothing is joined across a message in between, nor if the halves are not adjacent.
        let other = message("x");
        let broken = [message("one \\ufffd"), other.clone(), message("\\ufffd two")];
        assert_eq!(joined(&[&a, &other, &b]), broken);
        assert_eq!(joined(&[&a]), [message("one \\ufffd")]);
        assert_eq!(joined(&[&a, &a]), [message("one \\ufffd"), message("one \\ufffd")]);
        let apart = message(" \\ude00");
        assert_eq!(joined(&[&a, &apart]), [message("one \\ufffd"), message(" \\ufffd")]);
        let both = message("\\ude00 \\ud83d");
        assert_eq!(joined(&[&a, &both])[1], message("\\ufffd \\ufffd"));
    }

    #[test]
    fn a_stream_keeps_nothing_back_behind_a_line() {
        let (mut mender, mut out) = (JsonMender::default(), Vec::new());
        mender.push(b"{\"a\":\"\\ud83d", &mut out);
        assert_eq!(out, b"{\"a\":\"");
        mender.push(b"\"}\n", &mut out);
        assert_eq!(out, b"{\"a\":\"\\ufffd\"}\n");
    }

    #[test]
    fn a_megabyte_of_halves_is_mended_in_place() {
        let text = format!("\"{}\"", "\\ud83d".repeat(200_000));
        let mended = mend_text(&text);
        assert_eq!(mended.len(), text.len());
        assert_eq!(serde_json::from_str::<String>(&mended).unwrap().chars().count(), 200_000);
    }

    /// Pieces of JSON text around surrogates.
    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            &b"\\ud83d"[..],
            b"\\ude00",
            b"\\uDBFF",
            b"\\\\",
            b"\\n",
            b"\\\"",
            b"\\u0041",
            b"u",
            b"d83d",
            b"x",
            b"\xed\xa0\xbd",
            b"\xed\xb8\x80",
            b"\xed\x9f\xbf",
            "é".as_bytes(),
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn every_text_with_halves_is_read_and_is_no_longer_than_before(inner in pieces()) {
            let text = [b"\"", &inner[..], b"\""].concat();
            let mended = mend_bytes(&text);
            prop_assert!(mended.len() <= text.len());
            prop_assert!(serde_json::from_slice::<String>(&mended).is_ok(), "{:?}", text);
            prop_assert_eq!(mend_bytes(&mended), mended.clone());
        }

        #[test]
        fn a_text_without_halves_is_not_touched(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert!(matches!(mend_text(&json), Cow::Borrowed(_)));
        }

        #[test]
        fn how_a_stream_is_cut_makes_no_difference(
            inner in pieces(),
            cuts in prop::collection::vec(0_usize..60, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| *at <= inner.len()).collect();
            cuts.extend([0, inner.len()]);
            cuts.sort_unstable();
            let (mut mender, mut out) = (JsonMender::default(), Vec::new());
            for cut in cuts.windows(2) {
                mender.push(&inner[cut[0]..cut[1]], &mut out);
                prop_assert!(mender.held.len() < 2 * ESCAPE);
            }
            mender.end(&mut out);
            prop_assert_eq!(out, mend_bytes(&inner).into_owned());
        }

        #[test]
        fn any_bytes_are_mended_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            let mended = mend_bytes(&bytes);
            prop_assert!(mended.len() <= bytes.len());
        }
    }
}
