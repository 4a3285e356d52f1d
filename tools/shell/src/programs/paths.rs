//! Paths as scripts write them.

use bashkit::{Error, FileSystem};
use std::path::{Component, Path, PathBuf};

/// Links followed in one lookup, as Linux has it.
const MAX_LINKS: usize = 40;

/// An absolute path without `.` and `..`, not looking at links.
pub(super) fn absolute(cwd: &Path, given: &str) -> PathBuf {
    let mut path = PathBuf::from("/");
    for part in cwd.join(given).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

/// The path with every link followed, as far as it exists; `None` when links go in circles.
pub(super) async fn real(fs: &dyn FileSystem, cwd: &Path, given: &str) -> Option<PathBuf> {
    let mut pending: Vec<String> = parts(&cwd.join(given)).rev().collect();
    let mut path = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = pending.pop() {
        if part == ".." {
            path.pop();
            continue;
        }
        path.push(&part);
        let is_link = fs.lstat(&path).await.is_ok_and(|found| found.file_type.is_symlink());
        if !is_link {
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        let target = fs.read_link(&path).await.ok()?;
        path.pop();
        if target.is_absolute() {
            path = PathBuf::from("/");
        }
        pending.extend(parts(&target).rev());
    }
    Some(path)
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = String> {
    let parts: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::ParentDir => Some("..".to_owned()),
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect();
    parts.into_iter()
}

/// The last component, `given` itself where there is none.
pub(super) fn name(given: &str) -> &str {
    let trimmed = given.trim_end_matches('/');
    trimmed.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(given)
}

/// Why a file operation failed, in the words of `strerror`.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "No such file or directory".to_owned()
        }
        Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}
