//! Pins tools in the text of `belljar.toml`, when a grant is written.

use belljar_policy::ShownPath as _;
use belljar_policy::{CallPermission, ToolName};
use belljar_sandbox::Digest;

use crate::setup::embedded::STOCK_TOOLS;
use crate::setup::exit::Failure;
use crate::setup::home::{HomePaths, MAX_COMPONENT_BYTES, read_bounded};
use crate::setup::pins::with_digest;

/// Pins the components of granted tools that the operator installed, so that a replaced component is refused.
pub(super) fn pin_components<'a>(
    text: &str,
    tools: impl IntoIterator<Item = &'a (ToolName, CallPermission)>,
    places: &HomePaths,
) -> Result<String, Failure> {
    let mut text = text.to_owned();
    for (tool, permission) in tools {
        let path = places.tools_directory().join(tool.as_str()).join("tool.wasm");
        let stock = STOCK_TOOLS.iter().any(|stock| stock.name == tool.as_str());
        if stock || *permission == CallPermission::Deny || !path.is_file() {
            continue;
        }
        let wasm = read_bounded(&path, MAX_COMPONENT_BYTES).map_err(|error| {
            Failure::new(format!("failed to read `{}`: {error}", path.to_shown()))
        })?;
        let digest = format!("sha256:{}", Digest::hash_bytes(&wasm));
        // A text that does not parse is reported by `apply_grant`, with the position.
        if let Some(pinned) = with_digest(&text, tool.as_str(), &digest) {
            text = pinned;
        }
    }
    Ok(text)
}
