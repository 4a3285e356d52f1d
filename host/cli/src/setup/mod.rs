//! What a command needs before it begins: paths, settings, the host and the OS sandbox.

pub(crate) mod agreed;
pub(crate) mod below;
pub(crate) mod beside;
pub(crate) mod bound;
pub(crate) mod command_files;
pub(crate) mod config_lock;
pub(crate) mod data;
pub(crate) mod descriptors;
pub(crate) mod embedded;
pub(crate) mod exit;
pub(crate) mod home;
pub(crate) mod host;
pub(crate) mod log;
pub(crate) mod memory;
mod move_new;
pub(crate) mod once;
pub(crate) mod ours;
pub(crate) mod pins;
pub(crate) mod programs;
pub(crate) mod secrets;
pub(crate) mod telemetry;
pub(crate) mod threads;
pub(crate) mod walls;
pub(crate) mod whose;
