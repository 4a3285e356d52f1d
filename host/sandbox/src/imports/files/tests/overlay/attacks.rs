//! Attacks of a hostile guest on an overlay, during changes of the lower directory.

use std::os::unix::fs::MetadataExt as _;

use belljar_overlay::{Overlay, OverlayPool, OverlayQuota};

use super::super::routes::write_routes;
use super::super::*;
use super::world::over;
use crate::imports::files::ClosedPaths;
use rustix::fs::{CWD, FileType as Type, Mode, mknodat};

/// An overlay of `lower` in the rig's home, and the descriptor of the overlay's root.
fn overlaid(rig: &mut Rig, lower: &str, quota: OverlayQuota) -> (Overlay, u32) {
    std::fs::create_dir_all(rig.host(lower)).unwrap();
    let (lower, layer) = (rig.host(lower), rig.host(&format!("{lower}.layer")));
    overlaid_at(rig, &lower, &layer, quota)
}

fn overlaid_at(rig: &mut Rig, lower: &Path, layer: &Path, quota: OverlayQuota) -> (Overlay, u32) {
    let overlay = Overlay::open(lower, layer, quota).unwrap();
    let top = mounted(rig, over("/over", &overlay));
    (overlay, top)
}

fn mounted(rig: &mut Rig, mount: OpenMount) -> u32 {
    rig.ctx.mounts.push(mount);
    let found = preopens::Host::get_directories(&mut rig.view()).unwrap();
    found.last().unwrap().0.rep()
}

fn plenty() -> OverlayQuota {
    OverlayQuota::default()
}

/// The names that a guest sees in a directory.
async fn names(rig: &mut Rig, dir: u32) -> Vec<String> {
    use types::HostDirectoryEntryStream as Entries;
    let mut view = rig.view();
    let listing = view.read_directory(fd(dir)).await.unwrap().rep();
    let mut names = Vec::new();
    while let Some(entry) = view.read_directory_entry(Resource::new_borrow(listing)).await.unwrap()
    {
        names.push(entry.name);
    }
    Entries::drop(&mut view, Resource::new_own(listing)).unwrap();
    names.sort();
    names
}

/// Checks after a refusal that the overlay can still be written and read.
async fn assert_writes(rig: &mut Rig, dir: u32) {
    rig.write(dir, "neighbour", "fine").await.unwrap();
    assert_eq!(rig.read(dir, "neighbour").await.unwrap(), "fine");
    rig.view().unlink_file_at(fd(dir), "neighbour".into()).await.unwrap();
    rig.denials();
    rig.assert_works().await;
}

