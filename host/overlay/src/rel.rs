//! Relative paths as bytes, because a file name need not be text.

use std::borrow::Borrow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Names joined by `/`, without `.`, `..` and links. Empty for the root itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RelPath(Vec<u8>);

impl RelPath {
    /// Makes a path of these bytes; `None`: not a valid path.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let fits =
            |name: &[u8]| !name.is_empty() && name != b"." && name != b".." && !name.contains(&0);
        let whole = bytes.is_empty() || bytes.split(|byte| *byte == b'/').all(fits);
        whole.then(|| Self(bytes.to_vec()))
    }

    /// The path of the name `name` in the directory.
    pub(crate) fn join(&self, name: &OsStr) -> Self {
        let mut path = Vec::with_capacity(self.0.len() + 1 + name.len());
        path.extend_from_slice(&self.0);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        Self(path)
    }

    /// The names of the path, from the root downwards.
    pub(crate) fn names(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        let names = self.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.map(OsStr::from_bytes)
    }

    /// The parent directory and the last name; `None` for the root.
    pub(crate) fn split(&self) -> Option<(&[u8], &OsStr)> {
        split_last(&self.0)
    }

    /// Whether the path is below `above`; false if both are equal.
    pub(crate) fn is_below(&self, above: &Self) -> bool {
        let rest = self.0.strip_prefix(above.0.as_slice());
        rest.is_some_and(|rest| match above.0.is_empty() {
            true => !rest.is_empty(),
            false => rest.starts_with(b"/"),
        })
    }

    /// The path as bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The path without its last name, and the last name.
pub(crate) fn split_last(path: &[u8]) -> Option<(&[u8], &OsStr)> {
    if path.is_empty() {
        return None;
    }
    let at = path.iter().rposition(|byte| *byte == b'/');
    let (above, name) = match at {
        Some(at) => (path.get(..at)?, path.get(at + 1..)?),
        None => (&[][..], path),
    };
    Some((above, OsStr::from_bytes(name)))
}

impl Borrow<[u8]> for RelPath {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rel(path: &str) -> RelPath {
        RelPath::from_bytes(path.as_bytes()).unwrap()
    }

    #[test]
    fn only_plain_names_make_a_path() {
        for bad in ["/", "a/", "/a", "a//b", ".", "a/..", "../a", "a\0"] {
            assert!(RelPath::from_bytes(bad.as_bytes()).is_none(), "{bad:?}");
        }
        assert_eq!(rel("a/b").names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(rel("").names().count(), 0);
        assert_eq!(rel("a").join(OsStr::new("b")), rel("a/b"));
        assert_eq!(rel("").join(OsStr::new("b")), rel("b"));
    }

    #[test]
    fn below_is_by_whole_names() {
        assert!(rel("a/b").is_below(&rel("a")) && rel("a").is_below(&rel("")));
        assert!(!rel("ab").is_below(&rel("a")) && !rel("a").is_below(&rel("a")));
        assert!(!rel("").is_below(&rel("")));
    }

    /// Maps with paths as keys are searched with a part of a path, without copying.
    #[test]
    fn a_part_of_a_path_hashes_as_the_path() {
        let known: std::collections::HashSet<RelPath> = [rel("a/b")].into();
        let (above, name) = rel("a/b/c").split().map(|(a, n)| (a.to_vec(), n.to_owned())).unwrap();
        assert!(known.contains(above.as_slice()) && name == "c");
    }
}
