//! Compares the resolution of random paths with random links with the system's own resolution.

use belljar_overlay::walk::{
    DiskDir, DiskTree, FollowMode, PathEnd, WalkError, WalkStart, walk_by,
};

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// Directories that always exist; each contains a file `f`.
const DIRS: [&str; 4] = ["", "a", "a/b", "c"];
/// The names in paths and link targets. `l0` to `l3` are links.
const PARTS: [&str; 11] = ["a", "b", "c", "f", "l0", "l1", "l2", "l3", "..", ".", "new"];

fn path() -> impl Strategy<Value = String> {
    let parts = vec(prop::sample::select(&PARTS[..]), 1..6);
    (parts, any::<bool>()).prop_map(|(parts, slash)| {
        let end = if slash { "/" } else { "" };
        format!("{}{end}", parts.join("/"))
    })
}

fn links() -> impl Strategy<Value = Vec<(usize, String)>> {
    let target = prop_oneof![9 => path(), 1 => Just("/etc".to_owned())];
    vec((0..DIRS.len(), target), 4)
}

fn tree(links: &[(usize, String)]) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap().join("x/y/root");
    for dir in DIRS {
        std::fs::create_dir_all(root.join(dir)).unwrap();
        std::fs::write(root.join(dir).join("f"), dir).unwrap();
    }
    for (n, (dir, target)) in links.iter().enumerate() {
        symlink(target, root.join(DIRS[*dir]).join(format!("l{n}"))).unwrap();
    }
    (home, root)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    /// A resolved path leads to the same object as the system's resolution, and the object is inside the
    /// root. A path that the system resolves is also resolved here, unless the path leaves the root on the
    /// way.
    #[test]
    fn a_path_leads_where_the_system_says_or_is_refused(links in links(), path in path()) {
        let (_home, root) = tree(&links);
        let dir = Arc::new(File::open(&root).unwrap());
        let start = WalkStart { dir, real: "".into(), protected: false };
        let system = root.join(&path).canonicalize();
        match walk_path(&start, &path, FollowMode::Yes) {
            Ok(place) => match (place.stat_entry(), system) {
                (Ok(_), Ok(system)) => {
                    prop_assert!(system.starts_with(&root));
                    prop_assert_eq!(root.join(&place.real).canonicalize().unwrap(), system);
                    prop_assert!(!place.real.split('/').any(|part| part == ".." || part == "."));
                }
                (Err(_), Err(_)) => {}
                (ours, system) => prop_assert!(false, "{ours:?} and {system:?}"),
            },
            Err(WalkError::Errno(errno)) => prop_assert!(system.is_err(), "{errno} and {system:?}"),
            Err(WalkError::Escape(_)) => {
                let leaves = path.contains("..") || links.iter().any(|(_, target)| {
                    target.contains("..") || target.starts_with('/')
                });
                prop_assert!(leaves, "refused without a way out");
            }
        }
    }
}

/// Resolves a path of a directory of the host.
fn walk_path(start: &WalkStart, path: &str, follow: FollowMode) -> Result<PathEnd, WalkError> {
    walk_by(&DiskTree, DiskDir::Start(Arc::clone(&start.dir)), start, path, follow)
}
