//! The quota of an overlay: names, links, bytes without a name, and copies.

use super::{after, attack, gave, hard_link, open, overlaid, plenty, rename, repeat, step, write};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped, Verdict};
use crate::attacks::files::read;
use crate::jar::Steps;
use belljar_sandbox::OverlayQuota;
use serde_json::json;

const NAMES: &str = "every name that differs counts, hidden ones too (INV-174)";
const BYTES: &str = "a layer holds what its files are long, before they are (INV-174)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    attack(
        "files-overlay-many-names",
        "makes files, directories and links and hides names until nothing more fits",
        NAMES,
        "insufficient-space",
        |arena| Box::pin(many_names(arena)),
    ),
    attack(
        "files-overlay-many-hidden",
        "removes and moves thousands of its owner's files, so that the index grows",
        NAMES,
        "insufficient-space",
        |arena| Box::pin(many_hidden(arena)),
    ),
    attack(
        "files-overlay-copies",
        "opens large files for writing one after the other, so that all are copied",
        BYTES,
        "insufficient-space",
        |arena| Box::pin(copies(arena)),
    ),
    attack(
        "files-overlay-bytes-without-a-name",
        "fills files, removes their names and keeps them open",
        BYTES,
        "insufficient-space",
        |arena| Box::pin(without_a_name(arena)),
    ),
    attack(
        "files-overlay-billed-copies",
        "has more copied than it may write",
        "a copy counts as written bytes before it is made (INV-174)",
        "insufficient-space",
        |arena| Box::pin(billed(arena)),
    ),
    attack(
        "files-overlay-endless-index",
        "moves one file to and fro and sets its times until the index fills the disk",
        "an index grows with what it holds, not with how often that changes (INV-174)",
        "no-entry",
        |arena| Box::pin(endless_index(arena)),
    ),
];

const SMALL: OverlayQuota = OverlayQuota { bytes: 1 << 20, files: 40 };

/// A repetition was stopped by the quota after at most this many times.
fn stopped_after(steps: &Steps, step: usize, most: u64) -> Stopped {
    match steps.repeated(step)? {
        (done, Some(word)) if done <= most && word.contains("insufficient-space") => {
            Ok(Verdict::told(word))
        }
        (done, word) => Err(Escape::new(format!("done {done} times, then {word:?}"))),
    }
}

async fn many_names(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = overlaid(arena, SMALL).await?;
    let steps = json!([
        write("one"),
        repeat(100, write("f{n}")),
        repeat(100, step("mkdir", "d{n}")),
        repeat(100, hard_link("one", "l{n}")),
        repeat(100, rename("a.txt", "b{n}")),
        step("unlink", "f0"),
        write("again"),
        read("a.txt"),
        write("more"),
    ]);
    let steps = jar.steps(steps).await?;
    for (step, most) in [(1, 40), (2, 0), (3, 0), (4, 0)] {
        stopped_after(&steps, step, most)?;
    }
    gave(&steps, 7, &json!("text of a"))?;
    steps.refused("insufficient-space")
}

async fn many_hidden(arena: &Arena) -> Stopped {
    for n in 0..100 {
        arena.write(&format!("d/{n}"), "")?;
    }
    let jar = overlaid(arena, SMALL).await?;
    let steps = json!([
        repeat(100, step("unlink", "d/{n}")),
        repeat(1, rename("d/99", "moved")),
        repeat(1, step("set-times-at", "d/98")),
        repeat(1, open("d/97", "", "write")),
        write("d/new"),
    ]);
    let steps = jar.steps(steps).await?;
    stopped_after(&steps, 0, 40)?;
    (1..4).try_for_each(|step| stopped_after(&steps, step, 0).map(drop))?;
    steps.refused("insufficient-space")
}

async fn copies(arena: &Arena) -> Stopped {
    for n in 0..20 {
        arena.write(&format!("d/{n}"), vec![b'x'; 100 << 10])?;
    }
    let jar = overlaid(arena, SMALL).await?;
    let steps = json!([
        repeat(20, open("d/{n}", "", "write")),
        read("d/19"),
        open("d/19", "", "read write"),
    ]);
    let steps = jar.steps(steps).await?;
    stopped_after(&steps, 0, 10)?;
    let held: u64 = held_in_layer(arena)?;
    if held > SMALL.bytes {
        return Err(Escape::new(format!("the layer holds {held} bytes")));
    }
    steps.refused("insufficient-space")
}

fn held_in_layer(arena: &Arena) -> Result<u64, Escape> {
    let mut held = 0;
    for content in std::fs::read_dir(arena.path("layer").join("files"))? {
        held += content?.metadata()?.len();
    }
    Ok(held)
}

async fn without_a_name(arena: &Arena) -> Stopped {
    let jar = overlaid(arena, SMALL).await?;
    let mut steps = Vec::new();
    for (held, name) in ["a", "b", "c"].into_iter().enumerate() {
        steps.extend([
            open(name, "create", "read write"),
            json!({ "do": "set-size", "held": held, "size": 300 << 10 }),
            step("unlink", name),
        ]);
    }
    steps.extend([
        open("d", "create", "read write"),
        json!({ "do": "set-size", "held": 3, "size": 200 << 10 }),
        json!({ "do": "write", "held": 3, "len": 1, "offset": 200 << 10 }),
        json!({ "do": "stream", "held": 3, "len": 1, "offset": 900 << 10 }),
    ]);
    let steps = jar.steps(steps.into()).await?;
    after(&steps, 10, &["insufficient-space", "No space left"])
}

async fn billed(arena: &Arena) -> Stopped {
    arena.write("a", vec![b'x'; 60 << 10])?;
    arena.write("b", vec![b'x'; 60 << 10])?;
    let builder = arena.jar(&[crate::guests::PROBE]).overlaid(OverlayQuota::default());
    let jar = builder.limits(|limits| limits.write_bytes = 100 << 10).open().await?;
    let steps = json!([open("a", "", "write"), open("b", "", "read"), open("b", "", "write")]);
    after(&jar.steps(steps).await?, 2, &["insufficient-space"])
}

async fn endless_index(arena: &Arena) -> Stopped {
    arena.write("a", "text of a")?;
    let jar = plenty(arena).await?;
    let to_and_fro =
        json!([repeat(3_000, step("set-times-at", "a")), rename("a", "b"), read("a"),]);
    let stopped = after(&jar.steps(to_and_fro).await?, 2, &["no-entry"])?;
    let index = std::fs::metadata(arena.path("layer").join("index"))?.len();
    if index > 300 << 10 {
        return Err(Escape::new(format!("the index has {index} bytes, and one name differs")));
    }
    Ok(stopped)
}
