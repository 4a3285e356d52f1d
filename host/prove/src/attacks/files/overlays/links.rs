//! Attacks on overlays by links in the workspace, planted before or exchanged during the attack, and by other
//! paths out.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{
    check_refused_after, check_step_value, hard_link, held_place, open_step, open_unlimited,
    overlay_attack, place_step, rename_step, repeat_step, write_step,
};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped};
use crate::attacks::files::{make_link, place_at, place_itself, read_step};
use crate::tree::CANARY;
use belljar_policy::MountAccess;
use belljar_sandbox::OverlayQuota;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

const NOT_FOLLOWED: &str = "no link in the lower directory is followed out of it (INV-170)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    overlay_attack(
        "files-overlay-links-out",
        "reads, writes, copies and moves through links out of the workspace that lie there already",
        NOT_FOLLOWED,
        "not-permitted",
        |arena| Box::pin(links_out(arena)),
    ),
    overlay_attack(
        "files-overlay-link-swapped-in",
        "holds a directory while it is swapped for a link out, and copies and writes through it",
        NOT_FOLLOWED,
        "no-entry",
        |arena| Box::pin(swapped_in(arena)),
    ),
    overlay_attack(
        "files-overlay-link-while-copied",
        "opens files for writing while their directory is swapped for a link out, again and again",
        "a copy is made from a handle, reached by names that are no links (INV-170)",
        "not-permitted",
        |arena| Box::pin(while_copied(arena)),
    ),
    overlay_attack(
        "files-overlay-file-swapped-for-link",
        "has a file moved, then swapped below for a link to one outside, and opens it",
        NOT_FOLLOWED,
        "loop",
        |arena| Box::pin(file_swapped(arena)),
    ),
    overlay_attack(
        "files-overlay-fifo-swapped-in",
        "has a file moved, then swapped below for a FIFO, and opens it",
        "what is no regular file any more is neither opened nor waited for (INV-170)",
        "access",
        |arena| Box::pin(fifo_swapped(arena)),
    ),
    overlay_attack(
        "files-overlay-makes-links",
        "makes links in an overlay, for whoever applies it to follow",
        "a guest makes no symbolic link, in an overlay either",
        "not-permitted",
        |arena| Box::pin(makes_links(arena)),
    ),
    overlay_attack(
        "files-overlay-moves-links",
        "moves, links and replaces its owner's links in an overlay",
        "a guest moves no symbolic link, in an overlay either",
        "not-permitted",
        |arena| Box::pin(moves_links(arena)),
    ),
    overlay_attack(
        "files-overlay-hard-link-out",
        "writes to a file that has another name outside, and gives files names elsewhere",
        "a file is copied before it is written, and a new name lies in the same overlay (INV-170)",
        "cross-device",
        |arena| Box::pin(hard_link_out(arena)),
    ),
    overlay_attack(
        "files-overlay-through-another-mount",
        "reaches the overlay's own directory and its layer by paths of a mount that it may write",
        "each mount is resolved by itself, and no path leads out of it (INV-170)",
        "not-permitted",
        |arena| Box::pin(other_mount(arena)),
    ),
];

/// Attack `files-overlay-links-out`: the attacker reads, writes, copies and moves through links out of the
/// workspace that lie there already.
async fn links_out(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    arena.write_file("d/b.txt", "text of b")?;
    make_link(arena, "../outside", "up")?;
    make_link(arena, "../outside/canary.txt", "file")?;
    make_link(arena, arena.outside_path(), "absolute")?;
    make_link(arena, "up", "chain")?;
    make_link(arena, "../../outside", "d/deep")?;
    let jar = open_unlimited(arena).await?;
    let mut steps = vec![write_step("a.txt"), rename_step("d", "e")];
    for way in ["up/canary.txt", "file", "absolute/canary.txt", "chain/canary.txt"] {
        steps.extend([read_step(way), write_step(way), open_step(way, "", "write")]);
    }
    steps.extend([
        read_step("e/deep/canary.txt"),
        write_step("e/deep/new.txt"),
        rename_step("a.txt", "up/a.txt"),
        rename_step("up/canary.txt", "stolen.txt"),
        hard_link("chain/canary.txt", "stolen.txt"),
        place_step("unlink", "up/canary.txt"),
        place_step("mkdir", "absolute/new"),
    ]);
    check_refused_after(&jar.run_steps(steps.into()).await?, 2, &["not-permitted"])
}

