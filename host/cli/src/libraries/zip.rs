//! The entries of a zip archive.
//!
//! Programs disagree about archives that say one thing in two places, and attackers use that. So the list at
//! the end of the archive decides, each entry's own header has to agree with it, and an archive with two
//! entries of one name, or with entries that share bytes, is refused as a whole.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use super::archive::{
    ArchiveEntry, EntryContent, MAX_PACKED, MAX_TEXT, MAX_UNPACKED, UnreadableArchive,
    classify_entry, clip_path, too_large,
};
use super::folder::WorkDeadline;
use super::gather::FileGatherer;

/// Bytes of the record at the end, without its comment.
const END: usize = 22;

/// The most bytes of a comment, as the format allows.
const MAX_COMMENT: usize = u16::MAX as usize;

/// Bytes of the list of entries: [`super::gather::MAX_ENTRIES`] long paths.
const MAX_LIST: u64 = 64 << 20;

/// Bytes of an entry in the list, without its name.
const LISTED: usize = 46;

/// Bytes of an entry's own header, without its name.
const LOCAL: usize = 30;

/// The flags of an encrypted entry, or of an encrypted list.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// One entry as the list describes it.
struct ListedEntry {
    name: Vec<u8>,
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    /// The type and permissions of a file from a Unix system.
    mode: Option<u32>,
    offset: u64,
}

/// Reads all entries that are not folders.
pub(super) fn read_entries(
    file: &mut File,
    until: WorkDeadline,
    gather: &mut FileGatherer,
) -> Result<Vec<ArchiveEntry>, UnreadableArchive> {
    let listed = read_list(file, until, gather)?;
    let mut names = BTreeSet::new();
    if let Some(twice) = listed.iter().find(|entry| !names.insert(&entry.name)) {
        let name = String::from_utf8_lossy(&twice.name);
        let name = belljar_policy::ShownText::clip_line(&name, 200).to_string();
        return Err(damaged_zip(&format!("two of its files are called `{name}`")).into());
    }
    if listed.iter().map(|entry| entry.size).fold(0_u64, u64::saturating_add) > MAX_UNPACKED {
        return Err(too_large().into());
    }
    let mut ranges = Vec::new();
    let (mut found, mut total) = (Vec::new(), 0_usize);
    for entry in &listed {
        until.time_left()?;
        let begin = check_header(file, entry)?;
        ranges.push((entry.offset, begin.saturating_add(entry.packed)));
        if entry.name.ends_with(b"/") {
            continue;
        }
        let kind = entry.mode.map_or(0, |mode| mode & 0o170_000);
        let (is_file, is_link) = (matches!(kind, 0 | 0o100_000), kind == 0o120_000);
        let (path, content) = classify_entry(&entry.name, is_file, is_link, gather.scope());
        let content = match content {
            Some(content) => content,
            None if entry.flags & ENCRYPTED != 0 => EntryContent::Unfit("it is encrypted"),
            None if !matches!(entry.method, STORED | DEFLATED) => {
                EntryContent::Unfit("it is compressed by a method that is not read")
            }
            None => {
                let bytes = read_content(file, entry, begin, gather.longest_file() as u64)?;
                total = total.saturating_add(bytes.len());
                if total > MAX_TEXT {
                    return Err(too_large().into());
                }
                EntryContent::Text(bytes)
            }
        };
        found.push(ArchiveEntry { path: clip_path(path), content });
    }
    ranges.sort_unstable();
    let shares = |pair: &[(u64, u64)]| matches!(pair, [(_, end), (begin, _)] if begin < end);
    if ranges.windows(2).any(shares) {
        return Err(damaged_zip("some of its files share their bytes").into());
    }
    Ok(found)
}

