//! `belljar plugins connect`: writes an MCP server of a plugin into the operator's `belljar.toml`, after showing
//! it. Nothing is started or asked: `belljar mcp review` does that.

use std::path::{Path, PathBuf};

use belljar_definition::Settings;
use belljar_definition::plugin::{PluginServer, ServerTransport};
use belljar_policy::{ShownPath as _, ShownText};

use super::named;
use super::show::vet_installed;
use crate::args::plugins::ConnectArgs;
use crate::args::server::TenantArg;
use crate::libraries::LibraryLock;
use crate::setup::agreed::ask_agreement;
use crate::setup::config_lock::ConfigLock;
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, read_own_config};
use crate::setup::whose::AgentOwner;
use crate::term::diff;
use crate::term::out::{TerminalOutput, TextStyle};

/// Bytes of a server's name in `belljar.toml`.
const MAX_NAME: usize = 24;

pub(super) fn run(
    args: &ConnectArgs,
    of: &TenantArg,
    whose: &AgentOwner,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let places = &whose.places;
    let lock = LibraryLock::read(&places.libraries_directory())?;
    let key = named::installed_key(&args.plugin, of, &lock)?;
    let installed = named::installed_plugin(&key, &lock)?;
    let vetted = vet_installed(&key, &installed, whose, out)?;
    let server = find_server(&args.server, &vetted.inventory.servers, &key.to_string())?;
    let root = places.libraries_directory().join(&installed.directory);
    let name = args.name.clone().unwrap_or_else(|| server_name(key.plugin.as_str(), &server.name));
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        let shown = ShownText::clip_line(&name, 60);
        return Err(Failure::usage(format!("`{shown}` is no name of a server"))
            .with_hint("a name is a small letter, then small letters, digits or single `-`"));
    }
    let prefix = server.tool_prefix(&vetted.manifest.name);
    let called = prefix.trim_start_matches("mcp__").trim_end_matches('_');
    let section = ServerSection { name: &name, called, root: &root, network: args.network };
    let added = section.write(server)?;

    let path = places.config_path();
    let held = ConfigLock::lock_file(&path)?;
    let old = read_own_config(&path)?.unwrap_or_default();
    let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
    let new = format!("{old}{gap}\n{}", added.text);
    check_text(&path, &old, &new, places, &name)?;
    out.print_line(format_args!("server {server}"));
    for note in &added.notes {
        out.print_line(note);
    }
    diff::print_diff(&path.to_shown().to_string(), &old, &new, out);
    if !args.yes {
        // A question that waits holds no lock; the text is compared before it is replaced.
        drop(held);
        if !ask_agreement("write this?", false, "written", out)? {
            return Ok(CommandExit::Cancelled);
        }
        ConfigLock::lock_file(&path)?.replace_text(&old, &new)?;
    } else {
        held.replace_text(&old, &new)?;
    }
    out.print_line(format_args!("{} `[mcp.{name}]`", out.paint(TextStyle::Green, "wrote")));
    out.note(format_args!(
        "nothing of it runs yet: `{}` shows its tools, and accepts them",
        of.format_command(&format!("belljar mcp review {name}"))
    ));
    Ok(CommandExit::Completed)
}

fn find_server<'a>(
    name: &str,
    servers: &'a [PluginServer],
    plugin: &str,
) -> Result<&'a PluginServer, Failure> {
    servers.iter().find(|server| server.name == name).ok_or_else(|| {
        let shown = ShownText::clip_line(name, 60);
        let names: Vec<String> = servers
            .iter()
            .map(|server| format!("`{}`", ShownText::clip_line(&server.name, 60)))
            .collect();
        let hint = match names.as_slice() {
            [] => "it has none".to_owned(),
            names => format!("it has {}", names.join(", ")),
        };
        Failure::usage(format!("plugin `{plugin}` has no server `{shown}`")).with_hint(hint)
    })
}

