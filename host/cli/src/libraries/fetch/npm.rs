//! Packages of npm's registry: the archive of one version, with the digest that the registry states. Nothing
//! of a package is run, and its dependencies are not fetched.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_policy::ShownText;
use reqwest::Url;
use serde_json::Value;

use super::address::{DownloadAddress, NpmAddress};
use super::client::{FileClient, NOTHING};
use crate::setup::exit::Failure;
use crate::setup::home::{HomePaths, read_bounded};

/// The registry of everybody who has configured no other.
const PUBLIC: &str = "https://registry.npmjs.org/";

/// Bytes of the description of a package with all its versions.
const MAX_DOCUMENT: u64 = 32 << 20;

/// Bytes of a person's configuration of npm.
const MAX_CONFIG: u64 = 64 << 10;

/// The short form of a description.
const ACCEPTED: &str = "application/vnd.npm.install-v1+json, application/json;q=0.8";

/// Variables that name the registry, as npm reads them.
const VARIABLES: &[&str] = &["npm_config_registry", "NPM_CONFIG_REGISTRY"];

/// One version of a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PackageRelease {
    pub(super) version: String,
    pub(super) tarball: String,
    pub(super) sha512: Vec<u8>,
}

/// The registry for a package: the address's own, or the one of npm's configuration. A file of the workspace
/// is not read, because a stranger may have written it.
///
/// # Errors
///
/// The configured registry is no address that is fetched from.
pub(super) fn find_registry(address: &NpmAddress, places: &HomePaths) -> Result<String, Failure> {
    let variable = || {
        let found = VARIABLES.iter().find_map(|name| std::env::var(name).ok());
        found.filter(|value| !value.is_empty())
    };
    let file = || {
        let path = places.user_home.as_deref()?.join(".npmrc");
        configured_registry(&read_config(&path)?, &address.package)
    };
    let found = address.registry.clone().or_else(variable).or_else(file);
    let registry = found.unwrap_or_else(|| PUBLIC.to_owned());
    let registry = DownloadAddress::from_url(&registry)
        .map_err(|failure| failure.with_hint("it is the registry of npm's configuration"))?
        .url;
    Ok(format!("{}/", registry.trim_end_matches('/')))
}

fn read_config(path: &Path) -> Option<String> {
    read_bounded(path, MAX_CONFIG).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// The registry of a scope, or of all packages, in the lines of a `.npmrc`.
fn configured_registry(text: &str, package: &str) -> Option<String> {
    let scope = package.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
    let lines: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim().trim_matches(['"', '\''])))
        .collect();
    let value = |wanted: &str| {
        let found = lines.iter().rev().find(|(key, value)| *key == wanted && !value.is_empty());
        found.map(|(_, value)| (*value).to_owned())
    };
    scope.and_then(|scope| value(&scope)).or_else(|| value("registry"))
}

/// Finds one version of a package.
///
/// # Errors
///
/// The registry has no such version, or states no SHA-512 for it.
pub(super) async fn find_release(
    client: &FileClient,
    registry: &str,
    package: &str,
    version: Option<&str>,
) -> Result<PackageRelease, String> {
    let url = format!("{registry}{}", package.replace('/', "%2f"));
    let shown = ShownText::clip_line(package, 200).to_string();
    let document =
        client.read_document(&url, ACCEPTED, MAX_DOCUMENT).await.map_err(|why| {
            match why == NOTHING {
                true => format!("the registry has no package `{shown}` for everybody"),
                false => why,
            }
        })?;
    let document: Value = belljar_received::json::from_slice(&document)
        .map_err(|_| format!("the registry describes `{shown}` in no form that is understood"))?;
    parse_release(&document, registry, version)
        .map_err(|why| format!("`{shown}` of the registry: {why}"))
}

