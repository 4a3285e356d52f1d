//! Hostile names, for example a layer's own, special names of other systems, and doubles.

use super::{after, attack, gave, hard_link, open, plenty, rename, step, write};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped};
use crate::attacks::files::{at, itself, link, read};
use belljar_sandbox::OverlayQuota;
use serde_json::{Value, json};

const NO_NAME: &str =
    "no name of a guest becomes one in the layer, and no path leads there (INV-171)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    attack(
        "files-overlay-forged-index",
        "writes records and heads of an index into files named as the index, and has it read again",
        NO_NAME,
        "no-entry",
        |arena| Box::pin(forged_index(arena)),
    ),
    attack(
        "files-overlay-whiteouts",
        "makes the names with which other overlays hide and show files",
        "what is hidden stands in the index, which no name reaches (INV-171, INV-172)",
        "no-entry",
        |arena| Box::pin(whiteouts(arena)),
    ),
    attack(
        "files-overlay-numbers",
        "makes files named as the numbers of contents, writes and moves them over each other",
        NO_NAME,
        "not-permitted",
        |arena| Box::pin(numbers(arena)),
    ),
    attack(
        "files-overlay-dots",
        "names the layer by paths that go up, from directories that it has made, moved and removed",
        NO_NAME,
        "not-permitted",
        |arena| Box::pin(dots(arena)),
    ),
    attack(
        "files-overlay-proc",
        "opens the layer through /proc and the paths of descriptors, and through links there",
        NO_NAME,
        "not-permitted",
        |arena| Box::pin(proc(arena)),
    ),
    attack(
        "files-overlay-case-doubles",
        "writes, removes and moves a file whose name differs by its case alone",
        "names are bytes: what has another spelling is another file (INV-170)",
        "no-entry",
        |arena| Box::pin(case_doubles(arena)),
    ),
    attack(
        "files-overlay-unicode-doubles",
        "writes and removes a file whose name is the same letter composed otherwise",
        "names are bytes: what has another spelling is another file (INV-170)",
        "no-entry",
        |arena| Box::pin(unicode_doubles(arena)),
    ),
    attack(
        "files-overlay-endless-names",
        "makes names and paths longer than any file system has, in directories of the index alone",
        "names and paths are bounded before they are written down (INV-174)",
        "name-too-long",
        |arena| Box::pin(endless(arena)),
    ),
    attack(
        "files-overlay-empty-names",
        "makes, moves and removes names that are empty, dots, slashes or hold a NUL",
        "a path is resolved to a plain name in an open directory first (INV-170)",
        "invalid",
        |arena| Box::pin(empty(arena)),
    ),
];

async fn forged_index(arena: &Arena) -> Stopped {
    arena.write("kept", "kept")?;
    arena.write("gone", "gone")?;
    let text = "belljar overlay 1\n\u{4}\u{0}\u{0}\u{0}";
    let forge = |path: &str| json!({ "do": "write-file", "place": at(path), "text": text });
    let names = ["index", "index.next", "base", "lock", "empty", "files/1", "files/index"];
    let overlay = arena.overlay(OverlayQuota::default())?;
    let jar = arena.jar(&[crate::guests::PROBE]).over(&overlay).make().await?;
    let mut steps = vec![step("unlink", "gone"), step("mkdir", "files")];
    steps.extend(names.iter().map(|name| forge(name)));
    let steps = jar.steps(steps.into()).await?;
    (0..names.len() + 2).try_for_each(|step| steps.ok(step).map(drop))?;
    jar.close().await?;
    drop((jar, overlay));
    let jar = plenty(arena).await?;
    let mut again: Vec<Value> = names.iter().map(|name| read(name)).collect();
    again.extend([read("kept"), read("gone"), read("../layer/index")]);
    let steps = jar.steps(again.into()).await?;
    (0..names.len()).try_for_each(|step| gave(&steps, step, &json!(text)))?;
    gave(&steps, names.len(), &json!("kept"))?;
    steps.all_refused(names.len() + 1, &["no-entry", "not-permitted"])
}

async fn whiteouts(arena: &Arena) -> Stopped {
    arena.write("d/kept", "kept")?;
    arena.write("d/gone", "gone")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        step("unlink", "d/gone"),
        write("d/.wh.kept"),
        write("d/.wh..wh..opq"),
        write("d/.wh.gone"),
        step("unlink", "d/.wh.gone"),
        write("d/.wh..wh.gone"),
        rename("d", "e"),
        read("e/kept"),
        read("e/gone"),
        read("d/gone"),
        read("d/.wh.kept"),
    ]);
    let steps = jar.steps(steps).await?;
    gave(&steps, 7, &json!("kept"))?;
    after(&steps, 8, &["no-entry"])
}

