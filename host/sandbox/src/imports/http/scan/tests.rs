//! Texts in which a secret is found, and texts in which none is.

use super::*;

const VALUE: &str = "s3cr\"t/+value&42";

fn found(text: &[u8]) -> bool {
    found_by(&SecretForms::from_value(VALUE.as_bytes()), [text])
}

fn found_by<'a>(forms: &SecretForms, pieces: impl IntoIterator<Item = &'a [u8]>) -> bool {
    let mut scanner = SecretScanner::for_forms(vec![forms]);
    pieces.into_iter().for_each(|piece| scanner.push_piece(piece));
    scanner.has_match()
}

/// The value with the characters of `of` escaped, and the others unchanged.
fn escaped(value: &str, of: impl Fn(char) -> bool, escape: impl Fn(u32) -> String) -> String {
    value.chars().map(|c| if of(c) { escape(c.into()) } else { c.into() }).collect()
}

fn json(value: &str) -> String {
    serde_json::to_string(value).unwrap()
}

/// A secret from a security review. The spellings below are what servers make of the secret by the default
/// functions of their languages.
const REVIEWED: &str = "Qk9/ab+cd8F0zz&Lm2\"Pq7Xy3w==";

fn spellings(value: &str) -> Vec<(&'static str, String)> {
    let unicode = |code: u32| format!("\\u{code:04x}");
    let percent = |code: u32| format!("%{code:02X}");
    let html = |value: &str| value.replace('&', "&amp;").replace('"', "&quot;");
    let unreserved = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    let component = escaped(value, |c| !unreserved(c) && !"!*'()".contains(c), percent);
    let quoted = escaped(value, |c| !unreserved(c) && c != '/', percent);
    let every = |escape: &dyn Fn(u32) -> String| escaped(value, |_| true, escape);
    let php = json(value).replace('/', "\\/");
    let mixed = value.char_indices().map(|(at, c)| match at % 7 {
        0 => unicode(c.into()),
        1 => percent(c.into()),
        2 => format!("&#{};", u32::from(c)),
        3 => format!("&#X{:x};", u32::from(c)),
        4 => format!("\\x{:02X}", u32::from(c)),
        5 => format!("\\\\\\{c}"),
        _ => c.into(),
    });
    vec![
        ("as it is", value.to_owned()),
        ("capitals", value.to_ascii_uppercase()),
        ("Python json.dumps", json(value)),
        ("PHP json_encode", php.clone()),
        ("Go encoding/json", escaped(&json(value), |c| "&<>".contains(c), unicode)),
        ("Rails to_json", escaped(&json(value), |c| "&<>=".contains(c), unicode)),
        (".NET JsonSerializer", escaped(value, |c| "\"&'+<>`".contains(c), unicode)),
        ("PHP JSON_HEX_AMP", escaped(&php, |c| c == '&', |code| format!("\\u{code:04X}"))),
        ("JSON in JSON", json(&json(value))),
        ("PHP JSON in JSON", json(&php).replace('/', "\\/")),
        ("Go JSON in JSON", json(&escaped(&json(value), |c| c == '&', unicode))),
        ("JSON in JSON in JSON", json(&json(&json(value)))),
        ("HTML, all but quotes", value.replace('&', "&amp;")),
        ("HTML", html(value)),
        ("HTML of Go", value.replace('&', "&amp;").replace('"', "&#34;")),
        ("HTML of JavaScript", escaped(value, |c| "&\"/=`".contains(c), |c| format!("&#x{c:X};"))),
        ("HTML by names", value.replace('&', "&amp;").replace('/', "&sol;").replace('+', "&plus;")),
        ("HTML twice", html(&html(value))),
        ("JSON in HTML", html(&json(value))),
        ("HTML in Go JSON", escaped(&json(&html(value)), |c| c == '&', unicode)),
        ("Python quote", quoted.clone()),
        ("Python quote, lower case", quoted.to_ascii_lowercase()),
        ("Python quote in HTML", html(&quoted)),
        ("encodeURI", escaped(value, |c| c == '"', percent)),
        ("encodeURIComponent", component.clone()),
        ("encodeURIComponent twice", component.replace('%', "%25")),
        ("encodeURIComponent thrice", component.replace('%', "%2525")),
        ("JSON in a URL", escaped(&json(value), |c| !unreserved(c), percent)),
        ("HTML in a URL", escaped(&html(value), |c| !unreserved(c), percent)),
        ("Go JSON in a URL", quoted.replace("%26", "%5Cu0026")),
        ("every byte in a URL", every(&percent)),
        ("every byte in a URL, twice", every(&|code| escaped(&percent(code), |_| true, percent))),
        ("every byte by its number", every(&unicode)),
        ("every byte in braces", every(&|code| format!("\\u{{{code:x}}}"))),
        ("nginx's log", escaped(value, |c| "\"\\".contains(c), |code| format!("\\x{code:02X}"))),
        ("numbers with zeros", every(&|code| format!("&#{code:07};"))),
        ("a mix of all", mixed.collect()),
    ]
}

