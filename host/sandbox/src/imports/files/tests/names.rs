//! Tries to write protected names by every detour, and to leave a mount.

use wasmtime_wasi::p2::bindings::filesystem::types::HostDirectoryEntryStream as _;

use super::*;

#[tokio::test]
async fn a_protected_file_is_not_written_by_any_detour() {
    let mut rig = Rig::new();
    rig.put("rw/AGENTS.md", "rules");
    rig.put("rw/sub/deep/belljar.toml", "limits");
    rig.put("rw/.belljar/agents/a.md", "agent");
    rig.symlink("AGENTS.md", "rw/innocent.md");
    rig.symlink("innocent.md", "rw/twice.md");
    rig.symlink(".", "rw/here");
    rig.symlink(".belljar/agents", "rw/agents");
    let detours = [
        "./AGENTS.md",
        "sub/../AGENTS.md",
        "here/AGENTS.md",
        "here/here/here/AGENTS.md",
        "innocent.md",
        "twice.md",
        "agents.md",
        "Agents.MD",
        "sub/deep/belljar.toml",
        "sub/deep/BELLJAR.toml",
        ".belljar/agents/a.md",
        ".belljar/agents/new.md",
        ".BELLJAR/new.md",
        "agents/a.md",
        "agents/new.md",
        "sub/AGENTS.md",
        "sub/.belljar",
    ];
    for path in detours {
        let error = code(rig.open(rig.rw, path, How::Replace).await);
        let refused = matches!(error, ErrorCode::NotPermitted);
        // In this spelling, the directory does not exist.
        let absent = path == ".BELLJAR/new.md" && error == ErrorCode::NoEntry;
        assert!(refused || absent, "{path}: {error:?}");
    }
    assert_eq!(rig.text("rw/AGENTS.md"), "rules");
    assert_eq!(rig.text("rw/sub/deep/belljar.toml"), "limits");
    assert_eq!(rig.text("rw/.belljar/agents/a.md"), "agent");
    assert_eq!(std::fs::read_dir(rig.host("rw/.belljar/agents")).unwrap().count(), 1);
    assert!(!rig.host("rw/sub/AGENTS.md").exists());
    rig.assert_works().await;
}

#[tokio::test]
async fn a_descriptor_below_a_protected_directory_gives_no_way_to_write() {
    let mut rig = Rig::new();
    rig.put("rw/.belljar/agents/a.md", "agent");
    let dir = rig.open(rig.rw, ".belljar/agents", How::Directory).await.unwrap().rep();
    assert_eq!(code(rig.open(dir, "a.md", How::Write).await), ErrorCode::NotPermitted);
    assert_eq!(code(rig.open(dir, "b.md", How::Create).await), ErrorCode::NotPermitted);
    let unlink = rig.view().unlink_file_at(fd(dir), "a.md".into()).await;
    assert_eq!(code(unlink), ErrorCode::NotPermitted);
    assert_eq!(rig.denials(), vec![DenyCode::PathNotAllowed; 3]);
    assert_eq!(rig.read(dir, "a.md").await.unwrap(), "agent");
    rig.assert_works().await;
}

#[tokio::test]
async fn what_a_protected_link_means_is_protected_too() {
    let mut rig = Rig::new();
    rig.put("rw/CLAUDE.md", "rules");
    rig.symlink("CLAUDE.md", "rw/AGENTS.md");
    rig.put("rw/dot/agents/a.md", "agent");
    rig.symlink("dot", "rw/.belljar");
    rig.put("rw/sub/RULES.md", "sub rules");
    rig.symlink("./RULES.md", "rw/sub/AGENTS.md");
    rig.put("rw/far/RULES.md", "far rules");
    rig.symlink("../far/RULES.md", "rw/far/AGENTS.md");
    for path in
        ["CLAUDE.md", "AGENTS.md", "dot/agents/a.md", "dot/new", "sub/RULES.md", "far/RULES.md"]
    {
        assert_eq!(code(rig.open(rig.rw, path, How::Replace).await), ErrorCode::NotPermitted);
    }
    let rw = rig.rw;
    let onto = rig.view().rename_at(fd(rw), "note.txt".into(), fd(rw), "CLAUDE.md".into()).await;
    assert_eq!(code(onto), ErrorCode::NotPermitted);
    assert_eq!(rig.denials(), vec![DenyCode::PathNotAllowed; 7]);
    assert_eq!(rig.text("rw/CLAUDE.md"), "rules");
    assert_eq!(rig.text("rw/sub/RULES.md"), "sub rules");
    rig.assert_works().await;
}

