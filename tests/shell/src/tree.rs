//! The content of a workspace: names and contents, no times and no permissions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Files by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Directory,
    File(String),
    Link(String),
}

impl Tree {
    /// Reads a workspace; its own path, where it stands in a text, is shown as `shown`.
    pub fn read(workspace: &Path, shown: &str) -> Tree {
        let mut tree = Tree::default();
        tree.add(workspace, "", &|text: &str| text.replace(&*workspace.to_string_lossy(), shown));
        tree
    }

    fn add(&mut self, folder: &Path, prefix: &str, neutral: &dyn Fn(&str) -> String) {
        for entry in fs::read_dir(folder).expect("list the workspace") {
            let entry = entry.expect("an entry");
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().expect("a type");
            let found = if kind.is_symlink() {
                let target = fs::read_link(entry.path()).expect("a link");
                Entry::Link(neutral(&target.to_string_lossy()))
            } else if kind.is_dir() {
                self.add(&entry.path(), &format!("{path}/"), neutral);
                Entry::Directory
            } else {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                Entry::File(neutral(&String::from_utf8_lossy(&bytes)))
            };
            self.0.insert(path, found);
        }
    }

    /// The entries that differ, one text for each.
    pub(crate) fn differences(&self, expected: &Tree) -> Vec<String> {
        let names = self.0.keys().chain(expected.0.keys());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names.dedup();
        names
            .into_iter()
            .filter(|name| self.0.get(*name) != expected.0.get(*name))
            .map(|name| {
                format!("`{name}` is {:?}, not {:?}", self.0.get(name), expected.0.get(name))
            })
            .collect()
    }
}
