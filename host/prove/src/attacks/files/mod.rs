//! Attacks on files.

mod floods;
mod overlays;
mod paths;
mod special;
mod writes;

use serde_json::{Value, json};

use crate::Arena;
use crate::attack::{Attack, Escape};
use crate::jar::OpenJar;

pub(super) const ATTACKS: [&[Attack<crate::Arena>]; 11] = [
    paths::ATTACKS,
    writes::ATTACKS,
    special::ATTACKS,
    floods::ATTACKS,
    overlays::ATTACKS,
    overlays::names::ATTACKS,
    overlays::hidden::ATTACKS,
    overlays::links::ATTACKS,
    overlays::protected::ATTACKS,
    overlays::quota::ATTACKS,
    overlays::shared::ATTACKS,
];

/// A place below `/workspace`, links followed.
fn at(path: &str) -> Value {
    json!({ "path": path, "follow": true })
}

/// A place below `/workspace`, a last link taken as itself.
fn itself(path: &str) -> Value {
    json!({ "path": path })
}

/// Reads a file.
fn read(path: &str) -> Value {
    json!({ "do": "read-file", "place": at(path) })
}

/// A jar with the probe and a read-only workspace.
async fn reader(arena: &Arena) -> Result<OpenJar, Escape> {
    arena.jar(&[crate::guests::PROBE]).open().await
}

/// A jar with the probe and a writable workspace.
async fn writer(arena: &Arena) -> Result<OpenJar, Escape> {
    arena.jar(&[crate::guests::PROBE]).read_write().open().await
}

/// A symbolic link in the workspace, made by its owner.
fn link(arena: &Arena, target: impl AsRef<std::path::Path>, name: &str) -> Result<(), Escape> {
    Ok(std::os::unix::fs::symlink(target, arena.workspace().join(name))?)
}
