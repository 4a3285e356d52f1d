//! `cargo xtask test release`: installs the release in a root directory that contains only the libraries
//! that the binary links to, and runs the installed program there, like on a machine without Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::{DistArgs, ReleaseParts, checksum_line};

/// A shell script that moves a new process to the root directory `$0`. The process sees its own `/proc`, and
/// only the devices that every program expects.
const ENTER: &str = r#"
set -e
mount -t proc proc "$0/proc"
for device in null zero urandom; do
  : >"$0/dev/$device"
  mount --bind "/dev/$device" "$0/dev/$device"
done
# Where people have it, it is not on everybody's path.
chroot=$(PATH="$PATH:/usr/sbin:/sbin" command -v chroot)
exec env -i HOME=/root PATH=/usr/local/bin:/usr/bin "$chroot" "$0" "$@"
"#;

/// Files of the installed release that must exist, relative to the prefix.
const INSTALLED: &[&str] = &[
    "bin/belljar",
    "share/man/man1/belljar.1.gz",
    "share/man/man1/belljar-agents-list.1.gz",
    "share/bash-completion/completions/belljar",
    "share/fish/vendor_completions.d/belljar.fish",
    "share/doc/belljar/THIRD-PARTY.txt",
    "share/doc/belljar/sbom.cdx.json",
];

pub(crate) fn run(root: &Path, arguments: &DistArgs) -> Result<()> {
    let release = ReleaseParts::gather_files(root, arguments.debug)?;
    let scratch = tempfile::tempdir()?;
    let (first, second) = (scratch.path().join("first"), scratch.path().join("second"));
    let files = release.write_files(&first)?;
    // The files are made a second time from the same binary and sources, and have to be the same bytes.
    ReleaseParts::gather_files(root, arguments.debug)?.write_files(&second)?;
    check_same_files(&files, &second)?;
    let [archive, package, sums] = files.as_slice() else { bail!("a release has three files") };
    for line in fs::read_to_string(sums)?.lines() {
        check_sum(line, &first)?;
    }
    let unpacked = TestMachine::new(&release, "usr/local")?;
    unpacked.run_into("tar", &["--strip-components=1", "-xzf"], archive, &["-C"], "usr/local")?;
    let list = fs::read_to_string(unpacked.path_below("usr/local/share/doc/belljar/SHA256SUMS"))?;
    for line in list.lines() {
        check_sum(line, &unpacked.path_below("usr/local"))?;
    }
    unpacked.check_exists("usr/local/share/zsh/site-functions/_belljar")?;
    unpacked.check_works("the archive")?;
    let installed = TestMachine::new(&release, "usr")?;
    installed.install_package(package)?;
    installed.check_exists("usr/share/zsh/vendor-completions/_belljar")?;
    installed.check_exists("usr/share/doc/belljar/copyright")?;
    installed.check_works("the package")
}

fn check_same_files(files: &[PathBuf], second: &Path) -> Result<()> {
    for file in files {
        let other = second.join(file.file_name().unwrap_or_default());
        ensure!(fs::read(file)? == fs::read(other)?, "two runs wrote different {}", file.display());
    }
    crate::print_line("dist: two runs wrote the same bytes");
    Ok(())
}

fn check_sum(line: &str, directory: &Path) -> Result<()> {
    let (_, name) = line.split_once("  ").context("a line of SHA256SUMS has no name")?;
    let bytes = fs::read(directory.join(name)).with_context(|| format!("no file `{name}`"))?;
    ensure!(checksum_line(name, &bytes).trim_end() == line, "the sum of `{name}` is not right");
    Ok(())
}

/// A root directory that contains only a C library, and the release once installed.
struct TestMachine {
    root: TempDir,
    version: String,
    /// The directory where the release is installed.
    prefix: &'static str,
}

impl TestMachine {
    fn new(release: &ReleaseParts, prefix: &'static str) -> Result<Self> {
        let root = tempfile::tempdir()?;
        for directory in ["proc", "dev", "tmp", "root", prefix, "var/lib/dpkg/updates"] {
            fs::create_dir_all(root.path().join(directory))?;
        }
        fs::create_dir_all(root.path().join("var/lib/dpkg/info"))?;
        fs::write(root.path().join("var/lib/dpkg/status"), "")?;
        let machine = Self { root, version: release.version.clone(), prefix };
        let binary = release.entries.iter().find(|entry| entry.path == "bin/belljar");
        let binary = binary.context("the release has no binary")?;
        machine.copy_libraries(&binary.bytes)?;
        Ok(machine)
    }

