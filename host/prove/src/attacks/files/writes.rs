//! Attacks that write where nothing may be written.

use belljar_policy::MountAccess;
use serde_json::{Value, json};

use super::{make_link, open_reader, open_writer, place_at, place_itself};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests;
use crate::tree::CANARY;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "files-every-write-on-a-read-only-mount",
        kind: AttackKind::Files,
        tries: "writes, truncates, renames, links, makes, removes and stamps on a read-only mount",
        stopped_by: "each operation is checked against its own mount (INV-6)",
        told: "read-only",
        embedded: true,
        run: |arena| Box::pin(read_only(arena)),
    },
    Attack {
        id: "files-write-through-a-reading-descriptor",
        kind: AttackKind::Files,
        tries: "writes, resizes and stamps through a descriptor opened for reading",
        stopped_by: "each operation is checked against its own mount (INV-6)",
        told: "read-only",
        embedded: true,
        run: |arena| Box::pin(reading_descriptor(arena)),
    },
    Attack {
        id: "files-from-mount-to-mount",
        kind: AttackKind::Files,
        tries: "moves and links between a read-only and a writable mount of the same jar",
        stopped_by: "what stands in two mounts is two places, whatever the disk says (INV-6)",
        told: "read-only",
        embedded: true,
        run: |arena| Box::pin(between_mounts(arena)),
    },
    Attack {
        id: "files-between-two-writable-mounts",
        kind: AttackKind::Files,
        tries: "moves and links from one writable mount to another",
        stopped_by: "what stands in two mounts is two places, whatever the disk says (INV-6)",
        told: "cross-device",
        embedded: true,
        run: |arena| Box::pin(two_writable(arena)),
    },
    Attack {
        id: "files-read-only-mount-beside-a-writable-one",
        kind: AttackKind::Files,
        tries: "reaches the read-only mount from the writable one with `..`, and writes there",
        stopped_by: "no path leads out of its mount, not into another either (INV-5, INV-6)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(write_beside_mount(arena)),
    },
    Attack {
        id: "files-hard-link-to-a-file-outside",
        kind: AttackKind::Files,
        tries: "writes to a file of the mount that has a second name outside",
        stopped_by: "files with several names are not written (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(hard_link(arena)),
    },
    Attack {
        id: "files-make-a-link",
        kind: AttackKind::Files,
        tries: "makes a symbolic link for the user's own programs to follow",
        stopped_by: "guests make no symbolic links, whatever is granted (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(makes_link(arena)),
    },
    Attack {
        id: "files-move-a-link",
        kind: AttackKind::Files,
        tries: "renames a link that leads out, with and without trailing slashes",
        stopped_by: "guests do not move links; a trailing slash changes nothing (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(moves_link(arena)),
    },
    Attack {
        id: "files-protected-names",
        kind: AttackKind::Files,
        tries: "writes `AGENTS.md`, `belljar.toml` and `.belljar/`, also by renaming and in capitals",
        stopped_by: "protected names are not writable through any mount (INV-7)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(write_protected_names(arena)),
    },
    Attack {
        id: "files-protected-name-behind-a-link",
        kind: AttackKind::Files,
        tries: "writes to what a link named `AGENTS.md` means, and through a link into `.belljar`",
        stopped_by: "names are checked on the path as resolved (INV-7)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(protected_links(arena)),
    },
];

fn place_step(what: &str, path: &str) -> Value {
    json!({ "do": what, "place": place_itself(path) })
}

fn open_step(path: &str, open: &str, mode: &str) -> Value {
    json!({ "do": "open", "place": place_at(path), "open": open, "mode": mode })
}

/// Attack `files-every-write-on-a-read-only-mount`: the attacker writes, truncates, renames, links, makes,
/// removes and stamps on a read-only mount.
async fn read_only(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    arena.write_file("folder/b.txt", "text of b")?;
    std::fs::create_dir(arena.workspace().join("empty"))?;
    let jar = open_reader(arena).await?;
    let steps = json!([
        open_step("a.txt", "", "write"),
        open_step("a.txt", "", "read write"),
        open_step("a.txt", "truncate", "read"),
        open_step("a.txt", "truncate", "write"),
        open_step("new.txt", "create", "write"),
        open_step("new.txt", "create", "read"),
        open_step("new.txt", "create exclusive", "read"),
        place_step("mkdir", "new"),
        place_step("rmdir", "empty"),
        place_step("unlink", "a.txt"),
        place_step("set-times-at", "a.txt"),
        { "do": "symlink", "place": place_itself("new"), "target": "a.txt" },
        { "do": "link", "place": place_itself("a.txt"), "to": place_itself("new") },
        { "do": "rename", "place": place_itself("a.txt"), "to": place_itself("folder/b.txt") },
        { "do": "rename", "place": place_itself("folder/"), "to": place_itself("other/") },
        place_step("unlink", "folder/"),
        place_step("rmdir", "folder/../empty/."),
    ]);
    // A directory may be opened with the flag for changes, which a C library always sets; that alone grants
    // nothing.
    let wish = json!([
        open_step("folder", "directory", "read mutate"),
        { "do": "mkdir", "place": { "held": 0, "path": "new" } },
        { "do": "unlink", "place": { "held": 0, "path": "b.txt" } },
        { "do": "set-times", "held": 0, "seconds": 1 },
    ]);
    jar.run_steps(wish).await?.all_refused(1, &["read-only"])?;
    jar.run_steps(steps).await?.all_refused(0, &["read-only", "not-permitted"])
}

