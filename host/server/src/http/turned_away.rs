//! A refused caller, and the known facts.

use std::sync::Arc;

use belljar_store::TENANT;

use crate::http::problem::{Kind, Problem};
use crate::http::tokens::{self, Holder};

/// A refused caller.
pub(crate) struct Stranger {
    pub(crate) problem: Problem,
    /// The claimed owner of the key; `None` = unknown here.
    pub(crate) claimed: Option<Claim>,
    /// The key is invalid: the caller may be guessing.
    pub(crate) tried: bool,
    /// The issuer that signed the token: refused tokens of one issuer have a common bound.
    pub(crate) issuer: Option<Arc<str>>,
}

/// The claims of a refused caller.
pub(crate) struct Claim {
    /// The tenant of the named key.
    pub(crate) tenant: Whose,
    /// `key:<id>`, if the secret matched: the key was revoked, or its tenant is disabled. Anybody may name
    /// the id of a key.
    pub(crate) proven: Option<String>,
}

/// A caller with a proven secret: the only name under which the audit log notes a refusal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proven<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) tenant_id: &'a str,
    pub(crate) actor: &'a str,
    /// The name whose lines in the log are bounded; further refusals are counted.
    pub(crate) bounded_as: &'a str,
}

/// A tenant by name, with the unique id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whose {
    pub(crate) name: Arc<str>,
    pub(crate) id: Arc<str>,
}

impl Whose {
    /// The operator's own, which stays.
    pub(crate) fn operator() -> Self {
        let name: Arc<str> = TENANT.into();
        Self { id: Arc::clone(&name), name }
    }

    /// The name for refusals of a caller with the tenant's key.
    pub(crate) fn proven<'a>(&'a self, actor: &'a str) -> Proven<'a> {
        Proven { tenant: &self.name, tenant_id: &self.id, actor, bounded_as: actor }
    }
}

impl Stranger {
    /// A caller with an invalid link.
    pub(crate) fn with_link() -> Self {
        let problem = Problem::new(Kind::NoKey, "this link opens nothing any more")
            .hint("a link opens once, within minutes; `belljar serve` prints one when it starts");
        Self { tried: true, ..Self::for_now(problem) }
    }

    pub(super) fn because(why: &str) -> Self {
        let problem = Problem::new(Kind::NoKey, why)
            .hint("send `Authorization: Bearer bj_…`; the operator of this server makes keys");
        Self::for_now(problem)
    }

    /// A stranger without a key or token, on a server that accepts both.
    pub(super) fn without_token() -> Self {
        let problem = Problem::new(Kind::NoKey, "there is no key and no token in the request").hint(
            "send `Authorization: Bearer …` with a key (`bj_…`), which the operator of this server makes, or \
             with a token of an issuer that this server's metadata names",
        );
        Self::for_now(problem)
    }

    /// A stranger with a valid token for whom the operator has no rule.
    pub(super) fn of_nobody(holder: &Holder) -> Self {
        let proven = Some(holder.actor().to_string());
        let claimed = Some(Claim { tenant: Whose::operator(), proven });
        let issuer = Some(Arc::clone(holder.issuer()));
        Self { claimed, issuer, ..Self::for_now(tokens::nobody()) }
    }

    /// An unknown caller, with this problem.
    pub(super) fn for_now(problem: Problem) -> Self {
        Self { problem, claimed: None, tried: false, issuer: None }
    }
}
