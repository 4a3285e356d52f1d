//! The files of one commit, from what git wrote about them: a list of paths and the content of every object.
//!
//! Both are files without a name, written before the OS sandbox goes up and parsed behind it. An object that
//! is not among the written ones is named with its path: it is too long, or the clone does not have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom};

use super::folder::{MAX_READING, WorkDeadline};
use super::gather::{FileGatherer, MAX_ENTRIES};
use crate::setup::exit::Failure;

/// Bytes of the list of a commit's files: far more than [`MAX_ENTRIES`] honest paths have.
pub(super) const MAX_LISTING: u64 = 32 << 20;

/// Bytes of one line of git's about an object.
const MAX_LINE: u64 = 256;

/// The first line of a pointer to a file that Git LFS keeps elsewhere.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// A complete commit.
pub(crate) struct GitCommit {
    /// Its full id.
    pub(super) id: String,
    /// `git ls-tree -r -z`; at its beginning.
    pub(super) listing: File,
    /// `git cat-file --batch` of every present object; at its beginning.
    pub(super) contents: File,
    /// Ids of objects that the repository has and that are too long to be read.
    pub(super) too_long: BTreeSet<String>,
    /// The reason for any other missing object.
    pub(super) absent: &'static str,
}

/// The reason in a repository whose absent objects were left out for their length.
pub(super) const TOO_LONG: &str = "it is longer than an agent may be";

/// The reason in a partial clone.
pub(super) const NOT_CLONED: &str = "its content is not in this clone, which is a partial one";

/// One file of a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedFile {
    pub(super) kind: ListedKind,
    pub(super) id: String,
    /// The path below the listed folder, with invalid UTF-8 replaced.
    pub(super) path: String,
    /// Whether the path is UTF-8 as it is.
    pub(super) is_text: bool,
}

/// The kind of a file of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedKind {
    Regular,
    Link,
    Submodule,
}

impl GitCommit {
    /// Gathers the files of the commit.
    ///
    /// # Errors
    ///
    /// git wrote something else than a list and objects, or the commit exceeds a bound.
    pub(super) fn gather_files(self, gather: &mut FileGatherer) -> Result<(), Failure> {
        let failed = |error: io::Error| {
            Failure::usage(format!("the commit cannot be read: {error}"))
                .with_hint("nothing of it is installed")
        };
        let mut submodules = Vec::new();
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for listed in parse_listing(&self.listing).map_err(failed)? {
            gather.count_entry()?;
            let ListedFile { kind, id, path, is_text } = listed;
            match kind {
                ListedKind::Submodule => submodules.push(path),
                ListedKind::Link => gather.refuse_file(&path, "it is a link"),
                ListedKind::Regular if !is_text => {
                    gather.refuse_file(&path, "its name is not UTF-8");
                }
                ListedKind::Regular => {
                    if gather.wants_file(&path) {
                        gather.reserve_path(&path);
                        wanted.entry(id).or_default().push(path);
                    }
                }
            }
        }
        for path in submodules {
            gather.leave_out(&path, "it is a submodule: another repository, to be added by itself");
        }
        let until = WorkDeadline::after_limit(MAX_READING);
        let mut objects = ObjectReader { reader: BufReader::new(self.contents), until };
        while let Some((id, bytes)) = objects.next_object(&wanted, gather).map_err(failed)? {
            for path in wanted.remove(&id).unwrap_or_default() {
                match bytes.starts_with(LFS_POINTER) {
                    true => gather.leave_out(
                        &path,
                        "it is a pointer of Git LFS, which keeps the text elsewhere",
                    ),
                    false => gather.keep_file(&path, bytes.clone())?,
                }
            }
        }
        for (id, paths) in wanted {
            let why = if self.too_long.contains(&id) { TOO_LONG } else { self.absent };
            paths.iter().for_each(|path| gather.leave_out(path, why));
        }
        Ok(())
    }
}

/// Parses the list of a commit's files.
///
/// # Errors
///
/// The text is not as git writes it, or too long.
pub(super) fn parse_listing(listing: &File) -> io::Result<Vec<ListedFile>> {
    let mut listing = listing;
    listing.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    listing.take(MAX_LISTING + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LISTING {
        return Err(io::Error::other("its list of files is too long"));
    }
    let mut files = Vec::new();
    for record in bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        files
            .push(parse_record(record).ok_or_else(|| io::Error::other("git lists no file there"))?);
        if files.len() > MAX_ENTRIES {
            return Err(io::Error::other(format!("it has more than {MAX_ENTRIES} files")));
        }
    }
    Ok(files)
}