/// Attack `files-write-through-a-reading-descriptor`: the attacker writes, resizes and stamps through a
/// descriptor opened for reading.
async fn reading_descriptor(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_reader(arena).await?;
    let steps = json!([
        open_step("a.txt", "", "read"),
        { "do": "write", "held": 0, "len": 4, "offset": 0 },
        { "do": "stream", "held": 0, "len": 4 },
        { "do": "stream", "held": 0, "len": 4, "append": true },
        { "do": "set-size", "held": 0, "size": 0 },
        { "do": "set-times", "held": 0, "seconds": 1 },
    ]);
    let steps = jar.run_steps(steps).await?;
    steps.step_value(0)?;
    steps.all_refused(1, &["read-only", "bad-descriptor", "not-permitted"])
}

/// Attack `files-from-mount-to-mount`: the attacker moves and links between a read-only and a writable mount
/// of the same jar.
async fn between_mounts(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    std::fs::write(arena.path("second").join("b.txt"), "text of b")?;
    let jar = arena
        .jar_builder(&[guests::PROBE])
        .with_mount("second", MountAccess::ReadWrite)
        .open()
        .await?;
    let there = |path: &str| json!({ "at": "/second", "path": path });
    let steps = json!([
        { "do": "link", "place": place_itself("a.txt"), "to": there("a.txt") },
        { "do": "rename", "place": place_itself("a.txt"), "to": there("a.txt") },
        { "do": "rename", "place": there("b.txt"), "to": place_itself("b.txt") },
        { "do": "link", "place": there("b.txt"), "to": place_itself("b.txt") },
    ]);
    let told = jar.run_steps(steps).await?;
    let stopped = told.all_refused(0, &["cross-device", "read-only", "not-permitted"])?;
    let left = std::fs::read_dir(arena.path("second"))?.count();
    if left != 1 {
        return Err(Escape::new(format!("{left} files lie in the writable mount")));
    }
    Ok(stopped)
}

/// Attack `files-between-two-writable-mounts`: the attacker moves and links from one writable mount to
/// another.
async fn two_writable(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let builder = arena
        .jar_builder(&[guests::PROBE])
        .read_write()
        .with_mount("second", MountAccess::ReadWrite);
    let there = |path: &str| json!({ "at": "/second", "path": path });
    let steps = json!([
        { "do": "link", "place": place_itself("a.txt"), "to": there("a.txt") },
        { "do": "rename", "place": place_itself("a.txt"), "to": there("a.txt") },
    ]);
    builder.open().await?.run_steps(steps).await?.all_refused(0, &["cross-device"])
}

/// Attack `files-read-only-mount-beside-a-writable-one`: the attacker reaches the read-only mount from the
/// writable one with `..`, and writes there.
async fn write_beside_mount(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = arena
        .jar_builder(&[guests::PROBE])
        .with_mount("second", MountAccess::ReadWrite)
        .open()
        .await?;
    let there = |path: &str| json!({ "at": "/second", "path": path, "follow": true });
    let write = |path: &str| json!({ "do": "write-file", "place": there(path), "text": "x" });
    let steps = json!([
        write("fine.txt"),
        write("../workspace/a.txt"),
        write("../workspace/new.txt"),
        { "do": "unlink", "place": there("../workspace/a.txt") },
        { "do": "rename", "place": there("fine.txt"), "to": there("../workspace/a.txt") },
    ]);
    let steps = jar.run_steps(steps).await?;
    steps.step_value(0)?;
    steps.all_refused(1, &["not-permitted"])
}

/// Attack `files-hard-link-to-a-file-outside`: the attacker writes to a file of the mount that has a second
/// name outside.
async fn hard_link(arena: &Arena) -> Stopped {
    std::fs::hard_link(arena.outside_path().join("canary.txt"), arena.workspace().join("a.txt"))?;
    let jar = open_writer(arena).await?;
    let steps = json!([
        { "do": "write-file", "place": place_at("a.txt"), "text": "x" },
        open_step("a.txt", "", "write"),
        open_step("a.txt", "truncate", "write"),
        place_step("set-times-at", "a.txt"),
        { "do": "link", "place": place_itself("a.txt"), "to": place_itself("b.txt") },
    ]);
    let stopped = jar.run_steps(steps).await?.all_refused(0, &["not-permitted"])?;
    let text = std::fs::read_to_string(arena.outside_path().join("canary.txt"))?;
    if text == CANARY { Ok(stopped) } else { Err(Escape::new("the file outside was written")) }
}

