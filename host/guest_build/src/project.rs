//! A project of a tool in another language than Rust.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A project, laid out as `belljar tools new` does it.
pub(crate) struct ToolProject<'a> {
    /// Its folder, absolute.
    pub(crate) root: &'a Path,
    /// Where everything goes that can be made again.
    pub(crate) out: &'a Path,
    /// The word for the language, for example `python`.
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

    /// The language's SDK.
    pub(crate) fn sdk_path(&self) -> PathBuf {
        self.root.join("sdk").join(self.language)
    }

    /// The contract, and what the SDK uses of WASI.
    pub(crate) fn wit_path(&self) -> PathBuf {
        self.root.join("sdk/wit")
    }

    /// The built component.
    pub(crate) fn component_path(&self) -> PathBuf {
        self.out.join("tool.wasm")
    }

    /// Makes the component of a core module.
    pub(crate) fn finish_component(&self, module: &Path) -> Result<()> {
        let bytes = std::fs::read(module)
            .with_context(|| format!("failed to read `{}`", module.display()))?;
        self.write_component(&crate::component::from_module(bytes, &self.wit_path())?)
    }

    /// Writes the component.
    pub(crate) fn write_component(&self, bytes: &[u8]) -> Result<()> {
        let path = self.component_path();
        std::fs::write(&path, bytes)
            .with_context(|| format!("failed to write `{}`", path.display()))
    }
}
