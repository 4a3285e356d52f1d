//! A library in an archive: tar, compressed or not, or zip. Only regular files are read, and nothing is
//! unpacked: what counts is kept in memory, within bounds.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};

use belljar_policy::ShownText;
use flate2::read::MultiGzDecoder;
use tar::EntryType;

use super::folder::{MAX_READING, WorkDeadline};
use super::gather::{CollectScope, FileGatherer, unfit_reason};
use super::members::{ArchiveMember, MemberReader};
use super::zip;
use crate::setup::exit::Failure;

/// Bytes of an archive once decompressed. A repository of agents has a few million with its
/// pictures; a bomb has a thousand times as many, and is not read on.
pub(super) const MAX_UNPACKED: u64 = 256 << 20;

/// Bytes of a compressed archive: as many as an archive of what does not compress has.
pub(super) const MAX_PACKED: u64 = MAX_UNPACKED;

/// Bytes of text held until the common folder is known.
pub(super) const MAX_TEXT: usize = 64 << 20;

/// Kept bytes of a path: more than any installable file's path.
const MAX_KEPT_PATH: usize = 1 << 10;

/// Reads an archive, whose first bytes say of which kind it is. A single folder around everything, as such
/// archives have, is left away.
pub(super) fn read_archive(
    mut file: File,
    shown: &str,
    gather: &mut FileGatherer,
) -> Result<(), Failure> {
    let until = WorkDeadline::after_limit(MAX_READING);
    let entries = read_by_kind(&mut file, until, gather)
        .map_err(|why| why.into_failure(&format!("`{shown}`")))?;
    let strip = single_folder(&entries);
    gather_entries(entries, strip, gather)
}

fn read_by_kind(
    file: &mut File,
    until: WorkDeadline,
    gather: &mut FileGatherer,
) -> Result<Vec<ArchiveEntry>, UnreadableArchive> {
    let mut begin = Vec::new();
    (&mut *file).take(4).read_to_end(&mut begin)?;
    file.seek(SeekFrom::Start(0))?;
    // Bounded on both sides: what unpacks to nothing takes time as well.
    let packed = |file: &mut File| -> io::Result<_> {
        let reader = BufReader::new(file.try_clone()?);
        Ok(BufReader::new(BoundedReader { reader, left: MAX_PACKED, until }))
    };
    match begin.as_slice() {
        [0x1f, 0x8b, ..] => read_entries(MultiGzDecoder::new(packed(file)?), until, gather),
        [b'P', b'K', ..] => zip::read_entries(file, until, gather),
        _ => read_entries(packed(file)?, until, gather),
    }
}

/// One entry, with `/` between the parts of its path.
pub(super) struct ArchiveEntry {
    pub(super) path: String,
    pub(super) content: EntryContent,
}

