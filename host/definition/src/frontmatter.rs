//! Splits a markdown file into YAML frontmatter and body.

use crate::diagnostic::{FilePosition, clamp_count};

/// The longest agent definition, in bytes. The longest body in 3,400 public files has 78 kB; a longer file is
/// refused without being read.
pub const MAX_DEFINITION: usize = 1 << 20;

/// The longest frontmatter, in bytes, because it bounds the work of the YAML parser. The longest description
/// in public files has 6 kB.
pub const MAX_FRONTMATTER: usize = 64 << 10;

/// A file in two parts. The body is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrontmatterSplit<'a> {
    /// The text between the fences.
    pub(crate) yaml: &'a str,
    /// The line of the file on which `yaml` begins, from 1.
    pub(crate) yaml_line: u32,
    /// Everything after the line of the closing fence, byte for byte.
    pub(crate) body: &'a str,
    /// The line of the closing fence.
    pub(crate) fence_line: u32,
    /// The white space before the fences and all lines between them.
    pub(crate) indent: &'a str,
}

/// Why a file cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSplit {
    /// Only white space.
    Empty,
    /// The first line that is not blank is not `---`.
    NoFrontmatter,
    /// The opening fence on this line is never closed.
    Unclosed(u32),
    /// Longer than [`MAX_FRONTMATTER`], by its length in bytes.
    TooLong(u32, usize),
}

/// The text of a file, or the position where it stops being UTF-8. UTF-16 without a byte order mark may be
/// valid UTF-8 with zero bytes.
pub(crate) fn decode_utf8(bytes: &[u8]) -> Result<&str, FilePosition> {
    if is_utf16(bytes) {
        return Err(FilePosition { line: 1, column: 1 });
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let good = std::str::from_utf8(good).unwrap_or_default();
        crate::diagnostic::place_of(good, good.len())
    })
}

/// Whether bytes outside of UTF-8 are UTF-16 text that begins with a fence.
pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    /// The bytes that are checked, because blank lines may precede the fence.
    const LOOKED_AT: usize = 256;
    let (little, rest) = match bytes {
        [0xff, 0xfe, rest @ ..] => (true, rest),
        [0xfe, 0xff, rest @ ..] => (false, rest),
        [_, 0, ..] => (true, bytes),
        [0, _, ..] => (false, bytes),
        _ => return false,
    };
    let units = rest.chunks_exact(2).take(LOOKED_AT).map(|pair| match (pair, little) {
        ([low, high], true) | ([high, low], false) => u16::from_le_bytes([*low, *high]),
        _ => 0,
    });
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or('\u{fffd}')).collect();
    text.trim_start().starts_with("---")
}

/// Splits the text. A byte order mark, blank lines before the opening fence, CRLF, a closing fence of more
/// than three dashes and a file that is indented as a whole are accepted.
pub(crate) fn split_frontmatter(text: &str) -> Result<FrontmatterSplit<'_>, NoSplit> {
    split_from(text.strip_prefix('\u{feff}').unwrap_or(text), 0)
}

/// Like [`split_frontmatter`], for text after `lines_before` lines of the file.
pub(crate) fn split_from(text: &str, lines_before: u32) -> Result<FrontmatterSplit<'_>, NoSplit> {
    let mut lines = LineCursor { rest: text, line: lines_before };
    let opening = loop {
        let line = lines.next().ok_or(NoSplit::Empty)?;
        if !line.trim().is_empty() {
            break line;
        }
    };
    let Some(indent) = opening.trim_end().strip_suffix("---") else {
        return Err(NoSplit::NoFrontmatter);
    };
    if !indent.chars().all(|c| matches!(c, ' ' | '\t')) {
        return Err(NoSplit::NoFrontmatter);
    }
    let (opening_line, start) = (lines.line, lines.rest);
    loop {
        let before = lines.rest;
        // A rule in indented text looks like a fence; only a complete frontmatter counts.
        let unclosed = if indent.is_empty() {
            NoSplit::Unclosed(opening_line)
        } else {
            NoSplit::NoFrontmatter
        };
        let line = lines.next().ok_or(unclosed)?;
        if line.trim().is_empty() {
            continue;
        }
        let line = line.strip_prefix(indent).ok_or(NoSplit::NoFrontmatter)?;
        if !is_closing(line) {
            continue;
        }
        let length = start.len() - before.len();
        if length > MAX_FRONTMATTER {
            return Err(NoSplit::TooLong(opening_line, length));
        }
        return Ok(FrontmatterSplit {
            yaml: start.get(..length).unwrap_or(""),
            yaml_line: opening_line + 1,
            body: lines.rest,
            fence_line: lines.line,
            indent,
        });
    }
}