#[tokio::test]
async fn nothing_on_the_way_of_a_protected_link_is_put_elsewhere_or_replaced() {
    let mut rig = Rig::new();
    rig.put("rw/docs/v1/rules.md", "rules");
    rig.put("rw/other/v1/rules.md", "the guest's");
    rig.put("rw/sub/notes.txt", "notes");
    rig.symlink("docs", "rw/now");
    rig.symlink("now/v1/rules.md", "rw/AGENTS.md");
    rig.symlink("../docs/v1/rules.md", "rw/sub/AGENTS.md");
    rig.symlink("missing/rules", "rw/.belljar");
    let rw = rig.rw;
    for on_the_way in ["docs", "docs/v1", "now"] {
        let mut view = rig.view();
        let away = view.rename_at(fd(rw), on_the_way.into(), fd(rw), "gone".into()).await;
        let onto = view.rename_at(fd(rw), "other".into(), fd(rw), on_the_way.into()).await;
        assert_eq!(code(away), ErrorCode::NotPermitted, "{on_the_way}");
        assert_eq!(code(onto), ErrorCode::NotPermitted, "{on_the_way}");
    }
    let unlinked = rig.view().unlink_file_at(fd(rw), "now".into()).await;
    assert_eq!(code(unlinked), ErrorCode::NotPermitted);
    // A link without a target cannot be given a target either.
    let made = rig.view().rename_at(fd(rw), "other".into(), fd(rw), "missing".into()).await;
    assert_eq!(code(made), ErrorCode::NotPermitted);
    rig.view().create_directory_at(fd(rw), "missing".into()).await.unwrap();
    let made = rig.view().rename_at(fd(rw), "other".into(), fd(rw), "missing/rules".into()).await;
    assert_eq!(code(made), ErrorCode::NotPermitted);
    assert_eq!(rig.denials(), vec![DenyCode::PathNotAllowed; 9]);
    assert_eq!(rig.text("rw/AGENTS.md"), "rules");
    assert_eq!(rig.text("rw/sub/AGENTS.md"), "rules");
    assert!(!rig.host("rw/.belljar").exists());
    // The neighbours: other files beside the target are written, and directories that are not on the path are
    // moved.
    rig.write(rw, "docs/v1/other.md", "fine").await.unwrap();
    rig.view().rename_at(fd(rw), "other".into(), fd(rw), "moved".into()).await.unwrap();
    rig.assert_works().await;
}

#[tokio::test]
async fn a_protected_link_means_the_same_however_it_is_written() {
    let mut rig = Rig::new();
    let mount = rig.host("rw").canonicalize().unwrap();
    rig.put("rw/docs/rules.md", "rules");
    rig.put("rw/cfg/agents/a.md", "agent");
    rig.put("rw/fake/rules.md", "the guest's");
    rig.symlink("../rw/docs/rules.md", "rw/AGENTS.md");
    rig.symlink(mount.join("cfg"), "rw/.belljar");
    rig.symlink(mount.join("made/later.md"), "rw/belljar.toml");
    // A link in the mount that leads outside.
    rig.put("rw/sub/note.txt", "a note");
    rig.symlink("../../ro/note.txt", "rw/sub/way");
    rig.symlink("way", "rw/sub/AGENTS.md");
    let rw = rig.rw;
    for path in ["docs/rules.md", "cfg/agents/a.md", "cfg/new", "made/later.md"] {
        let _ = rig.view().create_directory_at(fd(rw), "made".into()).await;
        let denied = rig.open(rw, path, How::Replace).await;
        assert_eq!(code(denied), ErrorCode::NotPermitted, "{path}");
    }
    let unlinked = rig.view().unlink_file_at(fd(rw), "sub/way".into()).await;
    assert_eq!(code(unlinked), ErrorCode::NotPermitted);
    for moved in ["docs", "cfg", "made"] {
        let away = rig.view().rename_at(fd(rw), moved.into(), fd(rw), "gone".into()).await;
        assert_eq!(code(away), ErrorCode::NotPermitted, "{moved}");
    }
    assert_eq!(rig.text("rw/AGENTS.md"), "rules");
    assert_eq!(rig.text("rw/.belljar/agents/a.md"), "agent");
    assert!(!rig.host("rw/belljar.toml").exists());
    rig.view().rename_at(fd(rw), "fake".into(), fd(rw), "moved".into()).await.unwrap();
    rig.assert_works().await;
}

