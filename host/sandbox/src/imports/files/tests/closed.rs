//! Directories that are closed by identity, not by name.

use super::routes::write_routes;
use super::*;

/// Mounts `path` with some closed directories, and opens the mount.
fn mounted(rig: &mut Rig, path: &str, closed: &[&str]) -> u32 {
    let closed: Vec<PathBuf> = closed.iter().map(|path| rig.host(path)).collect();
    let mount = mount_beside("/m", MountAccess::ReadWrite, &rig.host(path), &[], &closed);
    rig.ctx.mounts.push(mount);
    let found = preopens::Host::get_directories(&mut rig.view()).unwrap();
    found.last().unwrap().0.rep()
}

#[tokio::test]
async fn every_write_route_into_a_closed_directory_is_refused_whatever_leads_there() {
    let mut rig = Rig::new();
    rig.put("x/kept/agents/a.md", "agent");
    rig.put("x/note.txt", NOTE);
    rig.symlink("kept", "x/by");
    rig.symlink("kept/agents", "x/straight");
    let around = mounted(&mut rig, "x", &["x/kept"]);
    let inside = rig.open(around, "kept/agents", How::Directory).await.unwrap().rep();
    let in_it = mounted(&mut rig, "x/kept/agents", &["x/kept"]);
    let routes = [
        (around, "kept/agents/a.md"),
        (around, "by/agents/a.md"),
        (around, "straight/a.md"),
        (inside, "a.md"),
        (in_it, "a.md"),
    ];
    for (dir, name) in routes {
        for (route, error) in write_routes(&mut rig, dir, name).await {
            assert_eq!(error, ErrorCode::NotPermitted, "{route} {name}");
        }
        // The write routes also try a new file in the directory: its name alone is not protected.
        assert_eq!(rig.read(dir, name).await.unwrap(), "agent", "{name}");
    }
    for new in ["kept/b.md", "kept/agents/b.md", "by/b.md"] {
        let denied = rig.open(around, new, How::Create).await;
        assert_eq!(code(denied), ErrorCode::NotPermitted, "{new}");
    }
    assert_eq!(rig.text("x/kept/agents/a.md"), "agent");
    assert_eq!(std::fs::read_dir(rig.host("x/kept/agents")).unwrap().count(), 1);
    assert!(rig.denials().iter().all(|code| *code == DenyCode::PathNotAllowed));
    rig.write(around, "note.txt", "the neighbour").await.unwrap();
    assert_eq!(rig.text("x/note.txt"), "the neighbour");
    rig.assert_works().await;
}

#[tokio::test]
async fn no_other_directory_takes_the_place_of_a_closed_one() {
    let mut rig = Rig::new();
    rig.put("x/deep/er/real/agents/a.md", "agent");
    rig.put("x/fake/agents/a.md", "the guest's");
    rig.symlink("deep/er", "x/way");
    rig.symlink("way/real", "x/home");
    // The path to the closed directory: two links, and the directories above.
    let dir = mounted(&mut rig, "x", &["x/home"]);
    for name in ["home", "way", "deep", "deep/er", "deep/er/real"] {
        let mut view = rig.view();
        let away = view.rename_at(fd(dir), name.into(), fd(dir), "gone".into()).await;
        let onto = view.rename_at(fd(dir), "fake".into(), fd(dir), name.into()).await;
        let unlinked = view.unlink_file_at(fd(dir), name.into()).await;
        let removed = view.remove_directory_at(fd(dir), name.into()).await;
        assert_eq!(code(away), ErrorCode::NotPermitted, "{name}");
        assert!(onto.is_err() && unlinked.is_err() && removed.is_err(), "{name}");
    }
    assert_eq!(rig.text("x/home/agents/a.md"), "agent");
    assert_eq!(rig.text("x/fake/agents/a.md"), "the guest's");
    // The neighbours: a directory that is not on the path to a closed directory can be moved.
    rig.view().rename_at(fd(dir), "fake".into(), fd(dir), "moved".into()).await.unwrap();
    rig.assert_works().await;
}

