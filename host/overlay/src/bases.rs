//! Stores texts as they were before an agent's first change. A merge needs such a text as the common base,
//! if a file was changed both in the overlay and in the lower directory.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::layer::open_subdirectory;
use super::room::OverlayRoom;

/// The most bytes of a stored text; larger texts are not merged.
pub(super) const LARGEST: u64 = 4 << 20;
/// How many bytes at the start of a file are checked for a zero byte, which marks a binary file, as in git.
const LOOKED_AT: usize = 8000;
/// The stored texts may use a quarter of the quota, in addition to the quota. The pool counts their bytes
/// too.
const PART: u64 = 4;

const NEW: &str = "new";

/// The directory of the stored texts in a layer. Each file is named by the SHA-256 of its text.
#[derive(Debug)]
pub(super) struct BaseTexts {
    dir: OwnedFd,
    room: Arc<OverlayRoom>,
    held: Mutex<HashMap<[u8; 32], u64>>,
}

impl BaseTexts {
    /// Opens the stored texts of a layer, and removes other files there. `beside` is the quota of the layer's
    /// contents.
    pub(super) fn open(layer: BorrowedFd<'_>, beside: &OverlayRoom) -> io::Result<Self> {
        let room = beside.with_part(PART);
        let dir = open_subdirectory(layer, "bases")?;
        let mut held = HashMap::new();
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_bytes() == b"." || name.to_bytes() == b".." {
                continue;
            }
            match name.to_str().ok().and_then(digest_of) {
                Some(digest) => {
                    let stat = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    let size = u64::try_from(stat.st_size).unwrap_or(0);
                    room.count_existing(size);
                    held.insert(digest, size);
                }
                None => match unlinkat(&dir, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno.into()),
                },
            }
        }
        Ok(Self { dir, room, held: Mutex::new(held) })
    }

    /// Stores a content if the content is text and there is space. Otherwise the file cannot be merged later;
    /// nothing else depends on the store.
    pub(super) fn store_base(&self, digest: [u8; 32], content: &[u8]) {
        let mut held = self.lock_held();
        let size = content.len() as u64;
        let looked_at = content.get(..LOOKED_AT).unwrap_or(content);
        if held.contains_key(&digest) || looked_at.contains(&0) {
            return;
        }
        if self.room.reserve_bytes(size).is_err() {
            return;
        }
        match self.write_base(digest, content) {
            Ok(()) => drop(held.insert(digest, size)),
            Err(_) => self.room.release_bytes(size),
        }
    }

    /// Writes one original text under the name of the digest.
    fn write_base(&self, digest: [u8; 32], content: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o600);
        let mut file = File::from(openat(&self.dir, NEW, flags | OFlags::CLOEXEC, mode)?);
        file.write_all(content)?;
        Ok(renameat(&self.dir, NEW, &self.dir, base_name(digest))?)
    }

    /// The bytes of all stored texts.
    pub(super) fn used_bytes(&self) -> u64 {
        self.room.used_bytes()
    }

    pub(super) fn open_file(&self, digest: [u8; 32]) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.dir.as_fd(), base_name(digest), flags, Mode::empty()).map(File::from)
    }

    /// Removes all texts but those with these digests.
    pub(super) fn retain_wanted(&self, wanted: &HashSet<[u8; 32]>) {
        self.lock_held().retain(|digest, size| {
            let stays = wanted.contains(digest)
                || unlinkat(&self.dir, base_name(*digest), AtFlags::empty()).is_err();
            if !stays {
                self.room.release_bytes(*size);
            }
            stays
        });
    }

    fn lock_held(&self) -> MutexGuard<'_, HashMap<[u8; 32], u64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn base_name(digest: [u8; 32]) -> String {
    crate::Digest::from_bytes(digest).to_string()
}

fn digest_of(name: &str) -> Option<[u8; 32]> {
    crate::Digest::from_hex(name)
        .filter(|digest| digest.to_string() == name)
        .map(|it| *it.as_bytes())
}
