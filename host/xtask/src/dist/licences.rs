//! Writes THIRD-PARTY.txt: the notices that the licences of the code in the binary require.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::crates::{CrateGraph, CratePackage};

/// How the names of files with licences and notices begin, in lower case.
const NAMES: &[&str] = &["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// The MIT licence text, for crates that name the licence but contain no licence file. The names of the
/// authors are added before the text.
const MIT: &str = include_str!("mit.txt");

/// The numbers of the texts of a crate.
type Numbers = Vec<usize>;

/// The content of THIRD-PARTY.txt: a list of the crates with their licences, then each distinct text once.
pub(super) fn licence_text(crates: &CrateGraph, root: &Path) -> Result<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut list = String::new();
    for package in crates.foreign_packages() {
        let mut numbers = Numbers::new();
        for text in texts_of(package, root)? {
            // Texts that differ only in line breaks are the same text.
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let next = texts.len() + 1;
            let number = *known.entry(words).or_insert(next);
            if number == next {
                texts.push(text);
            }
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let numbers = numbers.iter().map(|number| format!("[{number}]")).collect::<String>();
        let CratePackage { name, version, repository, .. } = package;
        let from = repository.as_deref().unwrap_or("no repository stated");
        writeln!(
            list,
            "{name} {version}\n    {}  {numbers}\n    {from}",
            package.licence_expression()?
        )?;
    }
    let mut page = format!(
        "What is compiled into belljar, with the licence of each and, by number, the texts that \
         it brings.\n\nThe Rust standard library is under MIT OR Apache-2.0. SQLite, in \
         libsqlite3-sys, is in the\npublic domain. wasi-libc, in the stock tools, is under \
         Apache-2.0 WITH LLVM-exception OR\nApache-2.0 OR MIT.\n\n{list}"
    );
    for (number, text) in (1..).zip(&texts) {
        write!(page, "\n{}\n[{number}]\n\n{}\n", "=".repeat(80), text.trim_end())?;
    }
    Ok(page)
}

/// The licence texts in a crate; for a crate without any, the text of the licence that the crate names.
fn texts_of(package: &CratePackage, root: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for file in licence_files(package)? {
        let bytes =
            fs::read(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
        texts.push(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
    }
    if !texts.is_empty() {
        return Ok(texts);
    }
    let licence = package.licence_expression()?;
    if licence.split([' ', '(', ')']).any(|word| word == "MIT") {
        let authors = package.authors.join(", ");
        let authors =
            if authors.is_empty() { format!("the authors of {}", package.name) } else { authors };
        return Ok(vec![format!("Copyright (c) {authors}\n\n{MIT}")]);
    }
    if licence.contains("Apache-2.0") {
        return Ok(vec![fs::read_to_string(root.join("LICENSE"))?]);
    }
    bail!("{} is under `{licence}` and brings no text of it", package.name)
}

fn licence_files(package: &CratePackage) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let directory = package.directory();
    for entry in fs::read_dir(directory).context("failed to read the sources of a crate")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            files.push(path);
        }
    }
    files.extend(package.license_file.iter().map(|file| directory.join(file)));
    files.sort();
    files.dedup();
    Ok(files)
}