/// `100644 blob ID<TAB>path`; `None` = not of this form.
fn parse_record(record: &[u8]) -> Option<ListedFile> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(record.get(..tab)?).ok()?;
    let path = record.get(tab + 1..)?;
    let mut words = head.split(' ');
    let (mode, id) = (words.next()?, words.nth(1)?);
    let kind = match mode {
        "120000" => ListedKind::Link,
        "160000" => ListedKind::Submodule,
        mode if mode.starts_with("100") => ListedKind::Regular,
        _ => return None,
    };
    let is_text = std::str::from_utf8(path).is_ok();
    let path = String::from_utf8_lossy(path).into_owned();
    Some(ListedFile { kind, id: id.to_owned(), path, is_text })
}

/// Reads `ID TYPE SIZE<LF>content<LF>` again and again.
struct ObjectReader<R> {
    reader: BufReader<R>,
    until: WorkDeadline,
}

impl<R: Read> ObjectReader<R> {
    /// The next object that a path names; `None` = there are no more.
    fn next_object(
        &mut self,
        wanted: &BTreeMap<String, Vec<String>>,
        gather: &FileGatherer,
    ) -> io::Result<Option<(String, Vec<u8>)>> {
        let broken = || io::Error::other("git writes no objects there");
        loop {
            self.until.time_left()?;
            let mut line = Vec::new();
            (&mut self.reader).take(MAX_LINE).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(None);
            }
            let line = std::str::from_utf8(&line).map_err(|_| broken())?;
            let words: Vec<&str> = line.trim_end().split(' ').collect();
            let [id, kind, size] = words.as_slice() else { return Err(broken()) };
            let size: u64 = size.parse().map_err(|_| broken())?;
            let whole = size.checked_add(1).ok_or_else(broken)?;
            let is_wanted = *kind == "blob" && wanted.contains_key(*id);
            if !is_wanted || size > gather.longest_file() as u64 {
                let skipped = io::copy(&mut (&mut self.reader).take(whole), &mut io::sink())?;
                if skipped != whole {
                    return Err(broken());
                }
                continue;
            }
            let mut bytes = Vec::new();
            (&mut self.reader).take(whole).read_to_end(&mut bytes)?;
            if bytes.pop() != Some(b'\n') || bytes.len() as u64 != size {
                return Err(broken());
            }
            return Ok(Some(((*id).to_owned(), bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    #[test]
    fn each_absent_file_has_its_true_reason() {
        let id = |n: u8| n.to_string().repeat(40);
        let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
        let mut listing = Vec::new();
        for (mode, kind, number, path) in [
            ("100644", "blob", 1, &b"a.md"[..]),
            ("100755", "blob", 1, b"same.md"),
            ("120000", "blob", 2, b"link.md"),
            ("160000", "commit", 3, b"vendored"),
            ("100644", "blob", 4, b"long.md"),
            ("100644", "blob", 5, b"gone.md"),
            ("100644", "blob", 6, b"lfs.md"),
            ("100644", "blob", 7, b"\xff.md"),
            ("100644", "blob", 8, b"x.png"),
        ] {
            listing.extend_from_slice(format!("{mode} {kind} {}\t", id(number)).as_bytes());
            listing.extend_from_slice(path);
            listing.push(0);
        }
        let contents = format!(
            "{} blob 5\nhello\n{} tree 3\nabc\n{} blob {}\n{lfs}\n",
            id(1),
            id(9),
            id(6),
            lfs.len()
        );
        let commit = GitCommit {
            id: id(0),
            listing: file(&listing),
            contents: file(contents.as_bytes()),
            too_long: BTreeSet::from([id(4)]),
            absent: NOT_CLONED,
        };
        let mut gather = FileGatherer::default();
        commit.gather_files(&mut gather).unwrap();
        let collected = gather.into_collected();
        let paths: Vec<&str> = collected.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a.md", "same.md"]);
        let left: BTreeMap<&str, &str> =
            collected.left_out.iter().map(|file| (file.path.as_str(), file.why.as_str())).collect();
        assert_eq!(left["link.md"], "it is a link");
        assert!(left["vendored"].contains("submodule"));
        assert_eq!((left["long.md"], left["gone.md"]), (TOO_LONG, NOT_CLONED));
        assert!(left["lfs.md"].contains("Git LFS"));
        assert!(left["\u{fffd}.md"].contains("UTF-8"));
        assert_eq!(left.len(), 6);
    }

    #[test]
    fn what_git_does_not_write_is_an_error() {
        for listing in [&b"100644 blob"[..], b"040000 tree x\ty\0", b"x\0"] {
            assert!(parse_listing(&file(listing)).is_err(), "{listing:?}");
        }
        for contents in ["x\n", "a blob x\n", "a blob 5\nab", "a blob 18446744073709551615\n"] {
            let commit = GitCommit {
                id: String::new(),
                listing: file(b"100644 blob a\ta.md\0"),
                contents: file(contents.as_bytes()),
                too_long: BTreeSet::new(),
                absent: TOO_LONG,
            };
            assert!(commit.gather_files(&mut FileGatherer::default()).is_err(), "{contents}");
        }
    }
}
