//! The secrets of one `tools call`: reads the values that `--secret` options name.

use belljar_definition::{KeySetting, SecretSetting, Settings};
use belljar_policy::{HostRule, SecretName, ShownText};
use belljar_sandbox::SecretStore;
use belljar_sandbox::http::Secret;

use crate::setup::exit::Failure;
use crate::setup::home::HomePaths;
use crate::setup::host;
use crate::setup::secrets;

/// The default header of a secret without settings, and the text before its value.
const USUAL: (&str, &str) = ("authorization", "Bearer ");

/// One `--secret` option.
#[derive(Debug, PartialEq, Eq)]
struct SecretArg {
    name: SecretName,
    /// The source of the value; `None` = the one in `belljar.toml`.
    value: Option<KeySetting>,
    header: Option<String>,
    prefix: Option<String>,
}

/// Reads the values of secrets, before the OS sandbox is raised. A secret without options here is read by its
/// section `[secrets.NAME]`. A secret without such a section is bound to the hosts of the call.
///
/// # Errors
///
/// When a text is no valid secret, a value is unavailable, or a secret is bound to no host.
pub(super) fn read_secrets(
    texts: &[String],
    hosts: &[HostRule],
    places: &HomePaths,
) -> Result<SecretStore, Failure> {
    let mut store = SecretStore::default();
    if texts.is_empty() {
        return Ok(store);
    }
    let settings = host::read_settings(places)?;
    for text in texts {
        let given = SecretArg::parse(text)?;
        let secret = given.make_secret(hosts, &settings, places)?;
        store.insert(given.name, secret);
    }
    Ok(store)
}

impl SecretArg {
    /// Parses `NAME`, `NAME=env:VARIABLE` or `NAME=file:PATH`, with `,header=NAME` and `,prefix=TEXT`.
    fn parse(text: &str) -> Result<Self, Failure> {
        let (name, rest) = text.split_once('=').map_or((text, None), |(n, rest)| (n, Some(rest)));
        let name =
            SecretName::new(name).map_err(|error| malformed_secret(text, &error.to_string()))?;
        let mut given = Self { name, value: None, header: None, prefix: None };
        let Some(rest) = rest else { return Ok(given) };
        let mut parts = rest.split(',');
        given.value = match parts.next().and_then(|value| value.split_once(':')) {
            Some(("env", variable)) if !variable.is_empty() => {
                Some(KeySetting::Env(variable.to_owned()))
            }
            Some(("file", path)) if !path.is_empty() => {
                let path = std::path::absolute(path);
                Some(KeySetting::File(
                    path.map_err(|error| malformed_secret(text, &error.to_string()))?,
                ))
            }
            // The value itself is not accepted, because all users of the machine can see a command line.
            Some(_) | None => {
                return Err(malformed_secret(text, "it does not say where the value is"));
            }
        };
        for part in parts {
            match part.split_once('=') {
                Some(("header", header)) => given.header = Some(header.to_owned()),
                Some(("prefix", prefix)) => given.prefix = Some(prefix.to_owned()),
                Some(_) | None => {
                    return Err(malformed_secret(text, "it has more than `header` and `prefix`"));
                }
            }
        }
        Ok(given)
    }

    /// Reads the value, and binds the secret to its hosts and header.
    fn make_secret(
        &self,
        hosts: &[HostRule],
        settings: &Settings,
        places: &HomePaths,
    ) -> Result<Secret, Failure> {
        let name = &self.name;
        let known = settings.secrets.get(name);
        let value = self.value.as_ref().or(known.map(|known| &known.value)).ok_or_else(|| {
            Failure::usage(format!("there is no secret `{name}`")).with_hint(format!(
                "say where its value is: `--secret {name}=env:VARIABLE` or `--secret \
                 {name}=file:PATH`"
            ))
        })?;
        let unusable = |why: String| Failure::usage(format!("secret `{name}`: {why}"));
        let value = secrets::read_value(value, places).map_err(unusable)?;
        let (header, prefix) = self.header_and_prefix(known);
        let bound = known.map_or_else(|| hosts.to_vec(), |known| vec![known.host.clone()]);
        if bound.is_empty() {
            return Err(unusable("it is bound to no host".to_owned())
                .with_hint("name the host that gets it: `--host https://api.example.org`"));
        }
        Secret::new(&value, bound, header, prefix).map_err(|error| unusable(error.to_string()))
    }

    /// The header, and the text before the value: from the option, the settings or the default.
    fn header_and_prefix<'a>(&'a self, known: Option<&'a SecretSetting>) -> (&'a str, &'a str) {
        let usual = match (&self.header, known) {
            (Some(header), _) => (header.as_str(), ""),
            (None, Some(known)) => (known.header.as_str(), known.prefix.as_str()),
            (None, None) => USUAL,
        };
        (usual.0, self.prefix.as_deref().unwrap_or(usual.1))
    }
}

/// The failure for a malformed option. Its text is not shown, because it may contain the value.
fn malformed_secret(text: &str, why: &str) -> Failure {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    Failure::usage(format!("`--secret {}`: {why}", ShownText::clip_line(name, 40)))
        .with_hint("write `NAME=env:VARIABLE`, `NAME=file:PATH`, or `NAME` for one of belljar.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> SecretArg {
        SecretArg::parse(text).unwrap()
    }

    #[test]
    fn a_secret_says_where_its_value_is_and_may_say_its_header() {
        let plain = parsed("weather=env:KEY");
        assert_eq!(plain.value, Some(KeySetting::Env("KEY".to_owned())));
        assert_eq!(plain.header_and_prefix(None), USUAL);
        let own = parsed("weather=env:KEY,header=X-Key");
        assert_eq!(own.header_and_prefix(None), ("X-Key", ""));
        let both = parsed("weather=env:KEY,header=X-Key,prefix=Token ");
        assert_eq!(both.header_and_prefix(None), ("X-Key", "Token "));
        assert_eq!(parsed("weather").value, None);
    }

    #[test]
    fn a_value_on_the_command_line_is_refused_and_not_repeated() {
        for text in ["weather=hunter2hunter2", "weather=", "weather=env:", "weather=env:A,hunter2"]
        {
            let failure = SecretArg::parse(text).unwrap_err();
            assert!(!failure.message.contains("hunter2"), "{failure}");
        }
        assert!(SecretArg::parse("../x=env:A").is_err());
    }
}
