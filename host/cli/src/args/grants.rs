//! The options of `grant`, `revoke` and `explain`. Doc comments here are what `--help` says.

use clap::Args as ClapArgs;

use crate::args::server::TenantArg;

#[derive(Debug, ClapArgs)]
pub(crate) struct GrantArgs {
    /// The agent: a name, or `library/x/name`, or `workspace:/path/name`
    #[arg(required_unless_present = "library")]
    pub(crate) agent: Option<String>,
    /// Exactly what the agent's own file asks for and is not given
    #[arg(long, conflicts_with = "tool")]
    pub(crate) asked: bool,
    /// With --asked: nothing that changes files
    #[arg(long)]
    pub(crate) read_only: bool,
    /// To each agent of this library what it asks for
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["agent", "tool", "host", "mount", "secret", "limit"]
    )]
    pub(crate) library: Option<String>,
    /// A tool: `name`, `name=ask` or `name=deny`; repeatable
    #[arg(long, value_name = "NAME[=ask|deny]")]
    pub(crate) tool: Vec<String>,
    /// A host: `https://example.org`, `https://*.example.org`, `https://*`; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) host: Vec<String>,
    /// A mount: `/workspace:read-write`, `/data:/srv/data:read`; repeatable
    #[arg(long, value_name = "PATH[:HOST]:ACCESS")]
    pub(crate) mount: Vec<String>,
    /// A secret, by its name in belljar.toml; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Vec<String>,
    /// A limit: `steps=50`; repeatable (`belljar limits` lists them)
    #[arg(long, value_name = "KEY=N")]
    pub(crate) limit: Vec<String>,
    /// Grant it though there is no such agent yet
    #[arg(long, conflicts_with_all = ["asked", "library"])]
    pub(crate) absent: bool,
    #[command(flatten)]
    pub(crate) of: TenantArg,
    /// Write without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RevokeArgs {
    /// The agent: a name, or `library/x/name`, or `workspace:/path/name`
    #[arg(required_unless_present = "library")]
    pub(crate) agent: Option<String>,
    /// All that its grant gives it
    #[arg(long, conflicts_with_all = ["tool", "host", "mount", "secret", "limit"])]
    pub(crate) all: bool,
    /// All that each agent of this library was granted
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["agent", "tool", "host", "mount", "secret", "limit"]
    )]
    pub(crate) library: Option<String>,
    /// A tool: `name`, or `name=ask` where it was granted so; repeatable
    #[arg(long, value_name = "NAME[=ask|deny]")]
    pub(crate) tool: Vec<String>,
    /// A host, as it was granted; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) host: Vec<String>,
    /// A mount: `/data`, or as it was granted; repeatable
    #[arg(long, value_name = "PATH[[:HOST]:ACCESS]")]
    pub(crate) mount: Vec<String>,
    /// A secret; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Vec<String>,
    /// A limit: `steps`, or as it was granted; repeatable
    #[arg(long, value_name = "KEY[=N]")]
    pub(crate) limit: Vec<String>,
    #[command(flatten)]
    pub(crate) of: TenantArg,
    /// Write without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct ExplainArgs {
    /// The agent
    pub(crate) agent: String,
    /// The tool
    pub(crate) tool: String,
    /// A path as the agent sees it, a URL with its scheme, or, of `spawn_agent`, an agent
    pub(crate) target: Option<String>,
    /// Ask about writing to the path
    #[arg(long)]
    pub(crate) write: bool,
    #[command(flatten)]
    pub(crate) of: TenantArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
