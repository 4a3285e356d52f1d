//! The files of a plugin, in memory.

use std::collections::BTreeMap;

use super::path::PluginPath;

/// The files of a plugin by their paths below its root. The caller reads them within its own bounds, and
/// leaves out links, so that no path here leads out of the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginTree(BTreeMap<String, Vec<u8>>);

impl PluginTree {
    /// A plugin with these files.
    pub fn from_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self(files.into_iter().collect())
    }

    /// The content of a file.
    pub fn read(&self, path: &str) -> Option<&[u8]> {
        self.0.get(path).map(Vec::as_slice)
    }

    /// Whether there is such a file.
    pub fn has_file(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Whether there is a file at this path or below it.
    pub fn has_path(&self, path: &PluginPath) -> bool {
        self.files_below(path).next().is_some()
    }

    /// All files, by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// The paths at or below this one, whole.
    pub fn files_below<'a>(&'a self, path: &'a PluginPath) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(|file| path.contains(file))
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
