//! The plan for one agent: what its context lists, what its tools find, and what is left of the budget.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use belljar_model::ToolSpec;
use belljar_policy::ToolName;

use crate::finding::answers::entry_line;
use crate::finding::catalogue::{EntryKind, SearchCatalogue, without_examples};
use crate::limits::{BYTES_PER_TOKEN, MAX_LISTED_AGENTS, MAX_LISTED_SKILLS};

/// Tokens for the fixed texts of a kind whose entries are found: the specification of its finder, the heading
/// of its list, and its share of the note's heading.
const FIXED_TOKENS: u64 = 170;

/// Tokens that are kept for what fits a message, where the budget has them.
const MATCHED_TOKENS: u64 = 400;

/// An agent, a skill or a tool that the agent may use.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) kind: EntryKind,
    /// The name for calls.
    pub(crate) name: String,
    /// The description in one line, without examples. A stranger's text.
    pub(crate) about: String,
    /// True if it is the operator's or the workspace's, not a library's or a server's.
    own: bool,
    /// Tokens of its whole entry in the context.
    whole_tokens: u64,
    /// Its place in the catalogue of the search.
    pub(crate) position: Option<usize>,
}

/// The plan.
#[derive(Debug, Default)]
pub(crate) struct LibraryPlan {
    /// The kinds with more entries than the budget has room for.
    deferred: BTreeSet<EntryKind>,
    /// Everything that the agent may use, whatever is listed.
    candidates: Vec<Candidate>,
    /// The names that the system part lists, of the deferred kinds.
    listed: BTreeSet<(EntryKind, String)>,
    /// Tokens for the note behind a message.
    left_tokens: u64,
    /// The catalogue of the search.
    pub(crate) catalogue: Arc<SearchCatalogue>,
    /// The specifications of tools that are loaded when found, by the model's name.
    pub(crate) tools: BTreeMap<String, ToolSpec>,
}

/// The limits of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanBounds<'a> {
    /// Tokens for all lists, notes and finders together.
    pub(crate) budget: u64,
    /// Names that come first.
    pub(crate) pinned: &'a [String],
}

/// The number of tokens estimated for `bytes`, as for the history of a session.
pub(crate) fn estimate_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX).div_ceil(BYTES_PER_TOKEN)
}

impl Candidate {
    pub(crate) fn from_tool(spec: &ToolSpec) -> Self {
        let bytes = spec.name.len() + spec.description.len() + spec.schema.to_string().len();
        Self::new(EntryKind::Tool, &spec.name, &spec.description, false, bytes)
    }

    /// An entry whose description and name take so many bytes where it is listed whole. `own`: the operator's or
    /// the workspace's.
    pub(crate) fn new(
        kind: EntryKind,
        name: &str,
        description: &str,
        own: bool,
        bytes: usize,
    ) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            about: without_examples(description),
            own,
            whole_tokens: estimate_tokens(bytes + 40),
            position: None,
        }
    }

    /// Tokens of its line in a list.
    pub(crate) fn line_tokens(&self) -> u64 {
        estimate_tokens(entry_line(self).len() + 1)
    }

    /// Tokens of its place in the system part, or in the list of tools.
    fn listed_tokens(&self) -> u64 {
        match self.kind {
            EntryKind::Tool => self.whole_tokens,
            EntryKind::Agent | EntryKind::Skill => self.line_tokens(),
        }
    }
}

