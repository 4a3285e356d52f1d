//! The token for a server in this process: a person's, renewed if the issuer allows, or the service's own.
//! INV-336: the file of a person's token decides, so a logout or login by another process is not undone here.

use std::sync::{Arc, Mutex, PoisonError};

use super::AuthError;
use super::ask::AuthRequester;
use super::client::obtain_client;
use super::documents::{fetch_issuer, fetch_resource};
use super::login::{OFFLINE, choose_scopes};
use super::token::request_token;
use super::tokens::{KeepTokens, ServerTokens, TokenBinding};
use crate::challenge::TokenChallenge;
use crate::server::Server;

/// The token for one server that all agents of this process share. No agent can read it.
#[derive(Debug, Default)]
pub(crate) struct SharedTokens {
    tokens: Mutex<Option<Arc<ServerTokens>>>,
    /// The tokens in the file when this process last read it. A renewal that could not be written is only in
    /// `tokens`. Locked during a renewal, because an issuer may accept a refresh token only once.
    seen: tokio::sync::Mutex<Option<Arc<ServerTokens>>>,
    keep: Option<Arc<dyn KeepTokens>>,
}

impl SharedTokens {
    /// Creates the shared tokens from stored ones; `keep` stores renewals.
    pub(crate) fn from_stored(
        tokens: Option<ServerTokens>,
        keep: Option<Arc<dyn KeepTokens>>,
    ) -> Self {
        let tokens = tokens.map(Arc::new);
        let seen = tokio::sync::Mutex::new(tokens.clone());
        Self { tokens: Mutex::new(tokens), seen, keep }
    }

