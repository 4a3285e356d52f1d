//! Overlays of subagents (forks): the first content, and the result of a merge.

use std::collections::BTreeMap;

use belljar_overlay::{
    MergeConflict, MergeResult, Overlay, OverlayFork, OverlayPool, OverlayQuota,
};
use belljar_work::StopSignal;

use super::super::*;
use super::differential::{LENGTH, op};
use super::world::{Fd, Op, Random, Side, World, names, over, plant, scratch};

impl World {
    fn fork(&self, name: &str) -> OverlayFork {
        self.overlay.open_fork(self.home.path().join("forks").join(name)).unwrap()
    }

    async fn seen(&self) -> BTreeMap<String, String> {
        seen(&self.overlay).await
    }
}

/// The files of an overlay with their texts, and the directories.
async fn seen(overlay: &Overlay) -> BTreeMap<String, String> {
    let tree = Side::of(&[over("/low", overlay)]).tree(0).await;
    // Times are removed: each overlay has its own.
    let content = |mut said: String| said.split_off(said.rfind("DescriptorType::").unwrap());
    tree.into_iter().map(|(path, said)| (path, content(said))).collect()
}

fn text(text: &str) -> String {
    format!("DescriptorType::RegularFile {:?}", text.as_bytes())
}

async fn write(overlay: &Overlay, files: &[(&str, &str)]) {
    let mut rig = Rig::new();
    rig.ctx.mounts.push(over("/over", overlay));
    let top = preopens::Host::get_directories(&mut rig.view()).unwrap().pop().unwrap().0.rep();
    for (path, text) in files {
        rig.write(top, path, text).await.unwrap();
    }
}

async fn act(overlay: &Overlay, ops: Vec<Op>) {
    let mut side = Side::of(&[over("/low", overlay)]);
    let fds = side.preopens();
    for op in ops {
        let (said, _) = side.act(&op, &fds).await;
        assert_eq!(said, "done", "{op:?}");
    }
}

fn rename(from: &str, to: &str) -> Op {
    Op::Rename(0, from.into(), 0, to.into())
}

fn unlink(path: &str) -> Op {
    Op::Unlink(0, path.into())
}

fn conflict(path: &str, beside: Option<&str>) -> MergeConflict {
    MergeConflict { path: path.into(), beside: beside.map(Into::into) }
}

#[tokio::test]
async fn a_fork_begins_as_its_parent_and_neither_sees_the_other_after() {
    let world = World::new(&[("a", "of a"), ("d/b", "of b"), ("gone", "gone")]);
    write(&world.overlay, &[("a", "parent's"), ("new", "new")]).await;
    act(&world.overlay, vec![rename("d", "e"), unlink("gone")]).await;
    let fork = world.fork("one");
    let begun = world.seen().await;
    assert_eq!(seen(fork.overlay()).await, begun);
    write(fork.overlay(), &[("a", "child's"), ("e/b", "child's"), ("more", "x")]).await;
    assert_eq!(world.seen().await, begun);
    let own = seen(fork.overlay()).await;
    write(&world.overlay, &[("a", "again"), ("later", "x")]).await;
    assert_eq!(seen(fork.overlay()).await, own);
    // A dropped fork leaves no files.
    let parents = world.seen().await;
    fork.discard().unwrap();
    assert_eq!(world.seen().await, parents);
    assert_eq!(std::fs::read_dir(world.home.path().join("forks")).unwrap().count(), 0);
    assert_eq!(std::fs::read_to_string(world.home.path().join("ws/a")).unwrap(), "of a");
}

#[tokio::test]
async fn what_a_fork_alone_changed_is_merged() {
    let files = [("a", "of a"), ("b", "of b"), ("c", "of c"), ("d/x", "x"), ("d/y/z", "z")];
    let world = World::new(&files);
    write(&world.overlay, &[("parents", "before")]).await;
    let fork = world.fork("one");
    write(fork.overlay(), &[("a", "child's"), ("new", "new"), ("parents", "child's")]).await;
    let changes =
        vec![unlink("b"), rename("c", "c2"), rename("d", "e"), Op::MakeDir(0, "f".into())];
    act(fork.overlay(), changes).await;
    write(&world.overlay, &[("meanwhile", "parent's")]).await;
    let mut expected = seen(fork.overlay()).await;
    expected.insert("/meanwhile".into(), text("parent's"));
    let merged = fork.merge_into(&world.overlay, "child").unwrap();
    assert_eq!(merged.conflicts, []);
    assert_eq!(world.seen().await, expected);
    // It stays, also when it is opened again.
    let World { home, overlay } = world;
    drop(overlay);
    let parent = World::open(home.path(), OverlayQuota::default());
    assert_eq!(seen(&parent).await, expected);
    assert_eq!(std::fs::read_to_string(home.path().join("ws/a")).unwrap(), "of a");
}

