//! The lines of a text that were asked for, found while it streams by.

use crate::LineNumbers;
use belljar_guest::ToolError;
use std::fmt::Write as _;

/// Bytes of text in one answer. A model's context holds little more than this, and the
/// host's own cap on outputs is larger, so the tool's clear marker is what a model meets.
const MAX_TEXT: usize = 256 * 1024;

/// Bytes shown of one line: a minified file is one line of megabytes.
const MAX_LINE: usize = 8 * 1024;

/// Bytes that the last line may need besides its own: its number, that it was cut, where to
/// continue, and that there are bytes that are no text.
const MAX_NOTES: usize = 384;

/// How far past the window lines are still counted, so that the marker can say "of 8123".
/// A log of gigabytes is not read to its end for that.
const MAX_COUNTED: u64 = 4 * 1024 * 1024;

/// Bytes looked at to tell text from binary.
const SNIFF: usize = 8 * 1024;

/// A file with more than one bad byte in this many is not text in UTF-8.
const BAD_BYTES_IN: usize = 10;

/// Whether the window wants more of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    More,
    Enough,
}

/// Collects lines `offset` to `offset + limit - 1` from chunks.
pub(crate) struct Window {
    offset: u64,
    limit: u64,
    numbers: Option<LineNumbers>,
    /// The number of the line that the next byte belongs to.
    line: u64,
    /// Lines in `text`, the unfinished one included.
    shown: u64,
    text: Vec<u8>,
    /// Bytes of the current line so far, shown or not.
    line_bytes: usize,
    /// Set once the text may not grow: the first line that is not shown.
    next: Option<u64>,
    /// The last byte seen was not a newline, so one more line is open.
    open_line: bool,
    seen: u64,
    /// Bytes read after the window closed.
    counted: u64,
    binary: Option<&'static str>,
    ended: bool,
}

impl Window {
    pub(crate) fn new(offset: u64, limit: u64, numbers: Option<LineNumbers>) -> Window {
        Window {
            offset,
            limit,
            numbers,
            line: 1,
            shown: 0,
            text: Vec::new(),
            line_bytes: 0,
            next: None,
            open_line: false,
            seen: 0,
            counted: 0,
            binary: None,
            ended: false,
        }
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Reading {
        if self.seen == 0 {
            self.binary = sniff(chunk);
        }
        self.seen = self.seen.saturating_add(chunk.len() as u64);
        if self.binary.is_some() {
            return Reading::Enough;
        }
        if let Some(last) = chunk.last() {
            self.open_line = *last != b'\n';
        }
        let mut rest = chunk;
        while !rest.is_empty() {
            if self.next.is_some() || self.line < self.offset {
                rest = self.pass(rest);
            } else {
                rest = self.take(rest);
            }
        }
        if self.counted > MAX_COUNTED { Reading::Enough } else { Reading::More }
    }

    /// The file has ended, so its number of lines is known.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Counts lines without keeping them: all of the rest, or up to the window's start.
    fn pass<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.next.is_some() {
            self.line += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.counted = self.counted.saturating_add(bytes.len() as u64);
            return &[];
        }
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                self.line += 1;
                &bytes[end + 1..]
            }
            None => &[],
        }
    }

    /// Takes one line, or as much of it as the chunk holds.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        let (body, rest) = bytes.split_at(newline.unwrap_or(bytes.len()));
        if self.line_bytes == 0 {
            if self.shown >= self.limit || self.text.len() >= MAX_TEXT - MAX_LINE - MAX_NOTES {
                self.next = Some(self.line);
                return bytes;
            }
            self.shown += 1;
            if let Some(numbers) = self.numbers {
                self.text.extend_from_slice(numbers.before(self.line).as_bytes());
            }
        }
        let room = MAX_LINE.saturating_sub(self.line_bytes);
        self.text.extend_from_slice(&body[..body.len().min(room)]);
        self.line_bytes = self.line_bytes.saturating_add(body.len());
        if newline.is_none() {
            return &[];
        }
        self.end_line();
        self.text.push(b'\n');
        self.line += 1;
        &rest[1..]
    }

    fn end_line(&mut self) {
        if self.line_bytes > MAX_LINE {
            drop_partial_character(&mut self.text);
            let marker = format!(" [belljar: line cut, {} bytes in all]", self.line_bytes);
            self.text.extend_from_slice(marker.as_bytes());
        }
        self.line_bytes = 0;
    }

    /// Why the file is not text, if it is not; there is no answer then.
    pub(crate) fn binary(&self) -> Option<&'static str> {
        self.binary
    }

    /// The answer, or why there is none.
    pub(crate) fn finish(mut self, path: &str) -> Result<String, ToolError> {
        let lines = self.line - u64::from(!self.open_line);
        if self.shown == 0 {
            return match lines {
                0 if self.offset == 1 => Ok("[belljar: the file is empty]".to_owned()),
                _ => Err(ToolError::InvalidArguments(format!(
                    "`offset` {} is past the end of `{path}`, which has {lines} lines",
                    self.offset
                ))),
            };
        }
        self.end_line();
        let (mut text, bad) = match String::from_utf8(self.text) {
            Ok(text) => (text, 0),
            Err(error) => {
                let bad = error.as_bytes().utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
                (String::from_utf8_lossy(error.as_bytes()).into_owned(), bad)
            }
        };
        if let Some(next) = self.next {
            marker(&mut text, self.offset, next, self.ended.then_some(lines));
        }
        if bad > 0 {
            not_all_utf8(&mut text, bad);
        }
        Ok(text)
    }
}