/// Attack `files-overlay-link-swapped-in`: the attacker holds a directory while it is swapped for a link out,
/// and copies and writes through it.
async fn swapped_in(arena: &Arena) -> Stopped {
    arena.write_file("d/canary.txt", "text of it")?;
    arena.write_file("d/other", "text of other")?;
    let jar = super::open_unsealed(arena).await?;
    let first = json!([
        open_step("d", "directory", "read mutate"),
        rename_step("d", "e"),
        open_step("e/other", "", "read"),
    ]);
    let first = jar.run_steps(first).await?;
    (0..3).try_for_each(|step| first.step_value(step).map(drop))?;
    std::fs::rename(arena.workspace().join("d"), arena.workspace().join("aside"))?;
    symlink("../outside", arena.workspace().join("d"))?;
    let steps = json!([
        write_step("e/new"),
        read_step("e/new"),
        read_step("e/canary.txt"),
        open_step("e/canary.txt", "", "write"),
        rename_step("e/canary.txt", "stolen"),
        read_step("d/canary.txt"),
        write_step("d/new"),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_step_value(&steps, 1, &json!("mine"))?;
    check_refused_after(&steps, 2, &["no-entry", "not-permitted"])
}

/// Attack `files-overlay-link-while-copied`: the attacker opens files for writing while their directory is
/// swapped for a link out, again and again.
async fn while_copied(arena: &Arena) -> Stopped {
    for n in 0..100 {
        arena.write_file(&format!("d/{n}"), "inside")?;
    }
    let secret = arena.path("second");
    for n in 0..100 {
        std::fs::write(secret.join(n.to_string()), CANARY)?;
    }
    make_link(arena, "../second", "link")?;
    let jar = super::open_unsealed(arena).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = spawn_swapper(arena.workspace(), Arc::clone(&stop))?;
    let copied =
        json!({ "do": "open", "place": place_at("d/{n}"), "open": "", "mode": "read write" });
    let turn = json!({ "do": "repeat", "times": 100, "step": copied, "on": true });
    let mut told = Ok(());
    for _ in 0..4 {
        told = jar.try_steps(json!([turn.clone()])).await.check_completed().map(drop);
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().map_err(|_| Escape::new("the swapper panicked"))??;
    told?;
    for content in std::fs::read_dir(arena.path("layer").join("files"))? {
        if std::fs::read(content?.path())? == CANARY.as_bytes() {
            return Err(Escape::new("a file from outside was copied"));
        }
    }
    for n in 0..100 {
        if std::fs::read_to_string(secret.join(n.to_string()))? != CANARY {
            return Err(Escape::new("a file outside was written"));
        }
    }
    // The exchange may have stopped at any point, so the link gets its first name again.
    let [d, link, aside] = ["d", "link", "aside"].map(|name| arena.workspace().join(name));
    if !link.is_symlink() {
        std::fs::rename(&link, &aside)?;
        std::fs::rename(&d, &link)?;
        std::fs::rename(&aside, &d)?;
    }
    let steps = jar.run_steps(json!([write_step("link/0"), read_step("link/0")]));
    steps.await?.all_refused(0, &["not-permitted"])
}

/// Starts a thread that exchanges `d` and `link` again and again until it is stopped.
fn spawn_swapper(
    root: impl AsRef<Path>,
    stop: Arc<AtomicBool>,
) -> std::io::Result<std::thread::JoinHandle<std::io::Result<()>>> {
    let root = root.as_ref().to_owned();
    #[expect(clippy::disallowed_methods, reason = "the attack itself, ended by its flag")]
    std::thread::Builder::new().spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let (d, link, aside) = (root.join("d"), root.join("link"), root.join("aside"));
            std::fs::rename(&d, &aside)?;
            std::fs::rename(&link, &d)?;
            std::fs::rename(&aside, &link)?;
            std::thread::yield_now();
        }
        Ok(())
    })
}

/// Attack `files-overlay-file-swapped-for-link`: the attacker has a file moved, then swapped below for a link
/// to one outside, and opens it.
async fn file_swapped(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    arena.write_file("b.txt", "text of b")?;
    let jar = super::open_unsealed(arena).await?;
    let first = json!([rename_step("a.txt", "moved"), hard_link("b.txt", "linked")]);
    let first = jar.run_steps(first).await?;
    (0..2).try_for_each(|step| first.step_value(step).map(drop))?;
    for name in ["a.txt", "b.txt"] {
        let name = arena.workspace().join(name);
        std::fs::remove_file(&name)?;
        symlink(arena.outside_path().join("canary.txt"), &name)?;
    }
    let open_itself = |path: &str, mode: &str| json!({ "do": "open", "place": place_itself(path), "open": "", "mode": mode });
    let steps = json!([
        open_itself("moved", "read"),
        open_itself("moved", "write"),
        read_step("moved"),
        open_step("moved", "", "write"),
        write_step("moved"),
        read_step("linked"),
        rename_step("moved", "stolen"),
    ]);
    let steps = jar.run_steps(steps).await?;
    steps.all_refused(0, &["loop", "not-permitted"])
}