fn is_closing(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|b| b == b'-')
}

/// Lines without line ends, with the remaining text after each.
pub(crate) struct LineCursor<'a> {
    pub(crate) rest: &'a str,
    /// The number of the last returned line, from 1.
    pub(crate) line: u32,
}

impl<'a> Iterator for LineCursor<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        self.line = self.line.saturating_add(clamp_count(1));
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_every_byte_after_the_closing_fence() {
        let split = split_frontmatter("---\na: 1\n---\n\n  body \r\nmore\n\n").unwrap();
        assert_eq!((split.yaml, split.yaml_line), ("a: 1\n", 2));
        assert_eq!(split.body, "\n  body \r\nmore\n\n");
    }

    #[test]
    fn marks_blank_lines_crlf_and_long_fences_are_understood() {
        let split = split_frontmatter("\u{feff}\r\n \n--- \r\na: 1\r\n-----\r\nbody").unwrap();
        assert_eq!((split.yaml, split.yaml_line, split.body), ("a: 1\r\n", 4, "body"));
        assert_eq!(split.fence_line, 5);
    }

    #[test]
    fn a_file_that_is_indented_as_a_whole_has_its_fields() {
        let split = split_frontmatter("\n  ---\n  a: 1\n\n  b: 2\n  ----\n  body\n").unwrap();
        assert_eq!((split.yaml, split.indent), ("  a: 1\n\n  b: 2\n", "  "));
        assert_eq!(split.body, "  body\n");
    }

    #[test]
    fn files_without_two_fences_say_why() {
        assert_eq!(split_frontmatter(""), Err(NoSplit::Empty));
        assert_eq!(split_frontmatter("\n \n"), Err(NoSplit::Empty));
        assert_eq!(split_frontmatter("# Title\n---\na: 1\n---\n"), Err(NoSplit::NoFrontmatter));
        assert_eq!(split_frontmatter("  ---\na: 1\n---\n"), Err(NoSplit::NoFrontmatter));
        assert_eq!(split_frontmatter("  ---\n  a: 1\n"), Err(NoSplit::NoFrontmatter));
        assert_eq!(split_frontmatter("x---\na: 1\n---\n"), Err(NoSplit::NoFrontmatter));
        assert_eq!(split_frontmatter("\n---\na: 1\n --- \n"), Err(NoSplit::Unclosed(2)));
        let long = format!("---\n{}\n---\nbody", "a".repeat(MAX_FRONTMATTER + 1));
        assert_eq!(split_frontmatter(&long), Err(NoSplit::TooLong(1, MAX_FRONTMATTER + 2)));
    }

    #[test]
    fn utf16_is_known_by_its_mark_and_its_fence() {
        let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        let little =
            |text: &str| units(text).into_iter().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let big =
            |text: &str| units(text).into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
        assert!(is_utf16(&little("\u{feff}\r\n---\nname: u\n")));
        assert!(is_utf16(&big("\u{feff}---\nname: u\n")));
        for text in ["---\nname: u\n", "\r\n---\n"] {
            assert!(is_utf16(&little(text)) && is_utf16(&big(text)), "{text}");
            assert!(decode_utf8(&little(text)).is_err() && decode_utf8(&big(text)).is_err());
        }
        assert!(!is_utf16(&little("\u{feff}# A title\n")) && !is_utf16(&little("# A title\n")));
        assert!(!is_utf16(b"---\nname: \xff\n") && !is_utf16(b"\xff\xfe"));
    }

    #[test]
    fn invalid_utf8_is_placed() {
        assert_eq!(decode_utf8(b"ab\nc\xff"), Err(FilePosition { line: 2, column: 2 }));
    }
}
