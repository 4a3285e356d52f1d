//! The agents that are edited through the service: rows of the store, and a library of their
//! own to everybody else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use belljar_definition::{Content, Scope, SourceFile};

use super::Inner;
use super::types::ServiceError;
use belljar_agent::Host;
use belljar_catalogue::API_LIBRARY;

impl Inner {
    /// Brings what the store holds of agents into the library of a version.
    pub(super) async fn bring_agents(&self, host: &Host) -> Result<(), ServiceError> {
        let rows = self.store.agents().await?;
        let root = PathBuf::from(API_LIBRARY);
        let source = |slug: &str, text: String| SourceFile {
            scope: Scope::Library(API_LIBRARY.to_owned()),
            root: root.clone(),
            path: root.join(Path::new(slug).with_extension("md")),
            content: Content::Bytes(text.into_bytes()),
        };
        let sources = rows.into_iter().map(|row| source(&row.slug, row.text)).collect();
        let library = Arc::clone(&host.library);
        // It reads directories. An error: the runtime ends.
        let _ = tokio::task::spawn_blocking(move || library.besides(sources)).await;
        Ok(())
    }
}
