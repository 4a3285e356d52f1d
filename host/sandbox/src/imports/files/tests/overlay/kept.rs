//! What an overlay keeps on disk: after restarts, after a kill at any moment, and in the list of changes for
//! the host.

use std::collections::BTreeMap;
use std::path::Path;

use belljar_overlay::{ChangeKind, Overlay, OverlayQuota};

use super::super::*;
use super::world::{Op, Side, over};
use sha2::{Digest as _, Sha256};

/// A home with the directory `one` and these files.
fn home(files: &[(&str, &str)]) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for folder in ["one", "two"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
    }
    for (path, text) in files {
        let path = home.path().join("one").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    home
}

pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // `bases` is only written in addition, and the overlay works without it.
        if entry.file_name() == "bases" {
            continue;
        }
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
            let modified = entry.metadata().unwrap().modified().unwrap();
            std::fs::File::options().append(true).open(to).unwrap().set_modified(modified).unwrap();
        }
    }
}

fn write(path: &str) -> Op {
    let write = DescriptorFlags::READ | DescriptorFlags::WRITE;
    Op::Open(0, path.into(), PathFlags::empty(), OpenFlags::CREATE, write)
}

/// Changes of every kind.
fn changes() -> Vec<Op> {
    let rename = |from: &str, to: &str| Op::Rename(0, from.into(), 0, to.into());
    vec![
        write("new"),
        write("a"),
        Op::MakeDir(0, "d/made".into()),
        rename("d", "e"),
        Op::Unlink(0, "e/b".into()),
        rename("c", "e/made/c"),
        Op::Link(0, "e/made/c".into(), 0, "linked".into()),
        Op::SetTimesAt(0, "f".into(), 77),
        Op::SetTimesAt(0, "e".into(), 78),
        rename("new", "a"),
        rename("f", "g"),
        write("g"),
        Op::Unlink(0, "linked".into()),
        Op::Unlink(0, "e/made/c".into()),
        Op::RemoveDir(0, "e/made".into()),
        rename("e", "d"),
    ]
}

const FILES: [(&str, &str); 5] =
    [("a", "of a"), ("c", "of c"), ("d/b", "of b"), ("d/keep", "kept"), ("f", "of f")];

/// A killed process may have written its index up to any byte. Whichever byte that is, earlier acknowledged
/// changes are present, and the last change is present as a whole or not at all.
#[tokio::test]
async fn a_death_at_any_byte_of_the_index_loses_nothing_and_invents_nothing() {
    let home = home(&FILES);
    let mut side = Side::overlaid(home.path());
    let fds = side.preopens();
    let layer = home.path().join("one.layer");
    let index = |layer: &Path| std::fs::read(layer.join("index")).unwrap();
    let dead = home.path().join("dead");
    let mut seen = vec![side.tree(0).await];
    let (mut done, mut tried) = (index(&layer).len(), 0);
    for op in changes() {
        let before = home.path().join("before");
        copy(&layer, &before);
        let (said, _) = side.act(&op, &fds).await;
        assert_eq!(said, "done", "{op:?}");
        seen.push(side.tree(0).await);
        let all = index(&layer);
        assert!(all.len() > done, "{op:?} is not in the index");
        let mut made = false;
        for end in done..=all.len() {
            // Old content files are removed some time after the record is written, so both old and new files
            // are present.
            copy(&before, &dead);
            copy(&layer.join("files"), &dead.join("files"));
            std::fs::write(dead.join("index"), all.get(..end).unwrap()).unwrap();
            let found = reopened(home.path(), &dead).await;
            // A digest may come after the change in the index.
            made |= found == seen[seen.len() - 1];
            let expected = &seen[seen.len() - if made { 1 } else { 2 }];
            assert_eq!(&found, expected, "{op:?}, {end} of {} bytes", all.len());
            std::fs::remove_dir_all(&dead).unwrap();
            tried += 1;
        }
        assert!(made, "{op:?} was acknowledged");
        done = all.len();
        std::fs::remove_dir_all(&before).unwrap();
    }
    assert!(tried > 1_000, "{tried}");
}

async fn reopened(home: &Path, layer: &Path) -> BTreeMap<String, String> {
    let overlay = Overlay::open(home.join("one"), layer, OverlayQuota::default()).unwrap();
    // Opened twice: opening leaves a layer that can be opened again.
    drop(overlay);
    let overlay = Overlay::open(home.join("one"), layer, OverlayQuota::default()).unwrap();
    let named = std::fs::read_dir(layer.join("files")).unwrap().count() as u64;
    assert!(named <= overlay.used_quota().files, "nothing lies there that no name means");
    Side::of(&[over("/one", &overlay)]).tree(0).await
}

