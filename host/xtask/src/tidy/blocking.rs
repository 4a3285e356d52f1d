//! Rule: clippy's settings of each crate of the host forbid the functions that start blocking work without a
//! bound and an end.

use std::fs;
use std::path::Path;

use super::TreeFile;

/// The forbidden functions: they start such work, or block an async worker until the work is done. Each is
/// listed in `disallowed-methods`.
const METHODS: [&str; 8] = [
    "tokio::task::spawn_blocking",
    "tokio::runtime::Handle::spawn_blocking",
    "tokio::runtime::Runtime::spawn_blocking",
    "tokio::task::JoinSet::spawn_blocking",
    "tokio::task::block_in_place",
    "tokio::runtime::Handle::block_on",
    "std::thread::spawn",
    "std::thread::Builder::spawn",
];

/// The name of clippy's settings file. A crate's own file replaces the file of the root.
const SETTINGS: &str = ".clippy.toml";

pub(super) fn find_breaches(root: &Path, files: &[TreeFile]) -> Vec<String> {
    let crates = files.iter().filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    let crates = crates.filter(|folder| folder.starts_with("host/") && !folder.contains("/guests"));
    let own = crates.map(|folder| format!("{folder}/{SETTINGS}"));
    let mut breaches = Vec::new();
    for path in std::iter::once(SETTINGS.to_owned()).chain(own) {
        // A crate without a settings file uses the file of the root.
        if let Ok(text) = fs::read_to_string(root.join(&path)) {
            breaches.extend(
                missing_methods(&text)
                    .map(|method| format!("{path}: does not disallow `{method}`")),
            );
        }
    }
    breaches
}

fn missing_methods(text: &str) -> impl Iterator<Item = &'static str> {
    METHODS.into_iter().filter(move |method| !text.contains(&format!("path = \"{method}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INV-415.
    #[test]
    fn a_crate_that_may_start_blocking_work_without_a_bound_is_a_breach() {
        let root = tempfile::tempdir().unwrap();
        let all = METHODS.map(|method| format!("{{ path = \"{method}\" }}\n")).concat();
        fs::write(root.path().join(SETTINGS), &all).unwrap();
        fs::create_dir_all(root.path().join("host/one")).unwrap();
        fs::create_dir_all(root.path().join("host/other")).unwrap();
        let file = |path: &str| TreeFile { path: path.to_owned(), text: String::new() };
        let files = [file("host/one/Cargo.toml"), file("host/other/Cargo.toml")];
        assert!(find_breaches(root.path(), &files).is_empty(), "the root's counts");
        let some = all.replace(METHODS[1], "std::env::var");
        fs::write(root.path().join("host/one").join(SETTINGS), some).unwrap();
        let told = find_breaches(root.path(), &files);
        assert_eq!(told, [format!("host/one/.clippy.toml: does not disallow `{}`", METHODS[1])]);
        // Threads, or a blocked async worker, would do the same work in another way.
        let some = all.replace("std::thread", "std::other").replace("block_in_place", "other");
        fs::write(root.path().join("host/one").join(SETTINGS), some).unwrap();
        assert_eq!(find_breaches(root.path(), &files).len(), 3);
    }
}
