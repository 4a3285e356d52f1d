//! The MCP servers of a plugin, as its author wrote them. Nothing here connects or starts one.

use std::collections::BTreeSet;
use std::fmt;

use belljar_policy::ShownText;
use serde_json::{Map, Value};

use super::format::PluginFormat;
use crate::diagnostic::{FileFindings, FilePosition};

/// The most servers of one plugin.
const MAX_SERVERS: usize = 100;

/// The most arguments of a program, and variables of an environment.
const MAX_WORDS: usize = 200;

/// One MCP server of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginServer {
    /// The name as written.
    pub name: String,
    /// The way to it.
    pub transport: ServerTransport,
}

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTransport {
    /// A program that is started.
    Program {
        /// The program, without its arguments.
        command: String,
        /// The arguments.
        args: Vec<String>,
        /// The variables of its environment, with their values as written.
        env: Vec<(String, String)>,
    },
    /// An address.
    Http {
        /// The address as written.
        url: String,
        /// The headers with their values as written.
        headers: Vec<(String, String)>,
    },
}

impl PluginServer {
    /// The beginning of the names of its tools: `mcp__plugin_PLUGIN_SERVER__`.
    pub fn tool_prefix(&self, plugin: &str) -> String {
        format!("mcp__plugin_{}_{}__", to_word(plugin), to_word(&self.name))
    }

    /// The variables that it expects, for example `TOKEN` of `${TOKEN}`, in order.
    pub fn variables(&self) -> BTreeSet<String> {
        let texts: Vec<&str> = match &self.transport {
            ServerTransport::Program { command, args, env } => {
                let values = env.iter().map(|(_, value)| value.as_str());
                args.iter().map(String::as_str).chain(values).chain([command.as_str()]).collect()
            }
            ServerTransport::Http { url, headers } => {
                headers.iter().map(|(_, value)| value.as_str()).chain([url.as_str()]).collect()
            }
        };
        let own = ["CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "PLUGIN_ROOT", "PLUGIN_DATA"];
        let found = texts.into_iter().flat_map(variables_in);
        found.filter(|name| !own.contains(&name.as_str())).collect()
    }

    /// The command line that a program has, for a person.
    pub fn command_line(&self) -> Option<String> {
        let ServerTransport::Program { command, args, .. } = &self.transport else { return None };
        let words = [command].into_iter().chain(args).map(|word| ShownText::clip_line(word, 200));
        Some(words.map(|word| word.to_string()).collect::<Vec<_>>().join(" "))
    }

    /// What a package runner would fetch at each start, and whether its version is fixed; `None` = it fetches
    /// nothing that its command line shows.
    pub fn fetched_package(&self) -> Option<FetchedPackage> {
        let ServerTransport::Program { command, args, .. } = &self.transport else { return None };
        let program = command.rsplit('/').next().unwrap_or(command);
        let (registry, mut words) = match program {
            "npx" | "bunx" | "pnpx" => ("npm", args.iter().peekable()),
            "uvx" | "pipx" => ("PyPI", args.iter().peekable()),
            _ => return None,
        };
        words.next_if(|word| *word == "run");
        let mut package = None;
        while let Some(word) = words.next() {
            match word.as_str() {
                "-p" | "--package" | "--from" => {
                    package = words.next().cloned();
                    break;
                }
                option if option.starts_with('-') => {}
                name => {
                    package = Some(name.to_owned());
                    break;
                }
            }
        }
        let package = package?;
        let version = match package
            .strip_prefix('@')
            .map_or(package.as_str(), |rest| rest)
            .rsplit_once('@')
        {
            Some((_, version)) => Some(version),
            None => package.split_once("==").map(|(_, version)| version),
        };
        let is_exact = |version: &str| {
            version.starts_with(|c: char| c.is_ascii_digit())
                && version
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
                && version.contains('.')
        };
        let fixed = version.is_some_and(is_exact);
        Some(FetchedPackage { registry, package, fixed })
    }
}

/// A package that a program's command line fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPackage {
    /// `npm` or `PyPI`.
    pub registry: &'static str,
    /// The package as written.
    pub package: String,
    /// Whether its version is fixed. Even then nothing names its digest.
    pub fixed: bool,
}

impl fmt::Display for PluginServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ShownText::clip_line(&self.name, 60);
        match &self.transport {
            ServerTransport::Program { .. } => {
                write!(f, "{name}: would start `{}`", self.command_line().unwrap_or_default())
            }
            ServerTransport::Http { url, .. } => {
                write!(f, "{name}: {}", ShownText::clip_line(url, 200))
            }
        }
    }
}

/// The names in `${NAME}` and `${NAME:-default}`.
fn variables_in(text: &str) -> Vec<String> {
    let parts = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    let names = parts.map(|(name, _)| name.split(":-").next().unwrap_or(name).to_owned());
    names.filter(|name| !name.is_empty() && name.len() <= 100).collect()
}

/// Letters, digits, `-` and `_`; others become `_`.
fn to_word(text: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    text.chars().map(kept).collect()
}

