//! The members of a tar archive, one header at a time.
//!
//! A header can be about the next one, for example GNU's long names and POSIX's extended headers. Each states
//! its own length, so the bound is checked before a byte of it is read.

use std::io::{self, Read};

use tar::{EntryType, Header};

/// Bytes of a block: of a header, and of what sizes are rounded up to.
const BLOCK: u64 = 512;

/// Bytes of a long name. Systems take no longer path.
const MAX_NAME: u64 = 4 << 10;

/// Bytes of an extended header: a path, a link and some times.
const MAX_PAX: u64 = 64 << 10;

/// Headers about one member: two for GNU, one for POSIX.
const MAX_ABOUT: usize = 4;

/// The members of an archive, in order.
pub(super) struct MemberReader<R> {
    reader: R,
    /// Bytes of the last member to skip, with padding.
    rest: u64,
    fill: u64,
}

/// The facts about a member from its headers.
pub(super) struct ArchiveMember {
    /// As it is written there.
    pub(super) path: Vec<u8>,
    pub(super) kind: EntryType,
}

/// The facts about the next member.
#[derive(Default)]
struct MemberHeaders {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl<R: Read> MemberReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, rest: 0, fill: 0 }
    }

    /// The next member; `None` = the archive is over. `count` is called for every header.
    pub(super) fn next_member<E: From<io::Error>>(
        &mut self,
        mut count: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<ArchiveMember>, E> {
        let mut about = MemberHeaders::default();
        for seen in 0..=MAX_ABOUT {
            let Some(header) = self.header_of(&mut count)? else {
                return match seen {
                    0 => Ok(None),
                    _ => Err(damaged_archive("it ends before what it has described").into()),
                };
            };
            let size = header.entry_size()?;
            match header.entry_type() {
                EntryType::GNULongName => about.path = Some(self.read_name(size)?),
                EntryType::GNULongLink => drop(self.read_name(size)?),
                EntryType::XHeader => about.parse_extended(&self.read_whole(
                    size,
                    MAX_PAX,
                    "an extended header",
                )?)?,
                // The data of such a header is not in ordinary blocks.
                EntryType::GNUSparse => {
                    return Err(damaged_archive("it holds a sparse file").into());
                }
                kind => {
                    self.require_size(about.size.unwrap_or(size))?;
                    let path = about.path.unwrap_or_else(|| header.path_bytes().into_owned());
                    return Ok(Some(ArchiveMember { path, kind }));
                }
            }
        }
        Err(damaged_archive("it has too many headers about one file").into())
    }

    /// The next header of a single file. Headers about all files, for example git's commit, are skipped: no
    /// path and no size counts for all.
    fn header_of<E: From<io::Error>>(
        &mut self,
        count: &mut impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Header>, E> {
        loop {
            self.pass_by()?;
            let Some(header) = self.next_header()? else { return Ok(None) };
            count()?;
            if header.entry_type() != EntryType::XGlobalHeader {
                return Ok(Some(header));
            }
            self.read_whole(header.entry_size()?, MAX_PAX, "an extended header")?;
        }
    }

    /// Reads of the current member, at most `limit` bytes.
    pub(super) fn read_content(&mut self, limit: u64) -> io::Result<Vec<u8>> {
        let wanted = self.rest.min(limit);
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(wanted).read_to_end(&mut bytes)? as u64;
        self.rest = self.rest.saturating_sub(read);
        match read == wanted {
            true => Ok(bytes),
            false => Err(damaged_archive("it ends within a file")),
        }
    }

    fn require_size(&mut self, size: u64) -> io::Result<()> {
        let over = size % BLOCK;
        self.fill = if over == 0 { 0 } else { BLOCK - over };
        size.checked_add(self.fill)
            .ok_or_else(|| damaged_archive("a file in it has no such size"))?;
        self.rest = size;
        Ok(())
    }

    /// Passes by what is left of a member.
    fn pass_by(&mut self) -> io::Result<()> {
        let wanted = self.rest.saturating_add(self.fill);
        let passed = io::copy(&mut (&mut self.reader).take(wanted), &mut io::sink())?;
        (self.rest, self.fill) = (0, 0);
        match passed == wanted {
            true => Ok(()),
            false => Err(damaged_archive("it ends within a file")),
        }
    }

    /// `None` = the end of the archive: no more bytes, or the first empty block, as in tar.
    fn next_header(&mut self) -> io::Result<Option<Header>> {
        let mut header = Header::new_old();
        let mut block = Vec::new();
        (&mut self.reader).take(BLOCK).read_to_end(&mut block)?;
        if block.is_empty() || block.iter().all(|byte| *byte == 0) && block.len() as u64 == BLOCK {
            return Ok(None);
        }
        if block.len() as u64 != BLOCK {
            return Err(damaged_archive("it ends within a header"));
        }
        header.as_mut_bytes().copy_from_slice(&block);
        // All bytes of the header, those of the sum as spaces.
        let sum = block.iter().enumerate().fold(0_u32, |sum, (at, byte)| {
            sum + if (148..156).contains(&at) { 32 } else { u32::from(*byte) }
        });
        match header.cksum()? == sum {
            true => Ok(Some(header)),
            false => Err(damaged_archive("a header does not have its own sum")),
        }
    }

    fn read_whole(&mut self, size: u64, limit: u64, what: &str) -> io::Result<Vec<u8>> {
        if size > limit {
            return Err(damaged_archive(&format!(
                "it has {what} of {size} bytes; {limit} are read"
            )));
        }
        self.require_size(size)?;
        self.read_content(limit)
    }

    fn read_name(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut name = self.read_whole(size, MAX_NAME, "a name")?;
        if let Some(end) = name.iter().position(|byte| *byte == 0) {
            name.truncate(end);
        }
        Ok(name)
    }
}

impl MemberHeaders {
    /// Parses an extended header: `LENGTH KEY=VALUE\n`, one after another.
    fn parse_extended(&mut self, mut text: &[u8]) -> io::Result<()> {
        let bad = || damaged_archive("an extended header cannot be read");
        while !text.is_empty() {
            let space = text.iter().position(|byte| *byte == b' ').ok_or_else(bad)?;
            let length = text.get(..space).and_then(|digits| std::str::from_utf8(digits).ok());
            let length: usize = length.and_then(|digits| digits.parse().ok()).ok_or_else(bad)?;
            let record = text.get(space + 1..length).ok_or_else(bad)?;
            let record = record.strip_suffix(b"\n").ok_or_else(bad)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(bad)?;
            let (key, value) = (record.get(..equals), record.get(equals + 1..).unwrap_or_default());
            match key.unwrap_or_default() {
                b"path" => self.path = Some(value.to_vec()),
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|size| size.parse().ok());
                    self.size = Some(size.ok_or_else(bad)?);
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(damaged_archive("it holds a sparse file"));
                }
                _ => {}
            }
            text = text.get(length..).unwrap_or_default();
        }
        Ok(())
    }
}

