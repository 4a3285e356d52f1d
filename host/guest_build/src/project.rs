//! The project of a tool in another language than Rust.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A tool's project, with the directories that `belljar tools new` makes.
pub(crate) struct ToolProject<'a> {
    /// The absolute path of the project.
    pub(crate) root: &'a Path,
    /// The directory for everything that the build makes.
    pub(crate) out: &'a Path,
    /// The name of the language on the command line, for example `python`.
    language: &'static str,
}

impl<'a> ToolProject<'a> {
    pub(crate) fn new(root: &'a Path, out: &'a Path, language: &'static str) -> Result<Self> {
        let project = Self { root, out, language };
        for needed in [project.sdk_path(), project.wit_path()] {
            if !needed.is_dir() {
                bail!(
                    "`{}` is missing: the project has no SDK\n\
                     hint: `belljar tools new NAME --lang {}` writes one; copy its `sdk` folder",
                    needed.display(),
                    language
                );
            }
        }
        std::fs::create_dir_all(out)
            .with_context(|| format!("failed to create `{}`", out.display()))?;
        Ok(project)
    }

    /// The directory of the language's SDK.
    pub(crate) fn sdk_path(&self) -> PathBuf {
        self.root.join("sdk").join(self.language)
    }

    /// The directory of the contract's WIT files, and of those parts of WASI that the SDK uses.
    pub(crate) fn wit_path(&self) -> PathBuf {
        self.root.join("sdk/wit")
    }

    /// The path at which the component is written.
    pub(crate) fn component_path(&self) -> PathBuf {
        self.out.join("tool.wasm")
    }

    /// Converts a core module to the component, and writes it.
    pub(crate) fn finish_component(&self, module: &Path) -> Result<()> {
        let bytes = std::fs::read(module)
            .with_context(|| format!("failed to read `{}`", module.display()))?;
        self.write_component(&crate::component::from_module(bytes, &self.wit_path())?)
    }

    /// Writes the component to its path.
    pub(crate) fn write_component(&self, bytes: &[u8]) -> Result<()> {
        let path = self.component_path();
        std::fs::write(&path, bytes)
            .with_context(|| format!("failed to write `{}`", path.display()))
    }
}
