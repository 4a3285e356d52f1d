//! Mounts: directories of the host that a guest sees, with their guest paths and their access.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ShownText;

/// The path of the workspace in every guest, and the guest's current directory.
pub const WORKSPACE: &str = "/workspace";

/// The names no guest can create, change, rename or remove in any mount, at any depth and in any letter
/// case, because files with these names decide about rights.
pub const PROTECTED_NAMES: &[&str] = &[".belljar", "belljar.toml", "AGENTS.md"];

/// The most bytes of a mount's guest path.
const MAX_GUEST_PATH: usize = 255;

/// What a mount allows. Ordered: `Read < Overlay < ReadWrite`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MountAccess {
    /// Files may be read and directories listed.
    Read,
    /// Files may also be created, changed and removed. The changes go to a layer beside the directory, which
    /// itself stays as it is. The code that makes the jar provides the layer.
    Overlay,
    /// Files may also be created, changed and removed in the directory itself.
    ReadWrite,
}

/// An absolute path in the guest without `.` and `..`, for example `/workspace/src`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GuestPath(String);

/// The text of a guest path that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a guest path: write an absolute path such as `/workspace`, without `.` and `..`"
)]
pub struct GuestPathError(String);

/// A directory a guest may use, with everything below it. Mounts add up: a mount inside another one does not
/// narrow that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The path where the guest sees the directory.
    pub guest: GuestPath,
    /// The directory on the host. Never shown to a guest.
    pub host: PathBuf,
    /// What the guest may do in the directory.
    pub access: MountAccess,
}

/// A mount an agent's definition asks for. It has a guest path only, because strangers' files must not
/// choose paths of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountAsk {
    /// The guest path of a granted mount.
    pub guest: GuestPath,
    /// The most access the agent wants.
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

    /// The guest path of the mount that every agent has by default.
    pub fn workspace() -> Self {
        Self(WORKSPACE.to_owned())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `path` is this path or below it, compared part by part. A path with `.` or `..` never is,
    /// because it may lead out again.
    pub fn covers_path(&self, path: &str) -> bool {
        let below = |rest: &str| {
            let normal = !rest.split('/').any(|part| part == "." || part == "..");
            normal && (rest.is_empty() || rest.starts_with('/'))
        };
        path.strip_prefix(&self.0).is_some_and(below)
    }
}

impl Mount {
    /// Whether the mount is the same as `other`, with the same access or less.
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
