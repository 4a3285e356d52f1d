//! Attacks on overlays that several jars share, or that are opened again.

use super::{
    check_refused_after, check_step_value, open_unlimited, overlay_attack, place_step, rename_step,
    write_step,
};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped, Verdict};
use crate::attacks::files::{place_at, read_step};
use crate::guests;
use belljar_policy::MountAccess;
use belljar_sandbox::{Overlay, OverlayQuota};
use serde_json::{Value, json};

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    overlay_attack(
        "files-overlay-two-jars",
        "makes the same files from two jars at once, each only where nothing is",
        "one operation at a time looks at an overlay and changes it (INV-170)",
        "exist",
        |arena| Box::pin(two_jars(arena)),
    ),
    overlay_attack(
        "files-overlay-one-moves-another-writes",
        "moves a directory to and fro in one jar while another writes and removes in it",
        "one operation at a time looks at an overlay and changes it (INV-170)",
        "no-entry",
        |arena| Box::pin(moves_and_writes(arena)),
    ),
    overlay_attack(
        "files-overlay-reader",
        "writes to an overlay that it was given to read, by every operation",
        "whoever is given less than writing sees an overlay and writes nothing (INV-170)",
        "read-only",
        |arena| Box::pin(write_as_reader(arena)),
    ),
    overlay_attack(
        "files-overlay-opened-twice",
        "has the layer of a running overlay opened once more, under another directory",
        "a layer is open once (INV-171)",
        "open already",
        |arena| Box::pin(opened_twice(arena)),
    ),
    overlay_attack(
        "files-overlay-torn-index",
        "names files like records, and has its process killed at every byte of the index",
        "of a change that was being written down there is all or nothing (INV-175)",
        "no-entry",
        |arena| Box::pin(torn_index(arena)),
    ),
];

/// Attack `files-overlay-two-jars`: the attacker makes the same files from two jars at once, each only where
/// nothing is.
async fn two_jars(arena: &Arena) -> Stopped {
    const FILES: u64 = 100;
    let overlay = arena.open_overlay(OverlayQuota::default())?;
    let one = arena.jar_builder(&[guests::PROBE]).with_shared_overlay(&overlay).open().await?;
    let two = arena.jar_builder(&[guests::PROBE]).with_shared_overlay(&overlay).open().await?;
    let make = json!({ "do": "open", "place": place_at("f{n}"), "open": "create exclusive", "mode": "write" });
    let steps = || json!([{ "do": "repeat", "times": FILES, "step": make.clone(), "on": true }]);
    let (first, second) = tokio::join!(one.run_steps(steps()), two.run_steps(steps()));
    let (first, second) = (first?, second?);
    let (made, refused) = first.repeat_count(0)?;
    let (also, other) = second.repeat_count(0)?;
    let made = made + also;
    match refused.or(other) {
        Some(word) if made == FILES && overlay.used_quota().files == FILES => {
            Ok(Verdict::with_words(word))
        }
        word => Err(Escape::new(format!("{made} of {FILES} were made, and {word:?}"))),
    }
}

/// Attack `files-overlay-one-moves-another-writes`: the attacker moves a directory to and fro in one jar
/// while another writes and removes in it.
async fn moves_and_writes(arena: &Arena) -> Stopped {
    arena.write_file("d/f", "text of f")?;
    let overlay = arena.open_overlay(OverlayQuota::default())?;
    let one = arena.jar_builder(&[guests::PROBE]).with_shared_overlay(&overlay).open().await?;
    let two = arena.jar_builder(&[guests::PROBE]).with_shared_overlay(&overlay).open().await?;
    let moves: Vec<Value> =
        (0..50).flat_map(|_| [rename_step("d", "e"), rename_step("e", "d")]).collect();
    let writes: Vec<Value> = (0..50)
        .flat_map(|n| [write_step(&format!("d/{n}")), place_step("unlink", &format!("d/{n}"))])
        .collect();
    let (moved, wrote) = tokio::join!(one.run_steps(moves.into()), two.run_steps(writes.into()));
    let (moved, wrote) = (moved?, wrote?);
    (0..100).try_for_each(|step| moved.step_value(step).map(drop))?;
    // Exactly the files that were written and not removed exist.
    let mut left = 0_usize;
    for n in 0..50 {
        match (wrote.step_value(2 * n).is_ok(), wrote.step_value(2 * n + 1).is_ok()) {
            (true, false) => left += 1,
            (false, true) => return Err(Escape::new(format!("{n} was removed and never there"))),
            (true, true) | (false, false) => {}
        }
    }
    let steps = json!([{ "do": "list", "place": place_at("d") }, read_step("d/f"), read_step("e/f"), read_step("d/50")]);
    let steps = one.run_steps(steps).await?;
    let seen = steps.step_value(0)?.as_array().map_or(0, Vec::len);
    if seen != left + 1 {
        return Err(Escape::new(format!("{seen} names are there, not {}", left + 1)));
    }
    check_step_value(&steps, 1, &json!("text of f"))?;
    check_refused_after(&steps, 2, &["no-entry"])
}

