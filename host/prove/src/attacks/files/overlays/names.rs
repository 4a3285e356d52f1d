//! Attacks on overlays by names, for example those of the layer's own files, special names of other systems,
//! and names that look equal.

use super::{
    check_refused_after, check_step_value, hard_link, open_step, open_unlimited, overlay_attack,
    place_step, rename_step, write_step,
};
use crate::Arena;
use crate::attack::{Attack, Escape, Stopped};
use crate::attacks::files::{make_link, place_at, place_itself, read_step};
use belljar_sandbox::OverlayQuota;
use serde_json::{Value, json};

const NO_NAME: &str =
    "no name of a guest becomes one in the layer, and no path leads there (INV-171)";

pub(in crate::attacks::files) const ATTACKS: &[Attack<Arena>] = &[
    overlay_attack(
        "files-overlay-forged-index",
        "writes records and heads of an index into files named as the index, and has it read again",
        NO_NAME,
        "no-entry",
        |arena| Box::pin(forged_index(arena)),
    ),
    overlay_attack(
        "files-overlay-whiteouts",
        "makes the names with which other overlays hide and show files",
        "what is hidden stands in the index, which no name reaches (INV-171, INV-172)",
        "no-entry",
        |arena| Box::pin(make_whiteout_names(arena)),
    ),
    overlay_attack(
        "files-overlay-numbers",
        "makes files named as the numbers of contents, writes and moves them over each other",
        NO_NAME,
        "not-permitted",
        |arena| Box::pin(make_number_names(arena)),
    ),
    overlay_attack(
        "files-overlay-dots",
        "names the layer by paths that go up, from directories that it has made, moved and removed",
        NO_NAME,
        "not-permitted",
        |arena| Box::pin(climb_to_layer(arena)),
    ),
    overlay_attack(
        "files-overlay-proc",
        "opens the layer through /proc and the paths of descriptors, and through links there",
        NO_NAME,
        "not-permitted",
        |arena| Box::pin(open_through_proc(arena)),
    ),
    overlay_attack(
        "files-overlay-case-doubles",
        "writes, removes and moves a file whose name differs by its case alone",
        "names are bytes: what has another spelling is another file (INV-170)",
        "no-entry",
        |arena| Box::pin(case_doubles(arena)),
    ),
    overlay_attack(
        "files-overlay-unicode-doubles",
        "writes and removes a file whose name is the same letter composed otherwise",
        "names are bytes: what has another spelling is another file (INV-170)",
        "no-entry",
        |arena| Box::pin(unicode_doubles(arena)),
    ),
    overlay_attack(
        "files-overlay-endless-names",
        "makes names and paths longer than any file system has, in directories of the index alone",
        "names and paths are bounded before they are written down (INV-174)",
        "name-too-long",
        |arena| Box::pin(make_endless_names(arena)),
    ),
    overlay_attack(
        "files-overlay-empty-names",
        "makes, moves and removes names that are empty, dots, slashes or hold a NUL",
        "a path is resolved to a plain name in an open directory first (INV-170)",
        "invalid",
        |arena| Box::pin(make_empty_names(arena)),
    ),
];

/// Attack `files-overlay-forged-index`: the attacker writes records and heads of an index into files named as
/// the index, and has it read again.
async fn forged_index(arena: &Arena) -> Stopped {
    arena.write_file("kept", "kept")?;
    arena.write_file("gone", "gone")?;
    let text = "belljar overlay 1\n\u{4}\u{0}\u{0}\u{0}";
    let forge = |path: &str| json!({ "do": "write-file", "place": place_at(path), "text": text });
    let names = ["index", "index.next", "base", "lock", "empty", "files/1", "files/index"];
    let overlay = arena.open_overlay(OverlayQuota::default())?;
    let jar = arena
        .jar_builder(&[crate::guests::PROBE])
        .with_shared_overlay(&overlay)
        .open_unremembered()
        .await?;
    let mut steps = vec![place_step("unlink", "gone"), place_step("mkdir", "files")];
    steps.extend(names.iter().map(|name| forge(name)));
    let steps = jar.run_steps(steps.into()).await?;
    (0..names.len() + 2).try_for_each(|step| steps.step_value(step).map(drop))?;
    jar.close().await?;
    drop((jar, overlay));
    let jar = open_unlimited(arena).await?;
    let mut again: Vec<Value> = names.iter().map(|name| read_step(name)).collect();
    again.extend([read_step("kept"), read_step("gone"), read_step("../layer/index")]);
    let steps = jar.run_steps(again.into()).await?;
    (0..names.len()).try_for_each(|step| check_step_value(&steps, step, &json!(text)))?;
    check_step_value(&steps, names.len(), &json!("kept"))?;
    steps.all_refused(names.len() + 1, &["no-entry", "not-permitted"])
}

