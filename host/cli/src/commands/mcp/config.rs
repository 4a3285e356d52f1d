//! `belljar mcp config`: what a client has to be told, printed or written.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use belljar_policy::ShownPath as _;
use serde_json::{Value, json};

use super::clients::{Entry, Form, entry};
use crate::args::mcp::McpClient;
use crate::setup::below::{Below, For};
use crate::setup::exit::{Exit, Failure};
use crate::setup::home::{MAX_MANIFEST_BYTES, Places};
use crate::setup::walls::Walls;
use crate::term::out::Out;

/// The name of this server in a client's file.
const NAME: &str = "belljar";

pub(super) fn run(
    client: McpClient,
    write: bool,
    places: &Places,
    walls: Walls<'_>,
    out: &Out,
) -> Result<Exit, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("failed to find this program: {error}")))?;
    let workspace = belljar_agent::canonical(&places.workspace);
    let workspace = workspace.map_err(|error| Failure::usage(error.to_string()))?;
    let entry = entry(client, &program, &workspace, places);
    if !write {
        let snippet = added(&entry, None)?;
        out.text(snippet.trim_end());
        match &entry.file {
            Some(file) => out.note(format_args!(
                "this belongs into `{}`; `--write` adds it there",
                file.shown()
            )),
            None => out.note("where this client reads it is not known here: there is no home"),
        }
        return Ok(Exit::Completed);
    }
    let file = entry.file.clone().ok_or_else(|| {
        Failure::usage("where this client reads it is not known: there is no home directory")
            .hint("leave out `--write`, and put what is printed there by hand")
    })?;
    let target = Target::of(&file, &workspace).map_err(|error| unwritten(&file, &error))?;
    walls.around(&[&target.directory]);
    let before = target.read(&file)?;
    let text = added(&entry, before.as_deref().map(|text| (file.as_path(), text)))?;
    let put = target.below.replace(&target.path, text.as_bytes(), target.whose);
    put.map_err(|error| unwritten(&file, &error))?;
    out.note(format_args!("wrote `{}`; restart the client", file.shown()));
    if entry.for_all {
        let workspace = workspace.shown();
        out.note(format_args!("this client has one workspace for everything: now `{workspace}`"));
    }
    Ok(Exit::Completed)
}

/// The place that is written: below the workspace, through no link, or in the person's own home.
struct Target {
    below: Below,
    path: PathBuf,
    whose: For,
    /// For the OS sandbox.
    directory: PathBuf,
}

impl Target {
    fn of(file: &Path, workspace: &Path) -> std::io::Result<Self> {
        if let Ok(path) = file.strip_prefix(workspace) {
            let (below, whose) = (Below::open(workspace)?, For::Everybody);
            return Ok(Self { below, path: path.into(), whose, directory: workspace.into() });
        }
        let (below, path) = Below::own(file)?;
        let directory = below.path().to_path_buf();
        Ok(Self { below, path, whose: For::Owner, directory })
    }

    fn read(&self, file: &Path) -> Result<Option<String>, Failure> {
        let bytes = self.below.read(&self.path, MAX_MANIFEST_BYTES);
        let bytes = bytes.map_err(|error| unwritten(file, &error))?;
        bytes.map(String::from_utf8).transpose().map_err(|error| by_hand(file, &error))
    }
}

fn unwritten(file: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(format!("failed to write `{}`: {error}", file.shown()));
    let hint = match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "you may not write there: leave out `--write`, and have what is printed put in by hand"
        }
        _ => "put a regular file there, or leave out `--write` and put in by hand what is printed",
    };
    failure.hint(hint)
}

/// The file with the entry in it; `None` = there is no file yet.
fn added(entry: &Entry, before: Option<(&Path, &str)>) -> Result<String, Failure> {
    match entry.form {
        Form::Json => in_json(entry, before),
        Form::Toml => in_toml(entry, before),
    }
}

fn in_json(entry: &Entry, before: Option<(&Path, &str)>) -> Result<String, Failure> {
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

fn in_toml(entry: &Entry, before: Option<(&Path, &str)>) -> Result<String, Failure> {
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

/// The failure for a file that is not edited, because other parts of it could be lost.
fn by_hand(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("`{}` is left as it is: {why}", path.shown()))
        .hint("leave out `--write`, and put what is printed there by hand")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(client: McpClient, home: &str, cache: &str) -> Entry {
        let (program, workspace) = (Path::new("/opt/belljar"), Path::new("/work"));
        let places = Places {
            home: home.into(),
            cache: cache.into(),
            workspace: workspace.into(),
            user_home: Some("/home/me".into()),
        };
        entry(client, program, workspace, &places)
    }

    fn of(client: McpClient) -> Entry {
        at(client, "/home/me/.belljar", "/home/me/.belljar/cache")
    }

    #[test]
    fn a_client_starts_it_with_the_home_and_the_cache_of_now() {
        use clap::ValueEnum as _;
        for client in McpClient::value_variants() {
            let usual = added(&of(*client), None).unwrap();
            assert!(!usual.contains("BELLJAR_"), "{client:?}: {usual}");
            let moved = added(&at(*client, "/srv/jar", "/var/cache/jar"), None).unwrap();
            assert!(moved.contains("/srv/jar") && moved.contains("/var/cache/jar"), "{moved}");
        }
        let codex = added(&at(McpClient::Codex, "/srv/jar", "/srv/jar/cache"), None).unwrap();
        assert!(codex.contains("env = { BELLJAR_HOME = \"/srv/jar\" }"), "{codex}");
        let opencode = at(McpClient::Opencode, "/srv/jar", "/srv/jar/cache").value;
        assert_eq!(opencode["environment"], json!({"BELLJAR_HOME": "/srv/jar"}));
    }

    #[test]
    fn what_else_stands_in_a_file_stays() {
        let before = r#"{"theme": "dark", "mcpServers": {"other": {"command": "x"}}}"#;
        let text = added(&of(McpClient::Cursor), Some((Path::new("f"), before))).unwrap();
        let all: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(all["theme"], "dark");
        assert_eq!(all["mcpServers"]["other"]["command"], "x");
        assert_eq!(all["mcpServers"]["belljar"]["command"], "/opt/belljar");
        let again = added(&of(McpClient::Cursor), Some((Path::new("f"), &text))).unwrap();
        assert_eq!(again, text, "a second time changes nothing");
        let before = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let text = added(&of(McpClient::Codex), Some((Path::new("f"), before))).unwrap();
        assert!(text.starts_with(before), "{text}");
        assert!(text.contains("[mcp_servers.belljar]\ncommand = \"/opt/belljar\"\n"), "{text}");
    }

    #[test]
    fn a_file_with_comments_is_left_as_it_is() {
        let before = "{\n  // mine\n  \"context_servers\": {}\n}";
        let refused = added(&of(McpClient::Zed), Some((Path::new("f"), before)));
        assert!(refused.unwrap_err().message.contains("left as it is"));
        let refused =
            added(&of(McpClient::Zed), Some((Path::new("f"), "{\"context_servers\": 1}")));
        assert!(refused.is_err());
    }
}