#[tokio::test]
async fn a_directory_that_holds_a_protected_name_is_not_renamed() {
    let mut rig = Rig::new();
    rig.put("rw/vendor/apps/evil/.belljar/agents/a.md", "agent");
    rig.put("rw/plain/file.txt", "x");
    let rw = rig.rw;
    let evil = rig.view().rename_at(fd(rw), "vendor/apps".into(), fd(rw), "apps".into()).await;
    assert_eq!(code(evil), ErrorCode::NotPermitted);
    assert_eq!(rig.denials(), [DenyCode::PathNotAllowed]);
    assert!(rig.host("rw/vendor/apps").exists() && !rig.host("rw/apps").exists());
    rig.view().rename_at(fd(rw), "plain".into(), fd(rw), "moved".into()).await.unwrap();
    assert_eq!(rig.text("rw/moved/file.txt"), "x");
}

#[tokio::test]
async fn a_mount_inside_a_protected_directory_is_not_written() {
    let mut rig = Rig::new();
    rig.put("x/.belljar/agents/a.md", "agent");
    let inside = mount("/agents", MountAccess::ReadWrite, &rig.host("x/.belljar/agents"));
    rig.ctx.mounts.push(inside);
    let found = preopens::Host::get_directories(&mut rig.view()).unwrap();
    let dir = found.last().unwrap().0.rep();
    assert_eq!(code(rig.open(dir, "a.md", How::Replace).await), ErrorCode::NotPermitted);
    assert_eq!(rig.read(dir, "a.md").await.unwrap(), "agent");
    rig.assert_works().await;
}

#[tokio::test]
async fn a_work_directory_is_written_wherever_it_lies_and_nothing_else_there_is() {
    let mut rig = Rig::new();
    let (own, work) = ("x/.belljar/tenants/1", "x/.belljar/tenants/1/workspace");
    rig.put("x/.belljar/belljar.toml", "operator");
    rig.put(&format!("{own}/home/agents/a.md"), "agent");
    rig.put(&format!("{work}/.belljar/agents/a.md"), "agent");
    rig.put("x/.belljar/tenants/2/workspace/a.txt", "another's");
    rig.symlink(rig.host("x/.belljar"), &format!("{work}/up"));
    let directories = [rig.host(work).canonicalize().unwrap()];
    let mounted = |rig: &mut Rig, path: &str| {
        rig.ctx.mounts.push(mount_in("/m", MountAccess::ReadWrite, &rig.host(path), &directories));
        let found = preopens::Host::get_directories(&mut rig.view()).unwrap();
        found.last().unwrap().0.rep()
    };
    let dir = mounted(&mut rig, work);
    rig.open(dir, "log.txt", How::Create).await.unwrap();
    for name in ["belljar.toml", ".belljar/agents/a.md", "AGENTS.md", "up/belljar.toml"] {
        assert_eq!(
            code(rig.open(dir, name, How::Replace).await),
            ErrorCode::NotPermitted,
            "{name}"
        );
    }
    // The same by mounts that begin deeper, or at a link to the directory.
    let below = format!("{work}/.belljar/agents");
    let up = format!("{work}/up");
    for path in ["x/.belljar", own, &below, &up, "x/.belljar/tenants/2/workspace"] {
        let dir = mounted(&mut rig, path);
        let denied = rig.open(dir, "a.md", How::Replace).await;
        assert_eq!(code(denied), ErrorCode::NotPermitted, "{path}");
    }
    assert_eq!(rig.text("x/.belljar/belljar.toml"), "operator");
    assert_eq!(rig.text(&format!("{work}/.belljar/agents/a.md")), "agent");
    assert!(!rig.host(&format!("{own}/a.md")).exists());
    assert!(rig.host(&format!("{work}/log.txt")).exists());
    rig.assert_works().await;
}

