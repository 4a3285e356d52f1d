//! Attacks that use up a disk: bytes, files, descriptors, streams.

use serde_json::{Value, json};

use super::{open_writer, place_at, place_itself};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped, Verdict};
use crate::guests;

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "files-sparse-file",
        kind: AttackKind::Files,
        tries: "makes a file of 1 TiB without writing any of it",
        stopped_by: "growth counts as bytes written, before it happens (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(make_sparse_file(arena)),
    },
    Attack {
        id: "files-more-bytes-than-granted",
        kind: AttackKind::Files,
        tries: "writes on and on, by every route",
        stopped_by: "the budget of written bytes (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(write_endlessly(arena)),
    },
    Attack {
        id: "files-flood-of-empty-files",
        kind: AttackKind::Files,
        tries: "makes 12,000 empty files, which cost inodes and no byte",
        stopped_by: "a bound on the files that a store makes (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(make_many_files(arena)),
    },
    Attack {
        id: "files-hundred-thousand-descriptors",
        kind: AttackKind::Files,
        tries: "opens a file 100,000 times without closing it",
        stopped_by: "the limit of open files (INV-9)",
        told: "insufficient-memory",
        embedded: true,
        run: |arena| Box::pin(open_many_descriptors(arena)),
    },
    Attack {
        id: "files-flood-of-streams",
        kind: AttackKind::Files,
        tries: "opens 10,000 streams on one file",
        stopped_by: "a bound on the streams of a store (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(open_many_streams(arena)),
    },
    Attack {
        id: "files-flood-of-listings",
        kind: AttackKind::Files,
        tries: "keeps listing a large directory without reading the lists",
        stopped_by: "a bound on the entries held for a store (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(open_many_listings(arena)),
    },
    Attack {
        id: "files-twelve-thousand-deep",
        kind: AttackKind::Files,
        tries: "makes directories within directories, 12,000 deep",
        stopped_by: "a bound on the files that a store makes (INV-9)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(make_deep_directories(arena)),
    },
];

fn repeat_step(times: u64, step: Value) -> Value {
    json!({ "do": "repeat", "times": times, "step": step })
}

/// Attack `files-sparse-file`: the attacker makes a file of 1 TiB without writing any of it.
async fn make_sparse_file(arena: &Arena) -> Stopped {
    let jar = open_writer(arena).await?;
    let steps = json!([
        { "do": "open", "place": place_at("a"), "open": "create", "mode": "write" },
        { "do": "set-size", "held": 0, "size": 1_u64 << 40 },
        { "do": "write", "held": 0, "len": 1, "offset": 1_u64 << 40 },
        { "do": "stream", "held": 0, "len": 1, "offset": 1_u64 << 40 },
    ]);
    let steps = jar.run_steps(steps).await?;
    steps.step_value(0)?;
    let stopped = steps.all_refused(1, &["insufficient-space", "No space left"])?;
    check_small(arena, 0, stopped)
}

/// Attack `files-more-bytes-than-granted`: the attacker writes on and on, by every route.
async fn write_endlessly(arena: &Arena) -> Stopped {
    const MOST: u64 = 1 << 20;
    let builder = arena.jar_builder(&[guests::PROBE]).read_write();
    let jar = builder.with_limits(|limits| limits.write_bytes = MOST).open().await?;
    let steps = json!([
        { "do": "open", "place": place_at("a"), "open": "create", "mode": "read write" },
        repeat_step(10_000, json!({ "do": "write", "held": 0, "len": 4096, "offset": 0 })),
        { "do": "stream", "held": 0, "len": 4096 },
        { "do": "stream", "held": 0, "len": 4096, "append": true },
        { "do": "set-size", "held": 0, "size": 1_000_000 },
        { "do": "write-file", "place": place_at("b"), "text": "more" },
    ]);
    let steps = jar.run_steps(steps).await?;
    let (done, error) = steps.repeat_count(1)?;
    if done > MOST / 4096 || error.is_none() {
        return Err(Escape::new(format!("{done} writes of 4 KiB, then {error:?}")));
    }
    let stopped = steps.all_refused(2, &["insufficient-space", "No space left"])?;
    check_small(arena, MOST, stopped)
}

