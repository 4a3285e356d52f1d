//! Protected names in an overlay, by every operation and in every spelling.

use super::{
    check_refused_after, hard_link, held_place, open_step, open_unlimited, overlay_attack,
    place_step, rename_step, write_step,
};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped};
use crate::attacks::files::{make_link, place_at, place_itself, read_step};
use belljar_sandbox::{Overlay, OverlayQuota};
use serde_json::{Value, json};

const PROTECTED: &str = "protected names are not changed in an overlay either (INV-173)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    overlay_attack(
        "files-overlay-protected-at-depth",
        "makes, writes, replaces and removes protected names in directories that it made and moved",
        PROTECTED,
        "not-permitted",
        |arena| Box::pin(at_depth(arena)),
    ),
    overlay_attack(
        "files-overlay-protected-spelled",
        "spells protected names as some file system would read them",
        PROTECTED,
        "not-permitted",
        |arena| Box::pin(spell_protected_names(arena)),
    ),
    overlay_attack(
        "files-overlay-protected-moved",
        "prepares a tree and moves it to a protected name, and moves what holds one, at any depth",
        PROTECTED,
        "not-permitted",
        |arena| Box::pin(move_to_protected(arena)),
    ),
    overlay_attack(
        "files-overlay-protected-meant",
        "writes, replaces and moves what a link with a protected name means",
        "what links of protected names mean is not changed in an overlay either (INV-173)",
        "not-permitted",
        |arena| Box::pin(write_through_link(arena)),
    ),
    overlay_attack(
        "files-overlay-protected-descriptor",
        "holds protected directories and files, and changes them through what it holds",
        PROTECTED,
        "not-permitted",
        |arena| Box::pin(write_held_protected(arena)),
    ),
    overlay_attack(
        "files-overlay-layer-in-the-home",
        "lists, reads and moves the layer where the workspace is the home that it lies in",
        "what holds the layer is not seen through the overlay (INV-179)",
        "no-entry",
        |arena| Box::pin(layer_in_the_home(arena)),
    ),
];

/// Attack `files-overlay-protected-at-depth`: the attacker makes, writes, replaces and removes protected
/// names in directories that it made and moved.
async fn at_depth(arena: &Arena) -> Stopped {
    arena.write_file("sub/deep/AGENTS.md", "theirs")?;
    arena.write_file("sub/.belljar/agents/it.md", "theirs")?;
    arena.write_file("d/e/f", "text of f")?;
    let jar = open_unlimited(arena).await?;
    let mut steps =
        vec![place_step("mkdir", "new"), rename_step("d", "new/d"), write_step("new/d/e/g")];
    for name in ["sub/deep/AGENTS.md", "sub/.belljar/agents/it.md"] {
        steps.extend([
            write_step(name),
            open_step(name, "", "write"),
            open_step(name, "truncate", "read"),
            open_step(name, "create", "read write"),
            place_step("unlink", name),
            place_step("set-times-at", name),
            rename_step(name, "new/x"),
            rename_step("new/d/e/g", name),
            hard_link(name, "new/x"),
        ]);
    }
    for name in ["new/AGENTS.md", "new/d/e/belljar.toml", "new/d/.belljar", "d/.belljar"] {
        steps.extend([write_step(name), place_step("mkdir", name), hard_link("new/d/e/g", name)]);
    }
    steps.push(place_step("rmdir", "sub/.belljar/agents"));
    check_refused_after(&jar.run_steps(steps.into()).await?, 3, &["not-permitted", "no-entry"])
}

/// Attack `files-overlay-protected-spelled`: the attacker spells protected names as some file system would
/// read them.
async fn spell_protected_names(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    arena.write_file("AGENTS.md", "theirs")?;
    let jar = open_unlimited(arena).await?;
    let mut steps = vec![write_step("a.txt"), place_step("mkdir", "d")];
    for name in [
        "agents.md",
        "AGENTS.MD",
        "AGENTS.md.",
        "AGENTS.md ",
        "AGENTS.md::$DATA",
        "AGENT\u{17f}.md",
        "d/Belljar.Toml",
        "d/belljar.toml. .",
        "d/.BELLJAR",
        "d/.bell\u{200c}jar",
        "d/.belljar\u{feff}",
        "d/../AGENTS.md",
        "./AGENTS.md",
    ] {
        steps.extend([write_step(name), place_step("mkdir", name), rename_step("a.txt", name)]);
    }
    check_refused_after(&jar.run_steps(steps.into()).await?, 2, &["not-permitted"])
}

/// Attack `files-overlay-protected-moved`: the attacker prepares a tree and moves it to a protected name, and
/// moves what holds one, at any depth.
async fn move_to_protected(arena: &Arena) -> Stopped {
    arena.write_file("holds/a/b/AGENTS.md", "theirs")?;
    arena.write_file("other/f", "text of f")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        place_step("mkdir", "tree"),
        place_step("mkdir", "tree/agents"),
        write_step("tree/agents/it.md"),
        rename_step("other", "tree/other"),
        rename_step("tree", ".belljar"),
        rename_step("tree", "tree/.belljar"),
        rename_step("tree/agents", "holds/.BellJar"),
        rename_step("tree/agents/it.md", "holds/AGENTS.md"),
        rename_step("holds", "x"),
        rename_step("holds/a", "x"),
        rename_step("holds/a/b", "tree/b"),
        rename_step("tree", "holds/a/b/AGENTS.md"),
        hard_link("tree/agents/it.md", "holds/a/agents.md"),
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 4, &["not-permitted", "not-empty"])
}

