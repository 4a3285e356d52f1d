//! How a tool is built, where that is not as every other: `[package.metadata.belljar]` of its
//! `Cargo.toml`.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The settings; without any, a tool is built from Rust alone.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolSettings {
    /// Its export `init` runs when it is built, and the memory that it leaves is part of the component.
    pub(crate) preinit: bool,
    /// Included before each C source of its dependencies: a path in its directory.
    #[serde(rename = "c-header")]
    pub(crate) c_header: Option<String>,
}

impl ToolSettings {
    pub(crate) fn read_settings(root: &Path, tool: &str) -> Result<ToolSettings> {
        #[derive(Deserialize)]
        struct CargoManifest {
            package: CargoPackage,
        }
        #[derive(Deserialize)]
        struct CargoPackage {
            #[serde(default)]
            metadata: CargoMetadata,
        }
        #[derive(Default, Deserialize)]
        struct CargoMetadata {
            #[serde(default)]
            belljar: ToolSettings,
        }
        let path = root.join("tools").join(tool).join("Cargo.toml");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("failed to read `{}`", path.display()))?;
        let manifest: CargoManifest = toml::from_str(&text)
            .with_context(|| format!("failed to parse `{}`", path.display()))?;
        Ok(manifest.package.metadata.belljar)
    }
}
