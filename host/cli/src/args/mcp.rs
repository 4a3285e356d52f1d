//! Options of `mcp`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::args::server::{NoTenant, TenantArg};

/// Options of `mcp`.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, after_help = crate::setup::exit::exit_table())]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
    /// Play this transcript instead of asking a model
    #[arg(long, value_name = "FILE")]
    pub(crate) transcript: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) nobodys: NoTenant,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Print what a client has to be told to start belljar for this workspace
    Config {
        /// The client
        client: McpClient,
        /// Add it to the file that the client reads, whose other contents stay
        #[arg(long)]
        write: bool,
    },
    /// List the MCP servers of `belljar.toml`, and what was accepted of each
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        of: TenantArg,
    },
    /// Show what an MCP server offers now, beside what was accepted, and accept it
    Review {
        /// The server, `[mcp.NAME]` in `belljar.toml`
        server: String,
        /// Accept what was shown before, by the digest that was printed with it
        #[arg(long, value_name = "DIGEST")]
        accept: Option<String>,
        #[command(flatten)]
        of: TenantArg,
    },
    /// Get a token for an MCP server: prints the address where a person says yes, and waits for it
    Login(LoginArgs),
    /// Remove the token of an MCP server
    Logout {
        /// The server, `[mcp.NAME]` in `belljar.toml`
        server: String,
        #[command(flatten)]
        of: TenantArg,
    },
}

/// Options of `mcp login`.
#[derive(Debug, ClapArgs)]
pub(crate) struct LoginArgs {
    /// The server, `[mcp.NAME]` in `belljar.toml`
    pub(crate) server: String,
    /// Ask for these rights too, with blanks between
    #[arg(long, value_name = "RIGHTS")]
    pub(crate) scope: Option<String>,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

/// A program that speaks MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClient {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
    Zed,
    Codex,
    Opencode,
    #[value(name = "gemini-cli")]
    Gemini,
}
