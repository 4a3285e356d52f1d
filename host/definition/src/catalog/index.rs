//! An index of a catalogue's names, so that looking up the names of all files takes linear time.

use std::collections::{BTreeMap, BTreeSet};

use super::{CatalogEntry, SkipReason, SkippedFile};
use crate::filed::CatalogItem;
use crate::{AgentScope, Slug};

/// The names of a catalogue's entries and of the files that it does not use.
#[derive(Debug, Clone, Default)]
pub(super) struct CatalogIndex {
    /// The entries of each name, in the catalogue's order.
    pub(super) entries: BTreeMap<Slug, Vec<usize>>,
    /// The first invalid file for each name that a path yields.
    pub(super) broken: BTreeMap<Slug, usize>,
    /// The names that the paths of unused files yield, if the file may define an agent.
    pub(super) unused: BTreeSet<Slug>,
    /// The libraries with any file here, used or not.
    pub(super) libraries: BTreeSet<String>,
}

impl CatalogIndex {
    /// The index of these entries and unused files.
    pub(super) fn from_entries<D: CatalogItem>(
        entries: &[CatalogEntry<D>],
        skipped: &[SkippedFile],
    ) -> Self {
        let mut index = Self::default();
        let scopes = entries.iter().map(|entry| &entry.id.scope);
        for scope in scopes.chain(skipped.iter().map(|skipped| &skipped.scope)) {
            if let AgentScope::Library(name) = scope
                && !index.libraries.contains(name)
            {
                index.libraries.insert(name.clone());
            }
        }
        for (place, entry) in entries.iter().enumerate() {
            index.entries.entry(entry.id.slug.clone()).or_default().push(place);
        }
        for (place, skipped) in skipped.iter().enumerate() {
            let slug = D::name_of_path(&skipped.path).and_then(|stem| Slug::from_name(&stem));
            let Some(slug) = slug else { continue };
            if matches!(skipped.reason, SkipReason::Invalid(_)) {
                index.broken.entry(slug.clone()).or_insert(place);
            }
            if !matches!(skipped.reason, SkipReason::NotAnAgent(_)) {
                index.unused.insert(slug);
            }
        }
        index
    }
}