impl LibraryPlan {
    /// Divides the budget. Kinds that fit are listed whole, the smallest first. Of the others the system part
    /// lists the pinned entries, then the operator's own; the rest is found.
    pub(crate) fn divide(
        mut candidates: Vec<Candidate>,
        catalogue: impl FnOnce() -> Arc<SearchCatalogue>,
        bounds: PlanBounds<'_>,
    ) -> Self {
        let mut kinds: Vec<(u64, EntryKind)> =
            EntryKind::ALL.map(|kind| (whole_cost(&candidates, kind), kind)).into();
        kinds.retain(|(cost, _)| *cost > 0);
        kinds.sort();
        let mut left = bounds.budget;
        let mut deferred = BTreeSet::new();
        let all: u64 = kinds.iter().fold(0, |sum, (cost, _)| sum.saturating_add(*cost));
        for (place, (cost, kind)) in kinds.iter().enumerate() {
            let share = left / u64::try_from(kinds.len() - place).unwrap_or(1);
            match all <= bounds.budget || *cost <= share {
                true => left = left.saturating_sub(*cost),
                false => drop(deferred.insert(*kind)),
            }
        }
        for _ in &deferred {
            left = left.saturating_sub(FIXED_TOKENS);
        }
        if deferred.is_empty() {
            return Self { candidates, ..Self::default() };
        }
        let catalogue = catalogue();
        for candidate in &mut candidates {
            candidate.position = catalogue.position_of(candidate.kind, &candidate.name);
        }
        let mut plan = Self { deferred, candidates, catalogue, ..Self::default() };
        plan.list_entries(left, bounds.pinned);
        plan
    }

    /// Chooses the entries of the system part: by the settings and the catalogue alone (INV-671).
    fn list_entries(&mut self, mut left: u64, pinned: &[String]) {
        // A few entries with long descriptions: all of them fit by their short lines.
        let is_small = |kind: &EntryKind| {
            let cost = self.candidates_of(*kind).map(Candidate::listed_tokens);
            cost.fold(MATCHED_TOKENS, u64::saturating_add) <= left
        };
        let small: BTreeSet<EntryKind> = self.deferred_kinds().filter(is_small).collect();
        let pins = pinned.iter().flat_map(|name| {
            self.candidates.iter().filter(move |it| it.name == *name).map(|it| (it, true))
        });
        let own = self.candidates.iter().filter(|it| it.own).map(|it| (it, false));
        let rest = self.candidates.iter().filter(|it| small.contains(&it.kind));
        let rest = rest.map(|it| (it, false));
        let mut listed = BTreeSet::new();
        for (candidate, pinned) in pins.chain(own).chain(rest) {
            let key = (candidate.kind, candidate.name.clone());
            if !self.deferred.contains(&candidate.kind) || listed.contains(&key) {
                continue;
            }
            let cost = candidate.listed_tokens();
            let kept = if pinned { 0 } else { MATCHED_TOKENS };
            if left >= cost.saturating_add(kept) {
                left -= cost;
                listed.insert(key);
            }
        }
        (self.listed, self.left_tokens) = (listed, left);
    }

    /// Returns whether entries of this kind are found instead of being listed whole.
    pub(crate) fn defers(&self, kind: EntryKind) -> bool {
        self.deferred.contains(&kind)
    }

    /// The kinds whose entries are found.
    pub(crate) fn deferred_kinds(&self) -> impl Iterator<Item = EntryKind> {
        self.deferred.iter().copied()
    }

    /// Tokens for the note behind a message.
    pub(crate) fn note_tokens(&self) -> u64 {
        self.left_tokens
    }

    /// Returns whether a tool's specification is in the first request although others wait.
    pub(crate) fn lists_tool(&self, name: &ToolName) -> bool {
        self.listed.contains(&(EntryKind::Tool, name.to_string()))
    }

    /// Returns whether the agent has entries of this kind that nothing shows before they are found.
    pub(crate) fn hides(&self, kind: EntryKind) -> bool {
        self.candidates_of(kind).any(|it| !self.is_listed(it))
    }

    /// All entries of a kind that the agent may use.
    pub(crate) fn candidates_of(&self, kind: EntryKind) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(move |it| it.kind == kind)
    }

    /// The entries of a deferred kind in the system part.
    pub(crate) fn listed_of(&self, kind: EntryKind) -> Vec<&Candidate> {
        self.candidates_of(kind).filter(|it| self.is_listed(it)).collect()
    }

    /// Returns whether the system part, or the list of tools, has the entry.
    pub(crate) fn is_listed(&self, candidate: &Candidate) -> bool {
        !self.defers(candidate.kind)
            || self.listed.contains(&(candidate.kind, candidate.name.clone()))
    }

    /// The permitted entry at a place of the catalogue.
    pub(crate) fn candidate_at(&self, kind: EntryKind, position: usize) -> Option<&Candidate> {
        self.candidates_of(kind).find(|it| it.position == Some(position))
    }
}

