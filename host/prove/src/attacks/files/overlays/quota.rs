//! Attacks on the quota of an overlay: names, links, bytes of removed files, and copies.

use super::{
    check_refused_after, check_step_value, hard_link, open_overlaid, open_step, open_unlimited,
    overlay_attack, place_step, rename_step, repeat_step, write_step,
};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped, Verdict};
use crate::attacks::files::read_step;
use crate::jar::StepResults;
use belljar_sandbox::OverlayQuota;
use serde_json::json;

const NAMES: &str = "every name that differs counts, hidden ones too (INV-174)";
const BYTES: &str = "a layer holds what its files are long, before they are (INV-174)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    overlay_attack(
        "files-overlay-many-names",
        "makes files, directories and links and hides names until nothing more fits",
        NAMES,
        "insufficient-space",
        |arena| Box::pin(many_names(arena)),
    ),
    overlay_attack(
        "files-overlay-many-hidden",
        "removes and moves thousands of its owner's files, so that the index grows",
        NAMES,
        "insufficient-space",
        |arena| Box::pin(many_hidden(arena)),
    ),
    overlay_attack(
        "files-overlay-copies",
        "opens large files for writing one after the other, so that all are copied",
        BYTES,
        "insufficient-space",
        |arena| Box::pin(copy_large_files(arena)),
    ),
    overlay_attack(
        "files-overlay-bytes-without-a-name",
        "fills files, removes their names and keeps them open",
        BYTES,
        "insufficient-space",
        |arena| Box::pin(without_a_name(arena)),
    ),
    overlay_attack(
        "files-overlay-billed-copies",
        "has more copied than it may write",
        "a copy counts as written bytes before it is made (INV-174)",
        "insufficient-space",
        |arena| Box::pin(exceed_copy_quota(arena)),
    ),
    overlay_attack(
        "files-overlay-endless-index",
        "moves one file to and fro and sets its times until the index fills the disk",
        "an index grows with what it holds, not with how often that changes (INV-174)",
        "no-entry",
        |arena| Box::pin(endless_index(arena)),
    ),
];

const SMALL: OverlayQuota = OverlayQuota { bytes: 1 << 20, files: 40 };

/// Checks that the quota stopped a repeated step after at most `most` times.
fn stopped_after(steps: &StepResults, step: usize, most: u64) -> Stopped {
    match steps.repeat_count(step)? {
        (done, Some(word)) if done <= most && word.contains("insufficient-space") => {
            Ok(Verdict::with_words(word))
        }
        (done, word) => Err(Escape::new(format!("done {done} times, then {word:?}"))),
    }
}

/// Attack `files-overlay-many-names`: the attacker makes files, directories and links and hides names until
/// nothing more fits.
async fn many_names(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_overlaid(arena, SMALL).await?;
    let steps = json!([
        write_step("one"),
        repeat_step(100, write_step("f{n}")),
        repeat_step(100, place_step("mkdir", "d{n}")),
        repeat_step(100, hard_link("one", "l{n}")),
        repeat_step(100, rename_step("a.txt", "b{n}")),
        place_step("unlink", "f0"),
        write_step("again"),
        read_step("a.txt"),
        write_step("more"),
    ]);
    let steps = jar.run_steps(steps).await?;
    for (step, most) in [(1, 40), (2, 0), (3, 0), (4, 0)] {
        stopped_after(&steps, step, most)?;
    }
    check_step_value(&steps, 7, &json!("text of a"))?;
    steps.check_refused("insufficient-space")
}

/// Attack `files-overlay-many-hidden`: the attacker removes and moves thousands of its owner's files, so that
/// the index grows.
async fn many_hidden(arena: &Arena) -> Stopped {
    for n in 0..100 {
        arena.write_file(&format!("d/{n}"), "")?;
    }
    let jar = open_overlaid(arena, SMALL).await?;
    let steps = json!([
        repeat_step(100, place_step("unlink", "d/{n}")),
        repeat_step(1, rename_step("d/99", "moved")),
        repeat_step(1, place_step("set-times-at", "d/98")),
        repeat_step(1, open_step("d/97", "", "write")),
        write_step("d/new"),
    ]);
    let steps = jar.run_steps(steps).await?;
    stopped_after(&steps, 0, 40)?;
    (1..4).try_for_each(|step| stopped_after(&steps, step, 0).map(drop))?;
    steps.check_refused("insufficient-space")
}

