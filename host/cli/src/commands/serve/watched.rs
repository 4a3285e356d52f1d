//! Watches files: finds out whether a file has changed since it was read.

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::setup::home::{MAX_CONFIG_BYTES, read_bounded};

/// The time after a change in which a second change might leave the file's times equal: longer than the time
/// unit of any file system.
const UNSURE: Duration = Duration::from_secs(2);

/// The most further files that are watched, because a turn waits until all of them were checked.
const MAX_BESIDES: usize = 256;

/// Watched files, each as it was found last.
#[derive(Debug)]
pub(crate) struct WatchedFiles {
    always: Vec<(PathBuf, FileSighting)>,
    /// The further files, whose paths come from the content of the first ones.
    besides: Vec<(PathBuf, FileSighting)>,
}

/// The state in which a file was found, with links followed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileSighting {
    Not(io::ErrorKind),
    There {
        stamp: FileStamp,
        /// A digest of the content, for a file that changed just now, because another change might leave its
        /// times equal. `Some(None)` = unreadable.
        content: Option<Option<u64>>,
    },
}

/// The metadata that differ after a file was written, replaced, or given to another owner.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    size: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    node: [i64; 6],
}

impl WatchedFiles {
    /// Starts to watch these files, as they are now. Must be called before they are read, so that later
    /// changes are noticed.
    pub(crate) fn from_files(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let now = SystemTime::now();
        let found = |path: PathBuf| (path.clone(), FileSighting::from_path(&path, now, false));
        Self { always: files.into_iter().map(found).collect(), besides: Vec::new() }
    }

    /// Watches these further files, in place of earlier further ones. Must be called before they are read.
    /// The noted state of a file that is watched already stays.
    pub(crate) fn watch_further(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        let now = SystemTime::now();
        let mut before = std::mem::take(&mut self.besides);
        for path in files.into_iter().take(MAX_BESIDES) {
            let known = before.iter().position(|(known, _)| *known == path);
            let found = known.map(|at| before.swap_remove(at));
            self.besides.push(found.unwrap_or_else(|| {
                let found = FileSighting::from_path(&path, now, false);
                (path, found)
            }));
        }
    }

    /// Returns whether any file has changed since the last call.
    pub(crate) fn have_changed(&mut self) -> bool {
        let now = SystemTime::now();
        let mut changed = false;
        for (path, before) in self.always.iter_mut().chain(&mut self.besides) {
            let found = FileSighting::from_path(path, now, before.is_unsure());
            changed |= !before.is_still(&found);
            *before = found.drop_needless_digest(now);
        }
        changed
    }
}

impl FileSighting {
    /// Looks at a file. `unsure` = its content is digested even if its times are old.
    fn from_path(path: &Path, now: SystemTime, unsure: bool) -> Self {
        let about = match fs::metadata(path) {
            Ok(about) => about,
            Err(error) => return Self::Not(error.kind()),
        };
        let stamp = FileStamp::from_metadata(&about);
        let read = unsure || stamp.is_recent(now);
        Self::There { stamp, content: read.then(|| content_digest(path)) }
    }

    /// The same state without the digest, if the times are old enough to show a change.
    fn drop_needless_digest(self, now: SystemTime) -> Self {
        match self {
            Self::There { stamp, .. } if !stamp.is_recent(now) => {
                Self::There { stamp, content: None }
            }
            other => other,
        }
    }

    fn is_unsure(&self) -> bool {
        matches!(self, Self::There { content: Some(_), .. })
    }

    /// Returns whether the file is unchanged between these two looks.
    fn is_still(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Not(before), Self::Not(now)) => before == now,
            (
                Self::There { stamp: before, content: Some(known) },
                Self::There { stamp: now, content: Some(found) },
            ) => before == now && known == found,
            (Self::There { stamp: before, .. }, Self::There { stamp: now, .. }) => before == now,
            (Self::Not(_), Self::There { .. }) | (Self::There { .. }, Self::Not(_)) => false,
        }
    }
}

