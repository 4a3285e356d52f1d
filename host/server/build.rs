//! Embeds the page, `web/dist`: each file unchanged, and packed if smaller.
//!
//! A build script rather than a macro, because cargo then sees every file: a changed or a new one
//! rebuilds the program.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// The attribute text in the page's source `index.html` that the build replaces by the page's digest.
const UNBUILT: &str = r#"name="belljar-page" content="development""#;

/// The HTML file that every view of the page begins with; the build stamps the digest into this file.
const SHELL: &str = "index.html";

/// Hex digits of the digest: enough to tell one build from another.
const DIGITS: usize = 16;

/// Media types by file ending. The build fails for a page file with another ending.
const TYPES: &[(&str, &str)] = &[
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("woff2", "font/woff2"),
];

/// Reads the page's files, computes one digest over all of them, and writes `page.rs` with the
/// constants `DIGEST` and `FILES`, which the crate includes.
fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let dist = root.join("web/dist");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    list_page_files(&dist, &dist, &mut files)?;
    files.sort();
    let mut sum = Sha256::new();
    for (name, bytes) in &files {
        for part in [name.as_bytes(), bytes.as_slice()] {
            sum.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            sum.update(part);
        }
    }
    let digest: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let digest = digest.get(..DIGITS).unwrap_or_default();
    let mut code = String::new();
    write_line(&mut code, format_args!("pub(crate) const DIGEST: &str = {digest:?};"));
    write_line(&mut code, format_args!("pub(crate) static FILES: &[File] = &["));
    for (number, (name, bytes)) in files.into_iter().enumerate() {
        let bytes = if name == SHELL { stamp_digest(bytes, digest)? } else { bytes };
        embed_file(&mut code, &out.join(format!("page{number}")), &name, &bytes)?;
    }
    write_line(&mut code, format_args!("];"));
    fs::write(out.join("page.rs"), code)
}

/// Collects the files below `dir` with their contents, by path relative to `root`. A missing directory
/// has no files: the page is not built.
fn list_page_files(root: &Path, dir: &Path, files: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            list_page_files(root, &path, files)?;
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
            files.push((name.replace('\\', "/"), fs::read(&path)?));
        }
    }
    Ok(())
}

/// Returns the bytes of `index.html` with the page's digest in place of [`UNBUILT`].
fn stamp_digest(bytes: Vec<u8>, digest: &str) -> io::Result<Vec<u8>> {
    let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("`{SHELL}` {why}"));
    let text = String::from_utf8(bytes).map_err(|_| bad("is no text"))?;
    if text.matches(UNBUILT).count() != 1 {
        return Err(bad(&format!("does not have `<meta {UNBUILT}>` once")));
    }
    let stamp = format!(r#"name="belljar-page" content="{digest}""#);
    Ok(text.replace(UNBUILT, &stamp).into_bytes())
}

/// Writes a file of the page plain and, if that is smaller, packed by gzip, and adds its entry to the
/// code of `FILES`.
fn embed_file(code: &mut String, at: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let Some((_, media_type)) = TYPES.iter().find(|(known, _)| *known == end) else {
        let why = format!("`{name}` of the page has no media type");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    };
    let (plain, packed) = (at.with_extension("bin"), at.with_extension("gz"));
    fs::write(&plain, bytes)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    let small = encoder.finish()?;
    let packed_code = if small.len() < bytes.len() {
        fs::write(&packed, small)?;
        format!("Some(include_bytes!({packed:?}))")
    } else {
        "None".to_owned()
    };
    write_line(
        code,
        format_args!(
            "    File {{ name: {name:?}, media_type: {media_type:?}, bytes: include_bytes!({plain:?}), \
             packed: {packed_code} }},"
        ),
    );
    Ok(())
}

/// Adds a line to generated code. The write cannot fail, because a `String` grows as needed.
fn write_line(code: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(code, "{line}");
}
