//! Selects changes by path.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::changes::paths::PathSet;
use crate::changes::{Changes, ChangesError};

/// A selection of all changes, or of those at some paths and below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSelection {
    /// `None` = all.
    paths: Option<BTreeSet<PathBuf>>,
}

impl PathSelection {
    /// Every change.
    pub fn all() -> Self {
        Self { paths: None }
    }

    /// The changes at and below these paths, relative to the workspace. `.` means all.
    ///
    /// # Errors
    ///
    /// A path leads out of the workspace.
    pub fn from_paths(
        paths: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Result<Self, ChangesError> {
        let paths = paths.into_iter().map(|path| normalize_path(path.as_ref()));
        Ok(Self { paths: Some(paths.collect::<Result<_, _>>()?) })
    }

    /// Whether every path is selected.
    pub(crate) fn is_all(&self) -> bool {
        self.paths.as_ref().is_none_or(|paths| paths.contains(Path::new("")))
    }

    /// Whether a path is selected.
    pub fn includes_path(&self, path: &Path) -> bool {
        let named = |paths: &BTreeSet<PathBuf>| path.ancestors().any(|above| paths.contains(above));
        self.paths.as_ref().is_none_or(named)
    }

    /// The selected paths without any change at or below them.
    pub fn unknown_paths(&self, changes: &Changes) -> Vec<&Path> {
        let named = self.paths.iter().flatten().map(PathBuf::as_path);
        let known: PathSet<'_> = changes.files().iter().map(|file| file.path.as_path()).collect();
        named.filter(|path| !known.has_below(path)).collect()
    }
}

/// A selected path without `.`; an error for a path with `..` or an absolute path.
fn normalize_path(path: &Path) -> Result<PathBuf, ChangesError> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(ChangesError::NotAPath(path.to_owned()));
            }
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_takes_itself_and_what_lies_below() {
        let selection = PathSelection::from_paths(["./src/a/", "b"]).unwrap();
        for path in ["src/a", "src/a/c", "b"] {
            assert!(selection.includes_path(Path::new(path)), "{path}");
        }
        for path in ["src", "src/ab", "bb", "c"] {
            assert!(!selection.includes_path(Path::new(path)), "{path}");
        }
        assert!(PathSelection::from_paths(["."]).unwrap().includes_path(Path::new("x")));
        assert!(PathSelection::all().includes_path(Path::new("x")));
        let nothing: [&str; 0] = [];
        assert!(!PathSelection::from_paths(nothing).unwrap().includes_path(Path::new("x")));
    }

    #[test]
    fn a_path_out_of_the_workspace_is_refused() {
        for path in ["..", "a/../b", "/etc"] {
            assert!(
                matches!(PathSelection::from_paths([path]), Err(ChangesError::NotAPath(_))),
                "{path}"
            );
        }
    }
}
