//! The command line. Doc comments here are what `--help` says.

pub(crate) mod changes;
#[cfg(test)]
mod golden;
pub(crate) mod grants;
pub(crate) mod library;
pub(crate) mod mcp;
pub(crate) mod plugins;
pub(crate) mod replay;
pub(crate) mod server;
pub(crate) mod tools;

use std::path::PathBuf;

use belljar_policy::LimitsRequest;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::args::changes::{ApplyArgs, ChangesArgs, DiscardArgs, UndoArgs};
use crate::args::grants::{ExplainArgs, GrantArgs, RevokeArgs};
use crate::args::library::{AddSourceArgs, LibraryCommand};
use crate::args::mcp::McpArgs;
use crate::args::plugins::{MarketplacesArgs, PluginsArgs};
use crate::args::replay::ReplayArgs;
use crate::args::server::{
    BackupArgs, DataArg, KeysArgs, NoTenant, RestoreArgs, ServeArgs, SessionsArgs, TenantArg,
    TenantsArgs,
};
use crate::args::tools::ToolsCommand;

/// Run AI subagents that nobody has to trust: every tool call is a WebAssembly component with
/// only the files and hosts that you granted.
#[derive(Debug, Parser)]
#[command(name = "belljar", version, after_help = crate::setup::exit::help_of_all(), max_term_width = 100)]
pub(crate) struct CliArgs {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Options of every command.
#[derive(Debug, ClapArgs)]
pub(crate) struct GlobalOptions {
    /// Print results and errors, and nothing else
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// The directory that agents work on [default: the current directory]
    #[arg(long, short = 'C', global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Leave out the OS sandbox, which keeps this process from files and system calls that no
    /// tool was granted
    #[arg(long, global = true)]
    pub(crate) no_os_sandbox: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Show what belljar does: a scripted model, real sandboxed tools, no configuration
    Demo,
    /// Run an agent on a task
    Run(Box<RunArgs>),
    /// Talk with an agent; sessions are saved, and resumed with `--resume`
    Chat(Box<ChatArgs>),
    /// Be an agent for an editor (Zed, JetBrains, Neovim), over stdin and stdout
    Acp(AcpArgs),
    /// Serve sessions over HTTP and WebSockets, on this machine unless told otherwise
    Serve(ServeArgs),
    /// Give a client that speaks MCP belljar's tools and agents, over its standard streams; and look at
    /// and accept the tools of MCP servers
    Mcp(McpArgs),
    /// Make, list and revoke the keys of the server
    #[command(alias = "key")]
    Keys(KeysArgs),
    /// Make, list, disable and delete the tenants of the server
    #[command(alias = "tenant")]
    Tenants(TenantsArgs),
    /// List, show, export and delete stored sessions
    #[command(alias = "session")]
    Sessions(SessionsArgs),
    /// Write all that belljar keeps into one archive, while it runs: sessions, agents, grants,
    /// libraries, tenants
    Backup(BackupArgs),
    /// Put what `backup` wrote into an empty home (`BELLJAR_HOME=DIR` names one), once all of it is
    /// checked
    Restore(RestoreArgs),
    /// List saved runs, or show what the tool calls of one did
    Receipts(ReceiptsArgs),
    /// Show what a run, or a session, changed in its overlay of the workspace
    Changes(ChangesArgs),
    /// Put what a run changed in its overlay into the workspace: all of it, or some paths
    Apply(ApplyArgs),
    /// Throw away what a run changed in its overlay: all of it, or some paths
    Discard(DiscardArgs),
    /// Take the last `apply` of a run back, as long as nothing else has changed those files
    Undo(UndoArgs),
    /// Run a saved run again on an overlay of its workspace, and say which results of its calls differ
    Replay(ReplayArgs),
    /// Write a configuration, the stock agents and an AGENTS.md, and set up the model that this
    /// machine has; never overwrites. With
    /// `--workspace`, write what belongs into that workspace instead
    Init(InitArgs),
    /// Add agents that somebody else wrote, from this machine or an address; the same as `agents add`
    Add(AddSourceArgs),
    /// Look at agents; add, update and remove libraries of them
    #[command(alias = "agent")]
    Agents(AgentsArgs),
    /// Add, look at, update and remove plugins: folders of agents, skills, commands, hooks and MCP servers
    #[command(alias = "plugin")]
    Plugins(PluginsArgs),
    /// Add, list, update and remove marketplaces: lists of plugins
    #[command(alias = "marketplace")]
    Marketplaces(MarketplacesArgs),
    /// Look at and run teams: pipelines of agents
    #[command(subcommand, alias = "team")]
    Teams(TeamsCommand),
    /// Look at skills: instructions that agents load when they need them
    #[command(alias = "skill")]
    Skills(SkillsArgs),
    /// Look at commands: messages that you call by name
    #[command(alias = "command")]
    Commands(CommandsArgs),
    /// Look at drafts of agents, teams and skills, and take them into use
    #[command(alias = "draft")]
    Drafts(DraftsArgs),
    /// Look at, call and make tools
    #[command(subcommand, alias = "tool")]
    Tools(ToolsCommand),
    /// Give an agent rights, in your own belljar.toml
    Grant(GrantArgs),
    /// Take rights back that `grant` gave, in your own belljar.toml
    Revoke(RevokeArgs),
    /// Say whether an agent may use a tool, and who decided
    Explain(ExplainArgs),
    /// Show what the first request of a task costs, in tokens, and why: instructions, agents, skills,
    /// tools, and what fits the words of the task. No model is asked
    Context(ContextArgs),
    /// Check this installation: places, configuration, sandbox, toolchain
    Doctor(DoctorArgs),
    /// Attack the sandbox of this machine in some hundred ways, and show what stopped each
    Prove(ProveArgs),
    /// List the default limits of an agent
    Limits {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the page of the manual; releases hold it, with one for each command
    #[command(hide = true)]
    Man {
        /// Write all pages into this directory instead
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Options of `context`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ContextArgs {
    /// The agent
    pub(crate) agent: String,
    /// The task
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) of: TenantArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `init`.
#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Of several models that were found, take the first without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Ask this server for its models, and look nowhere else; repeatable [default: the keys in the
    /// environment, and the usual ports of this machine]
    #[arg(long, value_name = "URL")]
    pub(crate) model_at: Vec<String>,
    /// Look for no model
    #[arg(long, conflicts_with = "model_at")]
    pub(crate) no_model: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct RunArgs {
    /// The task; `-` or nothing reads it from stdin
    pub(crate) task: Option<String>,
    /// The agent [default: the stock agent general-purpose]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Call a command of yours or of the workspace; TASK is its arguments
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    /// Knowledge for the agent beside the task
    #[arg(long, value_name = "TEXT")]
    pub(crate) context: Option<String>,
    /// A model from belljar.toml, or a role, instead of the agent's own choice
    #[arg(long, short, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Run a blocked agent with those of its tools that are granted
    #[arg(long)]
    pub(crate) partial: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    #[command(flatten)]
    pub(crate) nobodys: NoTenant,
}

/// Options that runs of agents and of teams have alike.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunOptions {
    /// Most steps of the whole run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_steps: Option<u64>,
    /// Most tokens of the whole run, input and output
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Most fuel of all tool calls of the whole run
    #[arg(long, alias = "fuel", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_fuel: Option<u64>,
    /// Most seconds for the whole run
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,
    /// Play this transcript instead of asking a model
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) transcript: Option<PathBuf>,
    /// Write what models say to a transcript that `--transcript` plays
    #[arg(long, value_name = "FILE", conflicts_with = "transcript")]
    pub(crate) record: Option<PathBuf>,
    /// Where attached files go [default: sessions/files/RUN in the home]
    #[arg(long, value_name = "DIR")]
    pub(crate) attachments: Option<PathBuf>,
    /// Keep nothing of the run: no receipts, and nothing to resume if the program dies
    #[arg(long)]
    pub(crate) no_save: bool,
    /// Print one JSON object: the outcome
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
    /// The form of the output on stdout
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) output_format: OutputFormat,
}

impl RunOptions {
    /// The bounds, in the words of policy.
    pub(crate) fn limits_request(&self) -> LimitsRequest {
        LimitsRequest {
            steps: self.max_steps,
            tokens: self.max_tokens,
            fuel: self.max_fuel,
            timeout_seconds: self.timeout,
            ..LimitsRequest::default()
        }
    }

