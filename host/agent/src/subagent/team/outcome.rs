//! The ending of a team, with all its agents' work.

use jiff::Timestamp;
use serde::Serialize;

use crate::clock::RunId;
use crate::outcome::ChildOrigin;
use crate::outcome::{ChildSummary, Outcome, RunError, RunStatus, Usage};

/// The outcome of a team. Made after every ending.
#[derive(Debug, Clone, Serialize)]
pub struct TeamOutcome {
    /// The run, shared by all agents.
    pub run: RunId,
    /// The team's identity: scope and slug.
    pub team: String,
    /// `completed` when every stage did; `partial` when one ended early, or a budget of the
    /// team ran out after some stage; `failed` when a stage failed.
    pub status: RunStatus,
    /// The output of the last stage with one. Foreign text: escape it before showing it to a person.
    pub output: String,
    /// The reason why the team did not complete; absent if completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// The stages that began, in order.
    pub stages: Vec<StageOutcome>,
    /// The number of the team's stages.
    pub planned: usize,
    /// The usage of all agents, with their subagents.
    pub total: Usage,
    /// The start of the run.
    pub started: Timestamp,
    /// The end of the run.
    pub ended: Timestamp,
}

/// The outcome of one stage.
#[derive(Debug, Clone, Serialize)]
pub struct StageOutcome {
    /// The stage's number, from 1.
    pub stage: usize,
    /// True if the stage's agents ran side by side.
    pub parallel: bool,
    /// `partial` also when a member of a stage with `join: any` failed.
    pub status: RunStatus,
    /// The stage's output; of several agents, each under a heading, in the order of the file.
    pub output: String,
    /// The stage's agents, in the order of the file.
    pub agents: Vec<MemberOutcome>,
}

/// The outcome of one agent in a stage.
#[derive(Debug, Clone, Serialize)]
pub struct MemberOutcome {
    /// The place in events and receipts, for example `team/scout#0`.
    pub path: String,
    /// The number of earlier agents of the same name in the run.
    pub spawn_index: u32,
    /// The task, cut at a bound: the rest consists of earlier outputs.
    pub task: String,
    /// The context in the team's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The outcome, with receipts.
    pub outcome: Outcome,
}

impl TeamOutcome {
    /// The outcomes of all members, in the order of their stages.
    pub fn member_outcomes(&self) -> impl Iterator<Item = &MemberOutcome> {
        self.stages.iter().flat_map(|stage| &stage.agents)
    }

    /// The outcomes of all members, for adding the places of saved files.
    pub fn agents_mut(&mut self) -> impl Iterator<Item = &mut MemberOutcome> {
        self.stages.iter_mut().flat_map(|stage| &mut stage.agents)
    }

    /// The member that decided the team's ending, with its stage: in the last stage with the team's status,
    /// the first member that did not complete. `None` = there is no such member.
    pub fn deciding_member(&self) -> Option<(usize, &MemberOutcome)> {
        if self.status == RunStatus::Completed {
            return None;
        }
        let stage = self.stages.iter().rfind(|stage| stage.status == self.status)?;
        let of = |status: RunStatus| stage.agents.iter().find(|a| a.outcome.status == status);
        let other = || stage.agents.iter().find(|a| a.outcome.status != RunStatus::Completed);
        of(self.status).or_else(other).map(|agent| (stage.stage, agent))
    }

    /// This outcome in the form of a run whose subagents are the team's members: the form of saved runs and
    /// receipts. A stage's number becomes the members' step.
    pub fn to_outcome(&self) -> Outcome {
        let children: Vec<ChildSummary> = self
            .stages
            .iter()
            .flat_map(|stage| stage.agents.iter().map(|agent| agent.to_child_summary(stage.stage)))
            .collect();
        let unfinished = children.iter().flat_map(|child| child.outcome.unfinished.clone());
        Outcome {
            status: self.status,
            output: self.output.clone(),
            messages: Vec::new(),
            calls: Vec::new(),
            merged: Vec::new(),
            findings: None,
            error: self.error.clone(),
            attachments: Vec::new(),
            usage: Usage::default(),
            total: self.total,
            receipts: Vec::new(),
            unfinished: unfinished.collect(),
            children,
            warnings: Vec::new(),
            run: self.run.clone(),
            agent: format!("team {}", self.team),
            model: String::new(),
            started: self.started,
            ended: self.ended,
        }
    }
}

impl MemberOutcome {
    /// The member in the form of a subagent that was started in step `stage`.
    pub(crate) fn to_child_summary(&self, stage: usize) -> ChildSummary {
        ChildSummary {
            call_id: stage_id(stage),
            step: u64::try_from(stage).unwrap_or(u64::MAX),
            spawn_index: self.spawn_index,
            path: self.path.clone(),
            origin: ChildOrigin::Team,
            task: self.task.clone(),
            context: self.context.clone(),
            outcome: self.outcome.clone(),
        }
    }
}

/// The id of the stage, for example `stage-1`, used for members as the id of the starting call.
pub(crate) fn stage_id(stage: usize) -> String {
    format!("stage-{stage}")
}
