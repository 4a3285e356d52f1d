//! Converts between the paths of the editor and of the agent: an agent sees the workspace as `/workspace`, an
//! editor as a directory of this machine.

use std::path::{Component, Path, PathBuf};

use url::Url;

use crate::limits::MAX_PATH_BYTES;

/// The path of the workspace as agents see it.
const GUEST: &str = "/workspace";

/// The path on this machine for an agent's path; `None` if it is not in the workspace. The file system is not
/// read.
pub(crate) fn host_path(workspace: &Path, path: &str) -> Option<PathBuf> {
    if path.is_empty() || path.len() > MAX_PATH_BYTES {
        return None;
    }
    let below = match path.strip_prefix(GUEST) {
        Some("") => "",
        Some(rest) => rest.strip_prefix('/')?,
        None if path.starts_with('/') => return None,
        None => path,
    };
    let mut whole = workspace.to_path_buf();
    for part in Path::new(below).components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(whole)
}

/// The agent's path for an editor's URI; `None` if it names no file of the workspace.
pub(crate) fn guest_path(workspace: &Path, uri: &str) -> Option<String> {
    if uri.len() > MAX_PATH_BYTES {
        return None;
    }
    let path = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()?;
    let below = path.strip_prefix(workspace).ok()?;
    let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    let below = below.to_str().filter(|_| plain)?;
    Some(format!("{GUEST}/{below}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_agent_is_one_of_the_workspace_or_none() {
        let of = |path: &str| host_path(Path::new("/w"), path);
        assert_eq!(of("/workspace/a/b.rs"), Some("/w/a/b.rs".into()));
        assert_eq!(of("./a.rs"), Some("/w/a.rs".into()));
        for outside in ["", "/etc/passwd", "../a", "/workspace/../a", "/workspaces/a"] {
            assert_eq!(of(outside), None, "{outside}");
        }
    }

    #[test]
    fn a_file_of_the_editor_is_one_of_the_workspace_or_none() {
        let of = |uri: &str| guest_path(Path::new("/w"), uri);
        assert_eq!(of("file:///w/a%20b.rs").as_deref(), Some("/workspace/a b.rs"));
        for outside in ["file:///etc/passwd", "file:///w/../etc/passwd", "https://w/a", "/w/a"] {
            assert_eq!(of(outside), None, "{outside}");
        }
    }
}