#[tokio::test]
async fn what_both_changed_is_kept_twice_and_told() {
    let files =
        [("both", "old"), ("alike", "old"), ("removed", "old"), ("kept", "old"), ("d/f", "f")];
    let world = World::new(&files);
    let fork = world.fork("one");
    write(fork.overlay(), &[("both", "child's"), ("alike", "same"), ("new", "child's")]).await;
    write(fork.overlay(), &[("removed", "child's"), ("d/f", "child's")]).await;
    act(fork.overlay(), vec![unlink("kept")]).await;
    write(&world.overlay, &[("both", "parent's"), ("alike", "same"), ("new", "parent's")]).await;
    write(&world.overlay, &[("kept", "parent's"), ("both.from-a-child-1", "in the way")]).await;
    act(&world.overlay, vec![unlink("removed"), rename("d", "e")]).await;
    let merged = fork.merge_into(&world.overlay, "a child#1").unwrap();
    let found = world.seen().await;
    let expected = [
        ("/both", "parent's"),
        ("/both.from-a-child-1", "in the way"),
        ("/both.from-a-child-1-2", "child's"),
        ("/alike", "same"),
        ("/new", "parent's"),
        ("/new.from-a-child-1", "child's"),
        ("/kept", "parent's"),
        ("/removed.from-a-child-1", "child's"),
        ("/e/f", "f"),
    ];
    for (path, expected) in expected {
        assert_eq!(found.get(path), Some(&text(expected)), "{path}: {found:?}");
    }
    assert!(!found.contains_key("/removed"), "the parent's stays");
    for told in [
        conflict("both", Some("both.from-a-child-1-2")),
        conflict("new", Some("new.from-a-child-1")),
        conflict("kept", None),
        conflict("removed", Some("removed.from-a-child-1")),
    ] {
        assert!(merged.conflicts.contains(&told), "{told:?}: {merged:?}");
    }
    // The parent moved the directory; the child's change in the directory is not lost.
    let of_f: Vec<_> = found.iter().filter(|(_, said)| **said == text("child's")).collect();
    assert!(of_f.iter().any(|(path, _)| path.contains("/d")), "{of_f:?}");
}

/// A process that is killed during a merge repeats the merge.
#[tokio::test]
async fn a_merge_that_is_made_twice_changes_nothing_more() {
    let world = World::new(&[("a", "of a"), ("both", "old"), ("d/x", "x")]);
    let fork = world.fork("one");
    write(fork.overlay(), &[("a", "child's"), ("both", "child's"), ("new", "x")]).await;
    act(fork.overlay(), vec![rename("d", "e")]).await;
    write(&world.overlay, &[("both", "parent's")]).await;
    drop(fork);
    let dir = world.home.path().join("forks/one");
    let aside = world.home.path().join("aside");
    super::kept::copy(&dir, &aside);
    let first = world.fork("one").merge_into(&world.overlay, "child").unwrap();
    let merged = world.seen().await;
    assert!(!dir.exists());
    super::kept::copy(&aside, &dir);
    let second = world.fork("one").merge_into(&world.overlay, "child").unwrap();
    assert_eq!(world.seen().await, merged);
    assert_eq!((second.changed, &second.conflicts), (0, &first.conflicts));
}

#[tokio::test]
async fn a_fork_lasts_over_a_restart_and_one_half_made_begins_anew() {
    let world = World::new(&[("a", "of a")]);
    let fork = world.fork("one");
    write(fork.overlay(), &[("a", "child's")]).await;
    drop(fork);
    write(&world.overlay, &[("later", "parent's")]).await;
    let again = world.fork("one");
    let found = seen(again.overlay()).await;
    assert_eq!(found.get("/a"), Some(&text("child's")));
    assert!(!found.contains_key("/later"));
    assert!(
        world.overlay.open_fork(world.home.path().join("forks/one")).is_err(),
        "it is open once"
    );
    drop(again);
    let half = world.home.path().join("forks/two.next/base/files");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(half.join("1"), "half").unwrap();
    let fork = world.fork("two");
    assert_eq!(seen(fork.overlay()).await, world.seen().await);
    assert!(!world.home.path().join("forks/two.next").exists());
}

#[tokio::test]
async fn a_fork_counts_in_its_parents_pool_as_long_as_it_is_there() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("ws")).unwrap();
    let none = OverlayQuota { bytes: 0, files: 0 };
    let pool = OverlayPool::new(OverlayQuota { bytes: 100, files: 10 }, none);
    let low = home.path().join("ws");
    let parent = Overlay::open_in(&low, home.path().join("layer"), &pool).unwrap();
    write(&parent, &[("a", &"x".repeat(40))]).await;
    let fork = parent.open_fork(home.path().join("one")).unwrap();
    assert_eq!(pool.held_quota().bytes, 80);
    assert!(parent.open_fork(home.path().join("two")).is_err(), "no room for one more");
    write(fork.overlay(), &[("b", &"x".repeat(10))]).await;
    assert_eq!(pool.held_quota().bytes, 90);
    fork.discard().unwrap();
    assert_eq!(pool.held_quota(), OverlayQuota { bytes: 40, files: 1 }, "as before");
    let fork = parent.open_fork(home.path().join("one")).unwrap();
    write(fork.overlay(), &[("b", &"x".repeat(10))]).await;
    // After the owner is dropped, the fork's files are still on disk, and the fork can be opened again.
    drop(fork);
    assert_eq!(pool.held_quota(), OverlayQuota { bytes: 90, files: 3 });
    let fork = parent.open_fork(home.path().join("one")).unwrap();
    assert_eq!(pool.held_quota(), OverlayQuota { bytes: 90, files: 3 });
    assert_eq!(fork.changed_paths(9).unwrap(), (vec!["b".into()], 0));
    fork.merge_into(&parent, "child").unwrap();
    drop(parent);
    assert_eq!(pool.held_quota(), OverlayQuota { bytes: 50, files: 2 });
}

