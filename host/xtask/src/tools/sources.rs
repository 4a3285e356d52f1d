//! Computes a digest of everything that a tool's component is built from.
//!
//! Included are the crate (manifest, `src`, `build.rs`), the Rust SDK, the contract, the profiles and used
//! dependency lines of the root manifest, and the locked packages that the crate depends on. Nothing of the
//! host is included, so a change of the host never makes a component stale. Documentation, `tool.toml` and
//! test cases are not included either, because the component does not contain them.

use super::{encode_hex, package_name};
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use toml::{Table, Value};
use walkdir::WalkDir;

/// The files of the SDK and the contract every tool is built with.
pub(crate) const SDK: &[&str] =
    &["guest-sdk/rust/Cargo.toml", "guest-sdk/rust/src", "guest-sdk/wit", "guest-sdk/wit-0.1"];

/// A guest: a package of the workspace.
pub(crate) struct GuestCrate<'c> {
    /// The name of the package.
    pub(crate) package: &'c str,
    /// The directory of the package.
    pub(crate) folder: &'c str,
    /// The other files and directories the guest is built with.
    pub(crate) sdk: &'c [&'c str],
}

/// The sources that all tools share, read once.
pub(crate) struct ToolSources<'a> {
    root: &'a Path,
    manifest: Table,
    /// The entries of `Cargo.lock` by package name; a package can have several versions.
    locked: BTreeMap<String, Vec<Table>>,
}

impl<'a> ToolSources<'a> {
    pub(crate) fn read_workspace(root: &'a Path) -> Result<ToolSources<'a>> {
        let manifest = parse_toml(&root.join("Cargo.toml"))?;
        let lock = parse_toml(&root.join("Cargo.lock"))?;
        let mut locked: BTreeMap<String, Vec<Table>> = BTreeMap::new();
        for entry in array_or_empty(lock.get("package")) {
            if let Value::Table(entry) = entry {
                locked
                    .entry(text_or_empty(entry, "name").to_owned())
                    .or_default()
                    .push(entry.clone());
            }
        }
        Ok(ToolSources { root, manifest, locked })
    }

    /// The digest of a tool's sources, in hexadecimal.
    pub(crate) fn source_digest(&self, name: &str) -> Result<String> {
        if super::python::is_python_tool(self.root, name) {
            let mut digest = Sha256::new();
            self.add_files(&mut digest, &format!("tools/{name}/src"))?;
            self.add_files(&mut digest, "guest-sdk/wit")?;
            digest_part(&mut digest, "toolchain", super::python::VERSION.as_bytes());
            digest_part(
                &mut digest,
                "lock",
                self.reachable_packages(super::python::ZONES)?.as_bytes(),
            );
            return Ok(encode_hex(&digest.finalize()));
        }
        let (package, folder) = (package_name(name), format!("tools/{name}"));
        self.digest_of(&GuestCrate { package: &package, folder: &folder, sdk: SDK })
    }

    /// The digest of any guest's sources, in hexadecimal.
    pub(crate) fn digest_of(&self, guest: &GuestCrate<'_>) -> Result<String> {
        let mut digest = Sha256::new();
        for part in ["Cargo.toml", "build.rs", "src"] {
            self.add_files(&mut digest, &format!("{}/{part}", guest.folder))?;
        }
        for place in guest.sdk {
            self.add_files(&mut digest, place)?;
        }
        digest_part(&mut digest, "workspace", self.shared_manifest_text(guest.folder)?.as_bytes());
        digest_part(&mut digest, "lock", self.reachable_packages(guest.package)?.as_bytes());
        Ok(encode_hex(&digest.finalize()))
    }

    fn add_files(&self, digest: &mut Sha256, place: &str) -> Result<()> {
        let start = self.root.join(place);
        if !start.exists() {
            return Ok(());
        }
        for entry in WalkDir::new(&start).sort_by_file_name() {
            let entry = entry.with_context(|| format!("failed to list `{place}`"))?;
            if entry.file_type().is_file() {
                let name =
                    entry.path().strip_prefix(self.root)?.to_string_lossy().replace('\\', "/");
                digest_part(digest, &name, &super::read_file(entry.path())?);
            }
        }
        Ok(())
    }

    /// The parts of the root manifest that affect this guest.
    fn shared_manifest_text(&self, tool: &str) -> Result<String> {
        let workspace = table_or_empty(self.manifest.get("workspace"));
        let dependencies = table_or_empty(workspace.get("dependencies"));
        let own = parse_toml(&self.root.join(tool).join("Cargo.toml"))?;
        let used = table_or_empty(own.get("dependencies"));
        let mut shared = Table::new();
        for (name, _) in used.iter().filter(|(_, line)| inherits_workspace(line)) {
            let root = dependencies
                .get(name)
                .with_context(|| format!("`{name}` is not in `[workspace.dependencies]`"))?;
            shared.insert(name.clone(), root.clone());
        }
        let mut parts = Table::new();
        parts.insert("dependencies".into(), Value::Table(shared));
        let package = workspace.get("package").and_then(|package| package.get("edition"));
        parts.extend(package.map(|edition| ("edition".into(), edition.clone())));
        for profile in ["guest", "release"] {
            let settings = self.manifest.get("profile").and_then(|all| all.get(profile));
            parts.extend(settings.map(|settings| (profile.into(), settings.clone())));
        }
        Ok(toml::to_string(&parts)?)
    }

    /// The entries of `Cargo.lock` for a package and everything the package depends on, sorted.
    fn reachable_packages(&self, package: &str) -> Result<String> {
        let mut found = BTreeSet::new();
        let mut open = vec![package.to_owned()];
        while let Some(reference) = open.pop() {
            // A dependency is `name`, or `name version` if the lock file has several versions.
            let mut words = reference.split(' ');
            let name = words.next().unwrap_or_default();
            let version = words.next();
            let entry = self
                .locked
                .get(name)
                .and_then(|all| {
                    all.iter().find(|entry| {
                        version.is_none_or(|wanted| text_or_empty(entry, "version") == wanted)
                    })
                })
                .with_context(|| format!("`{reference}` is not in `Cargo.lock`"))?;
            let line = format!(
                "{name} {} {}",
                text_or_empty(entry, "version"),
                text_or_empty(entry, "checksum")
            );
            if found.insert(line) {
                let next = array_or_empty(entry.get("dependencies"));
                open.extend(next.iter().filter_map(Value::as_str).map(str::to_owned));
            }
        }
        Ok(found.into_iter().collect::<Vec<_>>().join("\n"))
    }
}

/// Adds a part with its lengths, so that two different lists of parts never add the same bytes.
fn digest_part(digest: &mut Sha256, name: &str, content: &[u8]) {
    digest.update((name.len() as u64).to_le_bytes());
    digest.update(name);
    digest.update((content.len() as u64).to_le_bytes());
    digest.update(content);
}

fn parse_toml(path: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    text.parse().with_context(|| format!("failed to parse `{}`", path.display()))
}

fn inherits_workspace(line: &Value) -> bool {
    line.get("workspace").and_then(Value::as_bool).unwrap_or(false)
}

fn table_or_empty(value: Option<&Value>) -> Table {
    value.and_then(Value::as_table).cloned().unwrap_or_default()
}

fn array_or_empty(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text_or_empty<'t>(table: &'t Table, key: &str) -> &'t str {
    table.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const FILES: &[(&str, &str)] = &[
        (
            "Cargo.toml",
            "[workspace]\nmembers = []\n[workspace.package]\nedition = \"2024\"\n\
             [workspace.dependencies]\nserde = \"1\"\ntokio = \"1\"\n[profile.guest]\nlto = true\n",
        ),
        (
            "Cargo.lock",
            "[[package]]\nname = \"belljar-tool-a-b\"\nversion = \"1.0.0\"\ndependencies = [\"serde 1.0.1\"]\n\
             [[package]]\nname = \"serde\"\nversion = \"0.9.0\"\nchecksum = \"old\"\n\
             [[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"new\"\n\
             [[package]]\nname = \"tokio\"\nversion = \"1.0.0\"\nchecksum = \"host\"\n",
        ),
        ("tools/a_b/Cargo.toml", "[dependencies]\nserde.workspace = true\n"),
        ("tools/a_b/src/lib.rs", "pub fn a() {}\n"),
        ("tools/a_b/README.md", "words\n"),
        ("guest-sdk/rust/src/lib.rs", "pub fn sdk() {}\n"),
        ("guest-sdk/wit/tool.wit", "package a:b;\n"),
        ("host/cli/src/main.rs", "fn main() {}\n"),
    ];

