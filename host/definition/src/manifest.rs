//! Parses the tool manifest, `tool.toml`: the rights that a tool asks for.

use std::collections::BTreeMap;
use std::path::Path;

use belljar_policy::{PeersAsk, ToolAsk};
use toml::de::DeTable;

use crate::agent::parse_access;
use crate::diagnostic::Diagnostic;
use crate::toml_read::{Item, TomlReader};

/// The only version of the format so far.
const VERSION: u64 = 1;

/// The keys of a manifest.
const KEYS: &[&str] = &[
    "manifest",
    "description",
    "mounts",
    "hosts",
    "secrets",
    "config",
    "limits",
    "peers",
    "resume",
    "keeps_state",
    "time_argument",
    "command",
];

/// The keys of `[command]`.
const COMMAND_KEYS: &[&str] = &["args", "env", "schema", "workspace_at"];

/// The manifest beside a tool component. A missing key requests nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolManifest {
    /// The purpose of the tool, in one line.
    pub description: String,
    /// The requested rights.
    pub ask: ToolAsk,
    /// The configuration keys that the tool reads, for example `language`.
    pub config_keys: Vec<String>,
    /// How an interrupted call is resumed.
    pub resume: ResumeMode,
    /// `[command]`: the form of a command's calls. Absent = the arguments `args`, `stdin` and `files`.
    pub command: Option<CommandSpec>,
}

/// How a call that was running when the process died is resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResumeMode {
    /// The call is answered as interrupted, because it may have had an effect.
    #[default]
    Never,
    /// The call runs again from the beginning. Nested calls are answered from the record as long as they are
    /// the recorded ones in the recorded order; after that, new calls are made. Only for belljar's own tools,
    /// which must depend only on arguments, calls' results, and the recorded clock and random numbers.
    Replay,
}

/// How a command becomes a tool, as stated in `tool.toml`. The sandbox checks the words and the schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandSpec {
    /// The command line, with `{name}` for an argument. Absent = the caller chooses all words.
    pub args: Option<Vec<String>>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The JSON Schema of the arguments, as text. Absent = derived from the command line.
    pub schema: Option<String>,
    /// The path of the workspace for the command. Absent = `/workspace`.
    pub workspace_at: Option<String>,
}

impl ToolManifest {
    /// Parses a manifest. `path` is for the diagnostics.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let (mut reader, root) = TomlReader::open(path, text)?;
        let table = root.get_ref();
        reader.report_unknown_keys(table, "a tool manifest", KEYS);
        let top = crate::diagnostic::FilePosition { line: 1, column: 0 };
        if table.get("manifest").is_none() {
            let message = "`manifest` is missing";
            reader.findings.error_hint(top, "missing-key", message, "write `manifest = 1`");
        } else if let Some(version) = reader.read_number(table, "manifest")
            && version != VERSION
        {
            let message = format!("`manifest` is {version}; this belljar reads version {VERSION}");
            reader.findings.error(top, "bad-version", message);
        }
        let mut manifest = Self {
            description: reader.read_text(table, "description").unwrap_or_default(),
            ..Self::default()
        };
        if let Some(item) = table.get("mounts")
            && let Some(text) = reader.text_of("mounts", item)
        {
            manifest.ask.mounts = parse_access(text);
            if manifest.ask.mounts.is_none() {
                let hint = "write `read` or `read-write`, or remove the line for no files at all";
                let at = reader.position_of(item.span());
                let message = "`mounts` is neither `read` nor `read-write`";
                reader.findings.error_hint(at, "bad-access", message, hint);
            }
        }
        if let Some(item) = table.get("hosts") {
            manifest.ask.hosts = reader.read_parsed_list("hosts", item).unwrap_or_default();
        }
        if let Some(item) = table.get("secrets") {
            manifest.ask.secrets = reader.read_names("secrets", item).unwrap_or_default();
        }
        if let Some(item) = table.get("config") {
            manifest.config_keys = reader.read_parsed_list("config", item).unwrap_or_default();
        }
        if let Some(item) = table.get("peers") {
            manifest.ask.peers = read_peers(&mut reader, item);
        }
        if let Some(item) = table.get("resume")
            && let Some(text) = reader.text_of("resume", item)
        {
            match text {
                "replay" => manifest.resume = ResumeMode::Replay,
                "never" => {}
                _ => drop(reader.report_unfit_value::<()>("resume", item, "`never` or `replay`")),
            }
        }
        manifest.ask.keeps_state = reader.read_boolean(table, "keeps_state").unwrap_or_default();
        manifest.ask.time_argument = reader.read_text(table, "time_argument");
        if let Some(item) = table.get("limits") {
            manifest.ask.limits = reader.read_limits("limits", item);
        }
        if let Some(item) = table.get("command")
            && let Some(table) = reader.read_table("command", item)
        {
            manifest.command = Some(read_command(&mut reader, table));
        }
        if reader.findings.has_errors() {
            Err(reader.findings.into_diagnostics())
        } else {
            Ok(manifest)
        }
    }
}

