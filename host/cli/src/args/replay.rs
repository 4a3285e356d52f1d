//! The command line of `belljar replay`. Doc comments here are what `--help` says.

use std::path::PathBuf;

use clap::Args;

use crate::args::server::TenantArg;

#[derive(Debug, Args)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct ReplayArgs {
    /// The run, by its id or the beginning of it, or `latest`
    pub(crate) run: String,
    /// Ask a model again instead of giving the stored answers: `live` for the one of the run, or a
    /// model from belljar.toml
    #[arg(long, short, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Write the answers to a transcript that `belljar run --transcript` plays
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Let tools reach the hosts that they are granted; without it such calls are answered from the
    /// record
    #[arg(long)]
    pub(crate) network: bool,
    #[command(flatten)]
    pub(crate) of: TenantArg,
    /// Print JSON: each call with how its result compares
    #[arg(long)]
    pub(crate) json: bool,
}