#[tokio::test]
async fn an_index_that_is_not_what_was_written_is_an_error() {
    let home = home(&FILES);
    let mut side = Side::overlaid(home.path());
    let fds = side.preopens();
    for op in changes() {
        side.act(&op, &fds).await;
    }
    drop(side);
    let layer = home.path().join("one.layer");
    let open = || Overlay::open(home.path().join("one"), &layer, OverlayQuota::default());
    let whole = std::fs::read(layer.join("index")).unwrap();
    for at in [0, 20, 40, whole.len() / 2] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        std::fs::write(layer.join("index"), &bytes).unwrap();
        match open() {
            Err(error) => assert!(error.to_string().contains("index"), "{error}"),
            // A length beyond the end of the index is treated as an incomplete last record.
            Ok(overlay) => assert!(overlay.used_quota().files < 10, "byte {at}"),
        }
        let _ = std::fs::remove_file(layer.join("index"));
    }
    std::fs::write(layer.join("index"), &whole[..whole.len() - 1]).unwrap();
    open().unwrap();
}

#[tokio::test]
async fn a_content_that_is_missing_is_an_error_and_one_too_many_goes() {
    let home = home(&FILES);
    let mut side = Side::overlaid(home.path());
    let fds = side.preopens();
    side.act(&write("new"), &fds).await;
    drop(side);
    let layer = home.path().join("one.layer");
    let open = || Overlay::open(home.path().join("one"), &layer, OverlayQuota::default());
    std::fs::write(layer.join("files/77"), "nobody's").unwrap();
    std::fs::write(layer.join("files/no number"), "nobody's").unwrap();
    drop(open().unwrap());
    assert_eq!(std::fs::read_dir(layer.join("files")).unwrap().count(), 1);
    std::fs::remove_dir_all(layer.join("files")).unwrap();
    assert!(open().unwrap_err().to_string().contains("is missing"));
}

#[tokio::test]
async fn an_index_stays_short_however_often_something_changes() {
    let home = home(&FILES);
    let mut side = Side::overlaid(home.path());
    let fds = side.preopens();
    for op in changes() {
        side.act(&op, &fds).await;
    }
    for _ in 0..3_000 {
        for (from, to) in [("d", "a long name of a directory"), ("a long name of a directory", "d")]
        {
            let (said, _) = side.act(&Op::Rename(0, from.into(), 0, to.into()), &fds).await;
            assert_eq!(said, "done");
        }
    }
    let seen = side.tree(0).await;
    let changes = side.overlays()[0].list_changes();
    let index = std::fs::metadata(home.path().join("one.layer/index")).unwrap().len();
    assert!(index < 300 << 10, "{index} bytes");
    drop(side);
    let mut side = Side::overlaid(home.path());
    assert_eq!(side.tree(0).await, seen);
    assert_eq!(side.overlays()[0].list_changes(), changes);
}

/// The changes of `/one`, as text.
fn told(overlay: &Overlay) -> Vec<String> {
    let word = |change: &belljar_overlay::Change| {
        let kind = match &change.kind {
            ChangeKind::Renamed { from, modified } => {
                format!("from {}{}", from.display(), if *modified { ", modified" } else { "" })
            }
            kind => format!("{kind:?}").to_lowercase(),
        };
        let directory = if change.directory { "/" } else { "" };
        format!("{}{directory}: {kind}", change.path.display())
    };
    overlay.list_changes().iter().map(word).collect()
}

