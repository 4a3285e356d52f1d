//! `cargo xtask tidy`: checks the house rules, which no compiler checks.

mod blocking;
mod commands;
mod edges;
mod glossary;
mod guide;
mod invariants;
mod public;
mod rings;
mod source;
mod walks;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use walkdir::WalkDir;

/// The names allowed at the top level of the repository, beside dotfiles.
const TOP_LEVEL: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "agents",
    "guest-sdk",
    "host",
    "target",
    "tests",
    "tools",
];

/// A text file of the repository.
pub(crate) struct TreeFile {
    /// The path relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Checks all rules, and prints every breach.
pub(crate) fn run(root: &Path) -> Result<()> {
    let files = read_tree(root)?;
    let mut breaches = top_level(root)?;
    breaches.extend(source::find_breaches(&files));
    breaches.extend(commands::find_breaches(&files));
    breaches.extend(edges::find_breaches(&files));
    breaches.extend(blocking::find_breaches(root, &files));
    breaches.extend(invariants::find_breaches(&files));
    breaches.extend(public::find_breaches(&files));
    breaches.extend(rings::find_breaches(&files));
    breaches.extend(glossary::find_breaches(&files));
    breaches.extend(guide::find_breaches(root, &files));
    breaches.extend(walks::find_breaches(root, &files));
    breaches.extend(crate::prose::find_breaches(&files));
    for breach in &breaches {
        crate::print_line(&format!("tidy: {breach}"));
    }
    if !breaches.is_empty() {
        bail!("{} breaches of house rules", breaches.len());
    }
    Ok(())
}

fn top_level(root: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for entry in fs::read_dir(root).context("failed to list the root")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && !TOP_LEVEL.contains(&name.as_str()) {
            breaches.push(format!("`{name}` does not belong at the top level"));
        }
    }
    Ok(breaches)
}

/// Reads every text file that some rule checks.
pub(crate) fn read_tree(root: &Path) -> Result<Vec<TreeFile>> {
    let passed_over = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        path != root && (name.starts_with('.') || name == "target" || name == "node_modules")
    };
    let walk = WalkDir::new(root).sort_by_file_name().into_iter();
    let mut files = Vec::new();
    for entry in walk.filter_entry(|entry| !passed_over(entry.path())) {
        let entry = entry.context("failed to walk the tree")?;
        let wanted = ["rs", "toml", "md", "wit"];
        let ending = entry.path().extension().unwrap_or_default().to_string_lossy().into_owned();
        // The security pages name tests of the web page too.
        let is_page_test = entry.file_name().to_string_lossy().ends_with(".test.ts");
        if entry.file_type().is_file() && (is_page_test || wanted.contains(&ending.as_str())) {
            files.push(read_file(root, entry.into_path())?);
        }
    }
    Ok(files)
}

fn read_file(root: &Path, path: PathBuf) -> Result<TreeFile> {
    let text = fs::read(&path).with_context(|| format!("failed to read `{}`", path.display()))?;
    let relative = path.strip_prefix(root).unwrap_or(&path);
    let path = relative.to_string_lossy().replace('\\', "/");
    Ok(TreeFile { path, text: String::from_utf8_lossy(&text).into_owned() })
}
