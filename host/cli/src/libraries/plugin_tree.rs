//! The files of a plugin or a marketplace: read from a source, or from where they were installed.

use std::path::Path;

use belljar_definition::plugin::{MARKET_FILES, MarketEntry, MarketManifest, PluginTree};
use belljar_policy::ShownText;
use belljar_sandbox::Digest;

use super::fetch::SourceFetcher;
use super::gather::{CollectScope, CollectedSource, GatheredFile, LeftOutFile};
use super::plugin_lock::{InstalledPlugin, KnownMarket};
use super::source::{LibrarySource, PreparedSource};
use crate::setup::exit::Failure;
use crate::setup::home::{HomePaths, read_bounded};

/// The file beside an installed plugin that keeps the entry of its marketplace. No plugin brings it: its
/// folder is left out of every source.
pub(crate) const ENTRY_FILE: &str = ".belljar/marketplace.json";

/// The folder that no plugin brings.
const OWN_FOLDER: &str = ".belljar/";

/// Most files of a plugin: with the entry of its marketplace, as many as the list of libraries takes.
const MAX_FILES: usize = belljar_catalogue::limits::MAX_AGENT_FILES - 1;

/// Most bytes of a plugin's files together.
const MAX_BYTES: usize = 32 << 20;

/// Most bytes of one file, also of an installed one.
const MAX_FILE: u64 = 4 << 20;

/// Where a plugin is: a source, and the folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginSource {
    pub(crate) source: LibrarySource,
    /// With `/` between its parts; empty = the source itself.
    pub(crate) folder: String,
    /// The whole id of the only commit, or the digest of the only archive, that is accepted.
    pub(crate) sha: Option<String>,
}

/// A plugin's source after all work of other programs.
pub(crate) struct PreparedPlugin {
    pub(crate) prepared: PreparedSource,
    folder: String,
}

/// The files of a plugin.
#[derive(Debug, Default)]
pub(crate) struct PluginFiles {
    pub(crate) files: Vec<GatheredFile>,
    /// Files that were not taken.
    pub(crate) left_out: Vec<LeftOutFile>,
}

impl PluginSource {
    /// Does what takes another program. To be called before the OS sandbox goes up.
    ///
    /// # Errors
    ///
    /// INV-636: when the commit or the archive is another one than the marketplace names.
    pub(crate) fn prepare(&self, fetcher: &SourceFetcher<'_>) -> Result<PreparedPlugin, Failure> {
        let prepared = self.source.prepare_source(fetcher, CollectScope::Everything)?;
        if let Some(sha) = &self.sha
            && prepared.revision.as_ref() != Some(sha)
        {
            let found = prepared.revision.as_deref().unwrap_or("no commit");
            let message = format!("its marketplace names {sha}, and the source has {found}");
            return Err(Failure::usage(message).with_hint("nothing of it is installed"));
        }
        Ok(PreparedPlugin { prepared, folder: self.folder.clone() })
    }
}

impl PreparedPlugin {
    /// Reads the files of the plugin's folder.
    pub(crate) fn read_files(self) -> Result<PluginFiles, Failure> {
        let collected = self.prepared.collect_files()?;
        cut_folder(collected, &self.folder)
    }
}

impl PluginFiles {
    /// The files as a tree to parse.
    pub(crate) fn to_tree(&self) -> PluginTree {
        let files = self.files.iter().map(|file| (file.path.clone(), file.bytes.clone()));
        PluginTree::from_files(files)
    }
}

/// The files of a folder, by their paths below it.
fn cut_folder(collected: CollectedSource, folder: &str) -> Result<PluginFiles, Failure> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let mut kept = PluginFiles::default();
    let mut total = 0_usize;
    for file in collected.files {
        let Some(below) = file.path.strip_prefix(prefix.as_str()) else { continue };
        if below.starts_with(OWN_FOLDER) {
            let (path, why) = (below.to_owned(), "the folder is belljar's own".to_owned());
            kept.left_out.push(LeftOutFile { path, why });
            continue;
        }
        total = total.saturating_add(file.bytes.len());
        kept.files.push(GatheredFile { path: below.to_owned(), bytes: file.bytes });
        if kept.files.len() > MAX_FILES || total > MAX_BYTES {
            return Err(Failure::usage(format!(
                "the plugin has more than {MAX_FILES} files, or more than {MAX_BYTES} bytes"
            ))
            .with_hint("nothing of it is installed"));
        }
    }
    for file in collected.left_out {
        if let Some(below) = file.path.strip_prefix(prefix.as_str()) {
            kept.left_out.push(LeftOutFile { path: below.to_owned(), why: file.why });
        }
    }
    if kept.files.is_empty() {
        let shown = ShownText::clip_line(folder, 100);
        return Err(Failure::usage(format!("the source has no folder `{shown}` with files")));
    }
    Ok(kept)
}

/// The files of an installed plugin that are still as they were agreed to, and the entry of its marketplace.
pub(crate) fn read_installed(
    plugin: &InstalledPlugin,
    places: &HomePaths,
) -> (PluginFiles, Option<MarketEntry>) {
    let dir = places.libraries_directory().join(&plugin.directory);
    let mut found = PluginFiles::default();
    let mut entry = None;
    for (below, digest) in &plugin.files {
        let path = below.to_string_lossy().into_owned();
        match read_agreed(&dir.join(below), digest) {
            Some(bytes) if path == ENTRY_FILE => entry = MarketManifest::read_entry(&bytes),
            Some(bytes) => found.files.push(GatheredFile { path, bytes }),
            None => {
                let why = "it is not the file that was installed, and is not used".to_owned();
                found.left_out.push(LeftOutFile { path, why });
            }
        }
    }
    (found, entry)
}

/// The list of a known marketplace, as it was agreed to.
pub(crate) fn read_market(
    market: &KnownMarket,
    places: &HomePaths,
) -> Result<MarketManifest, Failure> {
    let dir = places.libraries_directory().join(&market.directory);
    let changed = || {
        Failure::usage("the list of the marketplace is not as it was added")
            .with_hint("`belljar marketplaces update NAME` reads it again")
    };
    let (below, digest) = market.files.first_key_value().ok_or_else(changed)?;
    let bytes = read_agreed(&dir.join(below), digest).ok_or_else(changed)?;
    parse_market(bytes)
}

/// Parses a marketplace's list.
fn parse_market(bytes: Vec<u8>) -> Result<MarketManifest, Failure> {
    let file = MARKET_FILES.first().map(|path| ((*path).to_owned(), bytes));
    let tree = PluginTree::from_files(file);
    MarketManifest::read(&tree).map_err(|found| Failure::from_diagnostics("", found))
}

fn read_agreed(path: &Path, digest: &Digest) -> Option<Vec<u8>> {
    let bytes = read_bounded(path, MAX_FILE).ok()?;
    (Digest::hash_bytes(&bytes) == *digest).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(number: usize) -> CollectedSource {
        let file = |at: usize| GatheredFile { path: format!("f{at}"), bytes: Vec::new() };
        CollectedSource { files: (0..number).map(file).collect(), ..CollectedSource::default() }
    }

    #[test]
    fn a_plugin_leaves_room_for_the_entry_of_its_marketplace() {
        let most = belljar_catalogue::limits::MAX_AGENT_FILES;
        assert_eq!(cut_folder(collected(most - 1), "").unwrap().files.len() + 1, most);
        assert!(cut_folder(collected(most), "").is_err());
    }
}
