//! A person's login to a server: the page for consent, and the exchange of the code for a token. INV-332: the
//! consent must answer this very request (`state`), come from this very issuer, and be useless to others
//! (PKCE). An issuer that does not name itself in its answers must ask for consent on its own host, or be
//! named by the operator.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_policy::{Budget, BudgetCaps, BudgetLevel, ShownText};
use belljar_sandbox::OutgoingGate;
use sha2::{Digest as _, Sha256};
use url::Url;
use url::form_urlencoded::parse;

use super::AuthError;
use super::ask::AuthRequester;
use super::client::{IssuerClient, obtain_client};
use super::documents::{IssuerDocument, ResourceDocument, fetch_issuer, fetch_resource};
use super::token::request_token;
use super::tokens::{ServerTokens, TokenBinding};
use crate::call::CallSpec;
use crate::challenge::{TokenChallenge, is_scope};
use crate::connection::Connection;
use crate::exchange::ExchangeFault;
use crate::limits::{MAX_SHOWN, MAX_WORD};

/// The scope that allows a token to be renewed.
pub(super) const OFFLINE: &str = "offline_access";

/// The parameters of a login.
pub struct LoginAsk<'a> {
    /// The address on this machine to which the person's browser is sent with the answer.
    pub redirect: String,
    /// Scopes to request in addition to the server's.
    pub scopes: Vec<String>,
    /// The present token; its scopes are requested again.
    pub before: Option<&'a ServerTokens>,
    /// Random bytes for `state` and PKCE, used for nothing else.
    pub random: [u8; 64],
}

/// A login that waits for a person's consent.
pub struct PendingLogin {
    address: String,
    state: String,
    verifier: String,
    redirect: String,
    resource: ResourceDocument,
    issuer: IssuerDocument,
    client: IssuerClient,
    scopes: Vec<String>,
}

impl Connection {
    /// Begins a login: finds the server's issuer, and builds the address of the page for consent.
    ///
    /// # Errors
    /// When a server or issuer cannot be reached, or its document is refused.
    pub async fn log_in(
        &self,
        spec: &CallSpec<'_>,
        ask: LoginAsk<'_>,
    ) -> Result<PendingLogin, AuthError> {
        let gate = self.gate_without_token(spec);
        let challenge = self.fetch_challenge(&gate).await?;
        let asking = AuthRequester { server: self.server(), gate: &gate, spec };
        let resource = fetch_resource(&asking, &challenge).await?;
        let issuer = fetch_issuer(&asking, &resource.issuer).await?;
        if !issuer.proofs {
            return Err(AuthError::new(
                "its issuer takes no proof of who has asked (PKCE with `S256`)",
            ));
        }
        let endpoint = issuer.consent_address(self.server())?.to_owned();
        let client = obtain_client(&asking, &issuer, &ask.redirect).await?;
        let before = ask.before.filter(|tokens| tokens.issuer == issuer.issuer);
        let own = &self.server().login.scopes;
        let scopes = choose_scopes(own, &challenge, &resource, &issuer, before, &ask.scopes);
        let (state, verifier) = ask.random.split_at(32);
        let (state, verifier) = (URL_SAFE_NO_PAD.encode(state), URL_SAFE_NO_PAD.encode(verifier));
        let mut login = PendingLogin {
            address: endpoint,
            state,
            verifier,
            redirect: ask.redirect,
            resource,
            issuer,
            client,
            scopes,
        };
        login.address = login.build_address()?;
        Ok(login)
    }

