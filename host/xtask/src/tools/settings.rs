//! Build settings of a tool that differs from the others: `[package.metadata.belljar]` of the tool's
//! `Cargo.toml`.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The build settings of a tool. By default, a tool is built from Rust alone, without preinitialization.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolSettings {
    /// Whether the export `init` runs at build time; the memory after `init` then becomes part of the
    /// component.
    pub(crate) preinit: bool,
    /// A header included before each C source of the tool's dependencies: a path in the tool's directory.
    #[serde(rename = "c-header")]
    pub(crate) c_header: Option<String>,
}

impl ToolSettings {
    /// Reads the settings from the tool's `Cargo.toml`.
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
