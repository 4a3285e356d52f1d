//! Attacks on overlays with removed files, and with descriptors of removed files.

use super::{
    check_refused_after, check_step_value, held_place, open_step, open_unlimited, overlay_attack,
    place_step, rename_step, write_step,
};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped};
use crate::attacks::files::{place_itself, read_step};
use serde_json::json;

const HIDDEN: &str = "what was hidden stays hidden where it lay and where it was moved (INV-172)";
const READING: &str = "a descriptor for reading stays one when its file is copied (INV-176)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    overlay_attack(
        "files-overlay-made-anew",
        "removes a file, makes directories and files of its name and removes them again",
        HIDDEN,
        "no-entry",
        |arena| Box::pin(made_anew(arena)),
    ),
    overlay_attack(
        "files-overlay-renamed-over",
        "moves files and directories over each other until a lower file is seen again",
        HIDDEN,
        "no-entry",
        |arena| Box::pin(renamed_over(arena)),
    ),
    overlay_attack(
        "files-overlay-in-a-ring",
        "moves three directories round in a ring, and one into itself",
        "a directory is moved to a place that is free, and not below itself (INV-172)",
        "invalid",
        |arena| Box::pin(move_in_ring(arena)),
    ),
    overlay_attack(
        "files-overlay-below-made-later",
        "removes what it made, so that files show which their owner has put there meanwhile",
        HIDDEN,
        "no-entry",
        |arena| Box::pin(made_later(arena)),
    ),
    overlay_attack(
        "files-overlay-removed-directory",
        "makes files in a directory that it holds open and has removed, and looks for them elsewhere",
        "a directory that was removed has no place any more (INV-172)",
        "no-entry",
        |arena| Box::pin(removed_directory(arena)),
    ),
    overlay_attack(
        "files-overlay-moved-descriptor",
        "holds a directory, has it moved, and writes through it to where it was",
        "a descriptor follows its directory, and no path (INV-170)",
        "no-entry",
        |arena| Box::pin(moved_descriptor(arena)),
    ),
    overlay_attack(
        "files-overlay-reader-writes",
        "opens a file for reading, has it copied, and writes through the old descriptor",
        READING,
        "bad-descriptor",
        |arena| Box::pin(reader_writes(arena)),
    ),
    overlay_attack(
        "files-overlay-reader-of-a-removed-file",
        "holds a lower file, removes and remakes its name, and changes what it holds",
        READING,
        "bad-descriptor",
        |arena| Box::pin(reader_of_removed(arena)),
    ),
    overlay_attack(
        "files-overlay-bits",
        "takes a file that runs as another user, and copies, moves and replaces it",
        "a content in the layer is private and never executable; the index keeps no such bit (INV-170)",
        "not-permitted",
        |arena| Box::pin(change_setuid_file(arena)),
    ),
];

/// Attack `files-overlay-made-anew`: the attacker removes a file, makes directories and files of its name and
/// removes them again.
async fn made_anew(arena: &Arena) -> Stopped {
    arena.write_file("d/f", "text of f")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        place_step("unlink", "d/f"),
        place_step("mkdir", "d/f"),
        place_step("rmdir", "d/f"),
        write_step("d/f"),
        place_step("unlink", "d/f"),
        place_step("rmdir", "d"),
        place_step("mkdir", "d"),
        place_step("mkdir", "d/f"),
        rename_step("d/f", "d/g"),
        read_step("d/f"),
        place_step("stat", "d/f"),
        place_step("unlink", "d/f"),
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 9, &["no-entry"])
}

/// Attack `files-overlay-renamed-over`: the attacker moves files and directories over each other until a
/// lower file is seen again.
async fn renamed_over(arena: &Arena) -> Stopped {
    arena.write_file("a", "text of a")?;
    arena.write_file("b", "text of b")?;
    arena.write_file("d/a", "text of d/a")?;
    arena.write_file("e/a", "text of e/a")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        rename_step("a", "b"),
        rename_step("b", "d/a"),
        place_step("unlink", "d/a"),
        place_step("unlink", "e/a"),
        rename_step("d", "e"),
        rename_step("e", "d"),
        place_step("mkdir", "e"),
        rename_step("d", "e"),
        read_step("a"),
        read_step("b"),
        read_step("d/a"),
        read_step("e/a"),
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 8, &["no-entry"])
}

/// Attack `files-overlay-in-a-ring`: the attacker moves three directories round in a ring, and one into
/// itself.
async fn move_in_ring(arena: &Arena) -> Stopped {
    for name in ["a", "b", "c"] {
        arena.write_file(&format!("{name}/{name}"), name)?;
    }
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        rename_step("a", "t"),
        rename_step("b", "a"),
        rename_step("c", "b"),
        rename_step("t", "c"),
        read_step("a/b"),
        read_step("c/a"),
        rename_step("a", "c/a2"),
        read_step("a/a"),
        read_step("b/b"),
        read_step("c/c"),
        read_step("t/a"),
        rename_step("c", "c/a2/c"),
        rename_step("c/a2", "c/a2/x"),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_step_value(&steps, 4, &json!("b"))?;
    check_step_value(&steps, 5, &json!("a"))?;
    check_refused_after(&steps, 7, &["no-entry", "invalid"])
}

