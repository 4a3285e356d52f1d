//! Which tools an agent may call while it uses skills: of its rights, those that each skill in use allows.
//!
//! A skill is in use from the step after the call that loaded it until the turn ends. `policy` intersects its
//! list of tools with the agent's rights, so several skills narrow together and none adds a tool. Which
//! skills are in use follows from the answers in the conversation, so a restart does not change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_catalogue::{SkillLibrary, ToolCatalogue};
use belljar_definition::UseTerms;
use belljar_policy::{
    AskedRights, DecisionSource, Grants, Rights, ShownText, SourceStance, SourceVote, ToolName,
};

use crate::called::{closed_terms, find_called};

/// Characters of a name in the reason of a refusal.
const MAX_NAME: usize = 80;

/// What is needed to narrow rights by the terms of a skill.
#[derive(Clone)]
pub(crate) struct SkillNarrowing {
    pub(crate) skills: Arc<SkillLibrary>,
    pub(crate) tools: Arc<ToolCatalogue>,
    pub(crate) grants: Grants,
}

impl SkillNarrowing {
    /// The rights that are left while a skill is in use; `None` = unchanged. INV-653: a skill that is gone since it
    /// was loaded leaves no tool that acts.
    pub(crate) fn narrow_by_skill(&self, rights: &Rights, name: &str) -> Option<Rights> {
        let catalog = self.skills.catalog();
        let Ok(skill) = find_called(&catalog, name) else {
            let name = ShownText::clip_line(name, MAX_NAME);
            let what = format!("skill `{name}`, which is in use in this turn and was removed");
            return self.narrow_by_terms(rights, &closed_terms(), &what);
        };
        let what = format!("skill `{}`, which is in use in this turn", skill.id.slug);
        self.narrow_by_terms(rights, &skill.definition.terms, &what)
    }

    /// The rights that these terms leave; `None` = unchanged. `what` names the skill in refusals.
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
