//! `cargo xtask pack release`: a release for people without a Rust toolchain.
//!
//! A release is an archive and a Debian package with the same files: the stripped binary, the manual,
//! completions, the licences of all code in the binary, and an SBOM. The paths begin with `bin` or `share`,
//! so unpacking the archive into `/usr/local` installs the release. Two runs for the same commit make the
//! same bytes: entries are sorted, owned by root, and dated by `SOURCE_DATE_EPOCH` or the commit.

mod archive;
mod crates;
mod elf;
mod licences;
mod sbom;
mod test;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use self::archive::{ReleaseFile, gzip_bytes};
use self::crates::CrateGraph;
use self::elf::LinkedLibraries;
pub(crate) use self::test::run as test;

/// The most bytes of the stripped binary of a release. A larger binary (a second TLS library, for example)
/// has to be somebody's decision.
const MAX_BINARY: usize = 60 << 20;

/// Options of `pack release` and `test release`.
#[derive(Debug, clap::Args)]
pub(crate) struct DistArgs {
    /// Pack the debug build, stripped: for trying the packing, not for people
    #[arg(long)]
    debug: bool,
}

/// The files of a release, before they are packed.
pub(super) struct ReleaseParts {
    version: String,
    /// The date of every entry, in seconds since 1970.
    date: u64,
    /// The files, with paths below a prefix, sorted by path.
    entries: Vec<ReleaseFile>,
    linked: LinkedLibraries,
    debug: bool,
}

/// `cargo xtask pack release`.
pub(crate) fn run(root: &Path, arguments: &DistArgs) -> Result<()> {
    let to = root.join("target/dist");
    let release = ReleaseParts::gather_files(root, arguments.debug)?;
    for file in release.write_files(&to)? {
        let bytes = fs::metadata(&file)?.len();
        crate::print_line(&format!("{} ({})", file.display(), format_mebibytes(bytes)));
    }
    Ok(())
}

