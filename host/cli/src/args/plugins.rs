//! The commands `belljar plugins` and `belljar marketplaces`. Doc comments here are what `--help` says.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::server::TenantArg;

/// Options of `belljar plugins`.
#[derive(Debug, Args)]
pub(crate) struct PluginsArgs {
    #[command(subcommand)]
    pub(crate) command: PluginsCommand,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginsCommand {
    /// Add a plugin, after showing what it offers, what its agents ask for and what looks suspicious;
    /// nothing of it is run
    Add(PluginAddArgs),
    /// List the installed plugins
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a plugin offers: an installed one, or one of a marketplace
    Show {
        /// The plugin: `NAME`, `NAME@MARKET`, or a directory
        plugin: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find plugins of the known marketplaces by words in their names, descriptions and tags
    Search {
        /// The words; a plugin has to have all of them
        words: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a plugin from its source again, after showing what changes in rights and in text for models
    Update {
        /// The plugin
        plugin: String,
        /// Apply without asking
        #[arg(long, short)]
        yes: bool,
        /// Print what changes as JSON; with it nothing is asked, and applied only with `--yes`
        #[arg(long)]
        json: bool,
    },
    /// Remove a plugin
    Remove {
        /// The plugin
        plugin: String,
    },
    /// Take a plugin's agents and skills into use
    Enable {
        /// The plugin
        plugin: String,
    },
    /// Take a plugin's agents and skills out of use; its files stay
    Disable {
        /// The plugin
        plugin: String,
    },
    /// Name an MCP server of a plugin in your own belljar.toml, after showing what it would start or reach
    Connect(ConnectArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// The plugin
    pub(crate) plugin: String,
    /// The server, by its name in the plugin
    pub(crate) server: String,
    /// The name of the server in `belljar.toml` [default: made of both names]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Let a server that is a program use the network
    #[arg(long)]
    pub(crate) network: bool,
    /// Write without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginAddArgs {
    /// The plugin: `NAME@MARKET`, `NAME` of any known marketplace, or a source: `github:owner/repo`, an
    /// https address, `npm:PACKAGE`, a directory, a git repository or an archive
    pub(crate) plugin: String,
    /// The folder of the source that holds the plugin [default: the source itself]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<String>,
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

/// Options of `belljar marketplaces`.
#[derive(Debug, Args)]
pub(crate) struct MarketplacesArgs {
    #[command(subcommand)]
    pub(crate) command: MarketplacesCommand,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MarketplacesCommand {
    /// Add a marketplace: its list is kept, and none of its plugins is installed
    Add {
        /// A source with `.claude-plugin/marketplace.json`: `owner/repo`, an https address, `npm:PACKAGE`, a
        /// directory, a git repository or an archive
        source: PathBuf,
        /// The branch, tag or commit of a git repository [default: what is checked out]
        #[arg(long, value_name = "REV")]
        rev: Option<String>,
    },
    /// List the known marketplaces
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Read the list of a marketplace again
    Update {
        /// The marketplace
        market: String,
    },
    /// Forget a marketplace; its installed plugins stay
    Remove {
        /// The marketplace
        market: String,
    },
}
