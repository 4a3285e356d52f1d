//! `tools/prebuilt/manifest.toml`: the digests of each committed component and of its sources.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = "manifest.toml";
const HEADER: &str = "# Written by `cargo xtask rebuild tools`.\n\n";

/// The entries of the file, by tool name.
#[derive(Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct ComponentManifest(BTreeMap<String, ManifestEntry>);

/// One committed component.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManifestEntry {
    /// SHA-256 of the component, in hexadecimal.
    pub(crate) digest: String,
    /// SHA-256 of the component's sources, in hexadecimal: see [`super::sources`].
    pub(crate) sources: String,
    /// The size of the component.
    pub(crate) bytes: u64,
    /// The compiler. Another compiler makes other bytes from the same sources.
    pub(crate) toolchain: String,
}

impl ComponentManifest {
    pub(crate) fn read(directory: &Path) -> Result<ComponentManifest> {
        let path = directory.join(FILE);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("failed to read `{}`", path.display()))?;
        toml::from_str(&text).with_context(|| format!("failed to parse `{}`", path.display()))
    }

    pub(crate) fn read_or_empty(directory: &Path) -> Result<ComponentManifest> {
        if directory.join(FILE).exists() {
            ComponentManifest::read(directory)
        } else {
            Ok(ComponentManifest::default())
        }
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        let text = format!("{HEADER}{}", toml::to_string(self)?);
        std::fs::write(&path, text).with_context(|| format!("failed to write `{}`", path.display()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ManifestEntry> {
        self.0.get(name)
    }

    pub(crate) fn set_entry(&mut self, name: &str, entry: ManifestEntry) {
        self.0.insert(name.to_owned(), entry);
    }

    /// Removes the tools that are not in `names`.
    pub(crate) fn retain_names(&mut self, names: &[String]) {
        self.0.retain(|name, _| names.contains(name));
    }

    pub(crate) fn tool_names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}
