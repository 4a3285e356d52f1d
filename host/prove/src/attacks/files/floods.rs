//! Too much of everything a disk has.

use serde_json::{Value, json};

use super::{at, itself, writer};
use crate::Arena;
use crate::attack::{Attack, Escape, Kind, Stopped, Verdict};
use crate::guests;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "files-sparse-file",
        kind: Kind::Files,
        tries: "makes a file of 1 TiB without writing any of it",
        stopped_by: "growth counts as bytes written, before it happens (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(sparse(arena)),
    },
    Attack {
        id: "files-more-bytes-than-granted",
        kind: Kind::Files,
        tries: "writes on and on, by every route",
        stopped_by: "the budget of written bytes (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(bytes(arena)),
    },
    Attack {
        id: "files-flood-of-empty-files",
        kind: Kind::Files,
        tries: "makes 12,000 empty files, which cost inodes and no byte",
        stopped_by: "a bound on the files that a store makes (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(inodes(arena)),
    },
    Attack {
        id: "files-hundred-thousand-descriptors",
        kind: Kind::Files,
        tries: "opens a file 100,000 times without closing it",
        stopped_by: "the limit of open files (INV-9)",
        told: "insufficient-memory",
        embedded: true,
        run: |arena| Box::pin(descriptors(arena)),
    },
    Attack {
        id: "files-flood-of-streams",
        kind: Kind::Files,
        tries: "opens 10,000 streams on one file",
        stopped_by: "a bound on the streams of a store (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(streams(arena)),
    },
    Attack {
        id: "files-flood-of-listings",
        kind: Kind::Files,
        tries: "keeps listing a large directory without reading the lists",
        stopped_by: "a bound on the entries held for a store (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(listings(arena)),
    },
    Attack {
        id: "files-twelve-thousand-deep",
        kind: Kind::Files,
        tries: "makes directories within directories, 12,000 deep",
        stopped_by: "a bound on the files that a store makes (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(deep(arena)),
    },
];

fn repeat(times: u64, step: Value) -> Value {
    json!({ "do": "repeat", "times": times, "step": step })
}

async fn sparse(arena: &Arena) -> Stopped {
    let jar = writer(arena).await?;
    let steps = json!([
        { "do": "open", "place": at("a"), "open": "create", "mode": "write" },
        { "do": "set-size", "held": 0, "size": 1_u64 << 40 },
        { "do": "write", "held": 0, "len": 1, "offset": 1_u64 << 40 },
        { "do": "stream", "held": 0, "len": 1, "offset": 1_u64 << 40 },
    ]);
    let steps = jar.steps(steps).await?;
    steps.ok(0)?;
    let stopped = steps.all_refused(1, &["insufficient-space", "No space left"])?;
    small(arena, 0, stopped)
}

async fn bytes(arena: &Arena) -> Stopped {
    const MOST: u64 = 1 << 20;
    let builder = arena.jar(&[guests::PROBE]).read_write();
    let jar = builder.limits(|limits| limits.write_bytes = MOST).open().await?;
    let steps = json!([
        { "do": "open", "place": at("a"), "open": "create", "mode": "read write" },
        repeat(10_000, json!({ "do": "write", "held": 0, "len": 4096, "offset": 0 })),
        { "do": "stream", "held": 0, "len": 4096 },
        { "do": "stream", "held": 0, "len": 4096, "append": true },
        { "do": "set-size", "held": 0, "size": 1_000_000 },
        { "do": "write-file", "place": at("b"), "text": "more" },
    ]);
    let steps = jar.steps(steps).await?;
    let (done, error) = steps.repeated(1)?;
    if done > MOST / 4096 || error.is_none() {
        return Err(Escape::new(format!("{done} writes of 4 KiB, then {error:?}")));
    }
    let stopped = steps.all_refused(2, &["insufficient-space", "No space left"])?;
    small(arena, MOST, stopped)
}

/// The file `a` is no larger than this.
fn small(arena: &Arena, most: u64, stopped: Verdict) -> Stopped {
    let size = std::fs::metadata(arena.workspace().join("a"))?.len();
    if size > most { Err(Escape::new(format!("the file has {size} bytes"))) } else { Ok(stopped) }
}

/// A repetition that had to end early, with this word.
async fn ends(arena: &Arena, first: Value, step: Value, times: u64, most: u64) -> Stopped {
    let jar = writer(arena).await?;
    let steps = jar.steps(json!([first, repeat(times, step)])).await?;
    let (done, error) = steps.repeated(1)?;
    match error {
        Some(error) if done <= most => Ok(Verdict::told(error)),
        _ => Err(Escape::new(format!("it was done {done} times of {times}, then {error:?}"))),
    }
}

async fn inodes(arena: &Arena) -> Stopped {
    let open = json!({ "do": "write-file", "place": at("f{n}"), "text": "" });
    let stopped = ends(arena, json!({ "do": "preopens" }), open, 12_000, 10_000).await?;
    let made = std::fs::read_dir(arena.workspace())?.count();
    if made > 10_000 { Err(Escape::new(format!("{made} files were made"))) } else { Ok(stopped) }
}

async fn descriptors(arena: &Arena) -> Stopped {
    arena.write("a", "text")?;
    let open = json!({ "do": "open", "place": at("a"), "mode": "read" });
    ends(arena, json!({ "do": "preopens" }), open, 100_000, 64).await
}

async fn streams(arena: &Arena) -> Stopped {
    arena.write("a", "text")?;
    let open = json!({ "do": "open", "place": at("a"), "mode": "read" });
    let stream = json!({ "do": "read-stream", "held": 0, "offset": 0 });
    ends(arena, open, stream, 10_000, 256).await
}

async fn listings(arena: &Arena) -> Stopped {
    for number in 0..1_000 {
        arena.write(&format!("folder/{number}"), "")?;
    }
    let open = json!({ "do": "open", "place": at("folder"), "open": "directory", "mode": "read" });
    ends(arena, open, json!({ "do": "listing", "held": 0 }), 1_000, 33).await
}

async fn deep(arena: &Arena) -> Stopped {
    let jar = writer(arena).await?;
    let steps = jar.steps(json!([{ "do": "descend", "depth": 12_000 }])).await?;
    let said = steps.ok(0)?.to_string();
    let made = steps.ok(0)?.get("made").and_then(Value::as_u64).unwrap_or(u64::MAX);
    let found = jar.steps(json!([{ "do": "stat", "place": itself("d/d/d") }])).await?;
    found.ok(0)?;
    if made > 10_000 { Err(Escape::new(said)) } else { Ok(Verdict::told(said)) }
}
