//! Compares a fork with the copy from which the fork began.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::{ForkEntry, is_same_file, read_entry};
use crate::rel::RelPath;
use crate::view::{DirAt, OverlayView};

/// A search for the paths at which a fork differs from its base. `most`: how many paths to list; `found`:
/// the paths, and the number of further paths.
pub(super) struct ForkComparison<'a> {
    pub(super) base: OverlayView<'a>,
    pub(super) mine: OverlayView<'a>,
    pub(super) most: usize,
    pub(super) found: (Vec<PathBuf>, u64),
}

impl ForkComparison<'_> {
    /// Adds the paths below a directory that differ between the fork's base and its present content,
    /// recursively.
    pub(super) fn compare_dir(
        &mut self,
        path: &RelPath,
        before: &DirAt,
        after: &DirAt,
    ) -> io::Result<()> {
        for name in differing_names((&self.base, Some(before)), (&self.mine, Some(after)))? {
            let path = path.join(&name);
            let was = read_entry(&mut self.base, Some(before), &name)?;
            let is = read_entry(&mut self.mine, Some(after), &name)?;
            let is_same = match (was, is) {
                (ForkEntry::Nothing, ForkEntry::Nothing) => true,
                (ForkEntry::Other(was), ForkEntry::Other(is)) => was == is,
                (ForkEntry::File(was), ForkEntry::File(is)) => is_same_file(&was, &is)?,
                (ForkEntry::Dir(was), ForkEntry::Dir(is)) => {
                    self.compare_dir(&path, &was, &is)?;
                    true
                }
                (
                    ForkEntry::Nothing
                    | ForkEntry::Dir(_)
                    | ForkEntry::File(_)
                    | ForkEntry::Other(_),
                    _,
                ) => false,
            };
            if is_same {
                continue;
            }
            let (found, more) = &mut self.found;
            match found.len() < self.most {
                true => found.push(PathBuf::from(OsStr::from_bytes(path.as_bytes()))),
                false => *more += 1,
            }
        }
        Ok(())
    }
}

/// The names that may differ between two directories. Each directory comes with the view of its overlay.
pub(super) fn differing_names(
    (base, before): (&OverlayView<'_>, Option<&DirAt>),
    (mine, after): (&OverlayView<'_>, Option<&DirAt>),
) -> io::Result<Vec<OsString>> {
    let mut names: Vec<OsString> = match (before, after) {
        (Some(before), Some(after)) if OverlayView::is_of_one_place(before, after) => {
            base.known_names(before).chain(mine.known_names(after)).collect()
        }
        _ => {
            let mut names = Vec::new();
            for (view, dir) in [(base, before), (mine, after)] {
                if let Some(dir) = dir {
                    names.extend(view.list_dir(dir, u64::MAX)?.into_iter().map(|(name, _)| name));
                }
            }
            names
        }
    };
    names.sort();
    names.dedup();
    Ok(names)
}
