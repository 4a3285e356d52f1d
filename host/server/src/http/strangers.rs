//! Refused calls in the audit log: one line for each refused caller with a valid key, and counts for
//! strangers.
//!
//! A stranger's refusal gets no line of its own, so strangers can neither fill the log nor use up
//! others' storage. Their counts have no name, because they proved no key. If a known caller is refused
//! often, its further refusals are only counted too, under the caller's name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::app::App;
use crate::http::problem::ProblemKind;
use crate::http::rate::RateVerdict;
use crate::http::turned_away::{ProvenCaller, TenantIdentity};

/// The name in the audit log for callers without a proven key.
const NOBODY: &str = "nobody";

/// The most lines about refusals of one key per minute, and at once.
pub(crate) const LINES_PER_MINUTE: u32 = 60;

/// The most names (tenants and keys) with counted refusals at a time. Refusals of further names count
/// as those of strangers, in the operator's tenant.
const MAX_COUNTED: usize = 10_000;

/// The default interval in which counts are written as lines.
pub const DEFAULT_STRANGER_NOTES: Duration = Duration::from_secs(60);

/// The default number of days for which lines of the audit log are kept.
pub const DEFAULT_AUDIT_DAYS: u32 = 365;

/// The interval in which expired lines are deleted.
const PRUNE_EVERY: Duration = Duration::from_secs(60 * 60);

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// The tenant whose log gets the count, and the refused caller's name; `None` for a stranger. INV-157:
/// the tenant's id is part of it, so a later tenant of the same name gets no refusals of its
/// predecessor.
type Refused = (TenantIdentity, Option<Arc<str>>);

/// Counted refusals that have no line yet: their number by kind of problem.
#[derive(Debug, Default)]
pub(crate) struct RefusalCounts(Mutex<BTreeMap<Refused, BTreeMap<&'static str, u64>>>);

impl RefusalCounts {
    /// Counts a refusal. If there are too many names, it counts as one of a stranger in the operator's
    /// tenant.
    fn add_refusal(&self, whose: Refused, kind: ProblemKind) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = counts.len() >= MAX_COUNTED;
        let one = match counts.entry(whose) {
            Entry::Occupied(own) => own.into_mut(),
            Entry::Vacant(free) if !full => free.insert(BTreeMap::new()),
            Entry::Vacant(_) => {
                counts.entry((TenantIdentity::operator_tenant(), None)).or_default()
            }
        };
        let count = one.entry(kind.table_row().name).or_default();
        *count = count.saturating_add(1);
    }

    fn drain_counts(&self) -> BTreeMap<Refused, BTreeMap<&'static str, u64>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl App {
    /// Writes a line for the refusal of a caller with a proven key, or counts it if there were too
    /// many.
    pub(crate) async fn record_refusal(
        &self,
        who: ProvenCaller<'_>,
        object: &str,
        kind: ProblemKind,
    ) {
        if matches!(
            self.refusal_rates().spend_one(who.bounded_as, Instant::now()),
            RateVerdict::After(_)
        ) {
            let whose = TenantIdentity { name: who.tenant.into(), id: who.tenant_id.into() };
            return self.refusal_counts().add_refusal((whose, Some(who.bounded_as.into())), kind);
        }
        let detail = json!({ "why": kind.table_row().name });
        let store = self.store().for_tenant_id(who.tenant, who.tenant_id);
        self.audit_of(&store, who.actor, "refused", object.to_owned(), detail).await;
    }

    /// Counts the refusal of a stranger. `claimed` is the tenant of the key that the stranger named.
    pub(crate) fn count_stranger(&self, claimed: Option<TenantIdentity>, kind: ProblemKind) {
        self.metrics().count_stranger();
        self.refusal_counts()
            .add_refusal((claimed.unwrap_or_else(TenantIdentity::operator_tenant), None), kind);
    }

    /// Writes the counts as lines: one for each tenant and caller.
    pub(crate) async fn write_counts(&self) {
        for ((tenant, actor), counts) in self.refusal_counts().drain_counts() {
            let all = counts.values().fold(0_u64, |all, count| all.saturating_add(*count));
            let (actor, action) = match &actor {
                Some(actor) => (&**actor, "refused"),
                None => (NOBODY, "strangers"),
            };
            let detail = json!({ "counts": counts });
            let store = self.store().for_tenant_id(&tenant.name, &tenant.id);
            self.audit_of(&store, actor, action, format!("{all} requests"), detail).await;
        }
    }

    /// Writes counts and deletes expired lines in intervals, until dropped.
    pub(crate) async fn keep_audit(self) {
        let mut notes = interval(self.config().stranger_notes);
        let mut looks = interval(PRUNE_EVERY);
        notes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = notes.tick() => self.write_counts().await,
                _ = looks.tick() => self.prune_audit().await,
            }
        }
    }

    /// Deletes the lines of the audit log that are older than the configured days.
    async fn prune_audit(&self) {
        let kept = DAY.saturating_mul(self.config().audit_days.into());
        let before = self.now_millis().saturating_sub(kept);
        match self.store().tenant_registry().prune_audit(before).await {
            Ok(0) => {}
            Ok(lines) => {
                tracing::info!(lines, "lines of the audit log are gone: their time is over")
            }
            Err(error) => tracing::error!(%error, "the audit log cannot be pruned"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_without_number_take_no_more_room_than_there_is() {
        let counts = RefusalCounts::default();
        for number in 0..MAX_COUNTED + 50 {
            let name: Arc<str> = number.to_string().into();
            counts.add_refusal(
                (TenantIdentity { id: Arc::clone(&name), name }, None),
                ProblemKind::NoKey,
            );
        }
        let taken = counts.drain_counts();
        assert_eq!(taken.len(), MAX_COUNTED + 1);
        assert_eq!(taken[&(TenantIdentity::operator_tenant(), None)]["no-key"], 50);
        assert!(counts.drain_counts().is_empty());
    }
}
