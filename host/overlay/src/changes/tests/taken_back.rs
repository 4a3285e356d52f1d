//! After an undo the overlay knows again what the agent began with: what was a conflict is one
//! again, what was merged is merged again.

use std::path::PathBuf;

use super::world::World;
use crate::changes::execute::StepFuse;
use crate::changes::{
    ApplyOptions, ChangeConflict, Changes, FileDifference, OverlayReview, PathSelection,
    UndoOutcome,
};

const TEXT: &str = "1\n2\n3\n4\n5\n6\n";
const AGENT: &str = "1\nagent\n3\n4\n5\n6\n";
const PERSON: &str = "1\nperson\n3\n4\n5\n6\n";
const END: &str = "1\n2\n3\n4\n5\n6\nperson\n";
const BOTH: &str = "1\nagent\n3\n4\n5\n6\nperson\n";

fn all() -> Option<PathSelection> {
    Some(PathSelection::all())
}

fn theirs() -> ApplyOptions {
    ApplyOptions { theirs: all(), ..ApplyOptions::default() }
}

fn mine() -> ApplyOptions {
    ApplyOptions { mine: all(), ..ApplyOptions::default() }
}

fn none() -> ApplyOptions {
    ApplyOptions::default()
}

/// The agent has changed `a`, then the person.
fn both(agent: &str, person: &str) -> World {
    let world = World::new(&[("a", TEXT), ("b", "b\n"), ("d/e", "e\n")]);
    world.write("a", agent);
    world.changes();
    world.edit("a", person);
    world
}

/// Undoes the last apply, and checks the restored paths.
fn undo(world: &World, restored: &[&str]) {
    let restored: Vec<PathBuf> = restored.iter().map(PathBuf::from).collect();
    match world.review().undo_apply().unwrap() {
        UndoOutcome::TakenBack { restored: found, files: _ } => assert_eq!(found, restored),
        other => panic!("{other:?}"),
    }
}

#[test]
fn directories_are_no_files_in_what_was_applied_and_taken_back() {
    let world = World::new(&[("a", TEXT), ("gone/one", "1\n")]);
    let journal = world.home.path().join("journal");
    assert!(!OverlayReview::has_applied(&journal).unwrap(), "nothing can be taken back yet");
    world.write_below("new/deep/file", "x\n");
    world.write("a", "agent\n");
    world.overlay.remove_path("gone/one").unwrap();
    world.overlay.remove_path("gone").unwrap();
    let applied =
        world.review().apply_changes(&PathSelection::all(), &ApplyOptions::default()).unwrap();
    assert!(applied.applied.contains(&PathBuf::from("new/deep")), "{applied:?}");
    assert_eq!(applied.files, 3, "{applied:?}");
    assert!(OverlayReview::has_applied(&journal).unwrap());
    let UndoOutcome::TakenBack { restored, files } = world.review().undo_apply().unwrap() else {
        panic!()
    };
    assert!(restored.contains(&PathBuf::from("new/deep")), "{restored:?}");
    assert_eq!(files, 3, "{restored:?}");
    assert!(!OverlayReview::has_applied(&journal).unwrap(), "it is taken back");
}

fn seen(world: &World, path: &str) -> String {
    std::io::read_to_string(world.overlay.open_file(path).unwrap()).unwrap()
}

/// The list of changes as a person reads it.
fn told(changes: &Changes) -> String {
    let mut patch = Vec::new();
    changes.write_patch(&mut patch).unwrap();
    let files = changes.files().iter();
    let files = files.map(|it| (it.path.clone(), it.kind.clone(), it.conflict.clone(), it.merges));
    format!("{:#?}\n{}", files.collect::<Vec<_>>(), String::from_utf8_lossy(&patch))
}

#[test]
fn a_conflict_that_the_agent_won_is_a_conflict_again() {
    let world = both(AGENT, PERSON);
    let before = told(&world.changes());
    assert_eq!(world.apply(&["a"], &theirs()).applied, [PathBuf::from("a")]);
    assert_eq!(world.read("a").unwrap(), AGENT);
    undo(&world, &["a"]);
    let world = world.restarted();
    assert_eq!(told(&world.changes()), before);
    let applied = world.apply(&["a"], &none());
    assert_eq!(applied.conflicts, [("a".into(), ChangeConflict::Changed)]);
    assert_eq!(world.read("a").unwrap(), PERSON, "the person's line is still there");
}

