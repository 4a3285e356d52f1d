//! The directories of an attack, and a digest that shows whether one has changed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use walkdir::WalkDir;

/// The content of the file that no attack may read or change.
pub(crate) const CANARY: &str = "nobody may read this or change it\n";

/// A new directory for each attack. `workspace` is the attacker's mount, `second` another mount for attacks
/// that need two, and `outside` has files that no attack may reach.
pub(crate) struct AttackTree {
    dir: TempDir,
    root: PathBuf,
}

impl AttackTree {
    /// Makes the directories, and the files that no attack may reach.
    pub(crate) fn new() -> Result<Self> {
        let dir = tempfile::tempdir().context("failed to make a directory for an attack")?;
        let root = dir.path().canonicalize()?;
        for name in ["workspace", "second", "neighbour", "home", "outside/folder"] {
            fs::create_dir_all(root.join(name))?;
        }
        fs::write(root.join("outside/canary.txt"), CANARY)?;
        fs::write(root.join("outside/folder/inner.txt"), CANARY)?;
        Ok(Self { dir, root })
    }

    /// The path of one of the directories.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The path of the whole tree, which no guest may learn.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the tree, including files that an attack made hard to remove.
    pub(crate) fn remove(self) -> Result<()> {
        self.dir.close().context("failed to remove the directory of an attack")
    }
}

/// A digest of everything in a directory: names, kinds, contents, modes, times of change, link targets, and
/// the number of names of each file.
pub(crate) fn digest_directory(folder: &Path) -> Result<[u8; 32]> {
    let mut digest = Sha256::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = entry?;
        let meta = entry.metadata()?;
        let path = entry.path().strip_prefix(folder)?.as_os_str().as_bytes();
        add_part(&mut digest, path);
        let facts = [
            u64::from(meta.mode()),
            meta.nlink(),
            meta.mtime().unsigned_abs(),
            meta.mtime_nsec().unsigned_abs(),
            if meta.is_dir() { 0 } else { meta.len() },
        ];
        for fact in facts {
            digest.update(fact.to_le_bytes());
        }
        if meta.is_symlink() {
            add_part(&mut digest, fs::read_link(entry.path())?.as_os_str().as_bytes());
        } else if meta.is_file() {
            add_part(&mut digest, &fs::read(entry.path())?);
        }
    }
    Ok(digest.finalize().into())
}

/// Adds one part with its length, so different lists of parts never have the same bytes.
fn add_part(digest: &mut Sha256, part: &[u8]) {
    digest.update((part.len() as u64).to_le_bytes());
    digest.update(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_tree_is_seen() {
        let changes: [fn(&Path); 6] = [
            |at| fs::write(at.join("canary.txt"), "other").unwrap(),
            |at| fs::remove_file(at.join("folder/inner.txt")).unwrap(),
            |at| fs::write(at.join("new.txt"), "").unwrap(),
            |at| fs::rename(at.join("canary.txt"), at.join("x.txt")).unwrap(),
            |at| fs::hard_link(at.join("canary.txt"), at.join("../workspace/x")).unwrap(),
            |at| std::os::unix::fs::symlink("/", at.join("link")).unwrap(),
        ];
        for change in changes {
            let tree = AttackTree::new().unwrap();
            let outside = tree.path("outside");
            let before = digest_directory(&outside).unwrap();
            assert_eq!(digest_directory(&outside).unwrap(), before);
            change(&outside);
            assert_ne!(digest_directory(&outside).unwrap(), before);
            tree.remove().unwrap();
        }
    }
}
