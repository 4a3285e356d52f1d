//! The documents in which an MCP server names its issuer of tokens, and in which the issuer names its
//! endpoints. INV-333: a document is accepted only if it is about this very server, or names the issuer that
//! it came from.

use belljar_policy::{RequestTarget, ShownText};
use serde_json::Value;
use url::Url;

use super::AuthError;
use super::ask::AuthRequester;
use super::reach::{host_scope, parse_target};
use crate::challenge::{TokenChallenge, is_scope};
use crate::limits::{MAX_SHOWN, MAX_WORD, MAX_WORDS};
use crate::server::Server;

const OF_RESOURCES: &str = "/.well-known/oauth-protected-resource";
const OF_ISSUERS: &str = "/.well-known/oauth-authorization-server";
const OF_OPENID: &str = "/.well-known/openid-configuration";

/// A server's document about its tokens (protected resource metadata).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceDocument {
    /// The name of the server, which every request for a token repeats.
    pub(super) resource: String,
    pub(super) issuer: String,
    /// The scopes that the server knows.
    pub(super) scopes: Vec<String>,
}

/// An issuer's document about itself (authorization server metadata).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct IssuerDocument {
    pub(super) issuer: String,
    /// The address of the page on which a person consents.
    pub(super) authorization: Option<String>,
    pub(super) token: String,
    /// The address at which clients register.
    pub(super) registration: Option<String>,
    /// The methods of authentication for clients; `None` if the document does not list them.
    pub(super) methods: Option<Vec<String>>,
    pub(super) scopes: Vec<String>,
    /// True if the issuer accepts the address of a document as client id.
    pub(super) documents: bool,
    /// True if the issuer names itself in every answer to an authorization request.
    pub(super) names_itself: bool,
    /// True if the issuer supports PKCE with `S256`.
    pub(super) proofs: bool,
}

impl IssuerDocument {
    /// The address at which a person consents to the login. INV-332: it must be on the issuer's own host,
    /// unless the issuer names itself in its answers, or the operator named the issuer. Otherwise a
    /// stranger's issuer could send people to an honest issuer, and receive the code.
    pub(super) fn consent_address(&self, server: &Server) -> Result<&str, AuthError> {
        let Some(place) = &self.authorization else {
            return Err(AuthError::new("its issuer has nowhere for a person to say yes"));
        };
        let is_named = server.login.issuer.as_ref() == Some(&self.issuer);
        if is_named || self.names_itself || parse_target(place)? == parse_target(&self.issuer)? {
            return Ok(place);
        }
        let shown =
            (ShownText::clip_line(&self.issuer, MAX_SHOWN), ShownText::clip_line(place, MAX_SHOWN));
        Err(AuthError(format!(
            "its issuer `{}` has people say yes on another host, `{}`, and does not say whose the answer \
             is; if that is right, write the issuer as `issuer` under `oauth` of the server",
            shown.0, shown.1
        )))
    }
}

/// Fetches the server's document, from the address in its challenge or from the usual ones.
pub(super) async fn fetch_resource(
    asking: &AuthRequester<'_>,
    challenge: &TokenChallenge,
) -> Result<ResourceDocument, AuthError> {
    let server = asking.server;
    let own = server.target().ok_or_else(|| AuthError::new("its address is none"))?;
    let places = match &challenge.metadata {
        Some(url) if parse_target(url)? == own => vec![url.clone()],
        Some(url) => {
            let shown = ShownText::clip_line(url, MAX_SHOWN);
            return Err(AuthError(format!("it says who it is at `{shown}`, on another host")));
        }
        None => well_known_urls(&own, server.url.path(), OF_RESOURCES),
    };
    for place in places {
        if let Some(document) = asking.fetch_document(&place).await? {
            return parse_resource(server, &document);
        }
    }
    Err(AuthError::new("it does not say who gives out tokens for it"))
}

/// Fetches the issuer's document, and checks its endpoints.
pub(super) async fn fetch_issuer(
    asking: &AuthRequester<'_>,
    issuer: &str,
) -> Result<IssuerDocument, AuthError> {
    parse_issuer(asking.server, issuer, &issuers_own(asking, issuer).await?)
}

/// Fetches the issuer's document from the first of the usual addresses that has it, and checks the issuer's
/// name.
pub(super) async fn issuers_own(
    asking: &AuthRequester<'_>,
    issuer: &str,
) -> Result<Value, AuthError> {
    let at = parse_target(issuer)?;
    let path = Url::parse(issuer).map(|url| url.path().to_owned()).unwrap_or_default();
    let path = path.trim_end_matches('/');
    let mut places = vec![format!("{at}{OF_ISSUERS}{path}"), format!("{at}{OF_OPENID}{path}")];
    if !path.is_empty() {
        places.push(format!("{at}{path}{OF_OPENID}"));
    }
    for place in places {
        if let Some(document) = asking.fetch_document(&place).await? {
            check_issuer_name(issuer, &document)?;
            return Ok(document);
        }
    }
    let shown = ShownText::clip_line(issuer, MAX_SHOWN);
    Err(AuthError(format!("`{shown}` does not say where it gives out tokens")))
}

