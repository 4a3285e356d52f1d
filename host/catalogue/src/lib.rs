//! The catalogue of everything on disk: the agents, teams and skills of a home, a workspace and installed
//! libraries, and the tools that an agent can be granted. For example, [`Library::catalog`] returns the
//! agents, and [`ToolCatalogue::offer_tools`] the tools for one agent's rights.
//!
//! ```text
//! roots ──> scan (finds, reads) ──> library (keeps up to date) ──> drafts (what waits beside it)
//! stock tools, tools/NAME/ ──> tool_files ──> tools (offers what the rights allow)
//! [mcp.NAME], mcp/NAME.json ──> servers ────────┘
//! ```
//!
//! The crate runs no agent and grants no right: `belljar_definition` parses the found files, and
//! `belljar_policy` decides about the tools.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod command;
mod drafts;
mod library;
pub mod limits;
mod material;
mod scan;
mod servers;
mod tool_files;
mod tools;

pub use belljar_definition::API_LIBRARY;
pub use command::wrap_command;
pub use drafts::{Draft, NAME_TAKEN, list_drafts};
pub use library::{
    CommandLibrary, Library, LibraryChange, LibraryRoot, PinState, SkillLibrary, TeamLibrary,
};
pub use material::{SkillFolder, SkillFolders};
pub use servers::{TokenFiles, broker_program};
pub use tool_files::{ReadError, read_bounded};
pub use tools::{ComponentOrigin, StockTool, ToolCatalogue, ToolComponent, ToolOffer, UNPINNED};
