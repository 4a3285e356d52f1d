//! Runs agents: the loop between a model and its tools, subagents, the library of agents,
//! saved runs and events.
//!
//! ```text
//! library, settings ──> resolve ──> run ──> Outcome ──> saved
//!                                    │ └──> events
//!                                    └ turn (decides) / agent, carry, child (perform)
//! conversation (many runs, one history) + store = journal
//! ```
//!
//! What this crate promises:
//!
//! - [`run()`] always gives an [`Outcome`], with all that was done until then.
//! - A tool outside the agent's rights is neither advertised nor dispatched, and its component
//!   is not in the jar.
//! - A subagent's rights are an intersection with its parent's, its budget stands below its
//!   parent's, and it shares neither store nor history with anyone.
//! - After a cancelled run has returned there is no further model call, guest effect or
//!   receipt of it.
//!
//! It decides about no right itself: those come from `belljar_policy`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
mod ask;
pub mod bounds;
mod carry;
mod child;
mod clock;
mod conversation;
mod delegates;
mod dispatch;
pub mod events;
pub mod frame;
mod held;
mod host;
mod journal;
mod ledger;
mod library;
mod outcome;
mod prepare;
mod resolve;
mod results;
mod rows;
mod run;
mod saved;
mod scan;
mod spawn;
mod toolcat;
mod toolfiles;
mod turn;

pub use ask::{Asker, NoAsker, Question, Word};
pub use clock::{Clock, FixedClock, RunId, SystemClock};
pub use conversation::{Conversation, Turn};
pub use events::{EVENT_VERSION, Event, EventKind, EventSink};
pub use host::Host;
pub use journal::{Journal, JournalError, SavedTurn};
pub use library::{Change, Library, Root};
pub use outcome::{
    Attachment, CallReceipt, ChildSummary, Outcome, RunError, Status as RunStatus, Usage,
};
pub use resolve::{ResolveError, ResolvedAgent, canonical, resolve, resolve_all};
pub use rows::{Past, PastTurn};
pub use run::{RunSpec, run};
pub use saved::{RECORD_VERSION, RunRecord, RunStore, RunStoreError};
pub use spawn::{ListedAgent, SPAWN_AGENT};
pub use toolcat::{Origin, StockTool, ToolCatalogue, ToolComponent};
