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

use crate::changes::change::{Changes, FileChange, FileDifference, NodeKind};
use crate::changes::{ChangesError, content, text};

/// Git's digits in base 85.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Bytes in a line of a binary patch.
const LINE: usize = 52;

/// The content before or after a change.
enum PatchSide {
    Nothing,
    /// A text, a link's target included.
    Text(Vec<u8>),
    Binary(File, u64),
}

/// Writes a change as a patch, with paths that begin with `prefix`.
pub(crate) fn write_change(
    changes: &Changes,
    file: &FileChange,
    prefix: &Path,
    out: &mut impl Write,
) -> Result<(), ChangesError> {
    let failed = |error: io::Error| ChangesError::from_io("write the patch of", &file.path)(error);
    if file.node == NodeKind::Directory || file.node == NodeKind::Special {
        return Ok(());
    }
    let (before, after) = read_sides(changes, file)?;
    let hunks = diff_sides(&before, &after, &changes.stop)?;
    write_patch((file, prefix), before, after, &hunks, out).map_err(failed)
}

/// The lines that differ, of two texts.
fn diff_sides(
    before: &PatchSide,
    after: &PatchSide,
    stop: &StopSignal,
) -> Result<Vec<u8>, WorkStopped> {
    if matches!(before, PatchSide::Binary(..)) || matches!(after, PatchSide::Binary(..)) {
        return Ok(Vec::new());
    }
    let nothing = Vec::new();
    text::unified_diff(text_of(before, &nothing).1, text_of(after, &nothing).1, stop)
}

/// Reads both versions of a file for a patch.
fn read_sides(
    changes: &Changes,
    file: &FileChange,
) -> Result<(PatchSide, PatchSide), ChangesError> {
    let whole = match &file.kind {
        FileDifference::Renamed { modified, .. } => *modified,
        FileDifference::Mode => false,
        FileDifference::Added | FileDifference::Modified | FileDifference::Deleted => true,
    };
    if !whole {
        return Ok((PatchSide::Nothing, PatchSide::Nothing));
    }
    if file.node == NodeKind::Link {
        let below = file.below.as_deref().unwrap_or(&file.path);
        let target =
            changes.workspace.link_target(below).map_err(ChangesError::from_io("read", below))?;
        return Ok((PatchSide::Text(target.as_bytes().to_vec()), PatchSide::Nothing));
    }
    let texts = content::read_contents(&changes.overlay, &changes.workspace, file)?.texts;
    let before = content::open_original(&changes.overlay, &changes.workspace, file)?;
    let after = content::open_result(&changes.overlay, file)?;
    let failed = |error: io::Error| ChangesError::from_io("read", &file.path)(error);
    let binary = |file: Option<File>| match file {
        None => Ok(PatchSide::Nothing),
        Some(file) => file.metadata().map(|meta| PatchSide::Binary(file, meta.len())),
    };
    match texts {
        None => Ok((binary(before).map_err(failed)?, binary(after).map_err(failed)?)),
        Some((old, new)) => {
            let side =
                |there: bool, text| if there { PatchSide::Text(text) } else { PatchSide::Nothing };
            Ok((side(before.is_some(), old), side(after.is_some(), new)))
        }
    }
}

