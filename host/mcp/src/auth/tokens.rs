//! A person's token for a server, as stored in the home. INV-336: a token is bound to the server, to the
//! server's resource name and to the issuer, and used nowhere else. If the operator names an issuer or a
//! client, tokens of others are refused too.

use belljar_policy::{HostRule, SecretName};
use belljar_sandbox::http::Secret;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::AuthError;
use super::client::IssuerClient;
use crate::server::Server;

const VERSION: u32 = 1;

/// A token for a server, with what is needed to renew it. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTokens {
    version: u32,
    /// The address of the server.
    pub(super) url: String,
    /// The server's own resource name, for example `https://mcp.example.com/`.
    pub(super) resource: String,
    pub(super) issuer: String,
    /// The address at which the token is renewed.
    pub(super) endpoint: String,
    pub(super) client: IssuerClient,
    /// The scopes that were requested.
    pub(super) scopes: Vec<String>,
    pub(super) access: String,
    pub(super) refresh: Option<String>,
}

/// Stores people's tokens. Logins and logouts change the stored tokens from outside.
pub trait KeepTokens: Send + Sync + std::fmt::Debug {
    /// The stored tokens for a server; `None` if no person is logged in.
    ///
    /// # Errors
    /// When the tokens cannot be read, or are for another server.
    fn stored_tokens(&self, server: &Server) -> Result<Option<ServerTokens>, String>;

    /// Replaces the stored tokens. The error is for the log.
    ///
    /// # Errors
    /// When they cannot be written.
    fn store_tokens(&self, server: &str, tokens: &ServerTokens) -> Result<(), String>;

    /// Replaces the tokens `before` by a renewal, if they are still stored; returns whether they were. No
    /// login or logout can happen between the check and the write.
    ///
    /// # Errors
    /// When the tokens cannot be read or written.
    fn replace_tokens(
        &self,
        server: &Server,
        before: &ServerTokens,
        next: &ServerTokens,
    ) -> Result<bool, String>;
}

/// What tokens are bound to: server, issuer and client.
pub(super) struct TokenBinding {
    pub(super) url: String,
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) endpoint: String,
    pub(super) client: IssuerClient,
    pub(super) scopes: Vec<String>,
}

impl ServerTokens {
    /// The most bytes of a token file.
    pub const MAX_BYTES: u64 = 128 << 10;

    /// The directory of the token files, below the directory of accepted tools.
    pub const DIRECTORY: &'static str = "tokens";

    /// The name of the token file for the server named `server`.
    pub fn file_name(server: &str) -> String {
        format!("{server}.json")
    }

    /// A token together with what it is bound to.
    pub(super) fn from_binding(
        bound: TokenBinding,
        access: String,
        refresh: Option<String>,
    ) -> Self {
        let TokenBinding { url, resource, issuer, endpoint, client, scopes } = bound;
        let version = VERSION;
        Self { version, url, resource, issuer, endpoint, client, scopes, access, refresh }
    }

    /// The issuer of the token.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The requested scopes.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Parses a token file of this server.
    ///
    /// # Errors
    /// When the text is no token, another server's token, or a token that the operator's settings rule out.
    pub fn parse(server: &Server, text: &[u8]) -> Result<Self, AuthError> {
        // The parser's own message is left out, because it could quote a part of a token.
        let tokens = serde_json::from_slice::<Self>(text);
        let tokens = tokens.map_err(|_| AuthError::new("it is not as belljar writes it"))?;
        if tokens.version != VERSION {
            return Err(AuthError::new("it is of another version"));
        }
        let url = server.url.to_string();
        if tokens.url != url {
            return Err(AuthError::new("the token is for another address"));
        }
        let login = &server.login;
        if login.is_service {
            return Err(AuthError::new("the token is a person's, and `grant` asks none"));
        }
        if login.issuer.as_ref().is_some_and(|issuer| *issuer != tokens.issuer) {
            return Err(AuthError::new("the token is of another issuer than `issuer`"));
        }
        if login.client_id.as_ref().is_some_and(|id| *id != tokens.client.id) {
            return Err(AuthError::new("the token is of another client than `client_id`"));
        }
        Ok(tokens)
    }