/// Attack `files-overlay-whiteouts`: the attacker makes the names with which other overlays hide and show
/// files.
async fn make_whiteout_names(arena: &Arena) -> Stopped {
    arena.write_file("d/kept", "kept")?;
    arena.write_file("d/gone", "gone")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        place_step("unlink", "d/gone"),
        write_step("d/.wh.kept"),
        write_step("d/.wh..wh..opq"),
        write_step("d/.wh.gone"),
        place_step("unlink", "d/.wh.gone"),
        write_step("d/.wh..wh.gone"),
        rename_step("d", "e"),
        read_step("e/kept"),
        read_step("e/gone"),
        read_step("d/gone"),
        read_step("d/.wh.kept"),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_step_value(&steps, 7, &json!("kept"))?;
    check_refused_after(&steps, 8, &["no-entry"])
}

/// Attack `files-overlay-numbers`: the attacker makes files named as the numbers of contents, writes and
/// moves them over each other.
async fn make_number_names(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let text = |path: &str| json!({ "do": "write-file", "place": place_at(path), "text": path });
    let steps = json!([
        write_step("a.txt"),
        text("0"),
        text("1"),
        text("2"),
        text("ffffffffffffffff"),
        rename_step("1", "2"),
        rename_step("ffffffffffffffff", "1"),
        read_step("0"),
        read_step("1"),
        read_step("2"),
        read_step("a.txt"),
        read_step("../layer/files/1"),
        write_step("../layer/files/2"),
        rename_step("2", "../layer/files/1"),
        hard_link("2", "../layer/files/7"),
        place_step("unlink", "../layer/files/1"),
    ]);
    let steps = jar.run_steps(steps).await?;
    for (step, text) in [(7, "0"), (8, "ffffffffffffffff"), (9, "1"), (10, "mine")] {
        check_step_value(&steps, step, &json!(text))?;
    }
    check_refused_after(&steps, 11, &["not-permitted"])
}

/// Attack `files-overlay-dots`: the attacker names the layer by paths that go up, from directories that it
/// has made, moved and removed.
async fn climb_to_layer(arena: &Arena) -> Stopped {
    arena.write_file("d/f", "text of f")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        place_step("mkdir", "d/made"),
        rename_step("d/made", "moved"),
        open_step("moved", "directory", "read mutate"),
        place_step("rmdir", "moved"),
        read_step("../layer/index"),
        read_step("d/../../layer/index"),
        write_step("./../layer/index"),
        write_step("d/./../../layer/files/1"),
        place_step("mkdir", "../layer/more"),
        rename_step("d", "../layer/d"),
        rename_step("../layer", "stolen"),
        { "do": "list", "place": place_at("..") },
        { "do": "read-file", "place": super::held_place(0, "../layer/index") },
        { "do": "mkdir", "place": super::held_place(0, "../../layer/more") },
    ]);
    check_refused_after(&jar.run_steps(steps).await?, 4, &["not-permitted"])
}

