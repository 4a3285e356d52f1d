//! Lists as a person is shown them.

use super::world::{World, files};
use crate::changes::{FileDifference, MAX_TEXT, NodeKind, PathSelection};

#[test]
fn changes_are_told_with_their_lines() {
    let world = World::new(&[("a", "1\n2\n3\n"), ("d/e", "e\n"), ("d/f", "f\n"), ("g", "g\n")]);
    world.write("a", "1\ntwo\n3\n4\n");
    world.overlay.rename_path("d", "h").unwrap();
    world.write("h/f", "\0\0");
    world.overlay.remove_path("g").unwrap();
    let changes = world.changes();
    let told: Vec<_> = changes
        .files()
        .iter()
        .map(|it| (it.path.to_str().unwrap(), it.added, it.removed, it.binary))
        .collect();
    assert_eq!(
        told,
        [
            ("a", 2, 1, false),
            ("g", 0, 1, false),
            ("h", 0, 0, false),
            ("h/e", 0, 0, false),
            ("h/f", 0, 0, true),
        ]
    );
    assert_eq!(changes.change_stat().to_string(), "4 files changed (+2 -2)");
    assert_eq!(changes.files()[3].part_of.as_deref(), Some("h".as_ref()));
    assert_eq!(
        changes.files()[3].kind,
        FileDifference::Renamed { from: "d/e".into(), modified: false }
    );
    assert_eq!(changes.files()[2].node, NodeKind::Directory);
    let json = serde_json::to_value(&changes).unwrap();
    assert_eq!(json["files"][0]["change"], "modified");
    assert_eq!(json["files"][3]["from"], "d/e");
    assert_eq!(json["stat"]["files"], 4);
    let only = changes.select_changes(&PathSelection::from_paths(["h"]).unwrap());
    assert_eq!(only.files().len(), 3);
    assert_eq!(PathSelection::from_paths(["zz", "a"]).unwrap().unknown_paths(&changes), ["zz"]);
}

#[test]
fn a_text_above_the_bound_counts_as_binary_and_still_makes_a_patch() {
    let world = World::new(&[("a", "a\n")]);
    let large = "line\n".repeat(MAX_TEXT as usize / 5 + 1);
    world.write("large", &large);
    world.write("a", "b\n");
    let changes = world.changes();
    assert!(changes.files()[1].binary && changes.files()[1].added == 0);
    assert_eq!(changes.files()[1].size_after, Some(large.len() as u64));
    assert_eq!(files(&world.patched()), files(&world.view()));
}

#[test]
fn links_and_modes_are_in_the_patch() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new(&[("a", "a\n"), ("run", "#!/bin/sh\n"), ("d/b", "b\n")]);
    std::os::unix::fs::symlink("a", world.ws().join("d/link")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(world.ws().join("run"), mode).unwrap();
    // A guest's way to an executable: it takes the place of one.
    world.write("new", "#!/bin/sh\necho\n");
    world.overlay.rename_path("new", "run").unwrap();
    world.overlay.rename_path("d", "e").unwrap();
    let changes = world.changes();
    let later: Vec<_> = changes.files().iter().filter(|it| it.runs_later.is_some()).collect();
    let later: Vec<_> = later.iter().map(|it| it.path.to_str().unwrap()).collect();
    assert_eq!(later, ["e/link", "run"]);
    let patched = world.patched();
    world.apply_all();
    assert_eq!(files(&world.tree()), files(&patched));
    assert!(world.ws().join("e/link").is_symlink());
    // Deleting a link is in it too, and is taken back.
    let before = world.tree();
    world.overlay.remove_path("e/link").unwrap();
    let patched = world.patched();
    world.apply_all();
    assert_eq!(files(&world.tree()), files(&patched));
    world.review().undo_apply().unwrap();
    assert_eq!(world.tree(), before);
}

#[test]
fn ten_thousand_changed_files_are_listed() {
    let world = World::new(&[("a", "a\n")]);
    for dir in 0..100 {
        let dir = world.ws().join(format!("d{dir}"));
        std::fs::create_dir(&dir).unwrap();
        for file in 0..100 {
            std::fs::write(dir.join(format!("f{file}")), format!("{file}\nof many\n")).unwrap();
        }
    }
    for dir in 0..100 {
        for file in 0..100 {
            world.write(&format!("d{dir}/f{file}"), &format!("{file}\nof many\nmore\n"));
        }
    }
    world.overlay.list_changes();
    assert_eq!(world.changes().change_stat().to_string(), "10000 files changed (+10000 -0)");
}