    /// Exchanges a person's answer for a token. The answer is the query with which the browser returns.
    ///
    /// # Errors
    /// When the answer is no consent to this login, or the issuer refuses.
    pub async fn logged_in(
        &self,
        spec: &CallSpec<'_>,
        login: PendingLogin,
        query: &str,
    ) -> Result<ServerTokens, AuthError> {
        let code = login.parse_code(query)?;
        let gate = self.gate_without_token(spec);
        let asking = AuthRequester { server: self.server(), gate: &gate, spec };
        let pairs = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code),
            ("redirect_uri", login.redirect),
            ("code_verifier", login.verifier),
            ("resource", login.resource.resource.clone()),
        ];
        let given = request_token(&asking, &login.issuer.token, &login.client, pairs).await?;
        let bound = TokenBinding {
            url: self.server().url.to_string(),
            resource: login.resource.resource,
            issuer: login.issuer.issuer,
            endpoint: login.issuer.token,
            client: login.client,
            scopes: login.scopes,
        };
        let tokens = ServerTokens::from_binding(bound, given.access, given.refresh);
        tokens.gate_secret(self.server().name(), &self.server().host)?;
        Ok(tokens)
    }

    fn gate_without_token(&self, spec: &CallSpec<'_>) -> OutgoingGate {
        let budget: Budget = spec.budget.new_child(BudgetLevel::Call, BudgetCaps::unlimited());
        self.open_gate(spec, &budget, None)
    }

    /// The challenge with which the server answers a request without a token.
    async fn fetch_challenge(&self, gate: &OutgoingGate) -> Result<TokenChallenge, AuthError> {
        let listed = async {
            let mut server = self.server_opening().negotiate_revision(gate).await?;
            self.server_opening().list_tools(gate, &mut server).await
        };
        match listed.await {
            // The server may require a token only for calls.
            Ok(_) => Ok(TokenChallenge::default()),
            Err(ExchangeFault::Unauthorized(challenge)) => Ok(challenge),
            Err(fault) => Err(AuthError(fault.to_string())),
        }
    }
}

impl PendingLogin {
    /// The address of the page for consent, to open in a browser.
    pub fn login_address(&self) -> &str {
        &self.address
    }

    /// The issuer that will issue the token.
    pub fn issuer(&self) -> &str {
        &self.issuer.issuer
    }

    /// The requested scopes.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns whether an answer belongs to this login, by its `state`. Requests of others to the local
    /// address are ignored.
    pub fn is_asked_by(&self, query: &str) -> bool {
        single_field(query, "state").is_some_and(|state| state == self.state)
    }

    /// The address of the page for consent, with all parameters of this request.
    fn build_address(&self) -> Result<String, AuthError> {
        let shown = ShownText::clip_line(&self.address, MAX_SHOWN);
        let url = Url::parse(&self.address);
        let mut url = url.map_err(|_| AuthError(format!("`{shown}` is no address")))?;
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        let mut pairs = url.query_pairs_mut();
        pairs
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", &self.redirect)
            .append_pair("state", &self.state)
            .append_pair("code_challenge", &hash)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.resource.resource);
        if !self.scopes.is_empty() {
            pairs.append_pair("scope", &self.scopes.join(" "));
        }
        drop(pairs);
        Ok(url.to_string())
    }

    /// Checks an answer, and returns the code in it.
    fn parse_code(&self, query: &str) -> Result<String, AuthError> {
        if !self.is_asked_by(query) {
            return Err(AuthError::new("the answer is not to this login"));
        }
        let says = parse(query.as_bytes()).find(|(name, _)| name == "iss");
        match (says, single_field(query, "iss")) {
            // Compared byte by byte, so another spelling counts as another issuer.
            (Some(_), Some(iss)) if iss == self.issuer.issuer => {}
            (None, _) if !self.issuer.names_itself => {}
            (None, _) => return Err(AuthError::new("the answer does not say whose it is")),
            (Some(_), _) => return Err(AuthError::new("the answer is of another issuer")),
        }
        if parse(query.as_bytes()).any(|(name, _)| name == "error") {
            let why = single_field(query, "error").unwrap_or_default();
            return Err(AuthError(format!(
                "the issuer says no: {}",
                ShownText::clip_line(&why, 80)
            )));
        }
        let code =
            single_field(query, "code").filter(|code| !code.is_empty() && code.len() <= MAX_WORD);
        code.ok_or_else(|| AuthError::new("the answer has no code"))
    }
}

/// The value of a field that occurs exactly once in a query.
fn single_field(query: &str, name: &str) -> Option<String> {
    let mut values = parse(query.as_bytes()).filter(|(key, _)| key == name);
    let value = values.next()?.1.into_owned();
    values.next().is_none().then_some(value)
}

