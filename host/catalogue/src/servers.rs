//! The configured MCP servers, each with its accepted tools. No server is contacted here.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use belljar_definition::{Diagnostic, McpGrants, McpProgram, McpSetting, Settings, Severity};
use belljar_mcp::{
    AcceptedTools, KeepTokens, ListedTool, LoginSetting, ProtocolRevision, SamplingGrant, Server,
    ServerGrants, ServerProgram, ServerTokens,
};
use belljar_model::ToolSpec;
use belljar_os_sandbox::Program;
use belljar_policy::{ShownPath as _, ToolName};

use crate::tool_files::{ReadError, read_bounded};

/// The prefix of every server's tool names, for example `mcp__work__calendar_list`.
const OF_SERVERS: &str = "mcp__";

/// The configured servers, with the index of their tools.
#[derive(Debug, Default)]
pub(crate) struct McpServers {
    servers: Vec<Arc<Server>>,
    owners: BTreeMap<ToolName, Arc<Server>>,
    /// The servers by the names that agent files have for them.
    pub(crate) called: BTreeMap<String, String>,
    pub(crate) problems: Vec<Diagnostic>,
}

impl McpServers {
    /// Reads the servers of these settings; `directory` has a file for each with its accepted tools.
    pub(crate) fn from_settings(directory: &Path, settings: &Settings) -> Self {
        let mut all = Self { called: settings.mcp_called.clone(), ..Self::default() };
        for (name, setting) in &settings.mcp {
            let server = match build_server(name, setting) {
                Ok(server) => server,
                Err(why) => {
                    all.problems.push(Diagnostic::for_file(directory, "bad-server", why));
                    continue;
                }
            };
            let server = all.with_tokens(server, &directory.join(ServerTokens::DIRECTORY), setting);
            let path = directory.join(AcceptedTools::file_name(name));
            let server = match read_bounded(&path, AcceptedTools::MAX_BYTES) {
                Ok(text) => match AcceptedTools::parse(name, &text) {
                    Ok(accepted) => server.with_accepted(&setting.url, accepted),
                    Err(why) => {
                        all.problems.push(Diagnostic::for_file(
                            &path,
                            "bad-server",
                            why.to_string(),
                        ));
                        server
                    }
                },
                Err(ReadError::Io(found)) if found.kind() == std::io::ErrorKind::NotFound => server,
                Err(why) => {
                    all.problems.push(Diagnostic::for_file(&path, "bad-server", why.to_string()));
                    server
                }
            };
            all.add_server(&path, server);
        }
        for (name, setting) in &settings.mcp_programs {
            all.add_program(directory, name, setting);
        }
        all
    }

    /// The server with a person's token.
    fn with_tokens(&mut self, server: Server, directory: &Path, setting: &McpSetting) -> Server {
        let keep: Arc<dyn KeepTokens> = Arc::new(TokenFiles(directory.to_path_buf()));
        let tokens = keep.stored_tokens(&server).unwrap_or_else(|why| {
            let name = server.name();
            let cure = match setting.oauth.is_service {
                // No person can log in to this server.
                true => format!("remove it: `belljar mcp logout {name}`"),
                false => format!("log in again: `belljar mcp login {name}`"),
            };
            let path = directory.join(ServerTokens::file_name(name));
            self.problems.push(Diagnostic::for_file(&path, "bad-token", format!("{why}; {cure}")));
            None
        });
        server.with_tokens(tokens, Some(keep))
    }