impl ReleaseParts {
    /// Builds the binary, and collects the other files of the release.
    fn gather_files(root: &Path, debug: bool) -> Result<Self> {
        ensure!(cfg!(target_os = "linux"), "releases are packed on Linux only");
        let BuiltBinary { binary: built, beside } = build_binary(root, debug)?;
        let scratch = tempfile::tempdir().context("failed to make a temporary directory")?;
        let binary = strip_binary(&built, &scratch.path().join("belljar"))?;
        ensure!(
            debug || binary.len() <= MAX_BINARY,
            "the stripped binary has {}; a release may have {}",
            format_mebibytes(binary.len() as u64),
            format_mebibytes(MAX_BINARY as u64)
        );
        let linked = LinkedLibraries::read_binary(&scratch.path().join("belljar"))?;
        crate::print_line(&format!("binary: {}; {linked}", format_mebibytes(binary.len() as u64)));
        let date = release_date(root)?;
        let crates = CrateGraph::read_workspace(root)?;
        let mut entries = vec![
            ReleaseFile::program_file("bin/belljar", binary),
            ReleaseFile::data_file(
                "share/doc/belljar/README.md",
                fs::read(root.join("README.md"))?,
            ),
            ReleaseFile::data_file("share/doc/belljar/LICENSE", fs::read(root.join("LICENSE"))?),
            ReleaseFile::data_file(
                "share/doc/belljar/THIRD-PARTY.txt",
                licences::licence_text(&crates, root)?,
            ),
            ReleaseFile::data_file(
                "share/doc/belljar/sbom.cdx.json",
                sbom::sbom_json(&crates, date)?,
            ),
        ];
        if let Some(directory) = beside {
            entries.extend(code_files(&directory, &built)?);
        }
        entries.extend(completion_files(&built)?);
        entries.extend(manual_pages(&built, &scratch.path().join("man"))?);
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { version: crates.program_version().to_owned(), date, entries, linked, debug })
    }

    /// Writes the archive, the package and their checksums. Returns the paths of the files.
    fn write_files(&self, to: &Path) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(to).with_context(|| format!("failed to make `{}`", to.display()))?;
        let name = self.archive_name();
        let mut files = vec![
            (format!("{name}.tar.gz"), self.make_archive(&name)?),
            (
                format!("belljar_{}_{}.deb", self.version, debian_arch()?),
                self.make_debian_package()?,
            ),
        ];
        let sums = files.iter().map(|(name, bytes)| checksum_line(name, bytes)).collect::<String>();
        files.push(("SHA256SUMS".to_owned(), sums.into_bytes()));
        let write = |(name, bytes): (String, Vec<u8>)| {
            let path = to.join(name);
            fs::write(&path, bytes)
                .with_context(|| format!("failed to write `{}`", path.display()))?;
            Ok(path)
        };
        files.into_iter().map(write).collect()
    }

    /// The file name of the archive without the ending.
    fn archive_name(&self) -> String {
        format!("belljar-{}-{}-linux", self.version, std::env::consts::ARCH)
    }

    fn make_archive(&self, name: &str) -> Result<Vec<u8>> {
        let sums = self.entries.iter().map(|entry| checksum_line(&entry.path, &entry.bytes));
        let sums = ReleaseFile::data_file("share/doc/belljar/SHA256SUMS", sums.collect::<String>());
        let mut entries: Vec<&ReleaseFile> = self.entries.iter().chain([&sums]).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let tar = archive::tar_archive(&format!("{name}/"), &entries, self.date)?;
        gzip_bytes(&tar, self.debug)
    }

    /// The Debian package. Around two archives, the format needs only a few hundred bytes, which are written
    /// here: `dpkg-deb` would be another required program, and would date members by the clock.
    fn make_debian_package(&self) -> Result<Vec<u8>> {
        let installed: u64 = self.entries.iter().map(|entry| entry.bytes.len() as u64).sum();
        let control = format!(
            "Package: belljar\nVersion: {}\nSection: utils\nPriority: optional\nArchitecture: {}\n\
             Depends: {}\nRecommends: ca-certificates, git\nInstalled-Size: {}\n\
             Maintainer: the authors of belljar <belljar@localhost>\n\
             Description: Run AI subagents that nobody has to trust\n \
             Every tool call is a WebAssembly component with only the files and hosts that\n \
             were granted, metered by fuel, behind an OS sandbox of the whole process.\n",
            self.version,
            debian_arch()?,
            self.linked.debian_packages()?,
            installed.div_ceil(1024),
        );
        let control = ReleaseFile::data_file("control", control);
        let copyright =
            ReleaseFile::data_file("share/doc/belljar/copyright", self.copyright_text());
        // In a Debian package, the file `copyright` holds the licences; LICENSE would be a second copy.
        let own = self.entries.iter().filter(|entry| !entry.path.ends_with("/LICENSE"));
        let own = own.cloned().chain([copyright]).map(ReleaseFile::for_debian);
        let mut entries = own.collect::<Vec<_>>();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let control = archive::tar_archive("./", &[&control], self.date)?;
        let data = archive::tar_archive("./usr/", &entries.iter().collect::<Vec<_>>(), self.date)?;
        let members = [
            ("debian-binary", b"2.0\n".to_vec()),
            ("control.tar.gz", gzip_bytes(&control, self.debug)?),
            ("data.tar.gz", gzip_bytes(&data, self.debug)?),
        ];
        archive::ar_archive(&members, self.date)
    }

    fn copyright_text(&self) -> Vec<u8> {
        let of = |name: &str| {
            let found = self.entries.iter().find(|entry| entry.path.ends_with(name));
            found.map(|entry| entry.bytes.clone()).unwrap_or_default()
        };
        let head = b"belljar is under the Apache License, version 2.0. The licences of what is \
            compiled into it\nare in THIRD-PARTY.txt beside this file.\n\n"
            .to_vec();
        [head, of("doc/belljar/LICENSE")].concat()
    }
}

/// The results of the build.
struct BuiltBinary {
    binary: PathBuf,
    /// The directory where the build script of the binary has left machine code installed beside the binary.
    beside: Option<PathBuf>,
}

/// Builds the binary. The binary of a release contains no directory names of the build machine.
fn build_binary(root: &Path, debug: bool) -> Result<BuiltBinary> {
    if debug {
        return Ok(BuiltBinary { binary: crate::build_binary(root)?, beside: None });
    }
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let cargo_home = cargo_home.context("there is neither `CARGO_HOME` nor a home directory")?;
    let flags = format!(
        "--remap-path-prefix={}=/cargo --remap-path-prefix={}=/belljar",
        cargo_home.display(),
        root.display()
    );
    let built = crate::cargo_command()
        .args(["build", "--profile", "shipped", "--locked", "--bin", "belljar"])
        .args(["--message-format", "json-render-diagnostics"])
        .env("RUSTFLAGS", flags)
        // The machine code of the stock tools has to run on every processor too, not only on the local
        // machine's.
        .env("BELLJAR_ANY_PROCESSOR", "1")
        .env("BELLJAR_CODE_BESIDE", "1")
        .env("CARGO_TARGET_DIR", root.join("target"))
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start cargo")?;
    ensure!(built.status.success(), "belljar does not build");
    let said = String::from_utf8(built.stdout).context("cargo's messages are no text")?;
    let beside = left_by("belljar-cli", &said).context("cargo named no build script of belljar")?;
    Ok(BuiltBinary { binary: root.join("target/shipped/belljar"), beside: Some(beside) })
}

