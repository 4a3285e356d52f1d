//! Layers of a session on disk: made, found again, copied, and ended.

use super::*;

fn mounted(host: &Path) -> Mount {
    Mount { guest: GuestPath::workspace(), host: host.to_owned(), access: MountAccess::Overlay }
}

fn pool() -> OverlayPool {
    let none = OverlayQuota { bytes: 0, files: 0 };
    OverlayPool::new(OverlayQuota::default(), none)
}

#[test]
fn a_directory_has_one_layer_and_one_without_a_change_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (lower, other) = (dir.path().join("lower"), dir.path().join("o\nther"));
    fs::create_dir(&lower).unwrap();
    fs::create_dir(&other).unwrap();
    let root = dir.path().join("sessions/one");
    let layers = SessionLayers::in_directory(root.clone(), pool());
    layers.overlay(&mounted(&lower)).unwrap();
    layers.clone().overlay(&mounted(&lower)).unwrap();
    layers.overlay(&mounted(&other)).unwrap();
    let present = layers.present().unwrap();
    let lowers: Vec<_> = present.iter().map(|layer| layer.lower.as_path()).collect();
    assert_eq!(lowers, [&lower, &other]);
    drop(present);
    layers.close();
    assert!(!root.exists() && root.parent().unwrap().exists());
}

/// INV-531.
#[test]
fn opening_an_overlay_ends_with_its_signal_and_leaves_it_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let lower = dir.path().join("lower");
    fs::create_dir(&lower).unwrap();
    let (pool, root) = (pool(), dir.path().join("session"));
    let layers = SessionLayers::in_directory(root.clone(), pool.clone());
    layers.overlay(&mounted(&lower)).unwrap().write_file("a", &[0; 30][..]).unwrap();
    layers.close();
    let held = pool.held_quota();
    let raised = StopSignal::never_raised();
    raised.raise();
    let layers = SessionLayers::in_directory(root, pool.clone());
    let error = layers.overlay_until(&mounted(&lower), &raised).unwrap_err();
    assert!(error.to_string().contains("stopped before the end"), "{error}");
    assert!(layers.present_until(&raised).is_err());
    assert_eq!(pool.held_quota(), held, "as before");
    let layer = layers.present().unwrap().remove(0);
    assert_eq!(layer.overlay.used_quota().files, 1, "and the next one has what was changed");
}

#[test]
fn what_a_dead_process_left_counts_until_the_next_turn_removes_it() {
    let dir = tempfile::tempdir().unwrap();
    let lower = dir.path().join("lower");
    fs::create_dir(&lower).unwrap();
    let root = dir.path().join("session");
    let layers = SessionLayers::in_directory(root.clone(), pool());
    let overlay = layers.overlay(&mounted(&lower)).unwrap();
    overlay.write_file("a", &[0; 30][..]).unwrap();
    let copy = layers.fork_layers("child");
    copy.overlay(&mounted(&lower)).unwrap().write_file("b", &[0; 7][..]).unwrap();
    let below = copy.fork_layers("its own");
    below.overlay(&mounted(&lower)).unwrap();
    let journal = layers.present().unwrap().remove(0).journal;
    fs::create_dir(&journal).unwrap();
    fs::write(journal.join("before"), [0; 5]).unwrap();
    drop((overlay, below, copy));
    layers.close();
    drop(layers);
    let held = held_in(&root);
    assert_eq!((held.bytes, held.files), (30 + 37 + 37 + 5, 1 + 2 + 2));
    let pool = OverlayPool::new(OverlayQuota::default(), held);
    let layers = SessionLayers::in_directory(root.clone(), pool.clone());
    // The resuming process finds the fork, and the fork counts once.
    layers.fork_layers("child").overlay(&mounted(&lower)).unwrap();
    assert_eq!(pool.held_quota(), held);
    layers.forget_copies();
    assert_eq!(pool.held_quota(), OverlayQuota { bytes: 35, files: 1 });
    assert!(!root.join("forks").exists());
    layers.close();
    assert_eq!((pool.held_quota(), held_in(&root)), (pool.held_quota(), pool.held_quota()));
}

#[test]
fn a_copy_that_was_not_made_is_not_made_later() {
    let dir = tempfile::tempdir().unwrap();
    let lower = dir.path().join("lower");
    fs::create_dir(&lower).unwrap();
    let layers = SessionLayers::in_directory(dir.path().join("session"), pool());
    let overlay = layers.overlay(&mounted(&lower)).unwrap();
    overlay.write_file("a", &b"of the agent"[..]).unwrap();
    let (copy, neighbour) = (layers.fork_layers("child"), layers.fork_layers("other"));
    copy.not_copied("stopped before the end");
    let error = copy.overlay(&mounted(&lower)).unwrap_err();
    assert!(matches!(error, LayersError::NotCopied(_)), "{error}");
    assert!(!copy.is_made());
    neighbour.overlay(&mounted(&lower)).unwrap();
    assert!(neighbour.is_made());
}

/// INV-214.
#[test]
fn another_directory_at_the_same_path_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let (lower, aside) = (dir.path().join("lower"), dir.path().join("aside"));
    fs::create_dir(&lower).unwrap();
    let layers = SessionLayers::in_directory(dir.path().join("session"), pool());
    let overlay = layers.overlay(&mounted(&lower)).unwrap();
    overlay.write_file("a", &b"of the agent"[..]).unwrap();
    drop(overlay);
    layers.close();
    fs::rename(&lower, &aside).unwrap();
    fs::create_dir(&lower).unwrap();
    assert!(matches!(layers.overlay(&mounted(&lower)), Err(LayersError::Moved(_))));
    assert!(matches!(layers.present(), Err(LayersError::Moved(_))));
    fs::remove_dir(&lower).unwrap();
    std::os::unix::fs::symlink(&aside, &lower).unwrap();
    // The same directory, by another way.
    assert_eq!(layers.present().unwrap().len(), 1);
}

#[test]
fn a_mount_is_read_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"/a\n\xff b");
    let text = [b"/workspace\t7\n", name.as_bytes()].concat();
    assert_eq!(parse_mount(&text), Some((GuestPath::workspace(), 7, PathBuf::from(name))));
    assert_eq!(parse_mount(b"workspace\n/a"), None);
    assert_eq!(list_stored_layers(&dir.path().join("nowhere")).unwrap(), []);
}