fn marker(text: &mut String, offset: u64, next: u64, total: Option<u64>) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let total = match total {
        Some(lines) => format!("of {lines} lines"),
        None => "lines, and the file goes on".to_owned(),
    };
    let last = next - 1;
    let _ = if offset == 1 {
        write!(text, "[belljar: cut after {last} {total}; continue with offset {next}]")
    } else {
        write!(
            text,
            "[belljar: cut after line {last}, from {offset}, {total}; continue with offset {next}]"
        )
    };
}

/// Says that the text is not quite the file's: with what it shows, a change of the file would not find it.
fn not_all_utf8(text: &mut String, bad: usize) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let (bytes, are) = if bad == 1 { ("byte is", "is") } else { ("bytes are", "are") };
    let _ = write!(text, "[belljar: {bad} {bytes} not UTF-8 and {are} shown as U+FFFD]");
}

/// Why the start of a file is not text, if it is not.
fn sniff(start: &[u8]) -> Option<&'static str> {
    let start = &start[..start.len().min(SNIFF)];
    if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
        return Some("it is UTF-16, not UTF-8");
    }
    if start.contains(&0) {
        return Some("it holds NUL bytes");
    }
    let bad: usize = start.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    // The sniffed part may end inside a character: three bytes at most.
    (bad > 3 && bad > start.len() / BAD_BYTES_IN).then_some("it is not UTF-8")
}

