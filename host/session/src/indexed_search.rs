//! The search of agents, skills and tools in the store's text index: made when it is first needed, and anew when
//! the catalogue has changed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use belljar_agent::{CatalogueSearch, SearchCatalogue, SearchEntry};
use belljar_store::{IndexEntry, PreparedEntries, TextIndex};
use belljar_work::WorkKind;
use tokio::sync::Mutex;

/// Splitting the texts of a catalogue into words. INV-673: at most 20,000 entries of some 8 KiB each.
const INDEXING: WorkKind =
    WorkKind { name: "indexing agents, skills and tools", time: Duration::from_secs(60) };

/// The index of one host's catalogue. Each tenant's host has one of its own.
#[derive(Debug, Default)]
pub struct IndexedSearch(Mutex<Option<BuiltIndex>>);

/// An index, and the digest of its catalogue.
#[derive(Debug)]
struct BuiltIndex {
    digest: String,
    index: TextIndex,
}

impl IndexedSearch {
    /// The index of this catalogue. Whoever comes first makes it; others wait.
    async fn get_or_build(
        &self,
        catalogue: &Arc<SearchCatalogue>,
        owner: &str,
    ) -> Result<TextIndex, String> {
        let mut built = self.0.lock().await;
        if let Some(known) = built.as_ref().filter(|it| it.digest == catalogue.digest()) {
            return Ok(known.index.clone());
        }
        let entries = Arc::clone(catalogue);
        let prepared = belljar_work::run_job(&INDEXING, owner, move |stop| {
            PreparedEntries::prepare(entries.entries().iter().map(to_index_entry), || {
                stop.is_raised()
            })
        });
        let prepared = prepared.await.map_err(|error| error.to_string())?;
        let prepared = prepared.ok_or_else(|| format!("{} took too long", INDEXING.name))?;
        let index = TextIndex::build(prepared).await.map_err(|error| error.to_string())?;
        let digest = catalogue.digest().to_owned();
        *built = Some(BuiltIndex { digest, index: index.clone() });
        Ok(index)
    }
}

#[async_trait]
impl CatalogueSearch for IndexedSearch {
    async fn find_entries(
        &self,
        catalogue: &Arc<SearchCatalogue>,
        owner: &str,
        words: &str,
        permitted: &[usize],
        limit: usize,
    ) -> Result<Vec<usize>, String> {
        let index = self.get_or_build(catalogue, owner).await?;
        index.find_entries(words, permitted, limit).await.map_err(|error| error.to_string())
    }
}

fn to_index_entry(SearchEntry { name, about, more, .. }: &SearchEntry) -> IndexEntry {
    IndexEntry { name: name.clone(), about: about.clone(), more: more.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_agent::EntryKind;

    fn catalogue(entries: &[(&str, &str)]) -> Arc<SearchCatalogue> {
        let entry = |(name, about): &(&str, &str)| SearchEntry {
            kind: EntryKind::Agent,
            name: (*name).to_owned(),
            about: (*about).to_owned(),
            more: String::new(),
        };
        Arc::new(SearchCatalogue::from_entries(entries.iter().map(entry)))
    }

    async fn found(search: &IndexedSearch, all: &Arc<SearchCatalogue>, words: &str) -> Vec<String> {
        let permitted: Vec<usize> = (0..all.entries().len()).collect();
        let found = search.find_entries(all, "t/index", words, &permitted, 3).await.unwrap();
        found.into_iter().map(|place| all.entries()[place].name.clone()).collect()
    }

    #[tokio::test]
    async fn a_changed_catalogue_is_indexed_anew_and_an_equal_one_is_not() {
        let search = IndexedSearch::default();
        let first = catalogue(&[("scout", "Finds files."), ("baker", "Bakes bread.")]);
        assert_eq!(found(&search, &first, "bake a bread").await, ["baker"]);
        let equal = catalogue(&[("scout", "Finds files."), ("baker", "Bakes bread.")]);
        assert_eq!(found(&search, &equal, "bread").await, ["baker"]);
        let later = catalogue(&[("scout", "Finds bread."), ("diver", "Dives.")]);
        assert_eq!(found(&search, &later, "bread").await, ["scout"]);
    }

    #[tokio::test]
    async fn a_tenant_finds_nothing_of_another_even_in_a_shared_search() {
        let search = IndexedSearch::default();
        let ours = catalogue(&[("scout", "Finds the salary of a colleague.")]);
        let theirs = catalogue(&[("clerk", "Knows the secret project Heron.")]);
        assert_eq!(found(&search, &theirs, "project Heron").await, ["clerk"]);
        assert!(found(&search, &ours, "project Heron").await.is_empty());
        assert!(found(&search, &ours, "clerk").await.is_empty());
        // The neighbour goes on as before.
        assert_eq!(found(&search, &theirs, "project Heron").await, ["clerk"]);
    }
}
