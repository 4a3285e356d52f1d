//! Runs agents: the loop between a model and its tools, subagents, the library of agents,
//! events, and the sessions of many people.
//!
//! ```text
//! library, settings ──> resolve ──> run ──> Outcome
//!                                    │ └──> events
//!                                    └ turn (decides) / agent, carry, child (perform)
//! conversation (many runs, one history) + store = session_journal ──> service (many sessions)
//!                                                       └─ saved_run (one turn), read by stored_run
//! ```
//!
//! What this crate promises:
//!
//! - [`run()`] always gives an [`Outcome`], with all that was done until then.
//! - A tool outside the agent's rights is neither advertised nor dispatched, and its component
//!   is not in the jar.
//! - A team gives no right: its agents have their own, under one budget.
//! - A subagent's rights are an intersection with its parent's, its budget stands below its
//!   parent's, and it shares neither store nor history with anyone.
//! - The operator's [`Hooks`] see every agent's calls; they refuse, ask or narrow, and add no
//!   right.
//! - A run whose process died goes on from what its [`Journal`] kept ([`Replay`]): no answer
//!   of a model is asked for again, and no call that may have had an effect is made again.
//! - After a cancelled run has returned there is no further model call, guest effect or
//!   receipt of it.
//!
//! It decides about no right itself: those come from `belljar_policy`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod ask;
mod background;
mod batch;
mod blocks;
pub mod bounds;
mod carry;
mod child;
mod clock;
mod compact;
mod control;
mod conversation;
mod delegate;
mod delegates;
mod dispatch;
mod ended;
mod event_log;
pub mod events;
mod facade;
mod findings;
pub mod frame;
mod held;
mod history;
mod hooks;
mod host;
mod hosttool;
mod journal;
mod keep;
mod ledger;
mod library;
mod material;
mod open_turn;
mod orders;
mod outcome;
mod pause;
mod person;
mod prepare;
mod recall;
mod recorder;
mod resolve;
mod results;
mod rows;
mod run;
mod saved_run;
mod scan;
mod service;
mod session_journal;
pub mod skills;
mod spec;
mod steps;
mod stored_run;
mod team;
mod toolcat;
mod toolfiles;
mod trace;
mod turn;

pub use ask::{Asker, NoAsker, Question, Word};
pub use blocks::ListedAgent;
pub use clock::{Clock, FixedClock, RunId, SystemClock};
pub use compact::Problem as CompactProblem;
pub use control::Control;
pub use conversation::{Conversation, Turn};
pub use events::{BatchChild, Counts, EVENT_VERSION, Event, EventKind, EventSink, TodoItem};
pub use findings::{Finding, FindingSeverity, Findings};
pub use history::History;
pub use hooks::{HookCheck, Hooks};
pub use host::Host;
pub use journal::{ChildOrigin, Journal, NoJournal, QueuedChild};
pub use library::{API_LIBRARY, Change, Library, Root, SkillLibrary, TeamLibrary};
pub use open_turn::OpenTurn;
pub use outcome::{
    Attachment, CallReceipt, ChildSummary, Outcome, RunError, Status as RunStatus, Usage,
};
pub use resolve::{
    MAKE_IT, ResolveError, ResolvedAgent, absent_directories, canonical, resolve, resolve_all,
    resolve_entry,
};
pub use rows::{Past, PastTurn};
pub use run::{RunSpec, run};
pub use saved_run::{KEEP_RUNS, SavedTeam, prune_runs, run_saved, run_team_saved};
pub use service::{
    Admission, OpenQuestion, PersonAnswer, Preview, PreviewRequest, QuestionKind, RunningTurn,
    Service, ServiceError, ServiceLimits, SessionEvent, TurnEnd, TurnHandle, TurnRequest, Watch,
};
pub use session_journal::{JournalError, SavedTurn, SessionJournal};
pub use spec::host_tool_specs;
pub use steps::{Kept, PlannedChild, Replay, StepEntry, StepKind};
pub use stored_run::{RECORD_VERSION, RunRecord, note_files, shown_status};
pub use team::{
    MemberOutcome, ResolvedTeam, StageOutcome, TeamOutcome, TeamSpec, resolve_all_teams,
    resolve_team, resolve_team_file, run_team,
};
pub use toolcat::{Origin, StockTool, ToolCatalogue, ToolComponent};
pub use trace::TRACE_TARGET;