impl FileStamp {
    /// Takes the metadata of a file.
    fn from_metadata(about: &Metadata) -> Self {
        Self {
            size: about.len(),
            modified: about.modified().ok(),
            #[cfg(unix)]
            node: {
                use std::os::unix::fs::MetadataExt as _;
                let [device, number] = [about.dev(), about.ino()].map(u64::cast_signed);
                let [mode, owner] = [about.mode(), about.uid()].map(i64::from);
                [device, number, mode, owner, about.ctime(), about.ctime_nsec()]
            },
        }
    }
}

impl FileStamp {
    /// Returns whether the last change is so recent that another one could leave the times equal.
    fn is_recent(&self, now: SystemTime) -> bool {
        // A time in the future counts as recent, because it says nothing.
        let since = self.modified.and_then(|at| now.duration_since(at).ok());
        since.is_none_or(|since| since < UNSURE)
    }
}

/// A short digest of a file's content; `None` = unreadable.
fn content_digest(path: &Path) -> Option<u64> {
    let bytes = read_bounded(path, MAX_CONFIG_BYTES).ok()?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const LONG_AGO: Duration = Duration::from_secs(600);

    /// Sets the file's time to one long ago.
    fn age(path: &Path) {
        let then = SystemTime::now() - LONG_AGO;
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn a_file_that_is_written_replaced_made_or_taken_away_has_changed_once() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
        fs::write(&one, "a").unwrap();
        age(&one);
        let mut watched = WatchedFiles::from_files([one.clone(), other.clone()]);
        let mut changed = || watched.have_changed();
        assert!(!changed());
        fs::write(&one, "b").unwrap();
        assert_eq!([changed(), changed()], [true, false], "written");
        fs::write(dir.path().join("next"), "b").unwrap();
        fs::rename(dir.path().join("next"), &one).unwrap();
        assert_eq!([changed(), changed()], [true, false], "replaced");
        fs::write(&other, "").unwrap();
        assert_eq!([changed(), changed()], [true, false], "made");
        fs::remove_file(&one).unwrap();
        assert_eq!([changed(), changed()], [true, false], "taken away");
    }

    #[test]
    fn a_change_that_leaves_size_and_times_as_they_were_is_seen_while_the_file_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("one");
        fs::write(&path, "allow").unwrap();
        let stamp = FileStamp::from_metadata(&fs::metadata(&path).unwrap());
        let found = |content: &[u8]| {
            let mut hasher = DefaultHasher::new();
            content.to_vec().hash(&mut hasher);
            FileSighting::There { stamp: stamp.clone(), content: Some(Some(hasher.finish())) }
        };
        let now = SystemTime::now();
        let new = FileSighting::from_path(&path, now, false);
        assert!(new.is_unsure() && new.is_still(&found(b"allow")));
        assert!(!new.is_still(&found(b"deny!")));
        // Once the file is old enough, it is read a last time; afterwards its times are enough.
        let later = now + LONG_AGO;
        let last = FileSighting::from_path(&path, later, new.is_unsure());
        assert!(last.is_unsure() && !last.is_still(&found(b"deny!")));
        assert!(!last.drop_needless_digest(later).is_unsure());
    }

    #[test]
    fn what_is_watched_besides_is_known_until_it_is_named_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
        for path in [&one, &other] {
            fs::write(path, "a").unwrap();
            age(path);
        }
        let mut watched = WatchedFiles::from_files([]);
        watched.watch_further([one.clone()]);
        fs::write(&one, "b").unwrap();
        watched.watch_further([other.clone(), one.clone()]);
        assert_eq!([watched.have_changed(), watched.have_changed()], [true, false]);
        watched.watch_further([other]);
        fs::write(&one, "c").unwrap();
        assert!(!watched.have_changed());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_write_from_now_on_has_changed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("one");
        fs::write(&path, "a").unwrap();
        age(&path);
        let mut watched = WatchedFiles::from_files([path.clone()]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(watched.have_changed());
    }
}
