//! Runs a team: a pipeline in which each agent's output becomes the next one's task.
//!
//! ```text
//! task ──> stage 1 ──> output, framed ──> stage 2 (side by side) ──> outputs, framed ──> ...
//! ```
//!
//! - A team gives no right. Each agent runs with its own grants; where the team's file comes
//!   from a workspace or a library, its rights are those ∩ what the operator grants that team's
//!   identity, so that a stranger's file cannot speak to an agent of the operator's with more
//!   than a stranger's agent would have.
//! - One budget stands above all stages ([`Level::Team`]).
//! - What an agent wrote is passed on in the same frame as a subagent's conclusion: marked as
//!   another agent's text, with what imitates the frame escaped. The person's own task is
//!   passed on as it stands.
//! - Nothing runs unless all agents of the team can.
//! - There is always an outcome, with all that was done until then.
//!
//! [`Level::Team`]: belljar_policy::Level::Team

mod outcome;
mod pass;
mod resolve;
mod run;

pub use outcome::{MemberOutcome, StageOutcome, TeamOutcome};
pub use resolve::{ResolvedTeam, resolve_all_teams, resolve_team, resolve_team_file};
pub use run::{TeamSpec, run_team, run_team_as};
