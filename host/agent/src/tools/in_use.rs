//! The tools of an agent that uses skills: those of its rights that each skill in use leaves.
//!
//! A skill is in use from the step behind the call that loaded it to the end of the turn. Its list is intersected
//! with the agent's rights by `policy`, so several skills narrow together, and none adds a tool. The state follows
//! from the answers in the conversation, so it is the same after a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_catalogue::{SkillLibrary, ToolCatalogue};
use belljar_definition::UseTerms;
use belljar_policy::{
    AskedRights, DecisionSource, Grants, Rights, SourceStance, SourceVote, ToolName,
};

use crate::called::find_called;

/// The means by which the terms of a skill narrow rights.
#[derive(Clone)]
pub(crate) struct SkillNarrowing {
    pub(crate) skills: Arc<SkillLibrary>,
    pub(crate) tools: Arc<ToolCatalogue>,
    pub(crate) grants: Grants,
}

impl SkillNarrowing {
    /// The rights that are left while a skill is in use; `None` = unchanged.
    pub(crate) fn narrow_by_skill(&self, rights: &Rights, name: &str) -> Option<Rights> {
        let catalog = self.skills.catalog();
        let skill = find_called(&catalog, name).ok()?;
        let what = format!("skill `{}`, which is in use in this turn", skill.id.slug);
        self.narrow_by_terms(rights, &skill.definition.terms, &what)
    }

    /// The rights that these terms leave; `None` = unchanged. `what` explains refusals.
    pub(crate) fn narrow_by_terms(
        &self,
        rights: &Rights,
        terms: &UseTerms,
        what: &str,
    ) -> Option<Rights> {
        let asked = terms.remaining_tools(&self.tools.known_tools())?;
        let (left, _) = rights.attenuate_for_child(&asked, &self.grants);
        let lost = rights.offered_tools().map(|(name, _)| name);
        let lost = lost.filter(|name| !left.has_tool(name.as_str()));
        let vote = |name: &ToolName| {
            let why = format!("the {what}, does not leave it");
            let vote = SourceVote {
                source: DecisionSource::Definition,
                stance: SourceStance::Refuses,
                why,
            };
            (name.clone(), vote)
        };
        let bars: BTreeMap<ToolName, SourceVote> = lost.map(vote).collect();
        Some(left.with_explanation(&AskedRights::default(), bars))
    }
}

impl std::fmt::Debug for SkillNarrowing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillNarrowing").finish_non_exhaustive()
    }
}
