//! `cargo xtask test release`: installs the release as a person without Rust would, in a root
//! directory that holds nothing but the libraries that the binary links to, and uses it there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::{Arguments, Release, sum};

/// Puts a new process into a root directory of its own. `$0` is that directory. The process sees
/// itself in `/proc`, and of the devices those that every program expects.
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

/// Where each file of the release is to be found once it is installed.
const INSTALLED: &[&str] = &[
    "bin/belljar",
    "share/man/man1/belljar.1.gz",
    "share/man/man1/belljar-agents-list.1.gz",
    "share/bash-completion/completions/belljar",
    "share/fish/vendor_completions.d/belljar.fish",
    "share/doc/belljar/THIRD-PARTY.txt",
    "share/doc/belljar/sbom.cdx.json",
];

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    let release = Release::gather(root, arguments.debug)?;
    let scratch = tempfile::tempdir()?;
    let (first, second) = (scratch.path().join("first"), scratch.path().join("second"));
    let files = release.write(&first)?;
    // Gathered anew: all that is made of the binary and of the sources is made twice.
    Release::gather(root, arguments.debug)?.write(&second)?;
    same(&files, &second)?;
    let [archive, package, sums] = files.as_slice() else { bail!("a release has three files") };
    for line in fs::read_to_string(sums)?.lines() {
        check_sum(line, &first)?;
    }
    let unpacked = Machine::new(&release, "usr/local")?;
    unpacked.does("tar", &["--strip-components=1", "-xzf"], archive, &["-C"], "usr/local")?;
    let list = fs::read_to_string(unpacked.path("usr/local/share/doc/belljar/SHA256SUMS"))?;
    for line in list.lines() {
        check_sum(line, &unpacked.path("usr/local"))?;
    }
    unpacked.exists("usr/local/share/zsh/site-functions/_belljar")?;
    unpacked.works("the archive")?;
    let installed = Machine::new(&release, "usr")?;
    installed.install(package)?;
    installed.exists("usr/share/zsh/vendor-completions/_belljar")?;
    installed.exists("usr/share/doc/belljar/copyright")?;
    installed.works("the package")
}

fn same(files: &[PathBuf], second: &Path) -> Result<()> {
    for file in files {
        let other = second.join(file.file_name().unwrap_or_default());
        ensure!(fs::read(file)? == fs::read(other)?, "two runs wrote different {}", file.display());
    }
    crate::say("dist: two runs wrote the same bytes");
    Ok(())
}

fn check_sum(line: &str, directory: &Path) -> Result<()> {
    let (_, name) = line.split_once("  ").context("a line of SHA256SUMS has no name")?;
    let bytes = fs::read(directory.join(name)).with_context(|| format!("no file `{name}`"))?;
    ensure!(sum(name, &bytes).trim_end() == line, "the sum of `{name}` is not right");
    Ok(())
}

/// A root directory with nothing in it but a C library.
struct Machine {
    root: TempDir,
    version: String,
    /// Where the release is installed.
    prefix: &'static str,
}

impl Machine {
    fn new(release: &Release, prefix: &'static str) -> Result<Self> {
        let root = tempfile::tempdir()?;
        for directory in ["proc", "dev", "tmp", "root", prefix, "var/lib/dpkg/updates"] {
            fs::create_dir_all(root.path().join(directory))?;
        }
        fs::create_dir_all(root.path().join("var/lib/dpkg/info"))?;
        fs::write(root.path().join("var/lib/dpkg/status"), "")?;
        let machine = Self { root, version: release.version.clone(), prefix };
        let binary = release.entries.iter().find(|entry| entry.path == "bin/belljar");
        let binary = binary.context("the release has no binary")?;
        machine.libraries(&binary.bytes)?;
        Ok(machine)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// Copies the shared libraries and their loader to where they are on this machine.
    fn libraries(&self, binary: &[u8]) -> Result<()> {
        let program = tempfile::NamedTempFile::new()?;
        fs::write(program.path(), binary)?;
        let ldd =
            Command::new("ldd").arg(program.path()).output().context("failed to start ldd")?;
        let text = String::from_utf8_lossy(&ldd.stdout).into_owned();
        for library in text.split_whitespace().filter(|word| word.starts_with('/')) {
            let to = self.path(library.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap_or(&to))?;
            fs::copy(library, &to).with_context(|| format!("failed to copy `{library}`"))?;
        }
        Ok(())
    }

    fn does(
        &self,
        program: &str,
        before: &[&str],
        file: &Path,
        after: &[&str],
        to: &str,
    ) -> Result<()> {
        let mut command = Command::new(program);
        command.args(before).arg(file).args(after).arg(self.path(to));
        let status = command.status().with_context(|| format!("failed to start {program}"))?;
        ensure!(status.success(), "{program} does not take `{}`", file.display());
        Ok(())
    }

    /// Installs the package with dpkg where it may; else its files are taken out of it.
    fn install(&self, package: &Path) -> Result<()> {
        if !is_root() {
            return self.does("dpkg-deb", &["-x"], package, &[], "");
        }
        let root = format!("--root={}", self.root.path().display());
        // The C library was not installed as a package there.
        let before = [&root, "--force-depends", "--install"];
        let dpkg = Command::new("dpkg").args(before).arg(package).output();
        let dpkg = dpkg.context("failed to start dpkg")?;
        ensure!(dpkg.status.success(), "dpkg: {}", String::from_utf8_lossy(&dpkg.stderr));
        let status = fs::read_to_string(self.path("var/lib/dpkg/status"))?;
        ensure!(status.contains("Status: install ok"), "dpkg did not install it:\n{status}");
        Ok(())
    }

    fn exists(&self, path: &str) -> Result<()> {
        ensure!(self.path(path).is_file(), "`{path}` is not there");
        Ok(())
    }

    /// Uses what was installed.
    fn works(&self, what: &str) -> Result<()> {
        for path in INSTALLED {
            self.exists(&format!("{}/{path}", self.prefix))?;
        }
        let version = self.belljar(&["--version"])?;
        ensure!(version.trim() == format!("belljar {}", self.version), "it says `{version}`");
        let demo = self.belljar(&["demo"])?;
        ensure!(demo.contains("etc/passwd") && demo.contains('✗'), "the demo:\n{demo}");
        let shell =
            self.belljar(&["tools", "call", "shell", r#"{"command": "echo $((40 + 2))"}"#])?;
        ensure!(shell.contains("42"), "the shell:\n{shell}");
        let doctor = self.belljar(&["doctor"])?;
        ensure!(doctor.contains("read a file"), "the sandbox was not tried:\n{doctor}");
        crate::say(&format!("dist: {what} works where there is nothing but a C library"));
        Ok(())
    }

    fn belljar(&self, arguments: &[&str]) -> Result<String> {
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

/// Whether this process may mount and change its root without a user namespace.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
