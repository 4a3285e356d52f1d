//! Reads the values of secrets from the places that `belljar.toml` names, and binds each to its hosts.

use std::io;
use std::path::{Path, PathBuf};

use belljar_definition::{KeySetting, SecretSetting, Settings};
use belljar_mcp::{AcceptedTools, ServerTokens};
use belljar_policy::ShownPath as _;
use belljar_sandbox::SecretStore;
use belljar_sandbox::http::Secret;
use secrecy::SecretString;

use crate::setup::bound::bind_secret;
use crate::setup::home::{HomePaths, read_bounded};
use crate::setup::walls;
use crate::term::out::TerminalOutput;

/// Most bytes of a secret's file: as many as the longest header that servers accept.
const MAX_SECRET_FILE: u64 = 8 << 10;

/// Reads the values of all secrets. An unavailable value is a warning, and tools that need it are told that
/// the secret does not exist.
pub(crate) fn read_secrets(
    settings: &Settings,
    places: &HomePaths,
    out: &TerminalOutput,
) -> SecretStore {
    let mut store = SecretStore::default();
    for (name, setting) in &settings.secrets {
        match read_secret(setting, places) {
            Ok(secret) => store.insert(name.clone(), secret),
            Err(why) => out.print_warning(format_args!("secret `{name}` cannot be used: {why}")),
        }
    }
    store
}

/// The files that contain values of these settings, including models' keys. A watcher of these files notices
/// a new value.
pub(crate) fn secret_files(settings: &Settings, places: &HomePaths) -> Vec<PathBuf> {
    let secrets = settings.secrets.values();
    let secrets = secrets.filter_map(|secret| value_file(&secret.value, places));
    secrets.chain(key_files(settings, places)).collect()
}

/// Like [`secret_files`], with the accepted lists and tokens of the MCP servers in these settings.
pub(crate) fn files_named(settings: &Settings, places: &HomePaths) -> Vec<PathBuf> {
    let of_server = |name: &String| {
        [
            places.mcp_directory().join(AcceptedTools::file_name(name)),
            places.tokens_directory().join(ServerTokens::file_name(name)),
        ]
    };
    let of_servers = settings.mcp.keys().flat_map(of_server);
    let programs = settings.mcp_programs.keys();
    let of_programs =
        programs.map(|name| places.mcp_directory().join(AcceptedTools::file_name(name)));
    of_servers.chain(of_programs).chain(secret_files(settings, places)).collect()
}

/// The files that contain models' keys.
pub(crate) fn key_files(settings: &Settings, places: &HomePaths) -> Vec<PathBuf> {
    settings.models.values().filter_map(|model| value_file(&model.key, places)).collect()
}

/// The file that contains a value; `None` = it is in the environment, or there is no value.
pub(crate) fn value_file(key: &KeySetting, places: &HomePaths) -> Option<PathBuf> {
    match key {
        KeySetting::File(path) => Some(places.home.join(path)),
        KeySetting::None | KeySetting::Env(_) => None,
    }
}

fn read_secret(setting: &SecretSetting, places: &HomePaths) -> Result<Secret, String> {
    bind_secret(setting, &read_value(&setting.value, places)?)
}

/// Reads a value. The error says why the value is unavailable, and contains nothing of it.
pub(crate) fn read_value(setting: &KeySetting, places: &HomePaths) -> Result<SecretString, String> {
    let value = match setting {
        KeySetting::None => return Err("it says neither `env` nor `file`".to_owned()),
        KeySetting::Env(name) => std::env::var(name)
            .map_err(|_| format!("the environment variable `{name}` is not set"))?,
        KeySetting::File(path) => {
            let path = places.home.join(path);
            let bytes = read_bounded(&path, MAX_SECRET_FILE)
                .map_err(|error| unreadable_reason(&path, &error, places))?;
            String::from_utf8(bytes)
                .map_err(|_| format!("`{}` is not valid UTF-8", path.to_shown()))?
        }
    };
    Ok(SecretString::from(value.trim().to_owned()))
}

/// The reason why a secret's file cannot be read. Behind the OS sandbox, a server reads a tenant's files only
/// in the tenant's own directories.
fn unreadable_reason(path: &Path, error: &io::Error, places: &HomePaths) -> String {
    let failed = format!("failed to read `{}`: {error}", path.to_shown());
    let denied = error.kind() == io::ErrorKind::PermissionDenied;
    match denied && walls::outside_broker().is_some() && !path.starts_with(&places.home) {
        false => failed,
        true => format!(
            "{failed}: the OS sandbox lets this process read nothing there; put the file below \
             `{}` and write `file` from there on, or hand the value over with `env`",
            places.home.to_shown()
        ),
    }
}
