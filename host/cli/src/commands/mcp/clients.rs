//! The known MCP clients: the settings file of each, and the entry with which it starts belljar.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::args::mcp::McpClient;
use crate::setup::home::HomePaths;

/// The format of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientFileForm {
    Json,
    Toml,
}

/// The entry for a client, and the file that it belongs into.
#[derive(Debug)]
pub(super) struct ClientEntry {
    /// The client's file; `None` = its directory is unknown, because there is no home directory.
    pub(super) file: Option<PathBuf>,
    pub(super) form: ClientFileForm,
    /// The key in the file below which the servers are listed.
    pub(super) table: &'static str,
    pub(super) value: Value,
    /// True if the client uses the same entry, and so the same workspace, for all projects.
    pub(super) for_all: bool,
}

/// The entry with which a client starts this program for a workspace, with the home and the cache of this
/// process. If the client has a settings file in each project, the entry is written there, so that it counts
/// for that project only.
pub(super) fn client_entry(
    client: McpClient,
    program: &Path,
    workspace: &Path,
    places: &HomePaths,
) -> ClientEntry {
    let home = places.user_home.as_deref();
    let command = program.to_string_lossy().into_owned();
    let workspace_text = workspace.to_string_lossy().into_owned();
    let args = json!(["mcp", "--workspace", workspace_text]);
    let below = |path: &str| home.map(|home| home.join(path));
    let plain = json!({"command": command, "args": args});
    let typed = json!({"type": "stdio", "command": command, "args": args});
    let of_project = |path: &str| Some(workspace.join(path));
    let (file, form, table, mut value) = match client {
        McpClient::ClaudeCode => {
            (of_project(".mcp.json"), ClientFileForm::Json, "mcpServers", typed)
        }
        McpClient::ClaudeDesktop => {
            (below(CLAUDE_DESKTOP), ClientFileForm::Json, "mcpServers", plain)
        }
        McpClient::Cursor => {
            // Cursor has one file for all projects, and replaces this variable by the path of the open
            // project.
            let args = json!(["mcp", "--workspace", "${workspaceFolder}"]);
            let value = json!({"command": command, "args": args});
            (below(".cursor/mcp.json"), ClientFileForm::Json, "mcpServers", value)
        }
        McpClient::VsCode => {
            (of_project(".vscode/mcp.json"), ClientFileForm::Json, "servers", typed)
        }
        McpClient::Zed => {
            let value = json!({"source": "custom", "command": command, "args": args, "env": {}});
            (of_project(".zed/settings.json"), ClientFileForm::Json, "context_servers", value)
        }
        McpClient::Codex => {
            (of_project(".codex/config.toml"), ClientFileForm::Toml, "mcp_servers", plain)
        }
        McpClient::Opencode => {
            let words = json!([command, "mcp", "--workspace", workspace_text]);
            let value = json!({"type": "local", "command": words, "enabled": true});
            (of_project("opencode.json"), ClientFileForm::Json, "mcp", value)
        }
        McpClient::Gemini => {
            (of_project(".gemini/settings.json"), ClientFileForm::Json, "mcpServers", plain)
        }
    };
    // A client starts belljar with its own environment, which may lack these variables.
    let variables: serde_json::Map<String, Value> = places
        .path_variables()
        .into_iter()
        .map(|(name, path)| (name.to_owned(), path.to_string_lossy().into()))
        .collect();
    if !variables.is_empty() {
        let key = if client == McpClient::Opencode { "environment" } else { "env" };
        value[key] = Value::Object(variables);
    }
    let for_all = client == McpClient::ClaudeDesktop;
    ClientEntry { file, form, table, value, for_all }
}

/// The file in which Claude Desktop lists its servers, below the home directory.
#[cfg(target_os = "macos")]
const CLAUDE_DESKTOP: &str = "Library/Application Support/Claude/claude_desktop_config.json";
#[cfg(not(target_os = "macos"))]
const CLAUDE_DESKTOP: &str = ".config/Claude/claude_desktop_config.json";
