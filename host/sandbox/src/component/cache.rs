//! The cache on disk, with compiled components and checked descriptions of tools.
//!
//! Loading compiled code means running it, so an entry counts only if this host wrote it. Each entry begins
//! with a keyed digest (HMAC-SHA-256) over kind, name and content; the key is in the same private directory.
//! The digest detects entries truncated, renamed, foreign, or planted by an attacker who can write but not
//! read the directory; an attacker who can read the owner's files needs no cache to do harm. File names are
//! such digests too, so that a list of files does not reveal the components.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use belljar_policy::ShownPath as _;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::error::SandboxError;

/// The most bytes of an entry, which bounds the memory that one component's machine code uses. The code of a
/// Python tool has about 40 MB.
pub(crate) const MAX_ENTRY: u64 = 128 << 20;

const MAGIC: &[u8; 16] = b"belljar-cache-1\n";
const TAG: usize = 32;
const KEY: usize = 32;
const KEY_FILE: &str = "key";

/// The kind of an entry, which its digest covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheKind {
    /// Machine code of a component.
    Artifact,
    /// Checked descriptions of a component's tools.
    Describe,
}

/// The cache: a private directory, and the key in it.
pub(crate) struct ComponentCache {
    dir: PathBuf,
    key: [u8; KEY],
}

impl CacheKind {
    fn file_suffix(self) -> &'static str {
        match self {
            Self::Artifact => "cwasm",
            Self::Describe => "tools",
        }
    }
}

impl ComponentCache {
    /// Opens the cache directory, or creates it. A directory other users can access is made private and gets
    /// a new key, so that its entries no longer count. A directory of another user is refused.
    pub(crate) fn open(dir: &Path) -> Result<Self, SandboxError> {
        let fail = |why: String| SandboxError::Cache { path: dir.to_owned(), why };
        let key = prepare_directory(dir).map_err(|error| fail(error.to_string()))?;
        Ok(Self { dir: dir.to_owned(), key })
    }

    /// The content of an entry, if there is one and this host wrote it.
    pub(crate) fn find_entry(&self, kind: CacheKind, name: &str) -> Option<Vec<u8>> {
        let path = self.entry_path(kind, name);
        match self.read_entry(&path, kind, name) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(target: "belljar::sandbox", path = %path.to_shown(), "a cache entry is not used: {error}");
                None
            }
        }
    }

    /// Writes an entry in one step. A failure is logged only, because a missing entry costs time and nothing
    /// else.
    pub(crate) fn store_entry(&self, kind: CacheKind, name: &str, content: &[u8]) {
        let path = self.entry_path(kind, name);
        if let Err(error) = self.write_entry(&path, kind, name, content) {
            tracing::warn!(target: "belljar::sandbox", path = %path.to_shown(), "a cache entry is not written: {error}");
        }
    }

    fn entry_path(&self, kind: CacheKind, name: &str) -> PathBuf {
        let tag = self.entry_mac(kind, name, b"name").finalize().into_bytes();
        let hidden: String = tag.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.dir.join(format!("{hidden}.{}", kind.file_suffix()))
    }

    /// Reads an entry, and checks its size, its magic number and its authentication code.
    fn read_entry(&self, path: &Path, kind: CacheKind, name: &str) -> io::Result<Vec<u8>> {
        let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut content = Vec::with_capacity(usize::try_from(size.min(MAX_ENTRY)).unwrap_or(0));
        file.take(MAX_ENTRY + 1).read_to_end(&mut content)?;
        let head = MAGIC.len() + TAG;
        if content.len() as u64 > MAX_ENTRY || content.len() < head {
            return Err(bad("it is truncated or too large"));
        }
        let body = content.split_off(head);
        let tag = content.strip_prefix(MAGIC.as_slice()).ok_or_else(|| bad("it is no entry"))?;
        self.entry_mac(kind, name, &body)
            .verify_slice(tag)
            .map_err(|_| bad("this host did not write it so"))?;
        Ok(body)
    }

    /// Writes an entry with its authentication code: first to a temporary file, then renamed, so that no
    /// reader sees a partial entry.
    fn write_entry(
        &self,
        path: &Path,
        kind: CacheKind,
        name: &str,
        content: &[u8],
    ) -> io::Result<()> {
        let tag = self.entry_mac(kind, name, content).finalize().into_bytes();
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.dir)?;
        file.write_all(MAGIC)?;
        file.write_all(&tag)?;
        file.write_all(content)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn entry_mac(&self, kind: CacheKind, name: &str, content: &[u8]) -> Hmac<Sha256> {
        // The length of the key is valid, so the fallback never occurs; with it, no entry would be genuine.
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&self.key)
            .unwrap_or_else(|_| <Hmac<Sha256> as Mac>::new(&Default::default()));
        for part in [MAGIC.as_slice(), kind.file_suffix().as_bytes(), name.as_bytes()] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.update(content);
        mac
    }
}