fn parse_release(
    document: &Value,
    registry: &str,
    version: Option<&str>,
) -> Result<PackageRelease, String> {
    let wanted = version.unwrap_or("latest");
    let tagged =
        document.get("dist-tags").and_then(|tags| tags.get(wanted)).and_then(Value::as_str);
    let number = tagged.unwrap_or(wanted);
    let release = document.get("versions").and_then(|versions| versions.get(number));
    let shown = ShownText::clip_line(wanted, 100).to_string();
    let dist = release.and_then(|release| release.get("dist"));
    let dist = dist.ok_or_else(|| format!("there is no version `{shown}`"))?;
    let text = |key: &str| dist.get(key).and_then(Value::as_str);
    let tarball = text("tarball").ok_or("it names no archive")?;
    let digests = text("integrity").unwrap_or_default();
    let sha512 = digests.split_whitespace().find_map(|digest| digest.strip_prefix("sha512-"));
    let sha512 = sha512.and_then(|digest| STANDARD.decode(digest).ok());
    let sha512 = sha512.filter(|digest| digest.len() == 64);
    let sha512 = sha512
        .ok_or("it states no SHA-512, so nothing shows that its archive is the published one")?;
    Ok(PackageRelease {
        version: ShownText::clip_line(number, 100).to_string(),
        tarball: at_registry(tarball, registry)?,
        sha512,
    })
}

/// The archive's address at this registry: a mirror repeats the addresses of the public one.
fn at_registry(tarball: &str, registry: &str) -> Result<String, String> {
    let address =
        |text: &str| Url::parse(text).map_err(|_| "its archive has no address".to_owned());
    let (archive, registry) = (address(tarball)?, address(registry)?);
    let is_public = address(PUBLIC)?.host_str() == archive.host_str();
    if archive.origin() == registry.origin() || !is_public {
        // Another host is refused when it is asked.
        return Ok(archive.to_string());
    }
    let below = registry.path().trim_end_matches('/');
    let mut moved = registry.clone();
    moved.set_path(&format!("{below}{}", archive.path()));
    Ok(moved.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HERE: &str = "http://127.0.0.1:4873/";

    fn document(dist: Value) -> Value {
        json!({ "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": { "dist": dist } } })
    }

    #[test]
    fn a_release_has_a_digest_and_an_archive_of_the_registry() {
        let digest = STANDARD.encode([7; 64]);
        let good = document(json!({
            "tarball": "https://registry.npmjs.org/x/-/x-1.0.0.tgz",
            "integrity": format!("sha1-abc sha512-{digest}"),
        }));
        let release = parse_release(&good, HERE, None).unwrap();
        assert_eq!(release.version, "1.0.0");
        assert_eq!(release.tarball, "http://127.0.0.1:4873/x/-/x-1.0.0.tgz");
        assert_eq!(release.sha512, [7; 64]);
        assert_eq!(parse_release(&good, HERE, Some("1.0.0")).unwrap(), release);
        assert!(
            parse_release(&good, HERE, Some("2.0.0")).unwrap_err().contains("no version `2.0.0`")
        );
        let url = "https://registry.npmjs.org/x/-/x-1.0.0.tgz";
        for dist in [
            json!({ "tarball": url }),
            json!({ "tarball": url, "integrity": "sha1-abc" }),
            json!({ "tarball": url, "integrity": "sha512-short" }),
        ] {
            let why = parse_release(&document(dist), HERE, None).unwrap_err();
            assert!(why.contains("no SHA-512"), "{why}");
        }
    }

    #[test]
    fn the_registry_is_the_one_of_npms_configuration() {
        let text = "# mine\nregistry = https://a.test/\n@s:registry=\"https://s.test/npm\"\n//a.test/:_authToken=x\n";
        assert_eq!(configured_registry(text, "x").unwrap(), "https://a.test/");
        assert_eq!(configured_registry(text, "@s/x").unwrap(), "https://s.test/npm");
        assert_eq!(configured_registry(text, "@t/x").unwrap(), "https://a.test/");
        assert_eq!(configured_registry("", "x"), None);
    }
}