/// For random operations in the parent before the fork, and in the fork: if the parent makes no change
/// meanwhile, the parent has the fork's content after the merge.
#[tokio::test]
async fn a_parent_that_did_nothing_has_what_its_fork_had() {
    for seed in 0..150 {
        let home = scratch();
        plant(&home.path().join("ws"), seed);
        let parent = World::open(home.path(), OverlayQuota::default());
        let mut random = Random::new(!seed);
        let fork = {
            run(&parent, &mut random, seed).await;
            parent.open_fork(home.path().join("fork")).unwrap()
        };
        let log = run(fork.overlay(), &mut random, seed).await;
        let expected = seen(fork.overlay()).await;
        let merged: MergeResult = fork.merge_into(&parent, "child").unwrap();
        assert_eq!(merged.conflicts, [], "seed {seed}:\n{}", log.join("\n"));
        assert_eq!(seen(&parent).await, expected, "seed {seed}:\n{}", log.join("\n"));
        drop(parent);
        let parent = World::open(home.path(), OverlayQuota::default());
        assert_eq!(seen(&parent).await, expected, "seed {seed}, opened again");
    }
}

async fn run(overlay: &Overlay, random: &mut Random, seed: u64) -> Vec<String> {
    let mut side = Side::of(&[over("/low", overlay)]);
    let mut fds: Vec<Fd> = side.preopens();
    let mut log = Vec::new();
    for _ in 0..LENGTH / 2 {
        let op = op(random, names(seed), fds.len());
        if matches!(op, Op::Drop(_)) {
            continue;
        }
        let (said, opened) = side.act(&op, &fds).await;
        log.push(format!("{op:?}: {said}"));
        fds.extend(opened);
    }
    log
}

#[tokio::test]
async fn a_copy_ends_between_two_files_when_its_signal_is_raised_and_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("ws")).unwrap();
    let none = OverlayQuota { bytes: 0, files: 0 };
    let pool = OverlayPool::new(OverlayQuota { bytes: 100, files: 10 }, none);
    let low = home.path().join("ws");
    let parent = Overlay::open_in(&low, home.path().join("layer"), &pool).unwrap();
    write(&parent, &[("a", &"x".repeat(20)), ("b", &"x".repeat(20))]).await;
    let stop = StopSignal::never_raised();
    stop.raise();
    let error = parent.fork_until(home.path().join("one"), &stop).unwrap_err();
    assert!(error.to_string().contains("stopped before the end"), "{error}");
    let mut left: Vec<_> = std::fs::read_dir(home.path()).unwrap().flatten().collect();
    left.retain(|entry| entry.file_name() != "ws" && entry.file_name() != "layer");
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(pool.held_quota(), OverlayQuota { bytes: 40, files: 2 }, "as before");
    // A later fork to the same place succeeds.
    assert_eq!(
        parent.open_fork(home.path().join("one")).unwrap().changed_paths(9).unwrap(),
        (vec![], 0)
    );
}

/// INV-484: one worker thread runs both guests.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_that_waits_for_a_locked_overlay_lets_its_neighbours_go_on() {
    let world = World::new(&[("a", "a")]);
    let (parent, waiting) = (world.overlay.clone(), world.overlay.clone());
    let (hold, held) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel();
    // Holds the lock, as a copy for a subagent does.
    let holder = std::thread::Builder::new();
    #[expect(clippy::disallowed_methods, reason = "a test that holds a lock meanwhile")]
    let holder = holder.spawn(move || {
        let view = parent.lock_view();
        hold.send(()).unwrap();
        let is_released = released.recv_timeout(std::time::Duration::from_secs(30)).is_ok();
        drop(view);
        is_released
    });
    held.recv().unwrap();
    let (begin, begun) = std::sync::mpsc::channel();
    let call = tokio::spawn(async move {
        begin.send(()).unwrap();
        waiting.used_quota()
    });
    begun.recv().unwrap();
    let neighbour = tokio::spawn(async move { release.send(()).unwrap() });
    neighbour.await.unwrap();
    assert!(holder.unwrap().join().unwrap(), "the neighbour ran while the call waited");
    assert_eq!(call.await.unwrap(), OverlayQuota { bytes: 0, files: 0 });
}
