//! Reads which shared libraries the binary needs.

use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The shared libraries that the binary links to, and the oldest glibc version that has all functions the
/// binary uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LinkedLibraries {
    libraries: Vec<String>,
    glibc: Option<(u32, u32)>,
}

impl LinkedLibraries {
    pub(super) fn read_binary(binary: &Path) -> Result<Self> {
        let readelf = Command::new("readelf")
            .args(["--wide", "--dynamic", "--version-info"])
            .arg(binary)
            .env("LC_ALL", "C")
            .output()
            .context("failed to start `readelf`, which is in the package binutils")?;
        ensure!(readelf.status.success(), "readelf does not understand the binary");
        Ok(Self::parse_readelf(&String::from_utf8_lossy(&readelf.stdout)))
    }

    fn parse_readelf(text: &str) -> Self {
        let needed = text.lines().filter(|line| line.contains("(NEEDED)"));
        let name = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
        let mut libraries: Vec<String> = needed.filter_map(name).collect();
        libraries.sort();
        let versions = text.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
        let glibc = versions.filter_map(parse_version).max();
        Self { libraries, glibc }
    }

    /// The Debian packages that contain the libraries.
    pub(super) fn debian_packages(&self) -> Result<String> {
        let mut packages = Vec::new();
        if let Some((major, minor)) = self.glibc {
            packages.push(format!("libc6 (>= {major}.{minor})"));
        }
        for library in &self.libraries {
            match library.as_str() {
                "libc.so.6"
                | "libm.so.6"
                | "libdl.so.2"
                | "libpthread.so.0"
                | "librt.so.1"
                | "ld-linux-x86-64.so.2"
                | "ld-linux-aarch64.so.1" => {}
                "libgcc_s.so.1" => packages.push("libgcc-s1".to_owned()),
                other => bail!("the binary links to `{other}`; say here which package has it"),
            }
        }
        Ok(packages.join(", "))
    }
}

impl fmt::Display for LinkedLibraries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.libraries.is_empty() {
            return f.write_str("links to nothing");
        }
        write!(f, "links to {}", self.libraries.join(", "))?;
        match self.glibc {
            Some((major, minor)) => write!(f, "; needs glibc {major}.{minor}"),
            None => Ok(()),
        }
    }
}

/// The first two numbers of a version such as `2.34` or `2.2.5`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_decides_which_glibc_is_needed() {
        let text = " 0x01 (NEEDED)  Shared library: [libgcc_s.so.1]\n \
            0x01 (NEEDED)  Shared library: [libc.so.6]\n \
            0x0010: Name: GLIBC_2.9  Flags: none\n 0x0020: Name: GLIBC_2.34  Flags: none\n \
            0x0030: Name: GLIBC_2.2.5  Flags: none\n 0x0040: Name: GCC_3.0\n";
        let linked = LinkedLibraries::parse_readelf(text);
        assert_eq!(linked.to_string(), "links to libc.so.6, libgcc_s.so.1; needs glibc 2.34");
        assert_eq!(linked.debian_packages().unwrap(), "libc6 (>= 2.34), libgcc-s1");
        assert!(
            LinkedLibraries::parse_readelf("(NEEDED) [libssl.so.3]").debian_packages().is_err()
        );
    }
}