fn damaged_archive(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(path: &str, kind: EntryType, size: u64) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        header.as_bytes().to_vec()
    }

    fn member(path: &str, kind: EntryType, bytes: &[u8]) -> Vec<u8> {
        let mut member = header(path, kind, bytes.len() as u64);
        member.extend_from_slice(bytes);
        member.resize(member.len().next_multiple_of(512), 0);
        member
    }

    fn record(key: &str, value: &str) -> String {
        let rest = key.len() + value.len() + 3;
        let length = (1..6).map(|digits| rest + digits).find(|n| n.to_string().len() + rest == *n);
        format!("{} {key}={value}\n", length.unwrap())
    }

    /// The paths and contents of an archive, or why it is not read.
    fn read(archive: &[u8]) -> io::Result<Vec<(String, String)>> {
        let mut members = MemberReader::new(archive);
        let mut found = Vec::new();
        while let Some(member) = members.next_member::<io::Error>(|| Ok(()))? {
            let path = String::from_utf8(member.path).unwrap();
            found.push((path, String::from_utf8(members.read_content(1 << 20)?).unwrap()));
        }
        Ok(found)
    }

    const FILE: EntryType = EntryType::Regular;

    #[test]
    fn names_and_sizes_come_from_the_headers_about_a_file() {
        let pax = record("path", "long/a.md") + &record("size", "3") + &record("mtime", "1.5");
        let short = header("short", FILE, 0);
        let archive = [
            member("g", EntryType::XGlobalHeader, record("comment", "x").as_bytes()),
            member("@LongLink", EntryType::GNULongName, b"gnu/b.md\0"),
            member("short", FILE, b"b"),
            member("pax", EntryType::XHeader, pax.as_bytes()),
            short,
            {
                let mut block = b"abc".to_vec();
                block.resize(512, 0);
                block
            },
            member("c", FILE, b"c"),
            vec![0; 1024],
            member("after the end", FILE, b"x"),
        ]
        .concat();
        let expected = [("gnu/b.md", "b"), ("long/a.md", "abc"), ("c", "c")];
        assert_eq!(read(&archive).unwrap(), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn a_long_name_or_header_is_refused_before_it_is_read() {
        for kind in [
            EntryType::GNULongName,
            EntryType::GNULongLink,
            EntryType::XHeader,
            EntryType::XGlobalHeader,
        ] {
            // Nothing follows: it would be an error of another kind to look for it.
            let why = read(&header("x", kind, 250 << 20)).unwrap_err().to_string();
            assert!(why.contains("of 262144000 bytes"), "{kind:?}: {why}");
        }
        let why = read(&header("x", FILE, u64::MAX)).unwrap_err().to_string();
        assert!(!why.is_empty());
    }

    #[test]
    fn what_is_no_archive_says_why() {
        let about = member("x", EntryType::GNULongName, b"y\0");
        for (archive, why) in [
            (b"text".to_vec(), "within a header"),
            (vec![b'x'; 512], ""),
            (header("a", FILE, 512), "within a file"),
            (about.clone(), "before what it has described"),
            (about.repeat(9), "too many headers"),
            (member("s", EntryType::GNUSparse, b""), "sparse"),
            (member("p", EntryType::XHeader, b"99999999999 path=x\n"), "cannot be read"),
            (member("p", EntryType::XHeader, b"5 a=b"), "cannot be read"),
            (member("p", EntryType::XHeader, record("size", "-1").as_bytes()), "cannot be read"),
            (member("p", EntryType::XHeader, record("GNU.sparse.major", "1").as_bytes()), "sparse"),
        ] {
            let error = read(&archive).unwrap_err().to_string();
            assert!(error.contains(why), "{why}: {error}");
        }
    }
}