/// Attack `files-overlay-below-made-later`: the attacker removes what it made, so that files show which their
/// owner has put there meanwhile.
async fn made_later(arena: &Arena) -> Stopped {
    arena.write_file("d/kept", "kept")?;
    let jar = super::open_unsealed(arena).await?;
    let first = json!([
        write_step("d/mine"),
        rename_step("d", "e"),
        place_step("mkdir", "d"),
        write_step("new")
    ]);
    let first = jar.run_steps(first).await?;
    (0..4).try_for_each(|step| first.step_value(step).map(drop))?;
    for name in ["d/mine", "d/later", "new"] {
        arena.write_file(name, "its owner's")?;
    }
    let steps = json!([
        place_step("unlink", "e/mine"),
        place_step("unlink", "new"),
        read_step("new"),
        read_step("e/mine"),
        read_step("d/mine"),
        read_step("d/later"),
    ]);
    let stopped = check_refused_after(&jar.run_steps(steps).await?, 2, &["no-entry"])?;
    match std::fs::read_to_string(arena.workspace().join("new"))?.as_str() {
        "its owner's" => Ok(stopped),
        other => Err(Escape::new(format!("the owner's file holds {other:?}"))),
    }
}

/// Attack `files-overlay-removed-directory`: the attacker makes files in a directory that it holds open and
/// has removed, and looks for them elsewhere.
async fn removed_directory(arena: &Arena) -> Stopped {
    arena.write_file("d/f", "text of f")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        open_step("d", "directory", "read mutate"),
        place_step("unlink", "d/f"),
        place_step("rmdir", "d"),
        place_step("mkdir", "d"),
        { "do": "open", "place": held_place(0, "f"), "open": "create", "mode": "write" },
        { "do": "mkdir", "place": held_place(0, "sub") },
        { "do": "rename", "place": held_place(0, "f"), "to": place_itself("d/f") },
        { "do": "read-file", "place": held_place(0, "f") },
        read_step("d/f"),
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 4, &["no-entry"])
}

/// Attack `files-overlay-moved-descriptor`: the attacker holds a directory, has it moved, and writes through
/// it to where it was.
async fn moved_descriptor(arena: &Arena) -> Stopped {
    arena.write_file("d/f", "text of f")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        open_step("d", "directory", "read mutate"),
        rename_step("d", "e"),
        place_step("mkdir", "d"),
        { "do": "write-file", "place": held_place(0, "new"), "text": "mine" },
        read_step("e/new"),
        { "do": "unlink", "place": held_place(0, "f") },
        read_step("d/new"),
        read_step("d/f"),
        read_step("e/f"),
        { "do": "read-file", "place": held_place(0, "f") },
    ]);
    let steps = jar.run_steps(steps).await?;
    check_step_value(&steps, 4, &json!("mine"))?;
    check_refused_after(&steps, 6, &["no-entry"])
}

/// Attack `files-overlay-reader-writes`: the attacker opens a file for reading, has it copied, and writes
/// through the old descriptor.
async fn reader_writes(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        open_step("a.txt", "", "read"),
        open_step("a.txt", "", "read write"),
        { "do": "write", "held": 1, "len": 4, "offset": 0 },
        { "do": "write", "held": 0, "len": 9, "offset": 0 },
        { "do": "stream", "held": 0, "len": 9 },
        { "do": "stream", "held": 0, "len": 9, "append": true },
        { "do": "set-size", "held": 0, "size": 0 },
        { "do": "set-times", "held": 0, "seconds": 1 },
    ]);
    let words = ["bad-descriptor", "Bad file descriptor", "not-permitted", "invalid"];
    let stopped = check_refused_after(&jar.run_steps(steps).await?, 3, &words)?;
    let left = jar.run_steps(json!([read_step("a.txt")])).await?;
    check_step_value(&left, 0, &json!("xxxx of a"))?;
    Ok(stopped)
}

/// Attack `files-overlay-reader-of-a-removed-file`: the attacker holds a lower file, removes and remakes its
/// name, and changes what it holds.
async fn reader_of_removed(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        open_step("a.txt", "", "read"),
        place_step("unlink", "a.txt"),
        write_step("a.txt"),
        rename_step("a.txt", "b.txt"),
        { "do": "read", "held": 0, "len": 100, "offset": 0 },
        { "do": "write", "held": 0, "len": 9, "offset": 0 },
        { "do": "set-size", "held": 0, "size": 0 },
        { "do": "set-times", "held": 0, "seconds": 1 },
    ]);
    let steps = jar.run_steps(steps).await?;
    check_step_value(&steps, 4, &json!(9))?;
    check_refused_after(&steps, 5, &["bad-descriptor", "not-permitted", "read-only", "invalid"])
}

/// Attack `files-overlay-bits`: the attacker takes a file that runs as another user, and copies, moves and
/// replaces it.
async fn change_setuid_file(arena: &Arena) -> Stopped {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    arena.write_file("run", "#!/bin/sh\n")?;
    arena.write_file("outside.md", "text")?;
    let run = arena.workspace().join("run");
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o6755))?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        open_step("run", "", "read write"),
        { "do": "write", "held": 0, "len": 4, "offset": 0 },
        write_step("new"),
        rename_step("new", "run"),
        rename_step("run", "run2"),
        rename_step("outside.md", "run"),
        { "do": "link", "place": place_itself("run2"), "to": place_itself("../layer/run") },
        place_step("set-times-at", "../layer/files/1"),
    ]);
    let stopped = check_refused_after(&jar.run_steps(steps).await?, 6, &["not-permitted"])?;
    for content in std::fs::read_dir(arena.path("layer").join("files"))? {
        let mode = content?.metadata()?.mode() & 0o7777;
        if mode != 0o600 {
            return Err(Escape::new(format!("a content in the layer has the mode {mode:o}")));
        }
    }
    Ok(stopped)
}
