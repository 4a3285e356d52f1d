//! Nothing is written outside the workspace, nor where only a person writes.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use super::world::{World, all, tree};
use crate::changes::{ChangeConflict, PathSelection};

#[test]
fn a_directory_swapped_for_a_link_during_apply_never_leads_out() {
    let world = World::new(&[("d/a", "a\n"), ("d/b", "b\n"), ("keep", "k\n")]);
    let outside = world.home.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    for name in ["a", "b", "x"] {
        std::fs::write(outside.join(name), "theirs\n").unwrap();
    }
    let before = tree(&outside);
    let (stop, ws) = (AtomicBool::new(false), world.ws());
    let mut tried = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let (dir, aside) = (ws.join("d"), ws.join("aside"));
                if std::fs::rename(&dir, &aside).is_ok() {
                    let _ = symlink(&outside, &dir);
                    std::thread::yield_now();
                    let _ = std::fs::remove_file(&dir);
                    while std::fs::rename(&aside, &dir).is_err() {
                        let _ = std::fs::remove_dir_all(&dir);
                    }
                }
            }
        });
        for round in 0..200 {
            let _ = world.overlay.write_file("d/a", format!("{round}\n").as_bytes());
            let _ = world.overlay.write_file("d/new", format!("{round}\n").as_bytes());
            let _ = world.overlay.remove_path("d/b");
            let Ok(review) = crate::changes::OverlayReview::open(
                &world.overlay,
                world.home.path().join("journal"),
            ) else {
                continue;
            };
            tried += usize::from(review.apply_changes(&PathSelection::all(), &all()).is_ok());
            assert_eq!(tree(&outside), before, "round {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(tree(&outside), before);
    // Its neighbour is applied as ever.
    world.write("keep", "agent\n");
    world.apply(&["keep"], &all());
    assert_eq!(world.read("keep").unwrap(), "agent\n");
    assert!(tried > 0, "some came to an end");
}

#[test]
fn a_link_in_the_place_of_a_file_or_directory_is_not_followed() {
    let world = World::new(&[("d/a", "a\n"), ("f", "f\n"), ("g", "g\n")]);
    let outside = world.home.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a"), "theirs\n").unwrap();
    let before = tree(&outside);
    world.write("d/a", "agent\n");
    world.write("d/new", "agent\n");
    world.write("f", "agent\n");
    world.write("g", "agent\n");
    world.changes();
    std::fs::remove_dir_all(world.ws().join("d")).unwrap();
    symlink(&outside, world.ws().join("d")).unwrap();
    std::fs::remove_file(world.ws().join("f")).unwrap();
    symlink(outside.join("a"), world.ws().join("f")).unwrap();
    let selection = PathSelection::from_paths(["d/a", "f", "g"]).unwrap();
    let applied = world.review().apply_changes(&selection, &all()).unwrap();
    let left: Vec<_> = applied.conflicts.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(left, ["d/a", "f"]);
    assert_eq!(tree(&outside), before);
    assert_eq!(world.read("g").unwrap(), "agent\n");
    // A new file in what is a link now.
    let applied = world.apply(&["d/new"], &all());
    assert_eq!(applied.conflicts, [("d/new".into(), ChangeConflict::NoDirectory)]);
    assert_eq!(tree(&outside), before);
}

#[test]
fn protected_names_are_never_written_even_if_the_index_has_them() {
    let world = World::new(&[("AGENTS.md", "rules\n"), ("a", "a\n")]);
    for path in ["AGENTS.md", "agents.MD", "belljar.toml", "x\u{200c}"] {
        world.write(path, "evil\n");
    }
    world.overlay.make_dir(".BellJar").unwrap();
    world.write(".BellJar/agent.md", "evil\n");
    world.write("a", "fine\n");
    let applied = world.review().apply_changes(&PathSelection::all(), &all()).unwrap();
    let refused = applied.conflicts.iter().filter(|(_, why)| *why == ChangeConflict::Protected);
    assert_eq!(refused.count(), 5, "{:?}", applied.conflicts);
    assert_eq!(world.read("AGENTS.md").unwrap(), "rules\n");
    for path in ["agents.MD", "belljar.toml", ".BellJar"] {
        assert!(!world.ws().join(path).exists(), "{path}");
    }
    assert_eq!(world.read("a").unwrap(), "fine\n");
}

#[test]
fn a_file_with_other_hard_links_is_replaced_and_they_keep_their_content() {
    let world = World::new(&[("a", "a\n")]);
    let outside = world.home.path().join("outside");
    std::fs::hard_link(world.ws().join("a"), &outside).unwrap();
    world.write("a", "agent\n");
    world.apply_all();
    assert_eq!(world.read("a").unwrap(), "agent\n");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "a\n");
    world.review().undo_apply().unwrap();
    assert_eq!(world.read("a").unwrap(), "a\n");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "a\n");
}

#[test]
fn the_journal_keeps_nothing_in_the_workspace() {
    let world = World::new(&[("a", "a\n"), ("d/b", "b\n")]);
    world.write("a", "agent\n");
    world.overlay.remove_path("d/b").unwrap();
    world.apply_all();
    let tree = world.tree();
    let names: Vec<_> = tree.keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(names, ["a", "d"]);
}
