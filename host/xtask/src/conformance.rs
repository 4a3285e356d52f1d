//! `cargo xtask rebuild conformance`: builds one conformance component for each language from
//! `tests/conformance/LANGUAGE`, like `belljar tools build` builds a tool.
//!
//! The components are committed, compressed, under `tests/conformance/components`. A manifest beside them
//! holds a digest of the sources of each component.
#![allow(clippy::print_stderr, reason = "progress of a developer command")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use belljar_guest_build::{Language, sdk_path};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest as _, Sha256};
use walkdir::WalkDir;

use crate::tools::{ComponentManifest, ManifestEntry, encode_hex};

/// The directory of the sources, with one folder for each language.
const SOURCES: &str = "tests/conformance";
/// The directory of the committed components.
const COMPONENTS: &str = "tests/conformance/components";

/// The directory for the components that `test guests --all` builds, apart from the committed ones.
pub(crate) const REBUILT: &str = "target/rebuilt-conformance";

/// The names of folders that contain no sources.
const NO_SOURCES: &[&str] = &["target", "template", "node_modules", "__pycache__", "components"];

#[derive(clap::Args)]
pub(crate) struct ConformanceArgs {
    /// Which languages; all whose toolchains are there when none is named
    #[arg(value_name = "LANGUAGE")]
    languages: Vec<String>,
}

pub(crate) fn run(root: &Path, arguments: &ConformanceArgs) -> Result<()> {
    let mut chosen = Vec::new();
    for word in &arguments.languages {
        match Language::from_word(word) {
            Some(language) => chosen.push(language),
            None => bail!("there is no language `{word}`"),
        }
    }
    let all = chosen.is_empty();
    let chosen = if all { list_languages(root) } else { chosen };
    build_components(root, &chosen, all, &root.join(COMPONENTS)).map(drop)
}

/// Builds the component of each language with an installed toolchain into [`REBUILT`], and copies the
/// committed components of the other languages. Returns the languages that were built.
pub(crate) fn rebuild_components(root: &Path) -> Result<Vec<&'static str>> {
    let out = root.join(REBUILT);
    let committed = root.join(COMPONENTS);
    fs::create_dir_all(&out).with_context(|| format!("failed to create `{}`", out.display()))?;
    for language in list_languages(root) {
        let name = file_name(language);
        fs::copy(committed.join(&name), out.join(&name))
            .with_context(|| format!("failed to copy `{name}`"))?;
    }
    build_components(root, &list_languages(root), true, &out)
}

/// The faults of the committed components, for example a component older than its sources.
pub(crate) fn find_faults(root: &Path) -> Result<Vec<String>> {
    let directory = root.join(COMPONENTS);
    let manifest = ComponentManifest::read(&directory)?;
    let mut faults = Vec::new();
    for language in list_languages(root) {
        let word = language.word();
        let Some(entry) = manifest.get(word) else {
            faults.push(format!("the conformance component in {word} has never been built"));
            continue;
        };
        if digest_of_sources(root, language)? != entry.sources {
            faults.push(format!("the conformance component in {word} is older than its sources"));
        }
        let path = directory.join(file_name(language));
        match fs::read(&path) {
            Ok(bytes) if encode_hex(&Sha256::digest(&bytes)) == entry.digest => {}
            Ok(_) => faults.push(format!("`{}` is another file", path.display())),
            Err(error) => faults.push(format!("`{}`: {error}", path.display())),
        }
    }
    if !faults.is_empty() {
        faults.push(
            "hint: run `cargo xtask rebuild conformance` and commit what it writes".to_owned(),
        );
    }
    Ok(faults)
}

/// The languages that have a conformance component.
fn list_languages(root: &Path) -> Vec<Language> {
    let has = |language: &Language| root.join(SOURCES).join(language.word()).is_dir();
    Language::ALL.iter().copied().filter(has).collect()
}