    /// The digest for a small tree, in whose `file` the text `from` is replaced by `to`.
    fn digest(file: &str, from: &str, to: &str) -> String {
        let root = tempfile::tempdir().unwrap();
        let mut changed = false;
        for (name, content) in FILES {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            changed |= *name == file && content.contains(from);
            let content = if *name == file { content.replace(from, to) } else { (*content).into() };
            fs::write(path, content).unwrap();
        }
        assert!(changed, "`{from}` is not in `{file}`");
        ToolSources::read_workspace(root.path()).unwrap().source_digest("a_b").unwrap()
    }

    #[test]
    fn what_a_tool_is_built_from_changes_its_digest() {
        let before = digest("host/cli/src/main.rs", "main", "main");
        for (file, from, to) in [
            ("tools/a_b/src/lib.rs", "fn a", "fn b"),
            ("tools/a_b/Cargo.toml", "[dependencies]", "[dependencies] # x"),
            ("guest-sdk/rust/src/lib.rs", "sdk", "kit"),
            ("guest-sdk/wit/tool.wit", "a:b", "a:c"),
            ("Cargo.toml", "serde = \"1\"", "serde = \"1.0\""),
            ("Cargo.toml", "lto = true", "lto = false"),
            ("Cargo.lock", "\"new\"", "\"newer\""),
        ] {
            assert_ne!(digest(file, from, to), before, "{file}: {from} -> {to}");
        }
    }

    #[test]
    fn work_on_the_host_and_on_documentation_makes_no_tool_stale() {
        let before = digest("host/cli/src/main.rs", "main", "main");
        for (file, from, to) in [
            ("host/cli/src/main.rs", "main", "other"),
            ("tools/a_b/README.md", "words", "other words"),
            ("Cargo.toml", "tokio = \"1\"", "tokio = \"2\""),
            ("Cargo.lock", "\"host\"", "\"other\""),
            ("Cargo.lock", "\"old\"", "\"older\""),
        ] {
            assert_eq!(digest(file, from, to), before, "{file}: {from} -> {to}");
        }
    }
}
