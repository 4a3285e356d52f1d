//! The keys with which an issuer signs, for checks of its tokens. INV-370: fetched from the operator's
//! address, through the gate and without a redirect, in documents of a bounded size. A host that only the
//! issuer names is reached over TLS at public addresses, and on this machine only at the issuer's own port.

use std::collections::BTreeSet;

use belljar_policy::{Budget, Caps, Level, Limits};
use belljar_sandbox::{Outgoing, OutgoingSpec, Sandbox, SecretStore};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::AuthError;
use super::ask::Asking;
use super::documents::{issuers_own, word};
use super::reach::{is_here, refused, scope, target};
use crate::call::CallSpec;
use crate::server::Server;

/// The present key set of an issuer: foreign text.
///
/// # Errors
///
/// When the issuer cannot be reached, names itself otherwise, or names no keys.
pub async fn signing_keys(sandbox: &Sandbox, issuer: &str) -> Result<Value, AuthError> {
    let host = target(issuer)?.to_string().parse();
    let host = host.map_err(|_| refused(issuer, "is no host"))?;
    let server = Server::new("issuer", issuer, host, BTreeSet::new(), None);
    let server = server.map_err(|_| refused(issuer, "is no address"))?;
    let (secrets, cancel) = (SecretStore::default(), CancellationToken::new());
    let (budget, limits) = (Budget::root(Level::Call, Caps::unlimited()), Limits::default());
    let (joined, scope) = (BTreeSet::new(), scope(&server, issuer)?);
    let spec = OutgoingSpec {
        scope,
        secrets: &secrets,
        joined: &joined,
        budget: &budget,
        limits: &limits,
    };
    let gate = Outgoing::new(sandbox, spec);
    let spec = CallSpec::of(sandbox, &secrets, &budget, &limits, &cancel);
    let asking = Asking { server: &server, gate: &gate, spec: &spec };
    let own = issuers_own(&asking, issuer).await?;
    let place = word(&own, "jwks_uri");
    let place = place.ok_or_else(|| AuthError::new("it does not say where its keys are"))?;
    let at = target(&place)?;
    if is_here(&at) && at.port() != target(issuer)?.port() {
        return Err(refused(&place, "is at another port of this machine than the issuer"));
    }
    let keys = asking.document(&place).await?;
    keys.ok_or_else(|| AuthError::new("its keys are not where it says"))
}
