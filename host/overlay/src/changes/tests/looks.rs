//! Tests of calls that only read: bounded, ended by the stop signal, and without a trace on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_work::StopSignal;

use super::world::{World, all};
use crate::changes::execute::StepFuse;
use crate::changes::workspace::Workspace;
use crate::changes::{ChangesError, OverlayReview, PathSelection, later};

/// All files below a directory, with contents.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    found
}

/// INV-411.
#[test]
fn a_look_leaves_an_interrupted_apply_as_it_is_and_a_decision_ends_it() {
    let mut interrupted = 0;
    for steps in 0.. {
        let world = World::new(&[("a.txt", "a\n"), ("b.txt", "b\n"), ("c/d.txt", "d\n")]);
        world.write("a.txt", "another a\n");
        world.write("c/d.txt", "another d\n");
        world.write("new.txt", "new\n");
        let journal = world.home.path().join("journal");
        let review =
            OverlayReview::open_with(&world.overlay, &journal, StepFuse::new(steps)).unwrap();
        let applied = review.apply_changes(&PathSelection::all(), &all());
        drop(review);
        let world = world.restarted();
        let before = files(world.home.path());
        let open = OverlayReview::is_interrupted(&journal).unwrap();
        OverlayReview::list_read_only(&world.overlay, &StopSignal::never_raised()).unwrap();
        assert_eq!(files(world.home.path()), before, "{steps} steps");
        world.review();
        assert!(!OverlayReview::is_interrupted(&journal).unwrap(), "{steps} steps");
        if applied.is_ok() {
            assert!(!open);
            break;
        }
        if open {
            interrupted += 1;
            assert_ne!(files(world.home.path()), before, "{steps} steps: a decision ends it");
        }
    }
    assert!(interrupted > 3, "{interrupted}");
}

/// INV-410.
#[test]
fn only_the_lines_of_what_is_shown_are_counted() {
    let world = World::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    world.write("a.txt", "one\ntwo\n");
    world.write("b.txt", "one\ntwo\nthree\n");
    let mut changes = world.review().list_changes().unwrap();
    assert_eq!(
        (changes.change_stat().uncounted, changes.change_stat().to_string()),
        (2, "2 files changed".into())
    );
    changes.count_lines(|file| file.path == Path::new("a.txt")).unwrap();
    let stat = changes.change_stat();
    assert_eq!((stat.added, stat.removed, stat.uncounted), (2, 1, 1));
    assert_eq!(stat.to_string(), "2 files changed (+2 -1, without 1)");
    assert_eq!(
        changes.with_line_counts().unwrap().change_stat().to_string(),
        "2 files changed (+5 -2)"
    );
}

#[test]
fn a_text_that_takes_too_long_to_compare_is_told_as_replaced_and_is_applied() {
    let letters = |flip: usize| -> String {
        let line = |at: usize| if (at * at / 7 + flip).is_multiple_of(3) { "x\n" } else { "\n" };
        (0..600_000).map(line).collect()
    };
    let (before, after) = (letters(0), letters(1));
    let world = World::new(&[("a.txt", before.as_str()), ("b.txt", "b\n")]);
    world.write("a.txt", &after);
    world.write("b.txt", "another\n");
    let changes = world.changes();
    let [a, b] = changes.files() else { panic!("{changes:?}") };
    assert!(a.replaced && a.counted && a.added > 500_000 && a.removed > 500_000, "{a:?}");
    assert!(!b.replaced && (b.added, b.removed) == (1, 1), "the neighbour is compared: {b:?}");
    assert_eq!(world.patched(), world.view(), "the patch is true");
    world.apply_all();
    assert_eq!(world.read("a.txt").unwrap(), after);
}

#[test]
fn a_raised_signal_ends_all_that_only_reads_and_nothing_was_done() {
    let world = World::new(&[("a.txt", "a\n")]);
    world.write("a.txt", "another\n");
    world.apply_all();
    world.write("a.txt", "a third\n");
    let before = (world.tree(), world.view());
    let stop = StopSignal::never_raised();
    stop.raise();
    let review = world.review().with_stop(&stop);
    let is_stopped = |error: ChangesError| matches!(error, ChangesError::Stopped(_));
    assert!(is_stopped(review.list_changes().unwrap_err()));
    assert!(is_stopped(review.apply_changes(&PathSelection::all(), &all()).unwrap_err()));
    assert!(is_stopped(review.discard_changes(&PathSelection::all()).unwrap_err()));
    assert!(is_stopped(review.undo_apply().unwrap_err()));
    assert_eq!((world.tree(), world.view()), before);
    // A later caller is not blocked.
    world.apply_all();
    assert_eq!(world.read("a.txt").unwrap(), "a third\n");
}

/// Half a search says nothing of the rest.
#[test]
fn the_search_for_what_runs_later_ends_with_its_signal() {
    let world =
        World::new(&[("Makefile", "check:\n\tsh tools/check.sh\n"), ("tools/check.sh", "")]);
    world.write("tools/check.sh", "true\n");
    world.write("json.py", "x = 1\n");
    let unmarked = || {
        let mut files = world.changes().files().to_vec();
        files.iter_mut().for_each(|file| file.runs_later = None);
        files
    };
    let workspace = Workspace::new(Arc::clone(world.overlay.lower_dir()));
    let stop = StopSignal::never_raised();
    let mut files = unmarked();
    later::mark_later(&mut files, &world.overlay, &workspace, &stop).unwrap();
    assert!(files.iter().all(|file| file.runs_later.is_some()), "{files:?}");
    stop.raise();
    let mut files = unmarked();
    later::mark_later(&mut files, &world.overlay, &workspace, &stop).unwrap_err();
    assert!(files.iter().all(|file| file.runs_later.is_none()), "{files:?}");
}
