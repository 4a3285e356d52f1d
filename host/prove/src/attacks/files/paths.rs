//! Attacks by paths that lead out of a mount.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{make_link, open_reader, open_writer, place_at, place_itself, read_step};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests;
use crate::tree::CANARY;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "files-dot-dot",
        kind: AttackKind::Files,
        tries: "reads its way out of the mount with `..`",
        stopped_by: "every path is resolved below its mount (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(dot_dot(arena)),
    },
    Attack {
        id: "files-absolute-path",
        kind: AttackKind::Files,
        tries: "reads absolute paths",
        stopped_by: "every path is resolved below its mount (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(read_absolute_path(arena)),
    },
    Attack {
        id: "files-link-to-a-file",
        kind: AttackKind::Files,
        tries: "reads a file outside through a symbolic link that lies in the mount",
        stopped_by: "links are followed step by step, never out of the mount (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(follow_links(arena, &["../outside/canary.txt"], "")),
    },
    Attack {
        id: "files-link-to-a-directory",
        kind: AttackKind::Files,
        tries: "reads a file outside through a link to its directory",
        stopped_by: "links are followed step by step, never out of the mount (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(follow_links(arena, &["../outside"], "/canary.txt")),
    },
    Attack {
        id: "files-chain-of-links",
        kind: AttackKind::Files,
        tries: "reads a file outside through links to links, the last of which leads out",
        stopped_by: "links are followed step by step, never out of the mount (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| {
            Box::pin(follow_links(
                arena,
                &["link1", "link2", "./link3/", "../outside"],
                "/canary.txt",
            ))
        },
    },
    Attack {
        id: "files-absolute-link",
        kind: AttackKind::Files,
        tries: "reads a file outside through a link with an absolute target, and asks where it leads",
        stopped_by: "absolute links are neither followed nor shown (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(absolute_link(arena)),
    },
    Attack {
        id: "files-loop-of-links",
        kind: AttackKind::Files,
        tries: "follows links that lead to each other",
        stopped_by: "a bound on the links of one path (INV-5)",
        told: "loop",
        embedded: true,
        run: |arena| Box::pin(link_loop(arena)),
    },
    Attack {
        id: "files-create-through-a-dangling-link",
        kind: AttackKind::Files,
        tries: "creates a file outside through a link to a name that is not there",
        stopped_by: "a link is resolved before anything is created (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(follow_dangling_link(arena)),
    },
    Attack {
        id: "files-swap-under-way",
        kind: AttackKind::Files,
        tries: "reads a path while somebody on the host swaps a directory in it for a link outside",
        stopped_by: "each step is taken from an open directory, links refused by the system (INV-5)",
        told: "no read led outside",
        embedded: true,
        run: |arena| Box::pin(swap_directory(arena)),
    },
    Attack {
        id: "files-climb-from-an-open-directory",
        kind: AttackKind::Files,
        tries: "opens a directory of the mount and climbs out of it with `..`",
        stopped_by: "a descriptor's paths stay below its mount (INV-5)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(climb_from_descriptor(arena)),
    },
    Attack {
        id: "files-name-that-is-no-text",
        kind: AttackKind::Files,
        tries: "makes a directory whose name is no UTF-8",
        stopped_by: "text is checked where it is copied",
        told: "the tool crashed",
        embedded: true,
        run: |arena| Box::pin(bad_name(arena)),
    },
    Attack {
        id: "files-odd-names",
        kind: AttackKind::Files,
        tries: "opens names with a NUL, of 256 bytes, of 100,000 bytes and of none",
        stopped_by: "names are checked before the system sees them",
        told: "name-too-long",
        embedded: true,
        run: |arena| Box::pin(odd_names(arena)),
    },
];

/// Attack `files-dot-dot`: the attacker reads its way out of the mount with `..`.
async fn dot_dot(arena: &Arena) -> Stopped {
    let jar = open_reader(arena).await?;
    let steps = json!([
        read_step("../outside/canary.txt"),
        read_step("a/../../outside/canary.txt"),
        read_step("./../outside/canary.txt"),
        read_step(".."),
        { "do": "list", "place": place_at("..") },
        { "do": "stat", "place": place_itself("../outside") },
        { "do": "readlink", "place": place_itself("../outside/canary.txt") },
        { "do": "metadata-hash", "place": place_itself("../outside/canary.txt") },
    ]);
    jar.run_steps(steps).await?.all_refused(0, &["not-permitted", "no-entry"])
}

/// Attack `files-absolute-path`: the attacker reads absolute paths.
async fn read_absolute_path(arena: &Arena) -> Stopped {
    let jar = open_reader(arena).await?;
    let canary = arena.outside_path().join("canary.txt");
    let steps = json!([
        read_step("/etc/passwd"),
        read_step(&canary.to_string_lossy()),
        read_step("//etc/passwd"),
        { "do": "list", "place": place_at("/") },
        { "do": "stat", "place": place_at("/") },
    ]);
    jar.run_steps(steps).await?.all_refused(0, &["not-permitted"])
}

/// Makes a link to each of the targets, the last of which leads out of the mount, and reads through them;
/// `linkN` is the link to target N.
async fn follow_links(arena: &Arena, targets: &[&str], below: &str) -> Stopped {
    for (number, target) in targets.iter().enumerate() {
        make_link(arena, target, &format!("link{number}"))?;
    }
    let path = format!("link0{below}");
    let jar = open_reader(arena).await?;
    let steps = json!([
        read_step(&path),
        { "do": "stat", "place": place_at(&path) },
        { "do": "open", "place": place_at(&path), "mode": "read" },
        { "do": "metadata-hash", "place": place_at(&path) },
    ]);
    jar.run_steps(steps).await?.all_refused(0, &["not-permitted"])
}

