//! Protected names in an overlay, by every operation and in every spelling.

use super::{after, attack, hard_link, held, open, plenty, rename, step, write};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped};
use crate::attacks::files::{at, itself, link, read};
use belljar_sandbox::{Overlay, OverlayQuota};
use serde_json::{Value, json};

const PROTECTED: &str = "protected names are not changed in an overlay either (INV-173)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    attack(
        "files-overlay-protected-at-depth",
        "makes, writes, replaces and removes protected names in directories that it made and moved",
        PROTECTED,
        "not-permitted",
        |arena| Box::pin(at_depth(arena)),
    ),
    attack(
        "files-overlay-protected-spelled",
        "spells protected names as some file system would read them",
        PROTECTED,
        "not-permitted",
        |arena| Box::pin(spelled(arena)),
    ),
    attack(
        "files-overlay-protected-moved",
        "prepares a tree and moves it to a protected name, and moves what holds one, at any depth",
        PROTECTED,
        "not-permitted",
        |arena| Box::pin(moved(arena)),
    ),
    attack(
        "files-overlay-protected-meant",
        "writes, replaces and moves what a link with a protected name means",
        "what links of protected names mean is not changed in an overlay either (INV-173)",
        "not-permitted",
        |arena| Box::pin(meant(arena)),
    ),
    attack(
        "files-overlay-protected-descriptor",
        "holds protected directories and files, and changes them through what it holds",
        PROTECTED,
        "not-permitted",
        |arena| Box::pin(descriptor(arena)),
    ),
    attack(
        "files-overlay-layer-in-the-home",
        "lists, reads and moves the layer where the workspace is the home that it lies in",
        "what holds the layer is not seen through the overlay (INV-179)",
        "no-entry",
        |arena| Box::pin(layer_in_the_home(arena)),
    ),
];

async fn at_depth(arena: &Arena) -> Stopped {
    arena.write("sub/deep/AGENTS.md", "theirs")?;
    arena.write("sub/.belljar/agents/it.md", "theirs")?;
    arena.write("d/e/f", "text of f")?;
    let jar = plenty(arena).await?;
    let mut steps = vec![step("mkdir", "new"), rename("d", "new/d"), write("new/d/e/g")];
    for name in ["sub/deep/AGENTS.md", "sub/.belljar/agents/it.md"] {
        steps.extend([
            write(name),
            open(name, "", "write"),
            open(name, "truncate", "read"),
            open(name, "create", "read write"),
            step("unlink", name),
            step("set-times-at", name),
            rename(name, "new/x"),
            rename("new/d/e/g", name),
            hard_link(name, "new/x"),
        ]);
    }
    for name in ["new/AGENTS.md", "new/d/e/belljar.toml", "new/d/.belljar", "d/.belljar"] {
        steps.extend([write(name), step("mkdir", name), hard_link("new/d/e/g", name)]);
    }
    steps.push(step("rmdir", "sub/.belljar/agents"));
    after(&jar.steps(steps.into()).await?, 3, &["not-permitted", "no-entry"])
}

async fn spelled(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    arena.write("AGENTS.md", "theirs")?;
    let jar = plenty(arena).await?;
    let mut steps = vec![write("a.txt"), step("mkdir", "d")];
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
        steps.extend([write(name), step("mkdir", name), rename("a.txt", name)]);
    }
    after(&jar.steps(steps.into()).await?, 2, &["not-permitted"])
}

async fn moved(arena: &Arena) -> Stopped {
    arena.write("holds/a/b/AGENTS.md", "theirs")?;
    arena.write("other/f", "text of f")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        step("mkdir", "tree"),
        step("mkdir", "tree/agents"),
        write("tree/agents/it.md"),
        rename("other", "tree/other"),
        rename("tree", ".belljar"),
        rename("tree", "tree/.belljar"),
        rename("tree/agents", "holds/.BellJar"),
        rename("tree/agents/it.md", "holds/AGENTS.md"),
        rename("holds", "x"),
        rename("holds/a", "x"),
        rename("holds/a/b", "tree/b"),
        rename("tree", "holds/a/b/AGENTS.md"),
        hard_link("tree/agents/it.md", "holds/a/agents.md"),
    ]);
    after(&jar.steps(steps).await?, 4, &["not-permitted", "not-empty"])
}

