//! The options of `changes`, `apply`, `discard` and `undo`. Doc comments here are what `--help` says.

use std::ffi::OsString;
use std::path::Path;

use belljar_policy::ShownPath as _;
use clap::Args as ClapArgs;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::args::server::TenantArg;

/// Which changes.
#[derive(Debug, ClapArgs)]
pub(crate) struct ChangedArgs {
    /// A run or a session, by its id or the beginning of it [default: the latest of this workspace
    /// that has an overlay]; then paths below the workspace, each with all that is below it
    /// [default: all]
    #[arg(value_name = "[RUN] PATH", value_parser = any_text())]
    pub(crate) which: Vec<String>,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    pub(crate) changed: ChangedArgs,
    /// The files alone, with the lines that were added and removed
    #[arg(long, conflicts_with_all = ["patch", "json"])]
    pub(crate) stat: bool,
    /// A patch that `git apply` takes, binary files included
    #[arg(long, conflicts_with = "json")]
    pub(crate) patch: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub(crate) changed: ChangedArgs,
    /// Of a file that changed in the workspace too, take the agent's version; repeatable
    #[arg(long, value_name = "PATH", value_parser = any_text())]
    pub(crate) theirs: Vec<String>,
    /// Of a file that changed in the workspace too, keep the workspace's version; repeatable
    #[arg(long, value_name = "PATH", value_parser = any_text())]
    pub(crate) mine: Vec<String>,
    /// Also what would run later by itself: hooks, build files, workflows, links
    #[arg(long)]
    pub(crate) also_what_runs: bool,
    /// Apply without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    pub(crate) changed: ChangedArgs,
    /// Discard without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct UndoArgs {
    /// A run or a session, by its id or the beginning of it [default: the latest of this workspace
    /// that has an overlay]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

/// A parser of words that may be paths. A word that is not valid UTF-8 is escaped, as lists show paths.
fn any_text() -> impl TypedValueParser<Value = String> {
    let text = |word: OsString| {
        word.into_string().unwrap_or_else(|word| Path::new(&word).to_shown().to_string())
    };
    OsStringValueParser::new().map(text)
}