    /// Adds a server that is a program of this machine.
    fn add_program(&mut self, directory: &Path, name: &str, setting: &McpProgram) {
        let path = directory.join(AcceptedTools::file_name(name));
        let accepted = match read_bounded(&path, AcceptedTools::MAX_BYTES) {
            Ok(text) => AcceptedTools::parse(name, &text).map_err(|why| why.to_string()).map(Some),
            Err(ReadError::Io(found)) if found.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why.to_string()),
        };
        let accepted = accepted.unwrap_or_else(|why| {
            self.problems.push(Diagnostic::for_file(&path, "bad-server", why));
            None
        });
        match build_program_server(name, setting, accepted) {
            Ok(server) => self.add_server(&path, server),
            Err(why) => self.problems.push(Diagnostic::for_file(directory, "bad-server", why)),
        }
    }

    /// Adds a server and the index of the server's accepted tools.
    fn add_server(&mut self, path: &Path, server: Server) {
        if let Some(why) = server.withheld_reason() {
            let name = server.name();
            self.problems.push(Diagnostic {
                severity: Severity::Warning,
                ..Diagnostic::for_file(path, "unseen-server", format!("MCP server `{name}`: {why}"))
            });
        }
        let server = Arc::new(server);
        for tool in server.tools().keys() {
            self.owners.insert(tool.clone(), Arc::clone(&server));
        }
        self.servers.push(server);
    }

    pub(crate) fn list_servers(&self) -> &[Arc<Server>] {
        &self.servers
    }

    pub(crate) fn tool_names(&self) -> impl Iterator<Item = &ToolName> {
        self.owners.keys()
    }

    /// The server of a tool, and the accepted tool.
    pub(crate) fn find_tool(&self, tool: &str) -> Option<(&Arc<Server>, &ListedTool)> {
        let server = self.owners.get(tool)?;
        Some((server, server.tools().get(tool)?))
    }

    /// Why a tool is unavailable, if its name belongs to a configured server.
    pub(crate) fn unavailable_reason(&self, tool: &str) -> Option<String> {
        let (server, _) = tool.strip_prefix(OF_SERVERS)?.split_once("__")?;
        let server = self.servers.iter().find(|it| it.name() == server)?;
        let name = server.name();
        Some(match server.withheld_reason() {
            Some(why) => why.to_owned(),
            None => format!("no such tool of the MCP server `{name}` was accepted"),
        })
    }
}

/// The client's description of a server, without accepted tools.
///
/// # Errors
///
/// The address is invalid.
fn build_server(name: &str, setting: &McpSetting) -> Result<Server, String> {
    let timeout = setting.timeout_seconds.map(Duration::from_secs);
    let (host, secrets) = (setting.host.clone(), setting.secrets.clone());
    let server = Server::new(name, &setting.url, host, secrets, timeout);
    let server = server.map_err(|why| why.to_string())?;
    let revision = setting.revision.as_deref().and_then(ProtocolRevision::from_name);
    let oauth = setting.oauth.clone();
    let server = server.with_grants(server_grants(&setting.grants, Vec::new()));
    Ok(server.spoken_to(revision).with_login(LoginSetting {
        issuer: oauth.issuer,
        client_id: oauth.client_id,
        client_secret: oauth.client_secret,
        client_metadata_url: oauth.client_metadata_url,
        is_service: oauth.is_service,
        scopes: oauth.scopes,
    }))
}

/// The file that is locked during changes to the other files. No server can have such a name.
const LOCK: &str = ".lock";

/// The files of tokens in a directory, one for each server.
#[derive(Debug)]
pub struct TokenFiles(pub PathBuf);

impl KeepTokens for TokenFiles {
    fn stored_tokens(&self, server: &Server) -> Result<Option<ServerTokens>, String> {
        let path = self.0.join(ServerTokens::file_name(server.name()));
        match read_bounded(&path, ServerTokens::MAX_BYTES) {
            Ok(text) => ServerTokens::parse(server, &text).map(Some).map_err(|why| why.to_string()),
            Err(ReadError::Io(found)) if found.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(why.to_string()),
        }
    }

    fn store_tokens(&self, server: &str, tokens: &ServerTokens) -> Result<(), String> {
        let _alone = self.lock_files()?;
        self.write_tokens(server, tokens)
    }

    fn replace_tokens(
        &self,
        server: &Server,
        before: &ServerTokens,
        next: &ServerTokens,
    ) -> Result<bool, String> {
        let _alone = self.lock_files()?;
        if self.stored_tokens(server)?.as_ref() != Some(before) {
            return Ok(false);
        }
        self.write_tokens(server.name(), next).map(|()| true)
    }
}