    fn path_below(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// Copies the shared libraries and their loader from the local machine, to the same paths.
    fn copy_libraries(&self, binary: &[u8]) -> Result<()> {
        let program = tempfile::NamedTempFile::new()?;
        fs::write(program.path(), binary)?;
        let ldd =
            Command::new("ldd").arg(program.path()).output().context("failed to start ldd")?;
        let text = String::from_utf8_lossy(&ldd.stdout).into_owned();
        for library in text.split_whitespace().filter(|word| word.starts_with('/')) {
            let to = self.path_below(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap_or(&to))?;
            fs::copy(library, &to).with_context(|| format!("failed to copy `{library}`"))?;
        }
        Ok(())
    }

    fn run_into(
        &self,
        program: &str,
        before: &[&str],
        file: &Path,
        after: &[&str],
        to: &str,
    ) -> Result<()> {
        let mut command = Command::new(program);
        command.args(before).arg(file).args(after).arg(self.path_below(to));
        let status = command.status().with_context(|| format!("failed to start {program}"))?;
        ensure!(status.success(), "{program} does not take `{}`", file.display());
        Ok(())
    }

    /// Installs the package with dpkg, if the current process is root; else unpacks the files of the
    /// package.
    fn install_package(&self, package: &Path) -> Result<()> {
        if !is_root() {
            return self.run_into("dpkg-deb", &["-x"], package, &[], "");
        }
        let root = format!("--root={}", self.root.path().display());
        // In this root directory, the C library is not installed as a package, so dependencies are not
        // checked.
        let before = [&root, "--force-depends", "--install"];
        let dpkg = Command::new("dpkg").args(before).arg(package).output();
        let dpkg = dpkg.context("failed to start dpkg")?;
        ensure!(dpkg.status.success(), "dpkg: {}", String::from_utf8_lossy(&dpkg.stderr));
        let status = fs::read_to_string(self.path_below("var/lib/dpkg/status"))?;
        ensure!(status.contains("Status: install ok"), "dpkg did not install it:\n{status}");
        Ok(())
    }

    fn check_exists(&self, path: &str) -> Result<()> {
        ensure!(self.path_below(path).is_file(), "`{path}` is not there");
        Ok(())
    }

    /// Runs the installed program.
    fn check_works(&self, what: &str) -> Result<()> {
        for path in INSTALLED {
            self.check_exists(&format!("{}/{path}", self.prefix))?;
        }
        let version = self.run_belljar(&["--version"])?;
        ensure!(version.trim() == format!("belljar {}", self.version), "it says `{version}`");
        let demo = self.run_belljar(&["demo"])?;
        ensure!(demo.contains("etc/passwd") && demo.contains('✗'), "the demo:\n{demo}");
        let shell =
            self.run_belljar(&["tools", "call", "shell", r#"{"command": "echo $((40 + 2))"}"#])?;
        ensure!(shell.contains("42"), "the shell:\n{shell}");
        let doctor = self.run_belljar(&["doctor"])?;
        ensure!(doctor.contains("read a file"), "the sandbox was not tried:\n{doctor}");
        crate::print_line(&format!("dist: {what} works where there is nothing but a C library"));
        Ok(())
    }

    fn run_belljar(&self, arguments: &[&str]) -> Result<String> {
        let mut unshare = Command::new("unshare");
        if !is_root() {
            unshare.args(["--user", "--map-root-user"]);
        }
        unshare.args(["--mount", "--pid", "--fork", "sh", "-c", ENTER]).arg(self.root.path());
        let done = unshare.arg("belljar").args(arguments).output();
        let Output { status, stdout, stderr } = done.context("failed to start unshare")?;
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        ensure!(status.success(), "`belljar {}`:\n{stdout}{stderr}", arguments.join(" "));
        Ok(stdout.into_owned())
    }
}

/// Whether the current process is root, which may mount and change its root without a user namespace.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
