//! Tests of a killed process at every step of an apply, of an undo, and of the recovery afterwards.

use super::random::change;
use super::world::{Random, Tree, World, all};
use crate::changes::execute::StepFuse;
use crate::changes::{OverlayReview, PathSelection};

/// A world with random changes.
fn world(seed: u64) -> World {
    let files: Vec<(String, String)> =
        (0..12).map(|at| (format!("d{}/f{at}", at % 4), format!("{at}\nof many\n"))).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let world = World::new(&files);
    let mut random = Random(seed);
    for _ in 0..25 {
        change(&world, &mut random);
    }
    world
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

/// Nothing of ours is left, and each file is old or new.
fn check(world: &World, before: &Tree, view: &Tree, told: &str) {
    let tree = world.tree();
    assert!(&tree == before || &tree == view, "{told}: {tree:#?}\n{before:#?}\n{view:#?}");
    assert_eq!(&world.view(), view, "{told}");
    let journal = world.home.path().join("journal");
    let left = std::fs::read_dir(journal).unwrap();
    assert!(
        left.into_iter()
            .all(|it| { !it.unwrap().file_name().to_str().unwrap().starts_with("left") })
    );
}

/// Runs the world of each seed in a separate thread, because most of the time is spent waiting for the disk.
/// Returns the number of killed processes.
fn deaths_of(seeds: std::ops::Range<u64>, deaths: impl Fn(u64) -> usize + Sync) -> usize {
    std::thread::scope(|scope| {
        let running: Vec<_> = seeds
            .map(|seed| {
                scope.spawn({
                    let deaths = &deaths;
                    move || deaths(seed)
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn a_death_at_any_step_of_an_apply_leaves_all_old_or_all_new() {
    let deaths = deaths_of(0..6, |seed| {
        let mut deaths = 0;
        for steps in 0.. {
            let world = world(seed);
            let (before, view) = (world.tree(), world.view());
            let review = review(&world, steps).unwrap();
            let applied = review.apply_changes(&PathSelection::all(), &all());
            drop(review);
            let world = world.restarted();
            if applied.is_ok() {
                break;
            }
            deaths += 1;
            // Putting it in order dies as well, at some step.
            drop(self::review(&world, steps % 7));
            let world = world.restarted();
            world.review();
            check(&world, &before, &view, &format!("seed {seed}, {steps} steps"));
            world.apply_all();
            assert_eq!(world.tree(), view, "seed {seed}, {steps} steps");
        }
        deaths
    });
    println!("{deaths} deaths");
    assert!(deaths >= 200, "{deaths}");
}

#[test]
fn a_death_at_any_step_of_an_undo_is_finished() {
    let deaths = deaths_of(10..14, |seed| {
        let mut deaths = 0;
        for steps in 0.. {
            let world = world(seed);
            let (before, view) = (world.tree(), world.view());
            world.apply_all();
            let review = review(&world, steps).unwrap();
            let undone = review.undo_apply();
            drop(review);
            let world = world.restarted();
            if undone.is_ok() {
                assert_eq!(world.tree(), before, "seed {seed}");
                break;
            }
            deaths += 1;
            drop(self::review(&world, steps % 5));
            let world = world.restarted();
            world.review();
            check(&world, &before, &view, &format!("seed {seed}, {steps} steps"));
        }
        deaths
    });
    println!("{deaths} deaths");
    assert!(deaths >= 100, "{deaths}");
}
