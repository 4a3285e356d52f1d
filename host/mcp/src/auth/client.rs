//! The client id of this program at an issuer of tokens: from the operator's settings, the address of a
//! document, or registered with the issuer. An id is valid only at its issuer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::form_urlencoded::byte_serialize;

use super::AuthError;
use super::ask::{AuthRequester, PostedForm};
use super::documents::{IssuerDocument, read_text};
use super::reach::parse_target;

/// How a client authenticates to the issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ProofMethod {
    /// Not at all: the token depends on the person's consent alone.
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

/// This program's client id at an issuer, with how it authenticates.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IssuerClient {
    pub(super) id: String,
    /// The secret of a registered client. A secret from the operator's settings stays in the secret store.
    pub(super) secret: Option<String>,
    pub(super) method: ProofMethod,
}

impl IssuerClient {
    /// Adds the client's secret to a request, in the place that the issuer requires.
    pub(super) fn add_proof(
        &self,
        secret: Option<&str>,
        pairs: &mut Vec<(&'static str, String)>,
    ) -> Result<Option<HeaderValue>, AuthError> {
        let secret = || secret.ok_or_else(|| AuthError::new("the client's secret is not there"));
        match self.method {
            ProofMethod::None => pairs.push(("client_id", self.id.clone())),
            ProofMethod::Post => {
                pairs.push(("client_id", self.id.clone()));
                pairs.push(("client_secret", secret()?.to_owned()));
            }
            ProofMethod::Basic => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let both = format!("{}:{}", encoded(&self.id), encoded(secret()?));
                let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(both)));
                return value.map(Some).map_err(|_| AuthError::new("the client's secret is none"));
            }
        }
        Ok(None)
    }
}

/// The secret of a client: the operator's, if it is bound to this endpoint, or that of a registered client.
pub(super) fn secret_of(
    asking: &AuthRequester<'_>,
    client: &IssuerClient,
    endpoint: &str,
) -> Result<Option<String>, AuthError> {
    let name = match (&client.secret, &asking.server.login.client_secret) {
        (Some(_), _) | (None, None) => return Ok(client.secret.clone()),
        (None, Some(name)) => name,
    };
    // INV-335: a secret is sent only to the host that it is bound to, whatever host a document names.
    let value = asking.spec.secrets.value_for(name, &parse_target(endpoint)?);
    let value = value.ok_or_else(|| {
        AuthError(format!("the secret `{name}` is not there, or not bound to `{endpoint}`"))
    })?;
    Ok(Some(value.expose_secret().to_owned()))
}

/// Returns the client for requests of tokens: from the settings, or registered now.
pub(super) async fn obtain_client(
    asking: &AuthRequester<'_>,
    issuer: &IssuerDocument,
    redirect: &str,
) -> Result<IssuerClient, AuthError> {
    let login = &asking.server.login;
    if let Some(id) = &login.client_id {
        let method = choose_method(issuer, login.client_secret.is_some(), None)?;
        return Ok(IssuerClient { id: id.clone(), secret: None, method });
    }
    if let Some(url) = login.client_metadata_url.as_ref().filter(|_| issuer.documents) {
        return Ok(IssuerClient { id: url.clone(), secret: None, method: ProofMethod::None });
    }
    let Some(endpoint) = &issuer.registration else {
        return Err(AuthError::new(
            "its issuer registers nobody by itself: register belljar there, and write `client_id` \
             under `oauth` of the server",
        ));
    };
    register_client(asking, issuer, endpoint, redirect).await
}