    /// The form of the output on stdout.
    pub(crate) fn stdout_format(&self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { self.output_format }
    }
}

#[derive(Debug, ClapArgs)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct ChatArgs {
    /// The agent [default: the session's, else the stock agent general-purpose]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// A model from belljar.toml, or a role, instead of the agent's own choice
    #[arg(long, short, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Resume a session: the latest conversation of this workspace, or the session, also a
    /// run, whose id begins so
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,
    /// Send every earlier turn as it was: no summary in the place of the older ones
    #[arg(long)]
    pub(crate) whole_history: bool,
    /// Talk with a blocked agent that has those of its tools that are granted
    #[arg(long)]
    pub(crate) partial: bool,
    /// Most steps of the whole session
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_steps: Option<u64>,
    /// Most tokens of the whole session, input and output together
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Most fuel of all tool calls of the whole session
    #[arg(long, value_name = "N")]
    pub(crate) max_fuel: Option<u64>,
    /// Most seconds from what you say to the end of the answer
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Play this transcript instead of asking a model
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) transcript: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) nobodys: NoTenant,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct AcpArgs {
    /// The agent of new sessions; the editor may choose another [default: general-purpose]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// A model from belljar.toml, or a role, instead of the agent's own choice
    #[arg(long, short, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Play this transcript instead of asking a model
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) transcript: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) nobodys: NoTenant,
}