/// Attack `files-overlay-reader`: the attacker writes to an overlay that it was given to read, by every
/// operation.
async fn write_as_reader(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let overlay = arena.open_overlay(OverlayQuota::default())?;
    let writer = arena.jar_builder(&[guests::PROBE]).with_shared_overlay(&overlay).open().await?;
    writer
        .run_steps(json!([write_step("a.txt"), place_step("mkdir", "d")]))
        .await?
        .step_value(1)?;
    let builder = arena.jar_builder(&[guests::PROBE]).with_shared_overlay(&overlay);
    let jar = builder.at_most(MountAccess::Read).open().await?;
    let steps = json!([
        read_step("a.txt"),
        write_step("a.txt"),
        write_step("new"),
        place_step("mkdir", "e"),
        place_step("rmdir", "d"),
        place_step("unlink", "a.txt"),
        place_step("set-times-at", "a.txt"),
        rename_step("a.txt", "b.txt"),
        super::hard_link("a.txt", "b.txt"),
        super::open_step("a.txt", "truncate", "read"),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_step_value(&steps, 0, &json!("mine"))?;
    let stopped = check_refused_after(&steps, 1, &["read-only"])?;
    match overlay.used_quota().files {
        2 => Ok(stopped),
        files => Err(Escape::new(format!("{files} names differ, not 2"))),
    }
}

/// Attack `files-overlay-opened-twice`: the attacker has the layer of a running overlay opened once more,
/// under another directory.
async fn opened_twice(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    jar.run_steps(json!([write_step("a.txt")])).await?.step_value(0)?;
    let quota = OverlayQuota::default();
    for lower in [arena.workspace(), arena.path("second")] {
        let Err(error) = Overlay::open(&lower, arena.path("layer"), quota) else {
            return Err(Escape::new("the layer was opened twice"));
        };
        if !error.to_string().contains("open already") {
            return Err(Escape::new(error.to_string()));
        }
    }
    let steps = jar.run_steps(json!([read_step("a.txt"), write_step("b.txt")])).await?;
    check_step_value(&steps, 0, &json!("mine"))?;
    steps.step_value(1)?;
    Ok(Verdict::with_words("the overlay is open already"))
}

/// Attack `files-overlay-torn-index`: the attacker names files like records, and has its process killed at
/// every byte of the index.
async fn torn_index(arena: &Arena) -> Stopped {
    arena.write_file("gone", "text of gone")?;
    let overlay = arena.open_overlay(OverlayQuota::default())?;
    let jar = arena
        .jar_builder(&[guests::PROBE])
        .with_shared_overlay(&overlay)
        .open_unremembered()
        .await?;
    // Bytes after a torn record of the index are not read as records, whatever the names in them contain.
    let steps = json!([
        place_step("unlink", "gone"),
        write_step("belljar overlay 1\n\u{3}\u{1}gone"),
        rename_step("belljar overlay 1\n\u{3}\u{1}gone", "\u{3}\u{4}\u{5}gone"),
    ]);
    let done = jar.run_steps(steps).await?;
    (0..3).try_for_each(|step| done.step_value(step).map(drop))?;
    jar.close().await?;
    drop((jar, overlay));
    let whole = std::fs::read(arena.path("layer").join("index"))?;
    let one = whole.windows(4).position(|part| part == b"gone").unwrap_or(0);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(arena.path("layer").join("files"))? {
        files.push(entry?);
    }
    for end in (one + 80..whole.len()).step_by(7) {
        // Opening an overlay removes files that its index does not name, so each attempt uses a copy.
        let dead = arena.path("dead");
        std::fs::create_dir_all(dead.join("files"))?;
        for file in &files {
            std::fs::copy(file.path(), dead.join("files").join(file.file_name()))?;
        }
        std::fs::write(dead.join("index"), whole.get(..end).unwrap_or_default())?;
        let opened = Overlay::open(arena.workspace(), &dead, OverlayQuota::default());
        let opened = opened.map_err(|error| Escape::new(error.to_string()))?;
        if opened.used_quota().files == 0 || opened.open_file("gone").is_ok() {
            return Err(Escape::new(format!("shown again after {end} of {} bytes", whole.len())));
        }
        drop(opened);
        std::fs::remove_dir_all(&dead)?;
    }
    let jar = open_unlimited(arena).await?;
    jar.run_steps(json!([write_step("kept"), read_step("gone")])).await?.check_refused("no-entry")
}