/// Attack `files-absolute-link`: the attacker reads a file outside through a link with an absolute target,
/// and asks where it leads.
async fn absolute_link(arena: &Arena) -> Stopped {
    make_link(arena, arena.outside_path().join("canary.txt"), "link")?;
    let jar = open_reader(arena).await?;
    let steps = json!([{ "do": "readlink", "place": place_itself("link") }, read_step("link")]);
    jar.run_steps(steps).await?.all_refused(0, &["not-permitted"])
}

/// Attack `files-loop-of-links`: the attacker follows links that lead to each other.
async fn link_loop(arena: &Arena) -> Stopped {
    for (target, name) in [("there", "here"), ("here", "there"), ("self", "self"), ("x/y", "x")] {
        make_link(arena, target, name)?;
    }
    let jar = open_reader(arena).await?;
    let steps = json!([read_step("here"), read_step("self"), read_step("x"), read_step("x/x/x")]);
    jar.run_steps(steps).await?.all_refused(0, &["loop"])
}

/// Attack `files-create-through-a-dangling-link`: the attacker creates a file outside through a link to a
/// name that is not there.
async fn follow_dangling_link(arena: &Arena) -> Stopped {
    make_link(arena, "../outside/new.txt", "link")?;
    make_link(arena, arena.outside_path().join("new.txt"), "absolute")?;
    let jar = open_writer(arena).await?;
    let write = |path: &str| json!({ "do": "write-file", "place": place_at(path), "text": "x" });
    let steps = json!([
        write("link"),
        write("absolute"),
        { "do": "open", "place": place_at("link"), "open": "create exclusive", "mode": "write" },
        { "do": "mkdir", "place": place_itself("../outside/new") },
    ]);
    jar.run_steps(steps).await?.all_refused(0, &["not-permitted", "exist", "loop"])
}

/// Attack that exchanges a directory for a link for as long as the guest reads.
async fn swap_directory(arena: &Arena) -> Stopped {
    arena.write_file("real/canary.txt", "from within\n")?;
    let jar = arena.jar_builder(&[guests::PROBE]).without_seal().open().await?;
    let (workspace, stop) = (arena.workspace(), Arc::<AtomicBool>::default());
    make_link(arena, "../outside", "link")?;
    let stopped = Arc::clone(&stop);
    #[expect(clippy::disallowed_methods, reason = "the attack itself, ended by its flag")]
    let swapping = std::thread::spawn(move || -> std::io::Result<u64> {
        let (real, link, here) =
            (workspace.join("real"), workspace.join("link"), workspace.join("here"));
        let mut swaps = 0;
        while !stopped.load(Ordering::Relaxed) {
            std::fs::rename(&real, &here)?;
            std::fs::rename(&here, &real)?;
            std::fs::rename(&link, &here)?;
            std::fs::rename(&here, &link)?;
            swaps += 1;
        }
        Ok(swaps)
    });
    let mut outside = None;
    let mut reads = 0;
    while reads < 2_000 && outside.is_none() {
        let step = read_step("here/canary.txt");
        let batch: Vec<_> = std::iter::repeat_n(step, 50).collect();
        let said = jar.run_steps(json!(batch)).await?.said;
        reads += said.len();
        outside = said.into_iter().find(|said| said.to_string().contains(CANARY.trim()));
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swapping.join().map_err(|_| Escape::new("the swapping thread died"))??;
    match outside {
        Some(said) => Err(Escape::new(format!("a read led outside: {said}"))),
        None if swaps == 0 => Err(Escape::new("nothing was swapped")),
        None => Ok(Verdict::with_words("no read led outside")),
    }
}

/// Attack `files-climb-from-an-open-directory`: the attacker opens a directory of the mount and climbs out of
/// it with `..`.
async fn climb_from_descriptor(arena: &Arena) -> Stopped {
    arena.write_file("folder/a.txt", "a")?;
    let jar = open_reader(arena).await?;
    let from = |path: &str| json!({ "held": 0, "path": path, "follow": true });
    let steps = json!([
        { "do": "open", "place": place_at("folder"), "open": "directory", "mode": "read" },
        { "do": "read-file", "place": from("../../outside/canary.txt") },
        { "do": "list", "place": from("../..") },
        { "do": "stat", "place": from("../../outside") },
    ]);
    let steps = jar.run_steps(steps).await?;
    steps.step_value(0)?;
    steps.all_refused(1, &["not-permitted"])
}

/// Attack `files-name-that-is-no-text`: the attacker makes a directory whose name is no UTF-8.
async fn bad_name(arena: &Arena) -> Stopped {
    let jar = arena.jar_builder(&[guests::BAD_NAME]).read_write().open().await?;
    let stopped = jar.call_guest(guests::BAD_NAME).await.check_trapped("")?;
    match std::fs::read_dir(arena.workspace())?.next() {
        None => Ok(stopped),
        Some(_) => Err(Escape::new("the directory was made")),
    }
}

/// Attack `files-odd-names`: the attacker opens names with a NUL, of 256 bytes, of 100,000 bytes and of none.
async fn odd_names(arena: &Arena) -> Stopped {
    let jar = open_writer(arena).await?;
    let write = |path: &str| json!({ "do": "write-file", "place": place_at(path), "text": "x" });
    let steps = json!([
        write("a\0b"),
        write(&"x".repeat(256)),
        write(&"x".repeat(100_000)),
        write(&"d/".repeat(50_000)),
        write(""),
        { "do": "mkdir", "place": place_itself(&"x".repeat(256)) },
    ]);
    let told = jar.run_steps(steps).await?;
    let words = ["invalid", "illegal-byte-sequence", "name-too-long", "no-entry", "not-permitted"];
    told.all_refused(0, &words)
}
