//! Embeds the binary's data: the stock agents with the demo, the built tool components with manifests and
//! machine code, and the SDK for `belljar tools new`.
//!
//! The machine code is for the processor of the building machine. With `BELLJAR_ANY_PROCESSOR` set, as for a
//! release, it is for every processor of the target. If the code does not load, the component is compiled at
//! its first use, like a stranger's.
//!
//! This is a build script and not a macro, because cargo then knows every file: a changed or new file
//! rebuilds the program.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest as _, Sha256};

/// The variable for machine code that runs on every processor of the target, a little slower.
const ANY_PROCESSOR: &str = "BELLJAR_ANY_PROCESSOR";

/// The variable with which large machine code is written to files in the build's output directory. A release
/// installs these beside the program.
const CODE_BESIDE: &str = "BELLJAR_CODE_BESIDE";

/// With [`CODE_BESIDE`], machine code of at least this many bytes is written to a file.
const BESIDE_FROM: usize = 2 << 20;

/// Machine code of at least this many bytes is embedded uncompressed, because unpacking would take most of
/// the time of a first call. Smaller code is packed, at half the size.
const IN_PLACE_FROM: usize = 8 << 20;

/// The file ending of a component that stays compressed, because it is large and seldom used. It is compiled
/// at its first use, and a release installs its machine code beside the program.
const COMPRESSED: &str = ".wasm.zst";

/// Writes the source file `embedded.rs` with the tables of all embedded files.
fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    let root = root.canonicalize()?;
    let mut code = String::new();
    write_tree_table(&mut code, "AGENTS", &root.join("agents"), &[])?;
    write_tree_table(&mut code, "SDK", &root.join("guest-sdk"), &["target", "examples", "tests"])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    stock_tools(&mut code, &root.join("tools"), &out)?;
    fs::write(out.join("embedded.rs"), code)
}

/// Writes a table of `(path, content)` pairs, sorted by path.
fn write_tree_table(
    code: &mut String,
    name: &str,
    from: &Path,
    without: &[&str],
) -> io::Result<()> {
    let mut files = Vec::new();
    collect_files(from, without, &mut files)?;
    files.sort();
    put_line(code, format_args!("pub(crate) static {name}: &[(&str, &[u8])] = &["));
    for file in files {
        let relative =
            file.strip_prefix(from).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        put_line(code, format_args!("    ({relative:?}, include_bytes!({file:?})),"));
    }
    put_line(code, format_args!("];"));
    Ok(())
}

/// Collects the files below a directory, without the names in `without`, and tells cargo to watch them.
fn collect_files(from: &Path, without: &[&str], files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo:rerun-if-changed={}", from.display());
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| without.contains(&name)) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect_files(&entry.path(), without, files)?;
        } else {
            println!("cargo:rerun-if-changed={}", entry.path().display());
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Writes the table of stock tools: a row for each component in `tools/prebuilt`, with the manifest from its
/// source directory.
fn stock_tools(code: &mut String, tools: &Path, out: &Path) -> io::Result<()> {
    println!("cargo:rerun-if-env-changed={ANY_PROCESSOR}");
    println!("cargo:rerun-if-env-changed={CODE_BESIDE}");
    let prebuilt = tools.join("prebuilt");
    println!("cargo:rerun-if-changed={}", prebuilt.display());
    let is_component = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".wasm") || name.ends_with(COMPRESSED)
    };
    let mut components: Vec<PathBuf> = fs::read_dir(&prebuilt)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_component)
        .collect();
    components.sort();
    let mut in_place = String::new();
    put_line(code, format_args!("pub(crate) static STOCK_TOOLS: &[StockTool] = &["));
    for wasm in components {
        let file = wasm.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = file.split('.').next().unwrap_or_default().to_owned();
        let manifest = tools.join(&name).join("tool.toml");
        println!("cargo:rerun-if-changed={}", wasm.display());
        println!("cargo:rerun-if-changed={}", manifest.display());
        if file.ends_with(COMPRESSED) {
            let row = write_compressed_row(&mut in_place, &name, &wasm, &manifest, out)?;
            put_line(code, format_args!("    {row},"));
            continue;
        }
        let machine_code = out.join(format!("{name}.code"));
        let bytes = fs::read(&wasm)?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let made = compile_component(&bytes).map_err(io::Error::other)?;
        let packed = out.join(format!("{name}.packed"));
        fs::write(&packed, deflate_component(&bytes)?)?;
        let in_place_size = made.len() >= IN_PLACE_FROM;
        let form = if made.len() >= BESIDE_FROM && env::var_os(CODE_BESIDE).is_some() {
            fs::write(out.join(file_name(&name, &made)), &made)?;
            let (file, name) = (file_name(&name, &made), name.to_uppercase());
            let bytes = made.len();
            put_line(
                &mut in_place,
                format_args!("static {name}: beside::File = beside::File::new({file:?}, {bytes});"),
            );
            format!("CodeLocation::Beside(&{name})")
        } else if in_place_size {
            let name = name.to_uppercase();
            put_line(
                &mut in_place,
                format_args!(
                    "static {name}: &OnAPage<[u8; {}]> = &OnAPage(*include_bytes!({machine_code:?}));",
                    made.len()
                ),
            );
            fs::write(&machine_code, made)?;
            format!("CodeLocation::Here(StockCode::InPlace(&{name}.0))")
        } else {
            fs::write(&machine_code, belljar_engine::pack_code(&made))?;
            format!("CodeLocation::Here(StockCode::Packed(include_bytes!({machine_code:?})))")
        };
        put_line(
            code,
            format_args!(
                "    StockTool {{ name: {name:?}, wasm: PackedComponent::Deflated(include_bytes!({packed:?})), digest: {digest:?}, code: {form}, manifest: include_str!({manifest:?}) }},"
            ),
        );
    }
    put_line(code, format_args!("];"));
    code.push_str(&in_place);
    let described = prebuilt.join("described.json");
    println!("cargo:rerun-if-changed={}", described.display());
    put_line(
        code,
        format_args!("pub(crate) static DESCRIBED: &str = include_str!({described:?});"),
    );
    let manifest = prebuilt.join("manifest.toml");
    println!("cargo:rerun-if-changed={}", manifest.display());
    put_line(
        code,
        format_args!(
            "#[cfg(test)]\npub(crate) static PREBUILT: &str = include_str!({manifest:?});"
        ),
    );
    Ok(())
}