#[tokio::test]
async fn no_path_leads_out_of_its_directory() {
    let mut rig = Rig::new();
    rig.symlink("../outside.txt", "rw/up");
    rig.symlink(rig.host("outside.txt"), "rw/absolute");
    rig.symlink("..", "rw/parent");
    rig.put("rw/sub/x.txt", "x");
    let sub = rig.open(rig.rw, "sub", How::Directory).await.unwrap().rep();
    let outside = rig.host("outside.txt").to_string_lossy().into_owned();
    let escapes = [
        (rig.rw, "../outside.txt"),
        (rig.rw, "sub/../../outside.txt"),
        (rig.rw, &*outside),
        (rig.rw, "/etc/passwd"),
        (rig.rw, "up"),
        (rig.rw, "absolute"),
        (rig.rw, "parent/outside.txt"),
        (rig.rw, ".."),
        (sub, "../note.txt"),
    ];
    for (dir, path) in escapes {
        for how in [How::Read, How::Replace] {
            assert_eq!(code(rig.open(dir, path, how).await), ErrorCode::NotPermitted, "{path}");
        }
        let stat = rig.view().stat_at(fd(dir), PathFlags::SYMLINK_FOLLOW, path.into()).await;
        assert_eq!(code(stat), ErrorCode::NotPermitted, "{path}");
    }
    assert_eq!(rig.denials(), vec![DenyCode::PathNotAllowed; escapes.len() * 3]);
    assert_eq!(rig.text("outside.txt"), "outside");
    assert_eq!(rig.read(rig.rw, "sub/../note.txt").await.unwrap(), NOTE, "inside, `..` works");
    rig.assert_works().await;
}

#[tokio::test]
async fn an_absolute_link_does_not_tell_where_the_mount_lies() {
    let mut rig = Rig::new();
    rig.symlink(rig.host("outside.txt"), "rw/absolute");
    rig.symlink("note.txt", "rw/relative");
    let rw = rig.rw;
    let told = rig.view().readlink_at(fd(rw), "absolute".into()).await;
    assert_eq!(code(told), ErrorCode::NotPermitted);
    let told = rig.view().readlink_at(fd(rw), "relative".into()).await;
    assert_eq!(told.unwrap(), "note.txt");
}

#[tokio::test]
async fn links_are_neither_made_nor_moved_and_can_be_removed() {
    let mut rig = Rig::new();
    rig.symlink("note.txt", "rw/link");
    let rw = rig.rw;
    let mut view = rig.view();
    let made = view.symlink_at(fd(rw), "note.txt".into(), "new".into()).await;
    assert_eq!(code(made), ErrorCode::NotPermitted);
    let moved = view.rename_at(fd(rw), "link".into(), fd(rw), "new".into()).await;
    assert_eq!(code(moved), ErrorCode::NotPermitted);
    let linked = view.link_at(fd(rw), PathFlags::empty(), "link".into(), fd(rw), "new".into());
    assert_eq!(code(linked.await), ErrorCode::NotPermitted);
    assert_eq!(rig.denials(), vec![DenyCode::PathNotAllowed; 3]);
    assert!(std::fs::symlink_metadata(rig.host("rw/new")).is_err());
    rig.view().unlink_file_at(fd(rw), "link".into()).await.unwrap();
    assert_eq!(rig.text("rw/note.txt"), NOTE);
    rig.assert_works().await;
}