/// Refuses a text in which the new section is not a server, or which changes anything else.
fn check_text(
    path: &Path,
    old: &str,
    new: &str,
    places: &HomePaths,
    name: &str,
) -> Result<(), Failure> {
    let parse = |text: &str| Settings::parse(Some((path, text)), None, places.user_home.as_deref());
    let before = parse(old).map_err(|found| Failure::from_diagnostics("", found))?;
    if before.mcp.contains_key(name) || before.mcp_programs.contains_key(name) {
        return Err(Failure::usage(format!("there is a server `[mcp.{name}]` already"))
            .with_hint("`--name NAME` gives this one another name"));
    }
    let after = parse(new).map_err(|mut found| {
        // The positions are in the new text, which nobody can see.
        found.iter_mut().for_each(|found| (found.line, found.column) = (0, 0));
        Failure::from_diagnostics("the server cannot be added", found)
    })?;
    match after.mcp.contains_key(name) || after.mcp_programs.contains_key(name) {
        true => Ok(()),
        false => Err(Failure::usage(format!("`{}` is no name of a server", ShownText::new(name)))),
    }
}

/// A name for a server of a plugin, as `[mcp.NAME]` takes it.
fn server_name(plugin: &str, server: &str) -> String {
    let text = format!("{plugin}-{server}").to_ascii_lowercase();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let whole = words.collect::<Vec<_>>().join("-");
    let whole = whole.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    let cut: String = whole.chars().take(MAX_NAME).collect();
    cut.trim_end_matches('-').to_owned()
}

/// The section of a server that is to be written.
struct ServerSection<'a> {
    name: &'a str,
    /// The server's name in the files of the plugin's agents.
    called: &'a str,
    /// The directory of the installed plugin.
    root: &'a Path,
    network: bool,
}

/// A text for `belljar.toml`, and what a person should know about it.
struct AddedText {
    text: String,
    notes: Vec<String>,
}

