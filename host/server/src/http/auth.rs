//! Authentication: finds the tenant, the scope and the name in the audit log for a request's key, login
//! or token.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use belljar_agent::Clock;
use belljar_definition::TokenScope;
use belljar_store::{KeyScope, Registry, StoreError, StoredLogin, TENANT};
use tokio::time::Instant;

use crate::http::cookie;
use crate::http::keys::{self, PresentedKey};
use crate::http::problem::{Problem, ProblemKind};
use crate::http::tokens::{
    self, AdmittedHolder, TokenGate, TokenHolder, TokenRefusal, TokenRights,
};
use crate::http::turned_away::{ClaimedKey, ProvenCaller, RefusedCaller, TenantIdentity};
use crate::routes::RequiredScope;

/// The prefix of a key in a WebSocket's list of subprotocols, for example `bearer.bj_...`: a browser's
/// script cannot send a key in any other way.
pub(crate) const SUBPROTOCOL: &str = "bearer.";

/// The time for which a server without keys relies on its last check that there are none.
const RECHECK: Duration = Duration::from_secs(1);

/// A caller whose credential was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: Arc<str>,
    /// The id of the tenant, different for each tenant that ever had the name.
    pub(crate) tenant_id: Arc<str>,
    scope: KeyScope,
    /// The caller's name in the audit log: `key:<id>`; `token:<issuer>#<subject>`; `login:<id>` for a
    /// login by the operator's link; `local` on a server without keys.
    pub(crate) actor: Arc<str>,
    /// The id of the caller's key, to note when it was last used; `None` without a key.
    pub(crate) key: Option<Arc<str>>,
    /// The login of the caller's browser; `None` if the caller sent a key or a token.
    pub(crate) login: Option<BrowserLogin>,
    /// The holder of the issuer's token that was sent in place of a key.
    token: Option<Arc<TokenHolder>>,
    /// The moment at which the caller was accepted.
    came: Instant,
}

/// The login of a browser, made with a key or the operator's link.
#[derive(Debug, Clone)]
pub(crate) struct BrowserLogin {
    pub(crate) id: Arc<str>,
    /// The time at which the login expires, in milliseconds since 1970.
    pub(crate) expires: i64,
}

/// Authenticates callers: looks up keys and logins in the store, and passes tokens to the token gate.
pub(crate) struct Gatekeeper {
    registry: Registry,
    clock: Arc<dyn Clock>,
    /// True if callers without a key may be accepted at all: only on a loopback address, and only until
    /// the first key exists.
    open: AtomicBool,
    checked: Mutex<Option<Instant>>,
    /// True after the store has noted that keys are needed from now on, because an issuer was trusted.
    noted: AtomicBool,
    /// True after the log has noted, once, that a client's key was ignored.
    told: AtomicBool,
    /// The last check of each credential with an open stream: its time and result. All streams of one
    /// key share a check.
    looks: Mutex<HashMap<CredentialId, (Instant, bool)>>,
    /// The check of issuers' tokens, which are accepted besides keys; empty if no issuer can be
    /// trusted.
    tokens: OnceLock<TokenGate>,
    /// The time for which a stream's check is reused.
    fresh: Duration,
    /// The longest time for which a stream may be open.
    longest: Duration,
}

/// The identity of an accepted caller's credential.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CredentialId {
    Key(Arc<str>),
    Login(Arc<str>),
    /// An issuer's token: its id, with the tenant and the scope at the time of acceptance.
    Token(Arc<str>, Arc<str>, &'static str),
}

