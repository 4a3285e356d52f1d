//! A workspace with an overlay and a journal, and trees of files to compare.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Overlay, OverlayQuota};

use crate::changes::{AppliedChanges, ApplyOptions, Changes, OverlayReview, PathSelection};

#[path = "../../../../../tests/kit/overlay.rs"]
mod overlay;

pub(crate) use overlay::{Random, World};

/// Paths with what is there: the content and whether it can be started, a link's target, or `None`
/// for a directory.
pub(crate) type Tree = BTreeMap<PathBuf, Option<(Vec<u8>, bool)>>;

impl World {
    pub(crate) fn review(&self) -> OverlayReview {
        OverlayReview::open(&self.overlay, self.home.path().join("journal")).unwrap()
    }

    pub(crate) fn changes(&self) -> Changes {
        self.review().list_changes().unwrap().with_line_counts().unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        self.overlay.write_file(path, text.as_bytes()).unwrap();
    }

    /// As [`Self::write`], with the directories above.
    pub(crate) fn write_below(&self, path: &str, text: &str) {
        let dirs: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
        for dir in dirs.into_iter().rev().skip(1) {
            if self.overlay.list_dir(dir, 100_000).is_err() {
                self.overlay.make_dir(dir).unwrap();
            }
        }
        self.write(path, text);
    }

    /// As the person does in the workspace.
    pub(crate) fn edit(&self, path: &str, text: &str) {
        self.tick();
        std::fs::write(self.ws().join(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.ws().join(path)).ok()
    }

    pub(crate) fn apply(&self, paths: &[&str], options: &ApplyOptions) -> AppliedChanges {
        let selection = PathSelection::from_paths(paths).unwrap();
        self.review().apply_changes(&selection, options).unwrap()
    }

    /// Applies all changes, which must succeed.
    pub(crate) fn apply_all(&self) {
        let applied = self.review().apply_changes(&PathSelection::all(), &all()).unwrap();
        assert_eq!(applied.conflicts, []);
    }

    /// The workspace.
    pub(crate) fn tree(&self) -> Tree {
        tree(&self.ws())
    }

    /// The tree that the agent sees. Links are as in the workspace.
    pub(crate) fn view(&self) -> Tree {
        let mut found = Tree::new();
        self.view_of(Path::new(""), &mut found);
        found
    }

    /// Adds the agent's view of a directory to `found`.
    fn view_of(&self, dir: &Path, found: &mut Tree) {
        for (name, is_dir) in self.overlay.list_dir(dir, 100_000).unwrap() {
            let path = dir.join(name);
            if is_dir {
                found.insert(path.clone(), None);
                self.view_of(&path, found);
                continue;
            }
            let mut content = Vec::new();
            let mut file = self.overlay.open_file(&path).unwrap();
            std::io::Read::read_to_end(&mut file, &mut content).unwrap();
            found.insert(path, Some((content, false)));
        }
    }

    /// The workspace after `git apply` of the patch.
    pub(crate) fn patched(&self) -> Tree {
        let mut patch = Vec::new();
        self.changes().write_patch(&mut patch).unwrap();
        let copy = self.home.path().join("copy");
        if copy.exists() {
            std::fs::remove_dir_all(&copy).unwrap();
        }
        let run = |program: &str, arguments: &[&str], at: &Path| {
            let out = Command::new(program)
                .args(arguments)
                .current_dir(at)
                .env("GIT_CEILING_DIRECTORIES", self.home.path())
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.success(), "{program}: {told}\n{}", String::from_utf8_lossy(&patch));
        };
        run("cp", &["-a", "ws", "copy"], self.home.path());
        if !patch.is_empty() {
            let file = self.home.path().join("patch");
            std::fs::write(&file, &patch).unwrap();
            run("git", &["apply", "--whitespace=nowarn", file.to_str().unwrap()], &copy);
        }
        tree(&copy)
    }
}

/// Applies also what runs later.
pub(crate) fn all() -> ApplyOptions {
    ApplyOptions { also_what_runs: true, ..ApplyOptions::default() }
}

/// The content of a directory and everything below.
pub(crate) fn tree(root: &Path) -> Tree {
    let (mut found, mut open) = (Tree::new(), vec![root.to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let below = path.strip_prefix(root).unwrap().to_owned();
            if meta.is_dir() {
                found.insert(below, None);
                open.push(path);
            } else if meta.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                found.insert(below, Some((target.to_string_lossy().into_owned().into(), true)));
            } else {
                let starts = meta.permissions().mode() & 0o100 != 0;
                found.insert(below, Some((std::fs::read(&path).unwrap(), starts)));
            }
        }
    }
    found
}

/// A tree without empty directories, because git has none.
pub(crate) fn files(tree: &Tree) -> Tree {
    tree.iter()
        .filter(|(_, it)| it.is_some())
        .map(|(path, it)| (path.clone(), it.clone()))
        .collect()
}
