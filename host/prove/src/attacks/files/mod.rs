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

/// A path below `/workspace` for a step of the probe; symbolic links are followed.
fn place_at(path: &str) -> Value {
    json!({ "path": path, "follow": true })
}

/// Like [`place_at`], but if the path is a symbolic link, the link itself is meant.
fn place_itself(path: &str) -> Value {
    json!({ "path": path })
}

/// A step that reads a file.
fn read_step(path: &str) -> Value {
    json!({ "do": "read-file", "place": place_at(path) })
}

/// A jar with the probe as its tool and a read-only workspace.
async fn open_reader(arena: &Arena) -> Result<OpenJar, Escape> {
    arena.jar_builder(&[crate::guests::PROBE]).open().await
}

/// A jar with the probe as its tool and a writable workspace.
async fn open_writer(arena: &Arena) -> Result<OpenJar, Escape> {
    arena.jar_builder(&[crate::guests::PROBE]).read_write().open().await
}

/// Makes a symbolic link in the workspace, as its owner could.
fn make_link(arena: &Arena, target: impl AsRef<std::path::Path>, name: &str) -> Result<(), Escape> {
    Ok(std::os::unix::fs::symlink(target, arena.workspace().join(name))?)
}