#[test]
fn what_a_language_makes_of_a_value_by_default_is_found() {
    for value in [REVIEWED, VALUE, "pass phrase\\with/100%25&amp;more"] {
        let forms = SecretForms::from_value(value.as_bytes());
        for (name, text) in spellings(value) {
            assert!(found_by(&forms, [text.as_bytes()]), "{name}: {text}");
            // The text before the secret may look like the beginning of an escape.
            for before in ["%", "\\", "\\u", "&", "&#", "%2", "%25", "\\\\", "&%\\u{&%", "%%%%%"] {
                let text = format!("{before}{text}");
                assert!(found_by(&forms, [text.as_bytes()]), "{name}: {text}");
            }
        }
    }
    let forms = SecretForms::from_value(b"a pass phrase of words");
    for text in ["a+pass+phrase+of+words", "a%20pass+phrase%20of words"] {
        assert!(found_by(&forms, [text.as_bytes()]), "{text}");
    }
}

#[test]
fn an_escaped_value_in_two_or_more_pieces_is_found() {
    let forms = SecretForms::from_value(REVIEWED.as_bytes());
    for (name, text) in spellings(REVIEWED) {
        let text = format!("before {text} after");
        for end in 0..=text.len() {
            let (one, two) = text.as_bytes().split_at(end);
            assert!(found_by(&forms, [one, two]), "{name}: {end}");
        }
        assert!(found_by(&forms, text.as_bytes().chunks(1)), "{name}");
    }
}

#[test]
fn what_an_escaped_value_lacks_or_has_too_much_is_not_found() {
    let forms = SecretForms::from_value(REVIEWED.as_bytes());
    for at in 0..REVIEWED.len() {
        let (before, rest) = REVIEWED.split_at(at);
        for near in [format!("{before}{}", &rest[1..]), format!("{before}:{rest}")] {
            // An added character before the first one leaves the value complete.
            let whole = near.contains(REVIEWED);
            for (name, text) in spellings(&near) {
                assert_eq!(found_by(&forms, [text.as_bytes()]), whole, "{name}: {text}");
            }
        }
    }
    // Escapes of other bytes, and invalid escapes.
    for (one, other) in [
        ("/", "\\u002e"),
        ("/", "\\u02f"),
        ("/", "%2"),
        ("/", "%2e"),
        ("&", "&am;"),
        ("&", "&ampamp;"),
        ("&", "&#39;"),
        ("&", "&#x126;"),
        ("+", "%20"),
    ] {
        let text = REVIEWED.replace(one, other);
        assert!(!found_by(&forms, [text.as_bytes()]), "{text}");
    }
}

#[test]
fn what_a_base64_value_stands_for_is_found_escaped_too() {
    let forms = SecretForms::from_value(STANDARD.encode("user:pass/word&").as_bytes());
    for text in ["user:pass\\/word&amp;", "user%3Apass/word%26", "user:pass/word\\u0026"] {
        assert!(found_by(&forms, [text.as_bytes()]), "{text}");
    }
}

#[test]
fn base64_is_found_in_escapes_and_over_the_ends_of_lines() {
    let value = format!("{REVIEWED}??>>~~{REVIEWED}").repeat(2);
    let forms = SecretForms::from_value(value.as_bytes());
    for before in ["", "x", "xx"] {
        let coded = STANDARD.encode(format!("{before}{value}y"));
        assert!(coded.contains('/') && coded.contains('+'), "{coded}");
        for end in ["\n", "\r\n", "\r\n  "] {
            let lines: Vec<_> = coded.as_bytes().chunks(76).collect();
            let lines = String::from_utf8(lines.join(end.as_bytes())).unwrap();
            for (name, text) in spellings(&lines) {
                let whole = !end.ends_with(' ');
                assert_eq!(found_by(&forms, [text.as_bytes()]), whole, "{name}: {text}");
            }
        }
        for (name, text) in spellings(&coded) {
            assert!(found_by(&forms, [text.as_bytes()]), "{name}: {text}");
        }
    }
    let forms = SecretForms::from_value(&[b'k'; MAX_SPELLED + 1]);
    assert!(found_by(&forms, [STANDARD.encode([b'k'; MAX_SPELLED + 1]).as_bytes()]));
}

#[test]
fn every_stated_form_is_found_inside_other_text() {
    let v = VALUE.as_bytes();
    let hex: String = v.iter().map(|b| format!("{b:02X}")).collect();
    for (name, text) in spellings(VALUE) {
        assert!(found(format!("a{text}b").as_bytes()), "{name}: {text}");
    }
    assert!(found(format!("a{hex}b").as_bytes()));
    for before in 0..4 {
        for after in 0..4 {
            let text = [vec![b'<'; before], v.to_vec(), vec![b'>'; after]].concat();
            assert!(found(STANDARD.encode(&text).as_bytes()), "{before} {after}");
            assert!(found(URL_SAFE_NO_PAD.encode(&text).as_bytes()), "{before} {after}");
        }
    }
}

