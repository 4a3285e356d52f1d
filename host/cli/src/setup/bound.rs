//! Binds a secret to the host in its section of `belljar.toml`.

use belljar_definition::SecretSetting;
use belljar_sandbox::http::Secret;
use secrecy::SecretString;

/// Makes a secret that is sent only to its section's host. The error says why the value cannot be used.
pub(crate) fn bind_secret(setting: &SecretSetting, value: &SecretString) -> Result<Secret, String> {
    let hosts = vec![setting.host.clone()];
    Secret::new(value, hosts, &setting.header, &setting.prefix).map_err(|error| error.to_string())
}
