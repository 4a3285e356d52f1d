//! The decision whether an agent may call a tool, with the source that decided. Runs, `belljar explain`,
//! `agents check` and the API all use this decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use belljar_catalogue::{SkillLibrary, ToolCatalogue};
use belljar_definition::AgentDefinition;
use belljar_policy::{
    DecisionExplanation, DecisionSource, Mount, MountAccess, NarrowingNote, Rights, ShownText,
    SourceStance, SourceVote, ToolName,
};

use crate::prompt::skills::{SkillCaller, offered_skills};
use crate::tools::builtin::tool::{AgentDepth, BuiltinTool};

/// Where the reason of a decision can come from, besides the rights.
#[derive(Debug, Clone, Default)]
pub(crate) struct DecisionReasons {
    /// The agent's definition, whose lines a refusal names.
    pub(crate) definition: Option<Arc<AgentDefinition>>,
    /// The known tools; `None` = every name counts as known.
    pub(crate) tools: Option<Arc<ToolCatalogue>>,
    /// Tools that exist but are not offered to the agent, each with the reason.
    pub(crate) left_out: BTreeMap<ToolName, String>,
    /// Tools that only agents with overlays have by default, each with the reason why this agent lacks it.
    pub(crate) for_overlays: Arc<BTreeMap<ToolName, &'static str>>,
}

/// Why an agent lacks such a tool: the settings allow no overlays.
pub(crate) const NO_OVERLAYS: &str = "by default it is there for overlays, and `overlay = \"never\"` \
under `[agents]` leaves none";

/// Why an agent lacks such a tool: it writes to a directory itself, not to an overlay.
pub(crate) const NO_OVERLAY_HERE: &str = "by default it is there for overlays, and `mounts` makes a \
directory itself writable: name it under `add_tools`";

impl DecisionReasons {
    /// Decides whether the agent may call a tool that a model named, and names the source.
    pub(crate) fn decide_tool(&self, rights: &Rights, tool: &str) -> DecisionExplanation {
        if self.tools.as_ref().is_some_and(|tools| !tools.knows_tool(tool)) {
            return DecisionExplanation::for_unknown_tool();
        }
        let mut decision = rights.explain_decision(tool);
        if let Some(definition) = &self.definition {
            name_the_field(&mut decision, definition, tool);
        }
        if let Some(no_overlay) = self.for_overlays.get(tool) {
            let grants = |vote: &&mut SourceVote| {
                vote.source == DecisionSource::Grants && vote.stance == SourceStance::Refuses
            };
            for vote in decision.votes.iter_mut().filter(grants) {
                vote.why = format!("{}: {no_overlay}", vote.why);
            }
        }
        let lacks = self.tools.as_ref().and_then(|tools| tools.withheld_reason(tool));
        match lacks.or_else(|| self.left_out.get(tool).cloned()) {
            Some(why) => decision.with_refusal(why),
            None => decision,
        }
    }
}

/// Returns whether the library has a skill that a model may load.
pub(crate) fn has_skills(skills: &SkillLibrary) -> bool {
    offered_skills(skills.catalog().entries(), SkillCaller::Model).next().is_some()
}

/// What decides which built-in tools an agent is offered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfferConditions {
    /// The agent's depth in the run.
    pub(crate) depth: AgentDepth,
    /// True if the agent may delegate to some agent.
    pub(crate) delegates: bool,
    /// True if the agent may load some skill.
    pub(crate) skills: bool,
    /// True if one of the agent's directories is an overlay.
    pub(crate) overlays: bool,
    /// True if the agent's file names the worktree tool.
    pub(crate) names_worktree: bool,
}

impl OfferConditions {
    /// The conditions for an agent at this depth. `delegates` and `skills` are filled in by the caller.
    pub(crate) fn for_agent(
        definition: &AgentDefinition,
        rights: &Rights,
        depth: AgentDepth,
    ) -> Self {
        let asked = definition.asked.tools.as_ref();
        let overlay = |mount: &Mount| mount.access == MountAccess::Overlay;
        Self {
            depth,
            delegates: false,
            skills: false,
            overlays: rights.mounts().iter().any(overlay),
            names_worktree: asked.is_some_and(|tools| {
                tools.iter().any(|tool| tool.as_str() == BuiltinTool::Worktree.name())
            }),
        }
    }
}

/// Why a built-in tool is not offered to an agent; `None` = it is offered if granted.
pub(crate) fn left_out(tool: BuiltinTool, means: OfferConditions) -> Option<&'static str> {
    if !means.depth.offers_tool(tool) {
        return Some("it is not offered at this depth of a run");
    }
    match tool {
        BuiltinTool::Skill if !means.skills => Some("there is no skill to load"),
        BuiltinTool::Worktree if !means.names_worktree => {
            Some("it is offered to agents whose file asks for it by name")
        }
        BuiltinTool::Worktree if !means.overlays => Some("the agent has no overlay"),
        tool if tool.is_delegation() && !means.delegates => {
            Some("there is no agent to hand work to")
        }
        _ => None,
    }
}

/// Names in a decision the line of the agent's own file that withholds a tool or requires a question.
pub(crate) fn name_the_field(
    decision: &mut DecisionExplanation,
    definition: &AgentDefinition,
    tool: &str,
) {
    let by = definition.decided_by(tool);
    let withheld = |vote: &&mut SourceVote| {
        let (SourceStance::Refuses | SourceStance::Asks) = vote.stance else { return false };
        vote.source == DecisionSource::Definition
    };
    for vote in decision.votes.iter_mut().filter(withheld) {
        if let Some(it) = definition.not_kept.first() {
            vote.why = format!("line {}, `{}`, is not understood", it.line, it.text);
        } else if let Some(by) = by {
            let field = ShownText::clip_line(&by.field, 64);
            vote.why = format!("{}: `{field}` on line {}", vote.why, by.line);
        }
    }
}

/// The tools that an agent requests by name and is granted, but that belljar gives to no agent.
pub(crate) fn find_withheld(
    tools: &ToolCatalogue,
    definition: &AgentDefinition,
    rights: &Rights,
) -> Vec<NarrowingNote> {
    let asked = definition.asked.tools.iter().flatten();
    let granted = asked.filter(|tool| rights.has_tool(tool.as_str()));
    granted
        .filter_map(|tool| {
            Some(NarrowingNote::for_withheld_tool(
                tool.clone(),
                tools.withheld_reason(tool.as_str())?,
            ))
        })
        .collect()
}
