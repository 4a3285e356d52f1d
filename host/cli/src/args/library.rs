//! The commands of `belljar agents` that add and remove libraries. Doc comments here are what
//! `--help` says.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// A directory, a local git repository, or a `.tar.gz`; nothing of it is run
    pub(crate) source: PathBuf,
    /// The library's name [default: the last part of the source's path]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The branch, tag or commit of a git repository [default: what is checked out]
    #[arg(long, value_name = "REV")]
    pub(crate) rev: Option<String>,
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
