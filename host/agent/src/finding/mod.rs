//! Which part of a large library an agent's context lists, and how the agent finds the rest.
//!
//! ```text
//! rights ──> permitted agents, skills, tools of servers ──> LibraryPlan ──┬─> lines of the system part
//!                                                                         ├─> a note behind the message
//! SearchCatalogue ──> CatalogueSearch (an index, given by the caller) ────┴─> find_agent, find_skill, find_tool
//! ```
//!
//! Rights decide before the index: a search ranks only what the agent may use (INV-670). The system part depends
//! on the catalogue and the settings alone, never on a message, so that a provider's cache lasts from turn to
//! turn (INV-671). What fits the words of a message stands behind that message, as a note that the journal keeps.

pub(crate) mod answers;
pub(crate) mod catalogue;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod recent;
pub(crate) mod search;

pub use self::catalogue::{EntryKind, SearchCatalogue, SearchEntry};
pub use self::parts::{PartKind, RequestPart};
pub use self::search::CatalogueSearch;
