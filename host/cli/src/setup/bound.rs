//! A secret, bound to its section's host.

use belljar_definition::SecretSetting;
use belljar_sandbox::http::Secret;
use secrecy::SecretString;

/// A secret bound as in its section. The error has the reason against its use.
pub(crate) fn bind_secret(setting: &SecretSetting, value: &SecretString) -> Result<Secret, String> {
    let hosts = vec![setting.host.clone()];
    Secret::new(value, hosts, &setting.header, &setting.prefix).map_err(|error| error.to_string())
}
