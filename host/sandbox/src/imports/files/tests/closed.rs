//! Directories that are closed by what they are.

use super::routes::write_routes;
use super::*;

/// Mounts `path` with these closed, and opens it.
fn mounted(rig: &mut Rig, path: &str, closed: &[&str]) -> u32 {
    let closed: Vec<PathBuf> = closed.iter().map(|path| rig.host(path)).collect();
    let mount = mount_beside("/m", Access::ReadWrite, &rig.host(path), &[], &closed);
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
        // As a new file too, which a name alone would not have told.
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
    // The way there: two links, and the directories above it.
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
    // The neighbours: directories on nobody's way are moved.
    rig.view().rename_at(fd(dir), "fake".into(), fd(dir), "moved".into()).await.unwrap();
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