#[tokio::test]
async fn what_is_written_through_an_overlay_is_not_written_below() {
    let mut rig = Rig::new();
    rig.put("low/a.txt", "below");
    rig.put("low/d/b.txt", "below too");
    let (overlay, top) = overlaid(&mut rig, "low", plenty());
    rig.write(top, "a.txt", "above").await.unwrap();
    rig.view().rename_at(fd(top), "d".into(), fd(top), "e".into()).await.unwrap();
    rig.view().unlink_file_at(fd(top), "e/b.txt".into()).await.unwrap();
    rig.write(top, "new.txt", "new").await.unwrap();
    assert_eq!(names(&mut rig, top).await, ["a.txt", "e", "new.txt"]);
    assert_eq!(rig.read(top, "a.txt").await.unwrap(), "above");
    assert_eq!(rig.text("low/a.txt"), "below");
    assert_eq!(rig.text("low/d/b.txt"), "below too");
    assert_eq!(std::fs::read_dir(rig.host("low")).unwrap().count(), 2);
    // A mount with less access shows the same content.
    let reading = mounted(&mut rig, over("/read", &overlay).at_most(MountAccess::Read));
    assert_eq!(rig.read(reading, "a.txt").await.unwrap(), "above");
    for (route, error) in write_routes(&mut rig, reading, "a.txt").await {
        assert_eq!(error, ErrorCode::ReadOnly, "{route}");
    }
    assert_eq!(rig.read(top, "a.txt").await.unwrap(), "above");
    rig.denials();
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn names_of_the_layer_are_names_like_others() {
    let home = tempfile::tempdir().unwrap();
    let (low, layer) = (home.path().join("low"), home.path().join("low.layer"));
    std::fs::create_dir(&low).unwrap();
    std::fs::write(low.join("kept"), "kept").unwrap();
    let mut rig = Rig::new();
    let (overlay, top) = overlaid_at(&mut rig, &low, &layer, plenty());
    rig.view().unlink_file_at(fd(top), "kept".into()).await.unwrap();
    rig.view().create_directory_at(fd(top), "files".into()).await.unwrap();
    let forged = ["index", "index.next", "lock", "empty", "files/1", "files/2", ".wh.kept", ".opq"];
    for name in forged {
        rig.write(top, name, "belljar overlay 1\n").await.unwrap();
    }
    for way in ["../low.layer/index", "../low.layer/files/1", "files/../../low.layer/index"] {
        let refused = code(rig.open(top, way, How::Replace).await);
        assert_eq!(refused, ErrorCode::NotPermitted, "{way}");
    }
    // Replacing or removing these files has no effect on the layer's own files.
    rig.view().rename_at(fd(top), "index".into(), fd(top), "files/1".into()).await.unwrap();
    rig.view().unlink_file_at(fd(top), "lock".into()).await.unwrap();
    let seen = names(&mut rig, top).await;
    assert_eq!(seen, [".opq", ".wh.kept", "empty", "files", "index.next"]);
    assert_eq!(code(rig.read(top, "kept").await), ErrorCode::NoEntry);
    assert_eq!(std::fs::read_dir(&low).unwrap().count(), 1);
    drop((overlay, rig));
    let mut rig = Rig::new();
    let (_overlay, top) = overlaid_at(&mut rig, &low, &layer, plenty());
    assert_eq!(names(&mut rig, top).await, seen, "opened again");
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn what_was_hidden_is_not_shown_again() {
    let mut rig = Rig::new();
    rig.put("low/d/f", "below");
    rig.put("low/d/sub/g", "below");
    let (_overlay, top) = overlaid(&mut rig, "low", plenty());
    let gone = ErrorCode::NoEntry;
    rig.view().unlink_file_at(fd(top), "d/f".into()).await.unwrap();
    let moves = [("d", "e"), ("e/sub", "sub"), ("e", "d"), ("sub", "d/other"), ("d", "x")];
    for (from, to) in moves {
        rig.view().rename_at(fd(top), from.into(), fd(top), to.into()).await.unwrap();
        for path in ["d/f", "e/f", "x/f", "d/sub/g", "e/sub/g", "x/sub/g"] {
            let found = rig.read(top, path).await;
            let moved = path == "e/sub/g" && (from, to) == ("d", "e");
            assert_eq!(found.is_ok(), moved, "{path} after {from} to {to}");
        }
    }
    // Neither a new directory of the old name nor files that the owner makes there bring the moved content
    // back.
    rig.view().create_directory_at(fd(top), "d".into()).await.unwrap();
    rig.put("low/d/f", "made anew below");
    assert_eq!(code(rig.read(top, "d/f").await), gone);
    assert_eq!(code(rig.read(top, "x/f").await), gone);
    assert_eq!(names(&mut rig, top).await, ["d", "x"]);
    // After a new file is removed, a lower file that was made meanwhile under the same name does not appear.
    rig.write(top, "mine", "mine").await.unwrap();
    rig.put("low/mine", "theirs");
    rig.view().unlink_file_at(fd(top), "mine".into()).await.unwrap();
    assert_eq!(code(rig.read(top, "mine").await), gone);
    assert_eq!(rig.text("low/mine"), "theirs");
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn no_link_below_leads_out_of_an_overlay() {
    let mut rig = Rig::new();
    rig.put("low/d/note.txt", NOTE);
    rig.symlink("../outside.txt", "low/up");
    rig.symlink(rig.host("outside.txt"), "low/absolute");
    rig.symlink("..", "low/parent");
    let (_overlay, top) = overlaid(&mut rig, "low", plenty());
    for path in ["up", "absolute", "parent/outside.txt", "../outside.txt", "parent/../outside.txt"]
    {
        for how in [How::Read, How::Write, How::Replace] {
            let refused = code(rig.open(top, path, how).await);
            assert_eq!(refused, ErrorCode::NotPermitted, "{path} {how:?}");
        }
    }
    let view = &mut rig.view();
    let moved = view.rename_at(fd(top), "up".into(), fd(top), "d/up".into()).await;
    let linked = view.link_at(fd(top), PathFlags::empty(), "up".into(), fd(top), "up2".into());
    assert_eq!(code(linked.await), ErrorCode::NotPermitted);
    assert_eq!(code(moved), ErrorCode::NotPermitted);
    // The directory is moved first; then the lower directory is replaced by a link that leads outside.
    rig.view().rename_at(fd(top), "d".into(), fd(top), "e".into()).await.unwrap();
    rig.put("secret/note.txt", "outside");
    std::fs::remove_dir_all(rig.host("low/d")).unwrap();
    rig.symlink("../secret", "low/d");
    for path in ["e/note.txt", "d/note.txt"] {
        assert_eq!(code(rig.open(top, path, How::Read).await), ErrorCode::NoEntry, "{path}");
    }
    rig.write(top, "e/note.txt", "mine").await.unwrap();
    assert_eq!(rig.text("secret/note.txt"), "outside");
    assert_eq!(rig.text("outside.txt"), "outside");
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn a_directory_swapped_for_a_link_below_is_not_copied_from() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let mut rig = Rig::new();
    // One file for each copy.
    for n in 0..500 {
        rig.put(&format!("secret/{n}"), "outside");
        rig.put(&format!("low/d/{n}"), NOTE);
    }
    rig.symlink("../secret", "low/link");
    let (overlay, top) = overlaid(&mut rig, "low", plenty());
    let (root, stop) = (rig.host("low"), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    #[expect(clippy::disallowed_methods, reason = "a test that swaps meanwhile")]
    let swapper = std::thread::spawn(move || {
        let dir = std::fs::File::open(root).unwrap();
        let exchange = rustix::fs::RenameFlags::EXCHANGE;
        while !stopped.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(&dir, "d", &dir, "link", exchange).unwrap();
            std::thread::yield_now();
        }
    });
    let (mut copied, mut refused) = (0, 0);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while copied < 500 || refused == 0 {
        assert!(std::time::Instant::now() < deadline, "{copied} copied, {refused} refused");
        match rig.open(top, &format!("d/{}", copied % 500), How::Write).await {
            Ok(file) => {
                let rep = file.rep();
                let (bytes, _) = rig.view().read(file, 100, 0).await.unwrap();
                assert_eq!(bytes, NOTE.as_bytes(), "nothing of outside is copied");
                HostDescriptor::drop(&mut rig.view(), own(rep)).unwrap();
                copied += 1;
            }
            Err(error) => {
                let error = error.downcast().unwrap();
                let swapped = matches!(
                    error,
                    ErrorCode::NotPermitted | ErrorCode::NotDirectory | ErrorCode::NoEntry
                );
                assert!(swapped, "{error:?}");
                refused += 1;
            }
        }
        tokio::task::yield_now().await;
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    for n in 0..500 {
        assert_eq!(rig.text(&format!("secret/{n}")), "outside");
    }
    assert!(overlay.used_quota().files >= 500);
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn holes_and_lengths_count_in_an_overlay() {
    let mut rig = Rig::new();
    rig.put("low/ten", "0123456789");
    let sparse = std::fs::File::create(rig.host("low/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let (overlay, top) = overlaid(&mut rig, "low", OverlayQuota { bytes: 100, files: 100 });
    let full = ErrorCode::InsufficientSpace;
    let file = rig.open(top, "a", How::Replace).await.unwrap().rep();
    let mut view = rig.view();
    assert_eq!(code(view.set_size(fd(file), 101).await), full);
    assert_eq!(code(view.write(fd(file), b"x".to_vec(), 100).await), full, "a hole counts");
    view.set_size(fd(file), 90).await.unwrap();
    assert_eq!(view.write(fd(file), b"xx".to_vec(), 0).await.unwrap(), 2, "filling it does not");
    assert_eq!(code(view.write(fd(file), vec![b'x'; 11], 90).await), full);
    let stream = view.append_via_stream(fd(file)).unwrap();
    let writer = rig.table.get_mut(&stream).unwrap();
    assert!(writer.blocking_write_and_flush(vec![b'x'; 11].into()).await.is_err());
    rig.table.delete(stream).unwrap();
    assert_eq!(rig.denials(), vec![DenyCode::LimitReached; 4]);
    // The bytes to copy are counted before they are copied.
    assert_eq!(code(rig.open(top, "sparse", How::Write).await), full);
    rig.open(top, "ten", How::Write).await.unwrap();
    assert_eq!(overlay.used_quota().bytes, 100);
    rig.open(top, "b", How::Create).await.unwrap();
    let b = rig.open(top, "b", How::Write).await.unwrap().rep();
    assert_eq!(code(rig.view().write(fd(b), b"x".to_vec(), 0).await), full);
    rig.denials();
    // The bytes of a file without a name count as long as the file is open.
    rig.view().unlink_file_at(fd(top), "a".into()).await.unwrap();
    assert_eq!(overlay.used_quota().bytes, 100);
    HostDescriptor::drop(&mut rig.view(), own(file)).unwrap();
    assert_eq!(overlay.used_quota().bytes, 10);
    // If the file is truncated first, nothing has to be copied.
    rig.write(top, "sparse", "short").await.unwrap();
    assert_eq!(overlay.used_quota().bytes, 15);
    assert_eq!(std::fs::metadata(rig.host("low/sparse")).unwrap().len(), 1 << 40);
    assert_eq!(rig.text("low/ten"), "0123456789");
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn copies_are_billed_like_what_is_written() {
    let limits = Limits { write_bytes: 100, ..Limits::default() };
    let mut rig = Rig::with(&limits);
    rig.put("low/big", &"x".repeat(80));
    rig.put("low/more", &"x".repeat(80));
    let (overlay, top) = overlaid(&mut rig, "low", plenty());
    rig.open(top, "big", How::Write).await.unwrap();
    assert_eq!(rig.budget.spent_amount(belljar_policy::Meter::Write), 80);
    let full = ErrorCode::InsufficientSpace;
    assert_eq!(code(rig.open(top, "more", How::Write).await), full);
    assert_eq!(rig.denials(), [DenyCode::LimitReached]);
    assert_eq!((overlay.used_quota().bytes, overlay.used_quota().files), (80, 1));
    assert_eq!(
        rig.budget.spent_amount(belljar_policy::Meter::Write),
        80,
        "what was refused is not"
    );
    assert_eq!(rig.read(top, "more").await.unwrap().len(), 80);
    rig.write(top, "neighbour", "fine").await.unwrap();
}

#[tokio::test]
async fn many_names_fill_an_overlay_whatever_they_are() {
    let mut rig = Rig::new();
    for n in 0..10 {
        rig.put(&format!("low/{n}"), "");
    }
    let (overlay, top) = overlaid(&mut rig, "low", OverlayQuota { bytes: 1 << 20, files: 6 });
    let full = ErrorCode::InsufficientSpace;
    rig.open(top, "file", How::Create).await.unwrap();
    rig.view().create_directory_at(fd(top), "dir".into()).await.unwrap();
    rig.view().unlink_file_at(fd(top), "0".into()).await.unwrap();
    rig.view().rename_at(fd(top), "1".into(), fd(top), "one".into()).await.unwrap();
    rig.write(top, "2", "x").await.unwrap();
    assert_eq!(
        overlay.used_quota().files,
        6,
        "a hidden name counts, and a moved one with its place"
    );
    assert_eq!(code(rig.open(top, "more", How::Create).await), full);
    let view = &mut rig.view();
    assert_eq!(code(view.create_directory_at(fd(top), "more".into()).await), full);
    assert_eq!(code(view.unlink_file_at(fd(top), "3".into()).await), full);
    assert_eq!(code(view.rename_at(fd(top), "4".into(), fd(top), "four".into()).await), full);
    let linked = view.link_at(fd(top), PathFlags::empty(), "5".into(), fd(top), "five".into());
    assert_eq!(code(linked.await), full);
    assert_eq!(code(rig.open(top, "6", How::Write).await), full);
    assert_eq!(rig.denials(), vec![DenyCode::LimitReached; 6]);
    assert_eq!(overlay.used_quota().files, 6);
    let seen = ["2", "3", "4", "5", "6", "7", "8", "9", "dir", "file", "one"];
    assert_eq!(names(&mut rig, top).await, seen);
    // Removing a file makes room.
    rig.view().unlink_file_at(fd(top), "file".into()).await.unwrap();
    rig.write(top, "more", "x").await.unwrap();
    assert_eq!(std::fs::read_dir(rig.host("low")).unwrap().count(), 10);
    rig.assert_works().await;
}

#[tokio::test]
async fn protected_names_are_not_changed_in_an_overlay_either() {
    let mut rig = Rig::new();
    rig.put("low/AGENTS.md", "rules");
    rig.put("low/note.txt", NOTE);
    rig.put("low/holds/deep/belljar.toml", "limits");
    rig.put("low/.belljar/agents/a.md", "agent");
    rig.symlink("means.md", "low/sub-AGENTS.md");
    rig.put("linked/means.md", "rules too");
    rig.symlink("means.md", "linked/AGENTS.md");
    let (overlay, top) = overlaid(&mut rig, "low", plenty());
    for name in ["AGENTS.md", ".belljar/agents/a.md", "holds/deep/belljar.toml"] {
        for (route, error) in write_routes(&mut rig, top, name).await {
            assert_eq!(error, ErrorCode::NotPermitted, "{route} {name}");
        }
    }
    for new in ["sub-agents/../agents.MD", "BELLJAR.toml", "AGENT\u{17f}.md", ".bell\u{200c}jar"] {
        let new = new.replace("sub-agents/../", "");
        let refused = code(rig.open(top, &new, How::Create).await);
        assert_eq!(refused, ErrorCode::NotPermitted, "{new}");
    }
    let moved = rig.view().rename_at(fd(top), "holds".into(), fd(top), "x".into()).await;
    assert_eq!(code(moved), ErrorCode::NotPermitted);
    assert!(rig.denials().iter().all(|code| *code == DenyCode::PathNotAllowed));
    assert_eq!(overlay.list_changes(), []);
    // The target of a link with a protected name cannot be written either.
    let (linked, linked_top) = overlaid(&mut rig, "linked", plenty());
    for (route, error) in [
        ("open", code(rig.open(linked_top, "means.md", How::Replace).await)),
        ("through", code(rig.open(linked_top, "AGENTS.md", How::Replace).await)),
    ] {
        assert_eq!(error, ErrorCode::NotPermitted, "{route}");
    }
    assert_eq!(linked.list_changes(), []);
    // Other spellings are other files.
    rig.write(top, "Note.txt", "another").await.unwrap();
    rig.write(top, "e\u{301}", "one").await.unwrap();
    rig.write(top, "\u{e9}", "two").await.unwrap();
    assert_eq!(rig.read(top, "note.txt").await.unwrap(), NOTE);
    assert_eq!(rig.read(top, "e\u{301}").await.unwrap(), "one");
    assert_eq!(overlay.list_changes().len(), 3);
    assert_writes(&mut rig, top).await;
}

/// The workspace is the home directory of the user, and the layers are in belljar's data directory inside
/// it.
#[tokio::test]
async fn a_layer_in_a_protected_directory_is_not_seen_through_its_overlay() {
    for (own, linked) in
        [("low/me/.belljar", false), ("low/me/named", false), ("low/dotfiles/own", true)]
    {
        let mut rig = Rig::new();
        rig.put(&format!("{own}/layers/other/files/1"), "another's");
        rig.put("low/me/note.txt", NOTE);
        rig.put("low/dotfiles/other", "other");
        if linked {
            rig.symlink("dotfiles/own", "low/.belljar");
        }
        let (low, layer) = (rig.host("low"), rig.host(&format!("{own}/layers/mine")));
        // The second directory has no protected name: the host names the directory.
        let none = OverlayQuota { bytes: 0, files: 0 };
        let pool = OverlayPool::new(plenty(), none).with_hidden(rig.host("low/me/named"));
        let overlay = Overlay::open_in(&low, &layer, &pool).unwrap();
        let top = mounted(&mut rig, over("/over", &overlay));
        let own = own.strip_prefix("low/").unwrap();
        let above = own.split('/').next().unwrap();
        rig.write(top, "me/note.txt", "mine").await.unwrap();
        for path in ["", "/layers", "/layers/mine/index", "/layers/mine/files/1"] {
            let path = format!("{own}{path}");
            for how in [How::Read, How::Write, How::Replace] {
                let opened = code(rig.open(top, &path, how).await);
                let hidden = matches!(opened, ErrorCode::NoEntry | ErrorCode::NotPermitted);
                assert!(hidden, "{path} {how:?}: {opened:?}");
            }
        }
        assert_eq!(
            code(rig.read(top, &format!("{own}/layers/other/files/1")).await),
            ErrorCode::NoEntry
        );
        if linked {
            assert!(rig.read(top, ".belljar/layers/other/files/1").await.is_err());
        }
        let dir = rig.open(top, above, How::Read).await.unwrap().rep();
        let seen = if linked { "other" } else { "note.txt" };
        assert_eq!(names(&mut rig, dir).await, [seen]);
        // No object can take the name of the hidden directory, and the parent directory can neither be moved
        // nor removed.
        let mut view = rig.view();
        assert!(view.create_directory_at(fd(top), own.into()).await.is_err());
        let moved = view.rename_at(fd(top), above.into(), fd(top), "x".into()).await;
        assert!(matches!(code(moved), ErrorCode::NotPermitted | ErrorCode::NoEntry));
        view.unlink_file_at(fd(top), format!("{above}/{seen}")).await.unwrap();
        assert!(view.remove_directory_at(fd(top), above.into()).await.is_err());
        assert!(overlay.open_file(format!("{own}/layers/other/files/1")).is_err());
        rig.denials();
        assert_writes(&mut rig, top).await;
    }
}

#[tokio::test]
async fn a_name_that_no_file_system_has_is_not_made_in_an_overlay() {
    let mut rig = Rig::new();
    rig.put("low/note.txt", NOTE);
    let (overlay, top) = overlaid(&mut rig, "low", plenty());
    rig.view().create_directory_at(fd(top), "made".into()).await.unwrap();
    let long = format!("made/{}", "x".repeat(256));
    let mut view = rig.view();
    let made = view.create_directory_at(fd(top), long.clone()).await;
    assert_eq!(code(made), ErrorCode::NameTooLong);
    let moved = view.rename_at(fd(top), "note.txt".into(), fd(top), long.clone()).await;
    assert_eq!(code(moved), ErrorCode::NameTooLong);
    assert_eq!(code(rig.open(top, &long, How::Create).await), ErrorCode::NameTooLong);
    rig.write(top, &long[..long.len() - 1], "fine").await.unwrap();
    assert_eq!(overlay.used_quota().files, 2);
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn a_closed_directory_is_closed_in_an_overlay() {
    let mut rig = Rig::new();
    rig.put("low/kept/a.md", "agent");
    rig.put("low/note.txt", NOTE);
    let quota = plenty();
    let overlay = Overlay::open(rig.host("low"), rig.host("layer"), quota).unwrap();
    let mount = belljar_policy::Mount {
        guest: GuestPath::new("/over").unwrap(),
        host: rig.host("low"),
        access: MountAccess::Overlay,
    };
    let closed = ClosedPaths::from_paths(&[rig.host("low/kept"), rig.host("low/later/kept")]);
    let mount = OpenMount::open_over(&mount, &overlay, &[], &closed).unwrap();
    let top = mounted(&mut rig, mount);
    for (route, error) in write_routes(&mut rig, top, "kept/a.md").await {
        assert_eq!(error, ErrorCode::NotPermitted, "{route}");
    }
    let moved = rig.view().rename_at(fd(top), "kept".into(), fd(top), "x".into()).await;
    let made = rig.view().create_directory_at(fd(top), "later".into()).await;
    assert_eq!(code(moved), ErrorCode::NotPermitted);
    assert_eq!(code(made), ErrorCode::NotPermitted);
    assert_eq!(overlay.list_changes(), []);
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn another_name_of_a_file_below_keeps_its_content() {
    let mut rig = Rig::new();
    rig.put("low/d/x", "x");
    let outside = rig.host("outside.txt");
    std::fs::hard_link(&outside, rig.host("low/inside.txt")).unwrap();
    std::fs::hard_link(&outside, rig.host("low/second.txt")).unwrap();
    let before = std::fs::metadata(&outside).unwrap();
    let (overlay, top) = overlaid(&mut rig, "low", plenty());
    rig.write(top, "inside.txt", "mine").await.unwrap();
    assert_eq!(rig.read(top, "second.txt").await.unwrap(), "outside");
    assert_eq!(rig.text("outside.txt"), "outside");
    let after = std::fs::metadata(&outside).unwrap();
    assert_eq!((before.mtime(), before.mtime_nsec()), (after.mtime(), after.mtime_nsec()));
    let changes = overlay.list_changes();
    assert_eq!(changes.len(), 1);
    // The change tells whoever applies it that the file has other links.
    assert_eq!(changes[0].original.unwrap().links, 3);
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn special_files_below_are_neither_opened_nor_copied() {
    let mut rig = Rig::new();
    rig.put("low/note.txt", NOTE);
    mknodat(CWD, rig.host("low/fifo"), Type::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let (overlay, top) = overlaid(&mut rig, "low", plenty());
    for how in [How::Read, How::Write, How::Truncate, How::Replace] {
        let wait = std::time::Duration::from_secs(10);
        let opened = tokio::time::timeout(wait, rig.open(top, "fifo", how));
        assert_eq!(code(opened.await.unwrap()), ErrorCode::Access, "{how:?}");
    }
    let moved = rig.view().rename_at(fd(top), "fifo".into(), fd(top), "f".into()).await;
    assert_eq!(code(moved), ErrorCode::NotPermitted);
    assert_eq!(overlay.list_changes(), []);
    // Replaced by a FIFO after the index recorded a file.
    rig.view().rename_at(fd(top), "note.txt".into(), fd(top), "n".into()).await.unwrap();
    std::fs::remove_file(rig.host("low/note.txt")).unwrap();
    mknodat(CWD, rig.host("low/note.txt"), Type::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for how in [How::Read, How::Write, How::Truncate] {
        let wait = std::time::Duration::from_secs(10);
        let opened = tokio::time::timeout(wait, rig.open(top, "n", how)).await.unwrap();
        assert_eq!(code(opened), ErrorCode::Access, "{how:?}");
    }
    rig.denials();
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn a_descriptor_for_reading_stays_one_when_its_file_is_copied() {
    let mut rig = Rig::new();
    rig.put("low/note.txt", NOTE);
    let (_overlay, top) = overlaid(&mut rig, "low", plenty());
    let reading = rig.open(top, "note.txt", How::Read).await.unwrap().rep();
    let writing = rig.open(top, "note.txt", How::Write).await.unwrap().rep();
    rig.view().write(fd(writing), b"mine".to_vec(), 0).await.unwrap();
    let mut view = rig.view();
    assert_eq!(view.read(fd(reading), 4, 0).await.unwrap().0, b"mine");
    let written = view.write(fd(reading), b"forged".to_vec(), 0).await;
    assert_eq!(code(written), ErrorCode::BadDescriptor);
    assert!(view.set_size(fd(reading), 0).await.is_err());
    let now = types::NewTimestamp::Now;
    assert_eq!(code(view.set_times(fd(reading), now, now).await), ErrorCode::NotPermitted);
    assert!(rig.read(top, "note.txt").await.unwrap().starts_with("mine"));
    assert_eq!(rig.text("low/note.txt"), NOTE);
    rig.denials();
    assert_writes(&mut rig, top).await;
}

#[tokio::test]
async fn a_mount_without_its_overlay_is_not_opened() {
    let rig = Rig::new();
    let overlay = Overlay::open(rig.host("rw"), rig.host("layer"), plenty()).unwrap();
    let mount = |host: &str, access| belljar_policy::Mount {
        guest: GuestPath::new("/over").unwrap(),
        host: rig.host(host),
        access,
    };
    let none = ClosedPaths::default();
    assert!(OpenMount::open(&mount("rw", MountAccess::Overlay), &[], &none).is_err());
    let other = OpenMount::open_over(&mount("ro", MountAccess::Overlay), &overlay, &[], &none);
    assert!(other.is_err(), "an overlay of another directory");
    // A mount with more access than `Overlay` still does not write to the lower directory.
    let more =
        OpenMount::open_over(&mount("rw", MountAccess::ReadWrite), &overlay, &[], &none).unwrap();
    let mut rig = rig;
    let top = mounted(&mut rig, more);
    rig.write(top, "note.txt", "above").await.unwrap();
    assert_eq!(rig.text("rw/note.txt"), NOTE);
}

#[test]
fn neither_directory_of_an_overlay_lies_in_the_other() {
    let home = tempfile::tempdir().unwrap();
    let low = home.path().join("low");
    std::fs::create_dir_all(low.join("sub")).unwrap();
    std::os::unix::fs::symlink(&low, home.path().join("link")).unwrap();
    for layer in ["low/layer", "low", "low/sub/layer", "link/layer"] {
        let opened = Overlay::open(&low, home.path().join(layer), plenty());
        assert!(opened.is_err(), "{layer}");
    }
    let layer = home.path().join("layer");
    drop(Overlay::open(&low, &layer, plenty()).unwrap());
    std::fs::create_dir(layer.join("inner")).unwrap();
    assert!(Overlay::open(layer.join("inner"), &layer, plenty()).is_err());
    let left: Vec<_> = std::fs::read_dir(&low).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing was made below");
}
