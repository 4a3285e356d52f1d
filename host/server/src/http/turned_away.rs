//! A caller whose credential was refused, with what the server knows about the caller.

use std::sync::Arc;

use belljar_store::TENANT;

use crate::http::problem::{Problem, ProblemKind};
use crate::http::tokens::{self, TokenHolder};

/// A refused caller: the answer, and the facts for counters and the audit log.
pub(crate) struct RefusedCaller {
    pub(crate) problem: Problem,
    /// The tenant and name that belong to the key; `None` if the server does not know the key.
    pub(crate) claimed: Option<ClaimedKey>,
    /// True if the secret was wrong, so the caller may be guessing keys.
    pub(crate) tried: bool,
    /// The issuer that signed the caller's token. Refused tokens of one issuer share a limit.
    pub(crate) issuer: Option<Arc<str>>,
}

/// The tenant that a refused caller's key belongs to.
pub(crate) struct ClaimedKey {
    /// The tenant of the key whose id the caller sent.
    pub(crate) tenant: TenantIdentity,
    /// The caller's name in the audit log, for example `key:<id>`, if the secret was right although the
    /// key is revoked or its tenant is disabled. `None` if the caller only sent a known key's id, which
    /// anyone can do.
    pub(crate) proven: Option<String>,
}

/// A caller who was refused after sending a secret or token that matches, for example that of a revoked key.
/// Only such refusals get lines with the caller's name in the audit log; the refusals of others are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProvenCaller<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) tenant_id: &'a str,
    pub(crate) actor: &'a str,
    /// The name under which the audit log's lines about refusals are limited: the caller's own, or that
    /// of the issuer of the caller's token. Refusals beyond the limit are only counted.
    pub(crate) bounded_as: &'a str,
}

/// A tenant's name, and its unique id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TenantIdentity {
    pub(crate) name: Arc<str>,
    pub(crate) id: Arc<str>,
}

impl TenantIdentity {
    /// The operator's own tenant, which cannot be deleted.
    pub(crate) fn operator_tenant() -> Self {
        let name: Arc<str> = TENANT.into();
        Self { id: Arc::clone(&name), name }
    }

    /// A caller with a key of this tenant, under the name `actor`.
    pub(crate) fn proven_caller<'a>(&'a self, actor: &'a str) -> ProvenCaller<'a> {
        ProvenCaller { tenant: &self.name, tenant_id: &self.id, actor, bounded_as: actor }
    }
}

impl RefusedCaller {
    /// A caller with an invalid or expired one-time link.
    pub(crate) fn with_link() -> Self {
        let problem = Problem::new(ProblemKind::NoKey, "this link opens nothing any more")
            .with_hint(
                "a link opens once, within minutes; `belljar serve` prints one when it starts",
            );
        Self { tried: true, ..Self::for_now(problem) }
    }

    pub(super) fn with_reason(why: &str) -> Self {
        let problem = Problem::new(ProblemKind::NoKey, why)
            .with_hint("send `Authorization: Bearer bj_…`; the operator of this server makes keys");
        Self::for_now(problem)
    }

    /// A stranger without a key or token, on a server that accepts both.
    pub(super) fn without_token() -> Self {
        let problem = Problem::new(ProblemKind::NoKey, "there is no key and no token in the request").with_hint(
            "send `Authorization: Bearer …` with a key (`bj_…`), which the operator of this server makes, or \
             with a token of an issuer that this server's metadata names",
        );
        Self::for_now(problem)
    }

    /// A stranger with a valid token for whose holder the operator has no rule.
    pub(super) fn for_holder(holder: &TokenHolder) -> Self {
        let proven = Some(holder.actor().to_string());
        let claimed = Some(ClaimedKey { tenant: TenantIdentity::operator_tenant(), proven });
        let issuer = Some(Arc::clone(holder.issuer()));
        Self { claimed, issuer, ..Self::for_now(tokens::unknown_holder()) }
    }

    /// A caller about whom nothing is known except the problem that is answered.
    pub(super) fn for_now(problem: Problem) -> Self {
        Self { problem, claimed: None, tried: false, issuer: None }
    }
}
