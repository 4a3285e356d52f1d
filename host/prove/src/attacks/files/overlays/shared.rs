//! Overlays that several have, and that are opened again.

use super::{after, attack, gave, plenty, rename, step, write};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped, Verdict};
use crate::attacks::files::{at, read};
use crate::guests;
use belljar_policy::Access;
use belljar_sandbox::{Overlay, OverlayQuota};
use serde_json::{Value, json};

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    attack(
        "files-overlay-two-jars",
        "makes the same files from two jars at once, each only where nothing is",
        "one operation at a time looks at an overlay and changes it (INV-170)",
        "exist",
        |arena| Box::pin(two_jars(arena)),
    ),
    attack(
        "files-overlay-one-moves-another-writes",
        "moves a directory to and fro in one jar while another writes and removes in it",
        "one operation at a time looks at an overlay and changes it (INV-170)",
        "no-entry",
        |arena| Box::pin(moves_and_writes(arena)),
    ),
    attack(
        "files-overlay-reader",
        "writes to an overlay that it was given to read, by every operation",
        "whoever is given less than writing sees an overlay and writes nothing (INV-170)",
        "read-only",
        |arena| Box::pin(reader(arena)),
    ),
    attack(
        "files-overlay-opened-twice",
        "has the layer of a running overlay opened once more, under another directory",
        "a layer is open once (INV-171)",
        "open already",
        |arena| Box::pin(opened_twice(arena)),
    ),
    attack(
        "files-overlay-torn-index",
        "names files like records, and has its process killed at every byte of the index",
        "of a change that was being written down there is all or nothing (INV-175)",
        "no-entry",
        |arena| Box::pin(torn_index(arena)),
    ),
];

async fn two_jars(arena: &Arena) -> Stopped {
    const FILES: u64 = 100;
    let overlay = arena.overlay(OverlayQuota::default())?;
    let one = arena.jar(&[guests::PROBE]).over(&overlay).open().await?;
    let two = arena.jar(&[guests::PROBE]).over(&overlay).open().await?;
    let make =
        json!({ "do": "open", "place": at("f{n}"), "open": "create exclusive", "mode": "write" });
    let steps = || json!([{ "do": "repeat", "times": FILES, "step": make.clone(), "on": true }]);
    let (first, second) = tokio::join!(one.steps(steps()), two.steps(steps()));
    let (first, second) = (first?, second?);
    let (made, refused) = first.repeated(0)?;
    let (also, other) = second.repeated(0)?;
    let made = made + also;
    match refused.or(other) {
        Some(word) if made == FILES && overlay.used().files == FILES => Ok(Verdict::told(word)),
        word => Err(Escape::new(format!("{made} of {FILES} were made, and {word:?}"))),
    }
}

async fn moves_and_writes(arena: &Arena) -> Stopped {
    arena.write("d/f", "text of f")?;
    let overlay = arena.overlay(OverlayQuota::default())?;
    let one = arena.jar(&[guests::PROBE]).over(&overlay).open().await?;
    let two = arena.jar(&[guests::PROBE]).over(&overlay).open().await?;
    let moves: Vec<Value> = (0..50).flat_map(|_| [rename("d", "e"), rename("e", "d")]).collect();
    let writes: Vec<Value> = (0..50)
        .flat_map(|n| [write(&format!("d/{n}")), step("unlink", &format!("d/{n}"))])
        .collect();
    let (moved, wrote) = tokio::join!(one.steps(moves.into()), two.steps(writes.into()));
    let (moved, wrote) = (moved?, wrote?);
    (0..100).try_for_each(|step| moved.ok(step).map(drop))?;
    // What was written and not removed is there, and no more.
    let mut left = 0_usize;
    for n in 0..50 {
        match (wrote.ok(2 * n).is_ok(), wrote.ok(2 * n + 1).is_ok()) {
            (true, false) => left += 1,
            (false, true) => return Err(Escape::new(format!("{n} was removed and never there"))),
            (true, true) | (false, false) => {}
        }
    }
    let steps = json!([{ "do": "list", "place": at("d") }, read("d/f"), read("e/f"), read("d/50")]);
    let steps = one.steps(steps).await?;
    let seen = steps.ok(0)?.as_array().map_or(0, Vec::len);
    if seen != left + 1 {
        return Err(Escape::new(format!("{seen} names are there, not {}", left + 1)));
    }
    gave(&steps, 1, &json!("text of f"))?;
    after(&steps, 2, &["no-entry"])
}