    /// The text to write to the file.
    ///
    /// # Errors
    /// Never for a valid token.
    pub fn to_text(&self) -> Result<String, AuthError> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|_| AuthError::new("it cannot be written"))
    }

    /// The token as a secret that the gate adds to requests to this host, and redacts from every reply.
    pub(crate) fn gate_secret(
        &self,
        server: &str,
        host: &HostRule,
    ) -> Result<(SecretName, Secret), AuthError> {
        let name = SecretName::new(&format!("mcp-{server}"));
        let name = name.map_err(|error| AuthError(error.to_string()))?;
        let value = SecretString::from(self.access.clone());
        let secret = Secret::new(&value, vec![host.clone()], "authorization", "Bearer ");
        let secret = secret.map_err(|error| AuthError(format!("the token is none: {error}")))?;
        Ok((name, secret))
    }
}

impl std::fmt::Debug for ServerTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTokens")
            .field("url", &self.url)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::auth::client::ProofMethod;
    use std::collections::BTreeSet;

    /// The server to which the token of [`tokens`] belongs.
    pub(crate) fn server() -> Server {
        at("https://m.test/mcp")
    }

    fn at(url: &str) -> Server {
        let host = "https://m.test".parse().unwrap();
        Server::new("s", url, host, BTreeSet::new(), None).unwrap()
    }

    /// Tokens for tests.
    pub(crate) fn tokens(access: &str) -> ServerTokens {
        let client = IssuerClient { id: "c".to_owned(), secret: None, method: ProofMethod::None };
        let bound = TokenBinding {
            url: "https://m.test/mcp".to_owned(),
            resource: "https://m.test/mcp".to_owned(),
            issuer: "https://auth.test".to_owned(),
            endpoint: "https://auth.test/token".to_owned(),
            client,
            scopes: vec!["a".to_owned()],
        };
        ServerTokens::from_binding(bound, access.to_owned(), Some("canary-refresh".to_owned()))
    }

    #[test]
    fn a_token_is_read_for_its_own_server_alone_and_never_shown() {
        let own = tokens("canary-access");
        let text = own.to_text().unwrap();
        assert_eq!(ServerTokens::parse(&server(), text.as_bytes()), Ok(own.clone()));
        for (url, text) in [
            ("https://m.test/other", text.clone()),
            ("https://m.test/mcp", text.replace("\"version\": 1", "\"version\": 2")),
            ("https://m.test/mcp", text.replace("\"url\"", "\"u\"")),
            ("https://m.test/mcp", text.get(..60).unwrap_or_default().to_owned()),
        ] {
            let refused = ServerTokens::parse(&at(url), text.as_bytes()).unwrap_err();
            assert!(!refused.to_string().contains("canary"), "{refused}");
        }
        let host = "https://m.test".parse().unwrap();
        let shown = format!("{own:?} {:?}", own.gate_secret("s", &host).unwrap());
        assert!(!shown.contains("canary"), "{shown}");
        assert!(tokens("short").gate_secret("s", &host).is_err());
        assert!(tokens("with a\r\nline-end").gate_secret("s", &host).is_err());
    }

    #[test]
    fn a_token_of_another_issuer_or_client_than_the_operator_names_is_not_taken() {
        let text = tokens("canary-access").to_text().unwrap();
        let read = |issuer: Option<&str>, client: Option<&str>, is_service: bool| {
            let mut server = server();
            server.login.issuer = issuer.map(str::to_owned);
            server.login.client_id = client.map(str::to_owned);
            server.login.is_service = is_service;
            ServerTokens::parse(&server, text.as_bytes())
        };
        let (issuer, client) = (Some("https://auth.test"), Some("c"));
        assert!(read(issuer, client, false).is_ok());
        for (refused, why) in [
            (read(Some("https://mine.test"), client, false), "another issuer"),
            (read(Some("https://auth.test/"), None, false), "another issuer"),
            (read(issuer, Some("d"), false), "another client"),
            (read(issuer, client, true), "`grant`"),
        ] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(why) && !refused.contains("canary"), "{refused}");
        }
    }
}
