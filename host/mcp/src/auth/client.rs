//! The client id of this program at an issuer: the operator's setting, a document's address, or a registered
//! id. An id is valid at its issuer only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::form_urlencoded::byte_serialize;

use super::AuthError;
use super::ask::{Asking, Posted};
use super::documents::{Issuer, word};
use super::reach::target;

/// The way in which a client authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    /// Without a proof: a token is bound to the person's consent.
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

/// A name at an issuer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    pub(super) id: String,
    /// The secret of a registered client; the operator's own secret stays in the operator's store.
    pub(super) secret: Option<String>,
    pub(super) method: Method,
}

impl Client {
    /// Adds the client's secret in the place that the issuer wants.
    pub(super) fn prove(
        &self,
        secret: Option<&str>,
        pairs: &mut Vec<(&'static str, String)>,
    ) -> Result<Option<HeaderValue>, AuthError> {
        let secret = || secret.ok_or_else(|| AuthError::new("the client's secret is not there"));
        match self.method {
            Method::None => pairs.push(("client_id", self.id.clone())),
            Method::Post => {
                pairs.push(("client_id", self.id.clone()));
                pairs.push(("client_secret", secret()?.to_owned()));
            }
            Method::Basic => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let both = format!("{}:{}", encoded(&self.id), encoded(secret()?));
                let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(both)));
                return value.map(Some).map_err(|_| AuthError::new("the client's secret is none"));
            }
        }
        Ok(None)
    }
}

/// The secret of a client: the operator's, if bound to this endpoint, or the registered one.
pub(super) fn secret_of(
    asking: &Asking<'_>,
    client: &Client,
    endpoint: &str,
) -> Result<Option<String>, AuthError> {
    let name = match (&client.secret, &asking.server.login.client_secret) {
        (Some(_), _) | (None, None) => return Ok(client.secret.clone()),
        (None, Some(name)) => name,
    };
    // INV-335: a secret is sent to its bound host alone, whatever host a document names.
    let value = asking.spec.secrets.value_for(name, &target(endpoint)?);
    let value = value.ok_or_else(|| {
        AuthError(format!("the secret `{name}` is not there, or not bound to `{endpoint}`"))
    })?;
    Ok(Some(value.expose_secret().to_owned()))
}

/// The name under which a token is asked for.
pub(super) async fn client(
    asking: &Asking<'_>,
    issuer: &Issuer,
    redirect: &str,
) -> Result<Client, AuthError> {
    let login = &asking.server.login;
    if let Some(id) = &login.client_id {
        let method = method(issuer, login.client_secret.is_some(), None)?;
        return Ok(Client { id: id.clone(), secret: None, method });
    }
    if let Some(url) = login.client_metadata_url.as_ref().filter(|_| issuer.documents) {
        return Ok(Client { id: url.clone(), secret: None, method: Method::None });
    }
    let Some(endpoint) = &issuer.registration else {
        return Err(AuthError::new(
            "its issuer registers nobody by itself: register belljar there, and write `client_id` \
             under `oauth` of the server",
        ));
    };
    register(asking, issuer, endpoint, redirect).await
}

async fn register(
    asking: &Asking<'_>,
    issuer: &Issuer,
    endpoint: &str,
    redirect: &str,
) -> Result<Client, AuthError> {
    let wanted = match method(issuer, false, None) {
        Ok(Method::None) => "none",
        Ok(Method::Basic | Method::Post) | Err(_) => match method(issuer, true, None)? {
            Method::None => "none",
            Method::Basic => "client_secret_basic",
            Method::Post => "client_secret_post",
        },
    };
    let body = json!({
        "client_name": "belljar",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        "application_type": "native",
    });
    let posted = Posted { kind: "application/json", body: body.to_string(), authorization: None };
    let (status, answer) = asking.post(endpoint, posted).await?;
    let id = word(&answer, "client_id").filter(|_| status.is_success());
    let id = id.ok_or_else(|| AuthError(format!("its issuer registers no client: {status}")))?;
    let secret = word(&answer, "client_secret");
    let said = word(&answer, "token_endpoint_auth_method");
    let method = method(issuer, secret.is_some(), said.as_deref())?;
    Ok(Client { id, secret: secret.filter(|_| method != Method::None), method })
}

/// A method that both the issuer and this client support.
fn method(issuer: &Issuer, has_secret: bool, said: Option<&str>) -> Result<Method, AuthError> {
    // The default for an issuer that lists no methods.
    let usual = vec!["client_secret_basic".to_owned()];
    let taken = match (said, &issuer.methods) {
        (Some(said), _) => vec![said.to_owned()],
        (None, Some(methods)) => methods.clone(),
        (None, None) if has_secret => usual,
        (None, None) => return Ok(Method::None),
    };
    let ways = [
        ("client_secret_basic", Method::Basic, has_secret),
        ("client_secret_post", Method::Post, has_secret),
        ("none", Method::None, true),
    ];
    let way = ways.into_iter().find(|(name, _, can)| *can && taken.iter().any(|way| way == name));
    way.map(|(_, method, _)| method)
        .ok_or_else(|| AuthError::new("its issuer wants a proof that belljar cannot give"))
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(methods: Option<&[&str]>) -> Issuer {
        let methods = methods.map(|all| all.iter().map(|&way| way.to_owned()).collect());
        Issuer { methods, ..Issuer::default() }
    }

    #[test]
    fn a_client_proves_itself_as_the_issuer_wants_it() {
        let of = |methods, secret, said| method(&issuer(methods), secret, said).ok();
        assert_eq!(of(Some(&["client_secret_post"]), true, None), Some(Method::Post));
        assert_eq!(of(Some(&["none", "client_secret_basic"]), true, None), Some(Method::Basic));
        assert_eq!(of(Some(&["none"]), true, None), Some(Method::None));
        assert_eq!(of(None, true, None), Some(Method::Basic));
        assert_eq!(of(None, false, None), Some(Method::None));
        assert_eq!(of(Some(&["private_key_jwt"]), true, None), None);
        assert_eq!(of(Some(&["none"]), true, Some("client_secret_post")), Some(Method::Post));

        let client = |method| Client { id: "a b".to_owned(), secret: None, method };
        let mut pairs = Vec::new();
        let header = client(Method::Basic).prove(Some("s:/"), &mut pairs).unwrap().unwrap();
        assert_eq!(header.to_str().unwrap(), format!("Basic {}", STANDARD.encode("a+b:s%3A%2F")));
        assert!(pairs.is_empty());
        client(Method::Post).prove(Some("secret"), &mut pairs).unwrap();
        assert_eq!(pairs[1], ("client_secret", "secret".to_owned()));
        assert!(client(Method::Post).prove(None, &mut pairs).is_err());
        let shown = Client { secret: Some("canary".to_owned()), ..client(Method::Post) };
        assert!(!format!("{shown:?}").contains("canary"));
    }
}