#[test]
fn what_a_base64_value_stands_for_is_found() {
    let forms = SecretForms::from_value(STANDARD.encode("user:password").as_bytes());
    assert!(found_by(&forms, [&b"hello user:password!"[..]]));
}

#[test]
fn a_value_in_pieces_of_any_size_is_found() {
    let forms = SecretForms::from_value(VALUE.as_bytes());
    for text in [format!("before {VALUE} after"), VALUE.to_owned()] {
        for size in 1..=text.len() {
            assert!(found_by(&forms, text.as_bytes().chunks(size)), "{size}");
        }
    }
}

#[test]
fn a_value_that_lacks_a_byte_at_either_end_is_not_found() {
    let forms = SecretForms::from_value(VALUE.as_bytes());
    for end in 0..VALUE.len() {
        let (start, rest) = VALUE.split_at(end);
        for text in [start, rest, &format!("{start}.{rest}"), &rest.repeat(3)] {
            let whole = text.contains(VALUE);
            assert_eq!(found_by(&forms, [text.as_bytes()]), whole, "{text}");
            assert_eq!(found_by(&forms, text.as_bytes().chunks(1)), whole, "{text}");
        }
    }
}

#[test]
fn a_form_that_begins_with_zeros_is_not_found_before_the_text() {
    let forms = SecretForms::from_value(STANDARD.encode(b"\0\0\0\0abcd").as_bytes());
    assert!(!found_by(&forms, [&b"abcd"[..]]));
    assert!(found_by(&forms, [&b"\0\0\0"[..], b"\0abcd"]));
}

/// The byte in one of several notations, chosen by number.
fn written(byte: u8, way: u8) -> String {
    let c = char::from(byte);
    let name = match byte {
        b'&' => "amp",
        b'"' => "quot",
        b'/' => "sol",
        b'=' => "equals",
        _ => return written_plainly(byte, way),
    };
    if way.is_multiple_of(3) { format!("&{name};") } else { written_plainly(c as u8, way / 3) }
}

fn written_plainly(byte: u8, way: u8) -> String {
    let c = char::from(byte);
    match way % 14 {
        0 => format!("\\u{byte:04x}"),
        1 => format!("\\u{byte:04X}"),
        2 => format!("\\u{{{byte:X}}}"),
        3 => format!("\\x{byte:02x}"),
        4 => format!("\\\\\\u{byte:04x}"),
        5 => format!("%{byte:02x}"),
        6 => format!("%{byte:02X}"),
        7 => format!("%25{byte:02X}"),
        8 => format!("&#{byte};"),
        9 => format!("&#x{byte:x};"),
        10 => format!("&#X{byte:04X};"),
        11 => format!("\\{c}"),
        12 => format!("\\\\{c}"),
        _ => c.into(),
    }
}

proptest::proptest! {
    #[test]
    fn a_coded_form_is_found_exactly_where_a_plain_search_finds_one(
        value in "[aAbB17]{8,12}",
        text in "[aAbB17]{0,200}",
        size in 1_usize..40,
    ) {
        let low = text.to_ascii_lowercase();
        let (spelled, coded) = (spelled_forms(value.as_bytes()), coded_forms(value.as_bytes()));
        let plain = spelled.union(&coded).any(|form| {
            low.as_bytes().windows(form.len()).any(|window| window == form)
        });
        let forms = SecretForms::from_value(value.as_bytes());
        proptest::prop_assert_eq!(found_by(&forms, text.as_bytes().chunks(size)), plain);
    }

    /// The value itself, and the text before it, may look like escapes.
    #[test]
    fn a_value_is_found_in_every_mix_of_escapes(
        value in "[ -~]{8,80}|[%2561\\\\ux{}&#;am]{8,80}",
        ways: [u8; 80],
        before in "[ -~]{0,9}|[%25\\\\ux{&#amp]{0,9}",
        size in 1_usize..40,
    ) {
        let written = value.bytes().zip(ways).map(|(byte, way)| written(byte, way));
        let text = format!("{before}{}", written.collect::<String>());
        let forms = SecretForms::from_value(value.as_bytes());
        proptest::prop_assert!(found_by(&forms, text.as_bytes().chunks(size)), "{}", text);
    }

    /// The value contains no letter or digit that occurs in an escape.
    #[test]
    fn a_value_that_lacks_one_of_its_escapes_is_not_found(
        value in "[ghijkvwyz=/\"&-]{8,80}",
        ways: [u8; 80],
        lacks: proptest::sample::Index,
    ) {
        let lacks = lacks.index(value.len());
        let written = value.bytes().zip(ways).map(|(byte, way)| written(byte, way));
        let mut written: Vec<_> = written.collect();
        written.remove(lacks);
        let forms = SecretForms::from_value(value.as_bytes());
        let text = written.concat();
        proptest::prop_assert!(!found_by(&forms, [text.as_bytes()]), "{}", text);
    }
}