    /// The present token; `None` if there is none.
    pub(crate) fn current_tokens(&self) -> Option<Arc<ServerTokens>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_tokens(&self, tokens: Option<Arc<ServerTokens>>) {
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Returns whether a person has logged in or out since this process last read the file. If so, the tokens
    /// in the file are used.
    fn is_overtaken(
        &self,
        server: &Server,
        seen: &mut Option<Arc<ServerTokens>>,
    ) -> Result<bool, AuthError> {
        let Some(keep) = &self.keep else { return Ok(false) };
        let kept = keep.stored_tokens(server).map_err(|why| {
            AuthError(format!("{why}; log in again: `belljar mcp login {}`", server.name()))
        })?;
        if kept.as_ref() == seen.as_deref() {
            return Ok(false);
        }
        *seen = kept.map(Arc::new);
        self.set_tokens(seen.clone());
        Ok(true)
    }

    /// Writes a renewal in place of the old token. Returns false if a person has logged in or out meanwhile.
    fn keep_renewal(
        &self,
        server: &Server,
        seen: &mut Option<Arc<ServerTokens>>,
        next: &Arc<ServerTokens>,
    ) -> Result<bool, AuthError> {
        let Some(keep) = &self.keep else { return Ok(true) };
        let Some(before) = seen.as_deref() else { return Ok(false) };
        let kept = keep.replace_tokens(server, before, next).map_err(AuthError)?;
        if kept {
            *seen = Some(Arc::clone(next));
        }
        Ok(kept)
    }
}

/// Gets a new token in place of the one that the server has refused.
///
/// # Errors
/// When a person must log in, or the issuer refuses.
pub(crate) async fn renew_tokens(
    asking: &AuthRequester<'_>,
    used: Option<&Arc<ServerTokens>>,
    challenge: &TokenChallenge,
) -> Result<(), AuthError> {
    let server = asking.server;
    let held = &server.held;
    let mut seen = held.seen.lock().await;
    let now = held.current_tokens();
    let is_same = match (&now, used) {
        (Some(now), Some(used)) => Arc::ptr_eq(now, used),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    if !is_same {
        // Another call has got a new token meanwhile.
        return Ok(());
    }
    if server.login.is_service {
        let tokens = request_service_token(asking, challenge, now.as_deref()).await?;
        held.set_tokens(Some(Arc::new(tokens)));
        return Ok(());
    }
    let left = || held.current_tokens().map(drop).ok_or_else(|| needs_a_person(server, challenge));
    if held.is_overtaken(server, &mut seen)? {
        return left();
    }
    let now = now.filter(|tokens| tokens.refresh.is_some() && !challenge.insufficient);
    let Some(now) = now else { return Err(needs_a_person(server, challenge)) };
    let next = request_renewal(asking, &now).await;
    // Meanwhile a person may have logged in or out, or another process may have renewed the token.
    let overtaken = held.is_overtaken(server, &mut seen);
    if matches!(overtaken, Ok(true)) {
        return left();
    }
    let next = Arc::new(next?);
    match overtaken.and_then(|_| held.keep_renewal(server, &mut seen, &next)) {
        Ok(true) => {}
        Ok(false) => {
            held.is_overtaken(server, &mut seen)?;
            return left();
        }
        Err(why) => {
            tracing::warn!(server = server.name(), %why, "a token that was renewed is not kept");
        }
    }
    held.set_tokens(Some(next));
    Ok(())
}

/// The error with the command by which a person logs in. The scopes that the server wants are only shown: a
/// command that a person pastes contains no text of a server (INV-432).
fn needs_a_person(server: &Server, challenge: &TokenChallenge) -> AuthError {
    let name = server.name();
    match challenge.scope.as_ref().filter(|_| challenge.insufficient) {
        Some(scope) => AuthError(format!(
            "its token has too few rights: it wants `{scope}`, and `belljar mcp login {name} --scope \
             SCOPE` asks for the rights that you name"
        )),
        None => AuthError(format!("somebody has to log in: `belljar mcp login {name}`")),
    }
}

/// Requests a token for a service with the client's own secret: finds the issuer, the client and the scopes
/// first.
async fn request_service_token(
    asking: &AuthRequester<'_>,
    challenge: &TokenChallenge,
    before: Option<&ServerTokens>,
) -> Result<ServerTokens, AuthError> {
    let server = asking.server;
    let resource = fetch_resource(asking, challenge).await?;
    let issuer = fetch_issuer(asking, &resource.issuer).await?;
    let client = obtain_client(asking, &issuer, "").await?;
    let before = before.filter(|tokens| tokens.issuer == issuer.issuer);
    let mut scopes =
        choose_scopes(&server.login.scopes, challenge, &resource, &issuer, before, &[]);
    // A service can request a new token at any time, so it needs no refresh token.
    scopes.retain(|scope| scope != OFFLINE);
    let mut pairs = vec![
        ("grant_type", "client_credentials".to_owned()),
        ("resource", resource.resource.clone()),
    ];
    if !scopes.is_empty() {
        pairs.push(("scope", scopes.join(" ")));
    }
    let given = request_token(asking, &issuer.token, &client, pairs).await?;
    let bound = TokenBinding {
        url: server.url.to_string(),
        resource: resource.resource,
        issuer: issuer.issuer,
        endpoint: issuer.token,
        client,
        scopes,
    };
    let tokens = ServerTokens::from_binding(bound, given.access, None);
    tokens.gate_secret(server.name(), &server.host)?;
    Ok(tokens)
}

/// Exchanges the refresh token for a new token, which keeps the old refresh token if the issuer sends none.
async fn request_renewal(
    asking: &AuthRequester<'_>,
    tokens: &ServerTokens,
) -> Result<ServerTokens, AuthError> {
    let refresh = tokens.refresh.clone().unwrap_or_default();
    let pairs = vec![
        ("grant_type", "refresh_token".to_owned()),
        ("refresh_token", refresh),
        ("resource", tokens.resource.clone()),
    ];
    let given = request_token(asking, &tokens.endpoint, &tokens.client, pairs).await;
    let given = given.map_err(|why| {
        let name = asking.server.name();
        AuthError(format!("{why}; `belljar mcp login {name}` asks a person again"))
    })?;
    let refresh = given.refresh.or_else(|| tokens.refresh.clone());
    let mut next = tokens.clone();
    (next.access, next.refresh) = (given.access, refresh);
    next.gate_secret(asking.server.name(), &asking.server.host)?;
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::tokens::tests::{server, tokens};

    /// A token file that other processes change.
    #[derive(Debug)]
    struct File(Mutex<Option<ServerTokens>>);

    impl File {
        fn set(&self, tokens: Option<ServerTokens>) {
            *self.0.lock().unwrap() = tokens;
        }
    }

    impl KeepTokens for File {
        fn stored_tokens(&self, _: &Server) -> Result<Option<ServerTokens>, String> {
            Ok(self.0.lock().unwrap().clone())
        }

        fn store_tokens(&self, _: &str, tokens: &ServerTokens) -> Result<(), String> {
            self.set(Some(tokens.clone()));
            Ok(())
        }

        fn replace_tokens(
            &self,
            _: &Server,
            before: &ServerTokens,
            next: &ServerTokens,
        ) -> Result<bool, String> {
            let mut kept = self.0.lock().unwrap();
            let same = kept.as_ref() == Some(before);
            if same {
                *kept = Some(next.clone());
            }
            Ok(same)
        }
    }

    #[test]
    fn whoever_logs_out_or_in_has_the_last_word() {
        let (old, next, new) = (tokens("the-old-one"), tokens("its-renewal"), tokens("a-new-one"));
        let file = Arc::new(File(Mutex::new(Some(old.clone()))));
        let keep: Arc<dyn KeepTokens> = file.clone();
        let server = server().with_tokens(Some(old.clone()), Some(keep));
        let held = &server.held;
        let mut seen = held.seen.try_lock().unwrap();
        let holds =
            |tokens: Option<&ServerTokens>| assert_eq!(held.current_tokens().as_deref(), tokens);
        assert_eq!(held.is_overtaken(&server, &mut seen), Ok(false));
        // A renewal that could not be written is not replaced by the older token in the file.
        held.set_tokens(Some(Arc::new(next.clone())));
        assert_eq!(held.is_overtaken(&server, &mut seen), Ok(false));
        holds(Some(&next));
        assert_eq!(held.keep_renewal(&server, &mut seen, &Arc::new(next.clone())), Ok(true));
        assert_eq!(held.is_overtaken(&server, &mut seen), Ok(false));
        file.set(Some(new.clone()));
        assert_eq!(held.is_overtaken(&server, &mut seen), Ok(true));
        holds(Some(&new));
        file.set(None);
        // A logout between reading and writing is not undone.
        assert_eq!(held.keep_renewal(&server, &mut seen, &Arc::new(next.clone())), Ok(false));
        assert_eq!(held.is_overtaken(&server, &mut seen), Ok(true));
        holds(None);
        assert_eq!(held.keep_renewal(&server, &mut seen, &Arc::new(next)), Ok(false));
        assert_eq!(held.is_overtaken(&server, &mut seen), Ok(false));
        file.set(Some(new.clone()));
        assert_eq!(held.is_overtaken(&server, &mut seen), Ok(true));
        holds(Some(&new));
    }
}
