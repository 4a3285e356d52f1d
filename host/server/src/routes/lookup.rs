//! Look-ups in the table of routes, by operation.

use super::{HttpVerb, ROUTES, RequiredScope, RouteOp};

impl RouteOp {
    /// The least scope for an operation, whichever API performs it.
    pub(crate) fn required_scope(self) -> RequiredScope {
        // The table has every operation, as a test checks.
        ROUTES
            .iter()
            .find(|route| route.op == self)
            .map_or(RequiredScope::Operator, |route| route.needs)
    }

    /// The operation's name, for example `list_sessions`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl HttpVerb {
    /// The method's name in a request, for example `GET`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