/// Reads the servers of a document: `{"mcpServers": {NAME: ...}}`, or the inner object alone. A malformed
/// server is reported, and its siblings stay.
pub(super) fn read_servers(
    mut map: Map<String, Value>,
    format: PluginFormat,
    found: &mut Vec<PluginServer>,
    findings: &mut FileFindings<'_>,
) {
    let at = FilePosition::default();
    let servers = match map.remove("mcpServers").or_else(|| map.remove("servers")) {
        Some(Value::Object(servers)) => servers,
        Some(_) => return findings.warning(at, "bad-servers", "`mcpServers` is no object", None),
        None if format == PluginFormat::AgentPlugins => {
            return findings.warning(at, "bad-servers", "there is no `mcpServers`", None);
        }
        None => {
            map.remove("$schema");
            map
        }
    };
    for (name, server) in servers {
        if found.len() >= MAX_SERVERS {
            return findings.warning(
                at,
                "too-many",
                format!("more than {MAX_SERVERS} servers"),
                None,
            );
        }
        let shown = ShownText::clip_line(&name, 60).to_string();
        let read = server.as_object().ok_or_else(|| "is no object".to_owned());
        let read = read.and_then(|server| read_transport(server, format));
        match read {
            Ok(_) if found.iter().any(|it| it.name == name) => {
                let message = format!("server `{shown}` is there twice; the first one counts");
                findings.warning(at, "bad-server", message, None);
            }
            Ok(_)
                if name.is_empty() || name.len() > 64 || name.chars().any(ShownText::is_hidden) =>
            {
                findings.warning(
                    at,
                    "bad-server",
                    format!("`{shown}` is no name of a server"),
                    None,
                );
            }
            Ok(transport) => found.push(PluginServer { name, transport }),
            Err(why) => {
                findings.warning(at, "bad-server", format!("server `{shown}` {why}"), None);
            }
        }
    }
}

fn read_transport(
    server: &Map<String, Value>,
    format: PluginFormat,
) -> Result<ServerTransport, String> {
    let text = |key: &str| match server.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= 4_000 => Ok(Some(text.clone())),
        Some(_) => Err(format!("has a `{key}` that is no text, or too long")),
    };
    let is_closed = format == PluginFormat::AgentPlugins;
    let kind = text("type")?.or(text("transport")?);
    let url = text("url")?.or(text("httpUrl")?).or(text("serverUrl")?);
    match (kind.as_deref(), text("command")?, url) {
        (_, Some(_), Some(_)) => Err("has both a `command` and a `url`".to_owned()),
        (Some("http" | "streamable-http" | "sse" | "streamableHttp") | None, None, Some(url)) => {
            if is_closed {
                check_url(&url)?;
            }
            Ok(ServerTransport::Http { url, headers: read_pairs(server, "headers")? })
        }
        (Some("stdio") | None, Some(command), None) => {
            if is_closed && !is_token(&command) {
                return Err("has a `command` that is no single word or `./path`".to_owned());
            }
            if command.trim().is_empty() || command.contains('\0') {
                return Err("has no command".to_owned());
            }
            let args = match server.get("args") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(args)) if args.len() <= MAX_WORDS => args
                    .iter()
                    .map(|it| {
                        it.as_str().map(str::to_owned).ok_or("has an argument that is no text")
                    })
                    .collect::<Result<_, _>>()?,
                Some(_) => return Err("has `args` that are no list, or too many".to_owned()),
            };
            Ok(ServerTransport::Program { command, args, env: read_pairs(server, "env")? })
        }
        (Some(kind), _, _) => {
            Err(format!("is of kind `{}` without what it needs", ShownText::clip_line(kind, 40)))
        }
        (None, None, None) => Err("has neither a `command` nor a `url`".to_owned()),
    }
}

fn read_pairs(server: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, String> {
    match server.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(map)) if map.len() <= MAX_WORDS => map
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name.clone(), text.clone())),
                Value::Number(number) => Ok((name.clone(), number.to_string())),
                Value::Bool(flag) => Ok((name.clone(), flag.to_string())),
                _ => Err(format!("has a value in `{key}` that is no text")),
            })
            .collect(),
        Some(_) => Err(format!("has `{key}` that is no object, or too large")),
    }
}

/// Agent Plugins: one word, bare or a path below the plugin.
fn is_token(command: &str) -> bool {
    let is_plain = |text: &str| {
        !text.is_empty()
            && !text.contains(|c: char| c.is_whitespace() || "'\"|&;<>$`\\".contains(c))
    };
    match command.strip_prefix("./") {
        Some(rest) => is_plain(rest) && !rest.split('/').any(|part| part == ".."),
        None => is_plain(command) && !command.contains('/'),
    }
}

/// Agent Plugins: `https`, or `http` to this machine; no name, no password, no fragment.
fn check_url(url: &str) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").ok_or("has a `url` that is no address")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "::1");
    match scheme {
        _ if host.is_empty() || authority.contains('@') => {
            Err("has a `url` without a plain host".to_owned())
        }
        _ if url.contains('#') => Err("has a `url` with a fragment".to_owned()),
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        _ => Err("has a `url` that is neither `https` nor of this machine".to_owned()),
    }
}
