//! `cargo xtask rebuild page`: builds the web page from `host/server/web` into `host/server/web/dist`; and
//! `cargo xtask test page`: tests the page in a browser.
//!
//! The built files are committed, so compiling belljar does not need Node. `dist.toml` beside `dist` holds a
//! digest of the sources and of the built files, and `cargo xtask check` compares both with the tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use walkdir::WalkDir;

use crate::build_binary;
use crate::tools::encode_hex;

/// The directory of the page's sources.
const WEB: &str = "host/server/web";

const TESTS: &str = "tests/page";

/// The file with the digests of the last build, beside `dist`.
const RECORD: &str = "dist.toml";
const HEADER: &str = "# Written by `cargo xtask rebuild page`.\n\n";

/// The files and directories the page is built from. `scripts` only helps the page's authors.
const SOURCES: &[&str] = &[
    "index.html",
    "openapi.json",
    "package-lock.json",
    "package.json",
    "public",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];

/// The content of `dist.toml`: the digests of the last build.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageRecord {
    /// SHA-256 of the sources, in hexadecimal.
    sources: String,
    /// SHA-256 of the files of `dist`, in hexadecimal.
    dist: String,
}

#[derive(clap::Args)]
pub(crate) struct WebArgs {
    /// Build nothing: fail when the page does not match its sources
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(root: &Path, arguments: &WebArgs) -> Result<()> {
    if arguments.check {
        return check_page(root);
    }
    let web = root.join(WEB);
    run_npm(&web, &["ci", "--no-audit", "--no-fund"])?;
    // The types of the API are generated first, so that a page that uses a missing part of the API does not
    // build.
    run_npm(&web, &["run", "schema", "--", "openapi.json"])?;
    run_npm(&web, &["run", "build"])?;
    let text = format!("{HEADER}{}", toml::to_string(&PageRecord::for_tree(root)?)?);
    let path = web.join(RECORD);
    std::fs::write(&path, text).with_context(|| format!("failed to write `{}`", path.display()))
}

/// Checks that the committed page matches its sources.
pub(crate) fn check_page(root: &Path) -> Result<()> {
    let path = root.join(WEB).join(RECORD);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    let kept: PageRecord =
        toml::from_str(&text).with_context(|| format!("failed to parse `{}`", path.display()))?;
    let now = PageRecord::for_tree(root)?;
    if kept.sources != now.sources {
        bail!(
            "the page in `{WEB}/dist` is not built from its sources; run `cargo xtask rebuild page`"
        );
    }
    ensure!(
        kept.dist == now.dist,
        "files in `{WEB}/dist` are not those that were built; run `cargo xtask rebuild page`"
    );
    Ok(())
}

/// Runs the tests of the page in a browser, with the belljar of the tree as the server.
pub(crate) fn test_page(root: &Path) -> Result<()> {
    let tests = root.join(TESTS);
    let belljar = build_binary(root)?;
    if !tests.join("node_modules").is_dir() {
        run_npm(&tests, &["ci", "--no-audit", "--no-fund"])?;
    }
    let status = Command::new("npx")
        .args(["playwright", "test"])
        .current_dir(&tests)
        .env("BELLJAR_BIN", &belljar)
        .status()
        .context("failed to start npx; install Node 20 or newer")?;
    ensure!(status.success(), "the page does not do what its tests say");
    Ok(())
}

fn run_npm(directory: &Path, arguments: &[&str]) -> Result<()> {
    let status = Command::new("npm")
        .args(arguments)
        .current_dir(directory)
        .status()
        .context("failed to start npm; install Node 20 or newer")?;
    ensure!(status.success(), "`npm {}` failed in `{}`", arguments.join(" "), directory.display());
    Ok(())
}

impl PageRecord {
    fn for_tree(root: &Path) -> Result<Self> {
        let web = root.join(WEB);
        Ok(Self { sources: digest_files(&web, SOURCES)?, dist: digest_files(&web, &["dist"])? })
    }
}

/// SHA-256 of files and their names, in hexadecimal. In text files, line endings do not count, because a git
/// checkout may change them.
fn digest_files(web: &Path, places: &[&str]) -> Result<String> {
    let mut sum = Sha256::new();
    let mut add = |part: &[u8]| {
        sum.update((part.len() as u64).to_le_bytes());
        sum.update(part);
    };
    for place in places {
        let start = web.join(place);
        if !start.exists() {
            continue;
        }
        for entry in WalkDir::new(&start).sort_by_file_name() {
            let entry = entry.with_context(|| format!("failed to list `{place}`"))?;
            if !entry.file_type().is_file() {
                continue;
            }
            let name = entry.path().strip_prefix(web)?.to_string_lossy().replace('\\', "/");
            let bytes = std::fs::read(entry.path())
                .with_context(|| format!("failed to read `{name}` of the page"))?;
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => text.replace("\r\n", "\n").into_bytes(),
                Err(error) => error.into_bytes(),
            };
            add(name.as_bytes());
            add(&bytes);
        }
    }
    Ok(encode_hex(&sum.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree() -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let web = root.path().join(WEB);
        for (name, content) in [
            ("index.html", "<p>\n"),
            ("src/b.ts", "b\n"),
            ("src/a/c.ts", "c\n"),
            ("src/icon.png", "\u{0}\n"),
            ("dist/index.html", "<p>\n"),
            ("scripts/help.mjs", "help\n"),
            ("node_modules/x/index.js", "x\n"),
        ] {
            let path = web.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let text = toml::to_string(&PageRecord::for_tree(root.path()).unwrap()).unwrap();
        fs::write(web.join(RECORD), text).unwrap();
        (root, web)
    }

    #[test]
    fn a_page_is_current_until_a_source_or_a_built_file_changes() {
        for (name, content, why) in [
            ("src/b.ts", "other\n", Some("not built from its sources")),
            ("src/new.ts", "b\n", Some("not built from its sources")),
            ("index.html", "<p>x\n", Some("not built from its sources")),
            ("dist/index.html", "<p>x\n", Some("not those that were built")),
            ("dist/more.js", "x\n", Some("not those that were built")),
            ("src/b.ts", "b\r\n", None),
            ("scripts/help.mjs", "other\n", None),
            ("node_modules/x/index.js", "y\n", None),
        ] {
            let (root, web) = tree();
            check_page(root.path()).unwrap();
            fs::write(web.join(name), content).unwrap();
            match (check_page(root.path()), why) {
                (Ok(()), None) => {}
                (Err(error), Some(why)) => assert!(error.to_string().contains(why), "{error}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
        }
    }
}