#[tokio::test]
async fn the_host_is_told_every_change_and_what_was_there() {
    let files = [
        ("changed", "before"),
        ("copied", "before"),
        ("gone", "gone"),
        ("moved", "moved"),
        ("dir/in", "in"),
        ("dir/out", "out"),
        ("olddir/x", "x"),
        ("replaced", "replaced"),
        ("same", "same"),
        ("touched", "touched"),
        ("tofile/x", "x"),
    ];
    let home = home(&files);
    let mut side = Side::overlaid(home.path());
    let fds = side.preopens();
    let rename = |from: &str, to: &str| Op::Rename(0, from.into(), 0, to.into());
    let ops = [
        write("changed"),
        write("copied"),
        rename("copied", "copied away"),
        Op::Unlink(0, "gone".into()),
        rename("moved", "dir/moved"),
        rename("dir", "newdir"),
        Op::Unlink(0, "newdir/out".into()),
        write("newdir/in"),
        Op::Unlink(0, "olddir/x".into()),
        Op::RemoveDir(0, "olddir".into()),
        Op::MakeDir(0, "olddir".into()),
        write("added"),
        rename("added", "replaced"),
        Op::MakeDir(0, "made".into()),
        write("made/inner"),
        Op::SetTimesAt(0, "touched".into(), 77),
        Op::Unlink(0, "tofile/x".into()),
        Op::RemoveDir(0, "tofile".into()),
        write("tofile"),
        Op::Link(0, "same".into(), 0, "same too".into()),
        write("fleeting"),
        Op::Unlink(0, "fleeting".into()),
    ];
    for op in &ops {
        let (said, _) = side.act(op, &fds).await;
        assert_eq!(said, "done", "{op:?}");
    }
    let expected = [
        "changed: modified",
        "copied away: from copied, modified",
        "gone: deleted",
        "made/: added",
        "made/inner: added",
        "newdir/: from dir",
        "newdir/in: modified",
        "newdir/moved: from moved",
        "newdir/out: deleted",
        "olddir/: deleted",
        "olddir/: added",
        "replaced: modified",
        "same too: added",
        "tofile/: deleted",
        "tofile: added",
        "touched: modified",
    ];
    let overlay = side.overlays()[0].clone();
    assert_eq!(told(&overlay), expected);
    let changes = overlay.list_changes();
    let original = |path: &str| {
        let change = changes.iter().find(|change| change.path == Path::new(path)).unwrap();
        change.original.unwrap()
    };
    // A copied file has the digest of the original content. A moved or removed file has the state of the
    // lower file.
    let stat = std::fs::metadata(home.path().join("one/changed")).unwrap();
    assert_eq!(original("changed").modified, stat.modified().unwrap());
    for (path, text) in [("changed", "before"), ("copied away", "before"), ("newdir/in", "in")] {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let found = original(path);
        assert_eq!(found.digest.map(|digest| *digest.as_bytes()), Some(digest), "{path}");
        assert_eq!((found.size, found.directory), (text.len() as u64, false));
    }
    assert_eq!((original("gone").size, original("gone").digest), (4, None));
    assert!(original("newdir").directory);
    // The content of a changed file, for whoever applies the change.
    use std::io::Read as _;
    let mut text = String::new();
    overlay.open_file("newdir/moved").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "moved");
    assert!(overlay.open_file("gone").is_err() && overlay.open_file("../one/gone").is_err());
    drop((side, overlay));
    let side = Side::overlaid(home.path());
    assert_eq!(side.overlays()[0].list_changes(), changes, "opened again");
}

#[tokio::test]
async fn a_digest_that_was_not_made_is_made_later_if_the_file_is_still_the_same() {
    let home = home(&[("a", "of a"), ("b", "of b")]);
    let layer = home.path().join("one.layer");
    let mut side = Side::overlaid(home.path());
    let fds = side.preopens();
    for path in ["a", "b"] {
        side.act(&write(path), &fds).await;
    }
    // As after a kill before a digest was written: the index has only the two records.
    drop(side);
    let open = || Overlay::open(home.path().join("one"), &layer, OverlayQuota::default()).unwrap();
    std::fs::write(home.path().join("one/b"), "changed by its owner").unwrap();
    let changes = open().list_changes();
    let digest: [u8; 32] = Sha256::digest("of a").into();
    let found = |n: usize| changes[n].original.unwrap().digest.map(|digest| *digest.as_bytes());
    assert_eq!(found(0), Some(digest));
    assert!(found(1).is_none() || found(1) == Some(Sha256::digest("of b").into()));
}

/// Several jars of one session write at the same time.
#[test]
fn many_stores_write_to_one_overlay_at_once() {
    const EACH: usize = 50;
    let home = home(&[("shared/note", "note")]);
    let open = || {
        let (lower, layer) = (home.path().join("one"), home.path().join("layer"));
        Overlay::open(lower, layer, OverlayQuota::default()).unwrap()
    };
    let overlay = open();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let overlay = overlay.clone();
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    let mut side = Side::of(&[over("/one", &overlay)]);
                    let fds = side.preopens();
                    for n in 0..EACH {
                        let (path, moved) =
                            (format!("shared/{thread}-{n}"), format!("{thread}-{n}"));
                        let (said, opened) = side.act(&write(&path), &fds).await;
                        assert_eq!(said, "done");
                        let file = [opened.unwrap()];
                        side.act(&Op::Write(0, 10, 0), &file).await;
                        side.act(&Op::Drop(0), &file).await;
                        let rename = Op::Rename(0, path, 0, moved);
                        assert_eq!(side.act(&rename, &fds).await.0, "done");
                    }
                });
            });
        }
    });
    assert_eq!((overlay.used_quota().files, overlay.used_quota().bytes), (200, 2000));
    let changes = overlay.list_changes();
    assert_eq!(changes.len(), 4 * EACH);
    drop(overlay);
    assert_eq!(open().list_changes(), changes);
}
