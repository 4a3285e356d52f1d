//! Converts commands of WASI preview 1, which are core modules, to components, with the adapter of the
//! engine.

mod exit;

use belljar_policy::ShownText;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wasmparser::{Encoding, Parser, Payload};
use wit_component::ComponentEncoder;

/// The function the module of a command exports.
const START: &str = "_start";

/// The most bytes of the encoder's text that an error shows.
const MAX_SHOWN: usize = 500;

/// Whether the bytes are a core module, not a component.
pub(crate) fn is_module(wasm: &[u8]) -> bool {
    wasm.starts_with(b"\0asm\x01\0\0\0")
}

/// Converts the module of a command to a component in the current process, so only for trusted modules. For
/// a stranger's module use [`crate::Sandbox::adapt_module`].
///
/// # Errors
///
/// Why the module cannot be converted; foreign text in it is escaped.
pub fn adapt_trusted_module(module: &[u8]) -> Result<Vec<u8>, String> {
    check_command_module(module)?;
    let module = exit::with_code(module).ok_or("its imports are none of preview 1")?;
    let made = || {
        ComponentEncoder::default()
            .validate(true)
            .module(&module)?
            .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?
            .encode()
    };
    made().map_err(|error| clip_shown(&format!("it cannot be adapted: {error:#}")))
}

/// Refuses a module that is not a command of preview 1. The encoder would refuse it too, with a text that
/// helps less.
fn check_command_module(module: &[u8]) -> Result<(), String> {
    let wrong = |error: wasmparser::BinaryReaderError| clip_shown(&format!("not valid: {error}"));
    let mut starts = false;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(wrong)? {
            Payload::Version { encoding: Encoding::Component, .. } => {
                return Err("it is a component already".to_owned());
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let name = import.map_err(wrong)?.module;
                    if name != WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME {
                        return Err(clip_shown(&format!(
                            "it imports `{name}`, and only `{WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME}` \
                             is adapted"
                        )));
                    }
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    starts |= export.map_err(wrong)?.name == START;
                }
            }
            _ => {}
        }
    }
    if starts {
        return Ok(());
    }
    Err(format!("it exports no `{START}`, so it is no command"))
}

fn clip_shown(text: &str) -> String {
    ShownText::clip_line(text, MAX_SHOWN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_command_is_named() {
        assert!(is_module(b"\0asm\x01\0\0\0") && !is_module(b"\0asm\x0d\0\x01\0"));
        for (bytes, why) in [
            (&b"\0asm\x01\0\0\0"[..], "no `_start`"),
            (b"\0asm\x0d\0\x01\0", "a component already"),
            (b"\0asm\x01\0\0\0\x01", "not valid"),
            (b"hello", "not valid"),
            // (import "env\u{1b}" "a" (func)), with its type.
            (
                b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x0a\x01\x04env\x1b\x01a\0\0",
                "it imports `env\\u{1b}`",
            ),
        ] {
            let told = adapt_trusted_module(bytes).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