/// The form of the output of `run` on stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The agent's last message
    #[default]
    Text,
    /// One object: the outcome
    Json,
    /// One line of JSON for each event as it happens
    StreamJson,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReceiptsArgs {
    /// A run, by its id or the beginning of it, or `latest` [default: list the runs]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) of: TenantArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    pub(crate) command: AgentsCommand,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents with their status; of large libraries the number of their agents
    List {
        /// List the agents of this library
        #[arg(long, value_name = "NAME")]
        library: Option<String>,
        /// Name every tool, and print descriptions in full
        #[arg(long, short, conflicts_with = "json")]
        verbose: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one agent: its definition, rights and limits
    Show {
        /// The agent
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what agent files are (ready, ready with warnings, blocked, invalid, not an agent), what
    /// each would get under this machine's grants, and what is wrong. Exits with 2 if a file is
    /// invalid, else with 4 if one is blocked, else with 0
    Check(CheckArgs),
    #[command(flatten)]
    Library(LibraryCommand),
}

/// Options of `agents check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Files, directories or names of agents [default: the agents of home and workspace]
    pub(crate) paths: Vec<PathBuf>,
    /// Print a JSON array: path, status, reasons, dialect, name, tools, ask, unavailable, needs
    /// and diagnostics of each file
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a table: a row for each folder directly below the given directories
    #[arg(long, conflicts_with = "json")]
    pub(crate) by_library: bool,
    /// Read frontmatter in a code fence or after a heading too, and fields under `meta:`
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Write files of other programs in belljar's own form: FILE.md as FILE.md.fixed
    #[arg(long, requires = "paths", conflicts_with = "json")]
    pub(crate) fix: bool,
    /// With --fix: replace the files themselves
    #[arg(long, requires = "fix")]
    pub(crate) in_place: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeamsCommand {
    /// List all teams with their stages
    List {
        #[command(flatten)]
        of: TenantArg,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check teams and whether their agents are there
    Check {
        /// Names of teams, or files [default: the teams of home and workspace]
        teams: Vec<String>,
        #[command(flatten)]
        of: TenantArg,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a team on a task: each stage's output becomes the next one's task
    Run(Box<TeamRunArgs>),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct TeamRunArgs {
    /// The team
    pub(crate) name: String,
    /// The task; `-` or nothing reads it from stdin
    pub(crate) task: Option<String>,
    /// A model from belljar.toml, or a role, for all agents instead of their own choices
    #[arg(long, short, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    #[command(flatten)]
    pub(crate) nobodys: NoTenant,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    pub(crate) command: SkillsCommand,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List all skills
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check skills
    Check {
        /// Names of skills, or files [default: the skills of home and workspace]
        skills: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CommandsArgs {
    #[command(subcommand)]
    pub(crate) command: CommandsCommand,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CommandsCommand {
    /// List all commands
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check commands
    Check {
        /// Names of commands, or files [default: the commands of home and workspace]
        commands: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DraftsArgs {
    #[command(subcommand)]
    pub(crate) command: DraftsCommand,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DraftsCommand {
    /// List the drafts below `drafts/` in your home, and what stands in their way
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check a draft like any other file and move it to where it is used; never overwrites
    Promote {
        /// Which: `agents/NAME`, `teams/NAME` or `skills/NAME`
        #[arg(value_name = "KIND/NAME")]
        draft: String,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) data: DataArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = crate::setup::exit::exit_table())]
pub(crate) struct ProveArgs {
    /// Only attacks with this in their names: `files`, `network-redirect`
    #[arg(value_name = "WORD")]
    pub(crate) only: Option<String>,
    /// The sandbox: tools, agents and models under a jar [default: all five parts]
    #[arg(long)]
    pub(crate) sandbox: bool,
    /// Libraries: hostile sources for `agents add`, `update` and `remove`
    #[arg(long)]
    pub(crate) libraries: bool,
    /// The server: a running `belljar serve` with two tenants, attacked over the network
    #[arg(long)]
    pub(crate) server: bool,
    /// The agent of editors: a running `belljar acp`, attacked by its editor
    #[arg(long)]
    pub(crate) editor: bool,
    /// The OS sandbox: system calls of a process that was taken over
    #[arg(long)]
    pub(crate) wall: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        CliArgs::command().debug_assert();
    }
}
