//! Overlays: what is written goes to a layer, and the workspace below is compared afterwards.

pub(super) mod hidden;
pub(super) mod links;
pub(super) mod names;
pub(super) mod protected;
pub(super) mod quota;
pub(super) mod shared;

use belljar_sandbox::OverlayQuota;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{at, itself, read};
use crate::Arena;
use crate::attack::{Attack, Escape, Kind, Stopped};
use crate::guests;
use crate::jar::{OpenJar, Steps};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "files-overlay-to-the-layer",
        kind: Kind::Files,
        tries: "makes files named as the layer's own, and writes to the layer by paths that lead out",
        stopped_by: "no name of a guest becomes one in the layer, and no path leads there (INV-171)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(to_the_layer(arena)),
    },
    Attack {
        id: "files-overlay-shown-again",
        kind: Kind::Files,
        tries: "removes a file of an overlay, and moves and makes directories until it is seen again",
        stopped_by: "what was hidden stays hidden where it lay and where it was moved (INV-172)",
        told: "no-entry",
        embedded: true,
        run: |arena| Box::pin(shown_again(arena)),
    },
    Attack {
        id: "files-overlay-protected-names",
        kind: Kind::Files,
        tries: "changes, replaces and moves protected names in an overlay",
        stopped_by: "protected names are not changed in an overlay either (INV-173)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(protected(arena)),
    },
    Attack {
        id: "files-overlay-holes",
        kind: Kind::Files,
        tries: "fills an overlay with holes, and has a sparse file larger than it copied",
        stopped_by: "a layer holds what its files are long, before they are (INV-174)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(holes(arena)),
    },
];

type Run = for<'a> fn(&'a Arena) -> BoxFuture<'a, Stopped>;

/// An attack on an overlay. What lies below is compared afterwards, as of every sealed mount.
const fn attack(
    id: &'static str,
    tries: &'static str,
    stopped_by: &'static str,
    told: &'static str,
    run: Run,
) -> Attack<Arena> {
    Attack { id, kind: Kind::Files, tries, stopped_by, told, embedded: true, run }
}

async fn plenty(arena: &Arena) -> Result<OpenJar, Escape> {
    overlaid(arena, OverlayQuota::default()).await
}

/// One whose owner changes the workspace meanwhile; the attack compares itself.
async fn unsealed(arena: &Arena) -> Result<OpenJar, Escape> {
    arena.jar(&[guests::PROBE]).overlaid(OverlayQuota::default()).unsealed().open().await
}

async fn overlaid(arena: &Arena, quota: OverlayQuota) -> Result<OpenJar, Escape> {
    let most = u64::MAX / 4;
    let builder = arena.jar(&[guests::PROBE]).overlaid(quota);
    builder.limits(|limits| limits.write_bytes = most).open().await
}

fn write(path: &str) -> Value {
    json!({ "do": "write-file", "place": at(path), "text": "mine" })
}

fn rename(from: &str, to: &str) -> Value {
    json!({ "do": "rename", "place": itself(from), "to": itself(to) })
}

fn open(path: &str, open: &str, mode: &str) -> Value {
    json!({ "do": "open", "place": at(path), "open": open, "mode": mode })
}

fn hard_link(from: &str, to: &str) -> Value {
    json!({ "do": "link", "place": itself(from), "to": itself(to) })
}

fn repeat(times: u64, step: Value) -> Value {
    json!({ "do": "repeat", "times": times, "step": step })
}

/// A place seen from a descriptor that is held.
fn held(number: usize, path: &str) -> Value {
    json!({ "held": number, "path": path })
}

/// The first steps went well, all others were refused with one of these words.
fn after(steps: &Steps, fine: usize, words: &[&str]) -> Stopped {
    (0..fine).try_for_each(|step| steps.ok(step).map(drop))?;
    steps.all_refused(fine, words)
}

fn gave(steps: &Steps, step: usize, expected: &Value) -> Result<(), Escape> {
    let said = steps.ok(step)?;
    if said == expected {
        return Ok(());
    }
    Err(Escape::new(format!("step {step} gave {said}, not {expected}")))
}

fn step(what: &str, path: &str) -> Value {
    json!({ "do": what, "place": itself(path) })
}

async fn to_the_layer(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        write("a.txt"),
        step("mkdir", "files"),
        write("index"),
        write("files/1"),
        write("files/2"),
        read("a.txt"),
        write("../layer/index"),
        write("../layer/files/1"),
        write("files/../../layer/index"),
        read("../layer/index"),
        rename("index", "../layer/index"),
        hard_link("index", "../layer/files/9"),
    ]);
    let steps = jar.steps(steps).await?;
    after(&steps, 6, &["not-permitted"])
}

async fn shown_again(arena: &Arena) -> Stopped {
    arena.write("d/f", "text of f")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        step("unlink", "d/f"),
        rename("d", "e"),
        step("mkdir", "d"),
        rename("e", "d/e"),
        rename("d", "x"),
        step("mkdir", "d"),
        read("d/f"),
        read("e/f"),
        read("x/f"),
        read("x/e/f"),
    ]);
    let steps = jar.steps(steps).await?;
    after(&steps, 6, &["no-entry"])
}

async fn protected(arena: &Arena) -> Stopped {
    arena.write(".belljar/agents/it.md", "theirs")?;
    arena.write("AGENTS.md", "theirs")?;
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        write("a.txt"),
        write("AGENTS.md"),
        write("belljar.toml"),
        write(".belljar/agents/it.md"),
        write("agents.MD"),
        rename("a.txt", "belljar.toml"),
        rename("AGENTS.md", "b.txt"),
        rename(".belljar", "b"),
        step("unlink", "AGENTS.md"),
        step("set-times-at", "AGENTS.md"),
        hard_link("a.txt", "belljar.toml"),
    ]);
    after(&jar.steps(steps).await?, 1, &["not-permitted"])
}

async fn holes(arena: &Arena) -> Stopped {
    arena.write("sparse", "")?;
    let sparse = std::fs::File::options().write(true).open(arena.workspace().join("sparse"))?;
    sparse.set_len(16 << 20)?;
    let jar = overlaid(arena, OverlayQuota { bytes: 1 << 20, files: 100 }).await?;
    let steps = json!([
        { "do": "open", "place": at("a"), "open": "create", "mode": "write" },
        { "do": "set-size", "held": 0, "size": 1_u64 << 40 },
        { "do": "write", "held": 0, "len": 1, "offset": 1_u64 << 40 },
        { "do": "stream", "held": 0, "len": 1, "offset": 1_u64 << 40 },
        { "do": "open", "place": at("sparse"), "open": "", "mode": "write" },
    ]);
    let steps = jar.steps(steps).await?;
    steps.ok(0)?;
    steps.all_refused(1, &["insufficient-space", "No space left"])
}
