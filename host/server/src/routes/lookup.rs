//! Look-ups in the table of routes.

use super::{HttpVerb, ROUTES, RequiredScope, RouteOp};

impl RouteOp {
    /// The least scope, by any entrance.
    pub(crate) fn required_scope(self) -> RequiredScope {
        // A test checks that the table has every operation.
        ROUTES
            .iter()
            .find(|route| route.op == self)
            .map_or(RequiredScope::Operator, |route| route.needs)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl HttpVerb {
    /// The method's name in a request.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
