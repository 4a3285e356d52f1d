//! Removed files, and what descriptors still see.

use super::{after, attack, gave, held, open, plenty, rename, step, write};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped};
use crate::attacks::files::{itself, read};
use serde_json::json;

const HIDDEN: &str = "what was hidden stays hidden where it lay and where it was moved (INV-172)";
const READING: &str = "a descriptor for reading stays one when its file is copied (INV-176)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    attack(
        "files-overlay-made-anew",
        "removes a file, makes directories and files of its name and removes them again",
        HIDDEN,
        "no-entry",
        |arena| Box::pin(made_anew(arena)),
    ),
    attack(
        "files-overlay-renamed-over",
        "moves files and directories over each other until a lower file is seen again",
        HIDDEN,
        "no-entry",
        |arena| Box::pin(renamed_over(arena)),
    ),
    attack(
        "files-overlay-in-a-ring",
        "moves three directories round in a ring, and one into itself",
        "a directory is moved to a place that is free, and not below itself (INV-172)",
        "invalid",
        |arena| Box::pin(ring(arena)),
    ),
    attack(
        "files-overlay-below-made-later",
        "removes what it made, so that files show which their owner has put there meanwhile",
        HIDDEN,
        "no-entry",
        |arena| Box::pin(made_later(arena)),
    ),
    attack(
        "files-overlay-removed-directory",
        "makes files in a directory that it holds open and has removed, and looks for them elsewhere",
        "a directory that was removed has no place any more (INV-172)",
        "no-entry",
        |arena| Box::pin(removed_directory(arena)),
    ),
    attack(
        "files-overlay-moved-descriptor",
        "holds a directory, has it moved, and writes through it to where it was",
        "a descriptor follows its directory, and no path (INV-170)",
        "no-entry",
        |arena| Box::pin(moved_descriptor(arena)),
    ),
    attack(
        "files-overlay-reader-writes",
        "opens a file for reading, has it copied, and writes through the old descriptor",
        READING,
        "bad-descriptor",
        |arena| Box::pin(reader_writes(arena)),
    ),
    attack(
        "files-overlay-reader-of-a-removed-file",
        "holds a lower file, removes and remakes its name, and changes what it holds",
        READING,
        "bad-descriptor",
        |arena| Box::pin(reader_of_removed(arena)),
    ),
    attack(
        "files-overlay-bits",
        "takes a file that runs as another user, and copies, moves and replaces it",
        "a content in the layer is private and never executable; the index keeps no such bit (INV-170)",
        "not-permitted",
        |arena| Box::pin(bits(arena)),
    ),
];

async fn made_anew(arena: &Arena) -> Stopped {
    arena.write("d/f", "text of f")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        step("unlink", "d/f"),
        step("mkdir", "d/f"),
        step("rmdir", "d/f"),
        write("d/f"),
        step("unlink", "d/f"),
        step("rmdir", "d"),
        step("mkdir", "d"),
        step("mkdir", "d/f"),
        rename("d/f", "d/g"),
        read("d/f"),
        step("stat", "d/f"),
        step("unlink", "d/f"),
    ]);
    after(&jar.steps(steps).await?, 9, &["no-entry"])
}

async fn renamed_over(arena: &Arena) -> Stopped {
    arena.write("a", "text of a")?;
    arena.write("b", "text of b")?;
    arena.write("d/a", "text of d/a")?;
    arena.write("e/a", "text of e/a")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        rename("a", "b"),
        rename("b", "d/a"),
        step("unlink", "d/a"),
        step("unlink", "e/a"),
        rename("d", "e"),
        rename("e", "d"),
        step("mkdir", "e"),
        rename("d", "e"),
        read("a"),
        read("b"),
        read("d/a"),
        read("e/a"),
    ]);
    after(&jar.steps(steps).await?, 8, &["no-entry"])
}

async fn ring(arena: &Arena) -> Stopped {
    for name in ["a", "b", "c"] {
        arena.write(&format!("{name}/{name}"), name)?;
    }
    let jar = plenty(arena).await?;
    let steps = json!([
        rename("a", "t"),
        rename("b", "a"),
        rename("c", "b"),
        rename("t", "c"),
        read("a/b"),
        read("c/a"),
        rename("a", "c/a2"),
        read("a/a"),
        read("b/b"),
        read("c/c"),
        read("t/a"),
        rename("c", "c/a2/c"),
        rename("c/a2", "c/a2/x"),
    ]);
    let steps = jar.steps(steps).await?;
    gave(&steps, 4, &json!("b"))?;
    gave(&steps, 5, &json!("a"))?;
    after(&steps, 7, &["no-entry", "invalid"])
}

