//! Files that changed in the workspace too are not overwritten.

use std::path::Path;

use super::world::World;
use crate::changes::{ApplyOptions, ChangeConflict, MergeClash, PathSelection, UndoOutcome};

const FILES: [(&str, &str); 4] =
    [("a", "1\n2\n3\n4\n5\n6\n"), ("b", "b\n"), ("d/e", "e\n"), ("d/f", "f\n")];

/// Options that keep the workspace's version of these paths.
fn theirs(paths: &[&str]) -> ApplyOptions {
    ApplyOptions {
        theirs: Some(PathSelection::from_paths(paths).unwrap()),
        ..ApplyOptions::default()
    }
}

/// Options that write the agent's version over these paths.
fn mine(paths: &[&str]) -> ApplyOptions {
    ApplyOptions {
        mine: Some(PathSelection::from_paths(paths).unwrap()),
        ..ApplyOptions::default()
    }
}

fn none() -> ApplyOptions {
    ApplyOptions::default()
}

/// `a` was changed by both in ways that do not merge; `b` by the agent alone.
fn torn() -> World {
    let world = World::new(&FILES);
    world.write("a", "1\nagent\n3\n4\n5\n6\n");
    world.write("b", "agent\n");
    world.changes();
    world.edit("a", "1\nperson\n3\n4\n5\n6\n");
    world
}

#[test]
fn a_file_that_both_changed_is_left_and_others_are_applied() {
    let world = torn();
    let changes = world.changes();
    assert_eq!(changes.files()[0].conflict, Some(ChangeConflict::Changed));
    let applied = world.apply(&["."], &none());
    assert_eq!(applied.conflicts, [("a".into(), ChangeConflict::Changed)]);
    assert_eq!(applied.applied, [std::path::PathBuf::from("b")]);
    assert_eq!(world.read("a").unwrap(), "1\nperson\n3\n4\n5\n6\n");
    assert_eq!(world.read("b").unwrap(), "agent\n");
    // It stays in the overlay, and can be decided later.
    let applied = world.apply(&["."], &theirs(&["a"]));
    assert_eq!((applied.conflicts, applied.applied), (vec![], vec!["a".into()]));
    assert_eq!(world.read("a").unwrap(), "1\nagent\n3\n4\n5\n6\n");
    // And the person's version is not lost.
    assert!(matches!(world.review().undo_apply().unwrap(), UndoOutcome::TakenBack { .. }));
    assert_eq!(world.read("a").unwrap(), "1\nperson\n3\n4\n5\n6\n");
}

#[test]
fn mine_keeps_the_workspace_and_the_agent_sees_it() {
    let world = torn();
    let applied = world.apply(&["."], &mine(&["a"]));
    assert_eq!(applied.dropped, [std::path::PathBuf::from("a")]);
    assert_eq!(world.read("a").unwrap(), "1\nperson\n3\n4\n5\n6\n");
    assert!(world.changes().is_empty());
    assert_eq!(world.view(), world.tree());
}

#[test]
fn changes_of_both_that_lie_apart_are_merged() {
    let world = World::new(&FILES);
    world.write("a", "agent\n1\n2\n3\n4\n5\n6\n");
    world.changes();
    world.edit("a", "1\n2\n3\n4\n5\nperson\n");
    let changes = world.changes();
    assert!(changes.files()[0].merges && changes.files()[0].conflict.is_none());
    assert_eq!(
        (changes.change_stat().added, changes.change_stat().removed),
        (1, 0),
        "what the agent did"
    );
    let applied = world.apply(&["."], &none());
    assert_eq!(applied.merged, [std::path::PathBuf::from("a")]);
    assert_eq!(world.read("a").unwrap(), "agent\n1\n2\n3\n4\n5\nperson\n");
    assert!(world.changes().is_empty());
    world.review().undo_apply().unwrap();
    assert_eq!(world.read("a").unwrap(), "1\n2\n3\n4\n5\nperson\n");
    world.apply(&["."], &none());
    assert_eq!(world.read("a").unwrap(), "agent\n1\n2\n3\n4\n5\nperson\n");
}