#[test]
fn a_conflict_over_what_was_deleted_or_is_gone_is_one_again() {
    let world = World::new(&[("a", TEXT), ("b", "b\n"), ("d/e", "e\n")]);
    world.write("a", AGENT);
    for path in ["b", "d/e", "d"] {
        world.overlay.remove_path(path).unwrap();
    }
    world.changes();
    world.edit("b", "person\n");
    world.edit("d/new", "person\n");
    std::fs::remove_file(world.ws().join("a")).unwrap();
    let (tree, before) = (world.tree(), told(&world.changes()));
    assert_eq!(world.apply(&["."], &theirs()).conflicts, []);
    assert_eq!(world.tree(), [("a".into(), Some((AGENT.into(), false)))].into());
    undo(&world, &["a", "b", "d"]);
    let world = world.restarted();
    assert_eq!(world.tree(), tree);
    let left = world.apply(&["."], &none()).conflicts;
    let left: Vec<_> =
        left.into_iter().filter(|(_, it)| !matches!(it, ChangeConflict::Needs(_))).collect();
    assert_eq!(left[0], ("a".into(), ChangeConflict::Gone), "{before}");
    assert_eq!(left[1], ("b".into(), ChangeConflict::Changed));
    assert!(matches!(&left[2], (d, ChangeConflict::NewInside(_)) if d == "d"), "{left:?}");
    assert_eq!(world.tree(), tree, "nothing of the person is lost");
}

#[test]
fn what_a_person_changes_after_an_undo_is_merged_as_if_nothing_had_been_applied() {
    let world = World::new(&[("a", TEXT)]);
    world.write("a", AGENT);
    world.apply_all();
    undo(&world, &["a"]);
    let world = world.restarted();
    world.edit("a", END);
    let changes = world.changes();
    assert!(changes.files()[0].merges, "{}", told(&changes));
    assert_eq!(
        (changes.change_stat().added, changes.change_stat().removed),
        (1, 1),
        "{}",
        told(&changes)
    );
    assert_eq!(world.apply(&["a"], &none()).merged, [PathBuf::from("a")]);
    assert_eq!(world.read("a").unwrap(), BOTH);
}

#[test]
fn after_a_merge_that_was_taken_back_the_agent_has_its_own_version() {
    let world = both(AGENT, END);
    let before = told(&world.changes());
    assert_eq!(world.apply(&["a"], &none()).merged, [PathBuf::from("a")]);
    assert_eq!(seen(&world, "a"), BOTH);
    undo(&world, &["a"]);
    let world = world.restarted();
    assert_eq!(world.read("a").unwrap(), END);
    assert_eq!(seen(&world, "a"), AGENT);
    assert_eq!(told(&world.changes()), before);
    assert_eq!(world.apply(&["a"], &none()).merged, [PathBuf::from("a")]);
    assert_eq!(world.read("a").unwrap(), BOTH);
}

#[test]
fn what_the_agent_goes_on_with_after_an_apply_is_new_or_changed_from_before_it_again() {
    let world = World::new(&[("a", TEXT)]);
    world.write("a", AGENT);
    world.write("new", "one\n");
    world.write("moved", "m\n");
    world.write("left", "l\n");
    world.apply_all();
    world.write("a", &AGENT.replace('5', "five"));
    world.write("new", "one\ntwo\n");
    world.overlay.rename_path("moved", "elsewhere").unwrap();
    world.overlay.remove_path("left").unwrap();
    let view = world.view();
    undo(&world, &["a", "left", "moved", "new"]);
    assert_eq!(world.view(), view);
    let world = world.restarted();
    assert_eq!(world.view(), view);
    assert_eq!(world.tree(), [("a".into(), Some((TEXT.into(), false)))].into());
    let changes = world.changes();
    let kinds = changes.files().iter().map(|it| (it.path.clone(), it.kind.clone()));
    let kinds: Vec<_> = kinds.collect();
    let added = |path: &str| (PathBuf::from(path), FileDifference::Added);
    let expected = [("a".into(), FileDifference::Modified), added("elsewhere"), added("new")];
    assert_eq!(kinds, expected, "{}", told(&changes));
    assert!(told(&changes).contains("new file mode"));
    assert!(changes.files().iter().all(|it| it.conflict.is_none() && !it.merges));
    world.apply_all();
    assert_eq!(world.tree(), view);
}

