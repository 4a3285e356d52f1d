//! A secret, bound to the host that its section names.

use belljar_definition::SecretSetting;
use belljar_sandbox::http::Secret;
use secrecy::SecretString;

/// A value bound as its section says. The error says why it is none that can be used.
pub(crate) fn bound(setting: &SecretSetting, value: &SecretString) -> Result<Secret, String> {
    let hosts = vec![setting.host.clone()];
    Secret::new(value, hosts, &setting.header, &setting.prefix).map_err(|error| error.to_string())
}