async fn made_later(arena: &Arena) -> Stopped {
    arena.write("d/kept", "kept")?;
    let jar = super::unsealed(arena).await?;
    let first = json!([write("d/mine"), rename("d", "e"), step("mkdir", "d"), write("new")]);
    let first = jar.steps(first).await?;
    (0..4).try_for_each(|step| first.ok(step).map(drop))?;
    for name in ["d/mine", "d/later", "new"] {
        arena.write(name, "its owner's")?;
    }
    let steps = json!([
        step("unlink", "e/mine"),
        step("unlink", "new"),
        read("new"),
        read("e/mine"),
        read("d/mine"),
        read("d/later"),
    ]);
    let stopped = after(&jar.steps(steps).await?, 2, &["no-entry"])?;
    match std::fs::read_to_string(arena.workspace().join("new"))?.as_str() {
        "its owner's" => Ok(stopped),
        other => Err(Escape::new(format!("the owner's file holds {other:?}"))),
    }
}

async fn removed_directory(arena: &Arena) -> Stopped {
    arena.write("d/f", "text of f")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        open("d", "directory", "read mutate"),
        step("unlink", "d/f"),
        step("rmdir", "d"),
        step("mkdir", "d"),
        { "do": "open", "place": held(0, "f"), "open": "create", "mode": "write" },
        { "do": "mkdir", "place": held(0, "sub") },
        { "do": "rename", "place": held(0, "f"), "to": itself("d/f") },
        { "do": "read-file", "place": held(0, "f") },
        read("d/f"),
    ]);
    after(&jar.steps(steps).await?, 4, &["no-entry"])
}

async fn moved_descriptor(arena: &Arena) -> Stopped {
    arena.write("d/f", "text of f")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        open("d", "directory", "read mutate"),
        rename("d", "e"),
        step("mkdir", "d"),
        { "do": "write-file", "place": held(0, "new"), "text": "mine" },
        read("e/new"),
        { "do": "unlink", "place": held(0, "f") },
        read("d/new"),
        read("d/f"),
        read("e/f"),
        { "do": "read-file", "place": held(0, "f") },
    ]);
    let steps = jar.steps(steps).await?;
    gave(&steps, 4, &json!("mine"))?;
    after(&steps, 6, &["no-entry"])
}

async fn reader_writes(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        open("a.txt", "", "read"),
        open("a.txt", "", "read write"),
        { "do": "write", "held": 1, "len": 4, "offset": 0 },
        { "do": "write", "held": 0, "len": 9, "offset": 0 },
        { "do": "stream", "held": 0, "len": 9 },
        { "do": "stream", "held": 0, "len": 9, "append": true },
        { "do": "set-size", "held": 0, "size": 0 },
        { "do": "set-times", "held": 0, "seconds": 1 },
    ]);
    let words = ["bad-descriptor", "Bad file descriptor", "not-permitted", "invalid"];
    let stopped = after(&jar.steps(steps).await?, 3, &words)?;
    let left = jar.steps(json!([read("a.txt")])).await?;
    gave(&left, 0, &json!("xxxx of a"))?;
    Ok(stopped)
}

async fn reader_of_removed(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        open("a.txt", "", "read"),
        step("unlink", "a.txt"),
        write("a.txt"),
        rename("a.txt", "b.txt"),
        { "do": "read", "held": 0, "len": 100, "offset": 0 },
        { "do": "write", "held": 0, "len": 9, "offset": 0 },
        { "do": "set-size", "held": 0, "size": 0 },
        { "do": "set-times", "held": 0, "seconds": 1 },
    ]);
    let steps = jar.steps(steps).await?;
    gave(&steps, 4, &json!(9))?;
    after(&steps, 5, &["bad-descriptor", "not-permitted", "read-only", "invalid"])
}

async fn bits(arena: &Arena) -> Stopped {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    arena.write("run", "#!/bin/sh\n")?;
    arena.write("outside.md", "text")?;
    let run = arena.workspace().join("run");
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o6755))?;
    let jar = plenty(arena).await?;
    let steps = json!([
        open("run", "", "read write"),
        { "do": "write", "held": 0, "len": 4, "offset": 0 },
        write("new"),
        rename("new", "run"),
        rename("run", "run2"),
        rename("outside.md", "run"),
        { "do": "link", "place": itself("run2"), "to": itself("../layer/run") },
        step("set-times-at", "../layer/files/1"),
    ]);
    let stopped = after(&jar.steps(steps).await?, 6, &["not-permitted"])?;
    for content in std::fs::read_dir(arena.path("layer").join("files"))? {
        let mode = content?.metadata()?.mode() & 0o7777;
        if mode != 0o600 {
            return Err(Escape::new(format!("a content in the layer has the mode {mode:o}")));
        }
    }
    Ok(stopped)
}