/// The credential in a request, as text.
#[derive(Debug, PartialEq, Eq)]
enum SentCredential<'a> {
    Key(&'a str),
    /// The value of a login cookie, which a browser adds by itself to every request.
    Login(&'a str),
}

impl Caller {
    /// Returns whether the caller's scope is sufficient for a route that needs the scope `needs`.
    pub(crate) fn has_scope(&self, needs: RequiredScope) -> bool {
        match needs {
            RequiredScope::Nothing => true,
            RequiredScope::ReadOnly => self.scope.includes_scope(KeyScope::ReadOnly),
            RequiredScope::Member => self.scope.includes_scope(KeyScope::Member),
            RequiredScope::Admin => self.scope.includes_scope(KeyScope::Admin),
            RequiredScope::Operator => {
                self.scope.includes_scope(KeyScope::Admin) && &*self.tenant == TENANT
            }
        }
    }

    /// The scope's name, for example `admin`.
    pub(crate) fn scope_name(&self) -> &'static str {
        self.scope.as_str()
    }

    /// The caller's names for the audit log of refusals.
    pub(crate) fn proven_name(&self) -> ProvenCaller<'_> {
        let Self { tenant, tenant_id, actor, .. } = self;
        ProvenCaller { tenant, tenant_id, actor, bounded_as: actor }
    }

    /// Returns whether the caller was accepted without any credential, as the person at this machine.
    pub(crate) fn is_anybody(&self) -> bool {
        self.key.is_none() && self.login.is_none() && self.token.is_none()
    }

    /// The name under which the bytes held for one key are counted: the key's id or the token holder's
    /// name; `None` for a login or the local person.
    pub(crate) fn bounded_as(&self) -> Option<&Arc<str>> {
        self.key.as_ref().or_else(|| self.token.as_ref().map(|_| &self.actor))
    }

    /// The id of the credential that decides whether the caller is still accepted: login, key or token;
    /// `None` for the local person.
    fn credential_id(&self) -> Option<CredentialId> {
        let login = self.login.as_ref().map(|login| CredentialId::Login(Arc::clone(&login.id)));
        let key = || self.key.as_ref().map(|key| CredentialId::Key(Arc::clone(key)));
        let (tenant, scope) = (Arc::clone(&self.tenant_id), self.scope_name());
        let token =
            || Some(CredentialId::Token(Arc::clone(&self.token.as_ref()?.id), tenant, scope));
        login.or_else(key).or_else(token)
    }

    /// The person at this machine, on a server without keys: an admin of the operator's own tenant.
    fn local_person() -> Self {
        let actor: Arc<str> = TENANT.into();
        let (tenant, tenant_id) = (Arc::clone(&actor), Arc::clone(&actor));
        let scope = KeyScope::Admin;
        let (key, login, token, came) = (None, None, None, Instant::now());
        Self { tenant_id, tenant, scope, actor, key, login, token, came }
    }

    /// The operator, authenticated by a one-time link of this server.
    pub(crate) fn by_link() -> Self {
        Self { actor: "link".into(), ..Self::local_person() }
    }

    /// Turns an accepted caller into the same caller with a browser's login.
    pub(crate) fn logged_in(self, login: BrowserLogin) -> Self {
        let actor = match &self.key {
            Some(_) => self.actor,
            None => format!("login:{}", login.id).into(),
        };
        Self { actor, login: Some(login), ..self }
    }

    /// The caller who belongs to a stored login.
    fn from_login(login: StoredLogin) -> Self {
        let (actor, expires) = (actor_of(&login).into(), login.expires);
        Self {
            tenant: login.tenant.into(),
            tenant_id: login.tenant_id.into(),
            scope: login.scope,
            actor,
            key: login.key.map(Into::into),
            login: Some(BrowserLogin { id: login.id.into(), expires }),
            token: None,
            came: Instant::now(),
        }
    }
}

/// The scope of a key that equals the scope in a rule for tokens.
fn scope_of(scope: TokenScope) -> KeyScope {
    match scope {
        TokenScope::ReadOnly => KeyScope::ReadOnly,
        TokenScope::Member => KeyScope::Member,
        TokenScope::Admin => KeyScope::Admin,
    }
}

/// A login's name in the audit log: the name of the key that it was made with.
fn actor_of(login: &StoredLogin) -> String {
    match &login.key {
        Some(key) => format!("key:{key}"),
        None => format!("login:{}", login.id),
    }
}

impl Gatekeeper {
    /// `open` = callers without a key are accepted as the person at this machine, until the first key
    /// exists. `fresh` = the largest age of a check that [`Self::is_admitted`] reuses.
    pub(crate) fn new(
        registry: Registry,
        clock: Arc<dyn Clock>,
        open: bool,
        fresh: Duration,
        longest: Duration,
    ) -> Self {
        let (checked, looks, tokens) = (Mutex::default(), Mutex::default(), OnceLock::new());
        let (open, noted) = (AtomicBool::new(open), AtomicBool::new(false));
        let told = AtomicBool::new(false);
        Self { registry, clock, open, checked, noted, told, looks, tokens, fresh, longest }
    }

    /// Accepts tokens of issuers too. Only the first call has an effect.
    pub(crate) fn take_tokens(&self, tokens: TokenGate) {
        let _ = self.tokens.set(tokens);
    }

    /// The addresses of the issuers whose tokens are accepted.
    pub(crate) async fn issuer_addresses(&self) -> Vec<String> {
        match self.tokens.get() {
            Some(tokens) => tokens.issuer_addresses().await,
            None => Vec::new(),
        }
    }

