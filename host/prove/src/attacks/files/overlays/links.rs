//! Links in the lower directory, planted before and swapped in meanwhile, and other ways out.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{after, attack, gave, hard_link, held, open, plenty, rename, repeat, step, write};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped};
use crate::attacks::files::{at, itself, link, read};
use crate::tree::CANARY;
use belljar_policy::Access;
use belljar_sandbox::OverlayQuota;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

const NOT_FOLLOWED: &str = "no link in the lower directory is followed out of it (INV-170)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    attack(
        "files-overlay-links-out",
        "reads, writes, copies and moves through links out of the workspace that lie there already",
        NOT_FOLLOWED,
        "not-permitted",
        |arena| Box::pin(links_out(arena)),
    ),
    attack(
        "files-overlay-link-swapped-in",
        "holds a directory while it is swapped for a link out, and copies and writes through it",
        NOT_FOLLOWED,
        "no-entry",
        |arena| Box::pin(swapped_in(arena)),
    ),
    attack(
        "files-overlay-link-while-copied",
        "opens files for writing while their directory is swapped for a link out, again and again",
        "a copy is made from a handle, reached by names that are no links (INV-170)",
        "not-permitted",
        |arena| Box::pin(while_copied(arena)),
    ),
    attack(
        "files-overlay-file-swapped-for-link",
        "has a file moved, then swapped below for a link to one outside, and opens it",
        NOT_FOLLOWED,
        "loop",
        |arena| Box::pin(file_swapped(arena)),
    ),
    attack(
        "files-overlay-fifo-swapped-in",
        "has a file moved, then swapped below for a FIFO, and opens it",
        "what is no regular file any more is neither opened nor waited for (INV-170)",
        "access",
        |arena| Box::pin(fifo_swapped(arena)),
    ),
    attack(
        "files-overlay-makes-links",
        "makes links in an overlay, for whoever applies it to follow",
        "a guest makes no symbolic link, in an overlay either",
        "not-permitted",
        |arena| Box::pin(makes_links(arena)),
    ),
    attack(
        "files-overlay-moves-links",
        "moves, links and replaces its owner's links in an overlay",
        "a guest moves no symbolic link, in an overlay either",
        "not-permitted",
        |arena| Box::pin(moves_links(arena)),
    ),
    attack(
        "files-overlay-hard-link-out",
        "writes to a file that has another name outside, and gives files names elsewhere",
        "a file is copied before it is written, and a new name lies in the same overlay (INV-170)",
        "cross-device",
        |arena| Box::pin(hard_link_out(arena)),
    ),
    attack(
        "files-overlay-through-another-mount",
        "reaches the overlay's own directory and its layer by paths of a mount that it may write",
        "each mount is resolved by itself, and no path leads out of it (INV-170)",
        "not-permitted",
        |arena| Box::pin(other_mount(arena)),
    ),
];

async fn links_out(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    arena.write("d/b.txt", "text of b")?;
    link(arena, "../outside", "up")?;
    link(arena, "../outside/canary.txt", "file")?;
    link(arena, arena.outside(), "absolute")?;
    link(arena, "up", "chain")?;
    link(arena, "../../outside", "d/deep")?;
    let jar = plenty(arena).await?;
    let mut steps = vec![write("a.txt"), rename("d", "e")];
    for way in ["up/canary.txt", "file", "absolute/canary.txt", "chain/canary.txt"] {
        steps.extend([read(way), write(way), open(way, "", "write")]);
    }
    steps.extend([
        read("e/deep/canary.txt"),
        write("e/deep/new.txt"),
        rename("a.txt", "up/a.txt"),
        rename("up/canary.txt", "stolen.txt"),
        hard_link("chain/canary.txt", "stolen.txt"),
        step("unlink", "up/canary.txt"),
        step("mkdir", "absolute/new"),
    ]);
    after(&jar.steps(steps.into()).await?, 2, &["not-permitted"])
}

