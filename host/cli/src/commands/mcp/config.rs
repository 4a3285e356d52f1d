//! `belljar mcp config`: prints or writes the settings with which a client starts belljar.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use belljar_policy::ShownPath as _;
use serde_json::{Value, json};

use super::clients::{ClientEntry, ClientFileForm, client_entry};
use crate::args::mcp::McpClient;
use crate::setup::below::{DirectoryHandle, FileAudience};
use crate::setup::exit::{CommandExit, Failure};
use crate::setup::home::{HomePaths, MAX_MANIFEST_BYTES};
use crate::setup::walls::WallRaiser;
use crate::term::out::TerminalOutput;

/// The name of belljar in a client's file.
const NAME: &str = "belljar";

/// Runs the command: prints the settings for the client, or adds them to the client's file.
pub(super) fn run(
    client: McpClient,
    write: bool,
    places: &HomePaths,
    walls: WallRaiser<'_>,
    out: &TerminalOutput,
) -> Result<CommandExit, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("failed to find this program: {error}")))?;
    let workspace = belljar_agent::canonicalize_workspace(&places.workspace);
    let workspace = workspace.map_err(|error| Failure::usage(error.to_string()))?;
    let entry = client_entry(client, &program, &workspace, places);
    if !write {
        let snippet = add_entry(&entry, None)?;
        out.print_text(snippet.trim_end());
        match &entry.file {
            Some(file) => out.note(format_args!(
                "this belongs into `{}`; `--write` adds it there",
                file.to_shown()
            )),
            None => out.note("where this client reads it is not known here: there is no home"),
        }
        return Ok(CommandExit::Completed);
    }
    let file = entry.file.clone().ok_or_else(|| {
        Failure::usage("where this client reads it is not known: there is no home directory")
            .with_hint("leave out `--write`, and put what is printed there by hand")
    })?;
    let target = ConfigTarget::for_file(&file, &workspace)
        .map_err(|error| unwritable_file(&file, &error))?;
    walls.raise_around(&[&target.directory]);
    let before = target.read_text(&file)?;
    let text = add_entry(&entry, before.as_deref().map(|text| (file.as_path(), text)))?;
    let put = target.below.replace_file(&target.path, text.as_bytes(), target.whose);
    put.map_err(|error| unwritable_file(&file, &error))?;
    out.note(format_args!("wrote `{}`; restart the client", file.to_shown()));
    if entry.for_all {
        let workspace = workspace.to_shown();
        out.note(format_args!("this client has one workspace for everything: now `{workspace}`"));
    }
    Ok(CommandExit::Completed)
}

/// The file of the client: below the workspace, where no link is followed, or in the person's own home.
struct ConfigTarget {
    below: DirectoryHandle,
    path: PathBuf,
    whose: FileAudience,
    /// The directory that the OS sandbox lets this process write.
    directory: PathBuf,
}

impl ConfigTarget {
    /// Opens the directory of the file, so that it can be written behind the OS sandbox.
    fn for_file(file: &Path, workspace: &Path) -> std::io::Result<Self> {
        if let Ok(path) = file.strip_prefix(workspace) {
            let (below, whose) = (DirectoryHandle::open(workspace)?, FileAudience::Everybody);
            return Ok(Self { below, path: path.into(), whose, directory: workspace.into() });
        }
        let (below, path) = DirectoryHandle::parent_in_home(file)?;
        let directory = below.path().to_path_buf();
        Ok(Self { below, path, whose: FileAudience::Owner, directory })
    }

    fn read_text(&self, file: &Path) -> Result<Option<String>, Failure> {
        let bytes = self.below.read_file(&self.path, MAX_MANIFEST_BYTES);
        let bytes = bytes.map_err(|error| unwritable_file(file, &error))?;
        bytes.map(String::from_utf8).transpose().map_err(|error| by_hand(file, &error))
    }
}

/// The failure of writing a client's file, with a hint.
fn unwritable_file(file: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(format!("failed to write `{}`: {error}", file.to_shown()));
    let hint = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "you may not write there: leave out `--write`, and have what is printed put in by hand"
        }
        _ => "put a regular file there, or leave out `--write` and put in by hand what is printed",
    };
    failure.with_hint(hint)
}

/// The text of the file with the entry added. `before` = the path and text of the existing file.
fn add_entry(entry: &ClientEntry, before: Option<(&Path, &str)>) -> Result<String, Failure> {
    match entry.form {
        ClientFileForm::Json => in_json(entry, before),
        ClientFileForm::Toml => in_toml(entry, before),
    }
}

/// Adds the entry to a file in JSON; its other content stays.
fn in_json(entry: &ClientEntry, before: Option<(&Path, &str)>) -> Result<String, Failure> {
    let mut all = match before {
        Some((path, text)) if !text.trim().is_empty() => {
            belljar_received::json::from_str::<Value>(text)
                .map_err(|error| by_hand(path, &error))?
        }
        Some(_) | None => json!({}),
    };
    let path = before.map(|(path, _)| path).unwrap_or(Path::new(""));
    let object = all.as_object_mut().ok_or_else(|| by_hand(path, &"it is no object"))?;
    let servers = object.entry(entry.table).or_insert_with(|| json!({}));
    let servers = servers.as_object_mut();
    let servers =
        servers.ok_or_else(|| by_hand(path, &format!("`{}` is no object", entry.table)))?;
    servers.insert(NAME.to_owned(), entry.value.clone());
    let text = serde_json::to_string_pretty(&all);
    text.map(|text| text + "\n").map_err(|error| Failure::from(anyhow::Error::from(error)))
}