/// Refuses a document that names another issuer.
fn check_issuer_name(issuer: &str, document: &Value) -> Result<(), AuthError> {
    let named = read_text(document, "issuer").unwrap_or_default();
    if named == issuer {
        return Ok(());
    }
    let shown = (ShownText::clip_line(issuer, MAX_SHOWN), ShownText::clip_line(&named, MAX_SHOWN));
    Err(AuthError(format!("`{}` says that it is `{}`", shown.0, shown.1)))
}

/// The usual addresses of a document: below the path of the server, and at the root of its host.
fn well_known_urls(own: &RequestTarget, path: &str, name: &str) -> Vec<String> {
    let path = path.trim_end_matches('/');
    let root = format!("{own}{name}");
    if path.is_empty() { vec![root] } else { vec![format!("{root}{path}"), root] }
}

/// Checks that the document is about this server, and chooses the issuer: the operator's, or the first one.
fn parse_resource(server: &Server, document: &Value) -> Result<ResourceDocument, AuthError> {
    let resource = read_text(document, "resource");
    let resource = resource.ok_or_else(|| AuthError::new("it does not say what it is"))?;
    if !covers_server(server, &resource) {
        let shown = ShownText::clip_line(&resource, MAX_SHOWN);
        return Err(AuthError(format!("it says that it is `{shown}`, which it is not")));
    }
    let issuers = read_texts(document, "authorization_servers").unwrap_or_default();
    let issuer = match &server.login.issuer {
        Some(named) => issuers.into_iter().find(|issuer| issuer == named),
        None => issuers.into_iter().next(),
    };
    let issuer = issuer.ok_or_else(|| match &server.login.issuer {
        Some(named) => AuthError(format!("it takes no tokens of `{}`", ShownText::new(named))),
        None => AuthError::new("it does not say who gives out tokens for it"),
    })?;
    let scopes = read_texts(document, "scopes_supported").unwrap_or_default();
    Ok(ResourceDocument { resource, issuer, scopes: filter_scopes(scopes) })
}

/// Returns whether the name of a resource covers a server: it is the server's address, or that of a path
/// above it on the same host. A query in the name must be the server's.
fn covers_server(server: &Server, resource: &str) -> bool {
    let (Ok(target), Some(own)) = (parse_target(resource), server.target()) else { return false };
    let Ok(url) = Url::parse(resource) else { return false };
    let (path, own_path) = (url.path().trim_end_matches('/'), server.url.path());
    let below = own_path.strip_prefix(path);
    let below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    target == own && below && url.query() == server.url.query().filter(|_| url.query().is_some())
}

/// Checks an issuer's document and each endpoint in it.
fn parse_issuer(
    server: &Server,
    issuer: &str,
    document: &Value,
) -> Result<IssuerDocument, AuthError> {
    check_issuer_name(issuer, document)?;
    // Each address is checked before a request or a person's browser is sent there.
    let endpoint = |name: &str| match read_text(document, name) {
        Some(url) => host_scope(server, &url).map(|_| Some(url)),
        None => Ok(None),
    };
    let token = endpoint("token_endpoint")?;
    let flag = |name: &str| document.get(name).and_then(Value::as_bool).unwrap_or_default();
    let proofs = read_texts(document, "code_challenge_methods_supported").unwrap_or_default();
    Ok(IssuerDocument {
        issuer: issuer.to_owned(),
        authorization: endpoint("authorization_endpoint")?,
        token: token.ok_or_else(|| AuthError::new("its issuer has nowhere to ask for a token"))?,
        registration: endpoint("registration_endpoint")?,
        methods: read_texts(document, "token_endpoint_auth_methods_supported"),
        scopes: filter_scopes(read_texts(document, "scopes_supported").unwrap_or_default()),
        documents: flag("client_id_metadata_document_supported"),
        names_itself: flag("authorization_response_iss_parameter_supported"),
        proofs: proofs.iter().any(|proof| proof == "S256"),
    })
}

pub(super) fn read_text(document: &Value, name: &str) -> Option<String> {
    let text = document.get(name)?.as_str()?;
    Some(text.to_owned()).filter(|text| !text.is_empty() && text.len() <= MAX_WORD)
}

