//! Writes changes as a patch for `git apply`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use belljar_work::{StopSignal, WorkStopped};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};

use crate::change::{Changes, FileChange, FileDifference, Node};
use crate::{ChangesError, content, text};

/// Git's digits in base 85.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Bytes in a line of a binary patch.
const LINE: usize = 52;

/// The content before or after a change.
enum Side {
    Nothing,
    /// A text, a link's target included.
    Text(Vec<u8>),
    Binary(File, u64),
}

/// Writes a change as a patch, with paths that begin with `prefix`.
pub(crate) fn write(
    changes: &Changes,
    file: &FileChange,
    prefix: &Path,
    out: &mut impl Write,
) -> Result<(), ChangesError> {
    let failed = |error: io::Error| ChangesError::io("write the patch of", &file.path)(error);
    if file.node == Node::Directory || file.node == Node::Special {
        return Ok(());
    }
    let (before, after) = sides(changes, file)?;
    let hunks = hunks(&before, &after, &changes.stop)?;
    put((file, prefix), before, after, &hunks, out).map_err(failed)
}

/// The lines that differ, of two texts.
fn hunks(before: &Side, after: &Side, stop: &StopSignal) -> Result<Vec<u8>, WorkStopped> {
    if matches!(before, Side::Binary(..)) || matches!(after, Side::Binary(..)) {
        return Ok(Vec::new());
    }
    let nothing = Vec::new();
    text::unified(text_of(before, &nothing).1, text_of(after, &nothing).1, stop)
}

fn sides(changes: &Changes, file: &FileChange) -> Result<(Side, Side), ChangesError> {
    let whole = match &file.kind {
        FileDifference::Renamed { modified, .. } => *modified,
        FileDifference::Mode => false,
        FileDifference::Added | FileDifference::Modified | FileDifference::Deleted => true,
    };
    if !whole {
        return Ok((Side::Nothing, Side::Nothing));
    }
    if file.node == Node::Link {
        let below = file.below.as_deref().unwrap_or(&file.path);
        let target = changes.workspace.target(below).map_err(ChangesError::io("read", below))?;
        return Ok((Side::Text(target.as_bytes().to_vec()), Side::Nothing));
    }
    let texts = content::contents(&changes.overlay, &changes.workspace, file)?.texts;
    let before = content::before(&changes.overlay, &changes.workspace, file)?;
    let after = content::after(&changes.overlay, file)?;
    let failed = |error: io::Error| ChangesError::io("read", &file.path)(error);
    let binary = |file: Option<File>| match file {
        None => Ok(Side::Nothing),
        Some(file) => file.metadata().map(|meta| Side::Binary(file, meta.len())),
    };
    match texts {
        None => Ok((binary(before).map_err(failed)?, binary(after).map_err(failed)?)),
        Some((old, new)) => {
            let side = |there: bool, text| if there { Side::Text(text) } else { Side::Nothing };
            Ok((side(before.is_some(), old), side(after.is_some(), new)))
        }
    }
}

fn put(
    (file, prefix): (&FileChange, &Path),
    before: Side,
    after: Side,
    hunks: &[u8],
    out: &mut impl Write,
) -> io::Result<()> {
    // Each file below a renamed directory is renamed too.
    let from = match &file.kind {
        FileDifference::Renamed { from, .. } => from,
        FileDifference::Added => &file.path,
        FileDifference::Modified | FileDifference::Deleted | FileDifference::Mode => {
            file.below.as_ref().unwrap_or(&file.path)
        }
    };
    let path = if file.kind == FileDifference::Deleted { from } else { &file.path };
    let (from, path) = (&prefix.join(from), &prefix.join(path));
    let (a, b) = (quoted("a/", from), quoted("b/", path));
    let (old, new) = (mode(file.node, file.mode_before), mode(file.node, file.mode_after));
    writeln!(out, "diff --git {a} {b}")?;
    match &file.kind {
        FileDifference::Added => writeln!(out, "new file mode {new}")?,
        FileDifference::Deleted => writeln!(out, "deleted file mode {old}")?,
        FileDifference::Modified | FileDifference::Mode | FileDifference::Renamed { .. } => {
            if old != new {
                writeln!(out, "old mode {old}\nnew mode {new}")?;
            }
        }
    }
    if from != path {
        let whole = matches!(
            &file.kind,
            FileDifference::Renamed { modified: false, .. } | FileDifference::Mode
        );
        writeln!(out, "similarity index {}%", if whole { 100 } else { 50 })?;
        writeln!(out, "rename from {}", quoted("", from))?;
        writeln!(out, "rename to {}", quoted("", path))?;
    }
    match (before, after) {
        (Side::Nothing, Side::Nothing) => Ok(()),
        (Side::Binary(old, size), after) => binary(out, Side::Binary(old, size), after),
        (before, Side::Binary(new, size)) => binary(out, before, Side::Binary(new, size)),
        (before, after) => {
            let (nothing, empty) = (Vec::new(), Vec::new());
            let (there, old) = text_of(&before, &nothing);
            let (here, new) = text_of(&after, &empty);
            if old == new && there == here {
                return Ok(());
            }
            writeln!(out, "index {}..{}", id(&before)?, id(&after)?)?;
            if hunks.is_empty() {
                return Ok(());
            }
            // A tab marks the end of a name with a space.
            let tab =
                |path: &Path| if path.as_os_str().as_bytes().contains(&b' ') { "\t" } else { "" };
            let (a_tab, b_tab) = (tab(from), tab(path));
            let a = if there { a + a_tab } else { "/dev/null".to_owned() };
            let b = if here { b + b_tab } else { "/dev/null".to_owned() };
            writeln!(out, "--- {a}\n+++ {b}")?;
            out.write_all(hunks)
        }
    }
}

