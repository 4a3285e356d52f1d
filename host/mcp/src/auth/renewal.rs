//! The token that a server is asked with in this process: the one of a person, renewed where its issuer
//! does that, or one that a service asks for itself.

use std::sync::{Arc, Mutex, PoisonError};

use super::AuthError;
use super::ask::Asking;
use super::client::client;
use super::documents::{issuer, resource};
use super::login::{OFFLINE, scopes};
use super::token::token;
use super::tokens::{Bound, KeepTokens, Tokens};
use crate::challenge::Challenge;
use crate::server::Server;

/// The token of all agents of this process. None of them can read it.
#[derive(Debug, Default)]
pub(crate) struct Held {
    tokens: Mutex<Option<Arc<Tokens>>>,
    /// One at a time asks for the next: an issuer may take a renewal once alone.
    asking: tokio::sync::Mutex<()>,
    keep: Option<Arc<dyn KeepTokens>>,
}

impl Held {
    /// This token, kept so when it is another.
    pub(crate) fn of(tokens: Option<Tokens>, keep: Option<Arc<dyn KeepTokens>>) -> Self {
        Self { tokens: Mutex::new(tokens.map(Arc::new)), keep, ..Self::default() }
    }

    /// The token of now.
    pub(crate) fn now(&self) -> Option<Arc<Tokens>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, server: &str, tokens: Tokens, is_kept: bool) {
        if let Some(keep) = self.keep.as_ref().filter(|_| is_kept)
            && let Err(why) = keep.keep(server, &tokens)
        {
            tracing::warn!(server, %why, "a token that was renewed is not kept");
        }
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(tokens));
    }
}

/// Gets another token than the one that was refused.
///
/// # Errors
///
/// When a person has to log in, or the issuer gives out nothing.
pub(crate) async fn renew(
    asking: &Asking<'_>,
    used: Option<&Arc<Tokens>>,
    challenge: &Challenge,
) -> Result<(), AuthError> {
    let server = asking.server;
    let _one = server.held.asking.lock().await;
    let now = server.held.now();
    let is_same = match (&now, used) {
        (Some(now), Some(used)) => Arc::ptr_eq(now, used),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    if !is_same {
        // Another call has got one meanwhile.
        return Ok(());
    }
    if server.login.is_service {
        let tokens = of_a_service(asking, challenge, now.as_deref()).await?;
        server.held.set(server.name(), tokens, false);
        return Ok(());
    }
    match now.filter(|tokens| tokens.refresh.is_some() && !challenge.insufficient) {
        Some(tokens) => {
            let tokens = renewed(asking, &tokens).await?;
            server.held.set(server.name(), tokens, true);
            Ok(())
        }
        None => Err(needs_a_person(server, challenge)),
    }
}

/// The command with which a person logs in. A right that the server wants is only told.
fn needs_a_person(server: &Server, challenge: &Challenge) -> AuthError {
    let name = server.name();
    match challenge.scope.as_ref().filter(|_| challenge.insufficient) {
        Some(scope) => AuthError(format!(
            "its token has too few rights: `belljar mcp login {name} --scope '{scope}'` asks for more"
        )),
        None => AuthError(format!("somebody has to log in: `belljar mcp login {name}`")),
    }
}

async fn of_a_service(
    asking: &Asking<'_>,
    challenge: &Challenge,
    before: Option<&Tokens>,
) -> Result<Tokens, AuthError> {
    let server = asking.server;
    let resource = resource(asking, challenge).await?;
    let issuer = issuer(asking, &resource.issuer).await?;
    let client = client(asking, &issuer, "").await?;
    let before = before.filter(|tokens| tokens.issuer == issuer.issuer);
    let mut scopes = scopes(&server.login.scopes, challenge, &resource, &issuer, before, &[]);
    // It asks again by itself, so there is nothing to renew.
    scopes.retain(|scope| scope != OFFLINE);
    let mut pairs = vec![
        ("grant_type", "client_credentials".to_owned()),
        ("resource", resource.resource.clone()),
    ];
    if !scopes.is_empty() {
        pairs.push(("scope", scopes.join(" ")));
    }
    let given = token(asking, &issuer.token, &client, pairs).await?;
    let bound = Bound {
        url: server.url.to_string(),
        resource: resource.resource,
        issuer: issuer.issuer,
        endpoint: issuer.token,
        client,
        scopes,
    };
    let tokens = Tokens::of(bound, given.access, None);
    tokens.secret(server.name(), &server.host)?;
    Ok(tokens)
}

async fn renewed(asking: &Asking<'_>, tokens: &Tokens) -> Result<Tokens, AuthError> {
    let refresh = tokens.refresh.clone().unwrap_or_default();
    let pairs = vec![
        ("grant_type", "refresh_token".to_owned()),
        ("refresh_token", refresh),
        ("resource", tokens.resource.clone()),
    ];
    let given = token(asking, &tokens.endpoint, &tokens.client, pairs).await;
    let given = given.map_err(|why| {
        let name = asking.server.name();
        AuthError(format!("{why}; `belljar mcp login {name}` asks a person again"))
    })?;
    let refresh = given.refresh.or_else(|| tokens.refresh.clone());
    let mut next = tokens.clone();
    (next.access, next.refresh) = (given.access, refresh);
    next.secret(asking.server.name(), &asking.server.host)?;
    Ok(next)
}
