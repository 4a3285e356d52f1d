//! The decision about an agent that a person starts, for checks before the run.

use std::path::Path;
use std::sync::Arc;

use belljar_policy::{
    Explanation, Permission, RightsQuestion, Shown, Source, Stance, ToolAsk, ToolName, Vote,
    explain,
};

use crate::host::Host;
use crate::rights::decide::{Means, Reasons, has_skills, left_out, name_the_field};
use crate::rights::delegates::Delegates;
use crate::rights::resolve::ResolvedAgent;
use crate::tools::builtin::tool::{BuiltinTool, Depth};

/// Characters of an agent's name that is repeated.
const MAX_NAME: usize = 80;

impl ResolvedAgent {
    /// Explains whether the agent may use a tool on a target when a person starts the agent in this
    /// workspace, with the source that decided. If the call itself is refused, the target does not matter.
    /// `manifest` = the tool's requests.
    pub fn decision(
        &self,
        host: &Host,
        workspace: &Path,
        tool: &str,
        question: &RightsQuestion,
        manifest: &ToolAsk,
    ) -> Explanation {
        let called = self.may_call(host, workspace, tool);
        if called.permission == Permission::Deny || *question == RightsQuestion::Call {
            return called;
        }
        let asked = &self.definition.asked;
        let mut reached = explain(tool, question, asked, manifest, &self.grants, None);
        name_the_field(&mut reached, &self.definition, tool);
        reached
    }

    /// Like [`Self::decision`] for each of these tools, in order: common parts are computed once.
    pub fn decisions(&self, host: &Host, workspace: &Path, tools: &[String]) -> Vec<Explanation> {
        let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
        let reasons = self.reasons_for(host, workspace, &tools);
        tools.into_iter().map(|tool| reasons.decide(&self.rights, tool)).collect()
    }

    fn may_call(&self, host: &Host, workspace: &Path, tool: &str) -> Explanation {
        self.reasons_for(host, workspace, &[tool]).decide(&self.rights, tool)
    }

    /// The reasons of decisions about these tools.
    fn reasons_for(&self, host: &Host, workspace: &Path, tools: &[&str]) -> Reasons {
        let depth = Depth::top(host.settings.subagents.max_depth)
            .bounded(self.definition.subagents.as_ref());
        let means = Means {
            delegates: !self.delegates(host, workspace).is_empty(),
            skills: has_skills(&host.skills),
            ..Means::of(&self.definition, &self.rights, depth)
        };
        let left_out = tools.iter().filter_map(|tool| {
            let why = left_out(BuiltinTool::of(tool)?, means)?;
            Some((ToolName::new(tool).ok()?, why.to_owned()))
        });
        Reasons {
            definition: Some(Arc::clone(&self.definition)),
            tools: Some(Arc::clone(&host.tools)),
            left_out: left_out.collect(),
            for_overlays: Arc::clone(&self.for_overlays),
        }
    }

    /// As [`Self::decision`], for handing work to the agent `name`.
    pub fn may_hand_to(
        &self,
        host: &Host,
        workspace: &Path,
        tool: &str,
        name: &str,
    ) -> Explanation {
        let mut called = self.may_call(host, workspace, tool);
        if called.permission == Permission::Deny {
            return called;
        }
        let delegates = self.delegates(host, workspace);
        if delegates.find(name).is_some() {
            return called;
        }
        let source = delegates.refused_by(host, name);
        let name = Shown::clipped(name, MAX_NAME);
        let why = match source {
            Source::Definition => format!("its file does not let it call `{name}`"),
            Source::Grants => format!("the operator does not let it call `{name}`"),
            Source::Host | Source::Manifest | Source::Parent | Source::Hook => {
                format!("there is no agent `{name}` that could be called")
            }
        };
        called.votes.retain(|vote| vote.source != source);
        called.votes.push(Vote { source, stance: Stance::Refuses, why });
        Explanation { permission: Permission::Deny, decided_by: Some(source), ..called }
    }

    /// The names of the agents for delegation; empty without a delegating tool.
    pub fn hands_to(&self, host: &Host, workspace: &Path) -> Vec<String> {
        let spawns = self.may_call(host, workspace, BuiltinTool::Spawn.name());
        if spawns.permission == Permission::Deny {
            return Vec::new();
        }
        self.delegates(host, workspace).listed().into_iter().map(|agent| agent.name).collect()
    }

    fn delegates(&self, host: &Host, workspace: &Path) -> Delegates {
        let said = host.settings.delegation(&self.id, self.definition.visibility);
        Delegates::of(host.listing(workspace), &said, &self.definition)
    }
}
