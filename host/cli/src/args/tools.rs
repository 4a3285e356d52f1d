//! The commands of `belljar tools`. Doc comments here are what `--help` says.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::server::{NoTenant, TenantArg};

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools
    List {
        #[command(flatten)]
        of: TenantArg,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what a component imports, exports and offers; works on any `.wasm`
    Inspect {
        /// A file, or the name of a tool
        component: String,
        #[command(flatten)]
        of: TenantArg,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Call a tool once, on the workspace, with nothing else granted
    Call(ToolCallArgs),
    /// Show what the tool names and arguments of other programs become here
    Aliases {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print the page of the documentation
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        #[command(flatten)]
        nobodys: NoTenant,
    },
    /// Start a tool of your own: a project with the SDK of its language
    New {
        /// Its name: a letter, then letters, digits and `_`
        name: String,
        /// The language: `rust`, `python`, `javascript` (also for TypeScript), `c`, `cpp`, `go`, `zig` or
        /// `assemblyscript`
        #[arg(long, value_name = "LANG", default_value = "rust")]
        lang: String,
        /// Where to put it [default: a directory of that name]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        #[command(flatten)]
        nobodys: NoTenant,
    },
    /// Build a tool project into a component
    Build(ToolBuildArgs),
    /// Hold a conformance component against the suite of cases: for authors of SDKs
    Test {
        /// The component
        component: PathBuf,
        #[command(flatten)]
        nobodys: NoTenant,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install a component that is there already: a tool, a command or functions
    Add(ToolAddArgs),
    /// Remove an installed tool, and say whose grants name it
    Remove {
        /// The name it is installed under
        name: String,
        /// Remove it without asking
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        of: TenantArg,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ToolAddArgs {
    /// A component, or a core module that is a command for WASI preview 1, which is adapted
    pub(crate) file: PathBuf,
    /// The name to install it under [default: that of the file, or of its folder where the file's
    /// says nothing, as `tool.wasm` does]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Its manifest [default: a `tool.toml` beside the file, else one of --mounts and --host]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mounts", "host"])]
    pub(crate) manifest: Option<PathBuf>,
    /// Mounts that its manifest asks for, where there is none yet: `read` or `read-write`
    #[arg(long, value_name = "ACCESS")]
    pub(crate) mounts: Option<String>,
    /// A host that its manifest asks for, where there is none yet; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) host: Vec<String>,
    /// Install it without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Args)]
pub(crate) struct ToolBuildArgs {
    /// The project
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Put the component and its manifest where belljar finds them, after checking it and
    /// showing what changes; a tool that belljar.toml pins is pinned anew, with your yes
    #[arg(long)]
    pub(crate) install: bool,
    /// With --install: pin anew without asking
    #[arg(long, short, requires = "install")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Args)]
pub(crate) struct ToolCallArgs {
    /// The name of a tool, or a component file
    #[arg(value_name = "TOOL")]
    pub(crate) component: String,
    /// The arguments, a JSON object; `-` reads them from stdin
    pub(crate) arguments: String,
    /// Which tool of a component that has several
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Mount the workspace writable
    #[arg(long)]
    pub(crate) allow_write: bool,
    /// A host that the tool may reach, such as `https://example.org`; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) host: Vec<String>,
    /// A secret that goes with its requests: `NAME=env:VARIABLE` or `NAME=file:PATH`, to the hosts
    /// of this call, as `Authorization: Bearer` unless `,header=NAME` and `,prefix=TEXT` follow; or
    /// `NAME`, as belljar.toml has it; repeatable
    #[arg(long, value_name = "NAME[=env:VARIABLE]")]
    pub(crate) secret: Vec<String>,
    #[command(flatten)]
    pub(crate) of: TenantArg,
    /// Print one JSON object: the output and the receipt
    #[arg(long)]
    pub(crate) json: bool,
}