/// Attack `files-make-a-link`: the attacker makes a symbolic link for the user's own programs to follow.
async fn makes_link(arena: &Arena) -> Stopped {
    let jar = open_writer(arena).await?;
    let to =
        |target: &str| json!({ "do": "symlink", "place": place_itself("link"), "target": target });
    let steps = json!([to("../outside"), to("/etc/passwd"), to("a.txt"), to("")]);
    let stopped = jar.run_steps(steps).await?.all_refused(0, &["not-permitted"])?;
    match std::fs::read_dir(arena.workspace())?.next() {
        None => Ok(stopped),
        Some(_) => Err(Escape::new("a link was made")),
    }
}

/// Attack `files-move-a-link`: the attacker renames a link that leads out, with and without trailing slashes.
async fn moves_link(arena: &Arena) -> Stopped {
    make_link(arena, "../outside", "link")?;
    make_link(arena, "../outside/canary.txt", "file")?;
    std::fs::create_dir(arena.workspace().join("folder"))?;
    let jar = open_writer(arena).await?;
    let rename = |from: &str, to: &str| json!({ "do": "rename", "place": place_itself(from), "to": place_itself(to) });
    let steps = json!([
        rename("link", "folder/link"),
        rename("link/", "moved"),
        rename("link/", "moved/"),
        rename("link//", "folder/moved"),
        rename("file", "folder/file"),
        rename("file/", "folder/file"),
        rename("link/canary.txt", "stolen.txt"),
        rename("folder", "link/folder"),
        rename("folder", "link/"),
        place_step("rmdir", "link/"),
        place_step("unlink", "link/canary.txt"),
        { "do": "link", "place": place_at("file"), "to": place_itself("stolen.txt") },
    ]);
    let words = ["not-permitted", "not-directory", "no-entry", "exist", "invalid"];
    let stopped = jar.run_steps(steps).await?.all_refused(0, &words)?;
    for name in ["link", "file"] {
        if !arena.workspace().join(name).is_symlink() {
            return Err(Escape::new(format!("`{name}` has been moved")));
        }
    }
    Ok(stopped)
}

/// Attack `files-protected-names`: the attacker writes `AGENTS.md`, `belljar.toml` and `.belljar/`, also by
/// renaming and in capitals.
async fn write_protected_names(arena: &Arena) -> Stopped {
    arena.write_file(".belljar/agents/it.md", "mine")?;
    arena.write_file("AGENTS.md", "mine")?;
    arena.write_file("a.txt", "text of a")?;
    let jar = open_writer(arena).await?;
    let write = |path: &str| json!({ "do": "write-file", "place": place_at(path), "text": "x" });
    let rename = |from: &str, to: &str| json!({ "do": "rename", "place": place_itself(from), "to": place_itself(to) });
    let steps = json!([
        write("AGENTS.md"),
        write("belljar.toml"),
        write(".belljar/agents/it.md"),
        write(".belljar/agents/new.md"),
        write("deep/../AGENTS.md"),
        write("agents.MD"),
        write("Belljar.toml"),
        rename("a.txt", "belljar.toml"),
        rename("AGENTS.md", "b.txt"),
        rename(".belljar", "b"),
        place_step("unlink", "AGENTS.md"),
        place_step("mkdir", "sub/.belljar"),
        place_step("rmdir", ".belljar/agents"),
        place_step("set-times-at", "AGENTS.md"),
        { "do": "link", "place": place_itself("a.txt"), "to": place_itself("belljar.toml") },
    ]);
    let words = ["not-permitted", "no-entry"];
    let stopped = jar.run_steps(steps).await?.all_refused(0, &words)?;
    check_unchanged(arena, &["AGENTS.md", ".belljar/agents/it.md"], "mine", stopped)
}

/// Attack `files-protected-name-behind-a-link`: the attacker writes to what a link named `AGENTS.md` means,
/// and through a link into `.belljar`.
async fn protected_links(arena: &Arena) -> Stopped {
    arena.write_file("real.md", "mine")?;
    arena.write_file(".belljar/agents/it.md", "mine")?;
    make_link(arena, "real.md", "AGENTS.md")?;
    make_link(arena, ".belljar", "folder")?;
    let jar = open_writer(arena).await?;
    let write = |path: &str| json!({ "do": "write-file", "place": place_at(path), "text": "x" });
    let steps = json!([
        write("AGENTS.md"),
        write("real.md"),
        write("folder/agents/it.md"),
        write("folder/agents/new.md"),
        place_step("unlink", "folder/agents/it.md"),
    ]);
    let stopped = jar.run_steps(steps).await?.all_refused(0, &["not-permitted"])?;
    check_unchanged(arena, &["real.md", ".belljar/agents/it.md"], "mine", stopped)
}

/// Checks that the files still have this text.
fn check_unchanged(arena: &Arena, files: &[&str], text: &str, stopped: Verdict) -> Stopped {
    for file in files {
        if std::fs::read_to_string(arena.workspace().join(file))? != text {
            return Err(Escape::new(format!("`{file}` was written")));
        }
    }
    Ok(stopped)
}
