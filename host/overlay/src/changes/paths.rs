//! Paths in JSON: as text, or as bytes if not UTF-8.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Bound;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathForm {
    Text(String),
    Bytes(Vec<u8>),
}

impl PathForm {
    /// A path in the journal's form: text, or bytes if not UTF-8.
    fn from_path(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    /// The path in the operating system's form.
    fn into_path(self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
    }
}

/// A set of paths with fast look-ups of ancestors and descendants, because each of many changes is looked up.
#[derive(Debug, Default)]
pub(crate) struct PathSet<'a>(BTreeSet<&'a Path>);

impl<'a> PathSet<'a> {
    pub(crate) fn insert(&mut self, path: &'a Path) {
        self.0.insert(path);
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.0.contains(path)
    }

    /// Whether the set contains `path` or a directory above it. One look-up for each name of the path.
    pub(crate) fn has_ancestor(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.0.contains(above))
    }

    /// Whether the set contains `path` or a path below it. One look-up, because a path's descendants directly
    /// follow it.
    pub(crate) fn has_below(&self, path: &Path) -> bool {
        let from = (Bound::Included(path), Bound::Unbounded);
        self.0.range::<Path, _>(from).next().is_some_and(|first| first.starts_with(path))
    }
}

impl<'a> FromIterator<&'a Path> for PathSet<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Path>>(paths: I) -> Self {
        Self(paths.into_iter().collect())
    }
}

/// A path in this JSON form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AnyPath(pub(crate) PathBuf);

impl Serialize for AnyPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, to)
    }
}

impl<'de> Deserialize<'de> for AnyPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        PathForm::deserialize(from).map(|form| Self(form.into_path()))
    }
}

pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    PathForm::from_path(path).serialize(to)
}

/// Serializes an optional path, for `serialize_with`.
pub(crate) fn some<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(PathForm::from_path).serialize(to)
}

/// Serializes a list of paths, for `serialize_with`.
pub(crate) fn all<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| PathForm::from_path(path)))
}

/// Serializes paths with values as objects, for `serialize_with`.
pub(crate) fn each<S: Serializer, T: Serialize>(
    told: &[(PathBuf, T)],
    to: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct PathReason<'a, T> {
        path: PathForm,
        why: &'a T,
    }
    to.collect_seq(
        told.iter().map(|(path, why)| PathReason { path: PathForm::from_path(path), why }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are those of a walk of all paths, also where a name begins with another name.
    #[test]
    fn a_set_of_paths_finds_what_a_walk_of_all_of_them_would() {
        let names = ["", "a", "a.b", "a-b", "b"];
        let mut all: Vec<PathBuf> = Vec::new();
        for one in names {
            for other in names {
                for third in names {
                    all.push([one, other, third].iter().filter(|it| !it.is_empty()).collect());
                }
            }
        }
        for skipped in 1..7 {
            let some: Vec<&Path> = all.iter().step_by(skipped).map(PathBuf::as_path).collect();
            let some: Vec<&Path> =
                some.into_iter().filter(|path| !path.as_os_str().is_empty()).collect();
            let set: PathSet<'_> = some.iter().copied().collect();
            for path in &all {
                let (above, below) = (
                    some.iter().any(|it| path.starts_with(it)),
                    some.iter().any(|it| it.starts_with(path)),
                );
                assert_eq!(
                    (set.has_ancestor(path), set.has_below(path)),
                    (above, below),
                    "{path:?}"
                );
                assert_eq!(set.contains(path), some.contains(&path.as_path()), "{path:?}");
            }
        }
    }
}