/// Attack `files-overlay-copies`: the attacker opens large files for writing one after the other, so that all
/// are copied.
async fn copy_large_files(arena: &Arena) -> Stopped {
    for n in 0..20 {
        arena.write_file(&format!("d/{n}"), vec![b'x'; 100 << 10])?;
    }
    let jar = open_overlaid(arena, SMALL).await?;
    let steps = json!([
        repeat_step(20, open_step("d/{n}", "", "write")),
        read_step("d/19"),
        open_step("d/19", "", "read write"),
    ]);
    let steps = jar.run_steps(steps).await?;
    stopped_after(&steps, 0, 10)?;
    let held: u64 = held_in_layer(arena)?;
    if held > SMALL.bytes {
        return Err(Escape::new(format!("the layer holds {held} bytes")));
    }
    steps.check_refused("insufficient-space")
}

/// The bytes of all files in the overlay's layer.
fn held_in_layer(arena: &Arena) -> Result<u64, Escape> {
    let mut held = 0;
    for content in std::fs::read_dir(arena.path("layer").join("files"))? {
        held += content?.metadata()?.len();
    }
    Ok(held)
}

/// Attack `files-overlay-bytes-without-a-name`: the attacker fills files, removes their names and keeps them
/// open.
async fn without_a_name(arena: &Arena) -> Stopped {
    let jar = open_overlaid(arena, SMALL).await?;
    let mut steps = Vec::new();
    for (held, name) in ["a", "b", "c"].into_iter().enumerate() {
        steps.extend([
            open_step(name, "create", "read write"),
            json!({ "do": "set-size", "held": held, "size": 300 << 10 }),
            place_step("unlink", name),
        ]);
    }
    steps.extend([
        open_step("d", "create", "read write"),
        json!({ "do": "set-size", "held": 3, "size": 200 << 10 }),
        json!({ "do": "write", "held": 3, "len": 1, "offset": 200 << 10 }),
        json!({ "do": "stream", "held": 3, "len": 1, "offset": 900 << 10 }),
    ]);
    let steps = jar.run_steps(steps.into()).await?;
    check_refused_after(&steps, 10, &["insufficient-space", "No space left"])
}

/// Attack `files-overlay-billed-copies`: the attacker has more copied than it may write.
async fn exceed_copy_quota(arena: &Arena) -> Stopped {
    arena.write_file("a", vec![b'x'; 60 << 10])?;
    arena.write_file("b", vec![b'x'; 60 << 10])?;
    let builder = arena.jar_builder(&[crate::guests::PROBE]).with_overlay(OverlayQuota::default());
    let jar = builder.with_limits(|limits| limits.write_bytes = 100 << 10).open().await?;
    let steps = json!([
        open_step("a", "", "write"),
        open_step("b", "", "read"),
        open_step("b", "", "write")
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 2, &["insufficient-space"])
}

/// Attack `files-overlay-endless-index`: the attacker moves one file to and fro and sets its times until the
/// index fills the disk.
async fn endless_index(arena: &Arena) -> Stopped {
    arena.write_file("a", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let to_and_fro = json!([
        repeat_step(3_000, place_step("set-times-at", "a")),
        rename_step("a", "b"),
        read_step("a"),
    ]);
    let stopped = check_refused_after(&jar.run_steps(to_and_fro).await?, 2, &["no-entry"])?;
    let index = std::fs::metadata(arena.path("layer").join("index"))?.len();
    if index > 300 << 10 {
        return Err(Escape::new(format!("the index has {index} bytes, and one name differs")));
    }
    Ok(stopped)
}
