//! Finds the git repository that contains a directory, for the paths in a patch.

use std::path::{Path, PathBuf};

/// The path of a directory from the top of its git repository; empty if the directory is the top, or in no
/// repository.
///
/// `git apply` takes the paths of a patch from the top of the repository even if started below, and silently
/// skips a file outside of its starting directory.
pub(super) fn repository_prefix(directory: &Path) -> PathBuf {
    // Git resolves links in the path of a directory.
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let top = directory.ancestors().find(|above| is_top(above));
    let below = top.and_then(|top| directory.strip_prefix(top).ok());
    below.map(Path::to_owned).unwrap_or_default()
}

/// Returns whether a directory is the top of a git repository. In a worktree and in a submodule, `.git` is a
/// file.
fn is_top(directory: &Path) -> bool {
    let git = directory.join(".git");
    git.is_file() || (git.join("HEAD").exists() && git.join("objects").is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_told_by_its_place_in_the_innermost_repository() {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().canonicalize().unwrap();
        for made in ["r/.git/objects", "r/a/b", "r/a/empty/.git", "r/sub/c", "none/a"] {
            std::fs::create_dir_all(top.join(made)).unwrap();
        }
        std::fs::write(top.join("r/.git/HEAD"), "ref: refs/heads/main").unwrap();
        std::fs::write(top.join("r/sub/.git"), "gitdir: ../.git/modules/sub").unwrap();
        std::os::unix::fs::symlink(top.join("r/a"), top.join("link")).unwrap();
        for (directory, expected) in [
            ("r", ""),
            ("r/a/b", "a/b"),
            ("link/b", "a/b"),
            ("r/a/empty", "a/empty"),
            ("r/sub/c", "c"),
            ("r/sub", ""),
            ("none/a", ""),
            ("missing", ""),
        ] {
            assert_eq!(repository_prefix(&top.join(directory)), Path::new(expected), "{directory}");
        }
    }
}