/// The row of a compressed component. The digest is the manifest's, which `cargo xtask rebuild tools --check` and a
/// test compare with the file.
fn write_compressed_row(
    statics: &mut String,
    name: &str,
    file: &Path,
    manifest: &Path,
    out: &Path,
) -> io::Result<String> {
    let prebuilt = file.with_file_name("manifest.toml");
    let digest = stated_digest(&fs::read_to_string(prebuilt)?, name)
        .ok_or_else(|| io::Error::other(format!("the manifest has no digest of `{name}`")))?;
    let wasm = if env::var_os(CODE_BESIDE).is_some() {
        let bytes = fs::read(file)?;
        let beside = format!("{}.zst", file_name(name, &bytes));
        fs::write(out.join(&beside), &bytes)?;
        let (constant, len) = (name.to_uppercase(), bytes.len());
        put_line(
            statics,
            format_args!("static {constant}: beside::File = beside::File::new({beside:?}, {len});"),
        );
        format!("PackedComponent::Beside(&{constant})")
    } else {
        format!("PackedComponent::Compressed(include_bytes!({file:?}))")
    };
    Ok(format!(
        "StockTool {{ name: {name:?}, wasm: {wasm}, digest: {digest:?}, code: CodeLocation::AtFirstUse, manifest: include_str!({manifest:?}) }}"
    ))
}

/// The digest that a manifest states for a component.
fn stated_digest(manifest: &str, name: &str) -> Option<[u8; 32]> {
    let section = manifest.split_once(&format!("[{name}]\n"))?.1;
    let line = section.lines().find_map(|line| line.strip_prefix("digest = \""))?;
    let digits = line.strip_suffix('"').filter(|digits| digits.len() == 64)?;
    let mut digest = [0; 32];
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// Compresses a component as small as possible. It is unpacked only for inspection, or if its machine code
/// does not load; 30 ms do not matter then.
fn deflate_component(wasm: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(wasm)?;
    encoder.finish()
}

/// A file name for this machine code, unique by its content.
fn file_name(tool: &str, code: &[u8]) -> String {
    let digest = Sha256::digest(code);
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{tool}-{digest}.code")
}

/// Compiles a component to machine code.
fn compile_component(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let target = env::var("TARGET").unwrap_or_default();
    let own = env::var("HOST").is_ok_and(|host| host == target);
    let code = if own && env::var_os(ANY_PROCESSOR).is_none() {
        belljar_engine::compile_component(wasm)
    } else {
        belljar_engine::compile_for(&target, wasm)
    };
    code.map_err(|error| format!("{error:#}"))
}

fn put_line(code: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(code, "{line}");
}
