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
mod repository;
mod shelf;
mod source;
mod zip;

use belljar_catalogue::{API_LIBRARY, LibraryRoot};

use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;

pub(crate) use fetch::{SourceFetcher, serve_helper};
pub(crate) use gather::{CollectScope, CollectedSource, GatheredFile, LeftOutFile};
pub(crate) use lock::{InstalledLibrary, LibraryLock};
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
    Ok(roots.collect())
}