#[tokio::test]
async fn a_file_with_another_name_elsewhere_is_read_but_not_changed() {
    use std::os::unix::fs::PermissionsExt;
    use types::NewTimestamp::Now;
    let mut rig = Rig::new();
    let outside = rig.host("outside.txt");
    std::fs::hard_link(&outside, rig.host("rw/inside.txt")).unwrap();
    let before = std::fs::metadata(&outside).unwrap();
    for how in [How::Write, How::Truncate, How::Replace] {
        assert_eq!(code(rig.open(rig.rw, "inside.txt", how).await), ErrorCode::NotPermitted);
    }
    let (rw, name, none) = (rig.rw, || "inside.txt".to_owned(), PathFlags::empty());
    let file = rig.open(rw, "inside.txt", How::Read).await.unwrap().rep();
    let set = rig.view().set_times(fd(file), Now, Now).await;
    assert_eq!(code(set), ErrorCode::NotPermitted);
    let set = rig.view().set_times_at(fd(rw), none, name(), Now, Now).await;
    assert_eq!(code(set), ErrorCode::NotPermitted);
    let linked = rig.view().link_at(fd(rw), none, name(), fd(rw), "third.txt".into()).await;
    assert_eq!(code(linked), ErrorCode::NotPermitted);
    assert_eq!(rig.denials(), vec![DenyCode::PathNotAllowed; 6]);
    assert!(!rig.host("rw/third.txt").exists());
    assert_eq!(rig.read(rw, "inside.txt").await.unwrap(), "outside");

    // The name can be moved; the file outside keeps its permissions and times.
    rig.put("rw/open.sh", "old");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(rig.host("rw/open.sh"), open).unwrap();
    rig.view().rename_at(fd(rw), name(), fd(rw), "open.sh".into()).await.unwrap();
    let after = std::fs::metadata(&outside).unwrap();
    assert_eq!(before.permissions(), after.permissions());
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    assert_eq!(rig.text("outside.txt"), "outside");
    rig.assert_works().await;
}

#[tokio::test]
async fn a_directory_swapped_for_a_link_meanwhile_never_leads_out() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let mut rig = Rig::new();
    rig.put("secret/note.txt", "outside");
    rig.put("rw/d/note.txt", NOTE);
    rig.symlink("../secret", "rw/link");
    let (root, stop) = (rig.host("rw"), Arc::new(AtomicBool::new(false)));
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
    let (mut tried, mut inside, mut refused) = (0, 0, 0);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    // Until both results have occurred, and often enough.
    while tried < 1_000 || inside == 0 || refused == 0 {
        assert!(std::time::Instant::now() < deadline, "{inside} inside, {refused} refused");
        tried += 1;
        match rig.read(rig.rw, "d/note.txt").await {
            Ok(text) => {
                assert_eq!(text, NOTE);
                inside += 1;
            }
            Err(error) => {
                let error = error.downcast().unwrap();
                assert!(matches!(error, ErrorCode::NotPermitted | ErrorCode::NotDirectory));
                refused += 1;
            }
        }
        tokio::task::yield_now().await;
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    rig.assert_works().await;
}

/// The names of a directory, as a guest sees them.
async fn listed(rig: &mut Rig, dir: u32) -> Vec<String> {
    let listing = rig.view().read_directory(fd(dir)).await.unwrap().rep();
    let mut names = Vec::new();
    while let Some(entry) =
        rig.view().read_directory_entry(Resource::new_borrow(listing)).await.unwrap()
    {
        names.push(entry.name);
    }
    types::HostDirectoryEntryStream::drop(&mut rig.view(), Resource::new_own(listing)).unwrap();
    names.sort();
    names
}

