//! Parses the escape of one byte, for example `%26`, `\u0026` or `&amp;`, input byte by input byte.
//!
//! Nothing here depends on a secret: the input alone decides the steps, and so the time.

/// An escape of which some bytes are missing, in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartialEscape {
    /// `\`, after which a byte may be escaped.
    Backslash,
    /// `\u`: four hexadecimal digits follow, or any number of them in braces.
    Unicode,
    /// `\u{`, with the value of the digits so far.
    Braced(u32),
    /// `%`, `\x` or `\u`: the number of digits that are missing, and the value of the digits so far.
    Digits(u8, u32),
    /// `&`, with the letters of a name so far, the last letter in the lowest byte.
    Name(u64),
    /// `&#`.
    Number,
    /// `&#`, with the value of the decimal digits so far.
    Decimal(u32),
    /// `&#x`, with the value of the hexadecimal digits so far.
    Hexadecimal(u32),
}

/// What the next input byte does to an unfinished escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EscapeEffect {
    /// The escape goes on.
    Open(PartialEscape),
    /// The escape ends with this input byte, and stands for the value.
    Is(u8),
    /// The bytes are no escape.
    Nothing,
}

impl PartialEscape {
    /// The escape that begins with this byte; `None`: no escape does.
    pub(crate) fn begun_by(byte: u8) -> Option<Self> {
        match byte {
            b'\\' => Some(Self::Backslash),
            b'%' => Some(Self::Digits(2, 0)),
            b'&' => Some(Self::Name(0)),
            _ => None,
        }
    }

    pub(crate) fn push_byte(self, byte: u8) -> EscapeEffect {
        match (self, byte) {
            (Self::Backslash, b'u') => EscapeEffect::Open(Self::Unicode),
            (Self::Backslash, b'x') => EscapeEffect::Open(Self::Digits(2, 0)),
            (Self::Backslash, b'n') => EscapeEffect::Is(b'\n'),
            (Self::Backslash, b'r') => EscapeEffect::Is(b'\r'),
            (Self::Backslash, _) => EscapeEffect::Nothing,
            (Self::Unicode, b'{') => EscapeEffect::Open(Self::Braced(0)),
            (Self::Unicode, _) => Self::Digits(4, 0).push_byte(byte),
            (Self::Braced(number), b'}')
            | (Self::Decimal(number) | Self::Hexadecimal(number), b';') => byte_effect(number),
            (Self::Name(0), b'#') => EscapeEffect::Open(Self::Number),
            (Self::Name(name), b';') => entity_effect(name),
            // At most eight letters fit, and no known name has more.
            (Self::Name(name), b'a'..=b'z') if name >> 56 == 0 => {
                EscapeEffect::Open(Self::Name(name << 8 | u64::from(byte)))
            }
            (Self::Name(_), _) => EscapeEffect::Nothing,
            (Self::Number, b'x') => EscapeEffect::Open(Self::Hexadecimal(0)),
            (Self::Number, _) => Self::Decimal(0).push_byte(byte),
            (Self::Decimal(number), _) => push_digit(number, byte, 10, Self::Decimal),
            (Self::Braced(number), _) => push_digit(number, byte, 16, Self::Braced),
            (Self::Hexadecimal(number), _) => push_digit(number, byte, 16, Self::Hexadecimal),
            (Self::Digits(left, number), _) => {
                let left = left.saturating_sub(1);
                match push_digit(number, byte, 16, |number| Self::Digits(left, number)) {
                    EscapeEffect::Open(Self::Digits(0, number)) => byte_effect(number),
                    next => next,
                }
            }
        }
    }
}

/// Adds a digit to the value of an escape; any other byte ends it without a meaning.
fn push_digit(
    number: u32,
    byte: u8,
    radix: u32,
    more: impl Fn(u32) -> PartialEscape,
) -> EscapeEffect {
    match char::from(byte).to_digit(radix) {
        // A value that is too large saturates, so it stays too large.
        Some(digit) => EscapeEffect::Open(more(number.saturating_mul(radix).saturating_add(digit))),
        None => EscapeEffect::Nothing,
    }
}

fn byte_effect(number: u32) -> EscapeEffect {
    u8::try_from(number).map_or(EscapeEffect::Nothing, EscapeEffect::Is)
}

/// HTML's names for characters a header may have, without letters and digits.
const NAMES: &[(&str, u8)] = &[
    ("amp", b'&'),
    ("quot", b'"'),
    ("apos", b'\''),
    ("lt", b'<'),
    ("gt", b'>'),
    ("tab", b'\t'),
    ("excl", b'!'),
    ("num", b'#'),
    ("dollar", b'$'),
    ("percnt", b'%'),
    ("lpar", b'('),
    ("rpar", b')'),
    ("ast", b'*'),
    ("midast", b'*'),
    ("plus", b'+'),
    ("comma", b','),
    ("period", b'.'),
    ("sol", b'/'),
    ("colon", b':'),
    ("semi", b';'),
    ("equals", b'='),
    ("quest", b'?'),
    ("commat", b'@'),
    ("lsqb", b'['),
    ("lbrack", b'['),
    ("bsol", b'\\'),
    ("rsqb", b']'),
    ("rbrack", b']'),
    ("hat", b'^'),
    ("lowbar", b'_'),
    ("underbar", b'_'),
    ("grave", b'`'),
    ("lcub", b'{'),
    ("lbrace", b'{'),
    ("verbar", b'|'),
    ("vert", b'|'),
    ("rcub", b'}'),
    ("rbrace", b'}'),
];

fn entity_effect(name: u64) -> EscapeEffect {
    let letters = |text: &str| text.bytes().fold(0, |all, byte| all << 8 | u64::from(byte));
    let known = NAMES.iter().find(|(text, _)| letters(text) == name);
    known.map_or(EscapeEffect::Nothing, |(_, byte)| EscapeEffect::Is(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a text as one escape.
    fn read(text: &str) -> Option<u8> {
        let (first, rest) = text.as_bytes().split_first()?;
        let mut escape = PartialEscape::begun_by(*first)?;
        for (at, byte) in rest.iter().enumerate() {
            match escape.push_byte(*byte) {
                EscapeEffect::Open(more) => escape = more,
                EscapeEffect::Is(byte) => return (at + 1 == rest.len()).then_some(byte),
                EscapeEffect::Nothing => return None,
            }
        }
        None
    }

    #[test]
    fn an_escape_stands_for_its_byte_and_other_texts_for_none() {
        for text in [
            "%26",
            "\\u0026",
            "\\x26",
            "\\u{26}",
            "\\u{000026}",
            "&amp;",
            "&#38;",
            "&#0038;",
            "&#x26;",
            "&#x00026;",
        ] {
            assert_eq!(read(text), Some(b'&'), "{text}");
        }
        for (name, byte) in NAMES {
            assert_eq!(read(&format!("&{name};")), Some(*byte), "{name}");
        }
        for text in [
            "%2",
            "%2g",
            "\\u026",
            "\\u0126",
            "\\u{126}",
            "\\u{",
            "\\y26",
            "&am;",
            "&ampamp",
            "&;",
            "&#;x",
            "&#a8;",
            "&#294;",
            "&#4294967334;",
            "&#xg;",
            "&verylongname;",
            "26",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
