//! Mounts: the host directories that a guest sees, their guest paths, and the allowed access.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ShownText;

/// The workspace's path in every guest; also the guest's current directory.
pub const WORKSPACE: &str = "/workspace";

/// Names that no guest can create, change, rename or remove in any mount, whatever the grants, at any depth
/// and in any letter case, because these files decide about rights.
pub const PROTECTED_NAMES: &[&str] = &[".belljar", "belljar.toml", "AGENTS.md"];

/// The longest guest path of a mount, in bytes.
const MAX_GUEST_PATH: usize = 255;

/// The access that a mount allows. Ordered: `Read < Overlay < ReadWrite`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MountAccess {
    /// Look and read.
    Read,
    /// Also create, change and remove, in a layer beside the directory; the directory itself is only read.
    /// The code that makes a jar provides the layer.
    Overlay,
    /// Also create, change and remove in the directory itself.
    ReadWrite,
}

/// An absolute, normalized path in the guest: `/` then parts without `.` and `..`, for example
/// `/workspace/src`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GuestPath(String);

/// An invalid guest path, with its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a guest path: write an absolute path such as `/workspace`, without `.` and `..`"
)]
pub struct GuestPathError(String);

/// A directory that a guest may use, with everything below. Mounts add up: a mount inside another does not
/// narrow the outer one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The path in the guest.
    pub guest: GuestPath,
    /// The directory on the host. Never shown to a guest.
    pub host: PathBuf,
    /// The allowed access.
    pub access: MountAccess,
}

/// A mount requested by an agent definition. It has only a guest path, because strangers' files must not
/// choose host paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountAsk {
    /// The guest path of the mount.
    pub guest: GuestPath,
    /// The highest access.
    pub access: MountAccess,
}

impl GuestPath {
    /// Parses a guest path. A final `/` is dropped.
    pub fn new(text: &str) -> Result<Self, GuestPathError> {
        let error = || GuestPathError(ShownText::clip_line(text, MAX_GUEST_PATH).to_string());
        let rest = text.strip_prefix('/').ok_or_else(error)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let bad = |part: &str| {
            part.is_empty() || part == "." || part == ".." || part.contains(char::is_control)
        };
        if rest.is_empty() || text.len() > MAX_GUEST_PATH || rest.split('/').any(bad) {
            return Err(error());
        }
        Ok(Self(format!("/{rest}")))
    }

    /// The mount that every agent has by default.
    pub fn workspace() -> Self {
        Self(WORKSPACE.to_owned())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `path` equals this path or is below it, part by part. A path with `.` or `..` is never
    /// covered, because it may lead out again.
    pub fn covers_path(&self, path: &str) -> bool {
        let below = |rest: &str| {
            let normal = !rest.split('/').any(|part| part == "." || part == "..");
            normal && (rest.is_empty() || rest.starts_with('/'))
        };
        path.strip_prefix(&self.0).is_some_and(below)
    }
}

impl Mount {
    /// Whether this mount grants nothing beyond `other`, which has the same paths.
    pub fn is_within(&self, other: &Self) -> bool {
        self.guest == other.guest && self.host == other.host && self.access <= other.access
    }
}

impl TryFrom<String> for GuestPath {
    type Error = GuestPathError;
    fn try_from(text: String) -> Result<Self, GuestPathError> {
        Self::new(&text)
    }
}

impl From<GuestPath> for String {
    fn from(path: GuestPath) -> Self {
        path.0
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_paths_are_absolute_and_normal() {
        for bad in ["", "/", "workspace", "/a/../b", "/./a", "//a", "/a//b", "/a\0", "/.."] {
            assert!(GuestPath::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(GuestPath::new("/workspace/").unwrap(), GuestPath::workspace());
    }

    #[test]
    fn a_path_covers_whole_parts_only() {
        let mount = GuestPath::workspace();
        assert!(mount.covers_path("/workspace") && mount.covers_path("/workspace/a"));
        assert!(!mount.covers_path("/workspace2") && !mount.covers_path("/"));
        assert!(!mount.covers_path("/workspace/../etc") && !mount.covers_path("/workspace/."));
        assert!(mount.covers_path("/workspace/..a/b.."));
    }
}
