//! The files inside the program: stock agents, stock tools, the demo, and the SDK for authors of tools. The
//! build script makes the tables of these files.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use belljar_policy::ShownPath as _;
use belljar_sandbox::{Digest, Sandbox, StockCode, ToolInfo, Wasm};
use flate2::bufread::DeflateDecoder;

use crate::setup::beside;
use crate::setup::exit::Failure;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// A tool component that is part of belljar.
pub(crate) struct StockTool {
    /// The component's directory below `tools/`. For a component with a single tool, also the tool's name.
    pub(crate) name: &'static str,
    /// The component, compressed.
    wasm: PackedComponent,
    /// The SHA-256 of the component.
    digest: [u8; 32],
    /// Where the component's machine code is.
    code: CodeLocation,
    /// The text of the component's `tool.toml`.
    pub(crate) manifest: &'static str,
}

/// Where the machine code of a stock tool is stored.
enum CodeLocation {
    /// In the program itself.
    Here(StockCode),
    /// In a file that is installed beside the program.
    #[allow(dead_code, reason = "how a release is built")]
    Beside(&'static beside::BuildFile),
    /// Nowhere: the component is compiled at its first use, and cached.
    AtFirstUse,
}

/// How a stock component is stored.
enum PackedComponent {
    /// In the program, compressed by deflate.
    Deflated(&'static [u8]),
    /// In the program, compressed by zstd.
    #[allow(dead_code, reason = "not how a release is built")]
    Compressed(&'static [u8]),
    /// Compressed by zstd, in a file that is installed beside the program.
    #[allow(dead_code, reason = "how a release is built")]
    Beside(&'static beside::BuildFile),
}

impl StockTool {
    /// Unpacks the component.
    pub(crate) fn to_wasm(&self) -> Wasm {
        match self.wasm {
            PackedComponent::Deflated(bytes) => {
                Wasm::from_packed(bytes, inflate_bytes, self.digest())
            }
            PackedComponent::Compressed(bytes) => {
                Wasm::from_packed(bytes, decompress_bytes, self.digest())
            }
            PackedComponent::Beside(file) => match file.machine_code() {
                Some(bytes) => Wasm::from_packed(bytes, decompress_bytes, self.digest()),
                None => Wasm::from_missing(file.file_name(), self.digest()),
            },
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::from_bytes(self.digest)
    }
}

/// Unpacks bytes deflated by the build; `None` = malformed.
fn inflate_bytes(packed: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    DeflateDecoder::new(packed).read_to_end(&mut whole).ok()?;
    Some(whole)
}

/// Most bytes of a component after decompression.
const MAX_DECOMPRESSED: u64 = 64 << 20;

/// Unpacks bytes compressed by the build; `None` = malformed.
fn decompress_bytes(packed: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed).ok()?;
    decoder.take(MAX_DECOMPRESSED).read_to_end(&mut whole).ok()?;
    Some(whole)
}

/// Opens the files that are installed beside the program. Must be called before the OS sandbox is raised,
/// because their directory is unreadable behind it.
pub(crate) fn open_what_lies_beside() {
    for tool in STOCK_TOOLS {
        if let CodeLocation::Beside(file) = &tool.code {
            let _ = file.machine_code();
        }
        if let PackedComponent::Beside(file) = &tool.wasm {
            let _ = file.machine_code();
        }
    }
}

/// Bytes that are aligned to 64 KiB, for machine code that runs in place.
#[repr(C, align(65536))]
#[allow(dead_code, reason = "a release keeps such code in a file")]
struct OnAPage<T>(T);

/// A stock component's list of tools, as made by the build.
#[derive(serde::Deserialize)]
pub(crate) struct StockDescription {
    /// The SHA-256 of the component, in hexadecimal.
    digest: String,
    tools: Vec<ToolInfo>,
}

/// Gives a sandbox the descriptions and machine code of stock components, so that none is compiled for
/// listing or running. A test of `tests/kit` compares the descriptions with the components' own.
#[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
pub(crate) fn bring_stock_tools(sandbox: &Sandbox) -> Result<(), Failure> {
    let described: BTreeMap<String, StockDescription> = serde_json::from_str(DESCRIBED)
        .map_err(|error| Failure::new(format!("the descriptions of this build: {error}")))?;
    for (name, StockDescription { digest, tools }) in described {
        let Some(digest) = Digest::from_hex(&digest) else { continue };
        sandbox.know_description(digest, tools);
        if let Some(stock) = STOCK_TOOLS.iter().find(|stock| stock.name == name) {
            let code = match &stock.code {
                CodeLocation::Here(code) => Some(*code),
                // If the file is missing, the component is compiled like a stranger's.
                CodeLocation::Beside(file) => file.machine_code().map(StockCode::InPlace),
                CodeLocation::AtFirstUse => None,
            };
            if let Some(code) = code {
                // SAFETY: `build.rs` had the engine make this code from the component of this name, and a
                // test compares the component's digest with this one.
                unsafe { sandbox.know_code(digest, code) };
            }
        }
    }
    Ok(())
}

/// The files of an embedded tree below `prefix`, which ends with `/`; paths are relative.
pub(crate) fn files_below<'a>(
    tree: &'static [(&'static str, &'static [u8])],
    prefix: &'a str,
) -> impl Iterator<Item = (&'static str, &'static [u8])> + 'a {
    tree.iter().filter_map(move |(path, bytes)| Some((path.strip_prefix(prefix)?, *bytes)))
}

/// The content of an embedded file.
pub(crate) fn find_file(
    tree: &'static [(&'static str, &'static [u8])],
    path: &str,
) -> Result<&'static [u8], Failure> {
    let found = tree.iter().find(|(name, _)| *name == path);
    let (_, bytes) = found.ok_or_else(|| {
        Failure::new(format!("this build of belljar lacks its embedded file `{path}`"))
    })?;
    Ok(bytes)
}

/// The content of an embedded text file.
pub(crate) fn find_text(
    tree: &'static [(&'static str, &'static [u8])],
    path: &str,
) -> Result<&'static str, Failure> {
    std::str::from_utf8(find_file(tree, path)?)
        .map_err(|_| Failure::new(format!("the embedded file `{path}` is not text")))
}

