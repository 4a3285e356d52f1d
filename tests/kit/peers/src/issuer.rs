//! An OAuth issuer: its documents, its yes of a person, its tokens and its keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::{HttpPeer, HttpRequest, McpPeer, Reply};

/// The beginning of every token; the end is the token's number, from 1 on.
pub const TOKEN_START: &str = "token-canary-5b1d0";

/// The code of a person's yes.
pub const AUTHORIZATION_CODE: &str = "code-canary-91aa";

/// An issuer of tokens. `None` is what an honest issuer would state.
///
/// For example, this one leads to the keys of another host:
/// `OAuthIssuer { jwks_uri: Some("https://bank.test/keys".into()), ..OAuthIssuer::default() }`.
pub struct OAuthIssuer {
    /// The server for which tokens are, in the server's own document.
    pub resource: Option<String>,
    /// The issuer's name in its document.
    pub issuer: Option<String>,
    /// The issuer's name in its answer to a person's yes.
    pub iss: Option<String>,
    /// The endpoint of tokens.
    pub token_endpoint: Option<String>,
    /// The page of a person's yes; with one, the answers do not state their issuer.
    pub authorization_endpoint: Option<String>,
    /// The address of the keys.
    pub jwks_uri: Option<String>,
    /// The document at `/keys`.
    pub keys: Value,
    /// The path of the issuer's document.
    pub document_path: &'static str,
    /// Whether every token but the last one has expired.
    pub expires_tokens: bool,
    /// How many tokens the issuer has made.
    pub token_count: Arc<AtomicUsize>,
}

impl Default for OAuthIssuer {
    fn default() -> Self {
        Self {
            resource: None,
            issuer: None,
            iss: None,
            token_endpoint: None,
            authorization_endpoint: None,
            jwks_uri: None,
            keys: json!({"keys": []}),
            document_path: "/.well-known/oauth-authorization-server",
            expires_tokens: false,
            token_count: Arc::default(),
        }
    }
}

impl OAuthIssuer {
    /// Starts the issuer by itself.
    pub fn start(self) -> HttpPeer {
        HttpPeer::start(move |request| {
            self.answer(request).unwrap_or_else(|| Reply::status("404 Not Found"))
        })
    }

    /// Has an MCP server want tokens and issue them; returns how many there are.
    pub fn guard(self, peer: &McpPeer) -> Arc<AtomicUsize> {
        let count = Arc::clone(&self.token_count);
        peer.acts(move |request, connection| {
            let reply = self.answer(request);
            reply.is_some_and(|reply| reply.write_to(connection))
        });
        count
    }

    /// The issuer's reply; `None` for a request of the server with a good token.
    fn answer(&self, request: &HttpRequest) -> Option<Reply> {
        let own = format!("http://{}", request.header("host").unwrap_or_default());
        let or_own = |stated: &Option<String>, path: &str| {
            stated.clone().unwrap_or_else(|| format!("{own}{path}"))
        };
        let path = request.path.split('?').next().unwrap_or_default();
        Some(match path {
            "/mcp" if self.accepts(request.header("authorization")) => return None,
            "/mcp" => {
                let challenge = "www-authenticate: Bearer scope=\"read\"\r\n";
                Reply::new("401 Unauthorized", challenge, "")
            }
            "/.well-known/oauth-protected-resource/mcp" => Reply::json(&json!({
                "resource": or_own(&self.resource, "/mcp"), "authorization_servers": [own],
            })),
            path if path == self.document_path => Reply::json(&json!({
                "issuer": or_own(&self.issuer, ""),
                "jwks_uri": or_own(&self.jwks_uri, "/keys"),
                "authorization_endpoint": or_own(&self.authorization_endpoint, "/yes"),
                "token_endpoint": or_own(&self.token_endpoint, "/token"),
                "registration_endpoint": format!("{own}/register"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                "authorization_response_iss_parameter_supported":
                    self.authorization_endpoint.is_none(),
            })),
            "/keys" => Reply::json(&self.keys),
            "/register" => Reply::json(&json!({"client_id": "registered"})),
            "/yes" => {
                let [back, state] = ["redirect_uri", "state"].map(|name| request.parameter(name));
                let iss = or_own(&self.iss, "");
                let location = format!("{back}?code={AUTHORIZATION_CODE}&state={state}&iss={iss}");
                Reply::redirect("302 Found", &location)
            }
            "/token" => {
                let number = self.token_count.fetch_add(1, Ordering::SeqCst) + 1;
                Reply::json(&json!({
                    "access_token": format!("{TOKEN_START}-{number}"), "token_type": "Bearer",
                    "refresh_token": format!("refresh-canary-{number}"),
                }))
            }
            _ => Reply::status("404 Not Found"),
        })
    }

    fn accepts(&self, authorization: Option<&str>) -> bool {
        let last = self.token_count.load(Ordering::SeqCst);
        let first = if self.expires_tokens { last.max(1) } else { 1 };
        let bearer = |number| format!("Bearer {TOKEN_START}-{number}");
        (first..=last).any(|number| authorization == Some(&bearer(number)))
    }
}