/// The scopes to request: the operator's, or those that the server demands, or all that it knows; and those
/// of the old token and the person's wishes.
pub(super) fn choose_scopes(
    own: &[String],
    challenge: &TokenChallenge,
    resource: &ResourceDocument,
    issuer: &IssuerDocument,
    before: Option<&ServerTokens>,
    more: &[String],
) -> Vec<String> {
    let demanded = challenge.scope.iter().flat_map(|scope| scope.split(' ')).map(str::to_owned);
    let demanded: Vec<String> = demanded.collect();
    let wanted = match (own.is_empty(), demanded.is_empty()) {
        (false, _) => own,
        (true, false) => &demanded,
        (true, true) => &resource.scopes,
    };
    let before = before.into_iter().flat_map(|tokens| &tokens.scopes);
    let mut all: Vec<String> = Vec::new();
    for scope in before.chain(wanted).chain(more).filter(|scope| is_scope(scope)) {
        if !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    let offline = issuer.scopes.iter().any(|scope| scope == OFFLINE);
    if !all.is_empty() && offline && !all.iter().any(|scope| scope == OFFLINE) {
        all.push(OFFLINE.to_owned());
    }
    all
}

impl std::fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingLogin").field("issuer", &self.issuer.issuer).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for LoginAsk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginAsk").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::client::ProofMethod;
    use crate::auth::tokens::tests::tokens;

    fn login(names_itself: bool) -> PendingLogin {
        PendingLogin {
            address: "https://auth.test/yes?a=1".to_owned(),
            state: "st".to_owned(),
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
            redirect: "http://127.0.0.1:1/callback".to_owned(),
            resource: ResourceDocument {
                resource: "https://m.test/mcp".to_owned(),
                issuer: "https://auth.test".to_owned(),
                scopes: vec!["all".to_owned()],
            },
            issuer: IssuerDocument {
                issuer: "https://auth.test".to_owned(),
                names_itself,
                ..IssuerDocument::default()
            },
            client: IssuerClient { id: "c&d".to_owned(), secret: None, method: ProofMethod::None },
            scopes: vec!["a".to_owned(), "b".to_owned()],
        }
    }

    #[test]
    fn the_question_has_a_challenge_a_state_and_the_server_that_it_is_about() {
        let url = login(true).build_address().unwrap();
        for part in [
            "https://auth.test/yes?a=1&response_type=code&client_id=c%26d&",
            "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256",
            "state=st",
            "resource=https%3A%2F%2Fm.test%2Fmcp",
            "scope=a+b",
        ] {
            assert!(url.contains(part), "{part}: {url}");
        }
    }

    #[test]
    fn an_answer_that_is_not_to_this_login_or_of_another_issuer_is_refused() {
        let iss = "iss=https%3A%2F%2Fauth.test";
        let code = |names_itself, query: &str| login(names_itself).parse_code(query).ok();
        assert_eq!(code(true, &format!("code=x&state=st&{iss}")).as_deref(), Some("x"));
        assert_eq!(code(false, "code=x&state=st").as_deref(), Some("x"));
        assert_eq!(code(false, &format!("code=x&state=st&{iss}")).as_deref(), Some("x"));
        for (names_itself, query) in [
            (false, "code=x".to_owned()),
            (false, "code=x&state=other".to_owned()),
            (false, "code=x&state=st&state=st".to_owned()),
            (false, "code=x&code=y&state=st".to_owned()),
            (false, "code=&state=st".to_owned()),
            (false, "state=st".to_owned()),
            (false, "code=x&state=st&error=access_denied".to_owned()),
            (false, "code=x&state=st&iss=https%3A%2F%2Fevil.test".to_owned()),
            (false, format!("code=x&state=st&{iss}%2F")),
            (false, format!("code=x&state=st&{iss}&{iss}")),
            (true, "code=x&state=st".to_owned()),
            (true, "code=x&state=st&iss=HTTPS%3A%2F%2Fauth.test".to_owned()),
        ] {
            assert_eq!(code(names_itself, &query), None, "{query}");
        }
    }

    #[test]
    fn rights_are_those_of_the_demand_with_those_that_there_were() {
        let login = login(true);
        let demand = |scope: &str| TokenChallenge {
            scope: Some(scope.to_owned()),
            ..TokenChallenge::default()
        };
        let of = |challenge: &TokenChallenge, before: Option<&ServerTokens>, more: &[String]| {
            choose_scopes(&[], challenge, &login.resource, &login.issuer, before, more).join(" ")
        };
        assert_eq!(of(&TokenChallenge::default(), None, &[]), "all");
        assert_eq!(of(&demand("x y"), None, &[]), "x y");
        assert_eq!(of(&demand("x"), Some(&tokens("0123456789")), &["z".to_owned()]), "a x z");
        let renewable =
            IssuerDocument { scopes: vec![OFFLINE.to_owned()], ..IssuerDocument::default() };
        let all = choose_scopes(&[], &demand("x"), &login.resource, &renewable, None, &[]);
        assert_eq!(all, ["x", OFFLINE]);
        let own = ["mine".to_owned()];
        let all = choose_scopes(&own, &demand("x"), &login.resource, &login.issuer, None, &[]);
        assert_eq!(all, ["mine"]);
    }
}