/// Attack `files-overlay-proc`: the attacker opens the layer through /proc and the paths of descriptors, and
/// through links there.
async fn open_through_proc(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    make_link(arena, "/proc/self/fd", "fd")?;
    make_link(arena, "/proc/self/cwd", "cwd")?;
    make_link(arena, "/dev/fd/3", "three")?;
    let jar = open_unlimited(arena).await?;
    let mut steps = vec![write_step("a.txt"), open_step("a.txt", "", "read write")];
    let layer = arena.path("layer");
    let index = layer.join("index");
    for path in ["/proc/self/fd/3", "/proc/self/root", "/dev/fd/3", "fd/3", "cwd/layer", "three"] {
        steps.extend([read_step(path), write_step(path)]);
    }
    steps.extend([read_step(&index.to_string_lossy()), write_step(&index.to_string_lossy())]);
    steps.push(hard_link("/proc/self/fd/3", "stolen"));
    steps.push(rename_step("a.txt", &layer.join("a").to_string_lossy()));
    check_refused_after(&jar.run_steps(steps.into()).await?, 2, &["not-permitted"])
}

/// Attack `files-overlay-case-doubles`: the attacker writes, removes and moves a file whose name differs by
/// its case alone.
async fn case_doubles(arena: &Arena) -> Stopped {
    arena.write_file("Read.md", "text of it")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        write_step("READ.MD"),
        rename_step("READ.MD", "read.md"),
        read_step("Read.md"),
        place_step("unlink", "read.md"),
        read_step("Read.md"),
        read_step("read.md"),
        read_step("READ.MD"),
        place_step("unlink", "rEAD.md"),
        rename_step("reaD.md", "x"),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_step_value(&steps, 2, &json!("text of it"))?;
    check_step_value(&steps, 4, &json!("text of it"))?;
    check_refused_after(&steps, 5, &["no-entry"])
}

/// Attack `files-overlay-unicode-doubles`: the attacker writes and removes a file whose name is the same
/// letter composed otherwise.
async fn unicode_doubles(arena: &Arena) -> Stopped {
    let (composed, apart) = ("\u{e9}.txt", "e\u{301}.txt");
    arena.write_file(composed, "composed")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        write_step(apart),
        read_step(composed),
        place_step("unlink", composed),
        read_step(apart),
        place_step("unlink", apart),
        read_step(apart),
        read_step(composed),
        rename_step(apart, composed),
    ]);
    let steps = jar.run_steps(steps).await?;
    check_step_value(&steps, 1, &json!("composed"))?;
    check_step_value(&steps, 3, &json!("mine"))?;
    check_refused_after(&steps, 5, &["no-entry"])
}

/// Attack `files-overlay-endless-names`: the attacker makes names and paths longer than any file system has,
/// in directories of the index alone.
async fn make_endless_names(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let (long, deep) = ("x".repeat(256), "d/".repeat(2_000));
    let below = format!("made/{long}");
    let steps = json!([
        place_step("mkdir", "made"),
        write_step("made/a"),
        { "do": "descend", "depth": 1_000 },
        place_step("mkdir", &below),
        write_step(&below),
        rename_step("a.txt", &below),
        rename_step("made", &long),
        hard_link("a.txt", &below),
        place_step("mkdir", &deep),
        write_step(&format!("{deep}{deep}x")),
    ]);
    let steps = jar.run_steps(steps).await?;
    let made = steps.step_value(2)?.get("made").and_then(Value::as_u64).unwrap_or(u64::MAX);
    if made > 256 {
        return Err(Escape::new(format!("{made} directories were made below each other")));
    }
    check_refused_after(&steps, 3, &["name-too-long"])
}

/// Attack `files-overlay-empty-names`: the attacker makes, moves and removes names that are empty, dots,
/// slashes or hold a NUL.
async fn make_empty_names(arena: &Arena) -> Stopped {
    arena.write_file("a.txt", "text of a")?;
    let jar = open_unlimited(arena).await?;
    let steps = json!([
        write_step("a.txt"),
        write_step("a\0b"),
        rename_step("a.txt", "b\0"),
        place_step("mkdir", ""),
        place_step("mkdir", "."),
        place_step("mkdir", "./"),
        rename_step("a.txt", ""),
        rename_step("a.txt", "."),
        rename_step(".", "b"),
        place_step("unlink", "."),
        place_step("rmdir", "."),
        { "do": "link", "place": place_itself("a.txt"), "to": place_itself("./") },
    ]);
    let words = ["invalid", "no-entry", "exist", "busy", "is-directory", "not-directory"];
    check_refused_after(&jar.run_steps(steps).await?, 1, &words)
}