/// Reads the list of entries at the end of the archive.
fn read_list(
    file: &mut File,
    until: WorkDeadline,
    gather: &mut FileGatherer,
) -> Result<Vec<ListedEntry>, UnreadableArchive> {
    let length = file.seek(SeekFrom::End(0))?;
    if length > MAX_PACKED {
        return Err(too_large().into());
    }
    let from = length.saturating_sub((END + MAX_COMMENT) as u64);
    let tail = read_at(file, from, length - from)?;
    let at = find_end(&tail).ok_or_else(|| damaged_zip("it has no end, or something behind it"))?;
    let end = FieldReader(tail.get(at..).unwrap_or_default());
    let (count, size, offset) = (end.short(10)?, end.long(12)?, end.long(16)?);
    if end.short(4)? != 0 || end.short(6)? != 0 || end.short(8)? != count {
        return Err(damaged_zip("it is one part of several").into());
    }
    if count == u16::MAX || size == u32::MAX || offset == u32::MAX {
        return Err(damaged_zip("it is in the format for very large archives (zip64)").into());
    }
    let (size, offset) = (u64::from(size), u64::from(offset));
    if size > MAX_LIST || offset.checked_add(size) != Some(from + at as u64) {
        return Err(damaged_zip("its list of files is not where it has to be").into());
    }
    let list = read_at(file, offset, size)?;
    let mut rest = list.as_slice();
    let mut entries = Vec::new();
    for _ in 0..count {
        gather.count_entry()?;
        until.time_left()?;
        let (entry, behind) = parse_entry(rest)?;
        entries.push(entry);
        rest = behind;
    }
    match rest.is_empty() {
        true => Ok(entries),
        false => Err(damaged_zip("its list has more than it says").into()),
    }
}

/// The position of the record at the end: the one whose comment ends with the archive.
fn find_end(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(END)?;
    (0..=last).rev().find(|at| {
        let record = FieldReader(tail.get(*at..).unwrap_or_default());
        let comment = record.short(20).map(usize::from);
        record.0.starts_with(b"PK\x05\x06")
            && comment.is_ok_and(|comment| at + END + comment == tail.len())
    })
}

/// Parses the first entry of the list; returns the rest of the list too.
fn parse_entry(list: &[u8]) -> io::Result<(ListedEntry, &[u8])> {
    let fields = FieldReader(list);
    if !list.starts_with(b"PK\x01\x02") {
        return Err(damaged_zip("its list of files is damaged"));
    }
    let lengths = [fields.short(28)?, fields.short(30)?, fields.short(32)?].map(usize::from);
    let whole = LISTED + lengths.iter().sum::<usize>();
    let cut = || damaged_zip("its list of files is cut off");
    let name = list.get(LISTED..LISTED + lengths[0]).ok_or_else(cut)?.to_vec();
    let behind = list.get(whole..).ok_or_else(cut)?;
    let (packed, size, offset) = (fields.long(20)?, fields.long(24)?, fields.long(42)?);
    if [packed, size, offset].contains(&u32::MAX) {
        return Err(damaged_zip("it is in the format for very large archives (zip64)"));
    }
    // The upper byte names the system: 3 = Unix, 19 = macOS.
    let is_unix = matches!(fields.short(4)? >> 8, 3 | 19);
    let entry = ListedEntry {
        name,
        flags: fields.short(8)?,
        method: fields.short(10)?,
        crc: fields.long(16)?,
        packed: u64::from(packed),
        size: u64::from(size),
        mode: is_unix.then_some(fields.long(38)? >> 16),
        offset: u64::from(offset),
    };
    Ok((entry, behind))
}

/// Checks that an entry's own header agrees with the list; returns the position of its content.
fn check_header(file: &mut File, entry: &ListedEntry) -> io::Result<u64> {
    let header = read_at(file, entry.offset, LOCAL as u64)?;
    let fields = FieldReader(&header);
    let differs = || damaged_zip("it says two different things about one file");
    if !header.starts_with(b"PK\x03\x04")
        || fields.short(6)? & ENCRYPTED != entry.flags & ENCRYPTED
        || fields.short(8)? != entry.method
        || usize::from(fields.short(26)?) != entry.name.len()
    {
        return Err(differs());
    }
    let at = entry.offset + LOCAL as u64;
    if read_at(file, at, entry.name.len() as u64)? != entry.name {
        return Err(differs());
    }
    Ok(at + entry.name.len() as u64 + u64::from(fields.short(28)?))
}

