//! Writes the archive formats of a release: tar, gzip, and ar, the outer format of a Debian package.

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};

/// A file of the release. The path is relative to a prefix such as `/usr`.
#[derive(Debug, Clone)]
pub(super) struct ReleaseFile {
    pub(super) path: String,
    mode: u32,
    pub(super) bytes: Vec<u8>,
}

impl ReleaseFile {
    pub(super) fn data_file(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), mode: 0o644, bytes: bytes.into() }
    }

    pub(super) fn program_file(path: &str, bytes: Vec<u8>) -> Self {
        Self { path: path.to_owned(), mode: 0o755, bytes }
    }

    /// Moves a zsh completion to the directory where zsh on Debian looks for completions.
    pub(super) fn for_debian(mut self) -> Self {
        self.path = self.path.replace("zsh/site-functions", "zsh/vendor-completions");
        self
    }
}

/// A tar archive of the files, each below `prefix`. Directories come before the files in them.
pub(super) fn tar_archive(prefix: &str, entries: &[&ReleaseFile], date: u64) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut made = BTreeSet::new();
    for entry in entries {
        let path = format!("{prefix}{}", entry.path);
        for (at, _) in path.match_indices('/') {
            let directory = path.get(..=at).unwrap_or_default();
            if made.insert(directory.to_owned()) {
                append_entry(&mut tar, directory, tar::EntryType::Directory, 0o755, &[], date)?;
            }
        }
        append_entry(&mut tar, &path, tar::EntryType::Regular, entry.mode, &entry.bytes, date)?;
    }
    tar.into_inner().context("failed to end an archive")
}

fn append_entry(
    tar: &mut tar::Builder<Vec<u8>>,
    path: &str,
    kind: tar::EntryType,
    mode: u32,
    bytes: &[u8],
    date: u64,
) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_mtime(date);
    header.set_size(bytes.len() as u64);
    tar.append_data(&mut header, path, bytes).with_context(|| format!("failed to pack `{path}`"))
}

/// The bytes compressed by gzip, without name or date. `fast` is for archives not published.
pub(super) fn gzip_bytes(bytes: &[u8], fast: bool) -> Result<Vec<u8>> {
    let level = if fast { Compression::fast() } else { Compression::best() };
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), level);
    gzip.write_all(bytes)?;
    gzip.finish().context("failed to compress an archive")
}

/// An ar archive: each member has a text header and begins at an even offset.
pub(super) fn ar_archive(members: &[(&str, Vec<u8>)], date: u64) -> Result<Vec<u8>> {
    let mut ar = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let (owner, group, mode, size) = (0, 0, "100644", bytes.len());
        writeln!(ar, "{name:<16}{date:<12}{owner:<6}{group:<6}{mode:<8}{size:<10}`")?;
        ar.extend_from_slice(bytes);
        if bytes.len() % 2 == 1 {
            ar.push(b'\n');
        }
    }
    Ok(ar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_once_and_before_its_files() {
        let entries = [
            ReleaseFile::data_file("share/doc/a", "1"),
            ReleaseFile::program_file("share/b", b"2".to_vec()),
        ];
        let tar = tar_archive("usr/", &entries.iter().collect::<Vec<_>>(), 7).unwrap();
        let mut archive = tar::Archive::new(tar.as_slice());
        let found: Vec<String> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, 7));
                format!("{} {:o}", entry.path().unwrap().display(), header.mode().unwrap())
            })
            .collect();
        let directories = ["usr/ 755", "usr/share/ 755", "usr/share/doc/ 755"];
        assert_eq!(found, [&directories[..], &["usr/share/doc/a 644", "usr/share/b 755"]].concat());
    }

    #[test]
    fn members_of_ar_begin_at_even_offsets() {
        let ar = ar_archive(&[("one", b"x".to_vec()), ("two", b"yz".to_vec())], 7).unwrap();
        let text = String::from_utf8(ar).unwrap();
        let expected = "!<arch>\none             7           0     0     100644  1         `\nx\n\
            two             7           0     0     100644  2         `\nyz";
        assert_eq!(text, expected);
    }
}
