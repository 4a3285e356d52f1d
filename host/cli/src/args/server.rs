//! The commands around the server: `serve`, `keys`, `tenants`, `sessions`. Doc comments here are
//! what `--help` says.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Where the server keeps what it has.
#[derive(Debug, Args)]
pub(crate) struct DataArg {
    /// The data root: the store, and the homes and workspaces of tenants [default: `data` under
    /// `[server]` in belljar.toml, else `sessions` in your home]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data: Option<PathBuf>,
}

/// Whose agents, tools and sessions, and where they are kept.
#[derive(Debug, Args)]
pub(crate) struct TenantArg {
    /// A tenant of the server [default: your own]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) tenant: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArg,
}

/// The same for a command that is nobody's: it says why, and what to do instead.
#[derive(Debug, Args)]
pub(crate) struct NoTenant {
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address and port, or a port of this machine alone [default: `listen` under `[server]`, else
    /// 127.0.0.1:7411]
    #[arg(long, value_name = "ADDR", value_parser = parse_listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// A name that the server goes by, beside those of this machine; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) host_name: Vec<String>,
    /// Listen on an address that other machines reach, without a name of `--host-name`: connections
    /// are not encrypted, so a proxy with TLS belongs in front
    #[arg(long)]
    pub(crate) public: bool,
    /// Let the page and the API put what agents changed into this directory, and take it back there;
    /// without it they do so only where a grant lets an agent write
    #[arg(long)]
    pub(crate) apply: bool,
    /// An origin whose pages may call, such as `https://app.example.org`; repeatable
    #[arg(long, value_name = "URL")]
    pub(crate) origin: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataArg,
}

/// The port that the server listens on by default.
pub(crate) const USUAL_PORT: u16 = 7411;

/// Parses an address with a port, or only a port, which means this machine's loopback address.
fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = |text: &str| text.parse::<u16>().ok();
    if let Some(port) = port(text) {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    // The error suggests a valid form: the typed address with a port, otherwise this machine's loopback
    // address. It never suggests an address that other machines reach unless the person typed it.
    let address = match text.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => SocketAddr::new(address, USUAL_PORT),
        Err(_) => {
            let port = text.rsplit_once(':').and_then(|(_, end)| port(end));
            SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(USUAL_PORT)))
        }
    };
    Err(format!("an address is written with its port: `{address}`"))
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The archive to write; one that is there is not replaced
    pub(crate) file: PathBuf,
    /// The workspaces of the tenants' agents too
    #[arg(long)]
    pub(crate) workspaces: bool,
    #[command(flatten)]
    pub(crate) data: DataArg,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The archive, as `belljar backup` wrote it
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArg,
}

#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    pub(crate) command: KeysCommand,
    #[command(flatten)]
    pub(crate) data: DataArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key and print it; it is shown this once
    Create {
        /// Whose it is
        #[arg(long, value_name = "NAME", default_value = belljar_store::TENANT)]
        tenant: String,
        /// The rights of the key
        #[arg(long, value_enum)]
        scope: ScopeArg,
        /// A name that you will recognise it by
        #[arg(long)]
        name: String,
    },
    /// List the keys, without their secrets
    List {
        /// Of this tenant alone
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the browsers that are logged in, with a key or by the link that `serve` prints
    Logins {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key, or end a login: from now on it opens nothing
    Revoke {
        /// Its id, as `keys list` or `keys logins` shows it
        id: String,
    },
    /// Let everybody on this machine in without a key, after all keys were revoked; holds from
    /// the next start of the server to the next key
    OpenToThisMachine {
        /// Do it without asking
        #[arg(long, short)]
        yes: bool,
    },
}

/// The rights of a key, each with all that those after it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Change agents, delete all sessions, read the audit log
    Admin,
    /// Talk, cancel, answer, delete sessions
    Member,
    /// Look
    ReadOnly,
}

#[derive(Debug, Args)]
pub(crate) struct TenantsArgs {
    #[command(subcommand)]
    pub(crate) command: TenantsCommand,
    #[command(flatten)]
    pub(crate) data: DataArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantsCommand {
    /// Make a tenant with a home and a workspace of its own, below the data root
    Add {
        /// Its name: 1 to 40 of a to z, 0 to 9 and -
        name: String,
    },
    /// List the tenants
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let its keys open nothing any more, or, with --enable, again
    Disable {
        /// The tenant
        name: String,
        /// Take it back
        #[arg(long)]
        enable: bool,
    },
    /// Delete a tenant with its keys, sessions and agents; its files stay on disk, and are no other
    /// tenant's
    Rm {
        /// The tenant
        name: String,
        /// Delete its files too: settings, agents, tools, workspace
        #[arg(long)]
        purge: bool,
        /// Delete without asking
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
    #[command(flatten)]
    pub(crate) of: TenantArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, those that were last added to first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what was said in a session
    Show {
        /// The session: its id, the beginning of it, or `latest`
        id: String,
    },
    /// Print a session with everything of it as one JSON object
    Export {
        /// The session: its id, the beginning of it, or `latest`
        id: String,
    },
    /// Delete a session, or all, with all that belongs to it
    Rm {
        /// The session: its id, the beginning of it, or `latest`; `--all` in its place deletes all
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Delete all sessions
        #[arg(long)]
        all: bool,
        /// Delete without asking
        #[arg(long, short)]
        yes: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine_and_what_is_no_address_says_how_to_write_it() {
        let of = |text| parse_listen_address(text).map(|address| address.to_string());
        assert_eq!(of("7513").unwrap(), "127.0.0.1:7513");
        assert_eq!(of("0.0.0.0:80").unwrap(), "0.0.0.0:80");
        assert_eq!(of("[::1]:80").unwrap(), "[::1]:80");
        for (text, meant) in [
            (":7513", "`127.0.0.1:7513`"),
            ("localhost:7513", "`127.0.0.1:7513`"),
            ("192.0.2.1", "`192.0.2.1:7411`"),
            ("::1", "`[::1]:7411`"),
            ("99999", "`127.0.0.1:7411`"),
            ("", "`127.0.0.1:7411`"),
        ] {
            assert!(of(text).unwrap_err().ends_with(meant), "{text}: {:?}", of(text));
        }
    }
}