fn read_texts(document: &Value, name: &str) -> Option<Vec<String>> {
    let list = document.get(name)?.as_array()?;
    let texts = list.iter().take(MAX_WORDS).filter_map(Value::as_str);
    Some(texts.filter(|text| text.len() <= MAX_WORD).map(str::to_owned).collect())
}

fn filter_scopes(scopes: Vec<String>) -> Vec<String> {
    scopes.into_iter().filter(|scope| is_scope(scope) && !scope.contains(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn server(url: &str) -> Server {
        let host = RequestTarget::parse(url).unwrap().to_string().parse().unwrap();
        Server::new("s", url, host, BTreeSet::new(), None).unwrap()
    }

    #[test]
    fn a_document_about_another_server_is_not_obeyed() {
        let own = server("https://m.test/a/mcp");
        for resource in
            ["https://m.test/a/mcp", "https://m.test", "https://m.test/a/", "https://m.test/a"]
        {
            assert!(covers_server(&own, resource), "{resource}");
        }
        for other in [
            "https://evil.test/a/mcp",
            "http://m.test/a/mcp",
            "https://m.test:8443/a/mcp",
            "https://m.test/a/mcpx",
            "https://m.test/a/m",
            "https://m.test/b",
            "https://m.test/a/mcp?x",
            "https://m.test/a/mcp#x",
            "https://u@m.test/a/mcp",
            "",
        ] {
            assert!(!covers_server(&own, other), "{other}");
        }
        let document = |resource: &str| json!({"resource": resource, "authorization_servers": ["https://auth.test"]});
        let found = parse_resource(&own, &document("https://m.test/a/mcp")).unwrap();
        assert_eq!(found.issuer, "https://auth.test");
        assert!(parse_resource(&own, &document("https://evil.test/a/mcp")).is_err());
        let mut pinned = server("https://m.test/a/mcp");
        pinned.login.issuer = Some("https://mine.test".to_owned());
        let refused = parse_resource(&pinned, &document("https://m.test/a/mcp"));
        assert!(refused.unwrap_err().to_string().contains("no tokens of `https://mine.test`"));
    }

    #[test]
    fn an_issuer_that_says_it_is_another_or_sends_people_elsewhere_is_not_obeyed() {
        let own = server("https://m.test/mcp");
        let good = json!({
            "issuer": "https://auth.test", "token_endpoint": "https://auth.test/token",
            "authorization_endpoint": "https://login.test/yes",
            "code_challenge_methods_supported": ["plain", "S256"],
            "scopes_supported": ["a", "b c", "d`e"],
        });
        let found = parse_issuer(&own, "https://auth.test", &good).unwrap();
        assert!(found.proofs && !found.names_itself && found.registration.is_none());
        assert_eq!(found.scopes, ["a"]);
        let with = |key: &str, value: Value| {
            let mut wrong = good.clone();
            wrong[key] = value;
            wrong
        };
        for wrong in [
            with("issuer", json!("https://evil.test")),
            with("issuer", json!("https://auth.test/")),
            with("issuer", json!(null)),
            with("token_endpoint", json!(null)),
            with("token_endpoint", json!("http://127.0.0.1:1/token")),
            with("authorization_endpoint", json!("http://localhost/yes")),
            with("authorization_endpoint", json!("javascript:alert(1)")),
            with("registration_endpoint", json!("http://auth.test/register")),
        ] {
            assert!(parse_issuer(&own, "https://auth.test", &wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_yes_is_said_on_another_host_only_where_the_answer_or_the_operator_names_the_issuer() {
        let own = server("https://m.test/mcp");
        let issuer = |place: &str, names_itself: bool| IssuerDocument {
            issuer: "https://auth.test/a".to_owned(),
            authorization: Some(place.to_owned()),
            names_itself,
            ..IssuerDocument::default()
        };
        for place in ["https://auth.test/yes", "https://AUTH.test:443/b?c=d"] {
            assert_eq!(issuer(place, false).consent_address(&own), Ok(place));
        }
        let mut named = server("https://m.test/mcp");
        named.login.issuer = Some("https://auth.test/a".to_owned());
        let mut another = server("https://m.test/mcp");
        another.login.issuer = Some("https://auth.test".to_owned());
        for place in [
            "https://bank.test/yes",
            "https://login.auth.test/yes",
            "https://auth.test:8443/yes",
            "http://auth.test/yes",
        ] {
            let refused = issuer(place, false).consent_address(&own).unwrap_err().to_string();
            assert!(refused.contains(place) && refused.contains("another host"), "{refused}");
            assert!(issuer(place, false).consent_address(&another).is_err(), "{place}");
            assert_eq!(issuer(place, false).consent_address(&named), Ok(place));
            assert_eq!(issuer(place, true).consent_address(&own), Ok(place));
        }
        assert!(IssuerDocument::default().consent_address(&named).is_err());
    }
}