#[tokio::test]
async fn what_is_not_there_yet_is_not_made_and_what_a_path_steps_back_from_stays() {
    let mut rig = Rig::new();
    rig.put("x/real/agents/a.md", "agent");
    rig.put("x/fake/store/db", "the guest's");
    std::fs::create_dir(rig.host("x/e")).unwrap();
    rig.symlink("e/../real", "x/home");
    let dir = mounted(&mut rig, "x", &["x/home", "x/data/root"]);
    let mut view = rig.view();
    let moved = view.rename_at(fd(dir), "fake".into(), fd(dir), "data".into()).await;
    let made = view.create_directory_at(fd(dir), "data".into()).await;
    let removed = view.remove_directory_at(fd(dir), "e".into()).await;
    for (what, done) in [("moved", moved), ("made", made), ("removed", removed)] {
        assert_eq!(code(done), ErrorCode::NotPermitted, "{what}");
    }
    assert!(!rig.host("x/data").exists() && rig.host("x/fake/store/db").exists());
    assert_eq!(rig.text("x/home/agents/a.md"), "agent");
    rig.view().rename_at(fd(dir), "fake".into(), fd(dir), "other".into()).await.unwrap();
    rig.assert_works().await;
}

#[tokio::test]
async fn a_closed_file_and_the_directories_above_it_are_neither_changed_nor_moved() {
    let mut rig = Rig::new();
    rig.put("x/dots/belljar-settings", "settings");
    rig.put("x/dots/other", "other");
    std::fs::create_dir(rig.host("home")).unwrap();
    rig.symlink("../x/dots/belljar-settings", "home/link");
    let dir = mounted(&mut rig, "x", &["home/link"]);
    for (route, error) in write_routes(&mut rig, dir, "dots/belljar-settings").await {
        assert_eq!(error, ErrorCode::NotPermitted, "{route}");
    }
    let away = rig.view().rename_at(fd(dir), "dots".into(), fd(dir), "gone".into()).await;
    assert_eq!(code(away), ErrorCode::NotPermitted);
    assert_eq!(rig.text("home/link"), "settings");
    rig.write(dir, "dots/other", "the neighbour").await.unwrap();
    rig.assert_works().await;
}

#[tokio::test]
async fn times_are_not_set_by_what_is_open_for_reading() {
    let mut rig = Rig::new();
    rig.put("x/kept/a.md", "agent");
    rig.put("x/plain/b.md", "b");
    let dir = mounted(&mut rig, "x", &["x/kept"]);
    let before =
        |rig: &Rig| std::fs::metadata(rig.host("x/kept/a.md")).unwrap().modified().unwrap();
    let was = before(&rig);
    let long_ago = || {
        let seconds = wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime {
            seconds: 1,
            nanoseconds: 0,
        };
        types::NewTimestamp::Timestamp(seconds)
    };
    for (path, how) in
        [("kept/a.md", How::Read), ("kept", How::Directory), ("plain/b.md", How::Read)]
    {
        let open = rig.open(dir, path, how).await.unwrap().rep();
        let set = rig.view().set_times(fd(open), long_ago(), long_ago()).await;
        assert_eq!(code(set), ErrorCode::NotPermitted, "{path}");
    }
    assert_eq!(before(&rig), was);
    // The neighbours: a file that is open for writing, and a writable directory.
    for (path, how) in [("plain/b.md", How::Write), ("plain", How::Directory)] {
        let open = rig.open(dir, path, how).await.unwrap().rep();
        rig.view().set_times(fd(open), long_ago(), long_ago()).await.unwrap();
    }
    rig.assert_works().await;
}

#[tokio::test]
async fn a_mount_around_nothing_closed_is_written_as_ever() {
    let mut rig = Rig::new();
    rig.put("kept/a.md", "agent");
    rig.put("x/plain/a.md", "old");
    let dir = mounted(&mut rig, "x", &["kept", "nowhere/at/all"]);
    rig.write(dir, "plain/a.md", "new").await.unwrap();
    rig.view().rename_at(fd(dir), "plain".into(), fd(dir), "moved".into()).await.unwrap();
    rig.view().unlink_file_at(fd(dir), "moved/a.md".into()).await.unwrap();
    assert_eq!(rig.denials(), []);
}
