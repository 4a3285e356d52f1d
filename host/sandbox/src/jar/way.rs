//! Checks that agents did not redirect the path to a mount's directory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::imports::files::OpenMount;

/// The most symbolic links on a path; more are taken for a cycle.
const MAX_LINKS: usize = 40;

/// Returns `mount`, opened from the path `host`, unless that path goes through a symbolic link in a
/// directory where agents write. Agents cannot make links, but can move directories that contain other
/// people's links.
///
/// # Errors
///
/// There is such a link, or the path now leads to another directory than when `mount` was opened.
pub(super) fn check_mount(
    host: &Path,
    mount: OpenMount,
    written: &[PathBuf],
) -> io::Result<OpenMount> {
    check_way(host, mount.host_path(), written).map(|()| mount)
}

/// Does the check of [`check_mount`]; `real` is the directory the path led to when it was opened.
fn check_way(host: &Path, real: &Path, written: &[PathBuf]) -> io::Result<()> {
    if written.is_empty() {
        return Ok(());
    }
    let refused = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    match follow_path(host, written)? {
        Some(led) if led == real => Ok(()),
        Some(_) => refused("the way to it was changed meanwhile"),
        None => refused("a link on the way to it lies in a directory that agents write"),
    }
}

/// Follows a path to its target, link by link. `None`: the path goes through a link in one of the
/// directories `written`, or through too many links.
fn follow_path(path: &Path, written: &[PathBuf]) -> io::Result<Option<PathBuf>> {
    let mut rest = path_parts(path);
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        if !next.symlink_metadata()?.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS || written.iter().any(|directory| at.starts_with(directory)) {
            return Ok(None);
        }
        let target = next.read_link()?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        for part in path_parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok(Some(at))
}

fn path_parts(path: &Path) -> VecDeque<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_in_a_directory_that_is_written_leads_to_a_mount() {
        let temporary = tempfile::tempdir().unwrap();
        let top = temporary.path().canonicalize().unwrap();
        let written = [top.join("work")];
        for made in ["work/d/out", "work/e", "secret/out", "aside"] {
            fs::create_dir_all(top.join(made)).unwrap();
        }
        symlink(top.join("secret"), top.join("work/e/out")).unwrap();
        symlink("../work/d", top.join("aside/into")).unwrap();
        symlink(top.join("secret"), top.join("aside/beside")).unwrap();
        let opens = |path: &str| {
            let host = top.join(path);
            check_way(&host, &host.canonicalize().unwrap(), &written)
        };
        // Links outside of the written directories are the operator's own.
        for fine in ["work", "work/d/out", "aside/into/out", "aside/beside", "work/d/../d/out"] {
            opens(fine).unwrap();
        }
        opens("work/e/out").unwrap_err();
        fs::rename(top.join("work/d"), top.join("work/d0")).unwrap();
        fs::rename(top.join("work/e"), top.join("work/d")).unwrap();
        opens("work/d/out").unwrap_err();
        opens("aside/into/out").unwrap_err();
        // The path leads to another directory than the one that was opened.
        check_way(&top.join("aside"), &top.join("secret"), &written).unwrap_err();
        // Without written directories, no path is refused.
        check_way(&top.join("work/d/out"), &top.join("secret"), &[]).unwrap();
    }
}
