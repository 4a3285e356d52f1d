//! The lines of a text that were asked for, found while it streams by.

use belljar_guest::ToolError;
use std::fmt::Write as _;

/// Bytes of text in one answer. A model's context holds little more than this, and the
/// host's own cap on outputs is larger, so the tool's clear marker is what a model meets.
const MAX_TEXT: usize = 256 * 1024;

/// Bytes shown of one line: a minified file is one line of megabytes.
const MAX_LINE: usize = 8 * 1024;

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
    pub(crate) fn new(offset: u64, limit: u64) -> Window {
        Window {
            offset,
            limit,
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
            if self.shown >= self.limit || self.text.len() >= MAX_TEXT - MAX_LINE {
                self.next = Some(self.line);
                return bytes;
            }
            self.shown += 1;
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

    /// The answer, or why there is none.
    pub(crate) fn finish(mut self, path: &str) -> Result<String, ToolError> {
        if let Some(kind) = self.binary {
            return Err(ToolError::Failed(format!(
                "`{path}` is not text: {kind}; `attach_file` can hand it over as it is"
            )));
        }
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
        let mut text = match String::from_utf8(self.text) {
            Ok(text) => text,
            Err(bad) => String::from_utf8_lossy(bad.as_bytes()).into_owned(),
        };
        if let Some(next) = self.next {
            marker(&mut text, self.offset, next, self.ended.then_some(lines));
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
        write!(text, "[belljar: cut after line {last}, from {offset}, {total}; continue with offset {next}]")
    };
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
