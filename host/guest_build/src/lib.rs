//! Builds guests: finds the toolchains and runs them. Rust is built in this file, for `wasm32-wasip2`;
//! [`Language`] knows all languages.
//!
//! Used by `belljar tools build` and by `cargo xtask rebuild tools`, so that a user's tool and a stock tool
//! are built in the same way.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod assemblyscript;
mod clang;
mod component;
mod found;
mod go;
mod javascript;
mod language;
mod layout;
mod project;
mod python;
mod zig;

pub use language::{FoundToolchain, Language};
pub use layout::{sdk_path, template_path};

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target for which all Rust guests are built. Its output is a component.
pub const TARGET: &str = "wasm32-wasip2";

/// Where Debian's `rustc-web`, `rust-web-src` and `wasi-libc` install the compiler and the libraries.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_STD: &str = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";
const DEBIAN_RUST: &str = "/usr/lib/rustlib/src/rust";
const DEBIAN_LIBC: &str = "/usr/lib/wasm32-wasi";

/// The C compiler of Debian's packages `clang-19`, `lld-19` and `libclang-rt-19-dev-wasm32`.
const C_COMPILER: &str = "clang-19";

/// A Rust compiler that can build for [`TARGET`].
#[derive(Debug)]
pub enum RustToolchain {
    /// The `rustc` on the `PATH`, with the target installed.
    Installed {
        /// The output of `rustc --version`, for example `rustc 1.90.0`.
        version: String,
    },
    /// Debian's compiler, which builds the standard library from its source package, with the linker that
    /// rustup ships.
    Debian {
        /// The output of `/usr/bin/rustc --version`.
        version: String,
        /// The directory of `wasm-component-ld` and `gcc-ld/wasm-ld`.
        linkers: PathBuf,
    },
}

impl RustToolchain {
    /// Finds a toolchain: first the `rustc` on the `PATH`, then Debian's packages.
    ///
    /// # Errors
    ///
    /// There is neither; the error says what to install.
    pub fn find_installed() -> Result<RustToolchain> {
        if let Some(libraries) =
            program_output("rustc", &["--print", "target-libdir", "--target", TARGET])
            && holds_std(Path::new(&libraries))
            && let Some(version) = program_output("rustc", &["--version"])
        {
            return Ok(RustToolchain::Installed { version });
        }
        match find_debian() {
            Some(toolchain) => Ok(toolchain),
            None => bail!(
                "no Rust toolchain for `{TARGET}` was found\n\
                 hint: run `rustup target add {TARGET}`; where rustup cannot, on Debian run \
                 `apt-get install --no-install-recommends rustc-web rust-web-src wasi-libc`"
            ),
        }
    }

    /// The toolchain in a line, for people and for the manifest of built components.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            RustToolchain::Installed { version } => format!("{version}, installed target"),
            RustToolchain::Debian { version, .. } => {
                format!("{version}, Debian, standard library from source")
            }
        }
    }

    fn configure_cargo(&self, cargo: &mut Command, flags: &mut Vec<OsString>) -> Result<()> {
        match self {
            RustToolchain::Installed { .. } => {}
            RustToolchain::Debian { linkers, .. } => {
                let mut path = vec![linkers.join("gcc-ld")];
                path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
                cargo.env("PATH", std::env::join_paths(path)?);
                cargo.env("RUSTC", DEBIAN_RUSTC);
                // A released compiler builds its standard library only with this variable.
                cargo.env("RUSTC_BOOTSTRAP", "1");
                let linker = linkers.join("wasm-component-ld");
                cargo.env("CARGO_TARGET_WASM32_WASIP2_LINKER", linker);
                cargo.arg("-Zbuild-std=std,panic_abort");
                flags.push(format!("-Lnative={DEBIAN_LIBC}").into());
                flags.push(format!("--remap-path-prefix={DEBIAN_RUST}=/rust").into());
            }
        }
        Ok(())
    }
}

/// A package to build.
#[derive(Debug)]
pub struct PackageBuild<'a> {
    /// The directory with the manifest, of a workspace or of the package.
    pub root: &'a Path,
    /// The name of the package, if the directory has several.
    pub package: Option<&'a str>,
    /// The build profile; `release` always exists.
    pub profile: &'a str,
    /// Where cargo writes its output. Not the host's target directory, so that neither build waits for the
    /// other.
    pub target_dir: &'a Path,
    /// Whether the build fails instead of changing `Cargo.lock`.
    pub locked: bool,
    /// How to compile C sources, if the package has some.
    pub c: Option<CSources<'a>>,
}

/// How the C sources of a package are compiled.
#[derive(Debug, Clone, Copy)]
pub struct CSources<'a> {
    /// A header that is included before every source file.
    pub header: &'a Path,
}

impl CSources<'_> {
    /// Makes build scripts that use `cc` run Debian's compiler with its libc for WASI.
    fn configure_compiler(self, cargo: &mut Command) {
        let mut flags = OsString::from("-isystem /usr/include/wasm32-wasi -include ");
        flags.push(self.header);
        cargo.env("CC_wasm32_wasip2", C_COMPILER).env("AR_wasm32_wasip2", "ar");
        cargo.env("CFLAGS_wasm32_wasip2", flags);
        // Otherwise the build script of `rquickjs-sys` downloads a compiler.
        cargo.env("RQUICKJS_SYS_NO_WASI_SDK", "1");
    }
}