impl ServerSection<'_> {
    fn write(&self, server: &PluginServer) -> Result<AddedText, Failure> {
        match &server.transport {
            ServerTransport::Http { url, headers } => self.write_http(url, headers),
            ServerTransport::Program { command, args, env } => {
                self.write_program(server, command, args, env)
            }
        }
    }

    fn write_http(&self, url: &str, headers: &[(String, String)]) -> Result<AddedText, Failure> {
        if url.contains("${") {
            return Err(self.cannot("its address has a variable in it"));
        }
        let origin = url.split("://").nth(1).and_then(|rest| rest.split(['/', '?']).next());
        let scheme = url.split("://").next().unwrap_or_default();
        let host = format!("{scheme}://{}", origin.unwrap_or_default());
        let (mut text, mut secrets, mut notes) = (String::new(), Vec::new(), Vec::new());
        for (header, value) in headers {
            let Some((prefix, variable)) = split_variable(value) else {
                let header = ShownText::clip_line(header, 60);
                notes
                    .push(format!("left out: header `{header}`, whose value is no variable alone"));
                continue;
            };
            let secret =
                format!("{}_{}", self.name.replace('-', "_"), variable.to_ascii_lowercase());
            text.push_str(&format!("[secrets.{secret}]\nhost = {}\n", quote(&host)));
            text.push_str(&format!("header = {}\n", quote(header)));
            if !prefix.is_empty() {
                text.push_str(&format!("prefix = {}\n", quote(prefix)));
            }
            text.push_str(&format!("env = {}\n\n", quote(variable)));
            secrets.push(quote(&secret));
        }
        text.push_str(&format!("[mcp.{}]\nurl = {}\n", self.name, quote(url)));
        if !secrets.is_empty() {
            text.push_str(&format!("secrets = [{}]\n", secrets.join(", ")));
        }
        text.push_str(&format!("called = {}\n", quote(self.called)));
        Ok(AddedText { text, notes })
    }

    fn write_program(
        &self,
        server: &PluginServer,
        command: &str,
        args: &[String],
        env: &[(String, String)],
    ) -> Result<AddedText, Failure> {
        let command = self.find_program(command)?;
        let args: Vec<String> =
            args.iter().map(|arg| self.expand(arg)).collect::<Result<_, _>>()?;
        let mut notes = Vec::new();
        if let Some(fetched) = server.fetched_package() {
            let package = ShownText::clip_line(&fetched.package, 80);
            notes.push(format!(
                "it fetches `{package}` from {} at each start: belljar pins the program, and cannot \
                 know what that fetches",
                fetched.registry
            ));
            if !self.network {
                notes.push("without `--network` it cannot fetch anything".to_owned());
            }
        }
        let (mut text, mut values) = (String::new(), Vec::new());
        for (key, value) in env {
            if !is_variable(key) {
                return Err(self.cannot("a variable of its environment has no plain name"));
            }
            match split_variable(value) {
                Some(("", variable)) => {
                    notes.push(format!(
                        "left out: `{key}`, which is `${{{variable}}}` of your environment; add it to \
                         `env` as a secret if it is to have it"
                    ));
                }
                _ => values.push(format!("{key} = {}", quote(&self.expand(value)?))),
            }
        }
        let args: Vec<String> = args.iter().map(|arg| quote(arg)).collect();
        text.push_str(&format!(
            "[mcp.{}]\ncommand = {}\n",
            self.name,
            quote(&command.to_string_lossy())
        ));
        text.push_str(&format!("args = [{}]\n", args.join(", ")));
        text.push_str(&format!(
            "directories = {{ {} = \"read\" }}\n",
            quote(&self.root.to_string_lossy())
        ));
        if !values.is_empty() {
            text.push_str(&format!("env = {{ {} }}\n", values.join(", ")));
        }
        if self.network {
            text.push_str("network = true\n");
        }
        text.push_str(&format!("called = {}\n", quote(self.called)));
        Ok(AddedText { text, notes })
    }

    /// The text with the plugin's own directory in it. Another variable cannot be known.
    fn expand(&self, text: &str) -> Result<String, Failure> {
        let root = self.root.to_string_lossy();
        let mut expanded = text.to_owned();
        for own in ["${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}", "${extensionPath}"] {
            expanded = expanded.replace(own, &root);
        }
        match expanded.contains("${") {
            true => Err(self.cannot("its command line has a variable that belljar does not know")),
            false => Ok(expanded),
        }
    }

    /// The whole path of a program: below the plugin, or one of the search path.
    fn find_program(&self, command: &str) -> Result<PathBuf, Failure> {
        let expanded = self.expand(command)?;
        let path = Path::new(&expanded);
        if path.is_absolute() || expanded.contains('/') {
            let whole = if path.is_absolute() { path.to_path_buf() } else { self.root.join(path) };
            let real = whole.canonicalize().map_err(|_| self.cannot("its program is not there"))?;
            return Ok(real);
        }
        let places = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&places)
            .filter(|place| place.is_absolute())
            .map(|place| place.join(path))
            .find(|whole| whole.is_file());
        let shown = ShownText::clip_line(command, 60);
        found.ok_or_else(|| self.cannot(&format!("there is no program `{shown}` on this machine")))
    }

    fn cannot(&self, why: &str) -> Failure {
        Failure::usage(format!("server `{}` cannot be connected: {why}", self.called))
            .with_hint("write `[mcp.NAME]` in `belljar.toml` yourself, if you want it")
    }
}

/// `Bearer ${TOKEN}` as its prefix and its variable; a default is left away.
fn split_variable(value: &str) -> Option<(&str, &str)> {
    let (prefix, rest) = value.split_once("${")?;
    let inner = rest.strip_suffix('}')?;
    let name = inner.split(":-").next().unwrap_or(inner);
    let name = name.strip_prefix("user_config.").unwrap_or(name);
    is_variable(name).then_some((prefix, name))
}

fn is_variable(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A text of TOML, quoted.
fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