/// Tokens of all entries of a kind in full; more than any budget where the context would cut their list.
fn whole_cost(candidates: &[Candidate], kind: EntryKind) -> u64 {
    let of = || candidates.iter().filter(move |it| it.kind == kind);
    let most = match kind {
        EntryKind::Agent => MAX_LISTED_AGENTS,
        EntryKind::Skill => MAX_LISTED_SKILLS,
        EntryKind::Tool => usize::MAX,
    };
    match of().count() > most {
        true => u64::MAX,
        false => of().fold(0, |sum, it| sum.saturating_add(it.whole_tokens)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(kind: EntryKind, count: usize, own: bool, words: usize) -> Vec<Candidate> {
        let about = "word ".repeat(words);
        let one = |n| {
            let name = format!("{}-{own}-{n:04}", kind.plural());
            Candidate::new(kind, &name, &about, own, about.len() + name.len())
        };
        (0..count).map(one).collect()
    }

    fn plan(candidates: Vec<Candidate>, pinned: &[String]) -> LibraryPlan {
        LibraryPlan::divide(candidates, Arc::default, PlanBounds { budget: 1_500, pinned })
    }

    #[test]
    fn what_fits_is_listed_whole() {
        let mut all = candidates(EntryKind::Agent, 4, true, 20);
        all.extend(candidates(EntryKind::Skill, 3, true, 20));
        let plan = plan(all, &[]);
        assert_eq!(plan.deferred_kinds().count(), 0);
        assert!(plan.candidates.iter().all(|it| plan.is_listed(it)));
    }

    #[test]
    fn a_large_kind_is_found_and_the_small_ones_beside_it_stay() {
        let mut all = candidates(EntryKind::Agent, 2_000, false, 60);
        all.extend(candidates(EntryKind::Skill, 3, true, 10));
        all.extend(candidates(EntryKind::Tool, 4, false, 20));
        let plan = plan(all, &[]);
        assert_eq!(plan.deferred_kinds().collect::<Vec<_>>(), [EntryKind::Agent]);
        assert!(plan.note_tokens() >= MATCHED_TOKENS, "{}", plan.note_tokens());
        assert!(plan.listed_of(EntryKind::Agent).is_empty());
    }

    #[test]
    fn the_lists_stay_within_the_budget_and_pinned_entries_come_before_own_ones() {
        let mut all = candidates(EntryKind::Agent, 2_000, false, 60);
        all.extend(candidates(EntryKind::Agent, 100, true, 60));
        all.extend(candidates(EntryKind::Skill, 500, false, 60));
        all.extend(candidates(EntryKind::Tool, 300, false, 60));
        let pinned = ["agents-false-1999".to_owned(), "nobody".to_owned()];
        let plan = plan(all, &pinned);
        assert_eq!(plan.deferred_kinds().count(), 3);
        let listed: Vec<_> = EntryKind::ALL.iter().flat_map(|kind| plan.listed_of(*kind)).collect();
        let names: Vec<_> = listed.iter().map(|it| it.name.as_str()).collect();
        assert!(
            names.contains(&"agents-false-1999") && names.contains(&"agents-true-0000"),
            "{names:?}"
        );
        let cost: u64 = listed.iter().map(|it| it.line_tokens()).sum();
        assert!(cost + plan.note_tokens() + 3 * FIXED_TOKENS <= 1_500, "{cost}");
        assert!(plan.note_tokens() >= MATCHED_TOKENS);
    }

    #[test]
    fn a_budget_of_nothing_lists_nothing() {
        let all = candidates(EntryKind::Agent, 3, true, 20);
        let bounds = PlanBounds { budget: 0, pinned: &[] };
        let plan = LibraryPlan::divide(all, Arc::default, bounds);
        assert!(plan.defers(EntryKind::Agent) && plan.note_tokens() == 0);
        assert!(plan.listed_of(EntryKind::Agent).is_empty());
    }
}
