//! Turns that survive their process: conversations with their history, their storage, runs as sessions of one
//! turn, and the service that runs the sessions of many people.
//!
//! ```text
//! conversation (many runs, one history) + record (rows, events, lock) ──> service (many sessions)
//!                                            └── saved_run (one turn), read by runs
//! ```
//!
//! Agents themselves run in `belljar_agent`, which does not know sessions.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod conversation;
mod indexed_search;
mod record;
mod review;
mod service;
mod trace;

pub use conversation::compaction::CompactProblem;
pub use conversation::talk::Conversation;
pub use indexed_search::IndexedSearch;
pub use record::api_agents::api_agents;
pub use record::hub::{EventWatch, parse_event};
pub use record::layers::{held_beside, layers_root, overlay_quota, remove_stale_layers};
pub use record::lock::is_at_work;
pub use record::past::SessionPast;
pub use record::rows::HistoryMode;
pub use record::runs::{find_run, newest_runs, note_files, shown_status};
pub use record::saved_run::{KEEP_RUNS, prune_runs, run_saved, run_team_saved};
pub use record::saved_session::{SavedOutcome, SavedSession, SessionError};
pub use record::steps::stored_steps;
pub use record::turn::{OpenState, RECORD_VERSION, RecordedState, Turn};
pub use review::{
    DirectoryLook, DirectoryReview, ReviewError, SessionLook, SessionReview, has_layers,
    newest_with_layers,
};
pub use service::direct::{DirectDone, DirectSession};
pub use service::{
    Admission, CancelOutcome, HeadEdit, LookDepth, OpenQuestion, PersonAnswer, QuestionKind,
    RenewalOutcome, RunningTurn, Service, ServiceError, ServiceLimits, SettingsVersion,
    StoredTurnOf, TurnKind, TurnRequest, TurnTally, VersionMaker,
};