/// Registers this program with the issuer, and returns the client id that it assigns.
async fn register_client(
    asking: &AuthRequester<'_>,
    issuer: &IssuerDocument,
    endpoint: &str,
    redirect: &str,
) -> Result<IssuerClient, AuthError> {
    let wanted = match choose_method(issuer, false, None) {
        Ok(ProofMethod::None) => "none",
        Ok(ProofMethod::Basic | ProofMethod::Post) | Err(_) => {
            match choose_method(issuer, true, None)? {
                ProofMethod::None => "none",
                ProofMethod::Basic => "client_secret_basic",
                ProofMethod::Post => "client_secret_post",
            }
        }
    };
    let body = json!({
        "client_name": "belljar",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        "application_type": "native",
    });
    let posted =
        PostedForm { kind: "application/json", body: body.to_string(), authorization: None };
    let (status, answer) = asking.post_form(endpoint, posted).await?;
    let id = read_text(&answer, "client_id").filter(|_| status.is_success());
    let id = id.ok_or_else(|| AuthError(format!("its issuer registers no client: {status}")))?;
    let secret = read_text(&answer, "client_secret");
    let said = read_text(&answer, "token_endpoint_auth_method");
    let method = choose_method(issuer, secret.is_some(), said.as_deref())?;
    Ok(IssuerClient { id, secret: secret.filter(|_| method != ProofMethod::None), method })
}

/// Chooses a method of authentication that both the issuer and this client support.
fn choose_method(
    issuer: &IssuerDocument,
    has_secret: bool,
    said: Option<&str>,
) -> Result<ProofMethod, AuthError> {
    // The method of an issuer that lists none.
    let usual = vec!["client_secret_basic".to_owned()];
    let taken = match (said, &issuer.methods) {
        (Some(said), _) => vec![said.to_owned()],
        (None, Some(methods)) => methods.clone(),
        (None, None) if has_secret => usual,
        (None, None) => return Ok(ProofMethod::None),
    };
    let ways = [
        ("client_secret_basic", ProofMethod::Basic, has_secret),
        ("client_secret_post", ProofMethod::Post, has_secret),
        ("none", ProofMethod::None, true),
    ];
    let way = ways.into_iter().find(|(name, _, can)| *can && taken.iter().any(|way| way == name));
    way.map(|(_, method, _)| method)
        .ok_or_else(|| AuthError::new("its issuer wants a proof that belljar cannot give"))
}

impl std::fmt::Debug for IssuerClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuerClient")
            .field("id", &self.id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(methods: Option<&[&str]>) -> IssuerDocument {
        let methods = methods.map(|all| all.iter().map(|&way| way.to_owned()).collect());
        IssuerDocument { methods, ..IssuerDocument::default() }
    }

    #[test]
    fn a_client_proves_itself_as_the_issuer_wants_it() {
        let of = |methods, secret, said| choose_method(&issuer(methods), secret, said).ok();
        assert_eq!(of(Some(&["client_secret_post"]), true, None), Some(ProofMethod::Post));
        assert_eq!(
            of(Some(&["none", "client_secret_basic"]), true, None),
            Some(ProofMethod::Basic)
        );
        assert_eq!(of(Some(&["none"]), true, None), Some(ProofMethod::None));
        assert_eq!(of(None, true, None), Some(ProofMethod::Basic));
        assert_eq!(of(None, false, None), Some(ProofMethod::None));
        assert_eq!(of(Some(&["private_key_jwt"]), true, None), None);
        assert_eq!(of(Some(&["none"]), true, Some("client_secret_post")), Some(ProofMethod::Post));

        let client = |method| IssuerClient { id: "a b".to_owned(), secret: None, method };
        let mut pairs = Vec::new();
        let header =
            client(ProofMethod::Basic).add_proof(Some("s:/"), &mut pairs).unwrap().unwrap();
        assert_eq!(header.to_str().unwrap(), format!("Basic {}", STANDARD.encode("a+b:s%3A%2F")));
        assert!(pairs.is_empty());
        client(ProofMethod::Post).add_proof(Some("secret"), &mut pairs).unwrap();
        assert_eq!(pairs[1], ("client_secret", "secret".to_owned()));
        assert!(client(ProofMethod::Post).add_proof(None, &mut pairs).is_err());
        let shown = IssuerClient { secret: Some("canary".to_owned()), ..client(ProofMethod::Post) };
        assert!(!format!("{shown:?}").contains("canary"));
    }
}
