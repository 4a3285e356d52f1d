//! The issuers whose tokens a server accepts, by the operator's present settings.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_definition::IssuerSetting;
use belljar_mcp::signing_keys;
use belljar_server::Issuers;
use belljar_session::Look;
use serde_json::Value;

use super::own::Own;

/// The issuers of the operator's own settings.
pub(super) struct Trusted(pub(super) Arc<Own>);

#[async_trait]
impl Issuers for Trusted {
    async fn in_force(&self) -> Result<Vec<IssuerSetting>, String> {
        let own = Arc::clone(&self.0);
        #[expect(
            clippy::disallowed_methods,
            reason = "settings that the operator wrote, behind one lock; tools that are read meanwhile \
                      need places of the operator's"
        )]
        let looked = tokio::task::spawn_blocking(move || own.look(Look::IfChanged)).await;
        let looked = looked.map_err(|error| format!("they could not be read: {error}"))?;
        // If the settings are invalid, the earlier ones stay in force, as everywhere.
        Ok(looked.now.settings.server.issuers.clone())
    }

    async fn keys(&self, issuer: &str) -> Result<Value, String> {
        let now = self.0.now();
        signing_keys(&now.host.sandbox, issuer).await.map_err(|why| why.to_string())
    }
}
