//! Objects that are not regular files, and paths that are not valid.

use super::*;
use rustix::fs::{CWD, FileType as Type, Mode, mknodat};
use std::time::Duration;

#[tokio::test]
async fn a_fifo_is_refused_and_does_not_block() {
    let mut rig = Rig::new();
    mknodat(CWD, rig.host("rw/fifo"), Type::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    for how in [How::Read, How::Write, How::Replace] {
        let opened = tokio::time::timeout(Duration::from_secs(10), rig.open(rig.rw, "fifo", how));
        assert_eq!(code(opened.await.unwrap()), ErrorCode::Access);
    }
    assert_eq!(rig.denials(), vec![DenyCode::SpecialFile; 3]);
    rig.assert_works().await;
}

#[tokio::test]
async fn a_socket_is_refused_and_stays() {
    let mut rig = Rig::new();
    let _listener = std::os::unix::net::UnixListener::bind(rig.host("rw/sock")).unwrap();
    assert_eq!(code(rig.open(rig.rw, "sock", How::Write).await), ErrorCode::Access);
    let rw = rig.rw;
    let moved = rig.view().rename_at(fd(rw), "sock".into(), fd(rw), "moved".into()).await;
    assert_eq!(code(moved), ErrorCode::NotPermitted);
    assert!(rig.host("rw/sock").exists());
    rig.assert_works().await;
}

#[tokio::test]
async fn a_device_is_refused_through_a_mount_of_the_device_directory() {
    let mut rig = Rig::new();
    rig.ctx.mounts.push(mount("/dev", MountAccess::ReadWrite, std::path::Path::new("/dev")));
    let found = preopens::Host::get_directories(&mut rig.view()).unwrap();
    let dev = found.last().unwrap().0.rep();
    assert_eq!(code(rig.open(dev, "null", How::Read).await), ErrorCode::Access);
    assert_eq!(code(rig.open(dev, "null", How::Write).await), ErrorCode::Access);
    assert_eq!(rig.denials(), vec![DenyCode::SpecialFile; 2]);
    rig.assert_works().await;
}

#[tokio::test]
async fn paths_that_lead_nowhere_fail_as_their_kind() {
    let mut rig = Rig::new();
    rig.symlink("loop", "rw/loop");
    rig.symlink("gone", "rw/dangling");
    std::fs::create_dir(rig.host("rw/dir")).unwrap();
    let long = "a/".repeat(3000);
    let deep = "dir/../".repeat(1100) + "note.txt";
    let cases = [
        ("", How::Read, ErrorCode::NoEntry),
        ("a\0b", How::Read, ErrorCode::Invalid),
        ("loop", How::Read, ErrorCode::Loop),
        ("loop/x", How::Read, ErrorCode::Loop),
        ("dangling", How::Read, ErrorCode::NoEntry),
        ("missing/x", How::Read, ErrorCode::NoEntry),
        ("note.txt/", How::Read, ErrorCode::NotDirectory),
        ("note.txt/x", How::Read, ErrorCode::NotDirectory),
        ("note.txt", How::Directory, ErrorCode::NotDirectory),
        ("note.txt", How::Exclusive, ErrorCode::Exist),
        ("new/", How::Create, ErrorCode::NotDirectory),
        ("dir", How::Write, ErrorCode::IsDirectory),
        (".", How::Write, ErrorCode::IsDirectory),
        (&long, How::Read, ErrorCode::NameTooLong),
        (&deep, How::Read, ErrorCode::NameTooLong),
    ];
    for (path, how, expected) in cases {
        let error = code(rig.open(rig.rw, path, how).await);
        assert_eq!(error, expected, "{} {how:?}", &path[..path.len().min(40)]);
    }
    rig.assert_works().await;
}

#[tokio::test]
async fn a_deep_directory_is_refused_before_it_costs_descriptors() {
    let mut rig = Rig::new();
    let deep = "d/".repeat(belljar_overlay::walk::MAX_DEPTH + 1);
    std::fs::create_dir_all(rig.host("rw").join(&deep)).unwrap();
    let error = code(rig.open(rig.rw, &(deep + "x"), How::Read).await);
    assert_eq!(error, ErrorCode::NameTooLong);
    let fits = "d/".repeat(belljar_overlay::walk::MAX_DEPTH);
    rig.open(rig.rw, &fits, How::Directory).await.unwrap();
}

#[tokio::test]
async fn a_link_in_the_last_place_is_followed_only_when_asked() {
    let mut rig = Rig::new();
    rig.symlink("note.txt", "rw/link");
    assert_eq!(rig.read(rig.rw, "link").await.unwrap(), NOTE);
    let (open, flags) = How::Read.flags();
    let rw = rig.rw;
    let plain = rig.view().open_at(fd(rw), PathFlags::empty(), "link".into(), open, flags).await;
    assert_eq!(code(plain), ErrorCode::Loop);
    let kind = |stat: types::DescriptorStat| stat.type_;
    let link = rig.view().stat_at(fd(rw), PathFlags::empty(), "link".into()).await.unwrap();
    assert_eq!(kind(link), types::DescriptorType::SymbolicLink);
    let file = rig.view().stat_at(fd(rw), PathFlags::SYMLINK_FOLLOW, "link".into()).await.unwrap();
    assert_eq!((file.size, kind(file)), (7, types::DescriptorType::RegularFile));
}

#[tokio::test]
async fn a_files_identity_is_stable_in_a_store_and_tells_no_inode() {
    use std::os::unix::fs::MetadataExt;
    let mut one = Rig::new();
    let inode = std::fs::metadata(one.host("rw/note.txt")).unwrap().ino();
    let rw = one.rw;
    let path = || "note.txt".to_owned();
    let first = one.view().metadata_hash_at(fd(rw), PathFlags::empty(), path()).await.unwrap();
    let file = one.open(rw, "note.txt", How::Read).await.unwrap().rep();
    let again = one.view().metadata_hash(fd(file)).await.unwrap();
    assert_eq!((first.lower, first.upper), (again.lower, again.upper));
    assert!(first.lower != inode && first.upper != inode);
    let second = one.open(rw, "note.txt", How::Read).await.unwrap().rep();
    assert!(one.view().is_same_object(fd(file), fd(second)).await.unwrap());
    one.ctx.salt = std::hash::RandomState::new();
    let other = one.view().metadata_hash(fd(file)).await.unwrap();
    assert_ne!(first.lower, other.lower, "another store sees other numbers");
}

#[tokio::test]
async fn a_descriptor_that_belljar_did_not_make_can_do_nothing() {
    let mut rig = Rig::new();
    let rw = rig.rw;
    rig.ctx.open.remove(&rw);
    assert_eq!(code(rig.open(rw, "note.txt", How::Read).await), ErrorCode::BadDescriptor);
    assert_eq!(code(rig.view().stat(fd(rw)).await), ErrorCode::BadDescriptor);
}