/// A file replaced by a rename, as some tools write files.
#[test]
fn a_file_that_was_replaced_is_merged_too() {
    let world = World::new(&FILES);
    world.write("a.new", "agent\n1\n2\n3\n4\n5\n6\n");
    world.overlay.rename_path("a.new", "a").unwrap();
    world.changes();
    world.edit("a", "1\n2\n3\n4\n5\nperson\n");
    let applied = world.apply(&["."], &none());
    assert_eq!(applied.merged, [std::path::PathBuf::from("a")]);
    assert_eq!(world.read("a").unwrap(), "agent\n1\n2\n3\n4\n5\nperson\n");
}

#[test]
fn the_same_content_in_another_file_is_no_conflict() {
    let world = World::new(&FILES);
    world.write("a", "agent\n");
    world.changes();
    world.edit("a", FILES[0].1);
    assert_eq!(world.apply(&["."], &none()).conflicts, []);
    assert_eq!(world.read("a").unwrap(), "agent\n");
}

#[test]
fn what_is_gone_in_the_way_or_changed_before_a_deletion_is_left() {
    let world = World::new(&FILES);
    world.write("a", "agent\n");
    world.write("new", "agent\n");
    world.overlay.remove_path("b").unwrap();
    world.overlay.rename_path("d", "g").unwrap();
    world.tick();
    std::fs::remove_file(world.ws().join("a")).unwrap();
    world.edit("new", "person\n");
    world.edit("b", "person\n");
    world.edit("g", "person\n");
    let before = world.tree();
    let applied = world.apply(&["."], &none());
    assert_eq!(
        applied.conflicts[..4],
        [
            ("a".into(), ChangeConflict::Gone),
            ("b".into(), ChangeConflict::Changed),
            ("g".into(), ChangeConflict::InTheWay),
            ("g/e".into(), ChangeConflict::Needs("g".into())),
        ]
    );
    assert_eq!(world.tree(), before);
    let applied = world.apply(&["a", "b", "new"], &theirs(&["."]));
    assert_eq!(applied.conflicts, []);
    assert_eq!(world.read("a").unwrap(), "agent\n");
    assert_eq!(world.read("new").unwrap(), "agent\n");
    assert_eq!(world.read("b"), None);
}

#[test]
fn a_deleted_directory_with_something_new_in_it_stays() {
    for edited in ["d/new", "d/e"] {
        let world = World::new(&FILES);
        world.overlay.remove_path("d/e").unwrap();
        world.overlay.remove_path("d/f").unwrap();
        world.overlay.remove_path("d").unwrap();
        world.edit(edited, "person\n");
        let before = world.tree();
        let applied = world.apply(&["."], &none());
        assert_eq!(applied.conflicts[0], ("d".into(), ChangeConflict::NewInside(edited.into())));
        assert_eq!(world.tree(), before);
        let applied = world.apply(&["."], &theirs(&["d"]));
        assert_eq!(applied.conflicts, []);
        assert!(!world.ws().join("d").exists());
        // What was not seen is not lost.
        world.review().undo_apply().unwrap();
        assert_eq!(world.tree(), before);
    }
}

#[test]
fn files_that_a_person_adds_to_a_renamed_directory_move_with_it() {
    let world = World::new(&FILES);
    world.overlay.rename_path("d", "g").unwrap();
    world.write("g/e", "agent\n");
    world.edit("d/new", "person\n");
    assert_eq!(world.apply(&["."], &none()).conflicts, []);
    assert_eq!(world.read("g/new").unwrap(), "person\n");
    assert_eq!(world.read("g/e").unwrap(), "agent\n");
    assert!(!world.ws().join("d").exists());
}

