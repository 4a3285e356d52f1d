//! The port to a text index. The agent crate has no index; `belljar_session` passes the store's index.

use std::sync::Arc;

use async_trait::async_trait;

use crate::finding::catalogue::SearchCatalogue;

/// A text index of agents, skills and tools.
#[async_trait]
pub trait CatalogueSearch: Send + Sync {
    /// Returns whether there is an index. Without one, an agent's context lists agents and skills up to a
    /// fixed number, and the others cannot be found.
    fn is_available(&self) -> bool {
        true
    }

    /// The positions of the permitted entries that fit the words best, the best first. `owner` is charged for
    /// making the index, for example `TENANT/index`.
    ///
    /// # Errors
    ///
    /// Why there is no answer, for the operator.
    async fn find_entries(
        &self,
        catalogue: &Arc<SearchCatalogue>,
        owner: &str,
        words: &str,
        permitted: &[usize],
        limit: usize,
    ) -> Result<Vec<usize>, String>;
}

/// The absence of a text index.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoSearch;

#[async_trait]
impl CatalogueSearch for NoSearch {
    fn is_available(&self) -> bool {
        false
    }

    async fn find_entries(
        &self,
        _catalogue: &Arc<SearchCatalogue>,
        _owner: &str,
        _words: &str,
        _permitted: &[usize],
        _limit: usize,
    ) -> Result<Vec<usize>, String> {
        Ok(Vec::new())
    }
}