/// The output directory of a package's build script, read from cargo's messages.
fn left_by(package: &str, messages: &str) -> Option<PathBuf> {
    let of = |message: Value| {
        let id = message["package_id"].as_str()?;
        let own = id.contains(&format!("#{package}@"));
        let is = message["reason"] == "build-script-executed" && own;
        is.then(|| message["out_dir"].as_str().map(PathBuf::from))?
    };
    messages.lines().filter_map(|line| serde_json::from_str(line).ok()).find_map(of)
}

/// The files that the binary refers to, which are installed beside the binary: machine code, and a component
/// that is compiled at the first use.
fn code_files(directory: &Path, binary: &Path) -> Result<Vec<ReleaseFile>> {
    let binary = fs::read(binary)?;
    let mut entries = Vec::new();
    for file in fs::read_dir(directory)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        let is_code =
            name.contains('-') && (name.ends_with(".code") || name.ends_with(".code.zst"));
        if is_code && binary.windows(name.len()).any(|part| part == name.as_bytes()) {
            entries.push(ReleaseFile::data_file(
                &format!("lib/belljar/{name}"),
                fs::read(file.path())?,
            ));
        }
    }
    ensure!(!entries.is_empty(), "the binary names no file in `{}`", directory.display());
    Ok(entries)
}

/// The binary without symbols. The program `strip` is installed together with the C compiler.
fn strip_binary(binary: &Path, to: &Path) -> Result<Vec<u8>> {
    let strip = Command::new("strip").args(["--strip-all", "-o"]).arg(to).arg(binary).output();
    let strip = strip.context("failed to start `strip`, which is in the package binutils")?;
    ensure!(strip.status.success(), "strip: {}", String::from_utf8_lossy(&strip.stderr));
    fs::read(to).context("failed to read the stripped binary")
}

/// The date of the release, in seconds since 1970: `SOURCE_DATE_EPOCH`, or the time of the commit.
fn release_date(root: &Path) -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let git = ["log", "-1", "--format=%ct"];
            let commit = Command::new("git").args(git).current_dir(root).output();
            let commit = commit.context("failed to start git; set `SOURCE_DATE_EPOCH`")?;
            String::from_utf8_lossy(&commit.stdout).into_owned()
        }
    };
    text.trim().parse().context("no date: set `SOURCE_DATE_EPOCH` to seconds since 1970")
}

fn completion_files(binary: &Path) -> Result<Vec<ReleaseFile>> {
    const SHELLS: [(&str, &str); 3] = [
        ("bash", "share/bash-completion/completions/belljar"),
        ("fish", "share/fish/vendor_completions.d/belljar.fish"),
        ("zsh", "share/zsh/site-functions/_belljar"),
    ];
    let of = |(shell, path): (&str, &str)| {
        let done = Command::new(binary).args(["completions", shell]).output()?;
        ensure!(done.status.success(), "`belljar completions {shell}` failed");
        Ok(ReleaseFile::data_file(path, done.stdout))
    };
    SHELLS.into_iter().map(of).collect()
}

/// The pages of the manual, compressed as `man` expects on every system.
fn manual_pages(binary: &Path, scratch: &Path) -> Result<Vec<ReleaseFile>> {
    let done = Command::new(binary).arg("man").arg(scratch).output()?;
    ensure!(done.status.success(), "belljar man: {}", String::from_utf8_lossy(&done.stderr));
    let mut pages = Vec::new();
    for file in fs::read_dir(scratch)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        let page = gzip_bytes(&fs::read(file.path())?, false)?;
        pages.push(ReleaseFile::data_file(&format!("share/man/man1/{name}.gz"), page));
    }
    Ok(pages)
}

fn debian_arch() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("Debian's name of `{other}` is not known here"),
    }
}

/// A line of SHA256SUMS, in the format of `sha256sum --check`.
fn checksum_line(name: &str, bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digest}  {name}\n")
}

fn format_mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}