impl TokenFiles {
    /// Removes the tokens of a server; returns whether any existed.
    ///
    /// # Errors
    ///
    /// The tokens cannot be removed.
    pub fn remove_tokens(&self, server: &str) -> Result<bool, String> {
        let path = self.0.join(ServerTokens::file_name(server));
        if !path.exists() {
            return Ok(false);
        }
        let _alone = self.lock_files()?;
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("failed to remove `{}`: {error}", path.to_shown())),
        }
    }

    /// Locks the token files until the returned file is dropped. Otherwise a process that renews a token
    /// could restore one that a person has just removed.
    fn lock_files(&self) -> Result<std::fs::File, String> {
        // INV-487: a renewal has no earlier check for links.
        if self.0.is_symlink() {
            return Err(format!("`{}` is a link: tokens are kept behind none", self.0.to_shown()));
        }
        let path = self.0.join(LOCK);
        let failed =
            |error: std::io::Error| format!("failed to lock `{}`: {error}", path.to_shown());
        let file =
            std::fs::File::options().create(true).append(true).open(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    /// Writes to a temporary file and renames it, so that a crash loses neither the old nor the new tokens.
    fn write_tokens(&self, server: &str, tokens: &ServerTokens) -> Result<(), String> {
        let text = tokens.to_text().map_err(|why| why.to_string())?;
        let path = self.0.join(ServerTokens::file_name(server));
        let failed =
            |error: std::io::Error| format!("failed to write `{}`: {error}", path.to_shown());
        // Readable by the owner only.
        let mut beside = tempfile::NamedTempFile::new_in(&self.0).map_err(failed)?;
        beside.write_all(text.as_bytes()).map_err(failed)?;
        beside.persist(&path).map(drop).map_err(|error| failed(error.error))
    }
}

/// The client's description of a program's server, with its accepted tools.
fn build_program_server(
    name: &str,
    setting: &McpProgram,
    accepted: Option<AcceptedTools>,
) -> Result<Server, String> {
    let nowhere = NOWHERE.parse().map_err(|_| format!("`{NOWHERE}` is no host"))?;
    let timeout = setting.timeout_seconds.map(Duration::from_secs);
    let server = Server::new(name, NOWHERE, nowhere, setting.secret_names(), timeout);
    let server = server.map_err(|why| why.to_string())?;
    let directories = setting.read.union(&setting.write).cloned().collect();
    let server = server.with_grants(server_grants(&setting.grants, directories));
    let program = ServerProgram::new(broker_program(name, setting), setting.command_line());
    Ok(server.with_program(program, accepted))
}

/// The grants of a server, by the operator's settings. A program may list its granted directories; a remote
/// server has none.
fn server_grants(grants: &McpGrants, directories: Vec<PathBuf>) -> ServerGrants {
    let sampling = grants.sampling.clone();
    let sampling = sampling.map(|(model, tokens)| SamplingGrant { model, tokens });
    let roots = grants.roots.then_some(directories);
    ServerGrants { elicitation: grants.elicitation, sampling, roots }
}

/// The address of a program's server: a reserved name that resolves to no address.
const NOWHERE: &str = "https://command.invalid";

/// The description of a server's program for the broker.
pub fn broker_program(name: &str, setting: &McpProgram) -> Program {
    Program {
        name: name.to_owned(),
        path: setting.command.clone(),
        args: setting.args.clone(),
        data: setting.data.clone(),
        read: setting.read.clone(),
        write: setting.write.clone(),
        network: setting.network,
        only_port: None,
        memory: setting.memory_mib.saturating_mul(1 << 20),
        processes: setting.processes,
    }
}

/// The description of a server's tool for a model.
pub(crate) fn tool_spec(name: &ToolName, tool: &ListedTool) -> ToolSpec {
    ToolSpec {
        name: name.as_str().to_owned(),
        description: tool.description.clone(),
        schema: tool.schema.clone(),
    }
}
