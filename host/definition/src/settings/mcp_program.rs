//! `[mcp.NAME]` with a `command`: a server that is a program of this machine, with its rights.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use belljar_policy::{SecretName, ShownText};
use toml::de::DeTable;

use super::mcp::CALLED;
use super::mcp_grants::{KEYS as GRANTS, McpGrants};
use super::schema::SettingsLoader;
use crate::suggest;
use crate::toml_read::Item;

/// The keys of a server with a `command`.
pub(super) const KEYS: &[&str] = &[
    "command",
    "args",
    "data",
    "directories",
    "network",
    "env",
    "memory_mib",
    "processes",
    "timeout_seconds",
    CALLED,
];

/// Bytes of one argument or of one environment value.
const MAX_TEXT: usize = 4_096;

/// Directories and variables of one server.
const MAX_ENTRIES: usize = 64;

/// The default memory of one process, because the runtimes of common languages start with that much.
const MEMORY_MIB: u64 = 1_024;

/// The range of memory for one process, in MiB.
const MEMORIES: std::ops::RangeInclusive<u64> = 16..=65_536;

/// The range of processes beside the first.
const PROCESSES: std::ops::RangeInclusive<u64> = 0..=64;

/// An MCP server that is a program of this machine. It has no right that is not listed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpProgram {
    /// The longest time of one call, in addition to the limits of the calling agent. Absent = only those
    /// limits.
    pub timeout_seconds: Option<u64>,
    /// The absolute path of the file, for example `/usr/bin/npx`.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Files and directories among its arguments that the program never executes.
    pub data: BTreeSet<PathBuf>,
    /// Directories that the program may read.
    pub read: BTreeSet<PathBuf>,
    /// Directories that the program may read and write.
    pub write: BTreeSet<PathBuf>,
    /// Whether the program may use the network. Default: no.
    pub network: bool,
    /// Its whole environment.
    pub environment: BTreeMap<String, McpValue>,
    /// Memory of each of the processes, in MiB. Default: 1,024.
    pub memory_mib: u64,
    /// Processes beside the first. Default: 0.
    pub processes: u32,
    /// The requests that the server may make during a call.
    pub grants: McpGrants,
}

/// A value in a program's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpValue {
    /// A literal text.
    Text(String),
    /// The value of a secret, which the program can then read.
    Secret(SecretName),
}

impl McpProgram {
    /// The file and the arguments, as a JSON list.
    pub fn command_line(&self) -> String {
        let command = self.command.to_string_lossy();
        let words: Vec<&str> =
            std::iter::once(&*command).chain(self.args.iter().map(String::as_str)).collect();
        serde_json::json!(words).to_string()
    }

    /// The secrets in the environment.
    pub fn secret_names(&self) -> BTreeSet<SecretName> {
        let values = self.environment.values();
        let names = values.filter_map(|value| match value {
            McpValue::Text(_) => None,
            McpValue::Secret(name) => Some(name.clone()),
        });
        names.collect()
    }
}

impl<'t> SettingsLoader<'_, 't, '_> {
    /// Reads a server that is a program of this machine.
    pub(super) fn server_program(&mut self, name: &str, table: &DeTable<'t>) {
        self.reader.report_unknown_keys(
            table,
            "an MCP server that is a command",
            &[KEYS, &GRANTS].concat(),
        );
        if let Some(program) = self.read_program(table) {
            self.settings.mcp_programs.insert(name.to_owned(), program);
        }
    }

    /// Reads a program's command, arguments, directories, environment and limits.
    fn read_program(&mut self, table: &DeTable<'t>) -> Option<McpProgram> {
        let command = table.get("command")?;
        let text = self.reader.text_of("command", command)?;
        let path = self.home_path(text);
        if !path.is_absolute() || text.contains('\0') {
            let at = self.reader.position_of(command.span());
            let hint =
                "write the whole path, as `command -v NAME` prints it, and its arguments in `args`";
            let message =
                format!("`command` is `{}`, not a whole path", ShownText::clip_line(text, 200));
            self.reader.findings.error_hint(at, "bad-value", message, hint);
            return None;
        }
        let (read, write) = self.read_directories(table);
        let memory_mib =
            self.read_ranged_number(table, "memory_mib", MEMORIES).unwrap_or(MEMORY_MIB);
        let processes = self.read_ranged_number(table, "processes", PROCESSES).unwrap_or_default();
        Some(McpProgram {
            timeout_seconds: self.server_timeout(table),
            command: path,
            args: self.read_arguments(table),
            data: self.read_data_paths(table),
            read,
            write,
            network: self.reader.read_boolean(table, "network").unwrap_or_default(),
            environment: self.read_environment(table),
            memory_mib,
            processes: u32::try_from(processes).unwrap_or_default(),
            grants: self.server_grants(table),
        })
    }

    fn read_arguments(&mut self, table: &DeTable<'t>) -> Vec<String> {
        let wants = format!("texts of at most {MAX_TEXT} bytes");
        self.texts_of(table, "args", &wants, is_text)
    }

    /// Reads `data`, for example `data = ["/srv/db/notes.json"]`.
    fn read_data_paths(&mut self, table: &DeTable<'t>) -> BTreeSet<PathBuf> {
        let is_path =
            |text: &str| is_text(text) && (text.starts_with('/') || text.starts_with('~'));
        let wants = "absolute paths of files and directories, or `~/...`";
        let texts = self.texts_of(table, "data", wants, is_path);
        texts.iter().map(|text| self.home_path(text)).collect()
    }

