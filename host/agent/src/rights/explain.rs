//! The decision about an agent before a run, as if a person started it now.

use std::path::Path;
use std::sync::Arc;

use belljar_policy::{
    CallPermission, DecisionExplanation, DecisionSource, RightsQuestion, ShownText, SourceStance,
    SourceVote, ToolAsk, ToolName, explain_tool,
};

use crate::host::Host;
use crate::rights::decide::{
    DecisionReasons, OfferConditions, has_skills, left_out, name_the_field,
};
use crate::rights::delegates::DelegateSet;
use crate::rights::resolve::ResolvedAgent;
use crate::tools::builtin::tool::{AgentDepth, BuiltinTool};

/// Most characters of an agent's name that are repeated in a text.
const MAX_NAME: usize = 80;

impl ResolvedAgent {
    /// Decides whether the agent may use a tool on a target if a person starts it in the workspace, and
    /// names the source. If the call itself is refused, the target does not matter. `manifest` is what the
    /// tool requests.
    pub fn explain_tool(
        &self,
        host: &Host,
        workspace: &Path,
        tool: &str,
        question: &RightsQuestion,
        manifest: &ToolAsk,
    ) -> DecisionExplanation {
        let called = self.may_call(host, workspace, tool);
        if called.permission == CallPermission::Deny || *question == RightsQuestion::Call {
            return called;
        }
        let asked = &self.definition.asked;
        let mut reached = explain_tool(tool, question, asked, manifest, &self.grants, None);
        name_the_field(&mut reached, &self.definition, tool);
        reached
    }

    /// Like [`Self::explain_tool`] for several tools, in order; common parts are computed once.
    pub fn explain_tools(
        &self,
        host: &Host,
        workspace: &Path,
        tools: &[String],
    ) -> Vec<DecisionExplanation> {
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let reasons = self.reasons_for(host, workspace, &tools);
        tools.into_iter().map(|tool| reasons.decide_tool(&self.rights, tool)).collect()
    }

    fn may_call(&self, host: &Host, workspace: &Path, tool: &str) -> DecisionExplanation {
        self.reasons_for(host, workspace, &[tool]).decide_tool(&self.rights, tool)
    }

    /// The sources that explain decisions about these tools.
    fn reasons_for(&self, host: &Host, workspace: &Path, tools: &[&str]) -> DecisionReasons {
        let depth = AgentDepth::for_root(host.settings.subagents.max_depth)
            .with_bound(self.definition.subagents.as_ref());
        let means = OfferConditions {
            delegates: !self.possible_delegates(host, workspace).is_empty(),
            skills: has_skills(&host.skills),
            ..OfferConditions::for_agent(&self.definition, &self.rights, depth)
        };
        let left_out = tools.iter().filter_map(|tool| {
            let why = left_out(BuiltinTool::from_name(tool)?, means)?;
            Some((ToolName::new(tool).ok()?, why.to_owned()))
        });
        DecisionReasons {
            definition: Some(Arc::clone(&self.definition)),
            tools: Some(Arc::clone(&host.tools)),
            left_out: left_out.collect(),
            for_overlays: Arc::clone(&self.for_overlays),
        }
    }

    /// As [`Self::explain_tool`], for delegating to the agent `name`.
    pub fn may_hand_to(
        &self,
        host: &Host,
        workspace: &Path,
        tool: &str,
        name: &str,
    ) -> DecisionExplanation {
        let mut called = self.may_call(host, workspace, tool);
        if called.permission == CallPermission::Deny {
            return called;
        }
        let delegates = self.possible_delegates(host, workspace);
        if delegates.find_agent(name).is_some() {
            return called;
        }
        let source = delegates.refused_by(host, name);
        let name = ShownText::clip_line(name, MAX_NAME);
        let why = match source {
            DecisionSource::Definition => format!("its file does not let it call `{name}`"),
            DecisionSource::Grants => format!("the operator does not let it call `{name}`"),
            DecisionSource::Host
            | DecisionSource::Manifest
            | DecisionSource::Parent
            | DecisionSource::Hook => {
                format!("there is no agent `{name}` that could be called")
            }
        };
        called.votes.retain(|vote| vote.source != source);
        called.votes.push(SourceVote { source, stance: SourceStance::Refuses, why });
        DecisionExplanation { permission: CallPermission::Deny, decided_by: Some(source), ..called }
    }

    /// The names of the agents open to delegation by this agent; empty without a tool for delegation.
    pub fn hands_to(&self, host: &Host, workspace: &Path) -> Vec<String> {
        let spawns = self.may_call(host, workspace, BuiltinTool::Spawn.name());
        if spawns.permission == CallPermission::Deny {
            return Vec::new();
        }
        self.possible_delegates(host, workspace)
            .listed_agents()
            .into_iter()
            .map(|agent| agent.name)
            .collect()
    }

    /// The agents to which this agent could delegate at the top of a run.
    fn possible_delegates(&self, host: &Host, workspace: &Path) -> DelegateSet {
        let said = host.settings.delegation(&self.id, self.definition.visibility);
        DelegateSet::from_listing(
            host.delegate_listing(workspace),
            &said,
            &self.definition,
            &self.id.scope,
        )
    }
}