async fn numbers(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let text = |path: &str| json!({ "do": "write-file", "place": at(path), "text": path });
    let steps = json!([
        write("a.txt"),
        text("0"),
        text("1"),
        text("2"),
        text("ffffffffffffffff"),
        rename("1", "2"),
        rename("ffffffffffffffff", "1"),
        read("0"),
        read("1"),
        read("2"),
        read("a.txt"),
        read("../layer/files/1"),
        write("../layer/files/2"),
        rename("2", "../layer/files/1"),
        hard_link("2", "../layer/files/7"),
        step("unlink", "../layer/files/1"),
    ]);
    let steps = jar.steps(steps).await?;
    for (step, text) in [(7, "0"), (8, "ffffffffffffffff"), (9, "1"), (10, "mine")] {
        gave(&steps, step, &json!(text))?;
    }
    after(&steps, 11, &["not-permitted"])
}

async fn dots(arena: &Arena) -> Stopped {
    arena.write("d/f", "text of f")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        step("mkdir", "d/made"),
        rename("d/made", "moved"),
        open("moved", "directory", "read mutate"),
        step("rmdir", "moved"),
        read("../layer/index"),
        read("d/../../layer/index"),
        write("./../layer/index"),
        write("d/./../../layer/files/1"),
        step("mkdir", "../layer/more"),
        rename("d", "../layer/d"),
        rename("../layer", "stolen"),
        { "do": "list", "place": at("..") },
        { "do": "read-file", "place": super::held(0, "../layer/index") },
        { "do": "mkdir", "place": super::held(0, "../../layer/more") },
    ]);
    after(&jar.steps(steps).await?, 4, &["not-permitted"])
}

async fn proc(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    link(arena, "/proc/self/fd", "fd")?;
    link(arena, "/proc/self/cwd", "cwd")?;
    link(arena, "/dev/fd/3", "three")?;
    let jar = plenty(arena).await?;
    let mut steps = vec![write("a.txt"), open("a.txt", "", "read write")];
    let layer = arena.path("layer");
    let index = layer.join("index");
    for path in ["/proc/self/fd/3", "/proc/self/root", "/dev/fd/3", "fd/3", "cwd/layer", "three"] {
        steps.extend([read(path), write(path)]);
    }
    steps.extend([read(&index.to_string_lossy()), write(&index.to_string_lossy())]);
    steps.push(hard_link("/proc/self/fd/3", "stolen"));
    steps.push(rename("a.txt", &layer.join("a").to_string_lossy()));
    after(&jar.steps(steps.into()).await?, 2, &["not-permitted"])
}

async fn case_doubles(arena: &Arena) -> Stopped {
    arena.write("Read.md", "text of it")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        write("READ.MD"),
        rename("READ.MD", "read.md"),
        read("Read.md"),
        step("unlink", "read.md"),
        read("Read.md"),
        read("read.md"),
        read("READ.MD"),
        step("unlink", "rEAD.md"),
        rename("reaD.md", "x"),
    ]);
    let steps = jar.steps(steps).await?;
    gave(&steps, 2, &json!("text of it"))?;
    gave(&steps, 4, &json!("text of it"))?;
    after(&steps, 5, &["no-entry"])
}

async fn unicode_doubles(arena: &Arena) -> Stopped {
    let (composed, apart) = ("\u{e9}.txt", "e\u{301}.txt");
    arena.write(composed, "composed")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        write(apart),
        read(composed),
        step("unlink", composed),
        read(apart),
        step("unlink", apart),
        read(apart),
        read(composed),
        rename(apart, composed),
    ]);
    let steps = jar.steps(steps).await?;
    gave(&steps, 1, &json!("composed"))?;
    gave(&steps, 3, &json!("mine"))?;
    after(&steps, 5, &["no-entry"])
}

async fn endless(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let (long, deep) = ("x".repeat(256), "d/".repeat(2_000));
    let below = format!("made/{long}");
    let steps = json!([
        step("mkdir", "made"),
        write("made/a"),
        { "do": "descend", "depth": 1_000 },
        step("mkdir", &below),
        write(&below),
        rename("a.txt", &below),
        rename("made", &long),
        hard_link("a.txt", &below),
        step("mkdir", &deep),
        write(&format!("{deep}{deep}x")),
    ]);
    let steps = jar.steps(steps).await?;
    let made = steps.ok(2)?.get("made").and_then(Value::as_u64).unwrap_or(u64::MAX);
    if made > 256 {
        return Err(Escape::new(format!("{made} directories were made below each other")));
    }
    after(&steps, 3, &["name-too-long"])
}

async fn empty(arena: &Arena) -> Stopped {
    arena.write("a.txt", "text of a")?;
    let jar = plenty(arena).await?;
    let steps = json!([
        write("a.txt"),
        write("a\0b"),
        rename("a.txt", "b\0"),
        step("mkdir", ""),
        step("mkdir", "."),
        step("mkdir", "./"),
        rename("a.txt", ""),
        rename("a.txt", "."),
        rename(".", "b"),
        step("unlink", "."),
        step("rmdir", "."),
        { "do": "link", "place": itself("a.txt"), "to": itself("./") },
    ]);
    let words = ["invalid", "no-entry", "exist", "busy", "is-directory", "not-directory"];
    after(&jar.steps(steps).await?, 1, &words)
}