/// Drops the bytes of a character that a cut has split.
fn drop_partial_character(text: &mut Vec<u8>) {
    let tail = text.len().saturating_sub(3);
    if let Some(chunk) = text[tail..].utf8_chunks().last()
        && !chunk.invalid().is_empty()
    {
        let keep = text.len() - chunk.invalid().len();
        text.truncate(keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text in chunks of every small size: where a chunk ends must not matter.
    fn read(text: &str, offset: u64, limit: u64) -> Result<String, String> {
        read_with(None, text, offset, limit)
    }

    fn read_with(
        numbers: Option<LineNumbers>,
        text: &str,
        offset: u64,
        limit: u64,
    ) -> Result<String, String> {
        let run = |size: usize| {
            let mut window = Window::new(offset, limit, numbers);
            for chunk in text.as_bytes().chunks(size) {
                assert_eq!(window.feed(chunk), Reading::More);
            }
            window.end();
            window.finish("a").map_err(|error| format!("{error:?}"))
        };
        let whole = run(text.len().max(1));
        for size in 1..9 {
            assert_eq!(run(size), whole, "in chunks of {size}");
        }
        whole
    }

    #[test]
    fn a_window_gives_exactly_its_lines() {
        let text = "1\n\n3\r\n4";
        assert_eq!(read(text, 1, 9).unwrap(), text);
        assert_eq!(read(text, 3, 2).unwrap(), "3\r\n4");
        assert_eq!(
            read(text, 1, 2).unwrap(),
            "1\n\n[belljar: cut after 2 of 4 lines; continue with offset 3]"
        );
        assert_eq!(
            read(text, 2, 1).unwrap(),
            "\n[belljar: cut after line 2, from 2, of 4 lines; continue with offset 3]"
        );
        assert_eq!(read("1\n2\n", 2, 1).unwrap(), "2\n");
    }

    #[test]
    fn lines_carry_the_numbers_they_have_in_the_file() {
        let numbered = |numbers, text, offset| read_with(Some(numbers), text, offset, 2).unwrap();
        assert_eq!(numbered(LineNumbers::Tab, "a\n\n", 1), "     1\ta\n     2\t\n");
        assert_eq!(numbered(LineNumbers::Arrow, "a\r\nb", 1), "     1→a\r\n     2→b");
        assert_eq!(numbered(LineNumbers::Bar, "a\nb\n", 2), "00002| b\n");
        let many = "x\n".repeat(1_234_567);
        assert_eq!(read_with(Some(LineNumbers::Tab), &many, 1_234_567, 1).unwrap(), "1234567\tx\n");
    }

    #[test]
    fn what_is_no_line_of_the_file_has_no_number() {
        let numbered = |text, limit| read_with(Some(LineNumbers::Tab), text, 1, limit).unwrap();
        assert_eq!(numbered("", 9), "[belljar: the file is empty]");
        assert_eq!(
            numbered("a\nb\nc\n", 2),
            "     1\ta\n     2\tb\n[belljar: cut after 2 of 3 lines; continue with offset 3]"
        );
        assert!(
            numbered(&"x".repeat(9_000), 9).ends_with("x [belljar: line cut, 9000 bytes in all]")
        );
    }

    #[test]
    fn an_offset_past_the_end_names_the_number_of_lines() {
        assert!(read("1\n2\n", 3, 1).unwrap_err().contains("which has 2 lines"));
        assert!(read("1\n2", 3, 1).unwrap_err().contains("which has 2 lines"));
        assert!(read("", 2, 1).unwrap_err().contains("which has 0 lines"));
    }

    #[test]
    fn a_long_line_is_cut_at_a_character_and_the_next_is_whole() {
        let text = format!("x{}\nnext\n", "ä".repeat(MAX_LINE));
        let shown = read(&text, 1, 9).unwrap();
        assert!(shown.ends_with("ä [belljar: line cut, 16385 bytes in all]\nnext\n"));
        assert!(!shown.contains(char::REPLACEMENT_CHARACTER));
    }

    #[test]
    fn a_huge_file_is_not_read_to_its_end_for_a_count() {
        let mut window = Window::new(1, 1, None);
        let chunk = "line\n".repeat(10_000);
        let mut fed = 0_u64;
        while window.feed(chunk.as_bytes()) == Reading::More {
            fed += chunk.len() as u64;
            assert!(fed < 2 * MAX_COUNTED);
        }
        assert_eq!(
            window.finish("a").unwrap(),
            "line\n[belljar: cut after 1 lines, and the file goes on; continue with offset 2]"
        );
    }

    #[test]
    fn an_answer_stays_below_its_bound() {
        let wide = format!("{}\n", "y".repeat(2 * MAX_LINE));
        let shapes = ["0123456789abcde\n".repeat(1_024), "\n".repeat(16_384), wide.repeat(8)];
        for numbers in [None, Some(LineNumbers::Tab), Some(LineNumbers::Bar)] {
            for chunk in &shapes {
                let mut window = Window::new(1, u64::MAX, numbers);
                for _ in 0..50 {
                    window.feed(chunk.as_bytes());
                }
                window.end();
                let text = window.finish("a").unwrap();
                assert!(text.len() <= MAX_TEXT, "{} bytes, {numbers:?}", text.len());
                assert!(text.contains("; continue with offset "), "{numbers:?}");
            }
        }
    }

    #[test]
    fn what_is_not_text_is_told_by_its_start() {
        assert_eq!(sniff(b"plain \xc3\xa4"), None);
        assert_eq!(sniff(b"caf\xe9"), None);
        assert_eq!(sniff(b"a\0b"), Some("it holds NUL bytes"));
        assert_eq!(sniff(b"\xff\xfea\0"), Some("it is UTF-16, not UTF-8"));
        assert_eq!(sniff(&[0xfa; 40]), Some("it is not UTF-8"));
    }
}
