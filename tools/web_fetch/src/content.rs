//! What a body is, and which characters its bytes stand for.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

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
    let wide = Encoding::for_bom(body).map(|(encoding, _)| encoding).or_else(|| wide(start));
    let start = match wide {
        Some(encoding) => encoding.decode(start).0,
        None if start.contains(&0) => return None,
        None => String::from_utf8_lossy(start),
    };
    let start = start.trim_start().to_ascii_lowercase();
    let html = start.starts_with("<!doctype html") || start.starts_with("<html");
    Some(if html { Kind::Html } else { Kind::Text })
}

/// A body as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    /// A guess that was made, or bytes that stand for nothing: whoever reads the text is told.
    pub(crate) note: Option<String>,
}

/// The text of a body: by its byte order mark, the header's charset, its own words, else UTF-8. What is
/// none is read in the encoding that the web means then, and it is said.
pub(crate) fn decode(media_type: &str, kind: Kind, body: &[u8]) -> Decoded {
    let start = &body[..body.len().min(SNIFF)];
    let own = || {
        let page = || (kind == Kind::Html).then(|| meta(start)).flatten();
        wide(start).or_else(|| xml(start)).or_else(page)
    };
    let declared = charset(media_type).or_else(own);
    // A cut may split the last character, so only an error before it counts.
    let whole = &body[..body.len().saturating_sub(3)];
    let broken = || std::str::from_utf8(whole).is_err_and(|error| error.error_len().is_some());
    let guessed = declared.is_none() && Encoding::for_bom(body).is_none() && broken();
    let encoding = declared.unwrap_or(if guessed { WINDOWS_1252 } else { UTF_8 });
    let (text, encoding, bad) = encoding.decode(body);
    let note = if guessed && kind != Kind::Html {
        Some("it names no encoding and is not UTF-8; read as windows-1252".to_owned())
    } else if bad && encoding.decode(whole).2 {
        let name = encoding.name();
        Some(format!("it is not all {name}; the bytes that are not are shown as U+FFFD"))
    } else {
        None
    };
    Decoded { text: text.into_owned(), note }
}

/// The encoding that a media type names.
fn charset(media_type: &str) -> Option<&'static Encoding> {
    labels(&media_type.to_ascii_lowercase(), "charset").find_map(encoding)
}

/// The encoding that a page names in a `<meta>`. What was read so far as ASCII is no UTF-16.
fn meta(start: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    let found = labels(&text, "charset").find_map(encoding)?;
    Some(if found == UTF_16LE || found == UTF_16BE { UTF_8 } else { found })
}

/// The encoding that an XML declaration names; without a word of it, the rest of this is as of pages.
fn xml(start: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let (declaration, _) = text.strip_prefix("<?xml")?.split_once("?>")?;
    let found = labels(declaration, "encoding").find_map(encoding)?;
    Some(if found == UTF_16LE || found == UTF_16BE { UTF_8 } else { found })
}

/// UTF-16 without a mark: every other byte of its first letters is zero.
fn wide(start: &[u8]) -> Option<&'static Encoding> {
    match start {
        [b, 0, c, 0, ..] if *b != 0 && *c != 0 => Some(UTF_16LE),
        [0, b, 0, c, ..] if *b != 0 && *c != 0 => Some(UTF_16BE),
        _ => None,
    }
}

/// The values that a text gives a name: `charset=utf-8`, `encoding = "utf-8"`.
fn labels<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(name).filter_map(|(at, name)| {
        let after = text[at + name.len()..].trim_start().strip_prefix('=')?;
        let label = after.trim_start().trim_start_matches(['"', '\'']);
        let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || "-_:.".contains(c)));
        Some(&label[..end.unwrap_or(label.len())])
    })
}