    /// A list of the valid texts; an invalid text is reported and left out.
    pub(super) fn texts_of(
        &mut self,
        table: &DeTable<'t>,
        key: &str,
        wants: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let Some(item) = table.get(key) else { return Vec::new() };
        let mut texts = Vec::new();
        for item in self.reader.read_list(key, item).unwrap_or_default() {
            let Some(text) = self.reader.text_of(key, item) else { continue };
            match fits(text) {
                true => texts.push(text.to_owned()),
                false => drop(self.reader.report_unfit_value::<()>(key, item, wants)),
            }
        }
        texts
    }

    /// Reads `directories`, for example `directories = { "/srv/data" = "read" }`.
    fn read_directories(&mut self, table: &DeTable<'t>) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
        let (mut read, mut write) = (BTreeSet::new(), BTreeSet::new());
        for (name, item) in self.read_entries(table, "directories") {
            let path = self.home_path(name);
            if !path.is_absolute() {
                let shown = ShownText::clip_line(name, 200);
                let at = self.reader.position_of(item.span());
                let hint = "write an absolute path, or `~/...`";
                let message = format!("`{shown}` in `directories` is not an absolute path");
                self.reader.findings.error_hint(at, "host-path", message, hint);
                continue;
            }
            match item.get_ref().as_str() {
                Some("read") => read.insert(path),
                Some("read-write") => write.insert(path),
                Some(_) | None => {
                    self.reader.report_unfit_value::<()>(name, item, "`read` or `read-write`");
                    continue;
                }
            };
        }
        (read, write)
    }

    /// Reads `env`, for example `env = { LEVEL = "debug", API_KEY = { secret = "NAME" } }`.
    fn read_environment(&mut self, table: &DeTable<'t>) -> BTreeMap<String, McpValue> {
        let mut environment = BTreeMap::new();
        for (name, item) in self.read_entries(table, "env") {
            if !is_variable(name) {
                let shown = ShownText::clip_line(name, 80);
                let at = self.reader.position_of(item.span());
                let hint = "letters, digits and `_`; names that begin with `LD_` are the loader's, which \
                            belljar does not set";
                let message = format!("`{shown}` is no name of a variable");
                self.reader.findings.error_hint(at, "bad-name", message, hint);
                continue;
            }
            let value = match (item.get_ref().as_str(), item.get_ref().as_table()) {
                (Some(text), _) if is_text(text) => Some(McpValue::Text(text.to_owned())),
                (None, Some(table)) => self.secret_value(item, table),
                (Some(_), _) | (None, None) => {
                    self.reader.report_unfit_value(name, item, "a text, or `{ secret = \"NAME\" }`")
                }
            };
            environment.extend(value.map(|value| (name.to_owned(), value)));
        }
        environment
    }

    /// Reads an environment value `{ secret = "NAME" }`.
    fn secret_value(&mut self, item: &Item<'t>, table: &DeTable<'t>) -> Option<McpValue> {
        self.reader.report_unknown_keys(table, "a value", &["secret"]);
        let text = self.reader.read_text(table, "secret")?;
        let found = self.settings.secrets.keys().find(|name| name.as_str() == text).cloned();
        if found.is_none() {
            let names = self.settings.secrets.keys().map(SecretName::as_str);
            let hint = suggest::did_you_mean(&text, names)
                .unwrap_or_else(|| "add a section `[secrets.NAME]`".to_owned());
            let at = self.reader.position_of(item.span());
            let message = format!("secret `{}` is not defined", ShownText::clip_line(&text, 60));
            self.reader.findings.error_hint(at, "unknown-secret", message, hint);
        }
        found.map(McpValue::Secret)
    }

    /// The entries of a table under a key, at most [`MAX_ENTRIES`].
    fn read_entries<'a>(
        &mut self,
        table: &'a DeTable<'t>,
        key: &str,
    ) -> Vec<(&'a str, &'a Item<'t>)> {
        let Some(item) = table.get(key) else { return Vec::new() };
        let Some(entries) = self.reader.read_table(key, item) else { return Vec::new() };
        if entries.len() > MAX_ENTRIES {
            let wants = format!("a table of at most {MAX_ENTRIES}");
            self.reader.report_unfit_value::<()>(key, item, &wants);
            return Vec::new();
        }
        entries.iter().map(|(key, item)| (key.get_ref().as_ref(), item)).collect()
    }

    /// The number under a key, if within the range; otherwise a report.
    pub(super) fn read_ranged_number(
        &mut self,
        table: &DeTable<'t>,
        key: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let number = self.reader.read_number(table, key)?;
        if range.contains(&number) {
            return Some(number);
        }
        let wants = format!("from {} to {}", range.start(), range.end());
        self.reader.report_unfit_value(key, table.get(key)?, &wants)
    }
}

fn is_text(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.contains('\0')
}

/// Whether a name is a common form of a variable's name. The dynamic loader's variables (`LD_...`) are
/// refused, because they would also affect belljar's own process beside the program.
fn is_variable(name: &str) -> bool {
    name.len() <= 80
        && !name.starts_with("LD_")
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
