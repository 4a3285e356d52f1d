//! `cargo xtask pack release`: a release for people without a Rust toolchain.
//!
//! One archive and one Debian package with the same files: the stripped binary, the manual,
//! completions, the licences of everything in the binary, and an SBOM. Both have the layout of a
//! prefix (`bin`, `share`), so that unpacking the archive into `/usr/local` installs it. Two runs
//! over the same commit give the same bytes: entries are sorted, owned by root, and dated by
//! `SOURCE_DATE_EPOCH` or the commit.

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

use self::archive::{Entry, gzip};
use self::crates::Crates;
use self::elf::Linked;
pub(crate) use self::test::run as test;

/// Most bytes of the stripped binary of a release. What grows past it (a second TLS stack, a
/// telemetry suite) should be somebody's decision.
const MAX_BINARY: usize = 60 << 20;

/// Options of `pack release` and `test release`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Pack the debug build, stripped: for trying the packing, not for people
    #[arg(long)]
    debug: bool,
}

/// A release in the making.
pub(super) struct Release {
    version: String,
    /// Seconds since 1970 that every entry is dated with.
    date: u64,
    /// Below a prefix, sorted by path.
    entries: Vec<Entry>,
    linked: Linked,
    debug: bool,
}

/// `cargo xtask pack release`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    let to = root.join("target/dist");
    let release = Release::gather(root, arguments.debug)?;
    for file in release.write(&to)? {
        let bytes = fs::metadata(&file)?.len();
        crate::say(&format!("{} ({})", file.display(), mebibytes(bytes)));
    }
    Ok(())
}

impl Release {
    /// Builds the binary and collects everything that goes with it.
    fn gather(root: &Path, debug: bool) -> Result<Self> {
        ensure!(cfg!(target_os = "linux"), "releases are packed on Linux only");
        let Built { binary: built, beside } = build(root, debug)?;
        let scratch = tempfile::tempdir().context("failed to make a temporary directory")?;
        let binary = stripped(&built, &scratch.path().join("belljar"))?;
        ensure!(
            debug || binary.len() <= MAX_BINARY,
            "the stripped binary has {}; a release may have {}",
            mebibytes(binary.len() as u64),
            mebibytes(MAX_BINARY as u64)
        );
        let linked = Linked::read(&scratch.path().join("belljar"))?;
        crate::say(&format!("binary: {}; {linked}", mebibytes(binary.len() as u64)));
        let date = date(root)?;
        let crates = Crates::read(root)?;
        let mut entries = vec![
            Entry::program("bin/belljar", binary),
            Entry::file("share/doc/belljar/README.md", fs::read(root.join("README.md"))?),
            Entry::file("share/doc/belljar/LICENSE", fs::read(root.join("LICENSE"))?),
            Entry::file("share/doc/belljar/THIRD-PARTY.txt", licences::text(&crates, root)?),
            Entry::file("share/doc/belljar/sbom.cdx.json", sbom::json(&crates, date)?),
        ];
        if let Some(directory) = beside {
            entries.extend(code(&directory, &built)?);
        }
        entries.extend(completions(&built)?);
        entries.extend(manual(&built, &scratch.path().join("man"))?);
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { version: crates.version().to_owned(), date, entries, linked, debug })
    }

    /// Writes archive, package and their sums; gives the files.
    fn write(&self, to: &Path) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(to).with_context(|| format!("failed to make `{}`", to.display()))?;
        let name = self.name();
        let mut files = vec![
            (format!("{name}.tar.gz"), self.archive(&name)?),
            (format!("belljar_{}_{}.deb", self.version, debian_arch()?), self.package()?),
        ];
        let sums = files.iter().map(|(name, bytes)| sum(name, bytes)).collect::<String>();
        files.push(("SHA256SUMS".to_owned(), sums.into_bytes()));
        let write = |(name, bytes): (String, Vec<u8>)| {
            let path = to.join(name);
            fs::write(&path, bytes)
                .with_context(|| format!("failed to write `{}`", path.display()))?;
            Ok(path)
        };
        files.into_iter().map(write).collect()
    }

    /// The archive's name without its ending.
    fn name(&self) -> String {
        format!("belljar-{}-{}-linux", self.version, std::env::consts::ARCH)
    }

    fn archive(&self, name: &str) -> Result<Vec<u8>> {
        let sums = self.entries.iter().map(|entry| sum(&entry.path, &entry.bytes));
        let sums = Entry::file("share/doc/belljar/SHA256SUMS", sums.collect::<String>());
        let mut entries: Vec<&Entry> = self.entries.iter().chain([&sums]).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let tar = archive::tar(&format!("{name}/"), &entries, self.date)?;
        gzip(&tar, self.debug)
    }

    /// The Debian package. Its few hundred bytes around two archives are written here: dpkg-deb
    /// would be one more program to have, and dates members by the clock of its own.
    fn package(&self) -> Result<Vec<u8>> {
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
            self.linked.debian()?,
            installed.div_ceil(1024),
        );
        let control = Entry::file("control", control);
        let copyright = Entry::file("share/doc/belljar/copyright", self.copyright());
        // There the licences are the file `copyright`, and LICENSE would be a second copy.
        let own = self.entries.iter().filter(|entry| !entry.path.ends_with("/LICENSE"));
        let own = own.cloned().chain([copyright]).map(Entry::for_debian);
        let mut entries = own.collect::<Vec<_>>();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let control = archive::tar("./", &[&control], self.date)?;
        let data = archive::tar("./usr/", &entries.iter().collect::<Vec<_>>(), self.date)?;
        let members = [
            ("debian-binary", b"2.0\n".to_vec()),
            ("control.tar.gz", gzip(&control, self.debug)?),
            ("data.tar.gz", gzip(&data, self.debug)?),
        ];
        archive::ar(&members, self.date)
    }

    fn copyright(&self) -> Vec<u8> {
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

/// The files that were built.
struct Built {
    binary: PathBuf,
    /// Where the build script of the binary has left machine code that is installed beside it.
    beside: Option<PathBuf>,
}

/// Builds the binary. A release names no directory of the machine that built it.
fn build(root: &Path, debug: bool) -> Result<Built> {
    if debug {
        return Ok(Built { binary: crate::built(root)?, beside: None });
    }
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let cargo_home = cargo_home.context("there is neither `CARGO_HOME` nor a home directory")?;
    let flags = format!(
        "--remap-path-prefix={}=/cargo --remap-path-prefix={}=/belljar",
        cargo_home.display(),
        root.display()
    );
    let built = crate::cargo()
        .args(["build", "--profile", "shipped", "--locked", "--bin", "belljar"])
        .args(["--message-format", "json-render-diagnostics"])
        .env("RUSTFLAGS", flags)
        // The stock tools' machine code, too: it has to run on every machine, not on this one.
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
    Ok(Built { binary: root.join("target/shipped/belljar"), beside: Some(beside) })
}

/// The directory of a package's build script, by cargo's messages.
fn left_by(package: &str, messages: &str) -> Option<PathBuf> {
    let of = |message: Value| {
        let id = message["package_id"].as_str()?;
        let own = id.contains(&format!("#{package}@"));
        let is = message["reason"] == "build-script-executed" && own;
        is.then(|| message["out_dir"].as_str().map(PathBuf::from))?
    };
    messages.lines().filter_map(|line| serde_json::from_str(line).ok()).find_map(of)
}

/// The files that are installed beside the binary, which names them: machine code, and a component that is
/// compiled at its first use.
fn code(directory: &Path, binary: &Path) -> Result<Vec<Entry>> {
    let binary = fs::read(binary)?;
    let mut entries = Vec::new();
    for file in fs::read_dir(directory)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        let is_code =
            name.contains('-') && (name.ends_with(".code") || name.ends_with(".code.zst"));
        if is_code && binary.windows(name.len()).any(|part| part == name.as_bytes()) {
            entries.push(Entry::file(&format!("lib/belljar/{name}"), fs::read(file.path())?));
        }
    }
    ensure!(!entries.is_empty(), "the binary names no file in `{}`", directory.display());
    Ok(entries)
}