/// Writes embedded files into the directory `to`, which is new or belongs to the caller.
pub(crate) fn unpack_files(
    files: impl Iterator<Item = (&'static str, &'static [u8])>,
    to: &Path,
) -> Result<(), Failure> {
    for (path, bytes) in files {
        let to = to.join(path);
        let write = || {
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&to, bytes)
        };
        write().map_err(|error| {
            Failure::new(format!("failed to write `{}`: {error}", to.to_shown()))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_sandbox::{Compiler, SandboxConfig};

    #[test]
    fn the_prebuilt_manifest_and_the_embedded_components_agree() {
        let manifest: toml::Table = PREBUILT.parse().unwrap();
        let names: Vec<&str> = STOCK_TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names, manifest.keys().map(String::as_str).collect::<Vec<_>>());
        for tool in STOCK_TOOLS {
            let digest = Digest::hash_bytes(tool.to_wasm().bytes());
            let stated = manifest[tool.name]["digest"].as_str();
            assert_eq!(stated, Some(&*digest.to_string()), "{}", tool.name);
            assert_eq!(tool.digest(), digest, "{}", tool.name);
        }
    }

    #[test]
    #[expect(unsafe_code, reason = "loading compiled code cannot be checked")]
    fn machine_code_beside_the_program_is_loaded_where_it_is_mapped() {
        use std::os::unix::fs::PermissionsExt as _;
        let in_place = |tool: &'static StockTool| match &tool.code {
            CodeLocation::Here(StockCode::InPlace(code)) => Some((tool, *code)),
            CodeLocation::Here(StockCode::Packed(_))
            | CodeLocation::Beside(_)
            | CodeLocation::AtFirstUse => None,
        };
        let (tool, code) = STOCK_TOOLS.iter().find_map(in_place).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tool.code");
        std::fs::write(&path, code).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let us = rustix::process::geteuid().as_raw();
        let mapped = beside::map_file(&path, code.len(), us).unwrap();
        let compiler = Compiler::Child { program: "/nowhere".into(), args: Vec::new() };
        let config = SandboxConfig { compiler, ..SandboxConfig::default() };
        let sandbox = Sandbox::new(config).unwrap();
        let runtime = crate::setup::host::small_runtime().unwrap();
        runtime.block_on(sandbox.load_component(&tool.to_wasm())).unwrap_err();
        // SAFETY: the build made it of this component.
        unsafe { sandbox.know_code(tool.digest(), StockCode::InPlace(mapped)) };
        runtime.block_on(sandbox.load_component(&tool.to_wasm())).unwrap();
    }

    #[test]
    fn a_component_whose_file_is_missing_says_which_and_runs_where_its_code_is_known() {
        static FILE: beside::BuildFile = beside::BuildFile::new("tool-0.wasm.zst", 12);
        let tool = STOCK_TOOLS.iter().find(|tool| tool.name == "file_read").unwrap();
        let StockTool { name, digest, manifest, .. } = *tool;
        let code = CodeLocation::AtFirstUse;
        let missing =
            StockTool { name, digest, manifest, wasm: PackedComponent::Beside(&FILE), code };
        let compiler = Compiler::Child { program: "/nowhere".into(), args: Vec::new() };
        let config = SandboxConfig { compiler, ..SandboxConfig::default() };
        let sandbox = Sandbox::new(config).unwrap();
        let runtime = crate::setup::host::small_runtime().unwrap();
        let error =
            runtime.block_on(sandbox.load_component(&missing.to_wasm())).unwrap_err().to_string();
        assert!(error.contains("`tool-0.wasm.zst` belongs in `lib/belljar`"), "{error}");
        bring_stock_tools(&sandbox).unwrap();
        runtime.block_on(sandbox.load_component(&missing.to_wasm())).unwrap();
    }

    #[test]
    fn the_files_that_commands_ask_for_are_there() {
        for path in ["AGENTS.md", "demo/transcript.yaml", "demo/task.txt"] {
            assert!(find_text(AGENTS, path).is_ok(), "{path}");
        }
        assert!(files_below(AGENTS, "agents/").count() >= 4);
        assert!(files_below(AGENTS, "demo/workspace/").count() > 0);
        for path in ["wit/tool.wit", "wit-0.1/tool.wit", "rust/Cargo.toml", "rust/src/lib.rs"] {
            assert!(find_text(SDK, path).is_ok(), "{path}");
        }
    }
}