fn build_components(
    root: &Path,
    chosen: &[Language],
    pass: bool,
    out: &Path,
) -> Result<Vec<&'static str>> {
    let mut manifest = ComponentManifest::read_or_empty(out)?;
    let mut built = Vec::new();
    for language in chosen {
        let word = language.word();
        let toolchain = match language.find_toolchain(None) {
            Ok(found) => found.description,
            Err(error) if pass => {
                eprintln!("{word} is left out: {error}");
                continue;
            }
            Err(error) => return Err(error),
        };
        let component = language.build_project(&lay_out(root, *language)?)?;
        let wasm = fs::read(&component)
            .with_context(|| format!("failed to read `{}`", component.display()))?;
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&wasm)?;
        let packed = encoder.finish()?;
        eprintln!("{word}: {} KiB, {} KiB deflated", wasm.len() >> 10, packed.len() >> 10);
        fs::create_dir_all(out).with_context(|| format!("failed to create `{}`", out.display()))?;
        let path = out.join(file_name(*language));
        fs::write(&path, &packed)
            .with_context(|| format!("failed to write `{}`", path.display()))?;
        let entry = ManifestEntry {
            digest: encode_hex(&Sha256::digest(&packed)),
            sources: digest_of_sources(root, *language)?,
            bytes: wasm.len() as u64,
            toolchain,
        };
        manifest.set_entry(word, entry);
        // Written after each component, so that a failure leaves a manifest that matches the components
        // before.
        manifest.write(out)?;
        built.push(word);
    }
    Ok(built)
}

/// Makes a tool project with the component's sources and the SDK of the language, laid out like a project of
/// `belljar tools new`.
fn lay_out(root: &Path, language: Language) -> Result<PathBuf> {
    let project = root.join("target/conformance").join(language.word());
    for stale in ["sdk", "node_modules"] {
        let stale = project.join(stale);
        if stale.exists() {
            fs::remove_dir_all(&stale)
                .with_context(|| format!("failed to empty `{}`", stale.display()))?;
        }
    }
    for (path, bytes) in project_sources(root, language)? {
        let to = project.join(path);
        to.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&to, bytes))
            .with_context(|| format!("failed to write `{}`", to.display()))?;
    }
    Ok(project)
}

/// The files of a language's project, by path in the project.
fn project_sources(root: &Path, language: Language) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for (path, bytes) in read_source_tree(&root.join(SOURCES).join(language.word()))? {
        files.insert(path, bytes);
    }
    for (path, bytes) in read_source_tree(&root.join("guest-sdk"))? {
        if let Some(path) = sdk_path(language, &path) {
            files.insert(format!("sdk/{path}"), bytes);
        }
    }
    Ok(files)
}

/// The files below a folder, by path in the folder, with `/` between names.
pub(crate) fn read_source_tree(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let is_source = |entry: &walkdir::DirEntry| {
        !NO_SOURCES.iter().any(|name| entry.file_name() == std::ffi::OsStr::new(name))
    };
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(is_source) {
        let entry = entry.with_context(|| format!("failed to list `{}`", folder.display()))?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path().strip_prefix(folder)?.to_string_lossy().replace('\\', "/");
        let bytes = fs::read(entry.path())
            .with_context(|| format!("failed to read `{}`", entry.path().display()))?;
        files.push((path, bytes));
    }
    Ok(files)
}

/// A digest of all sources of a component, without documentation.
fn digest_of_sources(root: &Path, language: Language) -> Result<String> {
    let mut digest = Sha256::new();
    for (path, bytes) in project_sources(root, language)? {
        if path.ends_with(".md") {
            continue;
        }
        digest.update((path.len() as u64).to_le_bytes());
        digest.update(path.as_bytes());
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(&bytes);
    }
    Ok(encode_hex(&digest.finalize()))
}

fn file_name(language: Language) -> String {
    format!("{}.wasm.deflate", language.word())
}
