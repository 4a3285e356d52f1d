//! Runs a team: a pipeline in which each agent's output becomes the next one's task.
//!
//! ```text
//! task ──> stage 1 ──> output, framed ──> stage 2 (side by side) ──> outputs, framed ──> ...
//! ```
//!
//! - A team grants no right. Each agent runs with its own grants. If the team's file comes from a workspace
//!   or a library, the operator's grants for the team's id narrow these rights, so that a stranger's team
//!   gets no more from an operator's agent than from a stranger's.
//! - One budget is above all stages ([`BudgetLevel::Team`]).
//! - An agent's output is passed on in the same frame as a subagent's conclusion: marked as another agent's
//!   text, with imitations of the frame escaped. The person's own task is passed on unchanged.
//! - No agent runs unless all agents of the team can.
//! - There is always an outcome, with all work done until the end.
//!
//! [`BudgetLevel::Team`]: belljar_policy::BudgetLevel::Team

mod outcome;
mod pass;
mod resolve;
mod run;

pub use outcome::{MemberOutcome, StageOutcome, TeamOutcome};
pub use resolve::{ResolvedTeam, resolve_all_teams, resolve_team, resolve_team_file};
pub use run::{TeamSpec, run_team, run_team_as};
