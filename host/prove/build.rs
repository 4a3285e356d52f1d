//! Makes a constant of every component in `prebuilt/`, compressed: `NAME.wasm` becomes the crate-private
//! `NAME` of `src/guests.rs`. The stock tools that attacks call become constants too. The crate denies dead
//! code, so a guest without an attack that uses it fails the build.
//!
//! The components are assembled beforehand from the texts in `guests/`, so that building belljar needs no
//! assembler. A test of `tests/kit` assembles them again and compares.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// The stock tools that attacks call.
const STOCK: [&str; 2] = ["file_read", "run_javascript"];

/// Compresses every component into the build's output directory, and writes `guests.rs` with a constant for
/// each.
fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let (guests, prebuilt) = (here.join("guests"), here.join("prebuilt"));
    for watched in [&guests, &prebuilt] {
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    let mut code = String::new();
    for (name, path) in list_components(&prebuilt)? {
        println!("cargo:rerun-if-changed={}", path.display());
        let source = guests.join(format!("{name}.wat"));
        let about = match fs::read_to_string(&source) {
            Ok(text) => {
                println!("cargo:rerun-if-changed={}", source.display());
                first_comment(&text)
            }
            Err(_) => format!("Built from `guests/{name}`."),
        };
        write_constant(&mut code, &name, &about, &pack_component(&path, &name, &out)?);
    }
    for name in STOCK {
        let path = here.join(format!("../../tools/prebuilt/{name}.wasm"));
        println!("cargo:rerun-if-changed={}", path.display());
        let about = format!("The stock tool `{name}`.");
        write_constant(&mut code, name, &about, &pack_component(&path, name, &out)?);
    }
    fs::write(out.join("guests.rs"), code)
}

/// The components of a folder, each with its file name without the ending, sorted.
fn list_components(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == "wasm") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            files.push((stem, path));
        }
    }
    files.sort();
    Ok(files)
}

/// Writes the compressed component to the output directory; returns the file's path.
fn pack_component(wasm: &Path, name: &str, out: &Path) -> io::Result<PathBuf> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(wasm)?)?;
    let packed = out.join(format!("{name}.deflate"));
    fs::write(&packed, encoder.finish()?)?;
    Ok(packed)
}

/// Adds the constant of one component. It is private to the crate, so an unused one is reported as dead code.
fn write_constant(code: &mut String, name: &str, about: &str, packed: &Path) {
    // The write cannot fail, because a `String` grows as needed.
    let _ = writeln!(
        code,
        "/// {about}\npub(crate) const {}: Guest = Guest {{ name: {name:?}, packed: include_bytes!({packed:?}) }};",
        name.to_uppercase()
    );
}

/// The first comment in a guest's source, which becomes the constant's documentation.
fn first_comment(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix(";;")).map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}