/// Parses `true` for all tools of the agent, or a list of names.
fn read_peers<'t>(reader: &mut TomlReader<'t, '_>, item: &Item<'t>) -> PeersAsk {
    match item.get_ref().as_bool() {
        Some(true) => PeersAsk::All,
        Some(false) => PeersAsk::None,
        None if item.get_ref().as_array().is_some() => {
            PeersAsk::Only(reader.read_names("peers", item).unwrap_or_default())
        }
        None => {
            let wants = "`true` or `false`, or a list of names of tools";
            reader.report_wrong_kind("peers", item, wants).unwrap_or_default()
        }
    }
}

/// Reads `[command]`.
fn read_command<'t>(reader: &mut TomlReader<'t, '_>, table: &DeTable<'t>) -> CommandSpec {
    reader.report_unknown_keys(table, "`command`", COMMAND_KEYS);
    let mut spec = CommandSpec {
        schema: reader.read_text(table, "schema"),
        workspace_at: reader.read_text(table, "workspace_at"),
        ..CommandSpec::default()
    };
    if let Some(item) = table.get("args") {
        spec.args = reader.read_parsed_list("args", item);
    }
    if let Some(item) = table.get("env")
        && let Some(variables) = reader.read_table("env", item)
    {
        for (name, value) in variables {
            let name = name.get_ref();
            if let Some(value) = reader.text_of(name, value) {
                spec.env.insert(name.to_string(), value.to_owned());
            }
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ToolManifest, Vec<Diagnostic>> {
        ToolManifest::parse(Path::new("tool.toml"), text)
    }

    #[test]
    fn a_commands_form_is_read_and_its_mistakes_are_named() {
        let text = "manifest = 1\n[command]\nargs = [\"-c\", \"{filter}\"]\nenv = { TZ = \"UTC\" }\n\
                    schema = '{\"type\": \"object\"}'\n";
        let spec = parse(text).unwrap().command.unwrap();
        assert_eq!(spec.args.unwrap(), ["-c", "{filter}"]);
        assert_eq!(spec.env["TZ"], "UTC");
        assert!(spec.schema.unwrap().starts_with('{'));
        assert_eq!(spec.workspace_at, None);
        let spec = parse("manifest = 1\n[command]\nworkspace_at = \"/\"\n").unwrap().command;
        assert_eq!(spec.unwrap().workspace_at.as_deref(), Some("/"));
        assert_eq!(parse("manifest = 1\n").unwrap().command, None);
        assert_eq!(
            parse("manifest = 1\n[command]\n").unwrap().command,
            Some(CommandSpec::default())
        );
        for (wrong, code) in [
            ("command = 3", "bad-value"),
            ("[command]\nargv = []", "unknown-key"),
            ("[command]\nargs = [3]", "bad-value"),
            ("[command]\nenv = { A = 1 }", "bad-value"),
            ("[command]\nschema = {}", "bad-value"),
            ("[command]\nworkspace_at = true", "bad-value"),
        ] {
            let found = parse(&format!("manifest = 1\n{wrong}\n")).unwrap_err();
            assert_eq!(found[0].code, code, "{wrong}");
        }
    }
}
