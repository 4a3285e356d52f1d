//! Attacks on overlays: writes go to a layer, and afterwards the workspace below must be unchanged.

pub(super) mod hidden;
pub(super) mod links;
pub(super) mod names;
pub(super) mod protected;
pub(super) mod quota;
pub(super) mod shared;

use belljar_sandbox::OverlayQuota;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{place_at, place_itself, read_step};
use crate::Arena;
use crate::attack::{Attack, AttackKind, Escape, Stopped};
use crate::guests;
use crate::jar::{OpenJar, StepResults};

pub(super) const ATTACKS: &[Attack<crate::Arena>] = &[
    Attack {
        id: "files-overlay-to-the-layer",
        kind: AttackKind::Files,
        tries: "makes files named as the layer's own, and writes to the layer by paths that lead out",
        stopped_by: "no name of a guest becomes one in the layer, and no path leads there (INV-171)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(to_the_layer(arena)),
    },
    Attack {
        id: "files-overlay-shown-again",
        kind: AttackKind::Files,
        tries: "removes a file of an overlay, and moves and makes directories until it is seen again",
        stopped_by: "what was hidden stays hidden where it lay and where it was moved (INV-172)",
        told: "no-entry",
        embedded: true,
        run: |arena| Box::pin(shown_again(arena)),
    },
    Attack {
        id: "files-overlay-protected-names",
        kind: AttackKind::Files,
        tries: "changes, replaces and moves protected names in an overlay",
        stopped_by: "protected names are not changed in an overlay either (INV-173)",
        told: "not-permitted",
        embedded: true,
        run: |arena| Box::pin(write_protected_names(arena)),
    },
    Attack {
        id: "files-overlay-holes",
        kind: AttackKind::Files,
        tries: "fills an overlay with holes, and has a sparse file larger than it copied",
        stopped_by: "a layer holds what its files are long, before they are (INV-174)",
        told: "insufficient-space",
        embedded: true,
        run: |arena| Box::pin(write_sparse_holes(arena)),
    },
];

type Run = for<'a> fn(&'a Arena) -> BoxFuture<'a, Stopped>;

/// Makes a row for an attack on an overlay. Afterwards the workspace below is compared with its state before.
const fn overlay_attack(
    id: &'static str,
    tries: &'static str,
    stopped_by: &'static str,
    told: &'static str,
    run: Run,
) -> Attack<Arena> {
    Attack { id, kind: AttackKind::Files, tries, stopped_by, told, embedded: true, run }
}

async fn open_unlimited(arena: &Arena) -> Result<OpenJar, Escape> {
    open_overlaid(arena, OverlayQuota::default()).await
}

/// Opens a jar with an overlay whose workspace the owner changes during the attack, so the attack itself
/// compares it.
async fn open_unsealed(arena: &Arena) -> Result<OpenJar, Escape> {
    arena
        .jar_builder(&[guests::PROBE])
        .with_overlay(OverlayQuota::default())
        .without_seal()
        .open()
        .await
}

async fn open_overlaid(arena: &Arena, quota: OverlayQuota) -> Result<OpenJar, Escape> {
    let most = u64::MAX / 4;
    let builder = arena.jar_builder(&[guests::PROBE]).with_overlay(quota);
    builder.with_limits(|limits| limits.write_bytes = most).open().await
}

fn write_step(path: &str) -> Value {
    json!({ "do": "write-file", "place": place_at(path), "text": "mine" })
}

fn rename_step(from: &str, to: &str) -> Value {
    json!({ "do": "rename", "place": place_itself(from), "to": place_itself(to) })
}

fn open_step(path: &str, open: &str, mode: &str) -> Value {
    json!({ "do": "open", "place": place_at(path), "open": open, "mode": mode })
}

fn hard_link(from: &str, to: &str) -> Value {
    json!({ "do": "link", "place": place_itself(from), "to": place_itself(to) })
}

fn repeat_step(times: u64, step: Value) -> Value {
    json!({ "do": "repeat", "times": times, "step": step })
}