    /// Finds the caller of a request by its key, login or token, or returns the reason why the caller
    /// is refused.
    pub(crate) async fn identify_caller(
        &self,
        headers: &HeaderMap,
    ) -> Result<Caller, RefusedCaller> {
        match read_credential(headers) {
            Ok(Some(SentCredential::Key(text))) if self.passes_over(text).await => {
                Ok(Caller::local_person())
            }
            Ok(Some(SentCredential::Key(text))) => match self.tokens.get() {
                Some(tokens) if !text.starts_with(keys::KEY) => self.by_token(tokens, text).await,
                Some(_) | None => self.by_key(text).await,
            },
            Ok(Some(SentCredential::Login(text))) => match self.by_login(text).await {
                // On a server without keys no login is needed either, and a browser may still send the
                // cookie of an earlier one.
                Err(_) if self.is_open().await => Ok(Caller::local_person()),
                known => known,
            },
            Ok(None) if self.is_open().await => Ok(Caller::local_person()),
            Ok(None) => Err(self.without_word().await),
            Err(_) if self.passes_over("").await => Ok(Caller::local_person()),
            Err(problem) => Err(RefusedCaller { tried: true, ..RefusedCaller::for_now(problem) }),
        }
    }

    /// Returns whether an unknown key is ignored. Clients of OpenAI's API always send some key, for
    /// example `none` or `ollama`, even if a server on loopback needs none. A key in this server's own
    /// form is never ignored.
    async fn passes_over(&self, text: &str) -> bool {
        if text.starts_with(keys::KEY) || !self.is_open().await {
            return false;
        }
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::info!(
                target: "belljar::server",
                "a client sends a key; there are no keys on this server, so it is passed over \
                 (`belljar keys create` makes one, and from then on each caller needs one)"
            );
        }
        true
    }

    /// The refusal of a caller without a credential. If an issuer is trusted, the answer names tokens
    /// as well as keys.
    async fn without_word(&self) -> RefusedCaller {
        let trusted = match self.tokens.get() {
            Some(tokens) => tokens.are_trusted().await,
            None => Some(false),
        };
        match trusted {
            Some(true) => RefusedCaller::without_token(),
            Some(false) | None => RefusedCaller::with_reason("there is no key in the request"),
        }
    }

    /// INV-371: the caller who holds an issuer's token, if a rule of the operator admits the holder.
    async fn by_token(&self, tokens: &TokenGate, text: &str) -> Result<Caller, RefusedCaller> {
        let admitted = tokens.admit_token(text, self.now_millis() / 1_000).await;
        if !matches!(admitted, Err(TokenRefusal::Invalid(_) | TokenRefusal::Unknown(_))) {
            self.need_keys().await;
        }
        let AdmittedHolder { holder, given } = match admitted {
            Ok(admitted) => admitted,
            Err(TokenRefusal::Invalid(why)) => {
                return Err(RefusedCaller {
                    tried: true,
                    ..RefusedCaller::for_now(tokens::invalid_token(why))
                });
            }
            // An expired token is not counted as a guess of a key, because the sender once had a real
            // token of the issuer.
            Err(TokenRefusal::Past(why)) => {
                let issuer = tokens::issuer_of(text);
                return Err(RefusedCaller {
                    issuer,
                    ..RefusedCaller::for_now(tokens::invalid_token(why))
                });
            }
            Err(TokenRefusal::Unknown(problem)) => return Err(RefusedCaller::for_now(problem)),
            Err(TokenRefusal::Nobody(holder)) => return Err(RefusedCaller::for_holder(&holder)),
        };
        let actor = holder.actor();
        let tenant = match self.registry.find_tenant(&given.tenant).await {
            Ok(tenant) => tenant.filter(|tenant| !tenant.disabled),
            Err(error) => return Err(RefusedCaller::for_now(error.into())),
        };
        // A holder whose tenant is disabled is refused like one without a tenant, because no one reads
        // that tenant's log.
        let Some(tenant) = tenant else { return Err(RefusedCaller::for_holder(&holder)) };
        Ok(Caller {
            tenant: tenant.name.into(),
            tenant_id: tenant.id.into(),
            scope: scope_of(given.scope),
            actor,
            key: None,
            login: None,
            token: Some(Arc::new(holder)),
            came: Instant::now(),
        })
    }

    /// INV-376: returns whether the holder of a token would still be accepted with the same rights: the
    /// token is valid, and the rules and the tenant are unchanged.
    async fn still_holds(&self, caller: &Caller) -> Result<bool, StoreError> {
        let (Some(tokens), Some(holder)) = (self.tokens.get(), &caller.token) else {
            return Ok(false);
        };
        let Some(TokenRights { tenant, scope }) =
            tokens.current_rights(holder, self.now_millis() / 1_000).await
        else {
            return Ok(false);
        };
        if *tenant != *caller.tenant || scope_of(scope) != caller.scope {
            return Ok(false);
        }
        let tenant = self.registry.find_tenant(&tenant).await?;
        Ok(tenant.is_some_and(|tenant| !tenant.disabled && *tenant.id == *caller.tenant_id))
    }

    /// INV-261: the caller who holds a browser's login, as long as the key that made the login is
    /// valid.
    async fn by_login(&self, text: &str) -> Result<Caller, RefusedCaller> {
        let refused =
            || RefusedCaller { tried: true, ..RefusedCaller::with_reason("the login has ended") };
        let Some(presented) = PresentedKey::parse(keys::LOGIN, text) else { return Err(refused()) };
        let stored = match self.registry.find_login(presented.id).await {
            Ok(stored) => stored,
            Err(error) => {
                return Err(RefusedCaller::for_now(error.into()));
            }
        };
        let opens =
            presented.matches_digest(stored.as_ref().map(|login| login.secret_hash.as_str()));
        let Some(login) = stored else { return Err(refused()) };
        if opens && login.is_open(self.now_millis()) {
            return Ok(Caller::from_login(login));
        }
        let proven = opens.then(|| actor_of(&login));
        let tenant = TenantIdentity { name: login.tenant.into(), id: login.tenant_id.into() };
        let claimed = Some(ClaimedKey { tenant, proven });
        // A caller with the login's real secret is not guessing: for example a page that was left open
        // until after its key's end.
        Err(RefusedCaller { claimed, tried: !opens, ..refused() })
    }

    fn now_millis(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    /// The caller who holds a key.
    pub(crate) async fn by_key(&self, text: &str) -> Result<Caller, RefusedCaller> {
        // The reason why a key is refused stands only in the log, because a stranger must not learn
        // which keys exist.
        let refused =
            || RefusedCaller { tried: true, ..RefusedCaller::with_reason("the key is not valid") };
        let Some(presented) = PresentedKey::parse(keys::KEY, text) else { return Err(refused()) };
        let stored = match self.registry.find_key(presented.id).await {
            Ok(stored) => stored,
            Err(error) => {
                return Err(RefusedCaller::for_now(error.into()));
            }
        };
        let opens = presented.matches_digest(stored.as_ref().map(|key| key.secret_hash.as_str()));
        let Some(key) = stored else { return Err(refused()) };
        let actor = format!("key:{}", key.id);
        if !opens || key.revoked.is_some() || key.tenant_disabled {
            let tenant = TenantIdentity { name: key.tenant.into(), id: key.tenant_id.into() };
            let claim = ClaimedKey { tenant, proven: opens.then_some(actor) };
            return Err(RefusedCaller { claimed: Some(claim), ..refused() });
        }
        Ok(Caller {
            tenant: key.tenant.into(),
            tenant_id: key.tenant_id.into(),
            scope: key.scope,
            actor: actor.into(),
            key: Some(key.id.into()),
            login: None,
            token: None,
            came: Instant::now(),
        })
    }

    /// Like [`Self::still_admits`], but may reuse a recent check, because many streams of one key share
    /// a read of the store. Also false when the caller has been connected for too long.
    pub(crate) async fn is_admitted(&self, caller: &Caller) -> bool {
        if self.was_long(caller) {
            return false;
        }
        let Some(held) = caller.credential_id() else { return self.is_open().await };
        let known = self.lock_checks().get(&held).copied();
        if let Some((at, admitted)) = known
            && at.elapsed() < self.fresh
        {
            return admitted;
        }
        let now = Instant::now();
        let admitted = self.still_admits(caller).await;
        let mut looks = self.lock_checks();
        looks.retain(|_, (at, _)| now.saturating_duration_since(*at) < self.fresh);
        looks.insert(held, (now, admitted));
        admitted
    }

    /// INV-382: returns whether a caller's stream has been open for the longest time, whatever its
    /// credential. A caller with a token without an expiry must then send the token again, and the
    /// token is checked anew.
    pub(crate) fn was_long(&self, caller: &Caller) -> bool {
        caller.came.elapsed() >= self.longest
    }

    fn lock_checks(&self) -> MutexGuard<'_, HashMap<CredentialId, (Instant, bool)>> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the caller of an open connection would still be accepted: for example the key
    /// was not revoked, and the login has not expired. Always reads the store.
    pub(crate) async fn still_admits(&self, caller: &Caller) -> bool {
        let found = match caller.credential_id() {
            None => return self.is_open().await,
            Some(CredentialId::Key(key)) => {
                let found = self.registry.find_key(&key).await;
                let opens =
                    |key: belljar_store::StoredKey| key.revoked.is_none() && !key.tenant_disabled;
                found.map(|found| found.is_some_and(opens))
            }
            Some(CredentialId::Login(login)) => {
                let (found, now) = (self.registry.find_login(&login).await, self.now_millis());
                found.map(|found| found.is_some_and(|login| login.is_open(now)))
            }
            Some(CredentialId::Token(..)) => self.still_holds(caller).await,
        };
        match found {
            Ok(admitted) => admitted,
            Err(error) => {
                tracing::error!(%error, "a key cannot be looked up");
                false
            }
        }
    }

    /// INV-110: returns whether callers without a key are accepted, because no key ever existed. The
    /// first key ends this for good: revoking the key, or removing its tenant, does not restore it.
    async fn is_open(&self) -> bool {
        if !self.open.load(Ordering::Relaxed) {
            return false;
        }
        if let Some(tokens) = self.tokens.get() {
            match tokens.are_trusted().await {
                Some(false) => {}
                Some(true) => {
                    self.need_keys().await;
                    return false;
                }
                None => return false,
            }
        }
        let now = Instant::now();
        let fresh = |at: Instant| now.saturating_duration_since(at) < RECHECK;
        if self.last_check().is_some_and(fresh) {
            return true;
        }
        match self.registry.keys_needed().await {
            Ok(false) => {
                *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
                true
            }
            Ok(true) => {
                self.open.store(false, Ordering::Relaxed);
                false
            }
            Err(error) => {
                tracing::error!(%error, "it cannot be read whether keys are needed");
                false
            }
        }
    }

    /// INV-377: stores that this server needs keys from now on. An operator who has trusted an issuer
    /// wants authentication, also after that trust ends, and after a restart.
    async fn need_keys(&self) {
        self.open.store(false, Ordering::Relaxed);
        if self.noted.load(Ordering::Relaxed) {
            return;
        }
        match self.registry.need_keys(self.now_millis()).await {
            Ok(()) => self.noted.store(true, Ordering::Relaxed),
            Err(error) => tracing::error!(%error, "it is not noted that keys are needed"),
        }
    }

    fn last_check(&self) -> Option<Instant> {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Gatekeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gatekeeper").field("open", &self.open).finish_non_exhaustive()
    }
}