/// The binary without symbols. `strip` comes with the C compiler that building took.
fn stripped(binary: &Path, to: &Path) -> Result<Vec<u8>> {
    let strip = Command::new("strip").args(["--strip-all", "-o"]).arg(to).arg(binary).output();
    let strip = strip.context("failed to start `strip`, which is in the package binutils")?;
    ensure!(strip.status.success(), "strip: {}", String::from_utf8_lossy(&strip.stderr));
    fs::read(to).context("failed to read the stripped binary")
}

/// When the release was made, as far as it says: `SOURCE_DATE_EPOCH`, or the time of the commit.
fn date(root: &Path) -> Result<u64> {
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

fn completions(binary: &Path) -> Result<Vec<Entry>> {
    const SHELLS: [(&str, &str); 3] = [
        ("bash", "share/bash-completion/completions/belljar"),
        ("fish", "share/fish/vendor_completions.d/belljar.fish"),
        ("zsh", "share/zsh/site-functions/_belljar"),
    ];
    let of = |(shell, path): (&str, &str)| {
        let done = Command::new(binary).args(["completions", shell]).output()?;
        ensure!(done.status.success(), "`belljar completions {shell}` failed");
        Ok(Entry::file(path, done.stdout))
    };
    SHELLS.into_iter().map(of).collect()
}

/// The pages of the manual, compressed as `man` finds them everywhere.
fn manual(binary: &Path, scratch: &Path) -> Result<Vec<Entry>> {
    let done = Command::new(binary).arg("man").arg(scratch).output()?;
    ensure!(done.status.success(), "belljar man: {}", String::from_utf8_lossy(&done.stderr));
    let mut pages = Vec::new();
    for file in fs::read_dir(scratch)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        let page = gzip(&fs::read(file.path())?, false)?;
        pages.push(Entry::file(&format!("share/man/man1/{name}.gz"), page));
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

/// A line of SHA256SUMS, as `sha256sum --check` reads it.
fn sum(name: &str, bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digest}  {name}\n")
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}
