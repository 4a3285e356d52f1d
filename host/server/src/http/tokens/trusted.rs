//! The port through which a server knows issuers: the operator's settings, and the issuers themselves.

use async_trait::async_trait;
use belljar_definition::IssuerSetting;
use serde_json::Value;

/// The trusted issuers of a server, with their keys.
#[async_trait]
pub trait IssuerSource: Send + Sync {
    /// The present issuers of the operator's settings. Called at most once in
    /// [`crate::ServerConfig::issuer_check`], however many tokens arrive.
    ///
    /// # Errors
    ///
    /// When the settings cannot be read: then no token is accepted.
    async fn in_force(&self) -> Result<Vec<IssuerSetting>, String>;

    /// The set of keys at an issuer's address (JWKS). Foreign text.
    ///
    /// # Errors
    ///
    /// When the issuer cannot be asked.
    async fn issuer_keys(&self, issuer: &str) -> Result<Value, String>;
}
