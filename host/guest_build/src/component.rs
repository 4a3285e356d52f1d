//! Converts a core module to a component, for compilers that know only the first version of WASI, or none.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The name of the world that SDKs implement.
const WORLD: &str = "tool";

/// Converts a core module that implements the SDK's world, whose WIT files are in the directory `wit`. The
/// component imports those parts of the world that the module uses; calls of WASI's first version are
/// adapted.
///
/// # Errors
///
/// The directory has no such world, or the module does not implement it.
pub(crate) fn from_module(mut module: Vec<u8>, wit: &Path) -> Result<Vec<u8>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(wit)
        .map_err(|error| anyhow!("{error:?}"))
        .with_context(|| format!("failed to read the interfaces in `{}`", wit.display()))?;
    let world = resolve
        .select_world(&[package], Some(WORLD))
        .map_err(|error| anyhow!("{error:?}"))
        .with_context(|| format!("`{}` has no world `{WORLD}`", wit.display()))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| anyhow!("{error:?}"))?;
    let encoder = ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| {
            encoder.adapter(
                WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
                WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
            )
        })
        .map_err(|error| anyhow!("{error:?}"))?;
    encoder
        .validate(true)
        .encode()
        .map_err(|error| anyhow!("{error:?}"))
        .context("the module is no tool of this contract")
}