pub(super) enum EntryContent {
    /// Text that counts, whole unless it is longer than a file may be.
    Text(Vec<u8>),
    /// A regular file that is not looked at.
    File,
    /// Neither file nor folder, or a path outside: the reason.
    Unfit(&'static str),
}

/// Why an archive is not read.
pub(super) enum UnreadableArchive {
    Io(io::Error),
    Bounds(Failure),
}

impl UnreadableArchive {
    fn into_failure(self, what: &str) -> Failure {
        match self {
            Self::Io(error) => {
                let error = error.to_string();
                Failure::usage(format!("{what} cannot be read: {}", ShownText::new(&error)))
                    .with_hint("nothing of it is installed")
            }
            Self::Bounds(failure) => failure,
        }
    }
}

impl From<io::Error> for UnreadableArchive {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Failure> for UnreadableArchive {
    fn from(failure: Failure) -> Self {
        Self::Bounds(failure)
    }
}

/// All entries that are not folders.
fn read_entries(
    reader: impl Read,
    until: WorkDeadline,
    gather: &mut FileGatherer,
) -> Result<Vec<ArchiveEntry>, UnreadableArchive> {
    let mut members = MemberReader::new(BoundedReader { reader, left: MAX_UNPACKED, until });
    let (mut found, mut total) = (Vec::new(), 0_usize);
    while let Some(member) =
        members.next_member(|| gather.count_entry().map_err(UnreadableArchive::from))?
    {
        if member.kind == EntryType::Directory {
            continue;
        }
        let (path, content) = match classify_member(&member, gather.scope()) {
            (path, Some(content)) => (path, content),
            (path, None) => {
                let bytes = members.read_content(gather.longest_file() as u64 + 1)?;
                total = total.saturating_add(bytes.len());
                if total > MAX_TEXT {
                    return Err(too_large().into());
                }
                (path, EntryContent::Text(bytes))
            }
        };
        found.push(ArchiveEntry { path: clip_path(path), content });
    }
    Ok(found)
}

/// The path of a member, and its kind; `None` = text that counts, to be read.
fn classify_member(member: &ArchiveMember, scope: CollectScope) -> (String, Option<EntryContent>) {
    let is_file = matches!(member.kind, EntryType::Regular | EntryType::Continuous);
    let is_link = matches!(member.kind, EntryType::Symlink | EntryType::Link);
    classify_entry(&member.path, is_file, is_link, scope)
}

/// The path of an entry that is no folder, and its kind; `None` = text that counts, to be read.
pub(super) fn classify_entry(
    path: &[u8],
    is_file: bool,
    is_link: bool,
    scope: CollectScope,
) -> (String, Option<EntryContent>) {
    let shown = String::from_utf8_lossy(path);
    let leads_out = shown.starts_with('/') || shown.split('/').any(|part| part == "..");
    let plain = shown.split('/').filter(|part| *part != ".").collect::<Vec<_>>().join("/");
    let name = plain.rsplit('/').next().unwrap_or(&plain);
    let content = if leads_out {
        EntryContent::Unfit("its path leads out of the archive")
    } else if plain.len() > MAX_KEPT_PATH {
        EntryContent::Unfit("its path is empty or too long")
    } else if is_link {
        EntryContent::Unfit("it is a link")
    } else if !is_file {
        EntryContent::Unfit("it is no regular file")
    } else if !scope.may_read(name) {
        EntryContent::File
    } else if std::str::from_utf8(path).is_err() {
        EntryContent::Unfit("its name is not UTF-8")
    } else {
        return (plain, None);
    };
    (plain, Some(content))
}

/// The beginning of a path that is too long to be kept whole.
pub(super) fn clip_path(mut path: String) -> String {
    if path.len() > MAX_KEPT_PATH {
        let end = (0..=MAX_KEPT_PATH).rev().find(|end| path.is_char_boundary(*end));
        path.truncate(end.unwrap_or_default());
    }
    path.shrink_to_fit();
    path
}

fn gather_entries(
    entries: Vec<ArchiveEntry>,
    strip: Option<String>,
    gather: &mut FileGatherer,
) -> Result<(), Failure> {
    for ArchiveEntry { path, content } in entries {
        let path = match &strip {
            Some(folder) => path.strip_prefix(folder.as_str()).unwrap_or(&path),
            None => &path,
        };
        match content {
            // Reported under any name, because an honest archive has none of these.
            EntryContent::Unfit(why) => gather.leave_out(path, why),
            EntryContent::Text(bytes) => {
                if gather.wants_file(path) {
                    gather.keep_file(path, bytes)?;
                }
            }
            EntryContent::File => {
                gather.wants_file(path);
            }
        }
    }
    Ok(())
}

/// `folder/`, where everything lies in it.
fn single_folder(entries: &[ArchiveEntry]) -> Option<String> {
    let usable = entries.iter().filter(|entry| unfit_reason(&entry.path).is_none());
    let folders: BTreeSet<Option<&str>> =
        usable.map(|entry| entry.path.split_once('/').map(|(folder, _)| folder)).collect();
    match folders.into_iter().collect::<Vec<_>>().as_slice() {
        // A hidden folder counts as a place of its own.
        [Some(folder)] if !folder.starts_with('.') => Some(format!("{folder}/")),
        _ => None,
    }
}

pub(super) fn too_large() -> io::Error {
    let why = format!("it holds more than {MAX_UNPACKED} bytes, or too much text");
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// Reads so many bytes for so long and then fails, so that no bomb goes off.
struct BoundedReader<R> {
    reader: R,
    left: u64,
    until: WorkDeadline,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(too_large());
        }
        self.until.time_left()?;
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.reader.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A header with any path, as no honest program writes it.
    fn header(path: &str, kind: EntryType, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header.set_cksum();
        header
    }

    fn archive(entries: &[(&str, EntryType, &[u8])]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let encoder = flate2::write::GzEncoder::new(file.reopen().unwrap(), Default::default());
        let mut builder = tar::Builder::new(encoder);
        for (path, kind, bytes) in entries {
            builder.append(&header(path, *kind, bytes.len() as u64), *bytes).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap();
        file
    }

    fn read(entries: &[(&str, EntryType, &[u8])]) -> (Vec<String>, Vec<(String, String)>) {
        let mut gather = FileGatherer::default();
        read_archive(archive(entries).reopen().unwrap(), "x", &mut gather).unwrap();
        let collected = gather.into_collected();
        let left = collected.left_out.into_iter().map(|file| (file.path, file.why));
        (collected.files.into_iter().map(|file| file.path).collect(), left.collect())
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn a_tar_that_is_not_compressed_is_read_too() {
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&header("l/a.md", FILE, 1), &b"a"[..]).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&builder.into_inner().unwrap()).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut gather = FileGatherer::default();
        read_archive(file, "x", &mut gather).unwrap();
        assert_eq!(gather.into_collected().files[0].path, "a.md");
    }

    #[test]
    fn a_folder_around_everything_is_left_away() {
        let entries: &[(&str, EntryType, &[u8])] = &[
            ("lib-1.0/", EntryType::Directory, b""),
            ("./lib-1.0/agents/a.md", FILE, b"a"),
            ("lib-1.0/README", FILE, b""),
        ];
        assert_eq!(read(entries).0, ["agents/a.md"]);
        assert_eq!(read(&[("a/x.md", FILE, b""), ("b/y.md", FILE, b"")]).0, ["a/x.md", "b/y.md"]);
        assert_eq!(read(&[("a/x.md", FILE, b""), ("y.md", FILE, b"")]).0, ["a/x.md", "y.md"]);
        assert_eq!(read(&[(".claude/agents/x.md", FILE, b"")]).0, [".claude/agents/x.md"]);
    }

    #[test]
    fn only_regular_files_inside_are_read() {
        let (files, left) = read(&[
            ("a.md", FILE, b"a"),
            ("../x.md", FILE, b"x"),
            ("b/../../x.md", FILE, b"x"),
            ("/etc/x.md", FILE, b"x"),
            ("link.md", EntryType::Symlink, b""),
            ("hard.md", EntryType::Link, b""),
            ("null.md", EntryType::Char, b""),
            ("pipe.md", EntryType::Fifo, b""),
        ]);
        assert_eq!(files, ["a.md"]);
        let paths: Vec<_> = left.iter().map(|(path, _)| path.as_str()).collect();
        let expected =
            ["../x.md", "b/../../x.md", "/etc/x.md", "link.md", "hard.md", "null.md", "pipe.md"];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_bomb_is_not_read_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut encoder =
            flate2::write::GzEncoder::new(file.reopen().unwrap(), flate2::Compression::fast());
        let size = MAX_UNPACKED + 4096;
        encoder.write_all(header("zeros.bin", FILE, size).as_bytes()).unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..size / zeros.len() as u64 + 1 {
            encoder.write_all(&zeros).unwrap();
        }
        encoder.finish().unwrap();
        let failure =
            read_archive(file.reopen().unwrap(), "x", &mut FileGatherer::default()).unwrap_err();
        assert!(failure.message.contains("holds more than"), "{}", failure.message);
    }

    #[test]
    fn what_is_no_archive_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "plain text").unwrap();
        let file = file.reopen().unwrap();
        assert!(read_archive(file, "x", &mut FileGatherer::default()).is_err());
    }
}