/// Adds the entry to a file in TOML; its other content and form stay.
fn in_toml(entry: &ClientEntry, before: Option<(&Path, &str)>) -> Result<String, Failure> {
    let (path, text) = before.unwrap_or((Path::new(""), ""));
    let mut all: toml_edit::DocumentMut = text.parse().map_err(|error| by_hand(path, &error))?;
    let servers = all.entry(entry.table).or_insert_with(|| {
        let mut table = toml_edit::Table::new();
        table.set_implicit(true);
        toml_edit::Item::Table(table)
    });
    let servers = servers.as_table_mut();
    let servers =
        servers.ok_or_else(|| by_hand(path, &format!("`{}` is no table", entry.table)))?;
    let mut table = toml_edit::Table::new();
    for (key, value) in entry.value.as_object().into_iter().flatten() {
        match value {
            Value::Array(words) => {
                let words = words.iter().filter_map(Value::as_str);
                table.insert(key, toml_edit::value(words.collect::<toml_edit::Array>()));
            }
            Value::Object(words) => {
                let words = words.iter().filter_map(|(key, word)| Some((key, word.as_str()?)));
                table.insert(key, toml_edit::value(words.collect::<toml_edit::InlineTable>()));
            }
            value => {
                table.insert(key, toml_edit::value(value.as_str().unwrap_or_default()));
            }
        }
    }
    servers.insert(NAME, toml_edit::Item::Table(table));
    Ok(all.to_string())
}

/// The failure for a file that is not edited, because its content could be lost.
fn by_hand(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("`{}` is left as it is: {why}", path.to_shown()))
        .with_hint("leave out `--write`, and put what is printed there by hand")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entry for a client, with this home and cache.
    fn at(client: McpClient, home: &str, cache: &str) -> ClientEntry {
        let (program, workspace) = (Path::new("/opt/belljar"), Path::new("/work"));
        let places = HomePaths {
            home: home.into(),
            cache: cache.into(),
            workspace: workspace.into(),
            user_home: Some("/home/me".into()),
        };
        client_entry(client, program, workspace, &places)
    }

    fn of(client: McpClient) -> ClientEntry {
        at(client, "/home/me/.belljar", "/home/me/.belljar/cache")
    }

    #[test]
    fn a_client_starts_it_with_the_home_and_the_cache_of_now() {
        use clap::ValueEnum as _;
        for client in McpClient::value_variants() {
            let usual = add_entry(&of(*client), None).unwrap();
            assert!(!usual.contains("BELLJAR_"), "{client:?}: {usual}");
            let moved = add_entry(&at(*client, "/srv/jar", "/var/cache/jar"), None).unwrap();
            assert!(moved.contains("/srv/jar") && moved.contains("/var/cache/jar"), "{moved}");
        }
        let codex = add_entry(&at(McpClient::Codex, "/srv/jar", "/srv/jar/cache"), None).unwrap();
        assert!(codex.contains("env = { BELLJAR_HOME = \"/srv/jar\" }"), "{codex}");
        let opencode = at(McpClient::Opencode, "/srv/jar", "/srv/jar/cache").value;
        assert_eq!(opencode["environment"], json!({"BELLJAR_HOME": "/srv/jar"}));
    }

    #[test]
    fn what_else_stands_in_a_file_stays() {
        let before = r#"{"theme": "dark", "mcpServers": {"other": {"command": "x"}}}"#;
        let text = add_entry(&of(McpClient::Cursor), Some((Path::new("f"), before))).unwrap();
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["theme"], "dark");
        assert_eq!(all["mcpServers"]["other"]["command"], "x");
        assert_eq!(all["mcpServers"]["belljar"]["command"], "/opt/belljar");
        let again = add_entry(&of(McpClient::Cursor), Some((Path::new("f"), &text))).unwrap();
        assert_eq!(again, text, "a second time changes nothing");
        let before = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let text = add_entry(&of(McpClient::Codex), Some((Path::new("f"), before))).unwrap();
        assert!(text.starts_with(before), "{text}");
        assert!(text.contains("[mcp_servers.belljar]\ncommand = \"/opt/belljar\"\n"), "{text}");
    }

    #[test]
    fn a_file_with_comments_is_left_as_it_is() {
        let before = "{\n  // mine\n  \"context_servers\": {}\n}";
        let refused = add_entry(&of(McpClient::Zed), Some((Path::new("f"), before)));
        assert!(refused.unwrap_err().message.contains("left as it is"));
        let refused =
            add_entry(&of(McpClient::Zed), Some((Path::new("f"), "{\"context_servers\": 1}")));
        assert!(refused.is_err());
    }
}
