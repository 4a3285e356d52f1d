//! Runs one tree of agents: the loop between a model and its tools, subagents, hooks, teams, events. The
//! crate has no store and no tenant; a run is stored through a [`Journal`].
//!
//! ```text
//! host (what is constant) + run (the entry) ──> rights ──> agent_loop ──> Outcome
//!                                                  machine decides, driver performs
//!                                                  ├──> tools (dispatch, execute, built-in, hooks)
//!                                                  ├──> subagent (plan, spawn, background, team)
//!                                                  └──> replay (what is persisted, and resumed)
//! ```
//!
//! [`Agent::builder`] embeds an agent in another program; for example, `examples/run_agent.rs` has forty
//! lines.
//!
//! Promises of this crate:
//!
//! - [`run()`] always returns an [`Outcome`] with all work done so far, also after a failure.
//! - A tool outside the agent's rights is neither advertised nor dispatched, and its component is not in the
//!   jar.
//! - A team grants no right: its agents have their own rights, under one budget.
//! - A subagent's rights are an intersection with its parent's, its budget is below its parent's, and store
//!   and history are separate.
//! - The operator's [`Hooks`] see every agent's calls. Hooks refuse, ask or narrow, and add no right.
//! - A run whose process died resumes from its [`Journal`] ([`ReplayLog`]): no model answer is requested again,
//!   and no call with a possible effect is made again.
//! - After a cancelled run has returned, no model call, guest effect or receipt follows.
//!
//! The crate decides about no right: decisions come from `belljar_policy`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent_loop;
mod billed;
mod brought;
mod builder;
mod called;
mod clock;
mod direct;
pub mod events;
mod finding;
mod host;
pub mod limits;
mod outcome;
mod prompt;
mod replay;
mod rights;
mod run;
mod schema;
mod shorter;
mod subagent;
mod tools;
pub mod trace;

pub use agent_loop::job::caps_of_run;
pub use agent_loop::machine::{
    PartialAnswer, count_usage, cut_off, hold_tokens, message_bytes, prompt_bytes,
};
/// Needed with [`AgentBuilder`], so a program needs no other crate.
pub use belljar_catalogue::StockTool;
/// Messages and tools of a caller, so a crate of callers needs no other crate.
pub use belljar_model::{
    ChatMessage, Effort, Image, ImageError, Sampling, ToolCall, ToolChoice, ToolResult, ToolSpec,
};
/// A part of a tool's output, so a crate of callers needs no other crate.
pub use belljar_sandbox::OutputPart;
pub use brought::{BroughtError, CallerInput, UnfitInput};
pub use builder::{Agent, AgentBuildError, AgentBuilder};
pub use clock::{Clock, FixedClock, RunId, SystemClock};
pub use direct::{DirectCall, DirectProgress, DirectResult, DirectSpec, DirectTool, DirectTools};
pub use events::{
    BatchChild, Counts, EVENT_VERSION, Event, EventKind, EventSink, TextRetention, TodoItem,
    TodoStatus,
};
pub use finding::{
    CatalogueSearch, EntryKind, PartKind, RequestPart, SearchCatalogue, SearchEntry,
};
pub use host::Host;
pub use outcome::{
    Attachment, CallReceipt, ChildOrigin, ChildSummary, Outcome, RunError, RunStatus, Usage,
    in_tree_order,
};
pub use prompt::blocks::ListedAgent;
pub use prompt::findings::{Finding, FindingSeverity, Findings};
pub use prompt::{commands, frame, skills};
pub use replay::journal::{Journal, NoJournal, QueuedChild};
pub use replay::log::{LoggedResult, PlannedChild, ReplayLog, StepEntry, StepKind};
pub use replay::rerun::{CallComparison, CallText, ReplayedCall, ReplayedRun};
pub use rights::advice::{RightsAdvice, UnanswerableQuestion, exact_rule, missing_grant};
pub use rights::delegates::side_by_side;
pub use rights::model::model_of;
pub use rights::resolve::{
    BlockedAgent, ResolveError, ResolvedAgent, absent_directories, canonicalize_workspace,
    resolve_agent, resolve_all, resolve_all_until, resolve_behind, resolve_direct, resolve_entry,
    resolve_known, resolve_until,
};
pub use rights::vetting::{VettedAgent, VettedLibrary, vetted_libraries};
pub use run::{RequestPreview, RunSpec, preview_request, run};
pub use schema::CallerSchemas;
pub use shorter::ShorterPast;
pub use subagent::control::SubagentControl;
pub use subagent::team::{
    MemberOutcome, ResolvedTeam, StageOutcome, TeamOutcome, TeamSpec, resolve_all_teams,
    resolve_team, resolve_team_file, run_team, run_team_as,
};
/// Ends a run, for example one of [`Agent::run_with`].
pub use tokio_util::sync::CancellationToken;
pub use tools::approval::asker::{
    Approval, ApprovalQuestion, Asker, CallReach, ClarificationAnswer, ClarificationQuestion,
    NoAsker, ReachedMount,
};
pub use tools::builtin::spec::builtin_tool_specs;
pub use tools::hooks::{HookCheck, Hooks};
pub use tools::result::ending_word;
pub use tools::served::ServerAccounts;
pub use trace::TRACE_TARGET;
