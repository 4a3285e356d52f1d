//! The form of this program's ids in a path, a query or a body.

/// Returns whether a text has the form of this program's ids.
pub(crate) fn is_id(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(letter)
}