/// Returns whether any key exists that was not revoked.
///
/// # Errors
/// When the store cannot be read.
pub async fn has_keys(registry: &Registry) -> Result<bool, StoreError> {
    Ok(registry.list_keys(None).await?.iter().any(|key| key.revoked.is_none()))
}

/// Reads the credential of a request: a key in `Authorization` or among a WebSocket's subprotocols;
/// without a key, the login in its cookie.
fn read_credential(headers: &HeaderMap) -> Result<Option<SentCredential<'_>>, Problem> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let Some(line) = lines.next() else {
        let key = subprotocol_key(headers).map(SentCredential::Key);
        return Ok(key.or_else(|| cookie::sent_login(headers).map(SentCredential::Login)));
    };
    let wrong = || {
        Problem::new(ProblemKind::NoKey, "`Authorization` holds no key")
            .with_hint("write it as `Authorization: Bearer bj_…`")
    };
    if lines.next().is_some() {
        return Err(wrong());
    }
    let (scheme, key) =
        line.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(wrong)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(Some(SentCredential::Key(key.trim())))
    } else {
        Err(wrong())
    }
}

/// The key among the subprotocols that a browser sends, without its prefix [`SUBPROTOCOL`].
fn subprotocol_key(headers: &HeaderMap) -> Option<&str> {
    offered_subprotocols(headers).find_map(|offer| offer.strip_prefix(SUBPROTOCOL))
}

/// The subprotocols that a client of a WebSocket sends.
pub(crate) fn offered_subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).map(str::trim)
}

#[cfg(test)]
impl Caller {
    /// A caller who is an admin of the operator's own tenant.
    pub(crate) fn for_tests() -> Self {
        Self::local_person()
    }
}

#[cfg(test)]
mod tests;
