//! The agents edited through the API, as files for a library.

use std::path::{Path, PathBuf};

use belljar_catalogue::API_LIBRARY;
use belljar_definition::{AgentScope, ScannedContent, SourceFile};
use belljar_store::{Store, StoreError};

/// A tenant's agents in the store, as files of a library: each id is `library/api/SLUG`.
pub async fn api_agents(store: &Store) -> Result<Vec<SourceFile>, StoreError> {
    let root = PathBuf::from(API_LIBRARY);
    let source = |slug: &str, text: String| SourceFile {
        scope: AgentScope::Library(API_LIBRARY.to_owned()),
        root: root.clone(),
        path: root.join(Path::new(slug).with_extension("md")),
        content: ScannedContent::Bytes(text.into_bytes()),
    };
    let rows = store.list_agents().await?;
    Ok(rows.into_iter().map(|row| source(&row.slug, row.text)).collect())
}