impl PackageBuild<'_> {
    /// Builds the package, and returns the path of the component. Cargo's own messages go to stderr.
    ///
    /// Paths of this machine are replaced in the output, so that the same sources and toolchain make the same
    /// bytes in every directory.
    ///
    /// # Errors
    ///
    /// Cargo cannot be run or fails, or the package is not a `cdylib`.
    pub fn build_component(&self, toolchain: &RustToolchain) -> Result<PathBuf> {
        // Fetched first, because the directories of the sources are listed to replace their paths.
        self.fetch_sources()?;
        let mut cargo = self.cargo_command("build");
        cargo.args(["--target", TARGET, "--profile", self.profile, "--lib"]);
        cargo.arg("--message-format=json-render-diagnostics");
        cargo.arg("--target-dir").arg(self.target_dir);
        if let Some(package) = self.package {
            cargo.args(["--package", package]);
        }
        let mut flags = self.remap_flags()?;
        toolchain.configure_cargo(&mut cargo, &mut flags)?;
        if let Some(c) = self.c {
            c.configure_compiler(&mut cargo);
        }
        // Flags and wrappers of the caller's environment would change the output.
        cargo.env_remove("RUSTFLAGS").env_remove("RUSTC_WORKSPACE_WRAPPER");
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}".as_ref()));
        let done =
            cargo.stderr(Stdio::inherit()).output().context("failed to run `cargo build`")?;
        if !done.status.success() {
            bail!("`cargo build` failed for `{}`", self.package.unwrap_or("the tool"));
        }
        last_component(&String::from_utf8_lossy(&done.stdout)).with_context(|| {
            format!(
                "`{}` built no component\nhint: set `crate-type = [\"cdylib\"]` under `[lib]`",
                self.package.unwrap_or("the package")
            )
        })
    }

    fn fetch_sources(&self) -> Result<()> {
        let status = self.cargo_command("fetch").arg("--quiet").status();
        if !status.context("failed to run `cargo fetch`")?.success() {
            bail!("`cargo fetch` failed in `{}`", self.root.display());
        }
        Ok(())
    }

    fn cargo_command(&self, subcommand: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.arg(subcommand).current_dir(self.root);
        if self.locked {
            cargo.arg("--locked");
        }
        cargo
    }

    fn remap_flags(&self) -> Result<Vec<OsString>> {
        let mut flags = Vec::new();
        let mut remap = |from: &Path, to: &str| {
            let mut flag = OsString::from("--remap-path-prefix=");
            flag.push(from);
            flag.push("=");
            flag.push(to);
            flags.push(flag);
        };
        let root = self.root.canonicalize();
        remap(&root.with_context(|| format!("failed to open `{}`", self.root.display()))?, "/src");
        if let Some(home) = cargo_home() {
            remap(&home, "/cargo");
            // If several prefixes match, the last wins. The name of this directory differs between machines.
            for registry in std::fs::read_dir(home.join("registry/src")).into_iter().flatten() {
                remap(&registry?.path(), "/crates");
            }
        }
        Ok(flags)
    }
}

/// Finds the Rust toolchain of Debian's packages: the WebAssembly library, its C library, and the linker for
/// components.
fn find_debian() -> Option<RustToolchain> {
    let there = |path: &str| Path::new(path).exists();
    if !there(DEBIAN_STD) || !Path::new(DEBIAN_LIBC).join("libc.a").exists() {
        return None;
    }
    let version = program_output(DEBIAN_RUSTC, &["--version"])?;
    let sysroot = program_output("rustc", &["--print", "sysroot"])?;
    let host = program_output("rustc", &["-vV"])?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: "))?;
    let linkers = Path::new(&sysroot).join("lib/rustlib").join(host).join("bin");
    linkers.join("wasm-component-ld").exists().then_some(RustToolchain::Debian { version, linkers })
}

fn holds_std(directory: &Path) -> bool {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

fn program_output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned())
}

fn cargo_home() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))?;
    home.canonicalize().ok()
}

/// The path of the last `.wasm` file in cargo's messages: those of dependencies come before the package's.
fn last_component(messages: &str) -> Option<PathBuf> {
    let artifact = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let files = message.get("filenames")?.as_array()?.clone();
        files
            .iter()
            .filter_map(|file| file.as_str())
            .find(|file| file.ends_with(".wasm"))
            .map(PathBuf::from)
    };
    messages.lines().filter_map(artifact).next_back()
}

#[cfg(test)]
mod tests {
    use super::last_component;
    use std::path::PathBuf;

    #[test]
    fn the_component_is_the_last_wasm_file_cargo_names() {
        let messages = "{\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/liba.rlib\"]}\n\
            not json\n\
            {\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/tool.wasm\"]}\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(last_component(messages), Some(PathBuf::from("/t/tool.wasm")));
        assert_eq!(last_component(""), None);
    }
}