async fn reader(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let overlay = arena.overlay(OverlayQuota::default())?;
    let writer = arena.jar(&[guests::PROBE]).over(&overlay).open().await?;
    writer.steps(json!([write("a.txt"), step("mkdir", "d")])).await?.ok(1)?;
    let builder = arena.jar(&[guests::PROBE]).over(&overlay);
    let jar = builder.at_most(Access::Read).open().await?;
    let steps = json!([
        read("a.txt"),
        write("a.txt"),
        write("new"),
        step("mkdir", "e"),
        step("rmdir", "d"),
        step("unlink", "a.txt"),
        step("set-times-at", "a.txt"),
        rename("a.txt", "b.txt"),
        super::hard_link("a.txt", "b.txt"),
        super::open("a.txt", "truncate", "read"),
    ]);
    let steps = jar.steps(steps).await?;
    gave(&steps, 0, &json!("mine"))?;
    let stopped = after(&steps, 1, &["read-only"])?;
    match overlay.used().files {
        2 => Ok(stopped),
        files => Err(Escape::new(format!("{files} names differ, not 2"))),
    }
}

async fn opened_twice(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    jar.steps(json!([write("a.txt")])).await?.ok(0)?;
    let quota = OverlayQuota::default();
    for lower in [arena.workspace(), arena.path("second")] {
        let Err(error) = Overlay::open(&lower, arena.path("layer"), quota) else {
            return Err(Escape::new("the layer was opened twice"));
        };
        if !error.to_string().contains("open already") {
            return Err(Escape::new(error.to_string()));
        }
    }
    let steps = jar.steps(json!([read("a.txt"), write("b.txt")])).await?;
    gave(&steps, 0, &json!("mine"))?;
    steps.ok(1)?;
    Ok(Verdict::told("the overlay is open already"))
}

async fn torn_index(arena: &Arena) -> Stopped {
    arena.write("gone", "text of gone")?;
    let overlay = arena.overlay(OverlayQuota::default())?;
    let jar = arena.jar(&[guests::PROBE]).over(&overlay).make().await?;
    // What follows a torn record is not taken for one, whatever the names in it say.
    let steps = json!([
        step("unlink", "gone"),
        write("belljar overlay 1\n\u{3}\u{1}gone"),
        rename("belljar overlay 1\n\u{3}\u{1}gone", "\u{3}\u{4}\u{5}gone"),
    ]);
    let done = jar.steps(steps).await?;
    (0..3).try_for_each(|step| done.ok(step).map(drop))?;
    jar.close().await?;
    drop((jar, overlay));
    let whole = std::fs::read(arena.path("layer").join("index"))?;
    let one = whole.windows(4).position(|part| part == b"gone").unwrap_or(0);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(arena.path("layer").join("files"))? {
        files.push(entry?);
    }
    for end in (one + 80..whole.len()).step_by(7) {
        // What is opened removes what nothing names; so each one has a copy.
        let dead = arena.path("dead");
        std::fs::create_dir_all(dead.join("files"))?;
        for file in &files {
            std::fs::copy(file.path(), dead.join("files").join(file.file_name()))?;
        }
        std::fs::write(dead.join("index"), whole.get(..end).unwrap_or_default())?;
        let opened = Overlay::open(arena.workspace(), &dead, OverlayQuota::default());
        let opened = opened.map_err(|error| Escape::new(error.to_string()))?;
        if opened.used().files == 0 || opened.open_file("gone").is_ok() {
            return Err(Escape::new(format!("shown again after {end} of {} bytes", whole.len())));
        }
        drop(opened);
        std::fs::remove_dir_all(&dead)?;
    }
    let jar = plenty(arena).await?;
    jar.steps(json!([write("kept"), read("gone")])).await?.refused("no-entry")
}