/// A path relative to the descriptor that the probe holds under the given number.
fn held_place(number: usize, path: &str) -> Value {
    json!({ "held": number, "path": path })
}

/// Checks that the first `fine` steps succeeded, and that all others were refused with one of the given
/// words.
fn check_refused_after(steps: &StepResults, fine: usize, words: &[&str]) -> Stopped {
    (0..fine).try_for_each(|step| steps.step_value(step).map(drop))?;
    steps.all_refused(fine, words)
}

/// Checks that a step succeeded with the expected value.
fn check_step_value(steps: &StepResults, step: usize, expected: &Value) -> Result<(), Escape> {
    let said = steps.step_value(step)?;
    if said == expected {
        return Ok(());
    }
    Err(Escape::new(format!("step {step} gave {said}, not {expected}")))
}

fn place_step(what: &str, path: &str) -> Value {
    json!({ "do": what, "place": place_itself(path) })
}

/// Attack `files-overlay-to-the-layer`: the attacker makes files named as the layer's own, and writes to the
/// layer by paths that lead out.
async fn to_the_layer(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        write_step("a.txt"),
        place_step("mkdir", "files"),
        write_step("index"),
        write_step("files/1"),
        write_step("files/2"),
        read_step("a.txt"),
        write_step("../layer/index"),
        write_step("../layer/files/1"),
        write_step("files/../../layer/index"),
        read_step("../layer/index"),
        rename_step("index", "../layer/index"),
        hard_link("index", "../layer/files/9"),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_refused_after(&steps, 6, &["not-permitted"])
}

/// Attack `files-overlay-shown-again`: the attacker removes a file of an overlay, and moves and makes
/// directories until it is seen again.
async fn shown_again(arena: &Arena) -> Stopped {
    arena.write_file("d/f", "text of f")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        place_step("unlink", "d/f"),
        rename_step("d", "e"),
        place_step("mkdir", "d"),
        rename_step("e", "d/e"),
        rename_step("d", "x"),
        place_step("mkdir", "d"),
        read_step("d/f"),
        read_step("e/f"),
        read_step("x/f"),
        read_step("x/e/f"),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_refused_after(&steps, 6, &["no-entry"])
}

/// Attack `files-overlay-protected-names`: the attacker changes, replaces and moves protected names in an
/// overlay.
async fn write_protected_names(arena: &Arena) -> Stopped {
    arena.write_file(".belljar/agents/it.md", "theirs")?;
    arena.write_file("AGENTS.md", "theirs")?;
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        write_step("a.txt"),
        write_step("AGENTS.md"),
        write_step("belljar.toml"),
        write_step(".belljar/agents/it.md"),
        write_step("agents.MD"),
        rename_step("a.txt", "belljar.toml"),
        rename_step("AGENTS.md", "b.txt"),
        rename_step(".belljar", "b"),
        place_step("unlink", "AGENTS.md"),
        place_step("set-times-at", "AGENTS.md"),
        hard_link("a.txt", "belljar.toml"),
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 1, &["not-permitted"])
}

/// Attack `files-overlay-holes`: the attacker fills an overlay with holes, and has a sparse file larger than
/// it copied.
async fn write_sparse_holes(arena: &Arena) -> Stopped {
    arena.write_file("sparse", "")?;
    let sparse = std::fs::File::options().write(true).open(arena.workspace().join("sparse"))?;
    sparse.set_len(16 << 20)?;
    let jar = open_overlaid(arena, OverlayQuota { bytes: 1 << 20, files: 100 }).await?;
    let steps = json!([
        { "do": "open", "place": place_at("a"), "open": "create", "mode": "write" },
        { "do": "set-size", "held": 0, "size": 1_u64 << 40 },
        { "do": "write", "held": 0, "len": 1, "offset": 1_u64 << 40 },
        { "do": "stream", "held": 0, "len": 1, "offset": 1_u64 << 40 },
        { "do": "open", "place": place_at("sparse"), "open": "", "mode": "write" },
    ]);
    let steps = jar.run_steps(steps).await?;
    steps.step_value(0)?;
    steps.all_refused(1, &["insufficient-space", "No space left"])
}