/// Writes the part of the patch about one file: the header, then text hunks or binary data.
fn write_patch(
    (file, prefix): (&FileChange, &Path),
    before: PatchSide,
    after: PatchSide,
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
    let (a, b) = (quote_name("a/", from), quote_name("b/", path));
    let (old, new) = (git_mode(file.node, file.mode_before), git_mode(file.node, file.mode_after));
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
        writeln!(out, "rename from {}", quote_name("", from))?;
        writeln!(out, "rename to {}", quote_name("", path))?;
    }
    match (before, after) {
        (PatchSide::Nothing, PatchSide::Nothing) => Ok(()),
        (PatchSide::Binary(old, size), after) => {
            write_binary(out, PatchSide::Binary(old, size), after)
        }
        (before, PatchSide::Binary(new, size)) => {
            write_binary(out, before, PatchSide::Binary(new, size))
        }
        (before, after) => {
            let (nothing, empty) = (Vec::new(), Vec::new());
            let (there, old) = text_of(&before, &nothing);
            let (here, new) = text_of(&after, &empty);
            if old == new && there == here {
                return Ok(());
            }
            writeln!(out, "index {}..{}", blob_id(&before)?, blob_id(&after)?)?;
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

/// The text of one version, and whether the version is text; `nothing` stands for a missing file.
fn text_of<'a>(side: &'a PatchSide, nothing: &'a [u8]) -> (bool, &'a [u8]) {
    match side {
        PatchSide::Text(text) => (true, text),
        PatchSide::Nothing | PatchSide::Binary(..) => (false, nothing),
    }
}

/// The mode of an object as git writes it, for example `100644`.
fn git_mode(node: NodeKind, mode: Option<u32>) -> &'static str {
    match node {
        NodeKind::Link => "120000",
        NodeKind::File | NodeKind::Directory | NodeKind::Special => {
            let starts = mode.is_some_and(|mode| mode & 0o100 != 0);
            if starts { "100755" } else { "100644" }
        }
    }
}

/// A name as git quotes it.
fn quote_name(before: &str, path: &Path) -> String {
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
fn blob_id(side: &PatchSide) -> io::Result<String> {
    let sum = match side {
        PatchSide::Nothing => return Ok("0".repeat(40)),
        PatchSide::Text(text) => {
            let head = format!("blob {}\0", text.len());
            Sha1::new().chain_update(head).chain_update(text).finalize()
        }
        PatchSide::Binary(file, size) => {
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

/// Calls `each` for every part of a file, so memory stays bounded.
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

/// Writes both versions as a binary patch of git.
fn write_binary(out: &mut impl Write, before: PatchSide, after: PatchSide) -> io::Result<()> {
    writeln!(out, "index {}..{}", blob_id(&before)?, blob_id(&after)?)?;
    writeln!(out, "GIT binary patch")?;
    write_literal(out, &after)?;
    write_literal(out, &before)
}

/// A whole content, deflated, in lines of base 85.
fn write_literal(out: &mut impl Write, side: &PatchSide) -> io::Result<()> {
    let nothing = Vec::new();
    let size = match side {
        PatchSide::Binary(_, size) => *size,
        PatchSide::Nothing | PatchSide::Text(_) => text_of(side, &nothing).1.len() as u64,
    };
    writeln!(out, "literal {size}")?;
    let mut packed =
        ZlibEncoder::new(BinaryLines { out, line: Vec::new() }, Compression::default());
    match side {
        PatchSide::Binary(file, size) => each_part(file, *size, |part| packed.write_all(part))?,
        PatchSide::Nothing | PatchSide::Text(_) => packed.write_all(text_of(side, &nothing).1)?,
    }
    packed.finish()?.finish_lines()
}

/// Writes lines of base 85.
struct BinaryLines<'a, W: Write> {
    out: &'a mut W,
    line: Vec<u8>,
}

impl<W: Write> BinaryLines<'_, W> {
    /// Writes a compressed block in git's base85 lines.
    fn write_base85(&mut self) -> io::Result<()> {
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

    /// Writes the last incomplete line and the empty line after the block.
    fn finish_lines(mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            self.write_base85()?;
        }
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Write for BinaryLines<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = bytes.len().min(LINE - self.line.len());
        self.line.extend_from_slice(bytes.get(..most).unwrap_or_default());
        if self.line.len() == LINE {
            self.write_base85()?;
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
            assert_eq!(quote_name("a/", Path::new(name)), expected);
        };
        check("plain name.txt", "a/plain name.txt");
        check("tab\there", "\"a/tab\\there\"");
        check("line\nbreak", "\"a/line\\nbreak\"");
        check("\"quoted\\\"", "\"a/\\\"quoted\\\\\\\"\"");
        check("\u{e9}", "\"a/\\303\\251\"");
    }

    #[test]
    fn contents_have_the_names_that_git_gives_them() {
        let text = PatchSide::Text(b"hello\n".to_vec());
        assert_eq!(blob_id(&text).unwrap(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(blob_id(&PatchSide::Nothing).unwrap(), "0".repeat(40));
    }
}
