//! Guest components committed outside `tools/prebuilt`: the example hook (`cargo xtask rebuild hooks`) and
//! the guests of the hostile suite (`cargo xtask rebuild attack-guests`).
//!
//! Beside each component is a file `NAME.sources` with a digest of the component's sources; `cargo xtask
//! rebuild tools --check` fails if the sources have changed since.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tools::{GuestCrate, ToolSources};
use belljar_guest_build::{PackageBuild, RustToolchain};

/// A guest component committed outside `tools/prebuilt`.
pub(crate) struct LoneComponent {
    /// The sources of the component.
    sources: GuestCrate<'static>,
    /// The path of the committed component.
    committed: &'static str,
    /// The command that rebuilds the component.
    command: &'static str,
}

/// The example hook.
pub(crate) const HOOK: LoneComponent = LoneComponent {
    sources: GuestCrate {
        package: "belljar-hook-guard",
        folder: "guest-sdk/examples/hook-guard",
        sdk: &["guest-sdk/rust-hook/Cargo.toml", "guest-sdk/rust-hook/src", "guest-sdk/wit-hook"],
    },
    committed: "guest-sdk/examples/hook-guard/hook_guard.wasm",
    command: "cargo xtask rebuild hooks",
};

/// The guest of the hostile suite that does what an attack asks for.
pub(crate) const PROBE: LoneComponent = LoneComponent {
    sources: GuestCrate {
        package: "belljar-prove-probe",
        folder: "host/prove/guests/probe",
        sdk: crate::tools::SDK,
    },
    committed: "host/prove/prebuilt/probe.wasm",
    command: "cargo xtask rebuild attack-guests",
};

/// The guest of the hostile suite that calls other tools as an attack asks for.
pub(crate) const CALLER: LoneComponent = LoneComponent {
    sources: GuestCrate {
        package: "belljar-prove-caller",
        folder: "host/prove/guests/caller",
        sdk: crate::tools::SDK,
    },
    committed: "host/prove/prebuilt/caller.wasm",
    command: "cargo xtask rebuild attack-guests",
};

impl LoneComponent {
    /// Builds the component, and replaces the committed component and its digest.
    pub(crate) fn rebuild_component(&self, root: &Path) -> Result<()> {
        self.build_component(root, &root.join(self.committed))?;
        let digest = ToolSources::read_workspace(root)?.digest_of(&self.sources)?;
        write_file(&self.digest_file(root), format!("{digest}\n").as_bytes())
    }

    /// Builds the component into the file `target`.
    pub(crate) fn build_component(&self, root: &Path, target: &Path) -> Result<()> {
        let component = PackageBuild {
            root,
            package: Some(self.sources.package),
            profile: "guest",
            target_dir: &root.join("target/guests"),
            locked: true,
            c: None,
        }
        .build_component(&RustToolchain::find_installed()?)?;
        write_file(target, &std::fs::read(&component)?)
    }

    /// Whether the committed component was built from the present sources.
    pub(crate) fn is_current(&self, root: &Path) -> Result<bool> {
        Ok(self.find_fault(root, &ToolSources::read_workspace(root)?)?.is_none())
    }

    fn digest_file(&self, root: &Path) -> PathBuf {
        root.join(self.committed).with_extension("sources")
    }

    /// Describes the fault of the committed component, for example that the file is missing.
    fn find_fault(&self, root: &Path, sources: &ToolSources<'_>) -> Result<Option<String>> {
        let LoneComponent { committed, command, .. } = self;
        if !root.join(committed).exists() {
            return Ok(Some(format!("`{committed}` is missing: run `{command}`")));
        }
        let recorded = std::fs::read_to_string(self.digest_file(root)).unwrap_or_default();
        let now = sources.digest_of(&self.sources)?;
        let stale = recorded.trim() != now;
        Ok(stale.then(|| {
            format!("`{committed}` is older than its sources: run `{command}` and commit it")
        }))
    }
}

/// The faults of all these components.
pub(crate) fn find_faults(root: &Path, sources: &ToolSources<'_>) -> Result<Vec<String>> {
    let faults = [HOOK, PROBE, CALLER].iter().map(|lone| lone.find_fault(root, sources));
    Ok(faults.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("failed to create `{}`", folder.display()))?;
    }
    std::fs::write(path, bytes).with_context(|| format!("failed to write `{}`", path.display()))
}
