//! Machine code in a separate file of a release, in `lib/belljar` beside the program's `bin`, so that the
//! program stays small. The code runs in this process with all its rights, so the file must belong to a user
//! who could have replaced the program as well.

use std::fs::{File as Opened, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

use super::ours;

/// A file with machine code that the build has made.
pub(crate) struct BuildFile {
    /// The file's name, with a digest of its content, so that each release has its own file.
    name: &'static str,
    /// The size in bytes.
    bytes: usize,
    /// The mapped content, set at the first use; `None` = missing, or not trustworthy.
    mapped: OnceLock<Option<&'static [u8]>>,
}

impl BuildFile {
    #[allow(dead_code, reason = "how a release is built")]
    pub(crate) const fn new(name: &'static str, bytes: usize) -> Self {
        Self { name, bytes, mapped: OnceLock::new() }
    }

    /// The file's name, without its directory; see [`library_directory`].
    pub(crate) fn file_name(&self) -> &'static str {
        self.name
    }

    /// The content of the file. `None` = missing, or not trustworthy.
    pub(crate) fn machine_code(&self) -> Option<&'static [u8]> {
        *self.mapped.get_or_init(|| {
            let program = std::env::current_exe().ok()?;
            let path = library_directory(&program)?.join(self.name);
            let program = std::fs::metadata(program).ok()?;
            map_file(&path, self.bytes, program.uid())
        })
    }
}

/// The directory of these files: `PREFIX/lib/belljar` for the program `PREFIX/bin/belljar`.
pub(crate) fn library_directory(program: &Path) -> Option<PathBuf> {
    Some(program.parent()?.parent()?.join("lib/belljar"))
}

/// Maps a file of exactly `bytes` bytes for the life of the process, if only root and `owner`, the program's
/// owner, can write or replace it.
#[expect(unsafe_code, reason = "memory that is a file")]
pub(crate) fn map_file(path: &Path, bytes: usize, owner: u32) -> Option<&'static [u8]> {
    let directory = std::fs::metadata(path.parent()?).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = Opened::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let about = file.metadata().ok()?;
    let whole = about.is_file() && usize::try_from(about.len()).is_ok_and(|len| len == bytes);
    if bytes == 0 || !whole || !is_only(&about, owner) || !is_only(&directory, owner) {
        return None;
    }
    let (read, private) = (ProtFlags::READ, MapFlags::PRIVATE);
    // SAFETY: a new mapping at an address that the system chooses. The mapping is never unmapped, and this
    // process never writes it. Anybody who could change the file could have changed the program.
    unsafe {
        let start = rustix::mm::mmap(std::ptr::null_mut(), bytes, read, private, &file, 0).ok()?;
        Some(std::slice::from_raw_parts(start.cast(), bytes))
    }
}

/// Returns whether only root and the user `owner` can write the file.
fn is_only(about: &Metadata, owner: u32) -> bool {
    ours::judge_mode(about.uid(), about.mode(), owner).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_others_could_have_written_or_replaced_is_not_mapped() {
        let prefix = tempfile::tempdir().unwrap();
        let lib = library_directory(&prefix.path().join("bin/belljar")).unwrap();
        assert_eq!(lib, prefix.path().join("lib/belljar"));
        fs::create_dir_all(&lib).unwrap();
        let path = lib.join("a.code");
        fs::write(&path, b"machine code").unwrap();
        chmod(&lib, 0o755);
        chmod(&path, 0o644);
        let us = rustix::process::geteuid().as_raw();
        let mapped = |path: &Path| map_file(path, 12, us);
        assert_eq!(mapped(&path), Some(&b"machine code"[..]));
        assert_eq!(map_file(&path, 11, us), None, "another size");
        assert_eq!(map_file(&path, 13, us), None, "another size");
        for mode in [0o664, 0o646] {
            chmod(&path, mode);
            assert_eq!(mapped(&path), None, "{mode:o}");
        }
        chmod(&path, 0o644);
        for mode in [0o775, 0o757, 0o1777] {
            chmod(&lib, mode);
            assert_eq!(mapped(&path), None, "{mode:o}");
        }
        chmod(&lib, 0o755);
        symlink(&path, lib.join("link.code")).unwrap();
        assert_eq!(mapped(&lib.join("link.code")), None);
        assert_eq!(mapped(&lib.join("missing.code")), None);
        assert_eq!(mapped(&lib), None);
        assert_eq!(mapped(&path), Some(&b"machine code"[..]));
        // The program's owner is not the file's owner. Files of root are always accepted, so root skips this.
        if us != 0 {
            assert_eq!(map_file(&path, 12, us + 1), None);
        }
    }
}