fn text_of<'a>(side: &'a Side, nothing: &'a [u8]) -> (bool, &'a [u8]) {
    match side {
        Side::Text(text) => (true, text),
        Side::Nothing | Side::Binary(..) => (false, nothing),
    }
}

fn mode(node: Node, mode: Option<u32>) -> &'static str {
    match node {
        Node::Link => "120000",
        Node::File | Node::Directory | Node::Special => {
            let starts = mode.is_some_and(|mode| mode & 0o100 != 0);
            if starts { "100755" } else { "100644" }
        }
    }
}

/// A name as git quotes it.
fn quoted(before: &str, path: &Path) -> String {
    let name = OsStr::as_bytes(path.as_os_str());
    let plain = |byte: &u8| matches!(byte, 0x20..=0x7e) && !matches!(byte, b'"' | b'\\');
    if let Some(text) = path.to_str()
        && name.iter().all(plain)
    {
        return format!("{before}{text}");
    }
    let mut out = format!("\"{before}");
    for byte in name {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            byte if plain(byte) => out.push(char::from(*byte)),
            byte => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out + "\""
}

/// The id of a content in git's object store.
fn id(side: &Side) -> io::Result<String> {
    let sum = match side {
        Side::Nothing => return Ok("0".repeat(40)),
        Side::Text(text) => {
            let head = format!("blob {}\0", text.len());
            Sha1::new().chain_update(head).chain_update(text).finalize()
        }
        Side::Binary(file, size) => {
            let mut sum = Sha1::new().chain_update(format!("blob {size}\0"));
            each_part(file, *size, |part| {
                sum.update(part);
                Ok(())
            })?;
            sum.finalize()
        }
    };
    Ok(sum.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn each_part(
    mut file: &File,
    size: u64,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    file.rewind()?;
    let (mut left, mut buffer) = (size, vec![0; 64 << 10]);
    while left > 0 {
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = file.read(buffer.get_mut(..most).unwrap_or_default())?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter"));
        }
        each(buffer.get(..read).unwrap_or_default())?;
        left -= read as u64;
    }
    Ok(())
}

fn binary(out: &mut impl Write, before: Side, after: Side) -> io::Result<()> {
    writeln!(out, "index {}..{}", id(&before)?, id(&after)?)?;
    writeln!(out, "GIT binary patch")?;
    literal(out, &after)?;
    literal(out, &before)
}

/// A whole content, deflated, in lines of base 85.
fn literal(out: &mut impl Write, side: &Side) -> io::Result<()> {
    let nothing = Vec::new();
    let size = match side {
        Side::Binary(_, size) => *size,
        Side::Nothing | Side::Text(_) => text_of(side, &nothing).1.len() as u64,
    };
    writeln!(out, "literal {size}")?;
    let mut packed = ZlibEncoder::new(Lines { out, line: Vec::new() }, Compression::default());
    match side {
        Side::Binary(file, size) => each_part(file, *size, |part| packed.write_all(part))?,
        Side::Nothing | Side::Text(_) => packed.write_all(text_of(side, &nothing).1)?,
    }
    packed.finish()?.end()
}

/// Writes lines of base 85.
struct Lines<'a, W: Write> {
    out: &'a mut W,
    line: Vec<u8>,
}

impl<W: Write> Lines<'_, W> {
    fn put(&mut self) -> io::Result<()> {
        let len = self.line.len();
        let mut text = Vec::with_capacity(LINE * 5 / 4 + 2);
        // The length of a line as a letter: 1 to 26 are capitals, 27 to 52 small letters.
        let count = u8::try_from(len).unwrap_or(0);
        text.push(if count <= 26 { b'A' + count - 1 } else { b'a' + count - 27 });
        for part in self.line.chunks(4) {
            let mut word = [0; 4];
            word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            let mut rest = u32::from_be_bytes(word);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS.get((rest % 85) as usize).copied().unwrap_or(b'0');
                rest /= 85;
            }
            text.extend(digits);
        }
        text.push(b'\n');
        self.line.clear();
        self.out.write_all(&text)
    }

    fn end(mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            self.put()?;
        }
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Write for Lines<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = bytes.len().min(LINE - self.line.len());
        self.line.extend_from_slice(bytes.get(..most).unwrap_or_default());
        if self.line.len() == LINE {
            self.put()?;
        }
        Ok(most)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_git_does() {
        let check = |name: &str, expected: &str| {
            assert_eq!(quoted("a/", Path::new(name)), expected);
        };
        check("plain name.txt", "a/plain name.txt");
        check("tab\there", "\"a/tab\\there\"");
        check("line\nbreak", "\"a/line\\nbreak\"");
        check("\"quoted\\\"", "\"a/\\\"quoted\\\\\\\"\"");
        check("\u{e9}", "\"a/\\303\\251\"");
    }

    #[test]
    fn contents_have_the_names_that_git_gives_them() {
        let text = Side::Text(b"hello\n".to_vec());
        assert_eq!(id(&text).unwrap(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(id(&Side::Nothing).unwrap(), "0".repeat(40));
    }
}
