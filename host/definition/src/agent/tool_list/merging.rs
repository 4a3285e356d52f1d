//! Two fields that narrow permissions, merged.

use std::collections::{BTreeMap, BTreeSet};

use belljar_policy::{CallPermission, ToolName};

/// Lowers permissions by those of another field: a tool keeps the lower one of both, and so do unnamed tools.
pub(super) fn merge_lowest(
    at_most: &mut BTreeMap<ToolName, CallPermission>,
    rest: &mut Option<CallPermission>,
    named: &BTreeMap<ToolName, CallPermission>,
    others: Option<CallPermission>,
) {
    let both = |a: Option<CallPermission>, b: Option<CallPermission>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    // A tool that only `at_most` names keeps its permission, unless the new field has a rule for
    // all unnamed tools.
    let before = at_most.keys().filter(|_| others.is_some());
    let names: BTreeSet<ToolName> = before.chain(named.keys()).cloned().collect();
    for name in names {
        let before = at_most.get(&name).copied().or(*rest);
        let said = named.get(&name).copied().or(others);
        if let Some(most) = both(before, said) {
            at_most.insert(name, most);
        }
    }
    *rest = both(*rest, others);
}