#[test]
fn an_undo_does_nothing_when_one_of_the_files_was_changed_since() {
    let world = World::new(&FILES);
    world.write("a", "agent\n");
    world.overlay.make_dir("n").unwrap();
    world.write("n/new", "agent\n");
    world.overlay.remove_path("b").unwrap();
    world.apply_all();
    for (path, undo) in [("a", "agent\n"), ("n/other", ""), ("b", "")] {
        world.edit(path, "person\n");
        let before = world.tree();
        let undone = world.review().undo_apply().unwrap();
        assert_eq!(undone, UndoOutcome::Refused { changed: vec![path.into()] });
        assert_eq!(world.tree(), before);
        match undo {
            "" => std::fs::remove_file(world.ws().join(path)).unwrap(),
            text => world.edit(path, text),
        }
    }
    assert!(matches!(world.review().undo_apply().unwrap(), UndoOutcome::TakenBack { .. }));
    assert_eq!(world.read("a").unwrap(), FILES[0].1);
    assert_eq!(world.review().undo_apply().unwrap(), UndoOutcome::Nothing);
}

#[test]
fn applies_are_taken_back_one_after_another() {
    let world = World::new(&FILES);
    let first = world.tree();
    world.write("a", "one\n");
    world.apply_all();
    let second = world.tree();
    world.write("a", "two\n");
    world.overlay.remove_path("b").unwrap();
    world.apply_all();
    assert_eq!(world.review().kept().unwrap().applies, 2);
    world.review().undo_apply().unwrap();
    assert_eq!(world.tree(), second);
    world.review().undo_apply().unwrap();
    assert_eq!(world.tree(), first);
    assert_eq!(world.review().kept().unwrap().applies, 0);
}

#[test]
fn what_would_run_later_is_held_back_with_its_reason() {
    let world = World::new(&FILES);
    world.write("Makefile", "all:\n");
    world.write("notes", "fine\n");
    let applied = world.apply(&["."], &none());
    assert_eq!(applied.held_back, [("Makefile".into(), "make runs it")]);
    assert_eq!(applied.applied, [std::path::PathBuf::from("notes")]);
    assert_eq!(world.read("Makefile"), None);
    world.apply_all();
    assert_eq!(world.read("Makefile").unwrap(), "all:\n");
}

#[test]
fn no_new_directory_is_left_empty_by_what_is_held_back() {
    let world = World::new(&[("kept.txt", "kept\n")]);
    world.overlay.make_dir(".github").unwrap();
    world.overlay.make_dir(".github/workflows").unwrap();
    world.write(".github/workflows/ci.yml", "on: push\n");
    world.overlay.make_dir("both").unwrap();
    world.overlay.make_dir("both/.husky").unwrap();
    world.write("both/.husky/pre-commit", "make\n");
    world.write("both/notes.txt", "notes\n");
    world.overlay.make_dir("empty").unwrap();
    let applied = world.apply(&["."], &none());
    let held: Vec<_> = applied.held_back.iter().map(|(path, _)| path.as_path()).collect();
    assert!(held.contains(&Path::new(".github/workflows/ci.yml")), "{held:?}");
    assert!(!world.ws().join(".github").exists());
    assert!(world.ws().join("both/notes.txt").exists() && !world.ws().join("both/.husky").exists());
    assert!(world.ws().join("empty").is_dir(), "it is one by the agent's will");
    world.apply_all();
    assert!(world.ws().join(".github/workflows/ci.yml").exists());
    assert!(world.ws().join("both/.husky/pre-commit").exists());
}

#[test]
fn the_lines_of_a_conflict_are_told_and_none_of_what_merges() {
    let world = World::new(&[("a.txt", "one\ntwo\nthree\nfour\nfive\n")]);
    world.write("a.txt", "one\n2\nthree\nfour\nfive\n");
    world.edit("a.txt", "one\nzwei\nthree\nfour\n5\n");
    let changes = world.changes();
    let clashes = changes.find_clashes(&changes.files()[0]).unwrap();
    let told = |clash: &MergeClash| (clash.line, clash.ours.clone(), clash.theirs.clone());
    let expected = (2, b"zwei\n".to_vec(), b"2\n".to_vec());
    assert_eq!(clashes.iter().map(told).collect::<Vec<_>>(), [expected]);
    world.edit("a.txt", "one\ntwo\nthree\nfour\n5\n");
    let changes = world.changes();
    assert!(changes.find_clashes(&changes.files()[0]).unwrap().is_empty());
}
