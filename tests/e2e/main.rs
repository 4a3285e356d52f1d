//! Drives the real binary: what a person types, and what comes of it. Every test has a home
//! and a workspace of its own; only the cache of compiled components is shared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![expect(clippy::disallowed_methods, reason = "threads of tests, which end with their test")]

#[path = "../kit/binary/mod.rs"]
mod kit;

mod acp;
mod acp_cancelled;
mod acp_decided;
mod acp_more;
mod acp_terminals;
mod agents;
mod asked;
mod at_home;
mod attribution;
mod audited;
#[cfg(unix)]
mod backup;
mod called;
mod callers;
mod cancel;
mod changes;
mod chat;
mod check;
mod cli;
mod commands;
mod consent;
mod context;
mod demo;
mod doctor;
mod drafts;
mod fetched;
mod foreign;
mod found_models;
mod grants;
#[cfg(unix)]
mod guide;
mod hints;
#[cfg(unix)]
mod hostile_names;
mod init;
mod inspect;
#[cfg(unix)]
mod issuers;
#[cfg(target_os = "linux")]
mod killed;
#[cfg(target_os = "linux")]
mod late_grants;
mod libraries;
#[cfg(unix)]
mod links;
mod listeners;
#[cfg(target_os = "linux")]
mod log;
mod looks;
#[cfg(unix)]
mod mcp;
mod missing;
mod models;
#[cfg(target_os = "linux")]
mod mount_ways;
#[cfg(unix)]
mod names;
#[cfg(unix)]
mod openai;
#[cfg(unix)]
mod owners;
#[cfg(unix)]
mod plugins;
mod programs;
mod prove;
#[cfg(target_os = "linux")]
mod reload;
mod replay;
mod revoke;
mod run;
mod runs;
mod secrets;
mod serve;
mod served_changes;
mod sessions;
#[cfg(target_os = "linux")]
mod silence;
#[cfg(unix)]
mod skill_files;
mod skill_terms;
#[cfg(target_os = "linux")]
mod tables;
#[cfg(target_os = "linux")]
mod teams;
mod tenant_option;
mod tenants;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(unix)]
mod tool_author;
mod traces;
mod walls;
#[cfg(target_os = "linux")]
mod ways_in;
