//! Plugins and marketplaces: their manifests, and what a plugin offers.
//!
//! A plugin is a folder with agents, skills, commands, hooks and MCP servers; a marketplace is a list of
//! plugins. Both are a stranger's text: parsing gives names, paths and findings, never a right, and nothing of
//! a plugin runs here. For example, a folder with `.claude-plugin/plugin.json` and `skills/tdd/SKILL.md` is a
//! plugin with one skill.

mod agent_plugins;
mod entry;
mod fields;
mod format;
mod hooks;
mod inventory;
mod manifest;
mod market;
mod options;
mod parts;
mod path;
mod servers;
#[cfg(test)]
mod tests;
mod tree;

pub use entry::{EntrySource, RevisionPin};
pub use format::PluginFormat;
pub use hooks::{PluginHook, PluginHookAction};
pub use inventory::{PluginInventory, PluginPart};
pub use manifest::{ManifestReading, PluginDependency, PluginManifest};
pub use market::{MARKET_FILES, MarketEntry, MarketManifest};
pub use options::ConfigOption;
pub use parts::PartKind;
pub use path::PluginPath;
pub use servers::{FetchedPackage, PluginServer, ServerTransport};
pub use tree::PluginTree;
