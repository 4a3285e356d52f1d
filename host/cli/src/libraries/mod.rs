//! Installed libraries of agents: the files from a source, their place, and the lock file with a person's
//! agreement.
//!
//! ```text
//! address ──> fetch ──┐
//! source ─────────────┴─> commit | archive | directory ──> gather ──> (vetting, a person's yes) ──> shelf ──> lock
//! ```
//!
//! Nothing of a library is ever run. Its files are a stranger's text until parsed, and a right needs the
//! operator's grant.

mod archive;
mod commit;
mod directory;
mod fetch;
mod folder;
mod gather;
mod git;
mod lock;
mod members;
mod plugin_lock;
mod plugin_tree;
mod repository;
mod shelf;
mod source;
mod zip;

use std::collections::BTreeMap;
use std::path::PathBuf;

use belljar_catalogue::{API_LIBRARY, LibraryRoot};
use belljar_sandbox::Digest;

use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;

pub(crate) use fetch::{SourceFetcher, serve_helper};
pub(crate) use gather::{CollectScope, CollectedSource, GatheredFile, LeftOutFile};
pub(crate) use lock::{InstalledLibrary, LibraryLock};
pub(crate) use plugin_lock::{InstalledPlugin, KnownMarket, PluginKey, is_file_of_skill};
pub(crate) use plugin_tree::{ENTRY_FILE, PluginFiles, PluginSource, read_installed, read_market};
pub(crate) use shelf::LibraryShelf;
pub(crate) use source::{LibrarySource, PreparedSource};

/// Names that no library gets: the name of agents made through the API, and words in ids of agents outside of
/// libraries.
const RESERVED: &[&str] = &[API_LIBRARY, "belljar", "home", "library", "workspace"];

/// Whether no library goes by this name.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The installed libraries for the catalogue of agents: the agreed files, while unchanged.
pub(crate) fn library_roots(places: &HomePaths) -> Result<Vec<LibraryRoot>, Failure> {
    let lock = LibraryLock::read(&places.libraries_directory())?;
    // A library installed by another program under such a name would be mistaken for something else.
    let libraries = lock.libraries.into_iter().filter(|(name, _)| !is_reserved(name.as_str()));
    let roots = libraries.map(|(name, library)| {
        let dir = places.libraries_directory().join(&library.directory);
        let InstalledLibrary { source, revision, files, .. } = library;
        LibraryRoot::for_installed(&name, dir, files).from_source(source.to_string(), revision)
    });
    let plugins = lock.plugins.iter().filter(|(_, plugin)| plugin.enabled);
    let plugins =
        plugins.map(|(key, plugin)| plugin_root(key, plugin, plugin.agent_files(), places));
    Ok(roots.chain(plugins).collect())
}

/// The skills of the plugins in use, for the catalogue of skills. A root has all files of its skills' folders.
pub(crate) fn skill_roots(places: &HomePaths) -> Result<Vec<LibraryRoot>, Failure> {
    plugin_roots(places, InstalledPlugin::skill_files)
}

/// The commands of the plugins in use, for the catalogue of commands.
pub(crate) fn command_roots(places: &HomePaths) -> Result<Vec<LibraryRoot>, Failure> {
    plugin_roots(places, InstalledPlugin::command_files)
}

/// A root for each plugin in use that has files of a kind, as `pick` chooses them.
fn plugin_roots(
    places: &HomePaths,
    pick: impl Fn(&InstalledPlugin) -> BTreeMap<PathBuf, Digest>,
) -> Result<Vec<LibraryRoot>, Failure> {
    let lock = LibraryLock::read(&places.libraries_directory())?;
    let plugins = lock.plugins.iter().filter(|(_, plugin)| plugin.enabled);
    let with_files = plugins.map(|(key, plugin)| (key, plugin, pick(plugin)));
    let roots = with_files
        .filter(|(.., files)| !files.is_empty())
        .map(|(key, plugin, files)| plugin_root(key, plugin, files, places));
    Ok(roots.collect())
}

fn plugin_root(
    key: &PluginKey,
    plugin: &InstalledPlugin,
    files: BTreeMap<PathBuf, Digest>,
    places: &HomePaths,
) -> LibraryRoot {
    let dir = places.libraries_directory().join(&plugin.directory);
    let root = LibraryRoot::for_installed(key.library_name(), dir, files);
    root.from_source(plugin.source.to_string(), plugin.revision.clone())
}
