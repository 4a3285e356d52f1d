//! Tests with random changes: the overlay's view, the result of its patch and the result of applying are one
//! tree; also in parts, after an undo, and after discarding.

use super::world::{Random, World, files};
use crate::changes::{PathSelection, UndoOutcome};

const FILES: [(&str, &str); 9] = [
    ("a", "one\ntwo\nthree\n"),
    ("b c.txt", "no end"),
    ("d/e", "e\n"),
    ("d/f/g", "g\ng\ng\n"),
    ("d/f/h", ""),
    ("i/j", "j\n"),
    ("i/k/l", "\0binary\0"),
    ("m/", ""),
    ("\u{e9}\t\"n", "odd\n"),
];

const NAMES: [&str; 7] = ["a", "d", "e", "f", "i", "x", "y z"];

/// A change that an agent might make, tried whether it is possible or not.
pub(super) fn change(world: &World, random: &mut Random) {
    let view = world.view();
    let mut known: Vec<String> =
        view.keys().map(|path| path.to_str().unwrap().to_owned()).collect();
    known.push("a".to_owned());
    let place = |random: &mut Random| {
        let mut dirs: Vec<_> = view.iter().filter(|(_, it)| it.is_none()).collect();
        dirs.sort();
        let name = random.pick(&NAMES);
        match random.below(dirs.len() + 1) {
            0 => name.to_owned(),
            at => format!("{}/{name}", dirs[at - 1].0.display()),
        }
    };
    let content = |random: &mut Random| match random.below(5) {
        0 => "\0other\0".to_owned(),
        1 => String::new(),
        2 => "one\ntwo\n3".to_owned(),
        at => (0..at * 4).map(|_| format!("{}\n", random.below(4))).collect(),
    };
    let path = random.pick(&known);
    let _ = match random.below(9) {
        0 | 1 => world.overlay.write_file(&path, content(random).as_bytes()),
        2 => world.overlay.write_file(place(random), content(random).as_bytes()),
        3 => world.overlay.make_dir(place(random)),
        4 => world.overlay.remove_path(&path),
        5 => {
            // All of it, from within.
            let inside = view.keys().rev().filter(|it| it.starts_with(&path));
            inside.clone().for_each(|it| world.overlay.remove_path(it).unwrap());
            Ok(())
        }
        _ => world.overlay.rename_path(&path, place(random)),
    };
}

/// A world with random changes of this seed.
fn world(seed: u64) -> World {
    let world = World::new(&FILES);
    let mut random = Random(seed);
    for _ in 0..3 + random.below(12) {
        change(&world, &mut random);
    }
    world
}

fn kinds(world: &World) -> Vec<String> {
    let told = world.overlay.list_changes();
    told.iter().map(|it| format!("{} {:?} {}", it.path.display(), it.kind, it.directory)).collect()
}

const SEEDS: u64 = 60;

#[test]
fn what_is_applied_is_what_the_agent_saw_and_git_makes_the_same_of_the_patch() {
    for seed in 0..SEEDS {
        let world = world(seed);
        let view = world.view();
        let told = kinds(&world);
        assert_eq!(files(&world.patched()), files(&view), "seed {seed}: {told:#?}");
        world.apply_all();
        assert_eq!(world.tree(), view, "seed {seed}: {told:#?}");
        assert_eq!(kinds(&world), [""; 0], "seed {seed}: {told:#?}");
        assert_eq!(world.view(), view, "seed {seed}");
        let world = world.restarted();
        assert_eq!(world.view(), view, "seed {seed}");
        assert_eq!(world.overlay.used_quota().files, 0, "seed {seed}");
    }
}

#[test]
fn what_is_taken_back_is_as_before_and_can_be_applied_again() {
    for seed in 0..SEEDS {
        let world = world(seed);
        let (before, view, told) = (world.tree(), world.view(), kinds(&world));
        if told.is_empty() {
            continue;
        }
        world.apply_all();
        let undone = world.review().undo_apply().unwrap();
        assert!(
            matches!(undone, UndoOutcome::TakenBack { .. }),
            "seed {seed}: {undone:?} {told:#?}"
        );
        assert_eq!(world.tree(), before, "seed {seed}: {told:#?}");
        assert_eq!(world.view(), view, "seed {seed}: {told:#?} {:#?}", kinds(&world));
        assert_eq!(kinds(&world), told, "seed {seed}");
        let world = world.restarted();
        assert_eq!(world.view(), view, "seed {seed}: {told:#?}");
        assert_eq!(kinds(&world), told, "seed {seed}");
        world.apply_all();
        assert_eq!(world.tree(), view, "seed {seed}: {told:#?}");
    }
}

#[test]
fn parts_that_are_applied_leave_the_rest_as_the_agent_saw_it() {
    for seed in 0..SEEDS {
        let world = world(seed);
        let (view, told) = (world.view(), kinds(&world));
        let mut random = Random(seed + 1_000_000);
        let mut rest: Vec<_> = world.changes().files().iter().map(|it| it.path.clone()).collect();
        while !rest.is_empty() {
            let path = rest.swap_remove(random.below(rest.len()));
            let applied = world
                .review()
                .apply_changes(&PathSelection::from_paths([&path]).unwrap(), &super::world::all())
                .unwrap();
            assert_eq!(applied.conflicts, [], "seed {seed} {path:?}: {told:#?}");
            assert_eq!(world.view(), view, "seed {seed} {path:?}: {told:#?} {:#?}", kinds(&world));
        }
        assert_eq!(world.tree(), view, "seed {seed}: {told:#?}");
        assert_eq!(kinds(&world), [""; 0], "seed {seed}");
    }
}

#[test]
fn parts_that_are_discarded_leave_a_rest_that_is_applied_as_it_is_seen() {
    for seed in 0..SEEDS {
        let world = world(seed);
        let (before, told) = (world.tree(), kinds(&world));
        let mut random = Random(seed + 2_000_000);
        let paths: Vec<_> = world.changes().files().iter().map(|it| it.path.clone()).collect();
        if paths.is_empty() {
            continue;
        }
        let path = random.pick(&paths);
        world.review().discard_changes(&PathSelection::from_paths([&path]).unwrap()).unwrap();
        assert_eq!(world.tree(), before, "seed {seed}");
        let view = world.view();
        let now = kinds(&world);
        let world = world.restarted();
        assert_eq!(world.view(), view, "seed {seed} {path:?}: {told:#?} {now:#?}");
        world.apply_all();
        assert_eq!(world.tree(), view, "seed {seed} {path:?}: {told:#?} {now:#?}");
        world.review().undo_apply().unwrap();
        world.review().discard_changes(&PathSelection::all()).unwrap();
        assert_eq!(world.view(), before, "seed {seed} {path:?}: {told:#?}");
        assert_eq!(kinds(&world), [""; 0], "seed {seed}");
    }
}
