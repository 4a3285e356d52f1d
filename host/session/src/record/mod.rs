//! Sessions in the store: the rows of turns, their journals, events and watchers, and reading runs back.

pub(crate) mod api_agents;
pub(crate) mod cause;
pub(crate) mod event_log;
pub(crate) mod hub;
pub(crate) mod images;
pub(crate) mod layers;
pub(crate) mod lock;
pub(crate) mod past;
pub(crate) mod place;
pub(crate) mod rows;
pub(crate) mod runs;
pub(crate) mod saved_run;
pub(crate) mod saved_session;
pub(crate) mod steps;
pub(crate) mod turn;
pub(crate) mod turn_journal;