async fn swapped_in(arena: &Arena) -> Stopped {
    arena.write("d/canary.txt", "text of it")?;
    arena.write("d/other", "text of other")?;
    let jar = super::unsealed(arena).await?;
    let first = json!([
        open("d", "directory", "read mutate"),
        rename("d", "e"),
        open("e/other", "", "read"),
    ]);
    let first = jar.steps(first).await?;
    (0..3).try_for_each(|step| first.ok(step).map(drop))?;
    std::fs::rename(arena.workspace().join("d"), arena.workspace().join("aside"))?;
    symlink("../outside", arena.workspace().join("d"))?;
    let steps = json!([
        write("e/new"),
        read("e/new"),
        read("e/canary.txt"),
        open("e/canary.txt", "", "write"),
        rename("e/canary.txt", "stolen"),
        read("d/canary.txt"),
        write("d/new"),
    ]);
    let steps = jar.steps(steps).await?;
    gave(&steps, 1, &json!("mine"))?;
    after(&steps, 2, &["no-entry", "not-permitted"])
}

async fn while_copied(arena: &Arena) -> Stopped {
    for n in 0..100 {
        arena.write(&format!("d/{n}"), "inside")?;
    }
    let secret = arena.path("second");
    for n in 0..100 {
        std::fs::write(secret.join(n.to_string()), CANARY)?;
    }
    link(arena, "../second", "link")?;
    let jar = super::unsealed(arena).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = swapper(arena.workspace(), Arc::clone(&stop))?;
    let copied = json!({ "do": "open", "place": at("d/{n}"), "open": "", "mode": "read write" });
    let turn = json!({ "do": "repeat", "times": 100, "step": copied, "on": true });
    let mut told = Ok(());
    for _ in 0..4 {
        told = jar.try_steps(json!([turn.clone()])).await.completed().map(drop);
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
    // Wherever the swapper has stopped: the link has its first name again.
    let [d, link, aside] = ["d", "link", "aside"].map(|name| arena.workspace().join(name));
    if !link.is_symlink() {
        std::fs::rename(&link, &aside)?;
        std::fs::rename(&d, &link)?;
        std::fs::rename(&aside, &d)?;
    }
    let steps = jar.steps(json!([write("link/0"), read("link/0")]));
    steps.await?.all_refused(0, &["not-permitted"])
}

/// Exchanges `d` and `link` until it is stopped.
fn swapper(
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

async fn file_swapped(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    arena.write("b.txt", "text of b")?;
    let jar = super::unsealed(arena).await?;
    let first = json!([rename("a.txt", "moved"), hard_link("b.txt", "linked")]);
    let first = jar.steps(first).await?;
    (0..2).try_for_each(|step| first.ok(step).map(drop))?;
    for name in ["a.txt", "b.txt"] {
        let name = arena.workspace().join(name);
        std::fs::remove_file(&name)?;
        symlink(arena.outside().join("canary.txt"), &name)?;
    }
    let open_itself = |path: &str, mode: &str| json!({ "do": "open", "place": itself(path), "open": "", "mode": mode });
    let steps = json!([
        open_itself("moved", "read"),
        open_itself("moved", "write"),
        read("moved"),
        open("moved", "", "write"),
        write("moved"),
        read("linked"),
        rename("moved", "stolen"),
    ]);
    let steps = jar.steps(steps).await?;
    steps.all_refused(0, &["loop", "not-permitted"])
}

async fn fifo_swapped(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = super::unsealed(arena).await?;
    jar.steps(json!([rename("a.txt", "moved")])).await?.ok(0)?;
    let path = arena.workspace().join("a.txt");
    std::fs::remove_file(&path)?;
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).map_err(std::io::Error::from)?;
    let steps = json!([
        read("moved"),
        open("moved", "", "read"),
        open("moved", "", "write"),
        open("moved", "truncate", "write"),
        open("moved", "create", "read write"),
    ]);
    jar.steps(steps).await?.all_refused(0, &["access"])
}

async fn makes_links(arena: &Arena) -> Stopped {
    arena.write("d/a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let to = |name: &str, target: &str| json!({ "do": "symlink", "place": itself(name), "target": target });
    let steps = json!([
        step("mkdir", "new"),
        rename("d", "e"),
        to("new/link", "../../outside"),
        to("e/link", "/etc/passwd"),
        to("link", "e/a.txt"),
        to("AGENTS.md", "e/a.txt"),
        to("link", ""),
    ]);
    after(&jar.steps(steps).await?, 2, &["not-permitted"])
}

async fn moves_links(arena: &Arena) -> Stopped {
    arena.write("d/a.txt", "text of a")?;
    link(arena, "../outside", "link")?;
    link(arena, "d/a.txt", "fine")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        write("fine"),
        step("mkdir", "new"),
        rename("link", "d/link"),
        rename("link", "new/link"),
        rename("fine", "new/fine"),
        hard_link("link", "new/link"),
        hard_link("fine", "new/fine"),
        rename("link/canary.txt", "stolen"),
        rename("new", "link/new"),
    ]);
    after(&jar.steps(steps).await?, 2, &["not-permitted"])
}