async fn meant(arena: &Arena) -> Stopped {
    arena.write("real.md", "theirs")?;
    arena.write("way/real.toml", "theirs")?;
    arena.write("a.txt", "text of a")?;
    link(arena, "real.md", "AGENTS.md")?;
    link(arena, "way/real.toml", "belljar.toml")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        write("a.txt"),
        write("real.md"),
        write("AGENTS.md"),
        open("real.md", "truncate", "write"),
        step("unlink", "real.md"),
        step("set-times-at", "real.md"),
        rename("a.txt", "real.md"),
        rename("real.md", "b.md"),
        write("way/real.toml"),
        rename("way", "aside"),
        rename("AGENTS.md", "x"),
        hard_link("real.md", "x"),
    ]);
    after(&jar.steps(steps).await?, 1, &["not-permitted"])
}

async fn descriptor(arena: &Arena) -> Stopped {
    arena.write(".belljar/agents/it.md", "theirs")?;
    arena.write("sub/AGENTS.md", "theirs")?;
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        open(".belljar", "directory", "read mutate"),
        open(".belljar/agents", "directory", "read"),
        open("sub/AGENTS.md", "", "read"),
        open("sub", "directory", "read mutate"),
        { "do": "write-file", "place": held(1, "it.md"), "text": "mine" },
        { "do": "open", "place": held(1, "new.md"), "open": "create", "mode": "write" },
        { "do": "mkdir", "place": held(0, "skills") },
        { "do": "unlink", "place": held(1, "it.md") },
        { "do": "rename", "place": held(0, "agents"), "to": itself("x") },
        { "do": "rename", "place": itself("a.txt"), "to": itself(".belljar/agents/a.md") },
        { "do": "write", "held": 2, "len": 4, "offset": 0 },
        { "do": "set-size", "held": 2, "size": 0 },
        { "do": "set-times", "held": 2, "seconds": 1 },
        { "do": "set-times", "held": 0, "seconds": 1 },
        { "do": "write-file", "place": held(3, "AGENTS.md"), "text": "mine" },
        { "do": "mkdir", "place": held(3, ".belljar") },
    ]);
    let words = ["not-permitted", "bad-descriptor", "read-only", "invalid"];
    after(&jar.steps(steps).await?, 4, &words)
}

async fn layer_in_the_home(arena: &Arena) -> Stopped {
    arena.write("me/.belljar/sessions/other/files/1", "another's")?;
    arena.write("me/a.txt", "text of a")?;
    link(arena, "me/.belljar", "aside")?;
    let home = arena.workspace().join("me/.belljar/sessions");
    let overlay = Overlay::open(arena.workspace(), home.join("mine"), OverlayQuota::default());
    let overlay = overlay.map_err(|error| Escape::new(error.to_string()))?;
    // Its own index lies in the workspace; what is there besides is compared below.
    let jar = arena.jar(&[crate::guests::PROBE]).over(&overlay).unsealed().open().await?;
    let list = |path: &str| json!({ "do": "list", "place": at(path) });
    let fine = json!([write("me/a.txt"), read("me/a.txt"), list("me"), step("mkdir", "me/new")]);
    let fine = jar.steps(fine).await?;
    super::gave(&fine, 1, &json!("mine"))?;
    let seen = fine.ok(2)?.as_array().map(Vec::len);
    if seen != Some(1) {
        return Err(Escape::new(format!("{seen:?} names were listed, not 1")));
    }
    let mut steps: Vec<Value> = Vec::new();
    for way in ["me/.belljar", "aside", "me/new/../.belljar", "me/../aside"] {
        steps.extend([
            list(way),
            list(&format!("{way}/sessions")),
            read(&format!("{way}/sessions/mine/index")),
            read(&format!("{way}/sessions/mine/files/1")),
            read(&format!("{way}/sessions/other/files/1")),
            write(&format!("{way}/sessions/mine/index")),
        ]);
    }
    steps.extend([
        step("stat", "me/.belljar"),
        step("mkdir", "me/.belljar"),
        write("me/.belljar"),
        rename("me/.belljar", "x"),
        rename("me", "x"),
        rename("me/new", "me/.belljar"),
        step("unlink", "me/a.txt/../.belljar"),
    ]);
    let words = ["no-entry", "not-permitted", "not-directory"];
    let stopped = jar.steps(steps.into()).await?.all_refused(0, &words)?;
    let emptied = jar.steps(json!([
        step("unlink", "me/a.txt"),
        step("rmdir", "me/new"),
        step("rmdir", "me"),
    ]));
    after(&emptied.await?, 2, &["not-empty"])?;
    let other = std::fs::read_to_string(home.join("other/files/1"))?;
    let below = std::fs::read_to_string(arena.workspace().join("me/a.txt"))?;
    if other != "another's" || below != "text of a" {
        return Err(Escape::new("something below was written"));
    }
    Ok(stopped)
}
