//! Compares two rules for network hosts: whether one allows everything the other allows.

use super::{HostPattern, HostRule, Port, is_below};

impl HostRule {
    /// Whether the rule matches every target that `other` matches. In complicated cases it may return false
    /// although it does; it never returns true if it does not.
    pub fn covers_rule(&self, other: &Self) -> bool {
        let schemes = self.scheme.is_none() || self.scheme == other.scheme;
        let ports = match (self.port, other.port) {
            (Port::Any, Port::Default | Port::Any | Port::Exact(_))
            | (Port::Default, Port::Default) => true,
            (Port::Exact(a), Port::Exact(b)) => a == b,
            (Port::Default, Port::Exact(port)) | (Port::Exact(port), Port::Default) => {
                other.scheme.is_some_and(|scheme| scheme.default_port() == port)
            }
            (Port::Default | Port::Exact(_), Port::Any) => false,
        };
        schemes && ports && self.pattern.covers_pattern(&other.pattern)
    }
}

impl HostPattern {
    /// Whether every host of the other pattern is also a host of this pattern.
    fn covers_pattern(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, Self::Any | Self::Name(_) | Self::Below(_) | Self::Net(_)) => true,
            (Self::Name(a), Self::Name(b)) => a == b,
            (Self::Below(a), Self::Name(b)) => is_below(b, a),
            (Self::Below(a), Self::Below(b)) => a == b || is_below(b, a),
            (Self::Net(a), Self::Net(b)) => a.contains(b),
            (Self::Name(_), Self::Any | Self::Below(_) | Self::Net(_))
            | (Self::Below(_), Self::Any | Self::Net(_))
            | (Self::Net(_), Self::Any | Self::Name(_) | Self::Below(_)) => false,
        }
    }
}