/// Checks that the file `a` has at most `most` bytes; returns `stopped` if so.
fn check_small(arena: &Arena, most: u64, stopped: Verdict) -> Stopped {
    let size = std::fs::metadata(arena.workspace().join("a"))?.len();
    if size > most { Err(Escape::new(format!("the file has {size} bytes"))) } else { Ok(stopped) }
}

/// Checks that a repeated step had to end early, with this error word.
async fn expect_early_end(
    arena: &Arena,
    first: Value,
    step: Value,
    times: u64,
    most: u64,
) -> Stopped {
    let jar = open_writer(arena).await?;
    let steps = jar.run_steps(json!([first, repeat_step(times, step)])).await?;
    let (done, error) = steps.repeat_count(1)?;
    match error {
        Some(error) if done <= most => Ok(Verdict::with_words(error)),
        _ => Err(Escape::new(format!("it was done {done} times of {times}, then {error:?}"))),
    }
}

/// Attack `files-flood-of-empty-files`: the attacker makes 12,000 empty files, which cost inodes and no byte.
async fn make_many_files(arena: &Arena) -> Stopped {
    let open = json!({ "do": "write-file", "place": place_at("f{n}"), "text": "" });
    let stopped =
        expect_early_end(arena, json!({ "do": "preopens" }), open, 12_000, 10_000).await?;
    let made = std::fs::read_dir(arena.workspace())?.count();
    if made > 10_000 { Err(Escape::new(format!("{made} files were made"))) } else { Ok(stopped) }
}

/// Attack `files-hundred-thousand-descriptors`: the attacker opens a file 100,000 times without closing it.
async fn open_many_descriptors(arena: &Arena) -> Stopped {
    arena.write_file("a", "text")?;
    let open = json!({ "do": "open", "place": place_at("a"), "mode": "read" });
    expect_early_end(arena, json!({ "do": "preopens" }), open, 100_000, 64).await
}

/// Attack `files-flood-of-streams`: the attacker opens 10,000 streams on one file.
async fn open_many_streams(arena: &Arena) -> Stopped {
    arena.write_file("a", "text")?;
    let open = json!({ "do": "open", "place": place_at("a"), "mode": "read" });
    let stream = json!({ "do": "read-stream", "held": 0, "offset": 0 });
    expect_early_end(arena, open, stream, 10_000, 256).await
}

/// Attack `files-flood-of-listings`: the attacker keeps listing a large directory without reading the lists.
async fn open_many_listings(arena: &Arena) -> Stopped {
    for number in 0..1_000 {
        arena.write_file(&format!("folder/{number}"), "")?;
    }
    let open =
        json!({ "do": "open", "place": place_at("folder"), "open": "directory", "mode": "read" });
    expect_early_end(arena, open, json!({ "do": "listing", "held": 0 }), 1_000, 33).await
}

/// Attack `files-twelve-thousand-deep`: the attacker makes directories within directories, 12,000 deep.
async fn make_deep_directories(arena: &Arena) -> Stopped {
    let jar = open_writer(arena).await?;
    let steps = jar.run_steps(json!([{ "do": "descend", "depth": 12_000 }])).await?;
    let said = steps.step_value(0)?.to_string();
    let made = steps.step_value(0)?.get("made").and_then(Value::as_u64).unwrap_or(u64::MAX);
    let found = jar.run_steps(json!([{ "do": "stat", "place": place_itself("d/d/d") }])).await?;
    found.step_value(0)?;
    if made > 10_000 { Err(Escape::new(said)) } else { Ok(Verdict::with_words(said)) }
}