#[test]
fn the_change_that_was_given_up_for_the_workspaces_is_the_agents_again() {
    let world = both(AGENT, PERSON);
    world.overlay.remove_path("b").unwrap();
    world.write("n", "agent\n");
    world.edit("b", "person\n");
    world.edit("n", "person\n");
    // An earlier apply, which is not what is taken back first.
    world.write("other", "other\n");
    world.apply(&["other"], &none());
    let (tree, view, before) = (world.tree(), world.view(), told(&world.changes()));
    let dropped = world.apply(&["."], &mine()).dropped;
    assert_eq!(dropped, ["a", "b", "n"].map(PathBuf::from));
    assert_eq!(world.view(), tree);
    let world = world.restarted();
    undo(&world, &["a", "b", "n"]);
    let world = world.restarted();
    assert_eq!((world.tree(), world.view()), (tree, view));
    assert_eq!(told(&world.changes()), before);
    undo(&world, &["other"]);
}

#[test]
fn a_directory_that_is_given_up_is_told_to_be_lost() {
    let world = World::new(&[("a", TEXT)]);
    world.overlay.make_dir("n").unwrap();
    world.write("n/f", "agent\n");
    world.edit("n", "person\n");
    let applied = world.apply(&["."], &mine());
    assert_eq!(applied.dropped, [PathBuf::from("n")]);
    assert_eq!(applied.lost, ["n", "n/f"].map(PathBuf::from));
    undo(&world, &[]);
    assert!(world.changes().is_empty());
    assert_eq!(world.read("n").unwrap(), "person\n");
}

/// A world after a decision on one path of each kind: the agent's version, the person's version, a merge, and
/// a new file.
fn decided() -> (World, ApplyOptions) {
    let world = World::new(&[("mine", TEXT), ("both", TEXT), ("theirs", TEXT), ("gone", "g\n")]);
    for path in ["mine", "both", "theirs"] {
        world.write(path, AGENT);
    }
    world.write("new", "new\n");
    world.overlay.remove_path("gone").unwrap();
    world.changes();
    for (path, text) in [("mine", PERSON), ("both", END), ("theirs", PERSON), ("gone", PERSON)] {
        world.edit(path, text);
    }
    let paths = |paths: &[&str]| Some(PathSelection::from_paths(paths).unwrap());
    let (theirs, mine) = (paths(&["theirs", "gone"]), paths(&["mine"]));
    (world, ApplyOptions { theirs, mine, ..ApplyOptions::default() })
}

/// Opens the review with a fuse, which may burn.
fn review(world: &World, steps: usize) -> Option<OverlayReview> {
    OverlayReview::open_with(
        &world.overlay,
        &world.home.path().join("journal"),
        StepFuse::new(steps),
    )
    .ok()
}

#[test]
fn after_a_death_at_any_step_of_an_apply_each_decision_is_open_again_or_taken() {
    let (mut before_it, mut after_it) = (0, 0);
    for steps in 0.. {
        let (world, options) = decided();
        let (tree, before) = (world.tree(), told(&world.changes()));
        let applied = review(&world, steps).unwrap().apply_changes(&PathSelection::all(), &options);
        let world = world.restarted();
        drop(review(&world, steps % 5));
        let world = world.restarted();
        world.review();
        if world.tree() == tree {
            before_it += 1;
        } else {
            after_it += 1;
            assert!(world.changes().is_empty(), "{steps} steps: {}", told(&world.changes()));
            assert_eq!(world.read("both").unwrap(), BOTH);
            assert_eq!(world.read("theirs").unwrap(), AGENT);
            assert_eq!(world.read("mine").unwrap(), PERSON);
            undo(&world, &["both", "gone", "mine", "new", "theirs"]);
        }
        assert_eq!(world.tree(), tree, "{steps} steps");
        assert_eq!(told(&world.changes()), before, "{steps} steps");
        if applied.is_ok() {
            break;
        }
    }
    assert!(before_it >= 10 && after_it >= 3, "{before_it} {after_it}");
}

#[test]
fn after_a_death_at_any_step_of_an_undo_each_decision_is_open_again() {
    for steps in 0.. {
        let (world, options) = decided();
        let (tree, view, before) = (world.tree(), world.view(), told(&world.changes()));
        world.review().apply_changes(&PathSelection::all(), &options).unwrap();
        let undone = review(&world, steps).unwrap().undo_apply();
        let world = world.restarted();
        drop(review(&world, steps % 4));
        let world = world.restarted();
        world.review();
        // Before the first step the journal does not yet state an undo.
        if world.tree() != tree {
            assert_eq!(steps, 0);
            undo(&world, &["both", "gone", "mine", "new", "theirs"]);
        }
        assert_eq!((world.tree(), world.view()), (tree, view), "{steps} steps");
        assert_eq!(told(&world.changes()), before, "{steps} steps");
        if undone.is_ok() {
            assert!(steps >= 10, "{steps}");
            break;
        }
    }
}