/// The content of an entry: whole, or one byte more than `longest`.
fn read_content(
    file: &mut File,
    entry: &ListedEntry,
    begin: u64,
    longest: u64,
) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(begin))?;
    let packed = BufReader::new((&mut *file).take(entry.packed));
    let mut bytes = Vec::new();
    match entry.method {
        DEFLATED => DeflateDecoder::new(packed).take(longest + 1).read_to_end(&mut bytes)?,
        _ => packed.take(longest + 1).read_to_end(&mut bytes)?,
    };
    if bytes.len() as u64 > longest {
        return Ok(bytes);
    }
    let mut crc = Crc::new();
    crc.update(&bytes);
    match bytes.len() as u64 == entry.size && crc.sum() == entry.crc {
        true => Ok(bytes),
        false => Err(damaged_zip("the content of a file is not what its list says")),
    }
}

fn read_at(file: &mut File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    (&mut *file).take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(damaged_zip("it is cut off")),
    }
}

fn damaged_zip(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Numbers at fixed positions, the lower byte first.
struct FieldReader<'a>(&'a [u8]);

impl FieldReader<'_> {
    fn short(&self, at: usize) -> io::Result<u16> {
        let bytes = self.0.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u16::from_le_bytes).ok_or_else(|| damaged_zip("it is cut off"))
    }

    fn long(&self, at: usize) -> io::Result<u32> {
        let bytes = self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_le_bytes).ok_or_else(|| damaged_zip("it is cut off"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::archive::read_archive;
    use super::*;

    /// An entry for the writer of the tests, which can lie.
    #[derive(Clone)]
    struct Made {
        name: &'static str,
        text: Vec<u8>,
        mode: u32,
        flags: u16,
        deflated: bool,
        /// The name in the entry's own header.
        own: Option<&'static str>,
        /// The size in the list.
        size: Option<u32>,
    }

    fn made(name: &'static str, text: &str) -> Made {
        let text = text.as_bytes().to_vec();
        Made { name, text, mode: 0o100_644, flags: 0, deflated: true, own: None, size: None }
    }

    fn zip(entries: &[Made]) -> Vec<u8> {
        let (mut bytes, mut list) = (Vec::new(), Vec::new());
        for entry in entries {
            let mut crc = Crc::new();
            crc.update(&entry.text);
            let packed = match entry.deflated {
                true => {
                    let mut encoder =
                        flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
                    encoder.write_all(&entry.text).unwrap();
                    encoder.finish().unwrap()
                }
                false => entry.text.clone(),
            };
            let method = if entry.deflated { DEFLATED } else { STORED };
            let size = entry.size.unwrap_or(u32::try_from(entry.text.len()).unwrap());
            let offset = u32::try_from(bytes.len()).unwrap();
            let common = |bytes: &mut Vec<u8>, name: &str| {
                bytes.extend(entry.flags.to_le_bytes());
                bytes.extend(method.to_le_bytes());
                bytes.extend([0; 4]);
                bytes.extend(crc.sum().to_le_bytes());
                bytes.extend(u32::try_from(packed.len()).unwrap().to_le_bytes());
                bytes.extend(size.to_le_bytes());
                bytes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
                bytes.extend([0; 2]);
            };
            let own = entry.own.unwrap_or(entry.name);
            bytes.extend(b"PK\x03\x04\x14\x00");
            common(&mut bytes, own);
            bytes.extend(own.as_bytes());
            bytes.extend(&packed);
            list.extend(b"PK\x01\x02\x14\x03\x14\x00");
            common(&mut list, entry.name);
            list.extend([0; 6]);
            list.extend((entry.mode << 16).to_le_bytes());
            list.extend(offset.to_le_bytes());
            list.extend(entry.name.as_bytes());
        }
        let (offset, count) = (bytes.len(), u16::try_from(entries.len()).unwrap());
        bytes.extend(&list);
        bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
        bytes.extend(count.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(u32::try_from(list.len()).unwrap().to_le_bytes());
        bytes.extend(u32::try_from(offset).unwrap().to_le_bytes());
        bytes.extend([0; 2]);
        bytes
    }

    type Found = (Vec<String>, Vec<(String, String)>);

    fn read(bytes: &[u8]) -> Result<Found, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut gather = FileGatherer::default();
        read_archive(file, "x.zip", &mut gather).map_err(|failure| failure.message)?;
        let collected = gather.into_collected();
        let left = collected.left_out.into_iter().map(|file| (file.path, file.why)).collect();
        Ok((collected.files.into_iter().map(|file| file.path).collect(), left))
    }

    #[test]
    fn files_are_read_without_the_folder_around_them() {
        let stored = Made { deflated: false, ..made("lib-main/b.md", "b") };
        let entries = [made("lib-main/", ""), made("lib-main/agents/a.md", "aaaa"), stored];
        assert_eq!(read(&zip(&entries)).unwrap().0, ["agents/a.md", "b.md"]);
        let with_comment = |comment: &[u8]| {
            let mut bytes = zip(&entries);
            let at = bytes.len() - 2;
            bytes[at..].copy_from_slice(&u16::try_from(comment.len()).unwrap().to_le_bytes());
            bytes.extend(comment);
            bytes
        };
        assert!(read(&with_comment(b"0123456789abcdef")).is_ok());
    }

    #[test]
    fn an_entry_that_leads_out_is_a_link_or_is_encrypted_is_left_out() {
        let (files, left) = read(&zip(&[
            made("a.md", "a"),
            made("../up.md", "x"),
            made("x/../../up.md", "x"),
            made("/etc/x.md", "x"),
            made("x\\..\\y.md", "x"),
            Made { mode: 0o120_777, ..made("link.md", "/etc/passwd") },
            Made { mode: 0o020_644, ..made("device.md", "") },
            Made { flags: 1, ..made("secret.md", "x") },
        ]))
        .unwrap();
        assert_eq!(files, ["a.md"]);
        let why = |path: &str| {
            let found = left.iter().find(|(left, _)| left.contains(path));
            found.unwrap_or_else(|| panic!("{path}: {left:?}")).1.clone()
        };
        assert_eq!(left.len(), 7, "{left:?}");
        for path in ["../up.md", "x/../../up.md", "/etc/x.md"] {
            assert!(why(path).contains("leads out"), "{path}");
        }
        assert!(why("link.md").contains("link") && why("secret.md").contains("encrypted"));
        assert!(why("device.md").contains("regular") && why("y.md").contains("plain"));
    }

    #[test]
    fn an_archive_that_says_two_things_is_refused_whole() {
        let twice = zip(&[made("a.md", "one"), made("a.md", "two")]);
        assert!(read(&twice).unwrap_err().contains("two of its files are called `a.md`"));
        let other = zip(&[Made { own: Some("b.md"), ..made("a.md", "x") }]);
        assert!(read(&other).unwrap_err().contains("two different things"));
        let size = zip(&[Made { size: Some(99), ..made("a.md", "x") }]);
        assert!(read(&size).unwrap_err().contains("not what its list says"));
        let mut behind = zip(&[made("a.md", "x")]);
        behind.extend(b"more");
        assert!(read(&behind).unwrap_err().contains("something behind it"));
        let good = zip(&[made("a.md", "x")]);
        for end in 1..good.len() {
            assert!(read(&good[..end]).is_err(), "cut at {end}");
        }
        let mut before = b"MZ prefix".to_vec();
        before.splice(0..0, *b"PK");
        before.extend(&good);
        assert!(read(&before).is_err());
    }

    #[test]
    fn a_bomb_is_not_inflated() {
        let zeros = Made { text: vec![0; 8 << 20], ..made("a.md", "") };
        // Longer than an agent: read to the bound and left out.
        let (files, left) = read(&zip(&[zeros.clone(), made("b.md", "b")])).unwrap();
        assert_eq!((files, left.len()), (vec!["b.md".to_owned()], 1));
        let huge =
            Made { size: Some(u32::try_from(MAX_UNPACKED).unwrap() + 1), ..made("x.bin", "") };
        assert!(read(&zip(&[huge])).unwrap_err().contains("more than"));
        // Two entries of the list with one content.
        let mut shared = zip(&[made("a.md", "same"), made("b.md", "same")]);
        let local = shared.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap();
        shared[local + 42..local + 46].copy_from_slice(&0_u32.to_le_bytes());
        let name = shared.windows(4).position(|four| four == b"a.md").unwrap();
        assert!(name < local);
        assert!(read(&shared).is_err());
    }
}
