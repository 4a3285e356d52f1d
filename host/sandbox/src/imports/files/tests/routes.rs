//! Tries every way to write to a file or directory.

use super::*;
use types::NewTimestamp;

/// Tries every write operation in a directory on an existing file `name` and on a new name. Returns each
/// route with its error.
pub(super) async fn write_routes(
    rig: &mut Rig,
    dir: u32,
    name: &str,
) -> Vec<(&'static str, ErrorCode)> {
    let mut errors = Vec::new();
    let name = || name.to_owned();
    let now = NewTimestamp::Now;
    let none = PathFlags::empty();
    for how in [How::Write, How::Create, How::Exclusive, How::Truncate, How::Replace] {
        errors.push(("open", code(rig.open(dir, &name(), how).await)));
    }
    let mut view = rig.view();
    let set = view.set_times_at(fd(dir), none, name(), now, now).await;
    errors.push(("set-times-at", code(set)));
    errors.push(("unlink", code(view.unlink_file_at(fd(dir), name()).await)));
    errors.push(("remove-dir", code(view.remove_directory_at(fd(dir), name()).await)));
    errors.push(("make-dir", code(view.create_directory_at(fd(dir), name()).await)));
    errors.push(("symlink", code(view.symlink_at(fd(dir), "note.txt".into(), name()).await)));
    let from = view.rename_at(fd(dir), name(), fd(dir), "other".into()).await;
    errors.push(("rename from", code(from)));
    let onto = view.rename_at(fd(dir), "note.txt".into(), fd(dir), name()).await;
    errors.push(("rename onto", code(onto)));
    let link = view.link_at(fd(dir), none, name(), fd(dir), "other".into()).await;
    errors.push(("link from", code(link)));
    let link = view.link_at(fd(dir), none, "note.txt".into(), fd(dir), name()).await;
    errors.push(("link onto", code(link)));
    errors
}

/// Like [`write_routes`], with a descriptor that was opened for reading.
async fn descriptor_routes(rig: &mut Rig, dir: u32, name: &str) -> Vec<(&'static str, ErrorCode)> {
    let file = rig.open(dir, name, How::Read).await.unwrap().rep();
    let mut view = rig.view();
    let now = NewTimestamp::Now;
    vec![
        ("write", code(view.write(fd(file), b"x".to_vec(), 0).await)),
        ("set-size", code(view.set_size(fd(file), 0).await)),
        ("set-times", code(view.set_times(fd(file), now, now).await)),
        ("write-via-stream", code(view.write_via_stream(fd(file), 0))),
        ("append-via-stream", code(view.append_via_stream(fd(file)))),
    ]
}

#[tokio::test]
async fn every_write_route_is_refused_on_a_read_only_mount() {
    let mut rig = Rig::new();
    let before = std::fs::metadata(rig.host("ro/note.txt")).unwrap().modified().unwrap();
    let ro = rig.ro;
    let mut errors = write_routes(&mut rig, ro, "note.txt").await;
    errors.extend(descriptor_routes(&mut rig, ro, "note.txt").await);
    for (route, error) in &errors {
        assert_eq!(*error, ErrorCode::ReadOnly, "{route}");
    }
    assert_eq!(rig.denials(), vec![DenyCode::ReadOnly; errors.len()]);
    assert_eq!(rig.text("ro/note.txt"), NOTE);
    let after = std::fs::metadata(rig.host("ro/note.txt")).unwrap().modified().unwrap();
    assert_eq!(before, after);
    assert_eq!(std::fs::read_dir(rig.host("ro")).unwrap().count(), 1, "nothing was made");
    assert_eq!(rig.read(rig.ro, "note.txt").await.unwrap(), NOTE);
    rig.assert_works().await;
}

#[tokio::test]
async fn every_write_route_is_refused_for_a_protected_name() {
    let mut rig = Rig::new();
    rig.put("rw/AGENTS.md", "rules");
    let rw = rig.rw;
    let mut errors = write_routes(&mut rig, rw, "AGENTS.md").await;
    errors.extend(descriptor_routes(&mut rig, rw, "AGENTS.md").await);
    for (route, error) in &errors {
        assert_eq!(*error, ErrorCode::NotPermitted, "{route}");
    }
    assert_eq!(rig.denials(), vec![DenyCode::PathNotAllowed; errors.len()]);
    assert_eq!(rig.text("rw/AGENTS.md"), "rules");
    assert!(rig.host("rw/note.txt").exists() && !rig.host("rw/other").exists());
    assert_eq!(rig.read(rig.rw, "AGENTS.md").await.unwrap(), "rules", "it can be read");
    rig.assert_works().await;
}

#[tokio::test]
async fn a_rename_or_link_between_mounts_is_refused() {
    let mut rig = Rig::new();
    rig.put("rw2/x.txt", "x");
    let second = mount("/rw2", MountAccess::ReadWrite, &rig.host("rw2"));
    rig.ctx.mounts.push(second);
    let found = preopens::Host::get_directories(&mut rig.view()).unwrap();
    let other = found.last().unwrap().0.rep();
    let (rw, ro, none) = (rig.rw, rig.ro, PathFlags::empty());
    let mut view = rig.view();
    let x = || "x.txt".to_owned();
    let note = || "note.txt".to_owned();
    assert_eq!(code(view.rename_at(fd(other), x(), fd(rw), x()).await), ErrorCode::CrossDevice);
    assert_eq!(code(view.link_at(fd(other), none, x(), fd(rw), x()).await), ErrorCode::CrossDevice);
    assert_eq!(code(view.rename_at(fd(ro), note(), fd(rw), x()).await), ErrorCode::ReadOnly);
    assert_eq!(code(view.link_at(fd(rw), none, note(), fd(ro), x()).await), ErrorCode::ReadOnly);
    assert!(!rig.host("rw/x.txt").exists() && !rig.host("ro/x.txt").exists());
    assert_eq!(rig.text("rw2/x.txt"), "x");
    rig.assert_works().await;
}

