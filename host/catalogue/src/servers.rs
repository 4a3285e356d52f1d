//! MCP servers: those that the operator configured, with what was accepted of each. Nothing is asked of
//! them here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use belljar_definition::{Diagnostic, McpSetting, Settings, Severity};
use belljar_mcp::{Accepted, ListedTool, Server};
use belljar_model::ToolSpec;
use belljar_policy::ToolName;

use crate::tool_files::{ReadError, error, read_bounded};

/// How the name of every tool of a server begins.
const OF_SERVERS: &str = "mcp__";

/// The configured servers, and whose each tool is.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    servers: Vec<Arc<Server>>,
    owners: BTreeMap<ToolName, Arc<Server>>,
    pub(crate) problems: Vec<Diagnostic>,
}

impl Servers {
    /// The servers of these settings; `directory` has a file for each of which something was accepted.
    pub(crate) fn of(directory: &Path, settings: &Settings) -> Self {
        let mut all = Self::default();
        for (name, setting) in &settings.mcp {
            let server = match configured(name, setting) {
                Ok(server) => server,
                Err(why) => {
                    all.problems.push(error(directory, "bad-server", why));
                    continue;
                }
            };
            let path = directory.join(Accepted::file(name));
            let server = match read_bounded(&path, Accepted::MAX_BYTES) {
                Ok(text) => match Accepted::parse(name, &text) {
                    Ok(accepted) => server.with(&setting.url, accepted),
                    Err(why) => {
                        all.problems.push(error(&path, "bad-server", why.to_string()));
                        server
                    }
                },
                Err(ReadError::Io(found)) if found.kind() == std::io::ErrorKind::NotFound => server,
                Err(why) => {
                    all.problems.push(error(&path, "bad-server", why.to_string()));
                    server
                }
            };
            if let Some(why) = server.withheld() {
                all.problems.push(Diagnostic {
                    severity: Severity::Warning,
                    ..error(&path, "unseen-server", format!("MCP server `{name}`: {why}"))
                });
            }
            let server = Arc::new(server);
            for tool in server.tools().keys() {
                all.owners.insert(tool.clone(), Arc::clone(&server));
            }
            all.servers.push(server);
        }
        all
    }

    pub(crate) fn all(&self) -> &[Arc<Server>] {
        &self.servers
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.owners.keys()
    }

    /// The server that a tool belongs to, and the tool as it was accepted.
    pub(crate) fn find(&self, tool: &str) -> Option<(&Arc<Server>, &ListedTool)> {
        let server = self.owners.get(tool)?;
        Some((server, server.tools().get(tool)?))
    }

    /// Why a tool of a server cannot be had, where its name is of one that is configured.
    pub(crate) fn lacks(&self, tool: &str) -> Option<String> {
        let (server, _) = tool.strip_prefix(OF_SERVERS)?.split_once("__")?;
        let server = self.servers.iter().find(|it| it.name() == server)?;
        let name = server.name();
        Some(match server.withheld() {
            Some(why) => why.to_owned(),
            None => format!("no such tool of the MCP server `{name}` was accepted"),
        })
    }
}

/// A server as a client sees it. Of one nothing is accepted yet.
///
/// # Errors
///
/// When its address is none.
pub fn configured(name: &str, setting: &McpSetting) -> Result<Server, String> {
    let timeout = setting.timeout_seconds.map(Duration::from_secs);
    let (host, secrets) = (setting.host.clone(), setting.secrets.clone());
    Server::new(name, &setting.url, host, secrets, timeout).map_err(|why| why.to_string())
}

/// A tool of a server as a model is shown it.
pub(crate) fn spec(name: &ToolName, tool: &ListedTool) -> ToolSpec {
    ToolSpec {
        name: name.as_str().to_owned(),
        description: tool.description.clone(),
        schema: tool.schema.clone(),
    }
}
