//! Whoever is not let in, and what is known of it.

use std::sync::Arc;

use belljar_store::TENANT;

use crate::http::problem::{Kind, Problem};
use crate::http::tokens::{self, Holder};

/// Somebody who may not.
pub(crate) struct Stranger {
    pub(crate) problem: Problem,
    /// Whose key it says it has; `None` = of nobody here.
    pub(crate) claimed: Option<Claim>,
    /// It presented a key, which does not open: it may be trying many.
    pub(crate) tried: bool,
    /// The issuer that signed its token: what such tokens may ask for in vain is bounded for all of them
    /// together.
    pub(crate) issuer: Option<Arc<str>>,
}

/// The claims of somebody who is not let in about itself.
pub(crate) struct Claim {
    /// The tenant of the key that it names.
    pub(crate) tenant: Whose,
    /// `key:<id>`, where it had the key's secret as well: one that was revoked, or whose tenant is
    /// disabled. Anybody may name the id of a key.
    pub(crate) proven: Option<String>,
}

/// Whoever has presented the secret of a key: the only name under which the audit log says that
/// somebody was refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proven<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) tenant_id: &'a str,
    pub(crate) actor: &'a str,
    /// The name under which the lines of the log are bounded that this may cost, and what comes beyond
    /// them is counted.
    pub(crate) bounded_as: &'a str,
}

/// A tenant by its name, and which of all that ever had it.
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

    /// Under which name one with its key is refused.
    pub(crate) fn proven<'a>(&'a self, actor: &'a str) -> Proven<'a> {
        Proven { tenant: &self.name, tenant_id: &self.id, actor, bounded_as: actor }
    }
}

impl Stranger {
    /// Somebody with a link that opens nothing.
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

    /// Somebody with neither a key nor a token, where both are taken.
    pub(super) fn without_token() -> Self {
        let problem = Problem::new(Kind::NoKey, "there is no key and no token in the request").hint(
            "send `Authorization: Bearer …` with a key (`bj_…`), which the operator of this server makes, or \
             with a token of an issuer that this server's metadata names",
        );
        Self::for_now(problem)
    }

    /// The holder of a good token whom nobody has let in.
    pub(super) fn of_nobody(holder: &Holder) -> Self {
        let proven = Some(holder.actor().to_string());
        let claimed = Some(Claim { tenant: Whose::operator(), proven });
        let issuer = Some(Arc::clone(holder.issuer()));
        Self { claimed, issuer, ..Self::for_now(tokens::nobody()) }
    }

    /// Somebody of whom nothing is known, for this reason.
    pub(super) fn for_now(problem: Problem) -> Self {
        Self { problem, claimed: None, tried: false, issuer: None }
    }
}