#[tokio::test]
async fn a_read_write_mount_can_be_written_by_every_route() {
    let mut rig = Rig::new();
    let (rw, now, none) = (rig.rw, NewTimestamp::Now, PathFlags::empty());
    rig.write(rw, "a.txt", "one").await.unwrap();
    let file = rig.open(rw, "a.txt", How::Write).await.unwrap().rep();
    let mut view = rig.view();
    view.write(fd(file), b"two".to_vec(), 3).await.unwrap();
    view.set_times(fd(file), now, now).await.unwrap();
    view.set_size(fd(file), 5).await.unwrap();
    let stream = view.append_via_stream(fd(file)).unwrap();
    let stream = rig.table.get_mut(&stream).unwrap();
    stream.blocking_write_and_flush("three".into()).await.unwrap();
    assert_eq!(rig.text("rw/a.txt"), "onetwthree");
    let mut view = rig.view();
    view.sync(fd(file)).await.unwrap();
    view.sync_data(fd(file)).await.unwrap();
    view.create_directory_at(fd(rw), "d/".into()).await.unwrap();
    view.rename_at(fd(rw), "a.txt".into(), fd(rw), "d/b.txt".into()).await.unwrap();
    view.rename_at(fd(rw), "d".into(), fd(rw), "e".into()).await.unwrap();
    view.link_at(fd(rw), none, "e/b.txt".into(), fd(rw), "hard".into()).await.unwrap();
    view.set_times_at(fd(rw), none, "note.txt".into(), now, now).await.unwrap();
    view.unlink_file_at(fd(rw), "hard".into()).await.unwrap();
    view.unlink_file_at(fd(rw), "e/b.txt".into()).await.unwrap();
    view.remove_directory_at(fd(rw), "e".into()).await.unwrap();
    assert_eq!(rig.denials(), []);
    assert_eq!(std::fs::read_dir(rig.host("rw")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_name_that_a_file_had_only_on_its_way_is_not_among_those_written() {
    let mut rig = Rig::new();
    let rw = rig.rw;
    rig.put("rw/old.txt", "old");
    let written = async |rig: &mut Rig, from: &str, to: &str| {
        rig.write(rw, from, "new").await.unwrap();
        rig.view().rename_at(fd(rw), from.into(), fd(rw), to.into()).await.unwrap();
        rig.record.drain_lists().0.paths_written.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(written(&mut rig, ".old.new", "old.txt").await, ["/rw/old.txt"]);
    // The moved file existed before the call, so its old path changed too.
    rig.put("rw/there", "x");
    assert_eq!(written(&mut rig, "there", "moved").await, ["/rw/moved", "/rw/there"]);
    rig.put("rw/there", "x");
    rig.view().unlink_file_at(fd(rw), "there".into()).await.unwrap();
    assert_eq!(written(&mut rig, "there", "again").await, ["/rw/again", "/rw/there"]);
    // For the next call, a file made by an earlier call is an existing file.
    rig.write(rw, "made", "x").await.unwrap();
    rig.record.drain_lists();
    rig.view().rename_at(fd(rw), "made".into(), fd(rw), "later".into()).await.unwrap();
    let paths: Vec<_> = rig.record.drain_lists().0.paths_written.into_iter().collect();
    assert_eq!(paths, ["/rw/later", "/rw/made"]);
}

#[tokio::test]
async fn what_was_read_and_written_is_recorded_as_guest_paths() {
    let mut rig = Rig::new();
    rig.symlink("sub", "rw/link");
    rig.put("rw/sub/in.txt", "in");
    rig.read(rig.rw, "link/../link/in.txt").await.unwrap();
    rig.write(rig.rw, "sub/out.txt", "out").await.unwrap();
    rig.open(rig.rw, "note.txt", How::Read).await.unwrap();
    let (lists, bytes, calls) = rig.record.drain_lists();
    assert_eq!(lists.paths_read.into_iter().collect::<Vec<_>>(), ["/rw/sub/in.txt"]);
    assert_eq!(lists.paths_written.into_iter().collect::<Vec<_>>(), ["/rw/sub/out.txt"]);
    assert_eq!((bytes.read, bytes.written), (2, 3));
    assert_eq!(calls, 6, "preopens, two opens with read and write, one open");
}

#[tokio::test]
async fn a_file_that_replaces_a_script_is_executable_and_never_set_user_id() {
    use std::os::unix::fs::PermissionsExt;
    let mut rig = Rig::new();
    rig.put("rw/run.sh", "old");
    rig.put("rw/run.sh.new", "new");
    let mode = std::fs::Permissions::from_mode(0o4755);
    std::fs::set_permissions(rig.host("rw/run.sh"), mode).unwrap();
    let rw = rig.rw;
    rig.view().rename_at(fd(rw), "run.sh.new".into(), fd(rw), "run.sh".into()).await.unwrap();
    assert_eq!(rig.text("rw/run.sh"), "new");
    let after = std::fs::metadata(rig.host("rw/run.sh")).unwrap().permissions().mode();
    assert_eq!(after & 0o7777, 0o755);
}
