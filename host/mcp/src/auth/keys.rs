//! The keys with which an issuer signs tokens, for checking tokens sent to this program's own server.
//! INV-370: they are fetched from the operator's address, through the gate and without redirects, in
//! documents of a bounded size. A host that only the issuer names is reached over TLS at public addresses,
//! and on this machine only at the issuer's own port.

use std::collections::BTreeSet;

use belljar_policy::{Budget, BudgetCaps, BudgetLevel, Limits};
use belljar_sandbox::{OutgoingGate, OutgoingSpec, Sandbox, SecretStore};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::AuthError;
use super::ask::AuthRequester;
use super::documents::{issuers_own, read_text};
use super::reach::{host_scope, is_here, parse_target, refused_error};
use crate::call::CallSpec;
use crate::server::Server;

/// Fetches the key set of an issuer. The result is a stranger's text.
///
/// # Errors
/// When the issuer cannot be reached, names another issuer, or names no keys.
pub async fn signing_keys(sandbox: &Sandbox, issuer: &str) -> Result<Value, AuthError> {
    let host = parse_target(issuer)?.to_string().parse();
    let host = host.map_err(|_| refused_error(issuer, "is no host"))?;
    let server = Server::new("issuer", issuer, host, BTreeSet::new(), None);
    let server = server.map_err(|_| refused_error(issuer, "is no address"))?;
    let (secrets, cancel) = (SecretStore::default(), CancellationToken::new());
    let (budget, limits) =
        (Budget::new_root(BudgetLevel::Call, BudgetCaps::unlimited()), Limits::default());
    let (joined, scope) = (BTreeSet::new(), host_scope(&server, issuer)?);
    let spec = OutgoingSpec {
        scope,
        secrets: &secrets,
        joined: &joined,
        budget: &budget,
        limits: &limits,
    };
    let gate = OutgoingGate::new(sandbox, spec);
    let spec = CallSpec::from_parts(sandbox, &secrets, &budget, &limits, &cancel);
    let asking = AuthRequester { server: &server, gate: &gate, spec: &spec };
    let own = issuers_own(&asking, issuer).await?;
    let place = read_text(&own, "jwks_uri");
    let place = place.ok_or_else(|| AuthError::new("it does not say where its keys are"))?;
    let at = parse_target(&place)?;
    if is_here(&at) && at.port() != parse_target(issuer)?.port() {
        return Err(refused_error(&place, "is at another port of this machine than the issuer"));
    }
    let keys = asking.fetch_document(&place).await?;
    keys.ok_or_else(|| AuthError::new("its keys are not where it says"))
}
