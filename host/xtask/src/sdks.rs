//! `cargo xtask pack sdks`: packs the guest SDK of each language into `target/sdks`, in the language's
//! package format.
//!
//! The packages are a crate, a wheel, two npm packages, and an archive each for Go, Zig, C and C++. A
//! project made by `belljar tools new` contains the SDK and needs no package; the packages are for sharing
//! an SDK among projects.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use belljar_guest_build::{Language, sdk_path};

use crate::conformance::read_source_tree;
use crate::print_line;

/// The directory of the packages, and the directory of the files that are packed.
const PACKAGES: &str = "target/sdks";
const LAID_OUT: &str = "target/sdks/from";

#[derive(clap::Args)]
pub(crate) struct SdksArgs {
    /// Which languages; all of them when none is named
    #[arg(value_name = "LANGUAGE")]
    languages: Vec<String>,
}

pub(crate) fn run(root: &Path, arguments: &SdksArgs) -> Result<()> {
    let of = |word: &String| {
        Language::from_word(word).with_context(|| format!("there is no language `{word}`"))
    };
    let chosen = arguments.languages.iter().map(of).collect::<Result<Vec<_>>>()?;
    let chosen = if chosen.is_empty() { Language::ALL.to_vec() } else { chosen };
    let version = contract_version(&fs::read_to_string(root.join("guest-sdk/wit/tool.wit"))?)?;
    for language in chosen {
        let folder = lay_out(root, language, &version)?;
        let package = pack_package(root, &folder, language, &version)?;
        let bytes = fs::metadata(&package)?.len();
        print_line(&format!(
            "{}: {} KiB",
            package.strip_prefix(root)?.display(),
            bytes.div_ceil(1024)
        ));
    }
    Ok(())
}

/// The version of the contract in `tool.wit`, which is also the version of the packages.
fn contract_version(contract: &str) -> Result<String> {
    let line = contract.lines().find_map(|line| line.strip_prefix("package belljar:tool@"));
    let version = line.and_then(|rest| rest.strip_suffix(';'));
    version.map(str::to_owned).context("`tool.wit` states no version")
}

/// Writes the files of a package to an empty folder. Returns the folder.
fn lay_out(root: &Path, language: Language, version: &str) -> Result<PathBuf> {
    let folder = root.join(LAID_OUT).join(language.word());
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("failed to empty `{}`", folder.display()))?;
    }
    for (path, bytes) in
        package_files(read_source_tree(&root.join("guest-sdk"))?, language, version)?
    {
        let to = folder.join(path);
        to.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&to, bytes))
            .with_context(|| format!("failed to write `{}`", to.display()))?;
    }
    Ok(folder)
}

/// The files of a package, by path. The crate also contains the contract, and its manifest makes the crate a
/// workspace of its own.
fn package_files(
    sdk: Vec<(String, Vec<u8>)>,
    language: Language,
    version: &str,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for (path, bytes) in sdk {
        let Some(path) = sdk_path(language, &path) else { continue };
        let own = path.strip_prefix(language.word()).and_then(|rest| rest.strip_prefix('/'));
        let (path, bytes) = match (language, own) {
            (Language::Rust, Some("Cargo.toml")) => {
                let text = String::from_utf8(bytes)?;
                // The version is changed only in the package: a change of the manifest in the tree would
                // make every stock tool stale.
                let lines = text.lines().map(|line| match line.starts_with("version = ") {
                    true => format!("version = \"{version}\"\n"),
                    false => format!("{line}\n"),
                });
                let text: String = lines.collect();
                ("Cargo.toml".to_owned(), format!("{text}\n[workspace]\n").into_bytes())
            }
            (Language::Rust, Some(own)) => (
                own.to_owned(),
                String::from_utf8(bytes)?.replace("\"../wit", "\"wit").into_bytes(),
            ),
            (Language::Python | Language::Javascript | Language::AssemblyScript, Some(own)) => {
                (own.to_owned(), bytes)
            }
            _ => (path, bytes),
        };
        files.insert(path, bytes);
    }
    Ok(files)
}

/// Packs the files in `folder` with the language's packaging program. Returns the path of the package in
/// [`PACKAGES`].
fn pack_package(root: &Path, folder: &Path, language: Language, version: &str) -> Result<PathBuf> {
    let out = root.join(PACKAGES);
    let mut command;
    let made = match language {
        Language::Rust => {
            command = Command::new("cargo");
            command.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
            command.arg("--target-dir").arg(folder.join("target"));
            folder.join("target/package")
        }
        Language::Python => {
            command = Command::new("python3");
            command.args([
                "-m",
                "pip",
                "wheel",
                "--quiet",
                "--no-deps",
                "--wheel-dir",
                "dist",
                ".",
            ]);
            folder.join("dist")
        }
        Language::Javascript | Language::AssemblyScript => {
            fs::create_dir_all(folder.join("dist"))?;
            command = Command::new("npm");
            command.args(["pack", "--silent", "--pack-destination", "dist"]);
            folder.join("dist")
        }
        Language::Go | Language::Zig | Language::C | Language::Cpp => {
            let name = format!("belljar-tool-{}-{version}.tar.gz", language.word());
            command = Command::new("tar");
            command.args([
                "--sort=name",
                "--mtime=@0",
                "--owner=0",
                "--group=0",
                "--numeric-owner",
            ]);
            command.args(["--exclude=dist", "-czf"]).arg(Path::new("dist").join(name)).arg(".");
            fs::create_dir_all(folder.join("dist"))?;
            folder.join("dist")
        }
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.current_dir(folder).env_remove("RUSTC_WORKSPACE_WRAPPER").status();
    let status = status.with_context(|| format!("failed to run `{program}`"))?;
    ensure!(status.success(), "`{program}` packs nothing: {status}");
    let files = fs::read_dir(&made)?.collect::<Result<Vec<_>, _>>()?;
    let mut files = files.into_iter().map(|entry| entry.path()).filter(|path| path.is_file());
    let (Some(file), None) = (files.next(), files.next()) else {
        bail!("`{}` does not hold one package", made.display());
    };
    let to = out.join(file.file_name().unwrap_or_default());
    fs::copy(&file, &to).with_context(|| format!("failed to write `{}`", to.display()))?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_reaches_for_nothing_outside_of_itself() {
        let root = crate::find_root().unwrap();
        let files_of_sdk = read_source_tree(&root.join("guest-sdk")).unwrap();
        let files = package_files(files_of_sdk, Language::Rust, "1.2.3").unwrap();
        assert!(
            files.contains_key("wit/tool.wit") && files.contains_key("src/lib.rs"),
            "{files:?}"
        );
        for (path, bytes) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(!text.contains("\"../wit"), "{path}");
        }
        let manifest = std::str::from_utf8(&files["Cargo.toml"]).unwrap();
        assert!(!manifest.contains("workspace = true"), "{manifest}");
        assert!(manifest.contains("\nversion = \"1.2.3\"\n"), "{manifest}");
    }

    #[test]
    fn the_version_is_the_contracts() {
        assert_eq!(contract_version("// A\npackage belljar:tool@1.2.3;\n").unwrap(), "1.2.3");
        assert!(contract_version("package other:tool@1.0.0;").is_err());
    }
}