impl std::fmt::Debug for ComponentCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ComponentCache").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Makes the directory private, and returns its key.
fn prepare_directory(dir: &Path) -> io::Result<[u8; KEY]> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let metadata = fs::symlink_metadata(dir)?;
    let refuse = |why: &str| Err(io::Error::other(why.to_owned()));
    if !metadata.is_dir() {
        return refuse("it is not a directory; remove it or name another");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return refuse("it belongs to another user; name one of your own");
    }
    let key_path = dir.join(KEY_FILE);
    if metadata.mode() & 0o077 != 0 {
        tracing::warn!(target: "belljar::sandbox", path = %dir.to_shown(), "the cache directory was open to others: closed, and its entries dropped");
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
        match fs::remove_file(&key_path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    match read_key(&key_path) {
        Ok(key) => Ok(key),
        Err(_) => make_key(dir, &key_path),
    }
}

/// Reads the key of the authentication code. Refuses a file that another user owns, or that others may
/// access.
fn read_key(path: &Path) -> io::Result<[u8; KEY]> {
    let metadata = fs::symlink_metadata(path)?;
    let private = metadata.is_file()
        && metadata.mode() & 0o077 == 0
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.len() == KEY as u64;
    if !private {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut key = [0; KEY];
    File::open(path)?.read_exact(&mut key)?;
    Ok(key)
}

/// Makes a new key file. If another process makes one at the same time, the first to name its file wins, and
/// the other reads that key.
fn make_key(dir: &Path, path: &Path) -> io::Result<[u8; KEY]> {
    let mut key = [0; KEY];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    // A file by that name is not valid as a key: it is not a regular file, others can access it, or its
    // length is wrong.
    match fs::symlink_metadata(path) {
        Ok(_) => fs::remove_file(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let temporary = tempfile::Builder::new().prefix(".new-").make_in(dir, |path| {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    })?;
    temporary.as_file().write_all(&key)?;
    match temporary.persist_noclobber(path) {
        Ok(_) => Ok(key),
        Err(_) => read_key(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, ComponentCache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = ComponentCache::open(&dir.path().join("cache")).unwrap();
        (dir, cache)
    }

    #[test]
    fn what_was_put_is_got_by_another_process_too() {
        let (_dir, cache) = cache();
        cache.store_entry(CacheKind::Artifact, "a", b"code");
        assert_eq!(
            ComponentCache::open(&cache.dir).unwrap().find_entry(CacheKind::Artifact, "a").unwrap(),
            b"code"
        );
        assert_eq!(cache.find_entry(CacheKind::Describe, "a"), None);
        assert_eq!(cache.find_entry(CacheKind::Artifact, "b"), None);
    }

    #[test]
    fn the_names_of_the_files_say_nothing_of_what_is_in_them() {
        let ((_dir, cache), (_other_dir, other)) = (cache(), self::cache());
        let name = |cache: &ComponentCache| {
            cache.entry_path(CacheKind::Artifact, "a").file_name().unwrap().to_owned()
        };
        assert_ne!(name(&cache), name(&other));
        let again = ComponentCache::open(&cache.dir).unwrap();
        assert_eq!(name(&cache), name(&again));
    }

    #[test]
    fn altered_truncated_renamed_and_foreign_entries_are_not_used() {
        let (_dir, cache) = cache();
        cache.store_entry(CacheKind::Artifact, "a", b"code");
        let path = cache.entry_path(CacheKind::Artifact, "a");
        let good = fs::read(&path).unwrap();
        let mut altered = good.clone();
        *altered.last_mut().unwrap() ^= 1;
        for bad in [altered, good[..good.len() - 1].to_vec(), b"code".to_vec(), Vec::new()] {
            fs::write(&path, bad).unwrap();
            assert_eq!(cache.find_entry(CacheKind::Artifact, "a"), None);
        }
        fs::write(cache.entry_path(CacheKind::Artifact, "b"), &good).unwrap();
        assert_eq!(cache.find_entry(CacheKind::Artifact, "b"), None, "bound to its name");
        fs::write(cache.entry_path(CacheKind::Describe, "a"), &good).unwrap();
        assert_eq!(cache.find_entry(CacheKind::Describe, "a"), None, "bound to its kind");
        let (_other_dir, other) = self::cache();
        fs::write(other.entry_path(CacheKind::Artifact, "a"), &good).unwrap();
        assert_eq!(
            other.find_entry(CacheKind::Artifact, "a"),
            None,
            "bound to its directory's key"
        );
        fs::write(&path, &good).unwrap();
        assert_eq!(cache.find_entry(CacheKind::Artifact, "a").unwrap(), b"code");
    }

    #[test]
    fn a_directory_that_was_open_to_others_loses_its_entries() {
        let (_dir, cache) = cache();
        cache.store_entry(CacheKind::Artifact, "a", b"code");
        fs::set_permissions(&cache.dir, fs::Permissions::from_mode(0o755)).unwrap();
        let again = ComponentCache::open(&cache.dir).unwrap();
        assert_eq!(fs::metadata(&cache.dir).unwrap().mode() & 0o777, 0o700);
        assert_eq!(again.find_entry(CacheKind::Artifact, "a"), None);
    }

    #[test]
    fn a_file_or_a_link_in_the_place_of_the_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(ComponentCache::open(&file).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(ComponentCache::open(&link).is_err());
    }
}