fn encoding(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.as_bytes())
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
        let text = |media_type, kind, body| {
            let Decoded { text, note } = decode(media_type, kind, body);
            assert_eq!(note, None, "{text}");
            text
        };
        assert_eq!(text("text/plain; charset=ISO-8859-1", Kind::Text, b"caf\xe9"), "café");
        let page = b"<meta charset=\"windows-1251\">\xcf\xf0\xe8\xe2\xe5\xf2";
        assert!(text("text/html", Kind::Html, page).ends_with("Привет"));
        let page = b"<script charset></script><meta http-equiv=Content-Type \
            content='text/html; charset=koi8-r'>\xf0";
        assert!(text("text/html", Kind::Html, page).ends_with('П'));
        assert_eq!(text("text/html", Kind::Html, b"caf\xe9 au lait"), "café au lait");
        assert_eq!(text("text/html", Kind::Html, "café".as_bytes()), "café");
        assert_eq!(text("", Kind::Text, b"\xef\xbb\xbfx"), "x");
        assert_eq!(text("text/plain; charset=none-such", Kind::Text, "é".as_bytes()), "é");
    }

    #[test]
    fn the_encoding_of_an_xml_declaration_is_its_texts() {
        for (declaration, letter) in [
            ("<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>", b'\xe9'),
            ("<?xml version='1.0' encoding = 'windows-1252' standalone='yes'?>", b'\xe9'),
        ] {
            let body = [declaration.as_bytes(), b"<a>", &[letter], b"</a>"].concat();
            for (media_type, kind) in [("application/rss+xml", Kind::Text), ("", Kind::Html)] {
                let Decoded { text, note } = decode(media_type, kind, &body);
                assert!(text.ends_with("<a>é</a>") && note.is_none(), "{text}");
            }
        }
        // A header says it before, and text that is none says nothing.
        let body = b"<?xml encoding='windows-1251'?>\xc3\xa9";
        assert!(decode("text/xml; charset=utf-8", Kind::Text, body).text.ends_with('é'));
        let body = "as in <?xml encoding='windows-1251'?>é".as_bytes();
        assert!(decode("text/plain", Kind::Text, body).text.ends_with('é'));
        // It is read, so it is no UTF-16.
        let body = "<?xml encoding='utf-16'?>é".as_bytes();
        assert!(decode("text/xml", Kind::Text, body).text.ends_with('é'));
    }

    #[test]
    fn utf_16_is_read_with_and_without_a_mark() {
        let wide = |text: &str, mark: bool, big: bool| {
            let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
            let bytes = units.flat_map(|unit: u16| match big {
                true => unit.to_be_bytes(),
                false => unit.to_le_bytes(),
            });
            bytes.collect::<Vec<u8>>()
        };
        for (mark, big) in [(true, true), (true, false), (false, true), (false, false)] {
            let body = wide("<?xml version='1.0'?><a>déjà</a>", mark, big);
            assert_eq!(kind("", &body), Ok(Kind::Text));
            let Decoded { text, note } = decode("application/xml", Kind::Text, &body);
            assert!(text.ends_with("<a>déjà</a>") && note.is_none(), "{text}");
        }
        assert_eq!(kind("", &wide("<!DOCTYPE html>", true, false)), Ok(Kind::Html));
    }

    #[test]
    fn a_guess_and_bytes_without_a_letter_are_told() {
        let Decoded { text, note } = decode("text/plain", Kind::Text, b"caf\xe9 au lait");
        assert_eq!(
            (text.as_str(), note.is_some_and(|it| it.contains("windows-1252"))),
            ("café au lait", true)
        );
        let Decoded { text, note } = decode("text/plain; charset=utf-8", Kind::Text, b"a\xffbcdef");
        assert_eq!(
            (text.as_str(), note.is_some_and(|it| it.contains("U+FFFD"))),
            ("a\u{fffd}bcdef", true)
        );
        // The end of what was cut off is no fault of the text.
        assert_eq!(decode("text/plain", Kind::Text, b"caf\xc3").note, None);
    }
}
