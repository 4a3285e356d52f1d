//! The plan of an agent's context: the listed agents, skills and tools, the ones left to a search, and the
//! tokens left for a note.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use belljar_model::ToolSpec;
use belljar_policy::ToolName;

use crate::finding::answers::entry_line;
use crate::finding::catalogue::{EntryKind, SearchCatalogue, without_examples};
use crate::limits::{BYTES_PER_TOKEN, MAX_LISTED_AGENTS, MAX_LISTED_SKILLS};

/// Tokens of the fixed texts that a deferred kind needs: the specification of its search tool, the heading of
/// its list, and a share of the note's heading.
const FIXED_TOKENS: u64 = 170;

/// Tokens kept for the note about library entries that fit a message, if the budget has them.
const MATCHED_TOKENS: u64 = 400;

/// An agent, a skill or a tool that the agent may use, with the cost of listing it.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) kind: EntryKind,
    /// The name by which a model calls it.
    pub(crate) name: String,
    /// The description in one line, without examples. A stranger's text.
    pub(crate) about: String,
    /// True if it is the operator's or the workspace's; false if it is a library's or a server's.
    own: bool,
    /// Tokens of its whole entry in the context, with the full description.
    whole_tokens: u64,
    /// Its position in the search catalogue; `None` = it cannot be found by a search.
    pub(crate) position: Option<usize>,
}

/// The plan for an agent.
#[derive(Debug, Default)]
pub(crate) struct LibraryPlan {
    /// The kinds that have more entries than the budget has room for: a search finds what the context does
    /// not list.
    deferred: BTreeSet<EntryKind>,
    /// Everything that the agent may use, whatever is listed.
    candidates: Vec<Candidate>,
    /// The entries of deferred kinds that the system prompt lists, by kind and name.
    listed: BTreeSet<(EntryKind, String)>,
    /// Tokens left for the note behind a message.
    left_tokens: u64,
    /// The catalogue of the search.
    pub(crate) catalogue: Arc<SearchCatalogue>,
    /// Specifications by the model's tool name, loaded into the request when a search has found the tool.
    pub(crate) tools: BTreeMap<String, ToolSpec>,
}

/// The limits within which a plan is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanBounds<'a> {
    /// Tokens for all lists, notes and finders together.
    pub(crate) budget: u64,
    /// Names of entries that are listed before others, by the settings.
    pub(crate) pinned: &'a [String],
}

/// Estimates the tokens of a text of this many bytes, in the same way as for a session's history.
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

    /// Tokens of its short line in a list.
    pub(crate) fn line_tokens(&self) -> u64 {
        estimate_tokens(entry_line(self).len() + 1)
    }

    /// Tokens of its entry if listed: a line of the system prompt, or for a tool its whole specification.
    fn listed_tokens(&self) -> u64 {
        match self.kind {
            EntryKind::Tool => self.whole_tokens,
            EntryKind::Agent | EntryKind::Skill => self.line_tokens(),
        }
    }
}

impl LibraryPlan {
    /// Divides the token budget. A kind whose entries all fit is listed whole, the smallest kind first. Of
    /// the other kinds, the system prompt lists the pinned entries, then the operator's own; a search finds
    /// the rest.
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

    /// Chooses which entries of the deferred kinds the system prompt lists, within `left` tokens. The choice
    /// depends only on the settings and the catalogue (INV-671).
    fn list_entries(&mut self, mut left: u64, pinned: &[String]) {
        // A kind with few entries but long descriptions is listed whole by short lines.
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

    /// Returns whether this kind is deferred: a search finds its entries, and the context does not list all
    /// in full.
    pub(crate) fn defers(&self, kind: EntryKind) -> bool {
        self.deferred.contains(&kind)
    }

    /// The kinds that are deferred.
    pub(crate) fn deferred_kinds(&self) -> impl Iterator<Item = EntryKind> {
        self.deferred.iter().copied()
    }

    /// Tokens for the note behind a message.
    pub(crate) fn note_tokens(&self) -> u64 {
        self.left_tokens
    }

    /// Returns whether the first request has this tool's specification although other tools are deferred.
    pub(crate) fn lists_tool(&self, name: &ToolName) -> bool {
        self.listed.contains(&(EntryKind::Tool, name.to_string()))
    }

    /// Returns whether some entries of this kind are in no list and must be found by a search.
    pub(crate) fn hides(&self, kind: EntryKind) -> bool {
        self.candidates_of(kind).any(|it| !self.is_listed(it))
    }

    /// All entries of a kind that the agent may use.
    pub(crate) fn candidates_of(&self, kind: EntryKind) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter().filter(move |it| it.kind == kind)
    }

    /// The entries of a deferred kind that the system prompt lists.
    pub(crate) fn listed_of(&self, kind: EntryKind) -> Vec<&Candidate> {
        self.candidates_of(kind).filter(|it| self.is_listed(it)).collect()
    }

    /// Returns whether the first request shows the entry.
    pub(crate) fn is_listed(&self, candidate: &Candidate) -> bool {
        !self.defers(candidate.kind)
            || self.listed.contains(&(candidate.kind, candidate.name.clone()))
    }

    /// The entry at this position of the search catalogue, if the agent may use it.
    pub(crate) fn candidate_at(&self, kind: EntryKind, position: usize) -> Option<&Candidate> {
        self.candidates_of(kind).find(|it| it.position == Some(position))
    }
}

/// Tokens of all entries of a kind in full. If the context's own limit would cut the list, a number larger
/// than any budget.
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

    /// Candidates of one kind with descriptions of `words` words each.
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
