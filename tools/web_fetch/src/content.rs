//! What a body is, and which characters its bytes stand for.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Bytes looked at for a `<meta charset>`, as HTML prescribes, and to tell text from binary.
const SNIFF: usize = 1024;

/// How a body is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    /// Shown as it is: plain text, JSON, XML, source code.
    Text,
}

/// The kind of a body, or the media type that cannot be shown.
pub(crate) fn kind(media_type: &str, body: &[u8]) -> Result<Kind, String> {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let text = essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || TEXTUAL.contains(&essence.as_str());
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Ok(Kind::Html),
        _ if text => Ok(Kind::Text),
        "" => sniff(body).ok_or_else(|| "data of unknown type".to_owned()),
        // The words of a stranger that end in an error text.
        _ => Err(essence.chars().filter(|c| c.is_ascii_graphic()).take(80).collect()),
    }
}

/// Types outside `text/` that are text all the same.
const TEXTUAL: &[&str] = &[
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/toml",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

fn sniff(body: &[u8]) -> Option<Kind> {
    let start = &body[..body.len().min(SNIFF)];
    if start.contains(&0) {
        return None;
    }
    let start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    let html = start.starts_with("<!doctype html") || start.starts_with("<html");
    Some(if html { Kind::Html } else { Kind::Text })
}

/// The text of a body: by its byte order mark, the header's charset, the page's own, else
/// UTF-8, and for HTML that is not UTF-8 the encoding that the web means then.
pub(crate) fn decode(media_type: &str, kind: Kind, body: &[u8]) -> String {
    let declared = charset(media_type.as_bytes()).or_else(|| {
        (kind == Kind::Html).then(|| charset(&body[..body.len().min(SNIFF)])).flatten()
    });
    let encoding = declared.unwrap_or_else(|| {
        // A cut may split the last character, so only an error before it counts.
        let whole = &body[..body.len().saturating_sub(3)];
        let broken = std::str::from_utf8(whole).is_err_and(|error| error.error_len().is_some());
        if kind == Kind::Html && broken { WINDOWS_1252 } else { UTF_8 }
    });
    encoding.decode(body).0.into_owned()
}

/// The encoding named after `charset=`, in a header or in a `<meta>`.
fn charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let (_, after) = text.split_once("charset")?;
    let label = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)));
    Encoding::for_label(&label.as_bytes()[..end.unwrap_or(label.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_and_the_rest_is_named() {
        assert_eq!(kind("text/html; charset=utf-8", b""), Ok(Kind::Html));
        for text in ["text/plain", "application/json", "application/problem+json", "image/svg+xml"]
        {
            assert_eq!(kind(text, b""), Ok(Kind::Text), "{text}");
        }
        assert_eq!(kind("image/png", b""), Err("image/png".to_owned()));
        assert_eq!(kind("", b" <!DOCTYPE html><p>"), Ok(Kind::Html));
        assert_eq!(kind("", b"plain"), Ok(Kind::Text));
        assert!(kind("", b"\x00\x01").is_err());
    }

    #[test]
    fn a_charset_is_found_in_header_page_and_bytes() {
        assert_eq!(decode("text/plain; charset=ISO-8859-1", Kind::Text, b"caf\xe9"), "café");
        let page = b"<meta charset=\"windows-1251\">\xcf\xf0\xe8\xe2\xe5\xf2";
        assert!(decode("text/html", Kind::Html, page).ends_with("Привет"));
        assert_eq!(decode("text/html", Kind::Html, b"caf\xe9 au lait"), "café au lait");
        assert_eq!(decode("text/html", Kind::Html, "café".as_bytes()), "café");
        assert_eq!(decode("", Kind::Text, b"\xef\xbb\xbfx"), "x");
    }
}
