//! What the operator set for this tool (`wasi:config/store`).
//!
//! The keys come from the tool's `tool.toml` (`config = [..]`), the values from the
//! operator's `[tools.NAME.config]`. A tool built with this feature imports `wasi:config`.

use crate::ToolError;

#[cfg(target_family = "wasm")]
#[allow(missing_docs, unreachable_pub, unsafe_code, reason = "generated from store.wit")]
mod bindings {
    wit_bindgen::generate!({
        path: "../wit-0.1",
        inline: "package belljar:sdk; world settings { import wasi:config/store@0.2.0-rc.1; }",
        world: "belljar:sdk/settings",
        generate_all,
    });
}

/// The value of a key; `None` where the operator set nothing.
///
/// # Errors
///
/// [`ToolError::Failed`] when the host could not read its settings. Natively (in unit tests)
/// nothing is ever set.
pub fn get(key: &str) -> Result<Option<String>, ToolError> {
    #[cfg(target_family = "wasm")]
    return bindings::wasi::config::store::get(key).map_err(|error| {
        crate::log::error(format_args!("reading the setting `{key}`: {error:?}"));
        ToolError::Failed(format!("the setting `{key}` could not be read"))
    });
    #[cfg(not(target_family = "wasm"))]
    {
        let _ = key;
        Ok(None)
    }
}
