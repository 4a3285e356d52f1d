//! Finds the other tools a call may make nested calls of.

use std::sync::Arc;

use belljar_policy::ToolName;

use crate::jar::peers::{NestBounds, NestLimits, NestedScope, PeerPort, PeerReach};
use crate::jar::{Jar, SlotResources};

impl Jar {
    /// Whether a tool of the jar may call other tools: its manifest requests some that the jar's rights
    /// include.
    pub fn may_call_others(&self, tool: &str) -> bool {
        let slot = self.names.get(tool).and_then(|(slot, _)| self.slots.get(*slot));
        slot.is_some_and(|slot| !self.slot_resources(slot).rights.peer_tools().is_empty())
    }

    /// The tools that a call of the component in slot `at` may call.
    pub(super) fn peer_reach(
        &self,
        at: usize,
        given: &SlotResources,
        within: Option<&NestedScope>,
        peers: Option<Arc<dyn PeerPort>>,
    ) -> PeerReach {
        let Some(peers) = peers.filter(|_| !given.rights.peer_tools().is_empty()) else {
            return PeerReach::Nobody;
        };
        let limits = given.rights.limits();
        let most = NestLimits { depth: limits.call_depth, calls: limits.nested_calls };
        let own = self.names.iter().filter(|(_, (slot, _))| *slot == at);
        let own = own.map(|(name, _)| name.clone());
        let allowed = given.rights.peer_tools().clone();
        match NestBounds::new(at, own, allowed, within, most, &self.cancel) {
            Some(nest) => PeerReach::Open(peers, Arc::new(nest)),
            None => PeerReach::TooDeep(most.depth),
        }
    }
}

/// INV-233: the error text for a nested call of a component that waits for that call.
pub(super) fn waits_for_itself(tool: &ToolName) -> String {
    format!("`{tool}` cannot be called from here: its component is waiting for this very call")
}