async fn hard_link_out(arena: &Arena) -> Stopped {
    let canary = arena.outside().join("canary.txt");
    std::fs::hard_link(&canary, arena.workspace().join("inside"))?;
    arena.write("a.txt", "text of a")?;
    let builder = arena.jar(&[crate::guests::PROBE]).overlaid(OverlayQuota::default());
    let jar = builder.mount("second", Access::ReadWrite).open().await?;
    let there = |path: &str| json!({ "at": "/second", "path": path });
    let steps = json!([
        write("inside"),
        open("inside", "", "read write"),
        { "do": "set-times", "held": 0, "seconds": 1 },
        hard_link("a.txt", "b.txt"),
        write("b.txt"),
        open("a.txt", "", "write"),
        { "do": "link", "place": itself("inside"), "to": there("inside") },
        { "do": "rename", "place": itself("inside"), "to": there("inside") },
        { "do": "link", "place": itself("a.txt"), "to": itself("../outside/a.txt") },
    ]);
    let steps = jar.steps(steps).await?;
    let stopped = after(&steps, 4, &["not-permitted", "cross-device"])?;
    if std::fs::read_to_string(&canary)? != CANARY || arena.path("second").join("inside").exists() {
        return Err(Escape::new("the file outside was written, or has another name"));
    }
    Ok(stopped)
}

async fn other_mount(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let builder = arena.jar(&[crate::guests::PROBE]).overlaid(OverlayQuota::default());
    let jar = builder.mount("second", Access::ReadWrite).open().await?;
    let there = |path: &str| json!({ "at": "/second", "path": path, "follow": true });
    let there_write = |path: &str| json!({ "do": "write-file", "place": there(path), "text": "x" });
    let steps = json!([
        write("a.txt"),
        there_write("fine"),
        { "do": "open", "place": there("."), "open": "directory", "mode": "read mutate" },
        there_write("../workspace/a.txt"),
        there_write("../layer/index"),
        there_write("../layer/files/1"),
        { "do": "read-file", "place": there("../layer/files/1") },
        { "do": "unlink", "place": held(0, "../layer/index") },
        { "do": "rename", "place": there("fine"), "to": there("../layer/files/1") },
        write("../second/new"),
    ]);
    let stopped = after(&jar.steps(steps).await?, 3, &["not-permitted"])?;
    let many = jar.steps(json!([repeat(50, read("../layer/files/{n}"))])).await?;
    match many.repeated(0)? {
        (0, Some(_)) => Ok(stopped),
        (read, _) => Err(Escape::new(format!("{read} contents of the layer were read"))),
    }
}
