//! Tokens for MCP servers: finding the issuer, requesting a token, and storing it.
//!
//! ```text
//! 401 ──> resource: the server names its issuer ──> issuer: its endpoints, each looked at
//!      ──> client: this program's name there ──> login (a person, PKCE) or token (a service)
//!      ──> ServerTokens, a file in the home ──> joined by the gate to requests to that server alone
//! ```
//! Every document on the way is a stranger's. Documents name hosts, and [`reach`] decides which hosts are
//! reached. No stranger's text is shown to a model.

mod ask;
mod client;
mod documents;
mod keys;
mod login;
mod reach;
mod renewal;
mod token;
mod tokens;

pub use keys::signing_keys;
pub use login::{LoginAsk, PendingLogin};
pub use tokens::{KeepTokens, ServerTokens};

pub(crate) use ask::AuthRequester;
pub(crate) use renewal::{SharedTokens, renew_tokens};

/// The reason why there is no token, for the operator. A stranger's text in it is escaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthError(pub(crate) String);

impl AuthError {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
