//! The interface through which a server reads the operator's settings of issuers, and fetches the
//! issuers' keys.

use async_trait::async_trait;
use belljar_definition::IssuerSetting;
use serde_json::Value;

/// The trusted issuers of a server, with their keys.
#[async_trait]
pub trait IssuerSource: Send + Sync {
    /// The issuers in the operator's settings. Called at most once in
    /// [`crate::ServerConfig::issuer_check`], however many tokens arrive.
    ///
    /// # Errors
    /// When the settings cannot be read; then no token is accepted.
    async fn in_force(&self) -> Result<Vec<IssuerSetting>, String>;

    /// Fetches the key set at an issuer's address (JWKS). The result is a stranger's text and must be
    /// checked.
    ///
    /// # Errors
    /// When the issuer cannot be asked.
    async fn issuer_keys(&self, issuer: &str) -> Result<Value, String>;
}