/// Attack `files-overlay-fifo-swapped-in`: the attacker has a file moved, then swapped below for a FIFO, and
/// opens it.
async fn fifo_swapped(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = super::open_unsealed(arena).await?;
    jar.run_steps(json!([rename_step("a.txt", "moved")])).await?.step_value(0)?;
    let path = arena.workspace().join("a.txt");
    std::fs::remove_file(&path)?;
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).map_err(std::io::Error::from)?;
    let steps = json!([
        read_step("moved"),
        open_step("moved", "", "read"),
        open_step("moved", "", "write"),
        open_step("moved", "truncate", "write"),
        open_step("moved", "create", "read write"),
    ]);
    jar.run_steps(steps).await?.all_refused(0, &["access"])
}

/// Attack `files-overlay-makes-links`: the attacker makes links in an overlay, for whoever applies it to
/// follow.
async fn makes_links(arena: &Arena) -> Stopped {
    arena.write_file("d/a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let to = |name: &str, target: &str| json!({ "do": "symlink", "place": place_itself(name), "target": target });
    let steps = json!([
        place_step("mkdir", "new"),
        rename_step("d", "e"),
        to("new/link", "../../outside"),
        to("e/link", "/etc/passwd"),
        to("link", "e/a.txt"),
        to("AGENTS.md", "e/a.txt"),
        to("link", ""),
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 2, &["not-permitted"])
}

/// Attack `files-overlay-moves-links`: the attacker moves, links and replaces its owner's links in an
/// overlay.
async fn moves_links(arena: &Arena) -> Stopped {
    arena.write_file("d/a.txt", "text of a")?;
    make_link(arena, "../outside", "link")?;
    make_link(arena, "d/a.txt", "fine")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        write_step("fine"),
        place_step("mkdir", "new"),
        rename_step("link", "d/link"),
        rename_step("link", "new/link"),
        rename_step("fine", "new/fine"),
        hard_link("link", "new/link"),
        hard_link("fine", "new/fine"),
        rename_step("link/canary.txt", "stolen"),
        rename_step("new", "link/new"),
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 2, &["not-permitted"])
}

/// Attack `files-overlay-hard-link-out`: the attacker writes to a file that has another name outside, and
/// gives files names elsewhere.
async fn hard_link_out(arena: &Arena) -> Stopped {
    let canary = arena.outside_path().join("canary.txt");
    std::fs::hard_link(&canary, arena.workspace().join("inside"))?;
    arena.write_file("a.txt", "text of a")?;
    let builder = arena.jar_builder(&[crate::guests::PROBE]).with_overlay(OverlayQuota::default());
    let jar = builder.with_mount("second", MountAccess::ReadWrite).open().await?;
    let there = |path: &str| json!({ "at": "/second", "path": path });
    let steps = json!([
        write_step("inside"),
        open_step("inside", "", "read write"),
        { "do": "set-times", "held": 0, "seconds": 1 },
        hard_link("a.txt", "b.txt"),
        write_step("b.txt"),
        open_step("a.txt", "", "write"),
        { "do": "link", "place": place_itself("inside"), "to": there("inside") },
        { "do": "rename", "place": place_itself("inside"), "to": there("inside") },
        { "do": "link", "place": place_itself("a.txt"), "to": place_itself("../outside/a.txt") },
    ]);
    let steps = jar.run_steps(steps).await?;
    let stopped = check_refused_after(&steps, 4, &["not-permitted", "cross-device"])?;
    if std::fs::read_to_string(&canary)? != CANARY || arena.path("second").join("inside").exists() {
        return Err(Escape::new("the file outside was written, or has another name"));
    }
    Ok(stopped)
}

/// Attack `files-overlay-through-another-mount`: the attacker reaches the overlay's own directory and its
/// layer by paths of a mount that it may write.
async fn other_mount(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let builder = arena.jar_builder(&[crate::guests::PROBE]).with_overlay(OverlayQuota::default());
    let jar = builder.with_mount("second", MountAccess::ReadWrite).open().await?;
    let there = |path: &str| json!({ "at": "/second", "path": path, "follow": true });
    let there_write = |path: &str| json!({ "do": "write-file", "place": there(path), "text": "x" });
    let steps = json!([
        write_step("a.txt"),
        there_write("fine"),
        { "do": "open", "place": there("."), "open": "directory", "mode": "read mutate" },
        there_write("../workspace/a.txt"),
        there_write("../layer/index"),
        there_write("../layer/files/1"),
        { "do": "read-file", "place": there("../layer/files/1") },
        { "do": "unlink", "place": held_place(0, "../layer/index") },
        { "do": "rename", "place": there("fine"), "to": there("../layer/files/1") },
        write_step("../second/new"),
    ]);
    let stopped = check_refused_after(&jar.run_steps(steps).await?, 3, &["not-permitted"])?;
    let many = jar.run_steps(json!([repeat_step(50, read_step("../layer/files/{n}"))])).await?;
    match many.repeat_count(0)? {
        (0, Some(_)) => Ok(stopped),
        (read, _) => Err(Escape::new(format!("{read} contents of the layer were read"))),
    }
}