#[tokio::test]
async fn a_name_that_is_no_text_is_listed_and_reached_by_its_spelling() {
    use std::os::unix::ffi::OsStrExt;
    let mut rig = Rig::new();
    let (rw, home) = (rig.rw, rig.host("rw"));
    let host = |name: &[u8]| home.join(std::ffi::OsStr::from_bytes(name));
    std::fs::write(host(b"caf\xe9.txt"), "latin").unwrap();
    std::fs::write(host(b"caf\\xE9.txt"), "letters").unwrap();
    std::fs::create_dir(host(b"d\xff")).unwrap();
    std::fs::write(host(b"d\xff/in"), "below").unwrap();
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(b"d\xff/in"), host(b"link")).unwrap();
    let all = ["caf\\x5CxE9.txt", "caf\\xE9.txt", "d\\xFF", "link", "note.txt"];
    assert_eq!(listed(&mut rig, rw).await, all);
    for (path, text) in [
        ("caf\\xE9.txt", "latin"),
        ("caf\\x5CxE9.txt", "letters"),
        ("d\\xFF/in", "below"),
        ("link", "below"),
    ] {
        assert_eq!(rig.read(rw, path).await.unwrap(), text, "{path}");
    }
    assert_eq!(rig.view().readlink_at(fd(rw), "link".into()).await.unwrap(), "d\\xFF/in");
    let dir = rig.open(rw, "d\\xFF", How::Directory).await.unwrap().rep();
    assert_eq!(listed(&mut rig, dir).await, ["in"]);
    assert_eq!(rig.read(dir, "in").await.unwrap(), "below");
    // The guest can also write, move, link and remove files by the escaped name.
    rig.write(rw, "caf\\xE9.txt", "changed").await.unwrap();
    assert_eq!(std::fs::read_to_string(host(b"caf\xe9.txt")).unwrap(), "changed");
    assert_eq!(std::fs::read_to_string(host(b"caf\\xE9.txt")).unwrap(), "letters");
    let moved = ("caf\\xE9.txt".to_owned(), "d\\xFF/th\\xE9".to_owned());
    rig.view().rename_at(fd(rw), moved.0, fd(rw), moved.1).await.unwrap();
    assert_eq!(std::fs::read_to_string(host(b"d\xff/th\xe9")).unwrap(), "changed");
    rig.view().unlink_file_at(fd(rw), "d\\xFF/th\\xE9".into()).await.unwrap();
    assert_eq!(std::fs::read_dir(host(b"d\xff")).unwrap().count(), 1);
    // Other spellings of a name do not name the file, and no spelling leads outside.
    std::fs::write(host("é".as_bytes()), "text").unwrap();
    assert_eq!(code(rig.read(rw, "\\xC3\\xA9").await), ErrorCode::NoEntry);
    assert_eq!(code(rig.read(rw, "\\x2E\\x2E/outside.txt").await), ErrorCode::NoEntry);
    let receipt = rig.record.drain_lists().0;
    assert!(
        receipt.paths_read.iter().any(|path| path.ends_with("d\\xFF/in")),
        "{:?}",
        receipt.paths_read
    );
    rig.assert_works().await;
}

#[tokio::test]
async fn what_a_protected_link_means_is_protected_under_a_name_that_is_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let mut rig = Rig::new();
    let rw = rig.rw;
    let odd = std::ffi::OsStr::from_bytes(b"d\xff");
    std::fs::create_dir(rig.host("rw").join(odd)).unwrap();
    std::fs::write(rig.host("rw").join(odd).join("rules.md"), "rules").unwrap();
    std::fs::write(rig.host("rw").join(odd).join("plain.md"), "plain").unwrap();
    rig.symlink(odd, "rw/.belljar");
    rig.symlink("rules.md", "rw/linked");
    let inner = rig.host("rw").join(odd).join("AGENTS.md");
    std::os::unix::fs::symlink("rules.md", inner).unwrap();
    let error = code(rig.open(rw, "d\\xFF/rules.md", How::Replace).await);
    assert!(matches!(error, ErrorCode::NotPermitted), "{error:?}");
    std::fs::remove_file(rig.host("rw/.belljar")).unwrap();
    // Now only the link in the file's own directory protects the file.
    let error = code(rig.open(rw, "d\\xFF/rules.md", How::Replace).await);
    assert!(matches!(error, ErrorCode::NotPermitted), "{error:?}");
    let rules = rig.host("rw").join(odd).join("rules.md");
    assert_eq!(std::fs::read_to_string(rules).unwrap(), "rules");
    rig.write(rw, "d\\xFF/plain.md", "fine").await.unwrap();
    rig.denials();
    rig.assert_works().await;
}
