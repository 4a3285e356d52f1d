//! The commands of `belljar agents` that add and remove libraries. Doc comments here are what
//! `--help` says.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::server::TenantArg;

#[derive(Debug, Subcommand)]
pub(crate) enum LibraryCommand {
    /// Add a library of agents, after showing what each asks for and what looks suspicious
    Add(AddArgs),
    /// Take a library from its source again, after showing what changes in rights
    Update(UpdateArgs),
    /// Remove a library
    Remove {
        /// The library
        name: String,
    },
    /// List the installed libraries
    Libraries {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `belljar add`, which is `belljar agents add`.
#[derive(Debug, Args)]
pub(crate) struct AddSourceArgs {
    #[command(flatten)]
    pub(crate) add: AddArgs,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Where it is: `owner/repo[/folder][@tag]` of GitHub, an https address of a git repository or an
    /// archive, `npm:PACKAGE`, or on this machine a directory, a git repository, a `.zip`, `.tar`,
    /// `.tar.gz` or `.md`; nothing of it is run
    pub(crate) source: PathBuf,
    /// The library's name [default: the last part of the source]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The branch, tag or commit of a git repository [default: what is checked out]
    #[arg(long, value_name = "REV")]
    pub(crate) rev: Option<String>,
    /// Show a row for each agent and each line that looks suspicious, however many there are
    #[arg(long, conflicts_with = "json")]
    pub(crate) details: bool,
    /// Install without asking; look at what is shown without it first
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print what was found as JSON; with it nothing is asked, and installed only with `--yes`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// The library
    pub(crate) name: String,
    /// Apply without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print what changes as JSON; with it nothing is asked, and applied only with `--yes`
    #[arg(long)]
    pub(crate) json: bool,
}
