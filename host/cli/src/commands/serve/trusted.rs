//! The issuers whose tokens a server accepts, from the operator's settings in force.

use std::sync::Arc;

use async_trait::async_trait;
use belljar_definition::IssuerSetting;
use belljar_mcp::signing_keys;
use belljar_server::IssuerSource;
use belljar_session::LookDepth;
use serde_json::Value;

use super::own::OwnSettings;

/// Reads the issuers from the operator's settings.
pub(super) struct TrustedIssuers(pub(super) Arc<OwnSettings>);

#[async_trait]
impl IssuerSource for TrustedIssuers {
    async fn in_force(&self) -> Result<Vec<IssuerSetting>, String> {
        let own = Arc::clone(&self.0);
        #[expect(
            clippy::disallowed_methods,
            reason = "settings that the operator wrote, behind one lock; tools that are read meanwhile \
                      need places of the operator's"
        )]
        let looked =
            tokio::task::spawn_blocking(move || own.look_at_files(LookDepth::IfChanged)).await;
        let looked = looked.map_err(|error| format!("they could not be read: {error}"))?;
        // If the present settings are invalid, the earlier ones stay in force, also for issuers.
        Ok(looked.now.settings.server.issuers.clone())
    }

    async fn issuer_keys(&self, issuer: &str) -> Result<Value, String> {
        let now = self.0.current_version();
        signing_keys(&now.host.sandbox, issuer).await.map_err(|why| why.to_string())
    }
}