/// Attack `files-overlay-protected-meant`: the attacker writes, replaces and moves what a link with a
/// protected name means.
async fn write_through_link(arena: &Arena) -> Stopped {
    arena.write_file("real.md", "theirs")?;
    arena.write_file("way/real.toml", "theirs")?;
    arena.write_file("a.txt", "text of a")?;
    make_link(arena, "real.md", "AGENTS.md")?;
    make_link(arena, "way/real.toml", "belljar.toml")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        write_step("a.txt"),
        write_step("real.md"),
        write_step("AGENTS.md"),
        open_step("real.md", "truncate", "write"),
        place_step("unlink", "real.md"),
        place_step("set-times-at", "real.md"),
        rename_step("a.txt", "real.md"),
        rename_step("real.md", "b.md"),
        write_step("way/real.toml"),
        rename_step("way", "aside"),
        rename_step("AGENTS.md", "x"),
        hard_link("real.md", "x"),
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 1, &["not-permitted"])
}

/// Attack `files-overlay-protected-descriptor`: the attacker holds protected directories and files, and
/// changes them through what it holds.
async fn write_held_protected(arena: &Arena) -> Stopped {
    arena.write_file(".belljar/agents/it.md", "theirs")?;
    arena.write_file("sub/AGENTS.md", "theirs")?;
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        open_step(".belljar", "directory", "read mutate"),
        open_step(".belljar/agents", "directory", "read"),
        open_step("sub/AGENTS.md", "", "read"),
        open_step("sub", "directory", "read mutate"),
        { "do": "write-file", "place": held_place(1, "it.md"), "text": "mine" },
        { "do": "open", "place": held_place(1, "new.md"), "open": "create", "mode": "write" },
        { "do": "mkdir", "place": held_place(0, "skills") },
        { "do": "unlink", "place": held_place(1, "it.md") },
        { "do": "rename", "place": held_place(0, "agents"), "to": place_itself("x") },
        { "do": "rename", "place": place_itself("a.txt"), "to": place_itself(".belljar/agents/a.md") },
        { "do": "write", "held": 2, "len": 4, "offset": 0 },
        { "do": "set-size", "held": 2, "size": 0 },
        { "do": "set-times", "held": 2, "seconds": 1 },
        { "do": "set-times", "held": 0, "seconds": 1 },
        { "do": "write-file", "place": held_place(3, "AGENTS.md"), "text": "mine" },
        { "do": "mkdir", "place": held_place(3, ".belljar") },
    ]);
    let words = ["not-permitted", "bad-descriptor", "read-only", "invalid"];
    check_refused_after(&jar.run_steps(steps).await?, 4, &words)
}

/// Attack `files-overlay-layer-in-the-home`: the attacker lists, reads and moves the layer where the
/// workspace is the home that it lies in.
async fn layer_in_the_home(arena: &Arena) -> Stopped {
    arena.write_file("me/.belljar/sessions/other/files/1", "another's")?;
    arena.write_file("me/a.txt", "text of a")?;
    make_link(arena, "me/.belljar", "aside")?;
    let home = arena.workspace().join("me/.belljar/sessions");
    let overlay = Overlay::open(arena.workspace(), home.join("mine"), OverlayQuota::default());
    let overlay = overlay.map_err(|error| Escape::new(error.to_string()))?;
    // The layer's own index is in the workspace in this attack; the rest of the workspace is compared below.
    let jar = arena
        .jar_builder(&[crate::guests::PROBE])
        .with_shared_overlay(&overlay)
        .without_seal()
        .open()
        .await?;
    let list = |path: &str| json!({ "do": "list", "place": place_at(path) });
    let fine = json!([
        write_step("me/a.txt"),
        read_step("me/a.txt"),
        list("me"),
        place_step("mkdir", "me/new")
    ]);
    let fine = jar.run_steps(fine).await?;
    super::check_step_value(&fine, 1, &json!("mine"))?;
    let seen = fine.step_value(2)?.as_array().map(Vec::len);
    if seen != Some(1) {
        return Err(Escape::new(format!("{seen:?} names were listed, not 1")));
    }
    let mut steps: Vec<Value> = Vec::new();
    for way in ["me/.belljar", "aside", "me/new/../.belljar", "me/../aside"] {
        steps.extend([
            list(way),
            list(&format!("{way}/sessions")),
            read_step(&format!("{way}/sessions/mine/index")),
            read_step(&format!("{way}/sessions/mine/files/1")),
            read_step(&format!("{way}/sessions/other/files/1")),
            write_step(&format!("{way}/sessions/mine/index")),
        ]);
    }
    steps.extend([
        place_step("stat", "me/.belljar"),
        place_step("mkdir", "me/.belljar"),
        write_step("me/.belljar"),
        rename_step("me/.belljar", "x"),
        rename_step("me", "x"),
        rename_step("me/new", "me/.belljar"),
        place_step("unlink", "me/a.txt/../.belljar"),
    ]);
    let words = ["no-entry", "not-permitted", "not-directory"];
    let stopped = jar.run_steps(steps.into()).await?.all_refused(0, &words)?;
    let emptied = jar.run_steps(json!([
        place_step("unlink", "me/a.txt"),
        place_step("rmdir", "me/new"),
        place_step("rmdir", "me"),
    ]));
    check_refused_after(&emptied.await?, 2, &["not-empty"])?;
    let other = std::fs::read_to_string(home.join("other/files/1"))?;
    let below = std::fs::read_to_string(arena.workspace().join("me/a.txt"))?;
    if other != "another's" || below != "text of a" {
        return Err(Escape::new("something below was written"));
    }
    Ok(stopped)
}
