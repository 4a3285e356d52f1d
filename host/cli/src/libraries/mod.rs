//! Installed libraries of agents: what is taken from a source, where it is kept, and the lock
//! file that says what a person agreed to.
//!
//! ```text
//! source ──> git | archive | directory ──> gather ──> (vetting, a person's yes) ──> shelf ──> lock
//! ```
//!
//! Nothing of a library is ever run. What its files say is a stranger's word until they are
//! parsed, and a right only after the operator granted it.

mod archive;
mod directory;
mod folder;
mod gather;
mod git;
mod lock;
mod members;
mod repository;
mod shelf;
mod source;

use belljar_catalogue::{API_LIBRARY, Root};

use crate::setup::exit::Failure;
use crate::setup::home::Places;

pub(crate) use gather::{Collected, GatheredFile, LeftOutFile};
pub(crate) use lock::{Installed, Lock};
pub(crate) use shelf::Shelf;
pub(crate) use source::{Source, Taken};

/// Names that no library gets: one is that of the agents that are made through the API, the others
/// are how identities say that an agent is no library's.
const RESERVED: &[&str] = &[API_LIBRARY, "belljar", "home", "library", "workspace"];

/// Whether no library goes by this name.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The installed libraries as the catalogue of agents reads them: the files that were agreed to,
/// while they are as they were.
pub(crate) fn roots(places: &Places) -> Result<Vec<Root>, Failure> {
    let lock = Lock::read(&places.libraries())?;
    // One that was installed by another program under such a name would pass for something else.
    let libraries = lock.libraries.into_iter().filter(|(name, _)| !is_reserved(name.as_str()));
    let roots = libraries.map(|(name, library)| {
        let dir = places.libraries().join(&library.directory);
        let Installed { source, revision, files, .. } = library;
        Root::installed(&name, dir, files).from_source(source.to_string(), revision)
    });
    Ok(roots.collect())
}
